# SPDX-License-Identifier: Apache-2.0
"""Delegates of Fusebox plugins under the names of TensorFlow Lite."""
from __future__ import annotations

import ctypes
import enum
import json
import os
from typing import Any, Dict, List, Mapping, Optional

from ..errors import Error, Status
from ..model import Registry


class OpResolverType(enum.Enum):
    """Which kernels run a model. Fusebox has one kernel of each op: the last two differ from the others only in that
    no delegate is used by default."""

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


class Delegate:
    """A delegate of a Fusebox plugin, for Interpreter(experimental_delegates=[...]); load_delegate makes it."""

    def __init__(self, name: str, options: Mapping[str, Any], plugin: Optional[str]) -> None:
        self.name = name
        self.options = dict(options)
        self.plugin = plugin  # a path; None: a plugin of the default places


def load_delegate(library: str, options: Optional[Mapping[str, Any]] = None) -> Delegate:
    """Finds a delegate by its name ("xnnpack"), in a Fusebox plugin by the path of its library, manifest or folder, or
    in the library of a TensorFlow Lite external delegate ("libedgetpu.so.1"), which the delegate "tflite" hosts.

    The options of a Fusebox delegate are in its manifest (`fusebox plugin inspect`); an external one gets them as text.
    """
    library = os.fspath(library)
    known = _named(Registry())
    if library in known:
        return Delegate(library, options or {}, None)
    if not os.path.isdir(library) and not os.path.exists(_manifest_of(library)):
        return _external(library, options or {}, list(known))
    names = _delegates_of(_manifest_of(library))
    if len(names) != 1:
        raise Error(f'{library}: the plugin has {len(names)} delegates, expected one: {", ".join(names)}',
                    Status.UNSUPPORTED)
    return Delegate(names[0], options or {}, library)


def _external(library: str, options: Mapping[str, Any], known: List[str]) -> Delegate:
    try:
        loaded = ctypes.CDLL(library)
    except OSError as error:
        raise Error(f'{library}: is neither a delegate ({", ".join(known) or "no plugin has one"}) nor a library that can '
                    f'be loaded ({error})', Status.NOT_FOUND) from None
    if not hasattr(loaded, 'tflite_plugin_create_delegate'):
        raise Error(f'{library}: is no delegate: there is no fusebox-plugin.json beside it, and it has no function '
                    'tflite_plugin_create_delegate', Status.UNSUPPORTED)
    if 'tflite' not in known:
        raise Error(f'{library}: the plugin fusebox.tflite_delegate, which hosts external delegates, is not installed',
                    Status.NOT_FOUND)
    return Delegate('tflite', {'library': library, 'options': {key: str(value) for key, value in options.items()}}, None)


def _manifest_of(path: str) -> str:
    if path.endswith('.json'):
        return path
    folder = path if os.path.isdir(path) else os.path.dirname(os.path.abspath(path))
    return os.path.join(folder, 'fusebox-plugin.json')


def _delegates_of(manifest: str) -> List[str]:
    try:
        with open(manifest, encoding='utf-8') as file:
            return [row['name'] for row in json.load(file).get('provides', {}).get('delegates', [])]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Error(f'{manifest}: cannot be read as the manifest of a plugin ({error!r})') from None


def _named(registry: Registry) -> Dict[str, str]:
    """The manifest of each delegate by name."""
    return {name: row['manifest'] for row in registry.plugins
            if row['state'] == 'ok' and row['manifest'] and os.path.isfile(row['manifest'])
            for name in _delegates_of(row['manifest'])}
