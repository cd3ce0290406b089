# SPDX-License-Identifier: Apache-2.0
"""TFLiteConverter of tf.lite, over fusebox.convert."""
from __future__ import annotations

import enum
import logging
import os
import re
import sys
import tempfile
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence

import numpy as np

from ..convert import Conversion, convert
from ..errors import Error, Status

BUILTIN = re.compile(r'[A-Z0-9_]+')  # names of builtin ops
LOG = logging.getLogger('fusebox.lite')


class Optimize(enum.Enum):
    """DEFAULT and its old names quantize; sparse files are not written."""

    OPTIMIZE_FOR_SIZE = 'OPTIMIZE_FOR_SIZE'
    OPTIMIZE_FOR_LATENCY = 'OPTIMIZE_FOR_LATENCY'
    DEFAULT = 'DEFAULT'
    EXPERIMENTAL_SPARSITY = 'EXPERIMENTAL_SPARSITY'


class OpsSet(enum.Enum):
    """TFLITE_BUILTINS_INT8 alone requires that every op is computed in 8 bits. SELECT_TF_OPS adds nothing: files have
    no Flex ops. EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8 alone requires integers, too."""

    TFLITE_BUILTINS = 'TFLITE_BUILTINS'
    SELECT_TF_OPS = 'SELECT_TF_OPS'
    TFLITE_BUILTINS_INT8 = 'TFLITE_BUILTINS_INT8'
    EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8 = 'ACTIVATIONS_INT16_WEIGHTS_INT8'
    EXPERIMENTAL_STABLEHLO_OPS = 'EXPERIMENTAL_STABLEHLO_OPS'


class TargetSpec:
    """supported_ops: OpsSet members. supported_types: [float16] stores weights in 16 bits."""

    def __init__(self, supported_ops: Optional[Iterable[OpsSet]] = None, supported_types: Optional[Iterable[Any]] = None,
                 experimental_select_user_tf_ops: Optional[Iterable[str]] = None,
                 experimental_supported_backends: Optional[Iterable[str]] = None) -> None:
        self.supported_ops = list(supported_ops or [OpsSet.TFLITE_BUILTINS])
        self.supported_types = list(supported_types or [])
        self.experimental_select_user_tf_ops = list(experimental_select_user_tf_ops or [])
        self.experimental_supported_backends = list(experimental_supported_backends or [])


class RepresentativeDataset:
    """Wraps a function that returns or yields samples: [array, ...] in the order of the inputs, or {name: array}."""

    def __init__(self, input_gen: Callable[[], Iterable[Any]]) -> None:
        self.input_gen = input_gen


def type_name(dtype: Any) -> str:
    """The numpy name of a type of numpy or TensorFlow."""
    return np.dtype(getattr(dtype, 'as_numpy_dtype', dtype)).name


# Settings of TensorFlow that change nothing here: the converter always does this, or has no such part.
IGNORED = frozenset(['experimental_new_converter', 'experimental_new_quantizer', 'experimental_enable_resource_variables',
                     '_experimental_lower_tensor_list_ops', '_experimental_disable_per_channel', 'unfold_batchmatmul',
                     '_experimental_default_to_single_batch_in_tensor_list_ops', 'exclude_conversion_metadata',
                     '_experimental_new_quantizer', '_experimental_variable_quantization', 'experimental_debug_info_func',
                     'debug_info', 'legalize_custom_tensor_list_ops', 'unfold_large_splat_constant'])


