// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "tests/bench/net_bench.h"

namespace fusebox::bench {

Status FillInputs(Session& session) {
  uint64_t state = 0x9e3779b97f4a7c15;
  for (int i = 0; i < static_cast<int>(session.inputs().size()); ++i) {
    const Type& type = session.inputs()[static_cast<size_t>(i)].type;
    Shape shape = type.shape;
    for (int64_t& d : shape.dims()) d = d < 0 ? 1 : d;
    FUSEBOX_TRY(session.Resize(i, shape));
    FUSEBOX_ASSIGN(const auto bytes, session.InputData(i));
    const bool floats = type.dtype == DType::kF32,
               noise = type.dtype == DType::kI8 || type.dtype == DType::kU8;
    for (size_t k = 0; k < bytes.size(); k += floats ? sizeof(float) : 1) {
      state = state * 6364136223846793005 + 1442695040888963407;
      const float value = static_cast<float>(static_cast<int32_t>(state >> 32)) / 2147483648.0F;
      if (floats) std::memcpy(&bytes[k], &value, sizeof value);
      else bytes[k] = static_cast<std::byte>(noise ? state >> 56 : 0);
    }
  }
  return {};
}

}  // namespace fusebox::bench
