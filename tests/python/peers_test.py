# SPDX-License-Identifier: Apache-2.0
"""One script with fusebox.lite and with stock TensorFlow Lite, on public models: same shapes, dtypes and values."""
import os
import pathlib
import unittest

import numpy as np

import fusebox
import stock
from fusebox.lite import Interpreter, OpResolverType

LARGEST = 5_000_000  # bytes of a file
# Parts of names of files that differ, as tests/peers knows them too.
KNOWN = {
    'transpose_conv': 'the shape of the result is an input, and stock does not check that random ones fit',
    'single_gather_nd_with_const_params': 'stock does not check that random indices are inside',
    'single_rsqrt_default_a8w8_recipe': 'one step',
    'conv_fc_mnist_srq_a8w8': 'stock reads one scale of several',
    'partly_quantized_mnist': 'stock reads one scale of several',
}
TOLERANCE = 1e-4  # of floats, relative to the largest value


def ours(path):
    # Stock uses no delegate either.
    return Interpreter(model_path=path, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)


def value_for(details, number):
    """Random values, as tests/peers uses them."""
    rng = np.random.default_rng([1, number])
    shape, dtype = details['shape'], np.dtype(details['dtype'])
    if dtype.kind == 'f':
        return rng.uniform(-1, 1, shape).astype(dtype)
    if dtype.kind == 'b':
        return np.arange(np.prod(shape)).reshape(shape) % 2 == 0
    if dtype.itemsize <= 2:
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)
    return rng.integers(0, 4, shape).astype(dtype)


def script(interpreter):
    """Runs a model as scripts do; returns the details of inputs and outputs, and the values of the outputs."""
    interpreter.allocate_tensors()
    inputs = interpreter.get_input_details()
    if any((row['shape'] <= 0).any() for row in inputs):
        for row in inputs:
            interpreter.resize_tensor_input(row['index'], np.maximum(row['shape'], 1).tolist())
        interpreter.allocate_tensors()
        inputs = interpreter.get_input_details()
    for number, row in enumerate(inputs):
        interpreter.set_tensor(row['index'], value_for(row, number))
    interpreter.invoke()
    outputs = interpreter.get_output_details()
    return inputs, outputs, [interpreter.get_tensor(row['index']) for row in outputs]


def chosen(root):
    """Files that stock runs the same way twice."""
    rows = [line.split('\t') for line in (root / 'STOCK.tsv').read_text().splitlines()]
    files = [row[0] for row in rows if row[1] == 'ok' and not row[2] and not any(part in row[0] for part in KNOWN)]
    paths = [root / 'tflite' / file for file in files]
    return [str(path) for path in paths if path.stat().st_size < LARGEST]


class Peers(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(os.environ.get('FUSEBOX_MODELS', '/none'))
        if not (self.root / 'STOCK.tsv').exists():
            self.skipTest('FUSEBOX_MODELS has no models')
        if stock.library_path() is None:
            self.skipTest('FUSEBOX_PEER_DIR has no stock TensorFlow Lite')

    def same_details(self, a, b):
        self.assertEqual(len(a), len(b))
        for x, y in zip(a, b):
            for key in ('name', 'dtype'):
                self.assertEqual(x[key], y[key])
            self.assertEqual(x['shape'].tolist(), y['shape'].tolist(), x['name'])
            self.assertEqual(x['quantization'][1], y['quantization'][1])
            self.assertAlmostEqual(x['quantization'][0], y['quantization'][0])

    def test_the_same_script_gives_the_same(self):
        compared = 0
        for path in chosen(self.root):
            with self.subTest(path):
                inputs, outputs, values = script(ours(path))
                expected = script(stock.Interpreter(path))
                self.same_details(inputs, expected[0])
                self.same_details(outputs, expected[1])
                for value, other in zip(values, expected[2]):
                    self.assertEqual((value.shape, value.dtype), (other.shape, other.dtype))
                    if value.dtype.kind == 'f':
                        largest = np.abs(other[np.isfinite(other)]).max(initial=1e-6)
                        np.testing.assert_allclose(value, other, rtol=0, atol=TOLERANCE * largest)
                    else:
                        np.testing.assert_array_equal(value, other)
                compared += 1
        print(f'{compared} models compared')
        self.assertGreaterEqual(compared, 30)

    def test_files_with_flex_ops_run(self):
        path = str(self.root / 'tflite/argyarijal19__micropython/model_lstm.tflite')
        inputs, outputs, values = script(Interpreter(path))
        self.assertEqual((len(inputs), len(outputs)), (1, 1))
        self.assertEqual(values[0].shape, (1, 1))
        self.assertEqual(len(fusebox.Model(path).report()['fused']), 1)
        with self.assertRaisesRegex(ValueError, 'FlexTensorList'):
            fusebox.Model(path, import_ops='never')


if __name__ == '__main__':
    unittest.main()