class TFLiteConverter:
    """Converts a model to the bytes of a .tflite file, as tf.lite.TFLiteConverter.

    optimizations: [Optimize.DEFAULT] stores weights in 8 bits; with representative_dataset, ops compute in 8 bits; with
    target_spec.supported_types = [float16], weights have 16 bits. allow_custom_ops: the file may have custom ops; False:
    composites whose fused op is a custom op are inlined. report: what fusebox.convert reported, after convert.
    """

    optimizations: List[Optimize]
    representative_dataset: Any
    allow_custom_ops: bool

    def __init__(self, source: Callable[..., Conversion]) -> None:
        self.__dict__.update(_source=source, optimizations=[], representative_dataset=None, allow_custom_ops=False,
                             target_spec=TargetSpec(), inference_input_type=np.float32,
                             inference_output_type=np.float32, report=None)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in IGNORED:
            LOG.debug('TFLiteConverter.%s has no effect', name)
        elif name not in self.__dict__:
            raise Error(f'TFLiteConverter.{name}: has no equivalent in Fusebox', Status.UNSUPPORTED)
        self.__dict__[name] = value

    @classmethod
    def from_saved_model(cls, saved_model_dir: str, signature_keys: Optional[Sequence[str]] = None,
                         tags: Optional[Iterable[str]] = None) -> 'TFLiteConverter':
        """A SavedModel's folder; signature_keys: None converts all signatures."""
        if tags is not None and set(tags) != {'serve'}:
            raise Error(f'{saved_model_dir}: tags {sorted(tags)}: only the graph with the tag "serve" is read',
                        Status.UNSUPPORTED)
        keys = list(signature_keys) if signature_keys else None
        return cls(lambda **options: convert(saved_model_dir, signature=keys, **options))

    @classmethod
    def from_keras_model(cls, model: Any) -> 'TFLiteConverter':
        """An object with Keras's `save` or `export`, which write the file that is converted."""
        if not any(callable(getattr(model, method, None)) for method in ('save', 'export')):
            raise Error(f'from_keras_model: {type(model).__name__} has neither save nor export; it is not a Keras model')
        return cls(lambda **options: _convert_keras(model, options))

    @classmethod
    def from_frozen_graph(cls, graph_def_file: str, input_arrays: Sequence[str], output_arrays: Sequence[str],
                          input_shapes: Optional[Mapping[str, Sequence[int]]] = None) -> 'TFLiteConverter':
        """A frozen graph of TensorFlow 1."""
        shapes = {name: list(shape) for name, shape in (input_shapes or {}).items() if shape is not None}
        return cls(lambda **options: convert(graph_def_file, inputs=list(input_arrays), outputs=list(output_arrays),
                                             shape=shapes or None, **options))

    @classmethod
    def from_concrete_functions(cls, funcs: Sequence[Any], trackable_obj: Any = None) -> 'TFLiteConverter':
        """One concrete function, and the object that owns its variables. TensorFlow saves both."""
        if len(funcs) != 1:
            raise Error(f'from_concrete_functions: got {len(funcs)} functions, expected one; save several as the '
                        'signatures of a SavedModel, then use from_saved_model', Status.UNSUPPORTED)
        if trackable_obj is None:
            raise Error('from_concrete_functions: trackable_obj is missing: the object (tf.Module, Keras model) that '
                        'owns the variables of the function')
        return cls(lambda **options: _convert_function(funcs[0], trackable_obj, options))

    def convert(self) -> bytes:
        """The bytes of the .tflite file."""
        options = self._options()
        done = self._source(**options)
        custom = [] if self.allow_custom_ops else _custom_ops(done)
        if custom:
            done = self._inlined(options, custom)
        if self.target_spec.supported_ops in ([OpsSet.TFLITE_BUILTINS_INT8],
                                              [OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8]):
            _require_integers(done, self.target_spec.supported_ops[0])
        self.__dict__['report'] = done.report
        assert done.content is not None
        return done.content

    def _inlined(self, options: Dict[str, Any], custom: List[str]) -> Conversion:
        """The model with the bodies of composites in place of custom ops."""
        why = ''
        try:
            done = self._source(**dict(options, composites='inline'))
            left = _custom_ops(done)
        except Error as error:
            why, left = f' ({error})', custom
        if left:
            raise Error(f'the model needs the custom op {", ".join(left)}{why}; set allow_custom_ops = True, and run the '
                        'file with a plugin that has its kernel', Status.UNSUPPORTED)
        LOG.warning('allow_custom_ops is False: composites are inlined instead of fused to %s', ', '.join(custom))
        return done

    def _options(self) -> Dict[str, Any]:
        """Options of fusebox.convert."""
        for ops in self.target_spec.supported_ops:
            if ops == OpsSet.EXPERIMENTAL_STABLEHLO_OPS:
                raise Error(f'target_spec.supported_ops: {ops}: has no equivalent; StableHLO is not written',
                            Status.UNSUPPORTED)
        if Optimize.EXPERIMENTAL_SPARSITY in self.optimizations:
            raise Error('optimizations: EXPERIMENTAL_SPARSITY: sparse constants are not written', Status.UNSUPPORTED)
        types = {type_name(dtype) for dtype in self.target_spec.supported_types}
        if not types <= {'float32', 'float16', 'int8'} or len(types) > 1:
            raise Error(f'target_spec.supported_types: {sorted(types)}: expected [float16] or [int8]', Status.UNSUPPORTED)
        ends = {f'{end}_type': type_name(getattr(self, f'inference_{end}_type')) for end in ('input', 'output')}
        ends = {name: dtype for name, dtype in ends.items() if dtype != 'float32'}
        words = OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8 in self.target_spec.supported_ops
        allowed = {'int16'} if words else {'int8', 'uint8'}
        if not set(ends.values()) <= allowed:
            raise Error(f'inference_input_type, inference_output_type: {ends}: expected float32 or '
                        f'{" or ".join(sorted(allowed))}', Status.UNSUPPORTED)
        if not self.optimizations:
            return ends
        if 'float16' in types:
            return {'quantize': 'float16', **ends}
        samples = getattr(self.representative_dataset, 'input_gen', self.representative_dataset)
        if samples is not None:
            return {'quantize': 'int16x8' if words else 'int8', 'calibration': samples, **ends}
        if words or 'int8' in types or OpsSet.TFLITE_BUILTINS_INT8 in self.target_spec.supported_ops:
            raise Error('integer ops need representative_dataset, a function that yields samples of the inputs')
        return {'quantize': 'dynamic', **ends}


