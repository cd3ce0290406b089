# SPDX-License-Identifier: Apache-2.0
"""Stands in for tf.keras models: objects whose `save` or `export` write real files, and whose `predict` is numpy."""
import os
import shutil
import subprocess

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
