# SPDX-License-Identifier: Apache-2.0
"""Memory of the process: nothing grows from cycle to cycle, and large arrays are not copied."""
import gc
import os
import unittest

import numpy as np

import fusebox
import models
from fusebox.lite import Interpreter

SANITIZED = bool(os.environ.get('FUSEBOX_SANITIZE'))


def resident():
    """Bytes of the process that are in memory now."""
    with open('/proc/self/statm', encoding='ascii') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')


@unittest.skipIf(SANITIZED, 'sanitizers keep freed memory')
class Memory(unittest.TestCase):
    def test_a_thousand_cycles_do_not_grow(self):
        content = models.converted('conv_classifier')
        picture = np.zeros((1, 16, 16, 3), np.float32)

        def cycle():
            with fusebox.Session(fusebox.Model(content)) as session:
                session.run(picture)
            interpreter = Interpreter(model_content=content)
            interpreter.allocate_tensors()
            interpreter.get_tensor_details()
            interpreter.invoke()
        for _ in range(200):
            cycle()
        gc.collect()
        before = resident()
        for _ in range(1000):
            cycle()
        gc.collect()
        grown = resident() - before
        print(f'1000 cycles: {grown / 1024:.0f} KB more')
        self.assertLess(grown, 2_000_000)

    def test_errors_do_not_grow(self):
        session = fusebox.Session(models.add_model())

        def fail():
            for call in (lambda: session.select('none'), lambda: session.resize('x', [1, 1, 1]),
                         lambda: fusebox.Model(b'none')):
                with self.assertRaises(fusebox.Error):
                    call()
        for _ in range(500):
            fail()
        before = resident()
        for _ in range(5000):
            fail()
        self.assertLess(resident() - before, 2_000_000)

    def test_bound_arrays_of_100_mb_are_not_copied(self):
        session = fusebox.Session(fusebox.Model(models.large_model(), delegates=[]))
        x, y = fusebox.empty((25, 1_000_000)), fusebox.empty((25, 1_000_000))
        x[...] = -3
        y[...] = 0
        before = resident()
        session.bind_input('x', x)
        session.bind_output('y', y)
        session.invoke()
        grown = resident() - before
        print(f'bound: {grown / 1e6:.1f} MB more')
        self.assertTrue((y == 3).all())
        self.assertLess(grown, 20_000_000)

    def test_inputs_and_outputs_of_100_mb_are_used_in_place(self):
        session = fusebox.Session(fusebox.Model(models.large_model(), delegates=[]))
        session.input('x')[...] = -3
        session.invoke()
        before = resident()
        view = session.output('y')
        self.assertEqual(view[24, 999_999], 3)
        self.assertLess(resident() - before, 20_000_000)

    def test_models_of_bytes_are_not_copied(self):
        rng = np.random.default_rng(1)
        content = models.weights_model()
        self.assertGreater(len(content), 40_000_000)
        before = resident()
        session = fusebox.Session(fusebox.Model(content, delegates=[]))
        grown = resident() - before
        print(f'a model of {len(content) / 1e6:.0f} MB: {grown / 1e6:.1f} MB more')
        self.assertLess(grown, 20_000_000)
        x = rng.standard_normal((1, 10_000_000)).astype(np.float32)
        np.testing.assert_array_equal(session.run(x)['y'], x + 1)


if __name__ == '__main__':
    unittest.main()
