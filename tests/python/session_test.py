# SPDX-License-Identifier: Apache-2.0
"""Models, sessions and plugins of the package."""
import gc
import os
import pickle
import subprocess
import sys
import threading
import time
import unittest

import numpy as np

import fusebox
import models
from case import WithFolder


class Models(WithFolder):
    def test_open_from_paths_bytes_and_views(self):
        content = models.add_model()
        path = self.written(content)
        for source in (path, content, bytearray(content), memoryview(content), np.frombuffer(content, np.uint8)):
            model = fusebox.Model(source)
            self.assertEqual(model.signatures, {'add': None})
            self.assertEqual(model.content, content)
        self.assertEqual(fusebox.Model(path).path, path)
        self.assertIsNone(fusebox.Model(content).path)

    def test_report_and_delegates(self):
        path = self.written(models.add_model())
        runners = {row['runner'] for row in fusebox.Model(path, delegates=[]).report()['placements']}
        self.assertEqual(runners, {'fusebox.cpu'})
        with self.assertRaisesRegex(TypeError, 'delegates is a list'):
            fusebox.Model(path, delegates='xnnpack')
        for delegates in (['xnnpack'], [('xnnpack', {})], [{'name': 'xnnpack'}]):
            runners = [row['runner'] for row in fusebox.Model(path, delegates=delegates).report()['placements']]
            self.assertTrue(any('xnnpack' in runner for runner in runners), runners)

    def test_errors_have_a_status_and_the_place(self):
        with self.assertRaises(fusebox.Error) as caught:
            fusebox.Model(self.path('none.tflite'))
        self.assertEqual(caught.exception.status, fusebox.Status.NOT_FOUND)
        self.assertIn(self.path('none.tflite'), str(caught.exception))
        self.assertIsInstance(caught.exception, (ValueError, RuntimeError))
        with self.assertRaisesRegex(fusebox.Error, 'unknown key "fluse"|damaged|not a'):
            fusebox.Model(b'this is no model' * 8)
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((str(again), again.status), (str(caught.exception), fusebox.Status.NOT_FOUND))

    def test_bytes_outlive_the_model_while_a_session_or_a_view_uses_them(self):
        content = models.add_model()
        session = fusebox.Session(fusebox.Model(bytes(bytearray(content))))
        del content
        gc.collect()
        ones = np.ones((2, 3), np.float32)
        self.assertEqual(session.run(ones)['y'][1, 2], 6)
        view = session.output('y')
        session.close()
        gc.collect()
        self.assertEqual(view[1, 2], 6)  # keeps the memory

    def test_a_registry_lists_and_limits_plugins(self):
        found = {row['id']: row['state'] for row in fusebox.Registry().plugins}
        self.assertEqual(found['fusebox.xnnpack'], 'ok')
        self.assertTrue(fusebox.Registry().searched)
        registry = pickle.loads(pickle.dumps(fusebox.Registry({'deny': ['fusebox.xnnpack']})))
        self.assertEqual({row['id']: row['state'] for row in registry.plugins}['fusebox.xnnpack'], 'denied')
        path = self.written(models.add_model())
        runners = {row['runner'] for row in fusebox.Model(path, registry=registry).report()['placements']}
        self.assertEqual(runners, {'fusebox.cpu'})
        with self.assertRaisesRegex(fusebox.Error, 'did you mean "deny"'):
            fusebox.Registry({'denny': []})
        with open(self.path('fusebox.json'), 'w', encoding='utf-8') as file:
            file.write('{"deny": ["fusebox.rnn"]}')
        listed = fusebox.Registry(file=self.path('fusebox.json')).plugins
        self.assertEqual({row['id']: row['state'] for row in listed}['fusebox.rnn'], 'denied')


