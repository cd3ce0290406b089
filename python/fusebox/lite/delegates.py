# SPDX-License-Identifier: Apache-2.0
"""Delegates of Fusebox plugins under the names of TensorFlow Lite."""
from __future__ import annotations

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
    """Finds a delegate by its name ("xnnpack"), or in a Fusebox plugin by the path of its library, manifest or folder.

    options are those of the delegate's manifest; `fusebox plugin inspect` lists them. Raises if `library` is a
    delegate of TensorFlow Lite, whose interface Fusebox does not have.
    """
    library = os.fspath(library)
    known = _named(Registry())
    if library in known:
        return Delegate(library, options or {}, None)
    if not os.path.exists(library):
        raise Error(f'{library}: no such delegate or file; delegates of installed plugins: '
                    f'{", ".join(known) or "none"}', Status.NOT_FOUND)
    if os.path.isfile(library) and not os.path.exists(_manifest_of(library)):
        raise Error(f'{library}: is not a Fusebox plugin (no fusebox-plugin.json beside it). External delegates of '
                    f'TensorFlow Lite cannot be loaded; delegates of installed plugins: {", ".join(known) or "none"}',
                    Status.UNSUPPORTED)
    names = _delegates_of(_manifest_of(library))
    if len(names) != 1:
        raise Error(f'{library}: the plugin has {len(names)} delegates, expected one: {", ".join(names)}',
                    Status.UNSUPPORTED)
    return Delegate(names[0], options or {}, library)


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
