# SPDX-License-Identifier: Apache-2.0
"""Stands in for tf.keras models: objects whose `save` or `export` write real files, and whose `predict` is numpy."""
import os
import shutil
import subprocess
import sys

import numpy as np

import models

INPUTS, UNITS, STEPS = 4, 3, 5


def weight(number, *shape):
    """The weights of write_keras.cc."""
    i = np.arange(np.prod(shape))
    return (((37 * i + 11 * number) % 101 - 50).astype(np.float32) / np.float32(100)).reshape(shape)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Sequential:
    """One LSTM, as keras.Sequential([Input((5, 4), batch_size=1), LSTM(3, return_sequences=True)])."""

    def __init__(self):
        self.saved = []

    def save(self, path):
        self.saved.append(os.path.basename(path))
        subprocess.run([models.PREFIX / 'tests' / 'write_keras', path], check=True)

    def predict(self, x):
        kernel, recurrent, bias = weight(0, INPUTS, 4 * UNITS), weight(1, UNITS, 4 * UNITS), weight(2, 4 * UNITS)
        h = c = np.zeros((len(x), UNITS), np.float32)
        steps = []
        for step in range(x.shape[1]):
            i, f, g, o = np.split(x[:, step] @ kernel + h @ recurrent + bias, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            steps.append(h)
        return np.stack(steps, axis=1)


class CustomModel:
    """A model of a custom class: it has no file of its own, only a SavedModel."""

    def __init__(self, sample):
        self.folder = models.saved_model(sample)

    def export(self, path):
        shutil.copytree(self.folder, path)


class TensorFlow:
    """The module `tensorflow` while it is a context: saved_model.save writes a sample and notes what it is called with."""

    def __init__(self, sample):
        self.sample = sample
        self.saved = []
        self.saved_model = self
        self._before = None

    def save(self, owner, path, signatures):
        self.saved.append((owner, signatures))
        shutil.copytree(models.saved_model(self.sample), path, dirs_exist_ok=True)

    def __enter__(self):
        self._before = sys.modules.get('tensorflow')
        sys.modules['tensorflow'] = self
        return self

    def __exit__(self, *_):
        del sys.modules['tensorflow']
        if self._before is not None:
            sys.modules['tensorflow'] = self._before
