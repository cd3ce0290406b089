# SPDX-License-Identifier: Apache-2.0
"""The shared libraries: found, loaded once, their functions declared."""
from __future__ import annotations

import ctypes
import functools
import os
import pathlib
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Callable, List, Optional

from . import _log
from .errors import Error, Status

PACKAGE = pathlib.Path(__file__).resolve().parent
STATUS = c_int32
TEXT = POINTER(c_void_p)  # char**: text that the caller frees
PROGRESS = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_uint64, c_uint64)


class Tensor(ctypes.Structure):
    """fusebox_tensor."""

    _fields_ = [('struct_size', c_uint32), ('dtype', c_int32), ('name', c_char_p), ('dims', POINTER(c_int64)),
                ('rank', c_int32), ('scale_axis', c_int32), ('data', c_void_p), ('bytes', c_size_t),
                ('scales', POINTER(ctypes.c_float)), ('zero_points', POINTER(c_int64)), ('scale_count', c_size_t)]

    def __init__(self) -> None:
        super().__init__(ctypes.sizeof(Tensor))


SESSION = c_void_p
OUT = POINTER(Tensor)
HOST = {
    'version': (c_char_p, []),
    'c_version': (c_uint32, []),
    'text_free': (None, [c_void_p]),
    'set_log_sink': (STATUS, [_log.SINK, c_void_p, TEXT]),
    'registry_create': (STATUS, [c_char_p, c_char_p, TEXT, TEXT]),
    'registry_free': (None, [c_void_p]),
    'registry_plugins': (STATUS, [c_void_p, TEXT, TEXT]),
    'model_open': (STATUS, [c_char_p, c_char_p, c_void_p, TEXT, TEXT]),
    'model_from_memory': (STATUS, [c_void_p, c_size_t, c_void_p, c_void_p, c_char_p, c_void_p, TEXT, TEXT]),
    'model_free': (None, [c_void_p]),
    'model_signature_count': (c_int32, [c_void_p]),
    'model_signature': (c_char_p, [c_void_p, c_int32, POINTER(c_char_p)]),
    'model_report': (STATUS, [c_void_p, TEXT, TEXT]),
    'thread_pool_create': (STATUS, [c_int32, TEXT, TEXT]),
    'thread_pool_free': (None, [c_void_p]),
    'thread_pool_threads': (c_int32, [c_void_p]),
    'session_create': (STATUS, [c_void_p, c_char_p, c_void_p, TEXT, TEXT]),
    'session_free': (None, [SESSION]),
    'session_signature': (c_char_p, [SESSION]),
    'session_select': (STATUS, [SESSION, c_char_p, TEXT]),
    'session_input_count': (c_int32, [SESSION]),
    'session_output_count': (c_int32, [SESSION]),
    'session_input': (STATUS, [SESSION, c_int32, OUT, TEXT]),
    'session_output': (STATUS, [SESSION, c_int32, OUT, TEXT]),
    'session_resize_input': (STATUS, [SESSION, c_int32, POINTER(c_int64), c_int32, TEXT]),
    'session_set_strings': (STATUS, [SESSION, c_int32, POINTER(c_char_p), POINTER(c_size_t), POINTER(c_int64), c_int32,
                                     TEXT]),
    'session_input_data': (STATUS, [SESSION, c_int32, TEXT, POINTER(c_size_t), TEXT]),
    'session_bind_input': (STATUS, [SESSION, c_int32, c_void_p, c_size_t, TEXT]),
    'session_bind_output': (STATUS, [SESSION, c_int32, c_void_p, c_size_t, TEXT]),
    'session_run': (STATUS, [SESSION, TEXT]),
    'session_cancel': (STATUS, [SESSION]),
    'session_prepare': (STATUS, [SESSION, TEXT]),
    'session_reset_state': (STATUS, [SESSION, TEXT]),
    'session_value': (STATUS, [SESSION, c_char_p, OUT, TEXT]),
    'session_value_count': (c_int32, [SESSION]),
    'session_value_at': (STATUS, [SESSION, c_int32, OUT, TEXT]),
    'session_input_value': (c_int32, [SESSION, c_int32]),
    'session_output_value': (c_int32, [SESSION, c_int32]),
    'session_times_json': (STATUS, [SESSION, TEXT, TEXT]),
    'session_report': (STATUS, [SESSION, TEXT, TEXT]),
    'session_explain': (STATUS, [SESSION, TEXT, TEXT]),
    'tensor_string': (STATUS, [OUT, c_size_t, TEXT, POINTER(c_size_t), TEXT]),
}
CONVERT = {
    'convert_c_version': (c_uint32, []),
    'convert_free': (None, [c_void_p]),
    'convert_set_log_sink': (STATUS, [_log.SINK, c_void_p, TEXT]),
    'convert': (STATUS, [c_char_p, c_char_p, c_char_p, PROGRESS, c_void_p, TEXT, TEXT]),
    'convert_to_memory': (STATUS, [c_char_p, c_char_p, PROGRESS, c_void_p, TEXT, POINTER(c_size_t), TEXT, TEXT]),
}


