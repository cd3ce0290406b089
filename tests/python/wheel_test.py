# SPDX-License-Identifier: Apache-2.0
"""The wheel: what is inside, and that it needs nothing of this build."""
import base64
import csv
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest
import zipfile

import models
from case import WithFolder

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = '''
import json, re, sys
import numpy as np
import fusebox
done = fusebox.convert(sys.argv[1], batch=1)
session = fusebox.Session(done.content)
value = np.zeros(session.inputs[0].shape, np.float32)
session.run(value)
maps = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
print(json.dumps({"runners": [row["runner"] for row in session.report()["placements"]],
                  "plugins": fusebox.Registry().searched, "program": fusebox.program(),
                  "libraries": sorted(maps)}))
'''


@unittest.skipUnless(shutil.which('patchelf'), 'patchelf is not installed')
@unittest.skipIf(os.environ.get('FUSEBOX_SANITIZE'), 'wheels have no sanitizer')
class Wheel(WithFolder):
    def build(self):
        sys.path.insert(0, str(SOURCE / 'python'))
        import build_wheel  # pylint: disable=import-outside-toplevel,import-error
        return self.path(build_wheel.build_wheel(self.folder, {'build': str(models.PREFIX)}))

    def unpack(self, wheel):
        root = pathlib.Path(self.path('site'))
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                path = archive.extract(entry, root)
                os.chmod(path, entry.external_attr >> 16)
        return root

    def said(self, root, *arguments):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(('FUSEBOX_', 'LD_', 'PYTHON'))}
        environment['PYTHONPATH'] = str(root)
        return subprocess.run([sys.executable, *arguments], env=environment, check=True, capture_output=True,
                              text=True, cwd='/').stdout

    def test_a_wheel_stands_alone(self):
        wheel = self.build()
        self.assertRegex(os.path.basename(wheel), r'^fusebox-[\d.]+-py3-none-manylinux_2_\d+_(x86_64|aarch64)\.whl$')
        root = self.unpack(wheel)
        record, = root.glob('*.dist-info/RECORD')
        for name, digest, size in csv.reader(io.StringIO(record.read_text())):
            if digest:
                data = (root / name).read_bytes()
                expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
                self.assertEqual((digest, size), (f'sha256={expected}', str(len(data))), name)
        out = json.loads(self.said(root, '-c', SCRIPT, models.saved_model('keras_lstm')))
        native = root / 'fusebox' / 'native'
        self.assertEqual(out['program'], str(native / 'bin' / 'fusebox'))
        self.assertIn(str(native / 'lib' / 'fusebox' / 'plugins'), out['plugins'])
        self.assertIn('fusebox.rnn', out['runners'])
        ours = [path for path in out['libraries'] if 'fusebox' in path or 'xnnpack' in path.lower() or 'fmt' in path]
        self.assertTrue(ours)
        for path in ours:
            self.assertTrue(path.startswith(str(native)), path)
        self.assertIn('fusebox.xnnpack', self.said(root, '-m', 'fusebox', 'plugin', 'list'))


if __name__ == '__main__':
    unittest.main()
