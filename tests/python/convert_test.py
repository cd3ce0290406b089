# SPDX-License-Identifier: Apache-2.0
"""convert, compare, bench, inspect and the command line."""
import json
import os
import subprocess
import sys
import unittest

import numpy as np

import fusebox
import models
from case import WithFolder


class Convert(WithFolder):
    def test_to_bytes_and_to_a_file_are_equal(self):
        seen = []
        done = fusebox.convert(models.saved_model('keras_lstm'), batch=1, progress=lambda *step: seen.append(step))
        self.assertIsNone(done.path)
        written = fusebox.convert(models.saved_model('keras_lstm'), self.path(), batch=1)
        self.assertIsNone(written.content)
        with open(written.path, 'rb') as file:
            self.assertEqual(file.read(), done.content)
        self.assertEqual([site['fused'] for site in done.report['sites']], [True])
        self.assertIn('1 of 1 composites fused', repr(done))
        self.assertTrue(all(name and number <= total for name, number, total in seen) and len(seen) > 5, seen)

    def test_errors_have_the_report(self):
        with open(self.path('deny.json'), 'w', encoding='utf-8') as file:
            json.dump({'deny': ['fusebox.rnn']}, file)
        with self.assertRaisesRegex(fusebox.Error, 'not fused') as caught:
            fusebox.convert(models.saved_model('keras_lstm'), self.path(), batch=1, require_full_fusion=True,
                            config=self.path('deny.json'))
        self.assertEqual(caught.exception.status, fusebox.Status.UNSUPPORTED)
        self.assertEqual([site['fused'] for site in caught.exception.report['sites']], [False])
        self.assertFalse(os.path.exists(self.path()))
        with self.assertRaisesRegex(fusebox.Error, 'unknown key "batsh"; did you mean "batch"'):
            fusebox.convert(models.saved_model('keras_lstm'), batsh=1)
        with self.assertRaises(fusebox.Error) as caught:
            fusebox.convert(self.path('none'))
        self.assertEqual(caught.exception.status, fusebox.Status.NOT_FOUND)

    def test_calibration_forms_give_the_same_file(self):
        source, samples = models.saved_model('conv_classifier'), [picture for picture, in models.pictures()]

        def converted(calibration):
            return fusebox.convert(source, batch=1, quantize='int8', calibration=calibration).content
        expected = converted(lambda: ({'image': picture} for picture in samples))
        self.assertEqual(converted([[picture] for picture in samples]), expected)
        self.assertEqual(converted(iter([('serving_default', [picture]) for picture in samples])), expected)
        np.save(self.path('image.npy'), np.concatenate(samples))
        self.assertEqual(converted(self.folder), expected)
        self.assertLess(len(expected), len(fusebox.convert(source, batch=1).content))

    def test_bad_calibration_is_refused(self):
        source = models.saved_model('conv_classifier')
        for calibration, why in (([], 'there are no samples'), ([{'a/b': 1}], "'a/b' cannot be named"),
                                 ([[np.zeros((2, 2), np.float32)]], 'in0.0.npy'), ([{'picture': models.pictures(1)[0][0]}], 'image')):
            with self.assertRaisesRegex(fusebox.Error, why):
                fusebox.convert(source, batch=1, quantize='int8', calibration=calibration)

        def broken():
            yield models.pictures(1)[0]
            raise KeyError('of the generator')
        with self.assertRaisesRegex(KeyError, 'of the generator'):
            fusebox.convert(source, batch=1, quantize='int8', calibration=broken)


class Tools(WithFolder):
    def test_compare(self):
        model = fusebox.Model(models.converted('conv_classifier'))
        same = fusebox.compare(model, model.content, seed=3, runs=2)
        self.assertTrue(same)
        self.assertEqual(same.max_absolute, 0)
        int8 = models.converted('conv_classifier', quantize='dynamic')
        different = fusebox.compare(int8, model, atol=0, rtol=0)
        self.assertFalse(different)
        self.assertIn('differs', repr(different))
        self.assertTrue(fusebox.compare(model, with_='none', layers=True, atol=1e-3).layers)
        with self.assertRaisesRegex(fusebox.Error, 'none.tflite'):
            fusebox.compare(model, self.path('none.tflite'))

    def test_bench(self):
        result = fusebox.bench(models.converted('conv_classifier'), num_runs=3, min_secs=0, warmup_min_secs=0, threads=1)
        self.assertEqual(len(result['contestants']), 1)

    def test_inspect_shows_a_page(self):
        model = fusebox.Model(models.add_model())
        shown = fusebox.inspect(model)
        self.assertEqual(shown.document['ops'], {'ADD': 1, 'MUL': 1})
        self.assertIn('ADD', str(shown))
        self.assertTrue(shown.html.lower().startswith('<!doctype html'))
        frame = model._repr_html_()
        self.assertTrue(frame.startswith('<iframe srcdoc="'))
        self.assertNotIn('<script', frame)  # escaped

    def test_the_command_line(self):
        done = subprocess.run([sys.executable, '-m', 'fusebox', 'inspect', self.written(models.add_model()), '--json'],
                              check=True, capture_output=True)
        self.assertEqual(json.loads(done.stdout)['ops'], {'ADD': 1, 'MUL': 1})
        wrong = subprocess.run([sys.executable, '-m', 'fusebox', 'inspekt'], check=False, capture_output=True)
        self.assertEqual(wrong.returncode, 2)


class Installation(WithFolder):
    def said(self, prefix):
        done = subprocess.run([sys.executable, '-c', 'import fusebox; fusebox.version()'], check=False,
                              env={**os.environ, 'FUSEBOX_PREFIX': prefix}, capture_output=True, text=True)
        return done.stderr

    def test_a_missing_library_is_named(self):
        self.assertIn(f'FUSEBOX_PREFIX={self.folder}: has no lib/libfusebox.so.0', self.said(self.folder))

    def test_a_library_without_a_function_is_named(self):
        os.mkdir(self.path('lib'))
        os.symlink(models.PREFIX / 'lib' / 'libfusebox-models.so.0', self.path('lib/libfusebox.so.0'))
        self.assertIn('has no function fusebox_', self.said(self.folder))


if __name__ == '__main__':
    unittest.main()
