# SPDX-License-Identifier: Apache-2.0
"""Errors of Fusebox."""
from __future__ import annotations

import enum


class Status(enum.IntEnum):
    """Why a call failed; a newer library may return other numbers."""

    OK = 0
    INVALID = 1  # a malformed file, option or argument
    UNSUPPORTED = 2  # well-formed, but no plugin or this build cannot do it
    NOT_FOUND = 3  # a missing file, plugin, signature or name
    IO = 4  # a system call failed
    OUT_OF_MEMORY = 5
    INTERNAL = 6  # a bug of Fusebox or of a plugin
    CANCELLED = 7  # by Session.cancel, or after time_limit_ms


class Error(ValueError, RuntimeError):
    """A call failed: str(error) is the whole message, with file, place and reason.

    It is a ValueError and a RuntimeError, because scripts for TensorFlow Lite catch one or the other.
    """

    def __init__(self, text: str, status: int = Status.INVALID) -> None:
        super().__init__(text, status)
        self.text = text
        self.status = Status(status) if status in Status._value2member_map_ else status

    def __str__(self) -> str:
        return self.text
