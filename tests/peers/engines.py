# SPDX-License-Identifier: Apache-2.0
"""Runs a .tflite file in Fusebox, in today's LiteRT and in stock TensorFlow Lite 2.9, and compares the results.

Each engine is another process, so that a crash or an endless loop is an outcome. An outcome has a status, "ok" or the step that
failed, the reason of a failure, and the outputs.
"""
import ctypes
import json
import os
import pathlib
import re
import select
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

import numpy as np

HERE = pathlib.Path(__file__).parent
NEAR = 1e-4  # of the largest value of a float output


@dataclass
class Outcome:
    status: str
    why: str = ''
    outputs: list = field(default_factory=list)
    names: list = field(default_factory=list)  # of the outputs; empty: unknown
    inputs: dict = field(default_factory=dict)  # of Fusebox: the files that it used, by name

    @property
    def ok(self):
        return self.status == 'ok'


def load(folder, pattern):
    files = sorted(pathlib.Path(folder).glob(pattern), key=lambda file: int(re.findall(r'\d+', file.stem)[-1]))
    return [np.load(file) for file in files]


class Fusebox:
    """The program of a build tree, with the build's plugins."""

    def __init__(self, build, delegate=None):
        self.program = pathlib.Path(build) / 'bin' / 'fusebox'
        self.options = ['--delegate', delegate] if delegate else []
        self.environment = dict(os.environ)
        self.environment.setdefault('FUSEBOX_PLUGIN_PATH', str(pathlib.Path(build) / 'plugins'))

    def call(self, *arguments, seconds=60):
        """The exit status and stderr; a program that takes too long has the status "timeout"."""
        try:
            done = subprocess.run([self.program, *map(str, arguments)], env=self.environment, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True, errors='replace', timeout=seconds)
        except subprocess.TimeoutExpired:
            return 'timeout', ''
        return done.returncode, done.stderr

    def inspect(self, model):
        """What `fusebox inspect --json` prints; of a file that it refuses, nothing."""
        done = subprocess.run([self.program, 'inspect', '--json', model], env=self.environment, capture_output=True, text=True)
        nothing = {'subgraphs': [{'inputs': [], 'outputs': [], 'nodes': []}], 'ops': {}}
        return json.loads(done.stdout) if done.returncode == 0 else nothing

    def main(self, model):
        return self.inspect(model)['subgraphs'][0]

    def ops(self, model):
        return list(self.inspect(model)['ops'])

    def unwritten(self, model):
        """Outputs that LiteRT returns without writing them: tensors that are an input too, or are listed as an output again."""
        main = self.main(model)
        ids = [value['id'] for value in main['outputs']]
        inputs = {value['id'] for value in main['inputs']}
        return [value['name'] for i, value in enumerate(main['outputs']) if value['id'] in inputs or value['id'] in ids[i + 1:]]

    def is_hybrid(self, model):
        """A product of f32 values and 8-bit weights, whose rows are quantized when it runs."""
        return any(node['inputs'] and node['inputs'][0]['dtype'] == 'f32' and
                   any(value['constant'] and value['dtype'] == 'i8' for value in node['inputs']) for node in self.main(model)['nodes'])

    def input_names(self, model):
        """Those of the first signature, or of the main function."""
        document = self.inspect(model)
        names = [value['name'] for value in document['subgraphs'][0]['inputs']]
        return document['signatures'][0]['inputs'] if document.get('signatures') else names

    def run(self, model, folder, inputs=None, seed=1, values=()):
        """Runs on a folder of inputs, or on generated ones; `values` has files for some, by name."""
        given = ['--input-dir', inputs] if inputs else ['--seed', seed]
        for name, file in dict(values).items():
            given += ['--input', f'{name}={file}']
        status, errors = self.call('run', model, '--output-dir', folder, *given, *self.options)
        if status != 0:
            crashed = not isinstance(status, int) or status < 0 or status == 3
            return Outcome(f'crash {status}' if crashed else 'refused', ' '.join(errors.split()))
        slots = json.loads((pathlib.Path(folder) / 'io.json').read_text())
        files = {slot['name']: f'{folder}/in{i}.npy' for i, slot in enumerate(slots['inputs'])}
        names = [slot['name'] for slot in slots['outputs']]
        return Outcome('ok', '', load(folder, 'run0.out*.npy'), names, files)


