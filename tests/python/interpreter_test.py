# SPDX-License-Identifier: Apache-2.0
"""fusebox.lite.Interpreter."""
import importlib
import json
import os
import re
import unittest

import numpy as np

import fusebox
import models
from case import WithFolder
from fusebox.lite import Interpreter, OpResolverType, load_delegate

# The script of the guides, as it stands in tutorials.
TUTORIAL = '''
import numpy as np
import tensorflow as tf

# Load the TFLite model and allocate tensors.
interpreter = tf.lite.Interpreter(model_path=model_path)
interpreter.allocate_tensors()

# Get input and output tensors.
input_details = interpreter.get_input_details()
output_details = interpreter.get_output_details()

# Test the model on random input data.
input_shape = input_details[0]['shape']
input_data = np.array(np.random.random_sample(input_shape), dtype=np.float32)
interpreter.set_tensor(input_details[0]['index'], input_data)

interpreter.invoke()

output_data = interpreter.get_tensor(output_details[0]['index'])
'''


class Tutorial(WithFolder):
    def test_the_script_of_the_guides_runs_with_another_import(self):
        path = self.written(models.add_model())
        for imported, name in (('import fusebox as tf', 'tf.lite.Interpreter'),
                               ('import fusebox.lite as tflite', 'tflite.Interpreter'),
                               ('from fusebox.lite.interpreter import Interpreter', 'Interpreter')):
            variables = {'model_path': path}
            script = TUTORIAL.replace('import tensorflow as tf', imported).replace('tf.lite.Interpreter', name)
            exec(script, variables)  # pylint: disable=exec-used
            expected = variables['input_data'] + np.arange(6, dtype=np.float32).reshape(2, 3)
            np.testing.assert_array_equal(variables['output_data'], expected)

    def test_the_modules_of_tensorflow_have_twins(self):
        for name in ('fusebox.lite', 'fusebox.lite.interpreter'):
            self.assertTrue(hasattr(importlib.import_module(name), 'Interpreter'))


class Details(unittest.TestCase):
    def test_inputs_and_outputs(self):
        interpreter = Interpreter(model_content=models.add_model())
        row, = interpreter.get_input_details()
        self.assertEqual(list(row), ['name', 'index', 'shape', 'shape_signature', 'dtype', 'quantization',
                                     'quantization_parameters', 'sparsity_parameters'])
        self.assertEqual(row['dtype'], np.float32)
        self.assertIs(row['dtype'], np.float32)
        self.assertEqual((row['shape'].tolist(), row['shape'].dtype), ([2, 3], np.int32))
        self.assertEqual(row['quantization'], (0.0, 0))
        self.assertEqual(row['sparsity_parameters'], {})
        self.assertEqual(len(interpreter.get_output_details()), 2)
        indices = [row['index'] for row in interpreter.get_tensor_details()]
        self.assertEqual(indices, list(range(len(indices))))
        self.assertEqual(interpreter.num_subgraphs(), 1)

    def test_quantization(self):
        content = models.converted('conv_classifier', quantize='int8', calibration=models.pictures())
        interpreter = Interpreter(model_content=content)
        rows = interpreter.get_tensor_details()
        per_channel = [row for row in rows if len(row['quantization_parameters']['scales']) > 1]
        self.assertTrue(per_channel)
        for row in per_channel:
            self.assertEqual(row['quantization'], (0.0, 0))
            axis = row['quantization_parameters']['quantized_dimension']
            self.assertEqual(len(row['quantization_parameters']['scales']), row['shape'][axis])
        single = [row for row in rows if row['dtype'] == np.int8 and row not in per_channel]
        for row in single:
            scale, point = row['quantization']
            self.assertGreater(scale, 0)
            self.assertEqual(row['quantization_parameters']['zero_points'].tolist(), [point])

    def test_open_dimensions(self):
        interpreter = Interpreter(model_content=models.open_model())
        row, = interpreter.get_input_details()
        self.assertEqual((row['shape'].tolist(), row['shape_signature'].tolist()), ([1, 3], [-1, 3]))
        interpreter.resize_tensor_input(row['index'], [4, 3], strict=True)
        interpreter.allocate_tensors()
        self.assertEqual(interpreter.get_input_details()[0]['shape'].tolist(), [4, 3])
        self.assertEqual(interpreter.get_output_details()[0]['shape'].tolist(), [4, 3])  # before invoke
        self.assertEqual(interpreter.get_output_details()[0]['shape_signature'].tolist(), [-1, 3])
        with self.assertRaisesRegex(RuntimeError, 'only allows mutating unknown dimensions'):
            interpreter.resize_tensor_input(row['index'], [4, 4], strict=True)
        interpreter = Interpreter(model_content=models.open_model())
        interpreter.allocate_tensors()
        interpreter.invoke()
        self.assertEqual(interpreter.get_tensor(interpreter.get_output_details()[0]['index']).shape, (1, 3))


