// SPDX-License-Identifier: Apache-2.0
// Statistics along axes: reductions without NaN, order statistics, differences.
#include <algorithm>
#include <cmath>
#include <limits>

#include "converter/import/keras/layers/operation.h"

namespace fusebox::keras {
namespace {

using nlohmann::json;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kMost = std::numeric_limits<double>::infinity();

// Max, Min, Sum, Prod, Mean, Var or Std of the elements that are numbers.
void NumbersOnly(LayerCall& c, std::string_view op) {
  const ValueId x = FloatArgument(c, 0, {"x"});
  const Reduction over = ReductionOf(c, x);
  const ValueId nan = c.emit().Op("IsNan", {x});
  const auto filled = [&](ValueId v, double with) {
    return c.emit().Op("SelectV2", {nan, c.emit().F32(with), v});
  };
  if (op == "Sum") return c.AddOutput(Reduced(c, op, filled(x, 0), over));
  if (op == "Prod") return c.AddOutput(Reduced(c, op, filled(x, 1), over));
  const ValueId ones = c.emit().Cast(c.emit().Op("LogicalNot", {nan}), DType::kF32);
  const ValueId count = Reduced(c, "Sum", ones, over);
  if (op == "Max" || op == "Min") {
    const ValueId extreme = Reduced(c, op, filled(x, op == "Max" ? -kMost : kMost), over);
    const ValueId none = c.emit().Op("Equal", {count, c.emit().F32(0)});
    return c.AddOutput(c.emit().Op("SelectV2", {none, c.emit().F32(kNan), extreme}));
  }
  const ValueId zeros = filled(x, 0);
  if (op == "Mean") return c.AddOutput(c.emit().Op("RealDiv", {Reduced(c, "Sum", zeros, over), count}));
  const ValueId mean = c.emit().Op("RealDiv", {Kept(c, "Sum", zeros, over), Kept(c, "Sum", ones, over)});
  const ValueId apart = filled(c.emit().Op("SquaredDifference", {x, mean}), 0);
  const ValueId variance = c.emit().Op("RealDiv", {Reduced(c, "Sum", apart, over), count});
  c.AddOutput(op == "Var" ? variance : c.emit().Op("Sqrt", {variance}));
}

void PeakToPeak(LayerCall& c, std::string_view) {
  const ValueId x = c.in();
  const Reduction over = ReductionOf(c, x);
  c.AddOutput(c.emit().Op("Sub", {Reduced(c, "Max", x, over), Reduced(c, "Min", x, over)}));
}

// The elements along some axes as the last dimension of `rows`, in falling order.
struct Sorting {
  ValueId rows = kNoValue;
  int64_t count = 1;
  std::vector<Extent> shape;  // of one statistic
};

Sorting SortAlong(LayerCall& c, ValueId x, const Reduction& over) {
  Sorting out;
  const int rank = c.emit().rank(x);
  const std::vector<int64_t> axes = AxesOf(c, over.axes, rank);
  std::vector<int64_t> perm;
  std::vector<Extent> rows;
  for (int i = 0; i < rank; ++i) {
    const bool reduced = std::ranges::find(axes, i) != axes.end();
    if (!reduced) perm.push_back(i);
    if (!reduced) rows.push_back(c.emit().size(x, i));
    if (!reduced || over.keep) out.shape.push_back(reduced ? Extent{1} : c.emit().size(x, i));
  }
  perm.insert(perm.end(), axes.begin(), axes.end());
  for (const int64_t axis : axes) {
    const int64_t size = c.emit().dim(x, static_cast<int>(axis));
    if (c.emit().ok() && (size < 1 || size > (1 << 20)))
      c.emit().Refuse("an input " + ToString(c.emit().type(x)) + ", whose sizes must be known");
    if (c.emit().ok()) out.count *= size;
  }
  rows.push_back({out.count});
  x = c.emit().Reshape(c.emit().Transpose(x, perm), rows);
  out.rows = c.emit().Ops("TopKV2", {x, c.emit().I32(out.count)}, {}, 2)[0];
  return out;
}

// The element at a place from 0 to 1 of the rising order.
ValueId Quantile(LayerCall& c, const Sorting& s, double place, const std::string& method) {
  const auto at = [&](double i) {
    const auto begin = s.count - 1 - static_cast<int64_t>(i);
    return c.emit().Slice(s.rows, -1, begin, begin + 1 - s.count);
  };
  const double exact = place * static_cast<double>(s.count - 1);
  if (method == "lower") return at(std::floor(exact));
  if (method == "higher") return at(std::ceil(exact));
  if (method == "nearest") return at(std::nearbyint(exact));
  if (method != "linear" && method != "midpoint") c.emit().Refuse("its method " + method);
  const double part = method == "midpoint" ? 0.5 : exact - std::floor(exact);
  const ValueId low = at(std::floor(exact));
  if (exact == std::floor(exact)) return low;
  const ValueId step = c.emit().Op("Sub", {at(std::ceil(exact)), low});
  return c.emit().Op("AddV2", {low, c.emit().Op("Mul", {step, c.emit().F32(part)})});
}

// Order statistics at one place or a list of places, which becomes the first dimension.
void Order(LayerCall& c, json places, double unit) {
  const bool several = places.is_array();
  if (!several) places = json::array({places});
  const std::string method = TextArgument(c, kKeywordOnly, {"method"}, "linear");
  const ValueId x = FloatArgument(c, 0, {"x"});
  Reduction over;
  over.axes = IntsArgument(c, kKeywordOnly, {"axis"}).value_or(AllAxes(c.emit().rank(x)));
  over.keep = FlagArgument(c, kKeywordOnly, {"keepdims"});
  const Sorting s = SortAlong(c, x, over);
  const ValueId nan =
      c.emit().Reshape(c.emit().Op("Any", {c.emit().Op("IsNan", {s.rows}), c.emit().I32s({-1})}), s.shape);
  std::vector<ValueId> out;
  for (const json& place : places) {
    const double number = place.is_number() ? place.get<double>() / unit : -1;
    if (number < 0 || number > 1) return c.emit().Refuse("its place " + place.dump().substr(0, 80));
    const ValueId one = c.emit().Reshape(Quantile(c, s, number, method), s.shape);
    out.push_back(c.emit().Op("SelectV2", {nan, c.emit().F32(kNan), one}));
  }
  if (out.empty()) return c.emit().Refuse("no places");
  c.AddOutput(several ? c.emit().Op("Pack", out, MakeAttrs("axis", int64_t{0})) : out[0]);
}

void Median(LayerCall& c, std::string_view) { Order(c, 0.5, 1); }
void QuantileAt(LayerCall& c, std::string_view) { Order(c, PlainArgument(c, 1, {"q"}), 1); }
void PercentileAt(LayerCall& c, std::string_view) { Order(c, PlainArgument(c, 1, {"q"}), 100); }

void Difference(LayerCall& c, std::string_view) {
  ValueId x = c.in();
  const int64_t times = IntArgument(c, 1, {"n"}, 1);
  const int64_t axis = AxesOf(c, {IntArgument(c, 2, {"axis"}, -1)}, c.emit().rank(x))[0];
  if (times < 0 || times > 64) return c.emit().Refuse("its n " + std::to_string(times));
  for (int64_t i = 0; i < times; ++i) {
    const auto at = static_cast<int>(axis);
    x = c.emit().Op("Sub", {c.emit().Slice(x, at, 1, 0), c.emit().Slice(x, at, 0, -1)});
  }
  c.AddOutput(x);
}

void Trapezoid(LayerCall& c, std::string_view) {
  const ValueId y = FloatArgument(c, 0, {"y"});
  if (!PlainArgument(c, kKeywordOnly, {"x"}).is_null()) return c.emit().Refuse("its x");
  const double apart = NumberArgument(c, kKeywordOnly, {"dx"}, 1);
  const auto axis =
      static_cast<int>(AxesOf(c, {IntArgument(c, kKeywordOnly, {"axis"}, -1)}, c.emit().rank(y))[0]);
  const ValueId pairs = c.emit().Op("AddV2", {c.emit().Slice(y, axis, 1, 0), c.emit().Slice(y, axis, 0, -1)});
  const ValueId sum = c.emit().Op("Sum", {pairs, c.emit().I32s({axis})});
  c.AddOutput(c.emit().Op("Mul", {sum, c.emit().F32(apart / 2)}));
}

}  // namespace

std::span<const NamedOperation> StatisticOperations() {
  static constexpr NamedOperation kTable[] = {
      {"nanmax", {"Max", NumbersOnly}},   {"nanmin", {"Min", NumbersOnly}},
      {"nansum", {"Sum", NumbersOnly}},   {"nanprod", {"Prod", NumbersOnly}},
      {"nanmean", {"Mean", NumbersOnly}}, {"nanvar", {"Var", NumbersOnly}},
      {"nanstd", {"Std", NumbersOnly}},   {"ptp", {"", PeakToPeak}},
      {"median", {"", Median}},           {"quantile", {"", QuantileAt}},
      {"percentile", {"", PercentileAt}}, {"diff", {"", Difference}},
      {"trapezoid", {"", Trapezoid}},
  };
  return kTable;
}

}  // namespace fusebox::keras
