// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>

#include "cli/base/elements.h"
#include "cli/page/page.h"
#include "host/graph/values.h"

namespace fusebox::cli::page {
namespace {

constexpr size_t kBins = 32;
constexpr size_t kShown = 16;
constexpr size_t kScales = 8;

using Visit = std::function<void(std::span<const double>)>;

// All elements as numbers, in pieces.
void ForEach(const Tensor& tensor, const Visit& visit) {
  constexpr size_t kPiece = 4096;
  std::vector<double> values;
  const size_t count = ElementCount(tensor);
  for (size_t at = 0; at < count; at += kPiece) {
    values.resize(std::min(kPiece, count - at));
    ReadDoubles(tensor, at, values);
    visit(values);
  }
}

struct Statistics {
  size_t count = 0;
  size_t zeros = 0;
  size_t not_finite = 0;
  double low = INFINITY;
  double high = -INFINITY;
  double sum = 0;
  double squares = 0;

  void Add(std::span<const double> values) {
    for (const double v : values) {
      ++count;
      if (!std::isfinite(v)) {
        ++not_finite;
        continue;
      }
      zeros += v == 0;
      low = std::min(low, v);
      high = std::max(high, v);
      sum += v;
      squares += v * v;
    }
  }
};

std::vector<size_t> BinsOf(const Tensor& tensor, const Statistics& s) {
  std::vector<size_t> bins(kBins);
  const double width = (s.high - s.low) / kBins;
  ForEach(tensor, [&](std::span<const double> values) {
    for (const double v : values)
      if (std::isfinite(v)) ++bins[std::min(static_cast<size_t>((v - s.low) / width), kBins - 1)];
  });
  return bins;
}

void AddStatistics(const Tensor& tensor, Json& out) {
  Statistics s;
  ForEach(tensor, [&](std::span<const double> values) { s.Add(values); });
  const size_t finite = s.count - s.not_finite;
  if (s.count == 0 || finite == 0) return;
  const double n = static_cast<double>(finite);
  const double mean = s.sum / n;
  out.update({{"count", s.count},
              {"min", s.low},
              {"max", s.high},
              {"mean", mean},
              {"deviation", std::sqrt(std::max(0.0, s.squares / n - mean * mean))},
              {"zeros", s.zeros},
              {"not_finite", s.not_finite}});
  if (std::isfinite(s.high - s.low) && s.high > s.low) out["bins"] = BinsOf(tensor, s);
}

Json JsonOf(const Quant& quant) {
  const size_t shown = std::min(quant.scales.size(), kScales);
  Json scales = Json::array();
  Json zeros = Json::array();
  for (size_t i = 0; i < shown; ++i) scales.push_back(quant.scales[i]);
  for (size_t i = 0; i < std::min(quant.zero_points.size(), kScales); ++i)
    zeros.push_back(quant.zero_points[i]);
  return {{"scales", std::move(scales)},
          {"zero_points", std::move(zeros)},
          {"count", quant.scales.size()},
          {"axis", quant.axis}};
}

Json JsonOf(const Value& value) {
  Json out = Json::object();
  if (value.quant != nullptr && !value.quant->scales.empty()) out["quant"] = JsonOf(*value.quant);
  if (!value.is_const()) return out;
  const Tensor tensor{value.type, value.data};
  out["bytes"] = value.data.size();
  if (auto first = FirstElements(tensor, kShown)) out["first"] = *std::move(first);
  if (IsNumeric(value.type.dtype) && !IsComplex(value.type.dtype)) AddStatistics(tensor, out);
  value.data.Release();
  return out;
}

}  // namespace

Json ValuesJson(const Module& module) {
  Json functions = Json::array();
  for (const auto& function : module.functions) {
    Json values = Json::object();
    for (ValueId id = 0; id < function->value_count(); ++id) {
      Json value = JsonOf(function->value(id));
      if (!value.empty()) values[std::to_string(id)] = std::move(value);
    }
    functions.push_back(std::move(values));
  }
  return functions;
}

}  // namespace fusebox::cli::page
