# SPDX-License-Identifier: Apache-2.0
"""Batch work on many machines, by Dask: one session per worker process, opened once.

    import fusebox.dask
    scores = fusebox.dask.predict('model.tflite', array)     # a Dask array: scores.compute()

Dask schedules, limits how many partitions wait in memory, repeats partitions of workers that die, and keeps the order.
"""
from __future__ import annotations

import hashlib
import threading
from typing import Any, Dict, List, Mapping, Optional, Union

import numpy as np

from .errors import Error
from .model import Model, Source
from .session import Session

# By the digest of model and options: one model per process, one session for each thread that runs tasks.
_models: Dict[str, Model] = {}
_lock = threading.Lock()
_local = threading.local()


class Scorer:
    """A model with its options, which tasks carry: small if the model is a path that all workers can read."""

    def __init__(self, model: Union[Model, Source], signature: str, threads: int, options: Mapping[str, Any],
                 ship: bool) -> None:
        opened = model if isinstance(model, Model) else Model(model, **options)
        self.source: Source = opened.content if ship or opened.path is None else opened.path
        self.options = {**opened._arguments}
        self.signature = signature
        self.threads = threads
        text = self.source if isinstance(self.source, bytes) else str(self.source).encode()
        self.key = hashlib.sha256(text + repr((sorted(self.options.items(), key=str), signature)).encode()).hexdigest()
        with Session(opened, signature=signature) as session:  # errors of the model are raised here
            self.inputs = session.inputs
            self.outputs = session.outputs

    def session(self) -> Session:
        """The session of this thread, opened with its first task."""
        sessions: Dict[str, Session] = _local.__dict__.setdefault('sessions', {})
        if self.key not in sessions:
            with _lock:
                if self.key not in _models:
                    _models[self.key] = Model(self.source, **self.options)
            sessions[self.key] = Session(_models[self.key], signature=self.signature, threads=self.threads)
        return sessions[self.key]

    def __dask_tokenize__(self) -> str:
        return self.key

    def output(self, name: Optional[str]) -> int:
        """The number of an output; None: the only one."""
        names = [info.name for info in self.outputs]
        if name is None and len(names) == 1:
            return 0
        if name not in names:
            raise Error(f'the model has the outputs {", ".join(names)}; name one of them as output=')
        return names.index(name)

    def run(self, values: Mapping[Any, np.ndarray], output: int, batch: int, place: str) -> np.ndarray:
        """Runs rows in batches. `place` names the partition in errors."""
        session = self.session()
        count = len(next(iter(values.values())))
        fixed = self.inputs[0].shape[0] if self.inputs[0].shape else -1
        step = fixed if fixed > 0 else batch
        rows: List[np.ndarray] = []
        try:
            for start in range(0, count, step):
                part = {key: value[start:start + step] for key, value in values.items()}
                missing = step - min(step, count - start) if fixed > 0 else 0
                if missing:  # a model of a fixed batch: the last one is filled up
                    part = {key: np.concatenate([value, np.repeat(value[-1:], missing, 0)])
                            for key, value in part.items()}
                for key, value in part.items():
                    session.set_input(key, value)
                session.invoke()
                result = session.output(output)
                if len(result) != step and fixed > 0:
                    raise Error(f'output {output} has {len(result)} rows for a batch of {step}')
                rows.append(result[:len(result) - missing].copy())
        except Error as error:
            raise Error(f'{place}: {error}', error.status) from None
        return np.concatenate(rows) if rows else self._nothing(output)

    def _nothing(self, output: int) -> np.ndarray:
        info = self.outputs[output]
        return np.zeros((0, *(max(1, size) for size in (info.shape or (1,))[1:])), info.dtype)


def _block(block: np.ndarray, scorer: Scorer, output: int, batch: int, block_info: Any = None) -> np.ndarray:
    place = f'partition {block_info[0]["chunk-location"][0]}' if block_info else 'partition'
    return scorer.run({0: np.ascontiguousarray(block)}, output, batch, place)


