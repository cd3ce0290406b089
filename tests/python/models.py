# SPDX-License-Identifier: Apache-2.0
"""Small .tflite files and SavedModels for tests, written by libfusebox-models and write_models."""
import contextlib
import ctypes
import functools
import os
import pathlib
import subprocess
import sys
import tempfile
from ctypes import POINTER, byref, c_char_p, c_int32, c_size_t, c_void_p

import numpy as np

import fusebox

PREFIX = pathlib.Path(os.environ['FUSEBOX_PREFIX'])
TYPES = {'f32': np.float32, 'i32': np.int32, 'i64': np.int64}


@functools.lru_cache(maxsize=None)
def _library():
    library = ctypes.CDLL(str(PREFIX / 'lib' / 'libfusebox-models.so'))
    library.fusebox_models_free.argtypes = [c_void_p]
    library.fusebox_models_destroy.argtypes = [c_void_p]
    return library


class Builder:
    """A .tflite file, or the folder of a SavedModel. finish writes a model of one function and one signature."""

    def __init__(self, saved_model=False):
        self._model = c_void_p()
        self._call('create', c_int32(0 if saved_model else 1), byref(self._model))
        self._function = self.function('main')

    def _call(self, name, *arguments):
        error = c_void_p()
        if getattr(_library(), 'fusebox_models_' + name)(*arguments, byref(error)):
            text = ctypes.string_at(error.value).decode()
            _library().fusebox_models_free(error)
            raise RuntimeError(text)

    def function(self, name):
        self._function = c_int32()
        self._call('add_function', self._model, name.encode(), byref(self._function))
        return self._function

    def input(self, name, kind):
        value = c_int32()
        self._call('add_input', self._model, self._function, name.encode(), kind.encode(), byref(value))
        return value.value

    def constant(self, array):
        array = np.ascontiguousarray(array)
        name = {np.dtype(v): k for k, v in TYPES.items()}[array.dtype]
        value = c_int32()
        self._call('add_constant', self._model, self._function,
                   f'{name}[{",".join(map(str, array.shape))}]'.encode(), array.ctypes.data_as(c_void_p),
                   c_size_t(array.nbytes), byref(value))
        return value.value

    def op(self, op, *inputs, results=1, attributes=None):
        out = (c_int32 * results)()
        self._call('add_op', self._model, self._function, op.encode(), attributes and attributes.encode(),
                   (c_int32 * len(inputs))(*inputs), c_size_t(len(inputs)), None, out, c_size_t(results))
        return out[0] if results == 1 else list(out)

    def returns(self, *values):
        self._call('return', self._model, self._function, (c_int32 * len(values))(*values), c_size_t(len(values)))

    def signature(self, key, inputs, outputs):
        def texts(names):
            return (c_char_p * len(names))(*(name.encode() for name in names)), c_size_t(len(names))
        self._call('add_signature', self._model, key.encode(), self._function, *texts(inputs), *texts(outputs))

    def finish(self, path, inputs, **outputs):
        """Writes a model of the inputs with these names, and values by the name of the output."""
        self.returns(*outputs.values())
        self.signature('serving_default', inputs, list(outputs))
        return self.write(path)

    def write(self, path):
        self._call('write', self._model, os.fsencode(path))
        _library().fusebox_models_destroy(self._model)
        return str(path)


# libfusebox-models and libfusebox-convert register the same protobuf files, so that one process cannot load both: each
# model is written by a process of its own, once.
WRITERS = {}


def written(writer):
    """Makes a function that writes a model return its bytes."""
    @functools.lru_cache(maxsize=None)
    def content():
        with folder() as where:
            path = os.path.join(where, 'model.tflite')
            subprocess.run([sys.executable, __file__, writer.__name__, path], check=True)
            with open(path, 'rb') as file:
                return file.read()
    WRITERS[writer.__name__] = writer
    content.__doc__ = writer.__doc__
    return content


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix='fusebox-test-') as path:
        yield path


@written
def add_model(path):
    """x f32[2,3] + constant 0..5 -> y; the product of y and x -> z. A signature, "add"."""
    model = Builder()
    x = model.input('x', 'f32[2,3]')
    y = model.op('ADD', x, model.constant(np.arange(6, dtype=np.float32).reshape(2, 3)))
    model.returns(y, model.op('MUL', y, x))
    model.signature('add', ['x'], ['y', 'z'])
    model.write(path)


@written
def open_model(path):
    """x f32[?,3] -> y, its absolute value."""
    model = Builder()
    model.finish(path, ['x'], y=model.op('ABS', model.input('x', 'f32[?,3]')))


@written
def two_signatures(path):
    """ "negate" (main): x f32[2] -> y; "square": x f32[?] -> y."""
    model = Builder()
    model.returns(model.op('NEG', model.input('x', 'f32[2]')))
    model.signature('negate', ['x'], ['y'])
    model.function('square')
    x = model.input('x', 'f32[?]')
    model.returns(model.op('MUL', x, x))
    model.signature('square', ['x'], ['y'])
    model.write(path)


@written
def long_model(path):
    """A long chain of products of large matrices, x f32[700,700] -> y."""
    model = Builder()
    x = value = model.input('x', 'f32[700,700]')
    for _ in range(60):
        value = model.op('BATCH_MATMUL', value, x)
    model.finish(path, ['x'], y=value)


@written
def text_model(path):
    """text string[?] -> same string[1,?]."""
    model = Builder()
    text = model.input('text', 'string[?]')
    model.finish(path, ['text'], same=model.op('EXPAND_DIMS', text, model.constant(np.array(0, np.int32))))


@written
def large_model(path):
    """x f32[25,1000000], 100 MB -> y, its absolute value."""
    model = Builder()
    model.finish(path, ['x'], y=model.op('ABS', model.input('x', 'f32[25,1000000]')))


@functools.lru_cache(maxsize=None)
def _samples():
    return tempfile.TemporaryDirectory(prefix='fusebox-samples-')


@functools.lru_cache(maxsize=None)
def saved_model(name):
    """The folder of a sample of write_models."""
    subprocess.run([PREFIX / 'bin' / 'write_models', _samples().name, '--model', name], check=True, capture_output=True)
    return os.path.join(_samples().name, name)


@written
def dense_model(path):
    """x f32[4,1024] times a constant f32[1024,1024] -> y."""
    model = Builder()
    weights = model.constant(np.random.default_rng(1).uniform(-1, 1, (1024, 1024)).astype(np.float32))
    bias = model.constant(np.zeros(1024, np.float32))
    model.finish(path, ['x'], y=model.op('FULLY_CONNECTED', model.input('x', 'f32[4,1024]'), weights, bias))


@written
def weights_model(path):
    """x f32[1,10000000] plus a constant of ones, 40 MB -> y."""
    model = Builder()
    ones = model.constant(np.ones((1, 10_000_000), np.float32))
    model.finish(path, ['x'], y=model.op('ADD', model.input('x', 'f32[1,10000000]'), ones))


def pictures(count=8):
    """Samples of conv_classifier's inputs."""
    rng = np.random.default_rng(1)
    return tuple((rng.uniform(-1, 1, (1, 16, 16, 3)).astype(np.float32),) for _ in range(count))


CONVERTED = {}


def converted(name, **options):
    """The bytes of a sample as .tflite."""
    key = name, repr(options)
    if key not in CONVERTED:
        CONVERTED[key] = fusebox.convert(saved_model(name), batch=1, **options).content
    return CONVERTED[key]


if __name__ == '__main__':
    WRITERS[sys.argv[1]](sys.argv[2])
