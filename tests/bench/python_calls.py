# SPDX-License-Identifier: Apache-2.0
"""python_calls.py FUSEBOX MODEL...: what a call from Python costs beside the run of the model in C++.

Writes rows for report.py: the time of Session.run with the values of all inputs, and of Interpreter.set_tensor, invoke and
get_tensor, less the median of `fusebox bench`. Needs NumPy.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np

import fusebox
from fusebox.lite import Interpreter

CALLS = 20_000


def microseconds(call):
    """The median time of a call, as `fusebox bench` states it."""
    times = []
    for _ in range(CALLS):
        start = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / 1e3


def in_cpp(program, model):
    out = subprocess.run([program, 'bench', model, '--json', '--num_runs=1000', '--min_secs=0.3', '--warmup_min_secs=0.1'],
                         check=True, capture_output=True).stdout
    return json.loads(out)['contestants'][0]['runs']['p50_us']


def main(program, models):
    for model in models:
        session = fusebox.Session(model)
        values = {info.name: np.zeros(np.abs(info.shape), info.dtype) for info in session.inputs}
        interpreter = Interpreter(model_path=model)
        interpreter.allocate_tensors()
        x, y = interpreter.get_input_details()[0]['index'], interpreter.get_output_details()[0]['index']
        value = next(iter(values.values()))

        def lite():
            interpreter.set_tensor(x, value)
            interpreter.invoke()
            interpreter.get_tensor(y)
        run = in_cpp(program, model)
        for job, call in (('Session.run', lambda: session.run(values)), ('Interpreter', lite)):
            print(json.dumps({'bench': 'python', 'job': f'{job}, {pathlib.Path(model).stem}', 'metric': 'overhead',
                              'unit': 'us', 'runner': 'ours', 'round': 0, 'value': max(0.0, microseconds(call) - run)}), flush=True)


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2:])