def _custom_ops(done: Conversion) -> List[str]:
    return [name for name in done.report['ops_after'] if not BUILTIN.fullmatch(name)]


def _require_integers(done: Conversion, only: OpsSet) -> None:
    floats = [layer['op'] for layer in done.report['layers'] if not layer['quantized']]
    if floats:
        raise Error(f'{done.report["source"]}: target_spec.supported_ops is {only.name}, but these ops have no '
                    f'integer form: {", ".join(sorted(set(floats)))}; add TFLITE_BUILTINS', Status.UNSUPPORTED)


def _convert_function(function: Any, owner: Any, options: Dict[str, Any]) -> Conversion:
    """Saves a function by the TensorFlow that made it."""
    tensorflow = sys.modules.get('tensorflow')
    if tensorflow is None:
        raise Error('from_concrete_functions: TensorFlow, which made the function and saves it, is not imported')
    with tempfile.TemporaryDirectory(prefix='fusebox-function-') as folder:
        try:
            tensorflow.saved_model.save(owner, folder, signatures=function)
        except Exception as error:  # pylint: disable=broad-except  # of TensorFlow
            raise Error(f'from_concrete_functions: tf.saved_model.save failed: {error}') from error
        return convert(folder, **options)


def _convert_keras(model: Any, options: Dict[str, Any]) -> Conversion:
    """Saves the object as a .keras file; a file that has custom layers, whose code is in the object only, as a
    SavedModel."""
    failures = []
    with tempfile.TemporaryDirectory(prefix='fusebox-keras-') as folder:
        for method, name in (('save', 'model.keras'), ('export', 'exported'), ('save', 'saved')):
            path = os.path.join(folder, name)
            if not callable(getattr(model, method, None)):
                continue
            try:
                getattr(model, method)(path)
            except Exception as error:  # pylint: disable=broad-except  # of other people's code
                failures.append(f'{method}({name!r}) failed: {error}')
                continue
            try:
                return convert(path, **options)
            except Error as error:
                failures.append(str(error))
                if error.status != Status.UNSUPPORTED:
                    break
    raise Error(f'from_keras_model: {"; ".join(failures)}', Status.UNSUPPORTED)
