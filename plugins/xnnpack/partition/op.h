// SPDX-License-Identifier: Apache-2.0
// Operation: whether XNNPACK supports a node, and how to define it in a subgraph.
//
// Each file of ops/ holds one family: Supports and Define of each op, and a table with a row per op. A
// new op is a row; a new family is a file and a line in ops/table.cc.
#pragma once

#include <span>
#include <string_view>

#include "plugins/xnnpack/partition/subgraph.h"
#include "plugins/xnnpack/partition/values.h"

namespace fusebox::xnnpack {

// How XNNPACK, or the delegate, may combine an op with its neighbors.
enum class Joins {
  kNothing,
  kInPlace,  // the result may use the memory of an operand of the same size without later readers
  kMaker,    // same, and XNNPACK may join the op with the producer of its operand
  kReader,   // XNNPACK may join the op with the reader of its result
};

struct Operation {
  std::string_view name;  // as in TFLite
  Accept accept;          // kJoin: only moves data
  // Throws Reject with the reason. Must reject everything that XNNPACK does not support: the library is built
  // with assertions, so an unchecked node ends the process.
  void (*supports)(const NetworkNode&);
  // Adds the node to the subgraph. Throws Reject.
  void (*define)(const NetworkNode&, Subgraph&);
  Joins joins = Joins::kNothing;
};

using OperationTable = std::span<const Operation>;

extern const OperationTable kBatchMatMulOps, kBinaryOps, kConcatOps, kConvertOps, kConvolutionOps,
    kFullyConnectedOps, kPadOps, kPoolOps, kReduceOps, kReshapeOps, kResizeOps, kSliceOps, kSoftmaxOps,
    kSpaceOps, kTransposeConvOps, kTransposeOps, kUnaryOps;

// Returns the row of a builtin op, or NULL if XNNPACK does not support it.
const Operation* FindOperation(std::string_view name);

}  // namespace fusebox::xnnpack
