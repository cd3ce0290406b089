# SPDX-License-Identifier: Apache-2.0
"""The calls of TensorFlow's guides as files in blocks/: with stand-ins for its objects, and where TensorFlow is
installed, with the real ones."""
import importlib.util
import os
import pathlib
import unittest

import fusebox
import models
import stand_in
from case import WithFolder

BLOCKS = pathlib.Path(__file__).with_name('blocks')
tensorflow = None
if importlib.util.find_spec('tensorflow'):
    import tensorflow  # pylint: disable=import-error


def run_block(name, **variables):
    text = (BLOCKS / name).read_text()
    exec(compile(text, name, 'exec'), variables)  # pylint: disable=exec-used
    return variables


class StandIns(WithFolder):
    def test_keras_lstm(self):
        done = run_block('keras_lstm.py', tf=fusebox, make_model=stand_in.Sequential)
        self.assertEqual(done['model'].saved, ['model.keras'])
        ops = fusebox.inspect(done['tflite_model']).document['ops']
        self.assertEqual(ops.get('UNIDIRECTIONAL_SEQUENCE_LSTM'), 1, ops)

    def test_fused_op(self):
        run_block('fused_op.py', tf=fusebox, output_path=self.path(),
                  make_saved_model=lambda: models.saved_model('custom_fused'))
        self.assertIn('CUSTOM:my_custom_fused_op', fusebox.inspect(self.path()).document['ops'])


@unittest.skipUnless(tensorflow, 'TensorFlow is not installed')
class TensorFlow(WithFolder):
    def test_keras_lstm(self):
        keras = tensorflow.keras
        run_block('keras_lstm.py', tf=fusebox, make_model=lambda: keras.Sequential(
            [keras.Input((5, 4), batch_size=1), keras.layers.LSTM(3, return_sequences=True)]))

    def test_annotated_functions(self):
        annotated = run_block('annotate.py', tf=tensorflow, folder=self.folder)
        run_block('fused_op.py', tf=fusebox, output_path=os.path.join(self.folder, 'fused.tflite'),
                  make_saved_model=lambda: annotated['saved_model_dir'])
        self.assertIn('CUSTOM:my_custom_fused_op', fusebox.inspect(self.path('fused.tflite')).document['ops'])


if __name__ == '__main__':
    unittest.main()
