# SPDX-License-Identifier: Apache-2.0
"""fusebox.lite.TFLiteConverter, with stand-ins for objects of tf.keras that save real files."""
import sys
import unittest

import numpy as np

import fusebox
import fusebox.lite as tflite
import models
import stand_in
from case import WithFolder


class Float16:
    as_numpy_dtype = np.float16  # as tf.float16 has it


def dataset():
    for picture in models.pictures():
        yield list(picture)


class Sources(WithFolder):
    def test_saved_models(self):
        folder = models.saved_model('keras_lstm')
        content = tflite.TFLiteConverter.from_saved_model(folder).convert()
        self.assertIsInstance(content, bytes)
        interpreter = tflite.Interpreter(model_content=content)
        interpreter.allocate_tensors()
        interpreter.invoke()
        keys = list(interpreter.get_signature_list())
        tflite.TFLiteConverter.from_saved_model(folder, signature_keys=keys, tags=['serve']).convert()
        with self.assertRaisesRegex(ValueError, 'only the graph with the tag "serve"'):
            tflite.TFLiteConverter.from_saved_model(folder, tags=['gpu'])
        with self.assertRaises(ValueError):
            tflite.TFLiteConverter.from_saved_model(folder, signature_keys=['none']).convert()

    def test_keras_models_are_saved_by_themselves(self):
        model = stand_in.Sequential()
        content = tflite.TFLiteConverter.from_keras_model(model).convert()
        self.assertEqual(model.saved, ['model.keras'])
        model.save(self.path('model.keras'))
        self.assertEqual(content, fusebox.convert(self.path('model.keras')).content)
        content = tflite.TFLiteConverter.from_keras_model(stand_in.CustomModel('keras_lstm')).convert()
        expected = fusebox.convert(models.saved_model('keras_lstm')).content
        self.assertTrue(fusebox.compare(content, expected, atol=0, rtol=0))

    def test_keras_models_that_cannot_be_saved(self):
        class Exported(stand_in.CustomModel):
            def save(self, path):
                raise NotImplementedError('get_config')

        class Broken(stand_in.Sequential):
            def save(self, path):
                with open(path, 'wb') as file:
                    file.write(b'not a model')
        self.assertTrue(tflite.TFLiteConverter.from_keras_model(Exported('keras_lstm')).convert())
        with self.assertRaisesRegex(ValueError, 'has neither save nor export'):
            tflite.TFLiteConverter.from_keras_model(object())
        with self.assertRaisesRegex(ValueError, 'model.keras'):
            tflite.TFLiteConverter.from_keras_model(Broken()).convert()

    def test_frozen_graphs(self):
        with open(self.path('frozen.pbtxt'), 'w', encoding='utf-8') as file:
            file.write('''
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: -1 } dim { size: 3 } } } } }
node { name: "y" op: "Abs" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 1087 }
''')
        converter = tflite.TFLiteConverter.from_frozen_graph(self.path('frozen.pbtxt'), ['x'], ['y'],
                                                             input_shapes={'x': [2, 3]})
        out = fusebox.Session(converter.convert()).run(-np.ones((2, 3), np.float32))
        np.testing.assert_array_equal(out['y'], np.ones((2, 3)))

    def test_concrete_functions_are_saved_by_their_tensorflow(self):
        with stand_in.TensorFlow('conv_classifier') as tensorflow:
            owner, function = object(), object()
            content = tflite.TFLiteConverter.from_concrete_functions([function], owner).convert()
        self.assertEqual(tensorflow.saved, [(owner, function)])
        image = np.linspace(-1, 1, 768, dtype=np.float32).reshape(1, 16, 16, 3)
        direct = tflite.TFLiteConverter.from_saved_model(models.saved_model('conv_classifier')).convert()
        results = [fusebox.Session(model).run(image)['probabilities'] for model in (content, direct)]
        np.testing.assert_array_equal(*results)

    def test_concrete_functions_need_their_owner_and_tensorflow(self):
        with self.assertRaisesRegex(ValueError, 'trackable_obj is missing'):
            tflite.TFLiteConverter.from_concrete_functions([print])
        with self.assertRaisesRegex(ValueError, 'got 2 functions, expected one'):
            tflite.TFLiteConverter.from_concrete_functions([print, print], object())
        if 'tensorflow' not in sys.modules:
            with self.assertRaisesRegex(ValueError, 'TensorFlow, which made the function'):
                tflite.TFLiteConverter.from_concrete_functions([print], object()).convert()
        with stand_in.TensorFlow('no such sample'), self.assertRaisesRegex(ValueError, 'tf.saved_model.save failed'):
            tflite.TFLiteConverter.from_concrete_functions([print], object()).convert()


