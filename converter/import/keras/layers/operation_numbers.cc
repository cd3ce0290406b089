// SPDX-License-Identifier: Apache-2.0
// Elementwise functions and comparisons of NumPy that TensorFlow composes of several ops.
#include <cmath>
#include <limits>
#include <numbers>

#include "converter/import/keras/layers/operation.h"

namespace fusebox::keras {
namespace {

using nlohmann::json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <ValueId (*function)(LayerCall&, ValueId)>
void OfX(LayerCall& c, std::string_view) {
  c.AddOutput(function(c, FloatArgument(c, 0, {"x"})));
}

template <ValueId (*function)(LayerCall&, ValueId, ValueId)>
void OfPair(LayerCall& c, std::string_view) {
  const ValueId x = FloatArgument(c, 0, {"x1"});
  c.AddOutput(function(c, x, FloatArgument(c, 1, {"x2"})));
}

ValueId CubeRoot(LayerCall& c, ValueId x) {
  const ValueId size = c.emit().Op("Pow", {c.emit().Op("Abs", {x}), c.emit().F32(1.0 / 3)});
  return c.emit().Op("Mul", {c.emit().Op("Sign", {x}), size});
}

// sin(pi x) / (pi x), and 1 at 0
ValueId Sinc(LayerCall& c, ValueId x) {
  const ValueId angle = c.emit().Op("Mul", {x, c.emit().F32(std::numbers::pi)});
  const ValueId wave = c.emit().Op("RealDiv", {c.emit().Op("Sin", {angle}), angle});
  return c.emit().Op("SelectV2", {c.emit().Op("Equal", {x, c.emit().F32(0)}), c.emit().F32(1), wave});
}

ValueId Degrees(LayerCall& c, ValueId x) {
  return c.emit().Op("Mul", {x, c.emit().F32(180 / std::numbers::pi)});
}

ValueId Absolute(LayerCall& c, ValueId x) { return c.emit().Op("Abs", {x}); }

ValueId IsLargest(LayerCall& c, ValueId x) { return c.emit().Op("Equal", {x, c.emit().F32(kInfinity)}); }
ValueId IsLeast(LayerCall& c, ValueId x) { return c.emit().Op("Equal", {x, c.emit().F32(-kInfinity)}); }

// Only complex numbers are not real.
ValueId IsReal(LayerCall& c, ValueId x) { return c.emit().Cast(c.emit().Op("OnesLike", {x}), DType::kBool); }

// max(x, y) plus a correction: the powers stay finite.
ValueId LogAddExp2(LayerCall& c, ValueId x, ValueId y) {
  const ValueId apart = c.emit().Op("Abs", {c.emit().Op("Sub", {x, y})});
  const ValueId bent =
      c.emit().Op("Softplus", {c.emit().Op("Mul", {apart, c.emit().F32(-std::numbers::ln2)})});
  const ValueId scaled = c.emit().Op("Mul", {bent, c.emit().F32(std::numbers::log2e)});
  return c.emit().Op("AddV2", {c.emit().Op("Maximum", {x, y}), scaled});
}

ValueId Heaviside(LayerCall& c, ValueId x, ValueId at_zero) {
  const ValueId zero = c.emit().F32(0);
  const ValueId step = c.emit().Cast(c.emit().Op("Greater", {x, zero}), DType::kF32);
  return c.emit().Op("SelectV2", {c.emit().Op("Equal", {x, zero}), at_zero, step});
}

ValueId LoadExponent(LayerCall& c, ValueId x, ValueId power) {
  return c.emit().Op("Mul", {x, c.emit().Op("Pow", {c.emit().F32(2), power})});
}

// With the sign of the dividend.
ValueId Remainder(LayerCall& c, ValueId x, ValueId y) {
  const ValueId size = c.emit().Op("FloorMod", {Absolute(c, x), Absolute(c, y)});
  return c.emit().Op("SelectV2",
                     {c.emit().Op("Less", {x, c.emit().F32(0)}), c.emit().Op("Neg", {size}), size});
}

// Maximum or Minimum; of a number and a NaN, the number.
void Ordered(LayerCall& c, std::string_view op) {
  const ValueId x = FloatArgument(c, 0, {"x1"});
  const ValueId y = FloatArgument(c, 1, {"x2"});
  const ValueId both = c.emit().Op("SelectV2", {c.emit().Op("IsNan", {y}), x, c.emit().Op(op, {x, y})});
  c.AddOutput(c.emit().Op("SelectV2", {c.emit().Op("IsNan", {x}), y, both}));
}

void IsClose(LayerCall& c, std::string_view) {
  const ValueId x = FloatArgument(c, 0, {"x1"});
  const ValueId y = FloatArgument(c, 1, {"x2"});
  const double relative = NumberArgument(c, 2, {"rtol"}, 1e-5);
  const double absolute = NumberArgument(c, 3, {"atol"}, 1e-8);
  const bool nan = FlagArgument(c, 4, {"equal_nan"});
  const ValueId most = c.emit().Op(
      "AddV2",
      {c.emit().Op("Mul", {c.emit().Op("Abs", {y}), c.emit().F32(relative)}), c.emit().F32(absolute)});
  const ValueId near = c.emit().Op("LessEqual", {Absolute(c, c.emit().Op("Sub", {x, y})), most});
  // An infinite number is close to itself only.
  const ValueId finite = c.emit().Op("LogicalAnd", {near, c.emit().Op("IsFinite", {y})});
  ValueId close = c.emit().Op("LogicalOr", {c.emit().Op("Equal", {x, y}), finite});
  if (nan) {
    const ValueId both = c.emit().Op("LogicalAnd", {c.emit().Op("IsNan", {x}), c.emit().Op("IsNan", {y})});
    close = c.emit().Op("LogicalOr", {close, both});
  }
  c.AddOutput(close);
}

void NanToNum(LayerCall& c, std::string_view) {
  constexpr double kMost = std::numeric_limits<float>::max();
  ValueId x = FloatArgument(c, 0, {"x"});
  const double nan = NumberArgument(c, kKeywordOnly, {"nan"}, 0);
  const double most = NumberArgument(c, kKeywordOnly, {"posinf"}, kMost);
  const double least = NumberArgument(c, kKeywordOnly, {"neginf"}, -kMost);
  x = c.emit().Op("SelectV2", {c.emit().Op("IsNan", {x}), c.emit().F32(nan), x});
  x = c.emit().Op("SelectV2", {IsLargest(c, x), c.emit().F32(most), x});
  c.AddOutput(c.emit().Op("SelectV2", {IsLeast(c, x), c.emit().F32(least), x}));
}

// The choice of the first condition that holds.
void Select(LayerCall& c, std::string_view op) {
  const auto list = [&](size_t position, const char* name) {
    const Given* given = FindArgument(c, position, {name});
    const auto* items = given ? std::get_if<std::vector<Given>>(&given->value) : nullptr;
    return items ? *items : std::vector<Given>();
  };
  const std::vector<Given> conditions = list(0, "condlist");
  const std::vector<Given> choices = list(1, "choicelist");
  const Given zero{json(0)};
  const Given* otherwise = FindArgument(c, 2, {"default"});
  if (!otherwise) otherwise = &zero;
  if (conditions.empty() || conditions.size() != choices.size())
    return c.emit().Refuse("lists of conditions and choices that differ in size");
  DType type = DType::kNone;
  for (const Given& choice : choices)
    if (type != DType::kF32) type = CommonType(c, &choice, otherwise, op);
  ValueId out = Operand(c, otherwise, type);
  for (size_t i = choices.size(); i-- > 0;)
    out = c.emit().Op(op, {Operand(c, &conditions[i], DType::kBool), Operand(c, &choices[i], type), out});
  c.AddOutput(out);
}

// Each element of `x` beside all elements of a vector: [..., 1] and [n].
struct Beside {
  ValueId each, all;
};
Beside BesideAll(LayerCall& c, const Given* x, const Given* all) {
  const DType type = CommonType(c, x, all, "");
  const ValueId each = c.emit().Op("ExpandDims", {Operand(c, x, type), c.emit().I32(-1)});
  return {each, c.emit().Reshape(Operand(c, all, type), {Extent{}})};
}

void IsIn(LayerCall& c, std::string_view) {
  Ignore(c, {"assume_unique"});
  const bool invert = FlagArgument(c, kKeywordOnly, {"invert"});
  const Beside b = BesideAll(c, FindArgument(c, 0, {"x1"}), FindArgument(c, 1, {"x2"}));
  const ValueId found = c.emit().Op("Any", {c.emit().Op("Equal", {b.each, b.all}), c.emit().I32s({-1})});
  c.AddOutput(invert ? c.emit().Op("LogicalNot", {found}) : found);
}

// The number of elements of the sorted vector below `values`.
void Bounds(LayerCall& c, const Given* sorted, const Given* values, std::string_view below) {
  const Beside b = BesideAll(c, values, sorted);
  const ValueId counted = c.emit().Cast(c.emit().Op(below, {b.all, b.each}), DType::kI32);
  c.AddOutput(c.emit().Op("Sum", {counted, c.emit().I32s({-1})}));
}

void Digitize(LayerCall& c, std::string_view) {
  const json bins = PlainArgument(c, 1, {"bins"});
  for (size_t i = 0; bins.is_array() && i < bins.size(); ++i)
    if (!bins[i].is_number() || (i > 0 && bins[i] < bins[i - 1])) return c.emit().Refuse("bins that fall");
  Bounds(c, FindArgument(c, 1, {"bins"}), FindArgument(c, 0, {"x"}), "LessEqual");
}

void SearchSorted(LayerCall& c, std::string_view) {
  const std::string side = TextArgument(c, kKeywordOnly, {"side"}, "left");
  if (side != "left" && side != "right") return c.emit().Refuse("its side " + side);
  const Given* sorted = FindArgument(c, 0, {"sorted_sequence"});
  const auto* flow = sorted ? std::get_if<Flow>(&sorted->value) : nullptr;
  if (flow && c.emit().rank(flow->value) != 1) return c.emit().Refuse("a sequence that is not a vector");
  Bounds(c, sorted, FindArgument(c, 1, {"values"}), side == "left" ? "Less" : "LessEqual");
}

void EnsureShape(LayerCall& c, std::string_view op) {
  Ignore(c, {"shape"});
  Same(c, op);
}

// The number of elements or of dimensions.
void Count(LayerCall& c, std::string_view op) {
  c.AddOutput(c.emit().Op(op, {TensorArgument(c, 0, {"x", "input"})}));
}

}  // namespace

std::span<const NamedOperation> NumberOperations() {
  static constexpr NamedOperation kTable[] = {
      {"cbrt", {"", OfX<CubeRoot>}},
      {"sinc", {"", OfX<Sinc>}},
      {"rad2deg", {"", OfX<Degrees>}},
      {"fabs", {"", OfX<Absolute>}},
      {"isposinf", {"", OfX<IsLargest>}},
      {"isneginf", {"", OfX<IsLeast>}},
      {"isreal", {"", OfX<IsReal>}},
      {"logaddexp2", {"", OfPair<LogAddExp2>}},
      {"heaviside", {"", OfPair<Heaviside>}},
      {"ldexp", {"", OfPair<LoadExponent>}},
      {"fmax", {"Maximum", Ordered}},
      {"fmin", {"Minimum", Ordered}},
      {"fmod", {"", OfPair<Remainder>}},
      {"rightshift", {"RightShift", Binary}},
      {"bitwiserightshift", {"RightShift", Binary}},
      {"isclose", {"", IsClose}},
      {"nantonum", {"", NanToNum}},
      {"select", {"SelectV2", Select}},
      {"isin", {"", IsIn}},
      {"digitize", {"", Digitize}},
      {"searchsorted", {"", SearchSorted}},
      {"size", {"Size", Count}},
      {"rank", {"Rank", Count}},
      {"ndim", {"Rank", Count}},
      {"conj", {"", Same}},
      {"conjugate", {"", Same}},
      {"array", {"", Same}},
      {"ensureshape", {"", EnsureShape}},
      {"emptylike", {"ZerosLike", Unary}},
  };
  return kTable;
}

}  // namespace fusebox::keras
