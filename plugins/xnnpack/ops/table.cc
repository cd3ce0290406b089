// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "plugins/xnnpack/partition/op.h"

namespace fusebox::xnnpack {

const Operation* FindOperation(std::string_view name) {
  static const std::map<std::string_view, const Operation*> index = [] {
    std::map<std::string_view, const Operation*> rows;
    for (const OperationTable table :
         {kBatchMatMulOps, kBinaryOps, kConcatOps, kConvertOps, kConvolutionOps, kFullyConnectedOps, kPadOps,
          kPoolOps, kReduceOps, kReshapeOps, kResizeOps, kSliceOps, kSoftmaxOps, kSpaceOps, kTransposeConvOps,
          kTransposeOps, kUnaryOps})
      for (const Operation& row : table) rows.emplace(row.name, &row);
    return rows;
  }();
  const auto at = index.find(name);
  return at == index.end() ? nullptr : at->second;
}

}  // namespace fusebox::xnnpack