class Tensors(unittest.TestCase):
    def setUp(self):
        self.interpreter = Interpreter(model_content=models.add_model())
        self.x = self.interpreter.get_input_details()[0]['index']
        self.y = self.interpreter.get_output_details()[0]['index']
        self.ones = np.ones((2, 3), np.float32)

    def test_the_order_of_calls_is_checked(self):
        for call in (lambda: self.interpreter.set_tensor(self.x, self.ones), self.interpreter.invoke,
                     lambda: self.interpreter.get_tensor(self.x), lambda: self.interpreter.get_tensor(self.y)):
            with self.assertRaisesRegex(ValueError, 'call allocate_tensors'):
                call()
        self.interpreter.allocate_tensors()
        with self.assertRaisesRegex(RuntimeError, 'no value yet'):
            self.interpreter.get_tensor(self.y)
        self.interpreter.resize_tensor_input(self.x, [2, 3])
        with self.assertRaisesRegex(ValueError, 'call allocate_tensors'):
            self.interpreter.invoke()

    def test_wrong_values_are_refused(self):
        self.interpreter.allocate_tensors()
        with self.assertRaisesRegex(ValueError, 'Got value of type float64 but expected type float32 for input'):
            self.interpreter.set_tensor(self.x, np.ones((2, 3)))
        with self.assertRaisesRegex(ValueError, r'Got shape \[3, 2\] but expected \[2, 3\]'):
            self.interpreter.set_tensor(self.x, np.ones((3, 2), np.float32))
        with self.assertRaisesRegex(ValueError, 'is not an input'):
            self.interpreter.set_tensor(self.y, self.ones)
        for call in (self.interpreter.get_tensor, self.interpreter.tensor):
            with self.assertRaisesRegex(ValueError, 'no value 99'):
                call(99)
        with self.assertRaisesRegex(ValueError, 'subgraph 1'):
            self.interpreter.get_tensor(self.x, 1)

    def test_tensor_returns_views(self):
        self.interpreter.allocate_tensors()
        x, y = self.interpreter.tensor(self.x), self.interpreter.tensor(self.y)
        for value in (3, 4):
            x().fill(value)
            self.interpreter.invoke()
            np.testing.assert_array_equal(y(), value + np.arange(6).reshape(2, 3))
        copy = self.interpreter.get_tensor(self.y)
        x().fill(0)
        self.interpreter.invoke()
        self.assertEqual(copy[0, 0], 4)

    def test_constants_are_read(self):
        values = []
        for row in self.interpreter.get_tensor_details():
            if row['index'] not in (self.x, self.y):
                try:
                    values.append(self.interpreter.get_tensor(row['index']))
                except ValueError as error:
                    self.assertIn('allocate_tensors', str(error))  # the other output
        np.testing.assert_array_equal(values[0], np.arange(6).reshape(2, 3))

    def test_intermediate_tensors(self):
        content = models.converted('conv_classifier')
        plain = Interpreter(model_content=content)
        keeping = Interpreter(model_content=content, experimental_preserve_all_tensors=True)
        ports = {row['index'] for row in plain.get_input_details() + plain.get_output_details()}
        refused = read = 0
        for interpreter in (plain, keeping):
            interpreter.allocate_tensors()
            interpreter.set_tensor(interpreter.get_input_details()[0]['index'], models.pictures(1)[0][0])
            interpreter.invoke()
        for row in plain.get_tensor_details():
            if row['index'] in ports:
                continue
            value = keeping.get_tensor(row['index'])
            read += value.size > 0
            try:
                np.testing.assert_array_equal(plain.get_tensor(row['index']), value)  # a constant
            except ValueError as error:
                self.assertIn('experimental_preserve_all_tensors=True', str(error))
                refused += 1
        self.assertGreater(refused, 2)
        self.assertGreater(read, refused)


