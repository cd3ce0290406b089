# SPDX-License-Identifier: Apache-2.0
"""Writes .tflite files of one op each, with flatc and the schema of the source tree.

A Case is an op with its operands and the types of its results. An operand that is an array is an input of the file; Const is a
constant, Variable a variable tensor, None an absent operand. Functions that the op calls are lists of steps (op, operands, result).
"""
import json
import pathlib
import re
import subprocess
from dataclasses import dataclass, field

import numpy as np

SOURCE = pathlib.Path(__file__).parents[2]
SCHEMA = SOURCE / 'host/tflite/schema/tflite.fbs'
NAMES = {'f2': 'FLOAT16', 'f4': 'FLOAT32', 'f8': 'FLOAT64', 'i1': 'INT8', 'i2': 'INT16', 'i4': 'INT32', 'i8': 'INT64', 'u1': 'UINT8',
         'u4': 'UINT32', 'u8': 'UINT64', 'b1': 'BOOL', 'c8': 'COMPLEX64'}


@dataclass
class Type:
    kind: str  # NumPy's name without the byte order, "int4" or "RESOURCE"
    shape: tuple
    scale: list = field(default_factory=list)
    zero_point: int = 0
    axis: int = 0
    variable: bool = False

    def tensor(self, name, buffer):
        tensor = {'shape': list(self.shape), 'type': {'int4': 'INT4'}.get(self.kind) or NAMES.get(self.kind, self.kind),
                  'buffer': buffer, 'name': name, 'is_variable': self.variable, 'has_rank': True}
        if self.scale:
            tensor['quantization'] = {'scale': self.scale, 'zero_point': [self.zero_point] * len(self.scale),
                                      'quantized_dimension': self.axis}
        return tensor


def type_of(array, **quantization):
    return Type(array.dtype.str[1:], array.shape, **quantization)


@dataclass
class Operand:
    """An operand with more than an array's type: quantized, constant or variable."""
    type: Type
    array: np.ndarray = None
    constant: bool = False


def is_input(operand):
    return isinstance(operand, np.ndarray) or isinstance(operand, Operand) and operand.array is not None and not operand.constant


def const(array, **quantization):
    return Operand(type_of(array, **quantization), array, constant=True)


def quantized(array, scale, zero_point=0):
    return Operand(type_of(array, scale=[scale], zero_point=zero_point), array)


def int4(array, **quantization):
    """A constant of values from -8 to 7. The file has two of them in a byte, the first in the lower half."""
    values = array.ravel().astype(np.int8) & 15
    values = np.append(values, np.zeros(values.size % 2, np.int8)).reshape(-1, 2)
    packed = (values[:, 0] | values[:, 1] << 4).astype(np.uint8)
    return Operand(Type('int4', array.shape, **quantization), packed, constant=True)


def variable(*shape, kind='f4', **quantization):
    return Operand(Type(kind, shape, variable=True, **quantization))


@dataclass
class Case:
    op: str
    operands: list
    results: list  # of Type
    options: dict = field(default_factory=dict)
    functions: list = field(default_factory=list)  # of Function, numbered from 1
    form: str = ''  # the special property of this case
    before: list = field(default_factory=list)  # steps, whose results are operands by their names
    after: list = field(default_factory=list)  # steps on results of these, whose results are outputs
    raw: bool = False  # runs as it is: the converter computes the op, or loses the shape of its result

    @property
    def name(self):
        return f'{self.op} ({self.form})' if self.form else self.op

    def inputs(self):
        """The arrays of the inputs, in order."""
        operands = [each for step in self.before for each in step[1]] + self.operands
        return [each.array if isinstance(each, Operand) else each for each in operands if is_input(each)]


@dataclass
class Function:
    inputs: list  # of Type, named x0, x1, ...
    steps: list  # (op, names of operands, name of the result, its Type, options)
    outputs: list  # names