class Worker:
    """A process that answers a line of JSON with a line of JSON. It is started when it is needed."""

    def __init__(self, command, seconds=60):
        self.command, self.seconds, self.process = command, seconds, None

    def ask(self, job):
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, text=True)
        try:
            self.process.stdin.write(json.dumps(job) + '\n')
            self.process.stdin.flush()
        except BrokenPipeError:  # it did not start; reading below finds its end
            pass
        ready, _, _ = select.select([self.process.stdout], [], [], self.seconds)
        line = self.process.stdout.readline() if ready else ''
        if line:
            return json.loads(line)
        self.process.kill()
        status = self.process.wait()
        self.process = None
        return {'status': f'crash {status}' if ready else 'crash timeout', 'why': ''}

    def run(self, model, folder, inputs=None):
        job = {'model': str(model), 'output': str(folder)}
        if inputs is not None:
            job['inputs'] = inputs
        answer = self.ask(job)
        if answer['status'] != 'ok':
            return Outcome(answer['status'], ' '.join(answer['why'].split()))
        return Outcome('ok', '', load(folder, 'out*.npy'), answer.get('names', []))

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process = None


def litert(peers):
    return Worker(['node', str(HERE / 'litert_run.js'), str(peers)])


def stock(peers):
    return Worker([sys.executable, str(HERE / 'engines.py'), str(pathlib.Path(peers) / 'libtensorflowlite_c.so')])


def equal_bytes(a, b):
    return a.dtype == b.dtype and a.size == b.size and a.tobytes() == b.tobytes()


def difference(ours, theirs):
    """Compares the outputs of two outcomes, by name if both have the same names: '' or how they differ. Integers and bools must be
    equal. Floats may differ by NEAR of the largest value. Shapes are not compared: LiteRT returns the shapes that are stored in
    the file, also where its results have others."""
    a, b = ours.outputs, theirs.outputs
    if len(a) != len(b):
        return f'{len(a)} and {len(b)} outputs'
    if len(set(ours.names)) == len(a) and set(ours.names) == set(theirs.names):
        b = [b[theirs.names.index(name)] for name in ours.names]
    for i, (x, y) in enumerate(zip(a, b)):
        if equal_bytes(x, y):
            continue
        x, y = x.ravel(), y.ravel()
        if x.dtype != y.dtype or x.size != y.size:
            return f'out{i}: {x.size} {x.dtype} and {y.size} {y.dtype}'
        if x.dtype == bool:
            return f'out{i}: {np.count_nonzero(x != y)} of {x.size} bools'
        if np.issubdtype(x.dtype, np.integer):
            steps = np.abs(x.astype(np.float64) - y.astype(np.float64))
            return f'out{i}: {int(steps.max())} steps, {np.count_nonzero(steps)} of {x.size} values'
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        if not np.all(np.isfinite(x[~same])) or not np.all(np.isfinite(y[~same])):
            return f'out{i}: numbers and NaN or infinity'
        scale = max(np.abs(y[np.isfinite(y)]).max(initial=0), 1e-6)
        error = np.abs(x[~same] - y[~same]).max(initial=0) / scale
        if error > NEAR:
            return f'out{i}: {error:.1e} of the largest value'
    return ''