class Options(unittest.TestCase):
    def setUp(self):
        self.converter = tflite.TFLiteConverter.from_saved_model(models.saved_model('conv_classifier'))
        self.plain = len(self.converter.convert())

    def test_quantization(self):
        self.converter.optimizations = [tflite.Optimize.DEFAULT]
        dynamic = self.converter.convert()
        self.assertLess(len(dynamic), self.plain)
        for float16 in (np.float16, 'float16', Float16):
            self.converter.target_spec.supported_types = [float16]
            half = self.converter.convert()
            self.assertIn('DEQUANTIZE', self.converter.report['ops_after'])
        self.assertNotEqual(half, dynamic)
        self.converter.target_spec.supported_types = []
        for samples in (dataset, tflite.RepresentativeDataset(dataset)):
            self.converter.representative_dataset = samples
            self.assertIn('QUANTIZE', fusebox.inspect(self.converter.convert()).document['ops'])

    def test_full_integer(self):
        self.converter.optimizations = [tflite.Optimize.DEFAULT]
        self.converter.target_spec.supported_ops = [tflite.OpsSet.TFLITE_BUILTINS_INT8]
        with self.assertRaisesRegex(ValueError, 'representative_dataset'):
            self.converter.convert()
        self.converter.representative_dataset = dataset
        self.assertTrue(self.converter.convert())

    def test_bytes_at_the_ends(self):
        self.converter.optimizations = [tflite.Optimize.DEFAULT]
        self.converter.representative_dataset = dataset
        for dtype in (np.int8, np.uint8):
            self.converter.inference_input_type = self.converter.inference_output_type = dtype
            interpreter = tflite.Interpreter(model_content=self.converter.convert())
            interpreter.allocate_tensors()
            for details in (*interpreter.get_input_details(), *interpreter.get_output_details()):
                self.assertEqual(details['dtype'], dtype)
                self.assertGreater(details['quantization'][0], 0)
            interpreter.invoke()

    def test_words(self):
        self.converter.optimizations = [tflite.Optimize.DEFAULT]
        self.converter.target_spec.supported_ops = [
            tflite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8]
        with self.assertRaisesRegex(ValueError, 'representative_dataset'):
            self.converter.convert()
        self.converter.representative_dataset = dataset
        self.converter.inference_input_type = self.converter.inference_output_type = np.int16
        interpreter = tflite.Interpreter(model_content=self.converter.convert())
        interpreter.allocate_tensors()
        for details in (*interpreter.get_input_details(), *interpreter.get_output_details()):
            self.assertEqual(details['dtype'], np.int16)
        self.converter.inference_input_type = np.int8
        with self.assertRaisesRegex(fusebox.Error, 'expected float32 or int16'):
            self.converter.convert()

    def test_what_has_no_equivalent_raises(self):
        def said(**settings):
            converter = tflite.TFLiteConverter.from_saved_model(models.saved_model('conv_classifier'))
            with self.assertRaises(fusebox.Error) as caught:
                for name, value in settings.items():
                    setattr(converter, name, value)
                converter.convert()
            return str(caught.exception)
        self.assertIn('no equivalent', said(inference_stats=True))
        self.assertIn('no equivalent', said(optimisations=[tflite.Optimize.DEFAULT]))
        self.assertIn('sparse', said(optimizations=[tflite.Optimize.EXPERIMENTAL_SPARSITY]))
        stablehlo = tflite.TargetSpec([tflite.OpsSet.EXPERIMENTAL_STABLEHLO_OPS])
        self.assertIn('no equivalent', said(target_spec=stablehlo))
        self.assertIn('expected [float16]', said(target_spec=tflite.TargetSpec(supported_types=[np.int16])))

    def test_settings_without_effect_are_accepted(self):
        self.converter.experimental_new_converter = True
        self.converter._experimental_lower_tensor_list_ops = False
        self.converter.target_spec.supported_ops = [tflite.OpsSet.TFLITE_BUILTINS, tflite.OpsSet.SELECT_TF_OPS]
        self.assertEqual(len(self.converter.convert()), self.plain)


class CustomOps(unittest.TestCase):
    def test_they_are_inlined_unless_allowed(self):
        converter = tflite.TFLiteConverter.from_saved_model(models.saved_model('keras3_gru'))
        with self.assertLogs('fusebox.lite', 'WARNING'):
            inlined = fusebox.inspect(converter.convert()).document['ops']
        converter.allow_custom_ops = True
        fused = fusebox.inspect(converter.convert()).document['ops']
        self.assertEqual([op for op in inlined if op.startswith('CUSTOM:')], [])
        self.assertEqual([op for op in fused if op.startswith('CUSTOM:')], ['CUSTOM:fusebox.gru'])

    def test_those_without_a_body_are_named(self):
        converter = tflite.TFLiteConverter.from_saved_model(models.saved_model('custom_fused'))
        with self.assertRaisesRegex(ValueError, r'needs the custom op my_custom_fused_op \(.*; set allow_custom_ops'):
            converter.convert()
        converter.allow_custom_ops = True
        self.assertIn('CUSTOM:my_custom_fused_op', fusebox.inspect(converter.convert()).document['ops'])


if __name__ == '__main__':
    unittest.main()
