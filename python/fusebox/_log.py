# SPDX-License-Identifier: Apache-2.0
"""Log lines of the libraries go to logging: the logger "fusebox", with a child for each topic."""
from __future__ import annotations

import atexit
import ctypes
import logging
from typing import Any, Callable

SINK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p, ctypes.c_char_p)
LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


@SINK
def _write(_user: Any, level: int, topic: bytes, text: bytes) -> None:
    name = f'fusebox.{topic.decode(errors="replace")}' if topic else 'fusebox'
    logging.getLogger(name).log(LEVELS[min(max(level, 0), 3)], '%s', text.decode(errors='replace'))


def attach(set_sink: Callable[..., int]) -> None:
    """Sends the lines of a library to logging, until the interpreter ends."""
    set_sink(_write, None, None)
    # Threads of the library may log while the interpreter ends.
    atexit.register(set_sink, SINK(), None, None)