class Signatures(unittest.TestCase):
    def test_list_and_runners(self):
        interpreter = Interpreter(model_content=models.two_signatures())
        self.assertEqual(interpreter.get_signature_list(), {'negate': {'inputs': ['x'], 'outputs': ['y']},
                                                            'square': {'inputs': ['x'], 'outputs': ['y']}})
        with self.assertRaisesRegex(ValueError, 'signature_key is None and model has 2'):
            interpreter.get_signature_runner()
        with self.assertRaisesRegex(ValueError, 'Invalid signature_key'):
            interpreter.get_signature_runner('cube')
        interpreter.allocate_tensors()
        x = interpreter.get_input_details()[0]['index']
        interpreter.set_tensor(x, np.array([1, 2], np.float32))
        square = interpreter.get_signature_runner('square')
        for size in (3, 5):
            value = np.arange(size, dtype=np.float32)
            np.testing.assert_array_equal(square(x=value)['y'], value * value)
        self.assertEqual(square.get_input_details()['x']['shape'].tolist(), [5])
        self.assertEqual(square.get_output_details()['y']['shape'].tolist(), [5])
        interpreter.invoke()  # its input is kept
        np.testing.assert_array_equal(interpreter.get_tensor(interpreter.get_output_details()[0]['index']), [-1, -2])
        with self.assertRaisesRegex(ValueError, 'expected x'):
            square(z=1)
        with self.assertRaisesRegex(ValueError, 'Got value of type float64'):
            square(x=np.zeros(2))

    def test_state_is_shared_and_reset(self):
        interpreter = Interpreter(model_content=models.converted('counter'))
        runner = interpreter.get_signature_runner('serving_default')
        value, = ({name: np.ones([max(1, d) for d in row['shape']], row['dtype'])
                   for name, row in runner.get_input_details().items()},)
        first, second = runner(**value), runner(**value)
        self.assertTrue(any(not np.array_equal(first[key], second[key]) for key in first), (first, second))
        interpreter.reset_all_variables()
        again = runner(**value)
        for key, expected in first.items():
            np.testing.assert_array_equal(again[key], expected)


class Arguments(WithFolder):
    def runners(self, model=None, **arguments):
        interpreter = Interpreter(model_content=model or models.converted('conv_classifier'), **arguments)
        interpreter.allocate_tensors()
        return {re.sub(r' .*', '', row['runner']) for row in interpreter._session.report()['placements']}

    def test_delegates(self):
        self.assertIn('xnnpack', self.runners())
        for kind in (OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, OpResolverType.BUILTIN_REF):
            self.assertEqual(self.runners(experimental_op_resolver_type=kind), {'fusebox.cpu'})
        self.assertIn('xnnpack', self.runners(experimental_delegates=[load_delegate('xnnpack')]))
        plugin = os.path.join(os.environ['FUSEBOX_PLUGIN_PATH'], 'fusebox.xnnpack')
        if os.path.isdir(plugin):
            self.assertIn('xnnpack', self.runners(experimental_delegates=[load_delegate(plugin)]))
        with self.assertRaisesRegex(ValueError, r'is neither a delegate \(.*xnnpack.* nor a library that can be loaded'):
            load_delegate('libedgetpu.so.1')
        with self.assertRaisesRegex(ValueError, 'has no function tflite_plugin_create_delegate'):
            load_delegate('libc.so.6')
        with self.assertRaisesRegex(ValueError, 'unknown|options'):
            self.runners(experimental_delegates=[load_delegate('xnnpack', {'nonsense': 1})])

    def test_external_delegates(self):
        vendor = os.environ['FUSEBOX_VENDOR']
        self.assertEqual(self.runners(models.add_model(), experimental_delegates=[load_delegate(vendor)]), {'tflite'})
        refused = Interpreter(model_content=models.add_model(),
                              experimental_delegates=[load_delegate(vendor, {'nonsense': 1})])
        refused.allocate_tensors()
        refused.invoke()
        self.assertIn('an unknown option', json.dumps(refused._session.model.report()))

    def test_threads_and_models(self):
        self.runners(num_threads=2)
        for threads in (0, -1, 'two'):
            with self.assertRaisesRegex(ValueError, 'num_threads'):
                self.runners(num_threads=threads)
        for arguments in ({}, {'model_path': 'a', 'model_content': b'b'}):
            with self.assertRaisesRegex(ValueError, 'model_path or model_content'):
                Interpreter(**arguments)
        with self.assertRaises(ValueError):
            Interpreter(model_path=self.path('none.tflite'))
        with self.assertRaisesRegex(ValueError, 'registerers'):
            fusebox.lite.InterpreterWithCustomOps(['Register'], model_content=models.add_model())


class Text(unittest.TestCase):
    def test_strings(self):
        interpreter = Interpreter(model_content=models.text_model())
        row, = interpreter.get_input_details()
        self.assertIs(row['dtype'], np.bytes_)
        interpreter.allocate_tensors()
        interpreter.set_tensor(row['index'], np.array(['a', 'bc'], object))
        interpreter.invoke()
        out = interpreter.get_tensor(interpreter.get_output_details()[0]['index'])
        self.assertEqual(out.tolist(), [[b'a', b'bc']])


if __name__ == '__main__':
    unittest.main()
