// SPDX-License-Identifier: Apache-2.0
// The kernel tables of this plugin: one per family, each defined by the file of the same name in kernels/. plugin.cc
// concatenates them; a new family is one row here and one there.
#pragma once

#include <span>

#include <fusebox/abi/kernel.h>

namespace fusebox::cpu {

using KernelTable = std::span<const fbx_kernel* const>;

extern const KernelTable kActivationKernels;     // RELU and its kin, PRELU, ELU, GELU, HARD_SWISH
extern const KernelTable kArgMinMaxKernels;      // ARG_MAX, ARG_MIN
extern const KernelTable kBatchMatMulKernels;    // BATCH_MATMUL
extern const KernelTable kBinaryKernels;         // ADD, SUB, MUL, ... POW, ATAN2, with broadcasting; ADD_N
extern const KernelTable kBitsKernels;           // BITCAST, RIGHT_SHIFT
extern const KernelTable kCastKernels;           // CAST
extern const KernelTable kCompareKernels;        // EQUAL, LESS, ... LOGICAL_*, BITWISE_XOR
extern const KernelTable kConcatKernels;         // CONCATENATION, PACK, SPLIT, SPLIT_V, UNPACK
extern const KernelTable kConvKernels;           // CONV_2D
extern const KernelTable kConv3DKernels;         // CONV_3D, CONV_3D_TRANSPOSE
extern const KernelTable kCumsumKernels;         // CUMSUM
extern const KernelTable kDepthwiseConvKernels;  // DEPTHWISE_CONV_2D
extern const KernelTable kFillKernels;  // FILL, ZEROS_LIKE, RANGE, ONE_HOT, MATRIX_DIAG, MATRIX_SET_DIAG
extern const KernelTable kFullyConnectedKernels;  // FULLY_CONNECTED
extern const KernelTable kGatherKernels;          // GATHER, GATHER_ND, EMBEDDING_LOOKUP, SCATTER_ND
extern const KernelTable kLocalResponseKernels;   // LOCAL_RESPONSE_NORMALIZATION
extern const KernelTable kPadKernels;             // PAD, PADV2, MIRROR_PAD, DILATE
extern const KernelTable kPoolKernels;            // AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D
extern const KernelTable kQuantizeKernels;        // QUANTIZE, DEQUANTIZE, FAKE_QUANT
extern const KernelTable kRandomKernels;          // RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL, MULTINOMIAL
extern const KernelTable kReduceKernels;          // MEAN, SUM, REDUCE_*
extern const KernelTable kReduceWindowKernels;    // REDUCE_WINDOW
extern const KernelTable kReshapeKernels;         // RESHAPE, SQUEEZE, EXPAND_DIMS, SHAPE, RANK
extern const KernelTable kResizeKernels;          // RESIZE_*
extern const KernelTable kSegmentKernels;         // SEGMENT_SUM, UNSORTED_SEGMENT_*
extern const KernelTable kSelectKernels;          // SELECT, SELECT_V2, WHERE
extern const KernelTable kSliceKernels;           // SLICE, STRIDED_SLICE, DYNAMIC_UPDATE_SLICE
extern const KernelTable kSoftmaxKernels;         // SOFTMAX, LOG_SOFTMAX, L2_NORMALIZATION
extern const KernelTable kSortKernels;            // TOPK_V2, UNIQUE, BUCKETIZE
extern const KernelTable kSpaceKernels;           // SPACE_TO_DEPTH, SPACE_TO_BATCH_ND and back
extern const KernelTable kSparseKernels;    // SPARSE_TO_DENSE, EMBEDDING_LOOKUP_SPARSE, HASHTABLE_LOOKUP
extern const KernelTable kSpectrumKernels;  // RFFT2D, COMPLEX_ABS, REAL, IMAG
extern const KernelTable
    kStablehloKernels;  // STABLEHLO_ADD, _MULTIPLY, _MAXIMUM, _MINIMUM, _AND, _SHIFT_LEFT, _PAD
extern const KernelTable kStablehloGatherKernels;  // STABLEHLO_GATHER
extern const KernelTable kTileKernels;             // TILE, BROADCAST_TO, BROADCAST_ARGS
extern const KernelTable kTransposeConvKernels;    // TRANSPOSE_CONV
extern const KernelTable kTransposeKernels;        // TRANSPOSE, REVERSE_V2, REVERSE_SEQUENCE
extern const KernelTable kUnaryKernels;            // EXP, LOG, SQRT, ABS, FLOOR, ...

}  // namespace fusebox::cpu
