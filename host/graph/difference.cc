// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "host/base/table.h"
#include "host/graph/npy.h"
#include "host/graph/values.h"

namespace fusebox {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

bool IsNan(ElementNumber value) { return std::isnan(value.real()) || std::isnan(value.imag()); }

std::string Text(ElementNumber value) {
  const std::string real = fmt::format("{:.9g}", static_cast<double>(value.real()));
  return value.imag() == 0 ? real : real + fmt::format("{:+.9g}j", static_cast<double>(value.imag()));
}

Difference Otherwise(std::string what) {
  return {.compared = true,
          .within = false,
          .absolute = kInfinite,
          .relative = kInfinite,
          .atol = kInfinite,
          .where = std::move(what)};
}

Result<Difference> CompareStrings(const Tensor& a, const Tensor& b) {
  FUSEBOX_ASSIGN(const auto left, UnpackStrings(a.data));
  FUSEBOX_ASSIGN(const auto right, UnpackStrings(b.data));
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    if (left[i] != right[i])
      return Otherwise(Coordinates(a.type.shape, i) + ": \"" + Printable(left[i]) + "\" and \"" +
                       Printable(right[i]) + "\"");
  }
  return left.size() == right.size() ? Difference{.compared = true}
                                     : Otherwise("different numbers of strings");
}

}  // namespace

void Difference::Add(const Difference& other) {
  compared = compared || other.compared;
  if (other.atol > atol || (within && !other.within)) where = other.where;
  within = within && other.within;
  absolute = std::max(absolute, other.absolute);
  relative = std::max(relative, other.relative);
  atol = std::max(atol, other.atol);
}

Result<Difference> Compare(const Tensor& a, const Tensor& b, const Tolerance& tolerance) {
  const bool wider = a.type.dtype == DType::kF32 && b.type.dtype == DType::kF64;
  if (a.type.shape != b.type.shape || (a.type.dtype != b.type.dtype && !wider))
    return Otherwise("type " + ToString(a.type) + " and " + ToString(b.type));
  if (a.type.dtype == DType::kString) return CompareStrings(a, b);
  if (!wider && std::ranges::equal(a.data.bytes(), b.data.bytes())) return Difference{.compared = true};
  Difference out{.compared = true};
  size_t worst = 0;
  const size_t count = ElementCount(a);
  for (size_t i = 0; i < count; ++i) {
    const ElementNumber x = ElementAt(a, i);
    const ElementNumber y = ElementAt(b, i);
    if (x == y || (IsNan(x) && IsNan(y))) continue;
    const auto distance = static_cast<double>(std::abs(x - y));
    const auto size = static_cast<double>(std::abs(y));
    const bool finite = std::isfinite(distance) && std::isfinite(size);
    const double excess = finite ? std::max(0.0, distance - tolerance.rtol * size) : kInfinite;
    out.absolute = std::max(out.absolute, finite ? distance : kInfinite);
    out.relative = std::max(out.relative, finite && size > 0 ? distance / size : kInfinite);
    if (excess > out.atol || out.where.empty()) {
      worst = i;
      out.where = "differs";
    }
    out.atol = std::max(out.atol, excess);
  }
  out.within = out.atol <= tolerance.atol;
  if (!out.where.empty())
    out.where = Coordinates(a.type.shape, worst) + ": " + Text(ElementAt(a, worst)) + " and " +
                Text(ElementAt(b, worst));
  return out;
}

}  // namespace fusebox
