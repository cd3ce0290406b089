// SPDX-License-Identifier: Apache-2.0
// What the delegate knows of an op: whether XNNPACK can run a node of it, and how it is said to XNNPACK.
//
// Each file of this folder holds one family: Supports and Define of an op side by side, and a table with a
// row per op. A new op is a row; a new family is a file and a line in table.cc.
#pragma once

#include <span>
#include <string_view>

#include "plugins/xnnpack/subgraph.h"
#include "plugins/xnnpack/values.h"

namespace fusebox::xnnpack {

// What XNNPACK, or the delegate, may do with the values around an op.
enum class Joins {
  kNothing,
  kInPlace,  // the result may take the memory of an operand of the same size that nobody reads any more
  kMaker,    // that, and XNNPACK may make one op of it and of the one that makes its operand
  kReader,   // XNNPACK may make one op of it and of the one that reads its result
};

struct Operation {
  std::string_view name;  // TFLite's
  Accept accept;          // kJoin: it only moves data
  // Throws Reject with the reason. What it lets pass, XNNPACK takes: this library is built with assertions,
  // so that what it does not check for itself ends the process.
  void (*supports)(const NetworkNode&);
  // Adds to the subgraph what computes the node's results. Throws Reject.
  void (*define)(const NetworkNode&, Subgraph&);
  Joins joins = Joins::kNothing;
};

using OperationTable = std::span<const Operation>;

extern const OperationTable kBatchMatMulOps, kBinaryOps, kConcatOps, kConvertOps, kConvolutionOps,
    kFullyConnectedOps, kPadOps, kPoolOps, kReduceOps, kReshapeOps, kResizeOps, kSliceOps, kSoftmaxOps,
    kSpaceOps, kTransposeConvOps, kTransposeOps, kUnaryOps;

// The row of a builtin op; NULL: XNNPACK has nothing like it.
const Operation* FindOperation(std::string_view name);

}  // namespace fusebox::xnnpack
