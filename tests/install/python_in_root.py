#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python_in_root.py MODEL: the package for Python of a release runs a model through both of its doors, with equal results."""
import sys

import numpy as np

import fusebox
from fusebox.lite import Interpreter

interpreter = Interpreter(model_path=sys.argv[1])
interpreter.allocate_tensors()
values = []
for detail in interpreter.get_input_details():
    values.append(np.ones(detail['shape'], detail['dtype']))
    interpreter.set_tensor(detail['index'], values[-1])
interpreter.invoke()
expected = [interpreter.get_tensor(detail['index']) for detail in interpreter.get_output_details()]
found = fusebox.Session(sys.argv[1]).run(values if len(values) > 1 else values[0])
assert expected and len(found) == len(expected)
for one, other in zip(found.values(), expected):
    assert np.array_equal(one, other), (one, other)
print('Python', sys.version.split()[0], 'NumPy', np.__version__, 'runs', sys.argv[1])
