// SPDX-License-Identifier: Apache-2.0
#include "cli/base/elements.h"

#include <fmt/format.h>

#include <cmath>

#include "host/base/table.h"
#include "host/graph/npy.h"
#include "host/graph/values.h"

namespace fusebox::cli {
namespace {

std::string RealText(DType type, long double value) {
  if (type == DType::kF64 || type == DType::kComplex128)
    return fmt::format("{:.12g}", static_cast<double>(value));
  if (IsFloat(type) || type == DType::kComplex64) return fmt::format("{:.7g}", static_cast<double>(value));
  return fmt::format("{:.0f}", value);
}

nlohmann::ordered_json JsonOf(DType type, ElementNumber value) {
  if (IsComplex(type)) return {static_cast<double>(value.real()), static_cast<double>(value.imag())};
  if (type == DType::kBool) return value.real() != 0;
  if (type == DType::kU64) return static_cast<uint64_t>(value.real());
  if (IsFloat(type)) {
    // RealText handles values that JSON lacks.
    if (!std::isfinite(value.real())) return RealText(type, value.real());
    return static_cast<double>(value.real());
  }
  return static_cast<int64_t>(value.real());
}

}  // namespace

Result<std::string> FirstElements(const Tensor& tensor, size_t limit) {
  const size_t count = ElementCount(tensor);
  const DType type = tensor.type.dtype;
  std::vector<std::string> strings;
  if (type == DType::kString) {
    FUSEBOX_ASSIGN(strings, UnpackStrings(tensor.data));
  }
  std::string out = "[";
  for (size_t i = 0; i < std::min(count, limit); ++i) {
    if (i > 0) out += ", ";
    if (type == DType::kString) {
      out += '"' + (i < strings.size() ? Printable(strings[i]) : "") + '"';
      continue;
    }
    const ElementNumber value = ElementAt(tensor, i);
    out += RealText(type, value.real());
    if (IsComplex(type)) out += (std::signbit(value.imag()) ? "" : "+") + RealText(type, value.imag()) + "j";
  }
  return out + (count > limit ? ", ...]" : "]");
}

Result<nlohmann::ordered_json> FirstElementsJson(const Tensor& tensor, size_t limit) {
  auto out = nlohmann::ordered_json::array();
  if (tensor.type.dtype == DType::kString) {
    FUSEBOX_ASSIGN(const auto strings, UnpackStrings(tensor.data));
    for (size_t i = 0; i < std::min(strings.size(), limit); ++i) out.push_back(strings[i]);
    return out;
  }
  for (size_t i = 0; i < std::min(ElementCount(tensor), limit); ++i)
    out.push_back(JsonOf(tensor.type.dtype, ElementAt(tensor, i)));
  return out;
}

}  // namespace fusebox::cli