class StockLibrary:
    """The C library of TensorFlow Lite."""

    TYPES = {1: 'f4', 2: 'i4', 3: 'u1', 4: 'i8', 6: '?', 7: 'i2', 8: 'c8', 9: 'i1', 10: 'f2', 11: 'f8', 13: 'u8', 16: 'u4'}

    def __init__(self, path):
        self.library = ctypes.CDLL(path)

    def call(self, name, *arguments, returns=ctypes.c_void_p):
        function = getattr(self.library, 'TfLite' + name)
        function.restype = returns
        return function(*arguments)

    def number(self, name, *arguments):
        return self.call(name, *arguments, returns=ctypes.c_int)

    def perform(self, job):
        model = ctypes.c_void_p(self.call('ModelCreateFromFile', job['model'].encode()))
        if not model:
            return {'status': 'load', 'why': ''}
        interpreter = ctypes.c_void_p(self.call('InterpreterCreate', model, None))
        answer = self.run(interpreter, job) if interpreter else {'status': 'compile', 'why': ''}
        self.call('InterpreterDelete', interpreter)
        self.call('ModelDelete', model)
        return answer

    def run(self, interpreter, job):
        if failure := self.prepare(interpreter, job['inputs']):
            return failure
        if self.number('InterpreterInvoke', interpreter) != 0:
            return {'status': 'run', 'why': ''}
        pathlib.Path(job['output']).mkdir(parents=True, exist_ok=True)
        for i in range(self.number('InterpreterGetOutputTensorCount', interpreter)):
            tensor = ctypes.c_void_p(self.call('InterpreterGetOutputTensor', interpreter, ctypes.c_int(i)))
            kind = self.TYPES.get(self.number('TensorType', tensor))
            if kind is None:
                return {'status': 'run', 'why': f'output {i} has a type that is not compared'}
            size = self.call('TensorByteSize', tensor, returns=ctypes.c_size_t)
            data = self.call('TensorData', tensor)
            array = np.frombuffer(ctypes.string_at(data, size) if size else b'', kind)
            dims = [self.number('TensorDim', tensor, ctypes.c_int(d)) for d in range(self.number('TensorNumDims', tensor))]
            np.save(f'{job["output"]}/out{i}.npy', array.reshape(dims))
        return {'status': 'ok'}

    def prepare(self, interpreter, files):
        """Sets the inputs, in order. Returns a failure, or None."""
        count = self.number('InterpreterGetInputTensorCount', interpreter)
        if len(files) != count:
            return {'status': 'inputs', 'why': f'{count} inputs, not {len(files)}'}
        arrays = [np.load(file) for file in files.values()]
        for i, array in enumerate(arrays):
            dims = (ctypes.c_int * array.ndim)(*array.shape)
            if self.number('InterpreterResizeInputTensor', interpreter, ctypes.c_int(i), dims, ctypes.c_int(array.ndim)) != 0:
                return {'status': 'inputs', 'why': f'input {i} has other dims'}
        if self.number('InterpreterAllocateTensors', interpreter) != 0:
            return {'status': 'compile', 'why': ''}
        for i, array in enumerate(arrays):
            tensor = ctypes.c_void_p(self.call('InterpreterGetInputTensor', interpreter, ctypes.c_int(i)))
            data = np.ascontiguousarray(array).tobytes()
            if self.number('TensorCopyFromBuffer', tensor, data, ctypes.c_size_t(len(data))) != 0:
                return {'status': 'inputs', 'why': f'input {i} is of another type'}
        return None


def serve(path):
    """Answers jobs from stdin, as litert_run.js does, with stock TensorFlow Lite. A job may end the process."""
    library = StockLibrary(path)
    answers = os.fdopen(os.dup(1), 'w')
    errors = tempfile.TemporaryFile()
    os.dup2(errors.fileno(), 1)  # the library logs to both
    os.dup2(errors.fileno(), 2)
    for line in sys.stdin:
        errors.seek(0)
        errors.truncate()
        answer = library.perform(json.loads(line))
        if answer['status'] != 'ok' and not answer['why']:
            errors.seek(0)
            answer['why'] = '; '.join(re.findall(r'ERROR: (.*)', errors.read().decode(errors='replace')))
        answers.write(json.dumps(answer) + '\n')
        answers.flush()


if __name__ == '__main__':
    serve(sys.argv[1])