class Schema:
    """Numbers and option tables of the ops."""

    def __init__(self):
        text = SCHEMA.read_text()
        second = re.search(r'union BuiltinOptions2 \{(.*?)\}', text, re.DOTALL)[1]
        self.second = set(re.findall(r'\w+', second))
        rows = (SOURCE / 'host/graph/ops.def').read_text()
        rows = re.findall(r'FUSEBOX_OP\(\s*\w+,\s*"(\w+)",\s*(-?\d+),\s*"(\w*)"', rows)
        self.ops = {name: (int(code), options) for name, code, options in rows if int(code) >= 0}


class Writer:
    def __init__(self, schema, raw):
        self.schema, self.raw = schema, raw
        self.codes, self.buffers, self.subgraphs = [], [{}], []

    def operator(self, op, inputs, outputs, options):
        if op not in self.codes:
            self.codes.append(op)
        made = {'opcode_index': self.codes.index(op), 'inputs': inputs, 'outputs': outputs}
        table = self.schema.ops[op][1]
        if table:
            union = 'builtin_options_2' if table in self.schema.second else 'builtin_options'
            made |= {f'{union}_type': table, union: options}
        return made

    def main(self, case):
        tensors, inputs, operators, known = [], [], [], {}

        def add(kind, array=None, name=''):
            if array is not None:
                self.buffers.append({'data': np.frombuffer(array.tobytes(), np.uint8).tolist()})
            tensors.append(kind.tensor(name or f't{len(tensors)}', len(self.buffers) - 1 if array is not None else 0))
            return len(tensors) - 1

        def operand(each):
            if each is None or isinstance(each, str):
                return known[each] if each else -1
            if not is_input(each):
                return add(each.type, each.array)
            inputs.append(add(each.type if isinstance(each, Operand) else type_of(each)))
            return inputs[-1]

        for op, operands, result, kind, options in case.before:
            operands = [operand(each) for each in operands]
            known[result] = add(kind, name=result)
            operators.append(self.operator(op, operands, [known[result]], options))
        operands = [operand(each) for each in case.operands]
        outputs = [add(kind) for kind in case.results]
        operators.append(self.operator(case.op, operands, list(outputs), case.options))
        for op, operands, result, kind, options in case.after:
            known[result] = add(kind, name=result)
            operators.append(self.operator(op, [known[name] for name in operands], [known[result]], options))
            outputs.append(known[result])
        self.subgraphs.append({'name': 'main', 'tensors': tensors, 'inputs': inputs, 'outputs': outputs, 'operators': operators})

    def function(self, function):
        names = {f'x{i}': i for i in range(len(function.inputs))}
        tensors = [kind.tensor(name, 0) for name, kind in zip(names, function.inputs)]
        operators = []
        for op, operands, result, kind, options in function.steps:
            names[result] = len(tensors)
            tensors.append(kind.tensor(result, 0))
            operators.append(self.operator(op, [names[name] for name in operands], [names[result]], options))
        self.subgraphs.append({'name': f'function{len(self.subgraphs)}', 'tensors': tensors, 'operators': operators,
                               'inputs': list(range(len(function.inputs))), 'outputs': [names[name] for name in function.outputs]})

    def model(self):
        # The converter writes the lowest version that fits in place of 0.
        codes = [{'deprecated_builtin_code': min(self.schema.ops[op][0], 127), 'builtin_code': op, 'version': int(self.raw)}
                 for op in self.codes]
        return {'version': 3, 'operator_codes': codes, 'subgraphs': self.subgraphs, 'buffers': self.buffers}


def write(case, schema, folder):
    """Writes FOLDER/op.tflite and its inputs FOLDER/in<i>.npy; returns the file."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    writer = Writer(schema, case.raw)
    writer.main(case)
    for function in case.functions:
        writer.function(function)
    (folder / 'op.json').write_text(json.dumps(writer.model()))
    done = subprocess.run(['flatc', '-b', '-o', folder, SCHEMA, folder / 'op.json'], capture_output=True, text=True)
    if done.returncode != 0:
        raise ValueError(f'{case.name}: {done.stdout}{done.stderr}')
    for i, array in enumerate(case.inputs()):
        np.save(folder / f'in{i}.npy', array)
    return folder / 'op.tflite'
