# SPDX-License-Identifier: Apache-2.0
"""tf.lite.Interpreter over stock TensorFlow Lite's C library, as far as scripts of the tests need it. Tensors are numbered
by their place: inputs from 0, outputs from 1000."""
import ctypes
import functools
import os

import numpy as np

DTYPES = {1: np.float32, 2: np.int32, 3: np.uint8, 4: np.int64, 6: np.bool_, 7: np.int16, 8: np.complex64, 9: np.int8,
          10: np.float16, 11: np.float64}
OUTPUTS = 1000


def library_path():
    """The library in FUSEBOX_PEER_DIR, or None."""
    path = os.path.join(os.environ.get('FUSEBOX_PEER_DIR', ''), 'libtensorflowlite_c.so')
    return path if os.path.exists(path) else None


class QuantizationParams(ctypes.Structure):
    _fields_ = [('scale', ctypes.c_float), ('zero_point', ctypes.c_int32)]


@functools.lru_cache(maxsize=None)
def _library():
    library = ctypes.CDLL(library_path())
    pointers = ['ModelCreateFromFile', 'InterpreterOptionsCreate', 'InterpreterCreate', 'InterpreterGetInputTensor',
                'InterpreterGetOutputTensor', 'TensorData']
    for name in pointers:
        getattr(library, 'TfLite' + name).restype = ctypes.c_void_p
    library.TfLiteTensorByteSize.restype = ctypes.c_size_t
    library.TfLiteTensorName.restype = ctypes.c_char_p
    library.TfLiteTensorQuantizationParams.restype = QuantizationParams
    return library


def _call(name, *arguments):
    return getattr(_library(), 'TfLite' + name)(*arguments)


class Interpreter:
    def __init__(self, model_path):
        self._model = ctypes.c_void_p(_call('ModelCreateFromFile', model_path.encode()))
        options = ctypes.c_void_p(_call('InterpreterOptionsCreate'))
        _call('InterpreterOptionsSetNumThreads', options, 1)
        self._interpreter = ctypes.c_void_p(_call('InterpreterCreate', self._model, options))
        if not self._interpreter:
            raise ValueError(f'{model_path}: stock cannot open it')

    def _check(self, name, *arguments):
        if _call(name, self._interpreter, *arguments):
            raise RuntimeError(f'stock: {name} failed')

    def allocate_tensors(self):
        self._check('InterpreterAllocateTensors')

    def invoke(self):
        self._check('InterpreterInvoke')

    def resize_tensor_input(self, index, shape):
        self._check('InterpreterResizeInputTensor', index, (ctypes.c_int * len(shape))(*shape), len(shape))

    def _tensor(self, index):
        name, at = ('Output', index - OUTPUTS) if index >= OUTPUTS else ('Input', index)
        return ctypes.c_void_p(_call(f'InterpreterGet{name}Tensor', self._interpreter, at))

    def _shape(self, tensor):
        return [_call('TensorDim', tensor, i) for i in range(_call('TensorNumDims', tensor))]

    def _details(self, index):
        tensor = self._tensor(index)
        quantization = _call('TensorQuantizationParams', tensor)
        return {'name': _call('TensorName', tensor).decode(), 'index': index,
                'shape': np.array(self._shape(tensor), np.int32), 'dtype': DTYPES.get(_call('TensorType', tensor)),
                'quantization': (quantization.scale, quantization.zero_point)}

    def get_input_details(self):
        return [self._details(i) for i in range(_call('InterpreterGetInputTensorCount', self._interpreter))]

    def get_output_details(self):
        return [self._details(OUTPUTS + i) for i in range(_call('InterpreterGetOutputTensorCount', self._interpreter))]

    def set_tensor(self, index, value):
        tensor, value = self._tensor(index), np.ascontiguousarray(value)
        if _call('TensorByteSize', tensor) != value.nbytes:
            raise ValueError(f'stock: input {index} has {_call("TensorByteSize", tensor)} bytes, got {value.nbytes}')
        if value.nbytes:
            ctypes.memmove(_call('TensorData', tensor), value.ctypes.data, value.nbytes)

    def get_tensor(self, index):
        tensor = self._tensor(index)
        size = _call('TensorByteSize', tensor)
        data = ctypes.string_at(_call('TensorData', tensor), size) if size else b''
        return np.frombuffer(data, DTYPES[_call('TensorType', tensor)]).reshape(self._shape(tensor)).copy()
