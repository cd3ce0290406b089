# SPDX-License-Identifier: Apache-2.0
"""fusebox.dask on a LocalCluster."""
import importlib.util
import os
import unittest

import numpy as np

import fusebox
import models
from case import WithFolder

HERE = all(importlib.util.find_spec(name) for name in ('dask', 'distributed'))
PANDAS = importlib.util.find_spec('pandas') is not None
if HERE:
    import dask
    import dask.array
    import dask.bag
    import distributed

    import fusebox.dask


def kill_once(block, marker):
    """Ends the worker that runs it, the first time in all workers."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return block
    os._exit(1)


def mapped(folder):
    """KB of this process's mappings of files in a folder: in memory, and its part of them."""
    sizes, inside = {'Rss:': 0, 'Pss:': 0}, False
    with open('/proc/self/smaps', encoding='ascii', errors='replace') as file:
        for line in file:
            word = line.split()[0]
            if not word.endswith(':'):
                inside = folder in line
            elif inside and word in sizes:
                sizes[word] += int(line.split()[1])
    return sizes['Rss:'], sizes['Pss:']


@unittest.skipUnless(HERE, 'python3-dask and python3-distributed are not installed')
class Cluster(WithFolder):
    @classmethod
    def setUpClass(cls):
        dask.config.set({'distributed.comm.timeouts.connect': '60s', 'distributed.scheduler.allowed-failures': 3})
        cls.cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None,
                                               processes=True)
        cls.client = distributed.Client(cls.cluster)
        cls.content = fusebox.convert(models.saved_model('conv_classifier')).content
        cls.images = np.random.default_rng(5).uniform(-1, 1, (96, 16, 16, 3)).astype(np.float32)
        cls.expected = fusebox.Session(cls.content).run(cls.images)['probabilities']

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.cluster.close()

    def close_to(self, result, expected=None):
        np.testing.assert_allclose(result, self.expected if expected is None else expected, rtol=1e-4, atol=1e-4)

    def test_arrays_keep_their_order(self):
        array = dask.array.from_array(self.images, chunks=(20, 16, 16, 2))
        scores = fusebox.dask.predict(self.content, array, batch=7)
        self.assertEqual((scores.shape, scores.dtype), ((96, 10), np.float32))
        self.assertEqual(scores.chunks[0], (20, 20, 20, 20, 16))
        self.close_to(scores.compute())

    def test_a_model_of_a_fixed_batch_fills_the_last_one(self):
        content = fusebox.convert(models.saved_model('conv_classifier'), batch=8).content
        array = dask.array.from_array(self.images[:30], chunks=(15, 16, 16, 3))
        self.close_to(fusebox.dask.predict(content, array).compute(), self.expected[:30])

    def test_a_path_is_opened_by_the_workers(self):
        path = self.written(self.content)
        array = dask.array.from_array(self.images, chunks=(24, 16, 16, 3))
        self.close_to(fusebox.dask.predict(path, array).compute())
        os.remove(path)
        fresh = dask.array.from_array(self.images + 0, chunks=(24, 16, 16, 3))
        with self.assertRaises(fusebox.Error):
            fusebox.dask.predict(path, fresh).compute()

    def test_bags(self):
        bag = dask.bag.from_sequence(list(self.images), npartitions=5)
        self.close_to(np.stack(fusebox.dask.predict(self.content, bag).compute()))

    @unittest.skipUnless(PANDAS, 'python3-pandas is not installed')
    def test_data_frames(self):
        import dask.dataframe  # pylint: disable=import-outside-toplevel
        import pandas  # pylint: disable=import-outside-toplevel
        values = np.random.default_rng(1).uniform(-1, 1, (50, 3))
        frame = dask.dataframe.from_pandas(pandas.DataFrame(values, columns=['a', 'b', 'c']), npartitions=4)
        result = fusebox.dask.predict(models.open_model(), frame).compute()
        np.testing.assert_allclose(result.to_numpy(), np.abs(values), rtol=1e-6)
        self.assertEqual(list(result.columns), ['y_0', 'y_1', 'y_2'])

    def test_workers_of_a_machine_share_packed_weights(self):
        cache = os.path.join(self.folder, 'cache')
        options = {'delegate_options': {'xnnpack': {'weight_cache_path': cache}}}
        rows = np.random.default_rng(2).uniform(-1, 1, (64, 1024)).astype(np.float32)
        model = self.written(models.dense_model())
        fusebox.Session(fusebox.Model(model, **options)).run(rows[:4])  # packs and writes
        array = dask.array.from_array(rows, chunks=(8, 1024))
        done = fusebox.dask.predict(model, array, **options)
        self.close_to(done.compute(), rows @ np.random.default_rng(1).uniform(-1, 1, (1024, 1024)).astype('f4').T)
        found = [sizes for sizes in self.client.run(mapped, cache).values() if sizes[0] > 1000]
        print(f'KB of packed weights in memory, and their part (PSS), per worker: {found}')
        if len(found) < 2:
            self.skipTest('one worker did all the work')
        for resident, part in found:
            self.assertLess(part, 0.6 * resident)

    def test_a_worker_that_dies_loses_nothing(self):
        array = dask.array.from_array(self.images, chunks=(6, 16, 16, 3))
        array = array.map_blocks(kill_once, os.path.join(self.folder, 'killed'), meta=array._meta)
        self.close_to(fusebox.dask.predict(self.content, array).compute())
        self.assertTrue(os.path.exists(os.path.join(self.folder, 'killed')))

    def test_errors_name_the_partition(self):
        bag = dask.bag.from_sequence([np.zeros((16, 16, 3), np.float32)] * 3 + [np.zeros(5, np.float32)], npartitions=4)
        with self.assertRaisesRegex(fusebox.Error, 'partition.*got shape'):
            fusebox.dask.predict(self.content, bag).compute()

    def test_misfits_are_found_before_anything_runs(self):
        array = dask.array.zeros((4, 16, 16, 3), dtype='f8')
        with self.assertRaisesRegex(fusebox.Error, 'use .astype'):
            fusebox.dask.predict(self.content, array)
        with self.assertRaisesRegex(fusebox.Error, 'outputs y, z; name one'):
            fusebox.dask.predict(models.add_model(), dask.array.zeros((2, 3), dtype='f4'))
        with self.assertRaisesRegex(fusebox.Error, 'expected a Dask array'):
            fusebox.dask.predict(self.content, self.images)


if __name__ == '__main__':
    unittest.main()
