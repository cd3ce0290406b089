# SPDX-License-Identifier: Apache-2.0
"""Descriptions of tensors as tf.lite has them."""
from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import numpy as np

from .._tensors import TensorInfo

Details = Dict[str, Any]


def details_of(index: int, info: TensorInfo, shape: Optional[Tuple[int, ...]]) -> Details:
    """`info`: as declared; `shape`: the current one, if it is known.

    shape: unknown dimensions are 1, as in files; shape_signature: they are -1. sparsity_parameters is empty: sparse
    constants are unpacked when a model is read.
    """
    declared = info.shape if info.shape is not None else ()
    current = shape if shape is not None else declared
    quantization = info.quantization
    scales = quantization.scales if quantization else np.zeros(0, np.float32)
    points = quantization.zero_points.astype(np.int32) if quantization else np.zeros(0, np.int32)
    single = len(scales) == 1
    return {
        'name': info.name,
        'index': index,
        'shape': np.array([max(1, size) if size < 0 else size for size in current], np.int32),
        'shape_signature': np.array(declared, np.int32),
        'dtype': np.bytes_ if info.dtype == object else info.dtype.type if info.dtype is not None else None,
        'quantization': (float(scales[0]), int(points[0])) if single else (0.0, 0),
        'quantization_parameters': {'scales': scales, 'zero_points': points,
                                    'quantized_dimension': quantization.axis if quantization else 0},
        'sparsity_parameters': {},
    }
