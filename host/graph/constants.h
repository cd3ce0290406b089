// SPDX-License-Identifier: Apache-2.0
// Elements of constants as numbers. Nothing if the value is absent, not a constant, or of another kind.
#pragma once

#include <optional>
#include <vector>

#include "host/graph/graph.h"

namespace fusebox {

std::optional<std::vector<int64_t>> ConstInts(const Type&, const Buffer&);  // i32, i64
std::optional<std::vector<int64_t>> ConstInts(const Function&, ValueId);
std::optional<int64_t> ConstInt(const Function&, ValueId);  // one element of any rank

std::optional<std::vector<double>> ConstFloats(const Function&, ValueId);  // f32, f64
std::optional<double> ConstScalar(const Function&, ValueId);               // one element of any rank

}  // namespace fusebox
