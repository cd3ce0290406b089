# SPDX-License-Identifier: Apache-2.0
"""Conversion of TensorFlow, Keras and .tflite models."""
from __future__ import annotations

import ctypes
import json
import os
import tempfile
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _library
from .errors import Error

Path = Union[str, 'os.PathLike[str]']
# One sample: a value by input name, the values in the order of the inputs, or (signature, one of these).
Sample = Union[Mapping[str, Any], Sequence[Any], Tuple[str, Mapping[str, Any]]]
Samples = Union[Iterable[Sample], Callable[[], Iterable[Sample]]]


class Conversion:
    """A converted model. content: the .tflite file as bytes, or None if it was written to `path`. report: signatures,
    fusion sites with the reason of each refusal, variables, ops before and after, errors of layers, notes."""

    def __init__(self, content: Optional[bytes], path: Optional[str], report: Dict[str, Any]) -> None:
        self.content = content
        self.path = path
        self.report = report

    def __repr__(self) -> str:
        fused = sum(site['fused'] for site in self.report['sites'])
        ops = sum(self.report['ops_after'].values())
        where = self.path if self.content is None else f'{len(self.content)} bytes'
        return f'fusebox.Conversion({where}, {ops} ops, {fused} of {len(self.report["sites"])} composites fused)'


def convert(source: Path, destination: Optional[Path] = None, *, calibration: Union[Path, Samples, None] = None,
            progress: Optional[Callable[[str, int, int], None]] = None, **options: Any) -> Conversion:
    """Converts a SavedModel's folder, a frozen graph, a Keras file or a .tflite file.

    destination: the .tflite file, written as a whole or not at all; None: the result has the bytes. calibration: for
    quantize="int8" and "int16x8": samples, a function that returns samples (a generator function), or a folder of .npy
    files. A sample is {input name: array}, a list of arrays in the order of the inputs, or (signature, one of these).
    progress(pass, done, total) is called before each pass. options are the flags of `fusebox convert`: signature,
    batch, shape, plugin, config, composites, keep_bodies, verify, verify_seed, placeholders, quantize,
    per_channel_fc, input_type, output_type, require_full_fusion, inputs, outputs. An error has the report as
    `error.report`.
    """
    with tempfile.TemporaryDirectory(prefix='fusebox-calibration-') as folder:
        if calibration is not None and not isinstance(calibration, (str, os.PathLike)):
            write_samples(calibration, folder)
            calibration = folder
        if calibration is not None:
            options['calibration'] = os.fspath(calibration)
        for key in ('signature', 'plugin', 'inputs', 'outputs'):
            if isinstance(options.get(key), str):
                options[key] = [options[key]]
        given = {key: value for key, value in options.items() if value is not None}
        return _convert(os.fspath(source), destination and os.fspath(destination), json.dumps(given, default=_plain),
                        progress)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return os.fspath(value)


def _convert(source: str, destination: Optional[str], options: str,
             progress: Optional[Callable[[str, int, int], None]]) -> Conversion:
    library = _library.converter()
    report, data, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    callback = _library.PROGRESS() if progress is None else _library.PROGRESS(
        lambda _, name, done, total: progress(name.decode(errors='replace'), done, total))
    try:
        if destination is not None:
            library.check(library.convert, os.fsencode(source), os.fsencode(destination), options.encode(), callback,
                          None, ctypes.byref(report))
            return Conversion(None, destination, json.loads(library.take(report)))
        library.check(library.convert_to_memory, os.fsencode(source), options.encode(), callback, None,
                      ctypes.byref(data), ctypes.byref(size), ctypes.byref(report))
        return Conversion(ctypes.string_at(data.value, size.value), None, json.loads(library.take(report)))
    except Error as error:
        text = library.take(report)
        error.report = json.loads(text) if text else None
        raise
    finally:
        library.convert_free(data)


def write_samples(samples: Samples, folder: str) -> None:
    """Writes calibration data as the folder that `fusebox convert --calibration` reads: a file per input and sample,
    so that samples may differ in shape and none stays in memory."""
    counts: Dict[str, int] = {}
    for sample in samples() if callable(samples) else samples:
        signature, values = _named(sample)
        where = os.path.join(folder, signature)
        os.makedirs(where, exist_ok=True)
        number = counts.get(signature, 0)
        counts[signature] = number + 1
        for name, value in values:
            if '/' in name or name.startswith('.'):
                raise Error(f"calibration: the input '{name}' cannot be named in a file; give lists of arrays")
            np.save(os.path.join(where, f'{name}.{number}.npy'), np.asarray(value))
    if not counts:
        raise Error('calibration: there are no samples; the function must return or yield some')


def _named(sample: Sample) -> Tuple[str, List[Tuple[str, Any]]]:
    """The signature of a sample, or "", and its values by the names of their files."""
    if isinstance(sample, tuple) and len(sample) == 2 and isinstance(sample[0], str):
        return sample[0], _named(sample[1])[1]
    if isinstance(sample, Mapping):
        return '', list(sample.items())
    if isinstance(sample, np.ndarray):
        return '', [('in0', sample)]
    return '', [(f'in{i}', value) for i, value in enumerate(sample)]
