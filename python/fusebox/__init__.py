# SPDX-License-Identifier: Apache-2.0
"""Fusebox: converts, fuses, runs and compares .tflite models.

    import fusebox
    session = fusebox.Session('model.tflite', threads=2)
    scores = session.run({'image': pixels})['scores']

fusebox.lite mirrors tf.lite. fusebox.dask runs models on many machines. docs/python.md is the guide.
"""
from . import lite
from ._tensors import Quantization, TensorInfo, empty
from .convert import Conversion, convert
from .errors import Error, Status
from .model import Model, Registry, version
from .session import Session, ThreadPool
from .tools import Comparison, Inspection, bench, compare, inspect, program

__all__ = ['Comparison', 'Conversion', 'Error', 'Inspection', 'Model', 'Quantization', 'Registry', 'Session', 'Status',
           'TensorInfo', 'ThreadPool', 'bench', 'compare', 'convert', 'empty', 'inspect', 'lite', 'program', 'version']
