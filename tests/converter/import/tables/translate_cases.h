// SPDX-License-Identifier: Apache-2.0
// Cases of translation table rows: a source op on small operands, and the results by TensorFlow's definition.
#pragma once

#include <string>
#include <vector>

#include "host/graph/graph.h"

namespace fusebox::converter {

struct SourceOp {
  std::string op;
  std::vector<Tensor> operands;
  std::vector<double> expected;  // values of result `result`
  Attrs attrs = {};
  size_t results = 1;
  size_t computed = 1;  // number of operands that are inputs; the others are constants
  size_t result = 0;
  double digits = 0;  // relative tolerance; 0: absolute 1e-5
};

// The cases of all families below.
std::vector<SourceOp> AllSourceOps();

std::vector<SourceOp> ElementwiseCases();
std::vector<SourceOp> ShapeCases();
std::vector<SourceOp> MatrixCases();
std::vector<SourceOp> ComposedCases();
std::vector<SourceOp> BuiltinCases();
std::vector<SourceOp> VolumeCases();
std::vector<SourceOp> SegmentCases();
std::vector<SourceOp> FormCases();
std::vector<SourceOp> BitCases();
std::vector<SourceOp> FunctionCases();
std::vector<SourceOp> ImageCases();
std::vector<SourceOp> PatchCases();
std::vector<SourceOp> CellCases();
std::vector<SourceOp> EinsumCases();
std::vector<SourceOp> RowCases();  // ops that write rows of tensors

inline Tensor F(std::vector<int64_t> dims, const std::vector<float>& v) {
  return {{DType::kF32, Shape(std::move(dims))}, Buffer::Of<float>(v)};
}
inline Tensor I(std::vector<int64_t> dims, const std::vector<int32_t>& v) {
  return {{DType::kI32, Shape(std::move(dims))}, Buffer::Of<int32_t>(v)};
}
inline Tensor L(std::vector<int64_t> dims, const std::vector<int64_t>& v) {
  return {{DType::kI64, Shape(std::move(dims))}, Buffer::Of<int64_t>(v)};
}
inline Tensor B(const std::vector<uint8_t>& v) {
  return {{DType::kBool, {static_cast<int64_t>(v.size())}}, Buffer::Of<uint8_t>(v)};
}

// A("axis", 1, "keep_dims", true)
inline Attrs A() { return {}; }
template <class V, class... Rest>
Attrs A(const char* name, V value, Rest... rest) {
  Attrs attrs = A(rest...);
  attrs.Set(name, value);
  return attrs;
}

}  // namespace fusebox::converter
