// SPDX-License-Identifier: Apache-2.0
#include "plugins/embedding/lookup_kernel.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace fusebox::embedding {
namespace {

constexpr uint32_t kIds = 0, kTable = 1;

int Int4(const uint8_t* bytes, int64_t at) {
  const int stored = at % 2 ? bytes[at / 2] >> 4 : bytes[at / 2] & 0xF;
  return (stored ^ 8) - 8;  // the sign bit weighs negative
}

// One row of a quantised table as floats.
template <class At>
void Scaled(const At& at, int64_t first, int64_t width, float scale, int32_t zero, float* to) {
  for (int64_t i = 0; i < width; ++i) to[i] = scale * static_cast<float>(at(first + i) - zero);
}

void CheckScales(const Node& n) {
  const fbx_quant* q = n.in(kTable).quant();
  const int64_t rows = n.in(kTable).dim(0);
  if (q == nullptr || q->count == 0) throw Reject{"QUANT", "has no scale", "operand 1 (table)"};
  const bool per_row = q->kind == FBX_QUANT_PER_AXIS && q->axis == 0 && q->count == rows;
  if (q->count != 1 && !per_row)
    throw Reject{"QUANT", "has neither one scale nor one per row", "operand 1 (table)"};
  for (uint32_t i = 0; i < q->count; ++i) {
    if (!(q->scales[i] > 0) || !std::isfinite(q->scales[i]))
      throw Reject{"QUANT", "scale " + std::to_string(i) + " is no positive number", "operand 1 (table)"};
  }
}

}  // namespace

void LookupKernel::supports(const Node& n) {
  if (n.in(kIds).dtype() != FBX_I32)
    throw Reject{"DTYPE", std::string("dtype ") + dtype_name(n.in(kIds).dtype()), "operand 0 (ids)"};
  const fbx_dtype type = n.in(kTable).dtype();
  if (type == FBX_F32) return;
  // A result that is quantised too is a copy of stored rows, which this is not.
  if ((type != FBX_I8 && type != FBX_I4) || n.out(0).dtype() != FBX_F32)
    throw Reject{"DTYPE", std::string("dtype ") + dtype_name(type), "operand 1 (table)"};
  CheckScales(n);
}

void LookupKernel::infer(const Node& n, Infer& out) {
  const Tensor ids = n.in(kIds), table = n.in(kTable);
  if (ids.rank() >= 0 && ids.rank() != 1)
    throw Error{FBX_INVALID, "expected a list, got rank " + std::to_string(ids.rank()), "operand 0 (ids)"};
  if (table.rank() < 0) return out.unranked(0, FBX_F32);
  if (table.rank() < 2)
    throw Error{FBX_INVALID, "expected rank 2 or more, got " + std::to_string(table.rank()),
                "operand 1 (table)"};
  std::vector<int64_t> dims(table.dims().begin(), table.dims().end());
  dims[0] = ids.rank() < 0 ? -1 : ids.dim(0);
  out.set(0, FBX_F32, dims);
}

void LookupKernel::invoke(const Node& n) const {
  const Tensor ids = n.in(kIds), table = n.in(kTable);
  const int64_t rows = table.dim(0), count = ids.count();
  int64_t width = 1;
  for (int i = 1; i < table.rank(); ++i) width *= table.dim(i);
  const auto* const at = ids.data<const int32_t>();
  auto* to = n.out(0).data<float>();
  const fbx_quant* const q = table.quant();
  for (int64_t i = 0; i < count; ++i, to += width) {
    const int64_t row = at[i];
    if (row < 0 || row >= rows) {
      throw Error{FBX_INVALID,
                  "id " + std::to_string(row) + " (number " + std::to_string(i) +
                      ") is outside of a table of " + std::to_string(rows) + " rows",
                  "operand 0 (ids)"};
    }
    if (width == 0) continue;
    if (table.dtype() == FBX_F32) {
      std::memcpy(to, table.data<const float>() + row * width, static_cast<size_t>(width) * sizeof(float));
      continue;
    }
    const size_t scale = q->count > 1 ? static_cast<size_t>(row) : 0;
    const auto zero = static_cast<int32_t>(q->zero_points[scale]);
    const auto* const bytes = table.data<const uint8_t>();
    if (table.dtype() == FBX_I8) {
      const auto* const stored = table.data<const int8_t>();
      Scaled([&](int64_t k) { return int{stored[k]}; }, row * width, width, q->scales[scale], zero, to);
    } else {
      Scaled([&](int64_t k) { return Int4(bytes, k); }, row * width, width, q->scales[scale], zero, to);
    }
  }
}

}  // namespace fusebox::embedding
