# SPDX-License-Identifier: Apache-2.0
"""Sessions: memory, state and threads to run a model."""
from __future__ import annotations

import ctypes
import json
import os
import threading
import weakref
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _library, _tensors
from ._tensors import TensorInfo
from .errors import Error, Status
from .model import Model, Source

Which = Union[str, int]


# In the child of a fork, no other thread holds a lock.
_sessions: 'weakref.WeakSet[Session]' = weakref.WeakSet()
os.register_at_fork(after_in_child=lambda: [session._unlock() for session in _sessions])


class ThreadPool:
    """Threads that several sessions share. Any thread. threads: maximum of one run; 0: one per core."""

    def __init__(self, threads: int = 0) -> None:
        self._threads = threads
        library = _library.host()
        handle = ctypes.c_void_p()
        library.check(library.thread_pool_create, threads, ctypes.byref(handle))
        self._handle = _library.Handle(handle, library.thread_pool_free)

    def __reduce__(self) -> Any:
        return ThreadPool, (self._threads,)

    @property
    def threads(self) -> int:
        return _library.host().thread_pool_threads(self._handle.pointer)


class Session:
    """Runs a model. Calls of several threads run one after the other, except cancel; use a session per thread.

    model: a Model, or what Model opens. signature: "" selects the only one, or the main function's. threads: maximum
    of one run; 0: one per core. memory_limit: bytes of tensors; 0: sessions share half of what is available.
    keep_values: for value(). profile: for times(). shadow: N compares every N-th call of a fused op with its body.
    pool: its threads run the session. A session can be pickled; it opens again where it is loaded, without its state
    and values. Inputs and outputs are named, or numbered in the order of the signature.

        with fusebox.Session('model.tflite', threads=2) as session:
            scores = session.run({'image': pixels})['scores']
    """

    def __init__(self, model: Union[Model, Source], *, signature: str = '', threads: int = 1, memory_limit: int = 0,
                 keep_values: bool = False, profile: bool = False, shadow: int = 0,
                 pool: Optional[ThreadPool] = None) -> None:
        self.model = model if isinstance(model, Model) else Model(model)
        self._pool = pool
        self._options: Dict[str, Any] = {
            'signature': signature, 'threads': threads, 'memory_limit': memory_limit, 'keep_values': keep_values,
            'profile': profile, 'shadow': shadow}
        self._unlock()
        _sessions.add(self)
        self._library = library = _library.host()
        handle = ctypes.c_void_p()
        library.check(library.session_create, self.model._handle.pointer, json.dumps(self._options).encode(),
                      pool._handle.pointer if pool is not None else None, ctypes.byref(handle))
        self._handle: Optional[_library.Handle] = _library.Handle(handle, library.session_free,
                                                                  (self.model._handle, pool))
        self._selected()

    def __reduce__(self) -> Any:
        return _open_session, (self.model, dict(self._options, signature=self.signature, pool=self._pool))

    def __enter__(self) -> 'Session':
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _unlock(self) -> None:
        self._lock = threading.RLock()

    def close(self) -> None:
        """Frees the session, when no view of its memory is left either."""
        with self._lock:
            self._views = {}
            self._results = {}
            self._handle = None
            self._bound = {}

    def _pointer(self) -> int:
        if self._handle is None:
            raise Error('the session is closed')
        return self._handle.pointer

    def _selected(self) -> None:
        pointer = self._pointer()
        self._tensor = _library.Tensor()
        self._reference = ctypes.byref(self._tensor)
        self._bound: Dict[Tuple[str, int], np.ndarray] = {}
        self._views: Dict[int, np.ndarray] = {}  # of inputs
        self._results: Dict[int, Tuple[int, np.ndarray]] = {}  # views of outputs, with their addresses
        self._inputs = [self._info('input', i) for i in range(self._library.session_input_count(pointer))]
        self._outputs = [self._info('output', i) for i in range(self._library.session_output_count(pointer))]
        self._keys: List[Which] = []  # of the outputs in the result of run
        for i, output in enumerate(self._outputs):
            self._keys.append(i if not output.name or output.name in self._keys else output.name)

    def _read(self, what: str, index: int) -> _library.Tensor:
        # The struct is used again by the next call.
        function = self._library.session_input if what == 'input' else self._library.session_output
        self._library.check(function, self._pointer(), index, self._reference)
        return self._tensor

    def _info(self, what: str, index: int) -> TensorInfo:
        return _tensors.describe(self._read(what, index))

    def _index(self, what: str, which: Which) -> int:
        slots = self._inputs if what == 'input' else self._outputs
        if isinstance(which, str):
            for i, slot in enumerate(slots):
                if slot.name == which:
                    return i
            raise Error(f"{self._place()}: no {what} '{which}'; {what}s: "
                        f"{', '.join(slot.name for slot in slots) or 'none'}", Status.NOT_FOUND)
        if not 0 <= which < len(slots):
            raise Error(f'{self._place()}: no {what} {which}; there are {len(slots)}')
        return int(which)

    def _place(self) -> str:
        return self.model.path or '<memory>'

    # ---- Signatures, inputs, outputs

    @property
    def signature(self) -> str:
        """The key of the selected signature; "" is the main function."""
        return self._library.session_signature(self._pointer()).decode(errors='replace')

    def select(self, signature: str) -> None:
        """Selects the signature of the next runs. State is kept; values, shapes and bindings of inputs are not."""
        with self._lock:
            self._library.check(self._library.session_select, self._pointer(), signature.encode())
            self._selected()

    @property
    def inputs(self) -> List[TensorInfo]:
        """The inputs, with their current shapes."""
        with self._lock:
            return [self._info('input', i) for i in range(len(self._inputs))]

    @property
    def outputs(self) -> List[TensorInfo]:
        """The outputs, with the shapes of the last run or prepare, else the declared ones."""
        with self._lock:
            return [self._info('output', i) for i in range(len(self._outputs))]

    def resize(self, which: Which, shape: Sequence[int]) -> None:
        """Sets the shape of an input, whose value becomes zeros. Fixed dimensions may change too, if the ops of the
        model support it."""
        with self._lock:
            index = self._index('input', which)
            if ('input', index) in self._bound:
                self.bind_input(index, None)
            self._views.pop(index, None)
            dims = (ctypes.c_int64 * len(shape))(*shape)
            self._library.check(self._library.session_resize_input, self._pointer(), index, dims, len(shape))

    def set_input(self, which: Which, value: Any) -> None:
        """Copies the value in. Its shape may differ from the current one in dimensions that the model leaves open."""
        with self._lock:
            index = self._index('input', which)
            info = self._inputs[index]
            if info.dtype == object:
                self._set_strings(index, value)
                return
            array = value
            if type(value) is not np.ndarray or value.dtype != info.dtype:
                array = _tensors.converted(value, info, f"{self._place()}: input {index} '{info.name}'")
            if ('input', index) in self._bound:
                self.bind_input(index, None)
            memory = self._views.get(index)
            if memory is None or memory.shape != array.shape:
                memory = self._shaped(index, array.shape)
            memory[...] = array

    def _shaped(self, index: int, shape: Tuple[int, ...]) -> np.ndarray:
        """The memory of an input, resized if the model permits the shape."""
        current = _tensors.shape_of(self._read('input', index))
        declared = self._inputs[index].shape
        if current != shape:
            if declared is not None and (len(declared) != len(shape) or
                                         any(d not in (-1, s) for d, s in zip(declared, shape))):
                raise Error(f"{self._place()}: input {index} '{self._inputs[index].name}' got shape {list(shape)}, "
                            f'expected {list(current or declared)}; use resize to change fixed dimensions')
            self.resize(index, shape)
        return self.input(index)

    def _set_strings(self, index: int, value: Any) -> None:
        array = np.asarray(value, object)
        texts = [_tensors.bytes_of(text) for text in array.reshape(-1)]
        lengths = (ctypes.c_size_t * len(texts))(*map(len, texts))
        dims = (ctypes.c_int64 * array.ndim)(*array.shape)
        self._library.check(self._library.session_set_strings, self._pointer(), index,
                            (ctypes.c_char_p * len(texts))(*texts), lengths, dims, array.ndim)

    def input(self, which: Which) -> np.ndarray:
        """The session's memory of an input, to fill in place; its shape must be known. Valid until the input is
        resized or bound, and until select."""
        with self._lock:
            index = self._index('input', which)
            memory = self._views.get(index)
            if memory is None:
                tensor = self._read('input', index)
                dtype, shape = _tensors.require_dtype(tensor), _tensors.shape_of(tensor)
                data, size = ctypes.c_void_p(), ctypes.c_size_t()
                self._library.check(self._library.session_input_data, self._pointer(), index, ctypes.byref(data),
                                    ctypes.byref(size))
                memory = _tensors.view(data.value, dtype, shape or (), self._handle, False)
                self._views[index] = memory
            return memory

    def output(self, which: Which) -> np.ndarray:
        """A view of an output after a run, valid until the next run and until select. Strings are copied."""
        with self._lock:
            index = self._index('output', which)
            tensor = self._read('output', index)
            last = self._results.get(index)
            if last is not None and last[0] == tensor.data and last[1].shape == _tensors.shape_of(tensor):
                return last[1]
            result = _tensors.array_of(tensor, self._handle)
            if tensor.data and result.dtype != object:
                self._results[index] = (tensor.data, result)
            return result

    def bind_input(self, which: Which, array: Optional[np.ndarray]) -> None:
        """Runs read the input from `array`, without a copy if it is aligned to 64 bytes (fusebox.empty). The session
        keeps it. None: from memory of the session again."""
        self._bind('input', self._library.session_bind_input, which, array)

    def bind_output(self, which: Which, array: Optional[np.ndarray]) -> None:
        """Runs write the output into `array`, as bind_input. The shapes of all inputs must be known."""
        self._bind('output', self._library.session_bind_output, which, array)

    def _bind(self, what: str, function: Any, which: Which, array: Optional[np.ndarray]) -> None:
        with self._lock:
            index = self._index(what, which)
            if what == 'input':
                self._views.pop(index, None)
            if array is None:
                self._library.check(function, self._pointer(), index, None, 0)
                self._bound.pop((what, index), None)
                return
            info = (self._inputs if what == 'input' else self._outputs)[index]
            if not array.flags.c_contiguous or array.dtype != info.dtype or not array.flags.writeable:
                raise Error(f"{self._place()}: {what} {index} '{info.name}' is bound to writable, contiguous arrays of "
                            f'{info.dtype} only, not {array.dtype}, strides {array.strides}')
            if what == 'input':
                self._require_shape(index, array.shape)
            address = array.__array_interface__['data'][0]
            self._library.check(function, self._pointer(), index, address, array.nbytes + _spare(array))
            self._bound[what, index] = array

    def _require_shape(self, index: int, shape: Tuple[int, ...]) -> None:
        if _tensors.shape_of(self._read('input', index)) != shape:
            self._shaped(index, shape)
            self._views.pop(index, None)

    # ---- Runs

    def run(self, inputs: Any = None) -> Dict[Which, np.ndarray]:
        """Sets inputs, runs, and returns copies of the outputs by name.

        inputs: {NAME: value}, or a list of values in the order of the inputs, or the value of the only input. Inputs
        that are not set keep their values. Outputs without a name of their own have their number as key.
        """
        with self._lock:
            if isinstance(inputs, Mapping):
                for name, value in inputs.items():
                    self.set_input(name, value)
            elif isinstance(inputs, (list, tuple)) and len(self._inputs) > 1:
                if len(inputs) != len(self._inputs):
                    raise Error(f'{self._place()}: {len(inputs)} values for {len(self._inputs)} inputs')
                for i, value in enumerate(inputs):
                    self.set_input(i, value)
            elif inputs is not None:
                if len(self._inputs) != 1:
                    raise Error(f'{self._place()}: one value for {len(self._inputs)} inputs; name it in a dict')
                self.set_input(0, inputs)
            self.invoke()
            return {key: self.output(i).copy() for i, key in enumerate(self._keys)}

    def invoke(self) -> None:
        """Runs with the current values of the inputs. Other threads of Python run meanwhile."""
        with self._lock:
            self._library.check(self._library.session_run, self._pointer())

    def prepare(self) -> None:
        """Plans without running: checks shapes and allocates memory."""
        with self._lock:
            self._library.check(self._library.session_prepare, self._pointer())

    def cancel(self) -> None:
        """Ends the run in progress, or the next one, with Status.CANCELLED. Any thread; never waits."""
        handle = self._handle  # kept for this call
        if handle is not None:
            self._library.session_cancel(handle.pointer)

    def reset_state(self) -> None:
        """Resets variables, hash tables and the memory of stateful ops to their initial values."""
        with self._lock:
            self._library.check(self._library.session_reset_state, self._pointer())

    # ---- Looking inside

    def value(self, name: str) -> np.ndarray:
        """A copy of any value of the model as the last run left it; needs keep_values."""
        with self._lock:
            self._library.check(self._library.session_value, self._pointer(), name.encode(), self._reference)
            return _tensors.array_of(self._tensor, self._handle).copy()

    def times(self) -> List[Dict[str, Any]]:
        """Runs and time of each node, with the spans that plugins measure; needs profile."""
        with self._lock:
            return json.loads(self._library.text_of(self._library.session_times_json, self._pointer()))

    def report(self) -> Dict[str, Any]:
        """Threads, memory, notices, and what runs each node: see fusebox_session_report in <fusebox/c.h>."""
        with self._lock:
            return json.loads(self._library.text_of(self._library.session_report, self._pointer()))

    def explain(self) -> str:
        """The plan for the current shapes as text: node, op, types, kernel, memory."""
        with self._lock:
            return self._library.text_of(self._library.session_explain, self._pointer())

    def __repr__(self) -> str:
        if self._handle is None:
            return 'fusebox.Session(closed)'
        return f'fusebox.Session({self._place()!r}, signature {self.signature!r})'


def _spare(array: np.ndarray) -> int:
    """16 if so many bytes after the array belong to the array that it is a view of, else 0."""
    owner: Any = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    end = array.__array_interface__['data'][0] + array.nbytes
    owned = owner.__array_interface__['data'][0] + owner.nbytes if owner.flags.c_contiguous else 0
    return 16 if owned - end >= 16 else 0


def _open_session(model: Model, options: Dict[str, Any]) -> Session:
    return Session(model, **options)
