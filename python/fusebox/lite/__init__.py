# SPDX-License-Identifier: Apache-2.0
"""A mirror of tf.lite: scripts change one import.

    import fusebox.lite as tflite                        # was: import tflite_runtime.interpreter as tflite
    from fusebox.lite.interpreter import Interpreter     # was: from ai_edge_litert.interpreter import Interpreter
    import fusebox as tf                                 # tf.lite.Interpreter, tf.lite.TFLiteConverter

What has no equivalent raises fusebox.Error with the reason; docs/python.md has a table of all arguments.
"""
from .converter import OpsSet, Optimize, RepresentativeDataset, TargetSpec, TFLiteConverter
from .interpreter import Delegate, Interpreter, InterpreterWithCustomOps, OpResolverType, SignatureRunner, load_delegate

__all__ = ['Delegate', 'Interpreter', 'InterpreterWithCustomOps', 'OpResolverType', 'OpsSet', 'Optimize',
           'RepresentativeDataset', 'SignatureRunner', 'TFLiteConverter', 'TargetSpec', 'load_delegate']