class Sessions(WithFolder):
    def setUp(self):
        super().setUp()
        self.session = fusebox.Session(models.add_model())
        self.x = np.arange(6, dtype=np.float32).reshape(2, 3)

    def test_values_by_name_by_order_and_alone(self):
        for inputs in ({'x': self.x}, self.x, self.x.tolist(), np.asfortranarray(self.x), {0: self.x}):
            out = self.session.run(inputs)
            np.testing.assert_array_equal(out['y'], 2 * self.x)
            np.testing.assert_array_equal(out['z'], 2 * self.x * self.x)
        np.testing.assert_array_equal(self.session.run()['y'], 2 * self.x)  # inputs keep their values

    def test_results_are_copies_and_views_are_not(self):
        first = self.session.run(self.x)['y']
        view = self.session.output('y')
        self.session.run(self.x + 1)
        np.testing.assert_array_equal(first, 2 * self.x)
        np.testing.assert_array_equal(view, 2 * self.x + 1)
        with self.assertRaises(ValueError):
            view[0, 0] = 1
        self.session.input('x')[...] = 0
        np.testing.assert_array_equal(self.session.run()['y'], self.x)

    def test_wrong_values_are_refused(self):
        for value, why in ((self.x.astype(np.float64), 'got an array of float64, expected float32'),
                           (self.x[0], r'got shape \[3\], expected \[2, 3\]'),
                           (self.x[:, :2], r'got shape \[2, 2\]'), ([['a', 'b', 'c']] * 2, 'not float32'),
                           (self.x + 1j, 'complex')):
            with self.assertRaisesRegex(fusebox.Error, why):
                self.session.run(value)
        with self.assertRaisesRegex(fusebox.Error, "no input 'q'; inputs: x"):
            self.session.run({'q': 1})
        with self.assertRaisesRegex(fusebox.Error, 'no input 1; there are 1'):
            self.session.set_input(1, self.x)
        with self.assertRaisesRegex(fusebox.Error, 'no value yet; run'):
            fusebox.Session(self.session.model).output('y')

    def test_open_dimensions_follow_the_values(self):
        session = fusebox.Session(models.open_model())
        self.assertEqual(session.inputs[0].shape, (-1, 3))
        for rows in (2, 0, 5, 5, 1):
            value = -np.ones((rows, 3), np.float32)
            out = session.run(value)
            np.testing.assert_array_equal(out['y'], -value)
        session.resize('x', [4, 3])
        session.prepare()
        self.assertEqual(session.outputs[0].shape, (4, 3))
        np.testing.assert_array_equal(session.input('x'), np.zeros((4, 3)))

    def test_fixed_dimensions_change_by_resize_only(self):
        session = fusebox.Session(models.two_signatures())
        session.resize('x', [5])
        np.testing.assert_array_equal(session.run({'x': np.arange(5, dtype=np.float32)})['y'], -np.arange(5))
        with self.assertRaises(fusebox.Error):
            session.resize('x', [2, 2])

    def test_signatures(self):
        session = fusebox.Session(models.two_signatures())
        self.assertEqual(session.signature, 'negate')
        self.assertEqual(list(session.model.signatures), ['negate', 'square'])
        session.select('square')
        np.testing.assert_array_equal(session.run({'x': [3, 4]})['y'], [9, 16])
        with self.assertRaisesRegex(fusebox.Error, "no signature 'q'"):
            session.select('q')
        again = pickle.loads(pickle.dumps(session))
        self.assertEqual(again.signature, 'square')

    def test_bound_memory_is_used_in_place(self):
        x, y = fusebox.empty((2, 3)), fusebox.empty((2, 3))
        self.assertEqual(x.ctypes.data % 64, 0)
        self.session.bind_input('x', x)
        self.session.bind_output('y', y)
        x[...] = self.x
        self.session.invoke()
        np.testing.assert_array_equal(y, 2 * self.x)
        self.session.set_input('x', self.x + 1)  # unbinds: x keeps its values
        self.session.invoke()
        np.testing.assert_array_equal(x, self.x)
        self.session.bind_output('y', None)
        with self.assertRaisesRegex(fusebox.Error, 'contiguous arrays of float32'):
            self.session.bind_input('x', np.zeros((2, 3)))
        with self.assertRaisesRegex(fusebox.Error, 'got shape'):
            self.session.bind_input('x', fusebox.empty((3, 2)))

    def test_resizing_a_bound_input_unbinds_it(self):
        session = fusebox.Session(models.open_model())
        x = fusebox.empty((2, 3))
        x[...] = -7
        session.bind_input('x', x)
        np.testing.assert_array_equal(session.run()['y'], np.full((2, 3), 7))
        session.resize('x', (2, 3))
        del x
        gc.collect()
        np.testing.assert_array_equal(session.run()['y'], np.zeros((2, 3)))

    def test_values_times_and_reports(self):
        session = fusebox.Session(fusebox.Model(models.add_model(), delegates=[]), keep_values=True, profile=True)
        session.run(self.x)
        name = session.model.report()['placements'][0]
        self.assertEqual(name['op'], 'ADD')
        self.assertEqual([row['op'] for row in session.times()], ['ADD', 'MUL'])
        self.assertEqual(session.report()['threads'], 1)
        self.assertIn('MUL', session.explain())
        with self.assertRaisesRegex(fusebox.Error, 'no value'):
            session.value('nowhere')

    def test_a_closed_session_says_so(self):
        with self.session as session:
            session.run(self.x)
        with self.assertRaisesRegex(fusebox.Error, 'the session is closed'):
            self.session.run(self.x)
        self.session.cancel()  # nothing to cancel

    def test_threads_beyond_the_cores_are_noticed(self):
        report = fusebox.Session(self.session.model, threads=1000).report()
        self.assertLessEqual(report['threads'], len(os.sched_getaffinity(0)))
        self.assertRegex(' '.join(report['notices']), r'runs use \d+ threads? instead of 1000: more than the process has')
        self.assertEqual(fusebox.Session(self.session.model, threads=1).report()['notices'], [])

    def test_a_pool_is_shared(self):
        pool = fusebox.ThreadPool(2)
        sessions = [fusebox.Session(self.session.model, pool=pool) for _ in range(3)]
        for session in sessions:
            np.testing.assert_array_equal(session.run(self.x)['y'], 2 * self.x)
        self.assertLessEqual(pool.threads, 2)


