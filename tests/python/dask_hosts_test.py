# SPDX-License-Identifier: Apache-2.0
"""fusebox.dask with a scheduler on TCP and workers on two hosts: three network namespaces on one bridge."""
import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import unittest

import numpy as np

import fusebox
import models
from case import WithFolder

HERE = all(importlib.util.find_spec(name) for name in ('dask', 'distributed'))
SCHEDULER = '10.231.77.1'
HOSTS = ('10.231.77.2', '10.231.77.3')

CLIENT = '''
import json, sys, dask.array, distributed, fusebox.dask, numpy
scheduler, folder = sys.argv[1:]
images = numpy.load(folder + '/images.npy')
with open(folder + '/model.tflite', 'rb') as file:
    content = file.read()
client = distributed.Client(scheduler)
client.wait_for_workers(2, timeout=60)
parts = dask.array.from_array(images, chunks=(6, *images.shape[1:]))
scores = client.persist(fusebox.dask.predict(content, parts))
distributed.wait(scores)
hosts = {worker.split('//')[1].split(':')[0] for holders in client.who_has(scores).values() for worker in holders}
numpy.save(folder + '/scores.npy', scores.compute())
print(json.dumps(sorted(hosts)))
'''


def inside(namespace, *command):
    return ['ip', 'netns', 'exec', namespace, *command]


@contextlib.contextmanager
def network(hosts):
    """Namespaces of a scheduler and of hosts, by name. Raises OSError or CalledProcessError where there are none."""
    names = [f'fusebox{os.getpid()}n{i}' for i in range(len(hosts) + 1)]
    hub = names[0]

    def ip(*words, namespace=None):
        command = ['ip', *words]
        subprocess.run(inside(namespace, *command) if namespace else command, check=True, capture_output=True, text=True)
    try:
        for name in names:
            ip('netns', 'add', name)
            ip('link', 'set', 'lo', 'up', namespace=name)
        ip('link', 'add', 'bridge0', 'type', 'bridge', namespace=hub)
        ip('addr', 'add', f'{SCHEDULER}/24', 'dev', 'bridge0', namespace=hub)
        ip('link', 'set', 'bridge0', 'up', namespace=hub)
        for number, (name, address) in enumerate(zip(names[1:], hosts)):
            ip('link', 'add', f'port{number}', 'netns', hub, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
            ip('link', 'set', f'port{number}', 'master', 'bridge0', namespace=hub)
            ip('link', 'set', f'port{number}', 'up', namespace=hub)
            ip('addr', 'add', f'{address}/24', 'dev', 'eth0', namespace=name)
            ip('link', 'set', 'eth0', 'up', namespace=name)
        yield names
    finally:
        for name in names:
            subprocess.run(['ip', 'netns', 'del', name], check=False, capture_output=True)


@unittest.skipUnless(HERE, 'python3-dask and python3-distributed are not installed')
@unittest.skipUnless(os.geteuid() == 0 and shutil.which('ip'), 'network namespaces need root and iproute2')
class TwoHosts(WithFolder):
    def test_share_the_work(self):
        content = fusebox.convert(models.saved_model('conv_classifier')).content
        images = np.random.default_rng(5).uniform(-1, 1, (96, 16, 16, 3)).astype(np.float32)
        np.save(f'{self.folder}/images.npy', images)
        with open(f'{self.folder}/model.tflite', 'wb') as file:
            file.write(content)
        address = f'tcp://{SCHEDULER}:8786'
        with contextlib.ExitStack() as stack:
            try:
                hub, *hosts = stack.enter_context(network(HOSTS))
            except (OSError, subprocess.CalledProcessError) as error:
                self.skipTest(f'this machine has no network namespaces: {error}')

            def start(namespace, *command):
                log = stack.enter_context(open(f'{self.folder}/{namespace}.log', 'wb'))
                process = subprocess.Popen(inside(namespace, sys.executable, '-m', *command), cwd=self.folder, stdout=log,
                                           stderr=log)
                stack.callback(process.wait)
                stack.callback(process.kill)
            start(hub, 'distributed.cli.dask_scheduler', '--host', SCHEDULER, '--port', '8786', '--no-dashboard')
            for namespace in hosts:
                start(namespace, 'distributed.cli.dask_worker', address, '--nthreads', '1', '--no-dashboard', '--no-nanny')
            client = subprocess.run(inside(hub, sys.executable, '-c', CLIENT, address, self.folder), cwd=self.folder,
                                    capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(client.returncode, 0, client.stderr)
        self.assertEqual(json.loads(client.stdout), list(HOSTS))
        expected = fusebox.Session(content).run(images)['probabilities']
        np.testing.assert_allclose(np.load(f'{self.folder}/scores.npy'), expected, rtol=1e-4, atol=1e-4)


if __name__ == '__main__':
    unittest.main()
