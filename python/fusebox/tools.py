# SPDX-License-Identifier: Apache-2.0
"""The program `fusebox` and what it computes: comparisons, benchmarks, pages."""
from __future__ import annotations

import html
import json
import os
import shutil
import subprocess
import tempfile
from typing import Any, Dict, List, Optional, Sequence, Union

from . import _library
from .errors import Error, Status
from .model import Model, Source

AnyModel = Union[Model, Source]
STATUSES = {2: Status.INVALID, 3: Status.INTERNAL}


def program() -> str:
    """The path of the program `fusebox`."""
    path = _library.find_file('bin/fusebox') or shutil.which('fusebox')
    if path is None:
        raise Error('the program fusebox is not installed; install the package "fusebox"', Status.NOT_FOUND)
    return path


def _call(arguments: Sequence[str]) -> str:
    """What the program prints. Its answer "no" (exit code 1) is no error if it prints something."""
    done = subprocess.run([program(), *arguments], check=False, stdin=subprocess.DEVNULL, capture_output=True)
    text = done.stderr.decode(errors='replace').strip()
    if done.returncode > 1 or done.returncode < 0 or (done.returncode == 1 and not done.stdout):
        raise Error(text or f'fusebox {arguments[0]} ended with status {done.returncode}',
                    STATUSES.get(done.returncode, Status.INTERNAL))
    return done.stdout.decode(errors='replace')


class _Files:
    """Paths of models, those from bytes as temporary files."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix='fusebox-')
        self.name = self._folder.name

    def __enter__(self) -> '_Files':
        return self

    def __exit__(self, *_: Any) -> None:
        self._folder.cleanup()

    def path(self, model: AnyModel) -> str:
        if isinstance(model, (str, os.PathLike)):
            return os.fspath(model)
        if isinstance(model, Model):
            if model.path is not None:
                return model.path
            model = model.content
        path = os.path.join(self.name, f'model{len(os.listdir(self.name))}.tflite')
        with open(path, 'wb') as file:
            file.write(model)
        return path


def _flags(options: Dict[str, Any]) -> List[str]:
    """{"min_secs": 1, "profile": True} as --min-secs 1 --profile."""
    flags: List[str] = []
    for name, value in options.items():
        flag = '--' + name.rstrip('_').replace('_', '-')
        if value is None or value is False:
            continue
        for one in value if isinstance(value, (list, tuple)) else [value]:
            flags += [flag] if one is True else [flag, os.fspath(one) if isinstance(one, os.PathLike) else str(one)]
    return flags


class Comparison:
    """The result of compare: true if the models agree. equal, max_absolute, outputs (a row for each), layers (with
    layers=True) are those of `fusebox compare --json`."""

    def __init__(self, document: Dict[str, Any]) -> None:
        self.document = document
        self.equal: bool = document['equal']
        self.max_absolute: Optional[float] = document['max_absolute']
        self.outputs: List[Dict[str, Any]] = document['outputs']
        self.layers: List[Dict[str, Any]] = document.get('layers', [])

    def __bool__(self) -> bool:
        return self.equal

    def __repr__(self) -> str:
        rows = [f'{row["name"]}: {row["type"]}, largest difference {row["max_absolute"]}, '
                f'{"equal" if row["equal"] else "differs"} {row["where"]}'.rstrip() for row in self.outputs]
        return '\n'.join(['equal' if self.equal else 'differs', *rows])


def compare(a: AnyModel, b: Optional[AnyModel] = None, **options: Any) -> Comparison:
    """Runs two models on the same seeded inputs and compares their outputs; or one model beside itself `with_`
    another delegate ("none", "xnnpack") or in double precision ("f64").

    options are the flags of `fusebox compare`: with_, layers, seed, runs, atol, rtol, signature, threads, plugin,
    config, delegate, html.
    """
    with _Files() as files:
        models = [files.path(model) for model in (a, b) if model is not None]
        return Comparison(json.loads(_call(['compare', *models, '--json', *_flags(options)])))


def bench(*models: AnyModel, **options: Any) -> Dict[str, Any]:
    """Measures latency and memory in processes of their own: the document of `fusebox bench --json`.

    options are its flags: num_runs, warmup_runs, min_secs, max_secs, threads, pin, cold, vs, signature, shape, input,
    profile, plugin, config, delegate, weight_cache.
    """
    with _Files() as files:
        return json.loads(_call(['bench', *map(files.path, models), '--json', *_flags(options)]))


class Inspection:
    """Contents of a model: document (as `fusebox inspect --json`), str(): tables, html: the page with graph, runners,
    constants and memory, which notebooks show."""

    def __init__(self, document: Dict[str, Any], text: str, page: str) -> None:
        self.document = document
        self.html = page
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return (f'<iframe srcdoc="{html.escape(self.html)}" style="width: 100%; height: 600px; border: 0">'
                '</iframe>')


def inspect(model: AnyModel, *, profile: Optional[str] = None, report: Optional[str] = None,
            **options: Any) -> Inspection:
    """Shows a model. profile: a file written by `fusebox bench --profile --json`; report: one of `fusebox convert
    --report`. options: plugin, config, delegate."""
    with _Files() as files:
        path = files.path(model)
        page = os.path.join(files.name, 'page.html')
        flags = _flags(options)
        text = _call(['inspect', path, *flags])
        document = json.loads(_call(['inspect', path, '--json', '--html', page,
                                     *_flags({'profile': profile, 'report': report}), *flags]))
        with open(page, encoding='utf-8') as file:
            return Inspection(document, text, file.read())