class Threads(WithFolder):
    def test_other_threads_run_during_a_run_and_cancel_it(self):
        session = fusebox.Session(models.long_model())
        failures = []

        def work():
            try:
                session.invoke()
            except fusebox.Error as error:
                failures.append(error.status)
        thread = threading.Thread(target=work)
        thread.start()
        beats = 0
        while thread.is_alive() and beats < 20:
            time.sleep(0.001)
            beats += 1
        session.cancel()
        thread.join()
        self.assertEqual(beats, 20)
        self.assertEqual(failures, [fusebox.Status.CANCELLED])
        session.reset_state()
        session.close()

    def test_sessions_of_many_threads(self):
        model = fusebox.Model(models.add_model())
        wrong = []

        def work(seed):
            session = fusebox.Session(model)
            for i in range(200):
                x = np.full((2, 3), seed * 1000 + i, np.float32)
                if session.run(x)['y'][0, 0] != x[0, 0]:
                    wrong.append((seed, i))
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_one_session_in_many_threads_is_serial(self):
        session = fusebox.Session(models.add_model())
        wrong = []

        def work(value):
            for _ in range(200):
                if session.run(np.full((2, 3), value, np.float32))['y'][0, 0] != value:
                    wrong.append(value)
        threads = [threading.Thread(target=work, args=(value,)) for value in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Logging(WithFolder):
    def test_warnings_are_logged(self):
        with self.assertLogs('fusebox.config', 'WARNING') as caught:
            fusebox.Registry({'prefer': {'ADD': ['com.acme.none']}})
        self.assertIn('com.acme.none', caught.output[0])

    def test_lines_of_the_library_go_to_logging(self):
        program = ("import logging; logging.basicConfig(level=logging.DEBUG, format='%(levelname)s %(name)s %(message)s')\n"
                   f'import fusebox; fusebox.Model({self.written(models.add_model())!r})')
        done = subprocess.run([sys.executable, '-c', program], env={**os.environ, 'FUSEBOX_LOG': 'all'}, check=True,
                              capture_output=True, text=True)
        self.assertRegex(done.stderr, r'(?m)^DEBUG fusebox\.\w+ ')


class Strings(WithFolder):
    def test_strings_go_in_and_out(self):
        session = fusebox.Session(models.text_model())
        out = session.run({'text': ['one', b'two', '']})
        self.assertEqual(out['same'].tolist(), [[b'one', b'two', b'']])
        with self.assertRaisesRegex(fusebox.Error, 'neither str nor bytes'):
            session.run({'text': [1]})


if __name__ == '__main__':
    unittest.main()
