# SPDX-License-Identifier: Apache-2.0
"""multiprocessing: sessions run in the children of processes that ran them."""
import concurrent.futures
import multiprocessing
import os
import threading
import time
import unittest

import numpy as np

import fusebox
import models
from fusebox.lite import Interpreter

ROUNDS = 200
SECONDS = 120
PICTURE = np.linspace(-1, 1, 768, dtype=np.float32).reshape(1, 16, 16, 3)
SESSION = None  # inherited by forked children


def score(_):
    return SESSION.run(PICTURE)['probabilities'] if SESSION is not None else None


def open_and_score(content):
    return fusebox.Session(content, threads=2).run(PICTURE)['probabilities']


def score_with(session):
    return session.run(PICTURE)['probabilities']


def in_child(work):
    """The exit status of `work`, which returns whether all is well, in a forked child."""
    child = os.fork()
    if child == 0:
        import signal  # pylint: disable=import-outside-toplevel
        signal.alarm(SECONDS)
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1]


class Forks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.content = models.converted('conv_classifier')
        cls.expected = open_and_score(cls.content)

    def session(self, **model):
        session = fusebox.Session(fusebox.Model(self.content, **model), threads=2)
        self.name = session.outputs[0].name
        return session

    def runs(self, session):
        return np.allclose(session.run(PICTURE)[self.name], self.expected, atol=1e-5)

    def test_children_run_sessions_before_and_after_the_parent(self):
        for delegates in ([], None):
            session = self.session(delegates=delegates)
            for round_ in range(ROUNDS // 2):
                self.assertEqual(in_child(lambda: self.runs(session)), 0, (delegates, round_))
                if round_ >= 10:
                    self.assertTrue(self.runs(session))

    def test_children_free_sessions_and_open_others(self):
        session = self.session()
        self.runs(session)

        def work():
            session.close()
            return self.runs(self.session())
        self.assertEqual(in_child(work), 0)

    def test_state_is_inherited(self):
        interpreter = Interpreter(model_content=models.converted('counter'), num_threads=2)
        runner = interpreter.get_signature_runner('serving_default')
        arguments = {name: np.ones([max(1, d) for d in row['shape']], row['dtype'])
                     for name, row in runner.get_input_details().items()}
        runner(**arguments)

        def next_values():
            return {name: value.tolist() for name, value in runner(**arguments).items()}
        reader, writer = os.pipe()
        self.assertEqual(in_child(lambda: os.write(writer, repr(next_values()).encode()) > 0), 0)
        self.assertEqual(os.read(reader, 10000).decode(), repr(next_values()))

    def test_a_fork_during_a_run_is_an_error_in_the_child(self):
        session = fusebox.Session(fusebox.Model(models.long_model(), delegates=[]), threads=2)
        thread = threading.Thread(target=lambda: self.assertRaises(fusebox.Error, session.invoke))
        thread.start()
        while session._lock.acquire(blocking=False):  # until the run has it
            session._lock.release()
        time.sleep(0.01)

        def work():
            try:
                session.invoke()
            except fusebox.Error as error:
                return 'forked while another thread ran this session' in str(error)
            return False
        statuses = [in_child(work) for _ in range(3)]
        session.cancel()
        thread.join()
        self.assertEqual(statuses, [0, 0, 0])

    def pool(self, method):
        return concurrent.futures.ProcessPoolExecutor(4, multiprocessing.get_context(method))

    def test_pools_of_every_kind(self):
        for ran in (False, True):
            global SESSION  # pylint: disable=global-statement
            SESSION = self.session()
            if ran:
                self.runs(SESSION)
            for method in ('fork', 'spawn', 'forkserver'):
                with self.subTest(method=method, ran=ran), self.pool(method) as pool:
                    if method == 'fork':
                        results = list(pool.map(score, range(ROUNDS), timeout=SECONDS))
                    else:
                        results = list(pool.map(score_with, [SESSION] * 8, timeout=SECONDS))
                        results += pool.map(open_and_score, [self.content] * 8, timeout=SECONDS)
                    for result in results:
                        np.testing.assert_allclose(result, self.expected, atol=1e-5)


if __name__ == '__main__':
    unittest.main()