def _frame(frame: Any, scorer: Scorer, output: int, batch: int, columns: Any, name: str, partition_info: Any = None) -> Any:
    place = f'partition {partition_info["number"]}' if partition_info else 'partition'
    values = {key: np.ascontiguousarray(frame[column].to_numpy()).astype(scorer.inputs[0].dtype, copy=False)
              for key, column in columns.items()}
    result = scorer.run(values, output, batch, place)
    flat = result.reshape(len(result), -1)
    names = [name] if flat.shape[1] == 1 else [f'{name}_{i}' for i in range(flat.shape[1])]
    return type(frame)(flat, columns=names, index=frame.index)


def _items(items: Any, scorer: Scorer, output: int, batch: int) -> List[np.ndarray]:
    rows = list(items)
    if not rows:
        return []
    return list(scorer.run({0: np.stack([np.asarray(row) for row in rows])}, output, batch, 'a partition of the bag'))


def predict(model: Union[Model, Source], data: Any, *, output: Optional[str] = None, signature: str = '',
            columns: Optional[Mapping[str, Any]] = None, batch: int = 64, threads: int = 1, ship: bool = False,
            **options: Any) -> Any:
    """Scores the rows of a Dask array, data frame or bag; returns a lazy collection of the same kind, in order.

    data: an array whose first dimension is the row, of the type of the model's only input; a data frame, whose
    `columns` go to the inputs ({input: [column, ...]}; default: all columns to the only input); or a bag of arrays.
    output: the name of the output; needed if there are several. batch: rows of a run, if the model leaves its first
    dimension open. threads: of a session; Dask itself runs several partitions at the same time. ship: send the bytes of
    the model with the tasks; otherwise a model that is a path must exist on every machine. options: those of Model, such
    as delegate_options={"xnnpack": {"weight_cache_path": "auto"}}, with which the workers of a machine share packed
    weights. An error names the partition; Dask's retries repeat it elsewhere.
    """
    scorer = Scorer(model, signature, threads, options, ship)
    number = scorer.output(output)
    info = scorer.outputs[number]
    if hasattr(data, 'map_blocks') and hasattr(data, 'chunks'):
        return _predict_array(scorer, data, number, batch)
    if hasattr(data, 'to_delayed') and hasattr(data, 'divisions'):
        columns = columns or {scorer.inputs[0].name: list(data.columns)}
        width = int(np.prod([max(1, size) for size in (info.shape or (1,))[1:]]))
        name = info.name or 'output'
        names = [name] if width == 1 else [f'{name}_{i}' for i in range(width)]
        meta = type(data._meta)({column: np.zeros(0, info.dtype) for column in names}, index=data._meta.index)
        return data.map_partitions(_frame, scorer, number, batch, columns, name, meta=meta)
    if hasattr(data, 'map_partitions'):
        return data.map_partitions(_items, scorer, number, batch)
    raise Error(f'data is a {type(data).__name__}, expected a Dask array, data frame or bag')


def _predict_array(scorer: Scorer, data: Any, output: int, batch: int) -> Any:
    if len(scorer.inputs) != 1:
        raise Error(f'the model has {len(scorer.inputs)} inputs; arrays have one; use a data frame')
    if data.dtype != scorer.inputs[0].dtype:
        raise Error(f'the array is {data.dtype}, the input {scorer.inputs[0].name} is {scorer.inputs[0].dtype}; '
                    'use .astype')
    data = data.rechunk({axis: -1 for axis in range(1, data.ndim)})  # whole rows
    info = scorer.outputs[output]
    tail = tuple(max(1, size) for size in (info.shape or (1,))[1:])
    return data.map_blocks(_block, scorer, output, batch, dtype=info.dtype,
                           chunks=(data.chunks[0], *((size,) for size in tail)),
                           drop_axis=list(range(1, data.ndim)), new_axis=list(range(1, 1 + len(tail))),
                           meta=np.zeros((0,) * (1 + len(tail)), info.dtype))
