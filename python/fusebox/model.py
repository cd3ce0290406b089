# SPDX-License-Identifier: Apache-2.0
"""Plugins and models."""
from __future__ import annotations

import ctypes
import json
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _library

Source = Union[str, 'os.PathLike[str]', bytes, bytearray, memoryview, np.ndarray]
Delegate = Union[str, Mapping[str, Any], Tuple[str, Mapping[str, Any]]]


def version() -> str:
    """The version of libfusebox."""
    return _library.host().version().decode()


class Registry:
    """The plugins of a process. Any thread.

    file: path of a fusebox.json. config: the same keys as a dict, which replace those of the file; plugins under the
    key "plugins" must load. Without either: the plugins of the default places.
    """

    def __init__(self, config: Optional[Mapping[str, Any]] = None, file: Optional[str] = None) -> None:
        self._arguments = (dict(config) if config is not None else None, os.fspath(file) if file is not None else None)
        library = _library.host()
        handle = ctypes.c_void_p()
        library.check(library.registry_create, file and os.fsencode(file),
                      None if config is None else json.dumps(config).encode(), ctypes.byref(handle))
        self._handle = _library.Handle(handle, library.registry_free)

    def __reduce__(self) -> Any:
        return Registry, self._arguments

    def _report(self) -> Dict[str, Any]:
        library = _library.host()
        return json.loads(library.text_of(library.registry_plugins, self._handle.pointer))

    @property
    def plugins(self) -> List[Dict[str, Any]]:
        """All plugins that were found: id, version, state (ok, shadowed, denied, broken), reason, manifest, library,
        loaded, built_in."""
        return self._report()['plugins']

    @property
    def searched(self) -> List[str]:
        """The searched folders."""
        return self._report()['searched']


def _delegates(delegates: Sequence[Delegate]) -> List[Dict[str, Any]]:
    if isinstance(delegates, (str, Mapping)):
        raise TypeError('delegates is a list: ["xnnpack"], or [] for none')
    rows = []
    for delegate in delegates:
        if isinstance(delegate, str):
            rows.append({'name': delegate})
        elif isinstance(delegate, Mapping):
            rows.append(dict(delegate))
        else:
            rows.append({'name': delegate[0], 'options': dict(delegate[1])})
    return rows


class Model:
    """A .tflite file: read, fused, with kernels and delegates chosen. Immutable; any thread; many sessions run it.

    source: a path, or the bytes of a file, which are not copied if they are aligned to 8 bytes; they must not change.
    delegates: names, or (name, options), in the order in which nodes are offered; []: none; None: the default ones.
    delegate_options: {NAME: {...}}, over those of the configuration, such as
    {"xnnpack": {"weight_cache_path": "cache/"}}. missing: what happens without the plugin of a fused op that has a
    body: "warn", "body" or "error". import_ops: "auto" translates a file in memory if ops of TensorFlow (Flex) keep all
    of it from running; "never" refuses it. A model can be pickled; it opens again where it is loaded.
    """

    def __init__(self, source: Source, *, delegates: Optional[Sequence[Delegate]] = None,
                 delegate_options: Optional[Mapping[str, Mapping[str, Any]]] = None, fuse: bool = True,
                 missing: str = 'warn', import_ops: str = 'auto', name: Optional[str] = None,
                 time_limit_ms: int = 0, registry: Optional[Registry] = None) -> None:
        self._arguments: Dict[str, Any] = {
            'delegates': delegates, 'delegate_options': delegate_options, 'fuse': fuse, 'missing': missing,
            'import_ops': import_ops, 'name': name, 'time_limit_ms': time_limit_ms, 'registry': registry}
        self._registry = registry
        self._bytes: Optional[np.ndarray] = None
        options: Dict[str, Any] = {'fuse': fuse, 'missing': missing, 'import': import_ops,
                                   'time_limit_ms': time_limit_ms}
        if delegates is not None:
            options['delegates'] = _delegates(delegates)
        if delegate_options is not None:
            options['delegate_options'] = delegate_options
        if name is not None:
            options['name'] = name
        self._open(source, json.dumps(options).encode())

    def _open(self, source: Source, options: bytes) -> None:
        library = _library.host()
        plugins = self._registry._handle.pointer if self._registry is not None else None
        handle = ctypes.c_void_p()
        if isinstance(source, (str, os.PathLike)):
            self._path: Optional[str] = os.path.abspath(os.fspath(source))
            library.check(library.model_open, os.fsencode(source), options, plugins, ctypes.byref(handle))
        else:
            self._path = None
            self._bytes = np.frombuffer(source, np.uint8)
            library.check(library.model_from_memory, self._bytes.__array_interface__['data'][0], self._bytes.size, None,
                          None, options, plugins, ctypes.byref(handle))
        self._handle = _library.Handle(handle, library.model_free, self._bytes)

    def __reduce__(self) -> Any:
        source = self._path if self._path is not None else self.content
        return _open_model, (source, self._arguments)

    @property
    def path(self) -> Optional[str]:
        """The absolute path; None: the model was opened from bytes."""
        return self._path

    @property
    def content(self) -> bytes:
        """The bytes of the file."""
        if self._bytes is not None:
            return self._bytes.tobytes()
        assert self._path is not None
        with open(self._path, 'rb') as file:
            return file.read()

    @property
    def signatures(self) -> Dict[str, Optional[str]]:
        """What a session can select: the keys of the signatures, then "", the main function, if no signature runs it.
        The value is the reason why it cannot run, or None."""
        library = _library.host()
        out = {}
        why = ctypes.c_char_p()
        for i in range(library.model_signature_count(self._handle.pointer)):
            key = library.model_signature(self._handle.pointer, i, ctypes.byref(why))
            out[key.decode(errors='replace')] = why.value.decode(errors='replace') if why.value else None
        return out

    def report(self) -> Dict[str, Any]:
        """What was fused, and what runs each node: see fusebox_model_report in <fusebox/c.h>."""
        library = _library.host()
        return json.loads(library.text_of(library.model_report, self._handle.pointer))

    def __repr__(self) -> str:
        return f'fusebox.Model({self._path or "<memory>"!r}, signatures: {", ".join(self.signatures) or "none"})'

    def _repr_html_(self) -> str:
        from .tools import inspect  # it runs a program, which a model alone does not need
        return inspect(self)._repr_html_()


def _open_model(source: Source, arguments: Dict[str, Any]) -> Model:
    return Model(source, **arguments)
