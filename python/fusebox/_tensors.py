# SPDX-License-Identifier: Apache-2.0
"""Tensors of the C API as numpy arrays."""
from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from . import _library
from .errors import Error, Status

STRING = 14
DTYPES = {1: np.dtype(np.float32), 2: np.dtype(np.float16), 4: np.dtype(np.float64), 5: np.dtype(np.int8),
          6: np.dtype(np.int16), 7: np.dtype(np.int32), 8: np.dtype(np.int64), 9: np.dtype(np.uint8),
          10: np.dtype(np.uint16), 11: np.dtype(np.uint32), 12: np.dtype(np.uint64), 13: np.dtype(np.bool_),
          STRING: np.dtype(object), 15: np.dtype(np.complex64), 16: np.dtype(np.complex128)}
NAMES = {3: 'bf16', 17: 'i4', 18: 'u4', 19: 'i2', 20: 'f8e4m3fn', 21: 'f8e5m2', 22: 'resource', 23: 'variant'}


class Quantization(NamedTuple):
    """real = scales * (stored - zero_points); per channel of dimension `axis` if there are several scales."""

    scales: np.ndarray
    zero_points: np.ndarray
    axis: int


class TensorInfo(NamedTuple):
    """An input, an output, or another value of a model."""

    name: str
    dtype: Optional[np.dtype]  # object: strings. None: numpy has no such type
    shape: Optional[Tuple[int, ...]]  # -1: a dimension that is not known yet; None: unknown rank
    quantization: Optional[Quantization]


def shape_of(tensor: _library.Tensor) -> Optional[Tuple[int, ...]]:
    return tuple(tensor.dims[:tensor.rank]) if tensor.rank >= 0 else None


def describe(tensor: _library.Tensor) -> TensorInfo:
    quantization = None
    if tensor.scale_count:
        count = tensor.scale_count
        quantization = Quantization(np.array(tensor.scales[:count], np.float32),
                                    np.array(tensor.zero_points[:count], np.int64), tensor.scale_axis)
    return TensorInfo((tensor.name or b'').decode(errors='replace'), DTYPES.get(tensor.dtype), shape_of(tensor),
                      quantization)


def require_dtype(tensor: _library.Tensor) -> np.dtype:
    dtype = DTYPES.get(tensor.dtype)
    if dtype is None:
        name = (tensor.name or b'').decode(errors='replace')
        raise Error(f"tensor '{name}' is {NAMES.get(tensor.dtype, tensor.dtype)}, and numpy has no such type",
                    Status.UNSUPPORTED)
    return dtype


class Memory:
    """The array interface of memory that `owner` keeps."""

    __slots__ = ('__array_interface__', 'owner')

    def __init__(self, address: int, dtype: np.dtype, shape: Sequence[int], owner: Any, read_only: bool) -> None:
        self.owner = owner
        self.__array_interface__ = {'version': 3, 'data': (address, read_only), 'typestr': dtype.str,
                                    'shape': tuple(shape)}


def view(address: Optional[int], dtype: np.dtype, shape: Sequence[int], owner: Any, read_only: bool) -> np.ndarray:
    """Memory as an array, which keeps its owner alive."""
    if not address:
        return np.zeros(shape, dtype)  # no elements
    return np.asarray(Memory(address, dtype, shape, owner, read_only))


def array_of(tensor: _library.Tensor, owner: Any) -> np.ndarray:
    """The value of a tensor: a view, or a copy of strings."""
    dtype = require_dtype(tensor)
    shape = shape_of(tensor)
    if shape is None or -1 in shape or (not tensor.data and 0 not in shape):
        raise Error(f"tensor '{(tensor.name or b'').decode(errors='replace')}' has no value yet; run the session first")
    if tensor.dtype == STRING:
        return strings_of(tensor, shape)
    return view(tensor.data, dtype, shape, owner, True)


def strings_of(tensor: _library.Tensor, shape: Tuple[int, ...]) -> np.ndarray:
    library = _library.host()
    out = np.empty(shape, object)
    flat = out.reshape(-1)
    text, length = ctypes.c_void_p(), ctypes.c_size_t()
    for i in range(flat.size):
        library.check(library.tensor_string, ctypes.byref(tensor), i, ctypes.byref(text), ctypes.byref(length))
        flat[i] = ctypes.string_at(text.value, length.value) if length.value else b''
    return out


def bytes_of(text: Any) -> bytes:
    if isinstance(text, (bytes, bytearray)):
        return bytes(text)
    if isinstance(text, str):
        return text.encode()
    raise Error(f'{text!r} is neither str nor bytes')


def converted(value: Any, info: TensorInfo, place: str) -> np.ndarray:
    """The value as an array of the tensor's type. Arrays must have it; numbers and lists are converted if that loses
    nothing but digits of floats."""
    array = np.asarray(value)
    if info.dtype is None:
        raise Error(f'{place} has a type that numpy does not have', Status.UNSUPPORTED)
    if array.dtype == info.dtype:
        return array
    if isinstance(value, (np.ndarray, np.generic)):
        raise Error(f'{place} got an array of {array.dtype}, expected {info.dtype}; use .astype')
    out = array.astype(info.dtype) if array.dtype.kind in 'biufc' else None
    floats = info.dtype.kind in 'fc' and array.dtype.kind != 'c'
    if out is None or not (floats or np.array_equal(out, array)):
        raise Error(f'{place} got values that are not {info.dtype}')
    return out


def empty(shape: Sequence[int], dtype: Any = np.float32) -> np.ndarray:
    """An array that Session.bind_input and bind_output use without a copy: aligned to 64 bytes, with 16 bytes after
    it. Not initialized."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = np.empty(size + 64 + 16, np.uint8)
    start = -memory.__array_interface__['data'][0] % 64
    return memory[start:start + size].view(dtype).reshape(shape)
