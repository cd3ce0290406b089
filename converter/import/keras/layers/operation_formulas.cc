// SPDX-License-Identifier: Apache-2.0
// Functions that TensorFlow composes of several ops.
#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "converter/import/keras/layers/operation.h"

namespace fusebox::keras {

using nlohmann::json;

namespace {

ValueId Fractions(LayerCall& c) { return c.e().Cast(c.in(), DType::kF32); }

}  // namespace

void Scaled(LayerCall& c, std::string_view name) {
  struct Form {
    double before;  // factor of the operand
    std::string_view op;
    double behind;  // and of the result
  };
  static const auto* const forms =
      new std::map<std::string_view, Form>{{"log2", {1, "Log", std::numbers::log2e}},
                                           {"log10", {1, "Log", std::numbers::log10e}},
                                           {"exp2", {std::numbers::ln2, "Exp", 1}},
                                           {"deg2rad", {std::numbers::pi / 180, "", 1}}};
  const Form& form = forms->at(name);
  ValueId v = Fractions(c);
  if (form.before != 1) v = c.e().Op("Mul", {v, c.e().F32(form.before)});
  if (!form.op.empty()) v = c.e().Op(form.op, {v});
  c.AddOutput(form.behind == 1 ? v : c.e().Op("Mul", {v, c.e().F32(form.behind)}));
}

void Truncate(LayerCall& c, std::string_view) {
  const ValueId x = c.in();
  if (c.e().ok() && c.e().dtype(x) != DType::kF32) return c.AddOutput(x);
  const ValueId up = c.e().Op("Less", {x, c.e().F32(0)});
  c.AddOutput(c.e().Op("SelectV2", {up, c.e().Op("Ceil", {x}), c.e().Op("Floor", {x})}));
}

void FullLike(LayerCall& c, std::string_view) {
  const json value = PlainArgument(c, 1, {"fill_value"}), type = PlainArgument(c, 2, {"dtype"});
  if (!value.is_number()) return c.e().Refuse("no fill value");
  if (!type.is_null()) return c.e().Refuse("its dtype " + type.dump().substr(0, 80));
  const ValueId zeros = c.e().Op("ZerosLike", {TensorArgument(c, 0, {"x"})});
  if (c.e().ok())
    c.AddOutput(c.e().Op("AddV2", {zeros, c.e().Scalar(c.e().dtype(zeros), value.get<double>())}));
}

void OfTwoFloats(LayerCall& c, std::string_view name) {
  const ValueId x = Operand(c, FindArgument(c, 0, {"x1", "x"}), DType::kF32),
                y = Operand(c, FindArgument(c, 1, {"x2", "y"}), DType::kF32);
  if (name == "hypot") {
    const ValueId squares = c.e().Op("AddV2", {c.e().Op("Square", {x}), c.e().Op("Square", {y})});
    return c.AddOutput(c.e().Op("Sqrt", {squares}));
  }
  // max(x, y) plus a correction: the exponentials stay finite.
  const ValueId apart = c.e().Op("Neg", {c.e().Op("Abs", {c.e().Op("Sub", {x, y})})});
  c.AddOutput(c.e().Op("AddV2", {c.e().Op("Maximum", {x, y}), c.e().Op("Softplus", {apart})}));
}

void CountNonZero(LayerCall& c, std::string_view) {
  const bool three = c.keras() >= 3;
  const ValueId x = TensorArgument(c, 0, {"input", "x"});
  auto axes = IntsArgument(c, 1, {"axis"}).value_or(std::vector<int64_t>{});
  const bool keep = FlagArgument(c, 2, {"keepdims"});
  if (axes.empty())
    for (int i = 0; i < c.e().rank(x); ++i) axes.push_back(i);
  if (!c.e().ok()) return;
  const ValueId counts =
      c.e().dtype(x) == DType::kBool ? x : c.e().Op("NotEqual", {x, c.e().Scalar(c.e().dtype(x), 0)});
  const ValueId ones = c.e().Cast(counts, three ? DType::kI32 : DType::kI64);
  c.AddOutput(c.e().Op("Sum", {ones, c.e().I32s(axes)}, MakeAttrs("keep_dims", keep)));
}

void Moments(LayerCall& c, std::string_view) {
  const ValueId x = c.in();
  const auto axes = IntsArgument(c, 1, {"axes"});
  const bool keep = FlagArgument(c, c.keras() >= 3 ? 2 : 3, {"keepdims"});
  if (!axes) return c.e().Refuse("no axes");
  const ValueId over = c.e().I32s(*axes);
  const auto mean = [&](ValueId v, bool kept) {
    return c.e().Op("Mean", {v, over}, MakeAttrs("keep_dims", kept));
  };
  c.AddOutput(mean(x, keep));
  c.AddOutput(mean(c.e().Op("SquaredDifference", {x, mean(x, true)}), keep));
}

void Crelu(LayerCall& c, std::string_view) {
  const ValueId x = c.in();
  const int64_t axis = AxesOf(c, {IntArgument(c, 1, {"axis"}, -1)}, c.e().rank(x))[0];
  c.AddOutput(c.e().Op("Relu", {c.e().Concat({x, c.e().Op("Neg", {x})}, static_cast<int>(axis))}));
}

void LocalResponse(LayerCall& c, std::string_view op) {
  const auto number = [&](size_t position, const char* name, double otherwise) {
    return static_cast<float>(NumberArgument(c, position, {name}, otherwise));
  };
  const int64_t radius = IntArgument(c, 1, {"depth_radius"}, 5);
  c.AddOutput(c.e().Op(op, {TensorArgument(c, 0, {"input"})},
                       MakeAttrs("depth_radius", radius, "bias", number(2, "bias", 1), "alpha",
                                 number(3, "alpha", 1), "beta", number(4, "beta", 0.5))));
}

void Band(LayerCall& c, std::string_view name) {
  int64_t below = -1, above = -1;
  if (name == "bandpart") {
    below = IntArgument(c, 1, {"num_lower"}, -1);
    above = IntArgument(c, 2, {"num_upper"}, -1);
  } else {
    const int64_t k = IntArgument(c, 1, {"k"}, 0);
    const int64_t size = name == "tril" ? k : -k;
    if (size < 0) return c.e().Refuse("its k " + std::to_string(k) + ": the diagonal itself must stay");
    (name == "tril" ? above : below) = size;
  }
  c.AddOutput(
      c.e().Op("MatrixBandPart", {TensorArgument(c, 0, {"input", "x"}), c.e().I32(below), c.e().I32(above)}));
}

void Sorted(LayerCall& c, std::string_view op) {
  ValueId x = TensorArgument(c, 0, {"values", "x"});
  const int rank = c.e().rank(x);
  const int64_t axis = AxesOf(c, {IntArgument(c, 1, {"axis"}, -1)}, rank)[0];
  const std::string direction = TextArgument(c, 2, {"direction"}, "ASCENDING");
  const bool falls = direction == "DESCENDING";
  if (!falls && direction != "ASCENDING") return c.e().Refuse("its direction " + direction);
  if (FlagArgument(c, 3, {"stable"}) && falls) return c.e().Refuse("a stable descending sort");
  if (!c.e().ok()) return;
  if (c.e().dtype(x) != DType::kF32) return c.e().Refuse("a sort of types other than f32");
  std::vector<int64_t> perm;
  for (int i = 0; i < rank; ++i) perm.push_back(i);
  std::swap(perm[static_cast<size_t>(axis)], perm.back());
  const bool last = axis == rank - 1;
  if (!last) x = c.e().Transpose(x, perm);
  if (!falls) x = c.e().Op("Neg", {x});
  const auto found = c.e().Ops("TopKV2", {x, c.e().SizeValue(c.e().size(x, -1))}, {}, 2);
  if (!c.e().ok()) return;
  ValueId y = op == "sort" ? found[0] : found[1];
  if (op == "sort" && !falls) y = c.e().Op("Neg", {y});
  c.AddOutput(last ? y : c.e().Transpose(y, perm));
}

void Average(LayerCall& c, std::string_view op) {
  const ValueId x = Fractions(c);
  std::vector<int64_t> axes = IntsArgument(c, 2, {"axis"}).value_or(std::vector<int64_t>{});
  const Given* weights = FindArgument(c, 1, {"weights"});
  const auto* none = weights ? std::get_if<json>(&weights->value) : nullptr;
  const bool plain = !weights || (none && none->is_null());
  const int rank = c.e().rank(x);
  if (axes.empty())
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  const ValueId over = c.e().I32s(axes);
  if (plain) return c.AddOutput(c.e().Op(op, {x, over}));
  ValueId w = Operand(c, weights, DType::kF32);
  if (c.e().rank(w) == 1 && rank > 1 && axes.size() == 1) {  // along the axis
    std::vector<Extent> shape(static_cast<size_t>(rank), Extent{1});
    shape[static_cast<size_t>(AxesOf(c, axes, rank)[0])] = c.e().size(w, 0);
    w = c.e().Reshape(w, shape);
  }
  const ValueId sum = c.e().Op("Sum", {c.e().Op("Mul", {x, w}), over});
  c.AddOutput(c.e().Op("RealDiv", {sum, c.e().Op("Sum", {w, over})}));
}

// (x + sqrt(x^2 + b)) / 2
void SquarePlus(LayerCall& c, std::string_view) {
  const ValueId x = Fractions(c), b = c.e().F32(NumberArgument(c, 1, {"b"}, 4));
  const ValueId root = c.e().Op("Sqrt", {c.e().Op("AddV2", {c.e().Op("Square", {x}), b})});
  c.AddOutput(c.e().Op("Mul", {c.e().Op("AddV2", {x, root}), c.e().F32(0.5)}));
}

// alpha * (exp(x / alpha) - 1) below zero
void Celu(LayerCall& c, std::string_view) {
  const double alpha = NumberArgument(c, 1, {"alpha"}, 1);
  if (alpha == 0) return c.e().Reject("its alpha is 0");
  const ValueId x = Fractions(c), bent = c.e().Op("Elu", {c.e().Op("Mul", {x, c.e().F32(1 / alpha)})});
  const ValueId positive = c.e().Op("Greater", {x, c.e().F32(0)});
  c.AddOutput(c.e().Op("SelectV2", {positive, x, c.e().Op("Mul", {bent, c.e().F32(alpha)})}));
}

// One half gates the other.
void Glu(LayerCall& c, std::string_view) {
  const ValueId x = Fractions(c);
  const int64_t axis = AxesOf(c, {IntArgument(c, 1, {"axis"}, -1)}, c.e().rank(x))[0];
  if (c.e().ok() && c.e().dim(x, static_cast<int>(axis)) % 2 != 0)
    return c.e().Refuse("an axis of odd or unknown size");
  const auto halves = c.e().Ops("Split", {c.e().I32(axis), x}, MakeAttrs("num_split", int64_t{2}), 2);
  c.AddOutput(c.e().Op("Mul", {halves[0], c.e().Op("Sigmoid", {halves[1]})}));
}

void Shrink(LayerCall& c, std::string_view name) {
  const double most = NumberArgument(c, 1, {"threshold"}, 0.5);
  const ValueId x = Fractions(c);
  if (name == "hardshrink") {
    const ValueId far = c.e().Op("Greater", {c.e().Op("Abs", {x}), c.e().F32(most)});
    return c.AddOutput(c.e().Op("SelectV2", {far, x, c.e().F32(0)}));
  }
  const ValueId near = c.e().Op("Maximum", {c.e().Op("Minimum", {x, c.e().F32(most)}), c.e().F32(-most)});
  c.AddOutput(c.e().Op("Sub", {x, near}));
}

void Threshold(LayerCall& c, std::string_view) {
  const double least = NumberArgument(c, 1, {"threshold"}, 0),
               otherwise = NumberArgument(c, 2, {"default_value"}, 0);
  const ValueId x = Fractions(c), above = c.e().Op("Greater", {x, c.e().F32(least)});
  c.AddOutput(c.e().Op("SelectV2", {above, x, c.e().F32(otherwise)}));
}

}  // namespace fusebox::keras
