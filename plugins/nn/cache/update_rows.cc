// SPDX-License-Identifier: Apache-2.0
#include "plugins/nn/cache/update_rows.h"

#include <cstring>
#include <string>

namespace fusebox::nn {
namespace {

constexpr uint32_t kCache = 0;
constexpr uint32_t kPositions = 1;
constexpr uint32_t kRows = 2;

int64_t PositionAt(fbx_dtype dtype, const void* positions, size_t i) {
  return dtype == FBX_I64 ? static_cast<const int64_t*>(positions)[i]
                          : static_cast<const int32_t*>(positions)[i];
}

}  // namespace

void UpdateRows::supports(const Node& n) {
  n.arity(3, 1);
  RequireUpdate(n, kCache, kPositions, kRows);
}

uint32_t UpdateRows::prepare(const Node& n, Plan& plan) const {
  const size_t bytes = n.in(kCache).bytes();
  return plan.scratch(n.in(kRows).bytes() == bytes || n.in(kPositions).bytes() == bytes ? bytes : 0);
}

void UpdateRows::invoke(const Node& n, uint32_t slot) const {
  const Tensor cache = n.in(kCache);
  auto* const to = n.out(0).data<std::byte>();
  // Operands of the cache's size may be where the result is.
  const auto kept = [&](uint32_t operand) -> const void* {
    const void* const data = n.in(operand).data<const void>();
    return data == to ? std::memcpy(n.scratch<std::byte>(slot), to, cache.bytes()) : data;
  };
  if (cache.bytes() == 0) return;
  const auto* const rows = static_cast<const std::byte*>(kept(kRows));
  const void* const positions = kept(kPositions);
  const auto count = static_cast<size_t>(n.in(kRows).dim(1));
  const auto capacity = static_cast<size_t>(cache.dim(1));
  size_t used = 0;  // nothing is written before all positions are known to be inside
  for (int64_t last = 0; used < count; ++used) {
    const int64_t at = PositionAt(n.in(kPositions).dtype(), positions, used);
    if (at < last) break;
    if (at >= cache.dim(1))
      throw Error{FBX_INVALID,
                  "position " + std::to_string(at) + " is outside of a cache of " + std::to_string(capacity),
                  "operand 1"};
    last = at;
  }
  if (cache.data<void>() != to) std::memcpy(to, cache.data<const void>(), cache.bytes());
  const auto batch = static_cast<size_t>(cache.dim(0));
  const size_t row = cache.bytes() / batch / capacity;
  for (size_t b = 0; b < batch; ++b)
    for (size_t i = 0; i < used; ++i) {
      const auto at = static_cast<size_t>(PositionAt(n.in(kPositions).dtype(), positions, i));
      std::memcpy(to + (b * capacity + at) * row, rows + (b * count + i) * row, row);
    }
}

}  // namespace fusebox::nn
