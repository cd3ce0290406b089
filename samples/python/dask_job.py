# SPDX-License-Identifier: Apache-2.0
"""dask_job.py MODEL OUT.npy [--rows N] [--scheduler ADDRESS]: scores N rows of the model's input with Dask.

Without --scheduler, it starts one worker process per core of this machine. The rows are random here; in practice they
are read by the workers (dask.array.from_zarr, dask.dataframe.read_parquet).
"""
import argparse
import time

import dask.array
import dask.distributed
import numpy as np

import fusebox
import fusebox.dask


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('model')
    parser.add_argument('output')
    parser.add_argument('--rows', type=int, default=10_000)
    parser.add_argument('--scheduler')
    arguments = parser.parse_args()

    info, = fusebox.Session(arguments.model).inputs
    shape = (arguments.rows, *info.shape[1:])
    chunk = max(1, arguments.rows // 16)
    rows = dask.array.random.default_rng(1).uniform(-1, 1, shape, chunks=(chunk, *shape[1:])) \
        if hasattr(dask.array.random, 'default_rng') else \
        dask.array.random.RandomState(1).uniform(-1, 1, shape, chunks=(chunk, *shape[1:]))
    with dask.distributed.Client(arguments.scheduler, **({} if arguments.scheduler else {
            'threads_per_worker': 1, 'dashboard_address': None})) as client:
        start = time.perf_counter()
        scores = fusebox.dask.predict(arguments.model, rows.astype(info.dtype)).compute()
        seconds = time.perf_counter() - start
        print(f'{len(scores)} rows in {seconds:.1f} s by {len(client.scheduler_info()["workers"])} workers')
    np.save(arguments.output, scores)


if __name__ == '__main__':
    main()
