# SPDX-License-Identifier: Apache-2.0
"""A test case with a folder of its own."""
import os
import unittest

import models


class WithFolder(unittest.TestCase):
    def setUp(self):
        context = models.folder()
        self.folder = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def path(self, name='model.tflite'):
        return os.path.join(self.folder, name)

    def written(self, content):
        """The path of a file with this content."""
        with open(self.path(), 'wb') as file:
            file.write(content)
        return self.path()