class Library:
    """One library; its functions are attributes, without the prefix "fusebox_"."""

    def __init__(self, name: str, functions: dict, free: str, version: str, sink: str) -> None:
        path = find(name)
        try:
            loaded = ctypes.CDLL(path)
        except OSError as error:
            raise Error(f'{path}: cannot be loaded ({error}); install Fusebox, or set FUSEBOX_PREFIX to its prefix',
                        Status.NOT_FOUND) from None
        for function, (result, arguments) in functions.items():
            try:
                declared = getattr(loaded, 'fusebox_' + function)
            except AttributeError:
                raise Error(f'{path}: has no function fusebox_{function}; install the version of this package',
                            Status.UNSUPPORTED) from None
            declared.restype, declared.argtypes = result, arguments
            setattr(self, function, declared)
        self.path = path
        self._free: Callable[[Any], None] = getattr(self, free)
        found = getattr(self, version)()
        if found >> 16 != 1:
            raise Error(f'{path}: has C API {found >> 16}.{found & 0xffff}; this package needs 1', Status.UNSUPPORTED)
        _log.attach(getattr(self, sink))

    def __getattr__(self, name: str) -> Any:  # for type checkers: functions are set in __init__
        raise AttributeError(name)

    def check(self, function: Callable[..., int], *arguments: Any) -> None:
        """Calls a function that can fail; raises its error."""
        error = c_void_p()
        status = function(*arguments, ctypes.byref(error))
        if status:
            raise Error(self.take(error) or f'failed with status {status}, and no memory for the reason', status)

    def take(self, text: c_void_p) -> str:
        """Text that a function returned through char**, freed."""
        if not text.value:
            return ''
        try:
            return ctypes.string_at(text.value).decode(errors='replace')
        finally:
            self._free(text)

    def text_of(self, function: Callable[..., int], handle: Any) -> str:
        """Text that function(handle, char** text, char** error) returns."""
        text = c_void_p()
        self.check(function, handle, ctypes.byref(text))
        return self.take(text)


def prefixes() -> List[pathlib.Path]:
    """Installations, in the order in which they are searched: FUSEBOX_PREFIX alone, else that inside of this package
    (a wheel), and the one that this package is part of."""
    if os.environ.get('FUSEBOX_PREFIX'):
        return [pathlib.Path(os.environ['FUSEBOX_PREFIX'])]
    return [PACKAGE / 'native', *list(PACKAGE.parents)[1:5]]


def find_file(*patterns: str) -> Optional[str]:
    """The first file of an installation that matches one of the patterns."""
    for prefix in prefixes():
        for pattern in patterns:
            for path in sorted(prefix.glob(pattern)):
                return str(path)
    return None


def find(name: str) -> str:
    """The path of lib<name>.so, or its soname for the system's loader."""
    file = f'lib{name}.so.0'
    path = find_file(f'lib/{file}', f'lib/*-linux-gnu/{file}', f'lib64/{file}')
    if path is None and os.environ.get('FUSEBOX_PREFIX'):
        raise Error(f'FUSEBOX_PREFIX={os.environ["FUSEBOX_PREFIX"]}: has no lib/{file}; build or install Fusebox there',
                    Status.NOT_FOUND)
    return path or file


@functools.lru_cache(maxsize=None)
def host() -> Library:
    """libfusebox."""
    return Library('fusebox', HOST, 'text_free', 'c_version', 'set_log_sink')


@functools.lru_cache(maxsize=None)
def converter() -> Library:
    """libfusebox-convert."""
    return Library('fusebox-convert', CONVERT, 'convert_free', 'convert_c_version', 'convert_set_log_sink')


class Handle:
    """An object of libfusebox. It is freed when neither its owner nor a view of its memory is left."""

    __slots__ = ('_free', '_keep', 'pointer')

    def __init__(self, pointer: c_void_p, free: Callable[[Any], None], keep: Any = None) -> None:
        self.pointer = pointer.value
        self._free = free
        self._keep = keep

    def __del__(self) -> None:
        if self.pointer is not None:
            self._free(self.pointer)
