# SPDX-License-Identifier: Apache-2.0
"""Interpreter of tf.lite and ai_edge_litert.interpreter, over a Session."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np

from .. import _tensors
from ..errors import Error, Status
from ..model import Model, Registry
from ..session import Session
from .delegates import Delegate, OpResolverType, load_delegate
from .details import Details, details_of

__all__ = ['Delegate', 'Interpreter', 'InterpreterWithCustomOps', 'OpResolverType', 'SignatureRunner', 'load_delegate']

WITHOUT_DELEGATES = (OpResolverType.BUILTIN_REF, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)


class Interpreter:
    """Runs a .tflite file as tf.lite.Interpreter does. One thread at a time.

    model_path or model_content: the model. experimental_delegates: what load_delegate returned; instead of the default
    ones. num_threads: maximum of one run (1). experimental_op_resolver_type: see OpResolverType.
    experimental_preserve_all_tensors: get_tensor returns intermediate tensors; no default delegate is used.
    The last two arguments are accepted: they tune delegates that Fusebox does not have.
    """

    def __init__(self, model_path: Optional[str] = None, model_content: Optional[bytes] = None,
                 experimental_delegates: Optional[Sequence[Delegate]] = None, num_threads: Optional[int] = None,
                 experimental_op_resolver_type: OpResolverType = OpResolverType.AUTO,
                 experimental_preserve_all_tensors: bool = False,
                 experimental_disable_delegate_clustering: bool = False,
                 experimental_default_delegate_latest_features: bool = False) -> None:
        if (model_path is None) == (model_content is None):
            raise Error('Interpreter: needs either model_path or model_content')
        if num_threads is not None and (not isinstance(num_threads, int) or num_threads < 1):
            raise Error(f'Interpreter: num_threads is {num_threads!r}, expected a number from 1')
        plain = experimental_preserve_all_tensors or experimental_op_resolver_type in WITHOUT_DELEGATES
        plugins = [d.plugin for d in experimental_delegates or [] if d.plugin is not None]
        model = Model(model_path if model_path is not None else model_content,  # type: ignore[arg-type]
                      delegates=[(d.name, d.options) for d in experimental_delegates] if experimental_delegates
                      else [] if plain else None,
                      registry=Registry({'plugins': plugins}) if plugins else None)
        self._session = Session(model, threads=num_threads or 1, keep_values=experimental_preserve_all_tensors)
        self._keeps_values = experimental_preserve_all_tensors
        self._main = self._session.signature
        self._saved: Optional[List[np.ndarray]] = None  # inputs, while another signature is selected
        self._allocated = False
        self._selected()

    def _selected(self) -> None:
        """Numbers of tensors, for the selected signature."""
        library, pointer = self._session._library, self._session._pointer()
        self._input_of = {library.session_input_value(pointer, i): i for i in range(len(self._session._inputs))}
        self._output_of = {library.session_output_value(pointer, i): i for i in range(len(self._session._outputs))}

    def _select(self, key: str) -> None:
        """Selects a signature. The inputs of the main one are kept."""
        if self._session.signature == key:
            return
        if self._session.signature == self._main and self._allocated:
            self._saved = [self._value_of_input(i).copy() for i in range(len(self._session._inputs))]
        self._session.select(key)
        self._selected()
        if key == self._main and self._saved is not None:
            for i, value in enumerate(self._saved):
                if self._session._inputs[i].dtype != object:
                    self._session.resize(i, value.shape)
                self._session.set_input(i, value)
            self._saved = None

    # ---- Tensors

    def _tensor(self, index: int) -> Any:
        """The C tensor with this number, valid until the next call."""
        session = self._session
        session._library.check(session._library.session_value_at, session._pointer(), int(index), session._reference)
        return session._tensor

    def _details(self, index: int) -> Details:
        info = _tensors.describe(self._tensor(index))
        shape = None
        if index in self._input_of:
            shape = self._session._info('input', self._input_of[index]).shape
        elif index in self._output_of:
            shape = self._session._info('output', self._output_of[index]).shape
        return details_of(index, info, shape)

    def get_input_details(self) -> List[Details]:
        """The inputs of the main subgraph."""
        self._select(self._main)
        return [self._details(index) for index in self._input_of]

    def get_output_details(self) -> List[Details]:
        """The outputs; their shapes are final after allocate_tensors, unless they depend on data."""
        self._select(self._main)
        library, pointer = self._session._library, self._session._pointer()
        return [self._details(library.session_output_value(pointer, i)) for i in range(len(self._session._outputs))]

    def get_tensor_details(self, subgraph_index: int = 0) -> List[Details]:
        """All tensors of the main subgraph, with declared shapes."""
        _require_main(subgraph_index)
        self._select(self._main)
        count = self._session._library.session_value_count(self._session._pointer())
        return [self._details(index) for index in range(count)]

    def set_tensor(self, tensor_index: int, value: Any) -> None:
        """Copies the value into an input. Its type and shape are those of the input."""
        index = self._input(tensor_index)
        array = np.asarray(value)
        self._require_allocated()
        info = self._session._inputs[index]
        if info.dtype == object:
            self._session.set_input(index, array)
            return
        if array.dtype != info.dtype:
            raise Error(f'Cannot set tensor: Got value of type {array.dtype} but expected type {info.dtype} for input '
                        f'{tensor_index}, name: {info.name}')
        memory = self._session.input(index)
        if array.shape != memory.shape:
            raise Error(f'Cannot set tensor: Got shape {list(array.shape)} but expected {list(memory.shape)} for input '
                        f'{tensor_index}, name: {info.name}; call resize_tensor_input first')
        self._session.set_input(index, array)

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> np.ndarray:
        """A copy of an input, an output, a constant, or with experimental_preserve_all_tensors of any tensor that the
        last invoke computed."""
        return np.array(self._array(tensor_index, subgraph_index))

    def tensor(self, tensor_index: int) -> Callable[[], np.ndarray]:
        """A function that returns a view of the tensor. Do not hold the view across invoke, allocate_tensors or
        resize_tensor_input."""
        self._tensor(tensor_index)  # raises if there is no such tensor
        return lambda: self._array(tensor_index, 0)

    def _array(self, tensor_index: int, subgraph_index: int) -> np.ndarray:
        _require_main(subgraph_index)
        self._select(self._main)
        if tensor_index in self._input_of:
            self._require_allocated()
            return self._value_of_input(self._input_of[tensor_index])
        if tensor_index in self._output_of:
            self._require_allocated()
            return self._session.output(self._output_of[tensor_index])
        tensor = self._tensor(tensor_index)
        if not tensor.data and not self._keeps_values:
            raise Error(f'tensor {tensor_index}, name: {(tensor.name or b"").decode(errors="replace")}, is computed '
                        'inside of the model; create the Interpreter with experimental_preserve_all_tensors=True')
        return _tensors.array_of(tensor, self._session._handle)

    def _value_of_input(self, index: int) -> np.ndarray:
        if self._session._inputs[index].dtype != object:
            return self._session.input(index)
        raise Error(f'input {index} holds strings, which cannot be read back', Status.UNSUPPORTED)

    def _input(self, tensor_index: int) -> int:
        self._select(self._main)
        if tensor_index not in self._input_of:
            self._tensor(tensor_index)  # raises if there is no such tensor
            raise Error(f'tensor {tensor_index} is not an input; inputs: '
                        f'{", ".join(map(str, self._input_of))}; other tensors cannot be set', Status.UNSUPPORTED)
        return self._input_of[tensor_index]

    # ---- Shapes and runs

    def resize_tensor_input(self, input_index: int, tensor_size: Sequence[int], strict: bool = False) -> None:
        """Sets the shape of an input; allocate_tensors must follow. strict: only dimensions of -1 may change."""
        index = self._input(input_index)
        shape = [int(size) for size in tensor_size]
        declared = self._session._inputs[index].shape
        if strict and declared is not None and (len(declared) != len(shape) or
                                                any(d not in (-1, s) for d, s in zip(declared, shape))):
            raise Error(f'ResizeInputTensorStrict only allows mutating unknown dimensions identified by -1: input '
                        f'{input_index} has shape {list(declared)}, got {shape}')
        self._allocated = False
        self._session.resize(index, shape)

    def allocate_tensors(self) -> None:
        """Plans for the shapes of the inputs and allocates memory; unknown dimensions become 1."""
        self._select(self._main)
        for i, info in enumerate(self._session.inputs):
            if info.dtype != object and info.shape is not None and -1 in info.shape:
                self._session.resize(i, [max(1, size) for size in info.shape])
        if all(info.dtype != object for info in self._session._inputs):  # sizes of strings are not known yet
            self._session.prepare()
        self._allocated = True

    def invoke(self) -> None:
        """Runs the main subgraph. Other threads of Python run meanwhile."""
        self._require_allocated('Invoke')
        self._select(self._main)
        self._session.invoke()

    def _require_allocated(self, call: str = 'the tensor') -> None:
        if not self._allocated:
            raise Error(f'{call}: tensors are not allocated; call allocate_tensors() first')

    def reset_all_variables(self) -> None:
        """Resets variables, hash tables and the state of ops."""
        self._session.reset_state()

    def num_subgraphs(self) -> int:
        """The number of subgraphs that the model has as loaded."""
        return len(self._session.model.report()['functions'])

    # ---- Signatures

    def get_signature_list(self) -> Dict[str, Dict[str, List[str]]]:
        """{KEY: {"inputs": [NAME], "outputs": [NAME]}}."""
        out = {}
        for key, why in self._session.model.signatures.items():
            if key and why is None:
                with Session(self._session.model, signature=key) as session:
                    out[key] = {'inputs': sorted(info.name for info in session._inputs),
                                'outputs': sorted(info.name for info in session._outputs)}
        return out

    def get_signature_runner(self, signature_key: Optional[str] = None) -> 'SignatureRunner':
        """A function of the inputs of a signature, by name; None: the only one, or the main subgraph."""
        keys = [key for key in self._session.model.signatures if key]
        if signature_key is None:
            if len(keys) > 1:
                raise Error(f'SignatureDef signature_key is None and model has {len(keys)} Signatures: '
                            f'{", ".join(keys)}')
            signature_key = keys[0] if keys else ''
        elif signature_key not in keys:
            raise Error(f'Invalid signature_key provided: {signature_key}; the model has '
                        f'{", ".join(keys) or "none"}', Status.NOT_FOUND)
        return SignatureRunner(self, signature_key)


def _require_main(subgraph_index: int) -> None:
    if subgraph_index != 0:
        raise Error(f'subgraph {subgraph_index}: only tensors of the main subgraph, 0, can be read',
                    Status.UNSUPPORTED)


class InterpreterWithCustomOps(Interpreter):
    """Interpreter; custom ops come from plugins, so custom_op_registerers must be empty."""

    def __init__(self, custom_op_registerers: Optional[Sequence[Any]] = None, **arguments: Any) -> None:
        if custom_op_registerers:
            raise Error('InterpreterWithCustomOps: registerers of TensorFlow Lite cannot be called; custom ops come '
                        'from plugins (docs/first-plugin.md)', Status.UNSUPPORTED)
        super().__init__(**arguments)


class SignatureRunner:
    """Runs a signature: runner(x=...) returns {output name: array}. It shares the state of its interpreter."""

    def __init__(self, interpreter: Interpreter, key: str) -> None:
        self._interpreter = interpreter
        self._key = key
        self._session = interpreter._session
        interpreter._select(key)
        self._inputs = [info.name for info in self._session._inputs]

    def __call__(self, **values: Any) -> Dict[str, np.ndarray]:
        if set(values) != set(self._inputs):
            raise Error(f'Invalid inputs: got {", ".join(sorted(values)) or "none"}, expected '
                        f'{", ".join(sorted(self._inputs)) or "none"}')
        self._interpreter._select(self._key)
        for index, name in enumerate(self._inputs):
            info = self._session._inputs[index]
            array = np.asarray(values[name])
            if info.dtype != object:
                if array.dtype != info.dtype:
                    raise Error(f'Cannot set tensor: Got value of type {array.dtype} but expected type {info.dtype} '
                                f'for input {name}')
                if self._session._info('input', index).shape != array.shape:
                    self._session.resize(index, array.shape)
            self._session.set_input(index, array)
        self._session.invoke()
        return {info.name: self._session.output(i).copy() for i, info in enumerate(self._session._outputs)}

    def get_input_details(self) -> Dict[str, Details]:
        """Details of the inputs by name."""
        self._interpreter._select(self._key)
        return {name: self._interpreter._details(index)
                for name, index in zip(self._inputs, self._interpreter._input_of)}

    def get_output_details(self) -> Dict[str, Details]:
        """Details of the outputs by name."""
        interpreter = self._interpreter
        interpreter._select(self._key)
        pointer = self._session._pointer()
        return {info.name: interpreter._details(self._session._library.session_output_value(pointer, i))
                for i, info in enumerate(self._session._outputs)}
