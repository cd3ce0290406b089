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

ValueId Fractions(LayerCall& c) { return c.emit().Cast(c.in(), DType::kF32); }

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
  if (form.before != 1) v = c.emit().Op("Mul", {v, c.emit().F32(form.before)});
  if (!form.op.empty()) v = c.emit().Op(form.op, {v});
  c.AddOutput(form.behind == 1 ? v : c.emit().Op("Mul", {v, c.emit().F32(form.behind)}));
}

void Truncate(LayerCall& c, std::string_view) {
  const ValueId x = c.in();
  if (c.emit().ok() && c.emit().dtype(x) != DType::kF32) return c.AddOutput(x);
  const ValueId up = c.emit().Op("Less", {x, c.emit().F32(0)});
  c.AddOutput(c.emit().Op("SelectV2", {up, c.emit().Op("Ceil", {x}), c.emit().Op("Floor", {x})}));
}

void FullLike(LayerCall& c, std::string_view) {
  const json value = PlainArgument(c, 1, {"fill_value"});
  const json type = PlainArgument(c, 2, {"dtype"});
  if (!value.is_number()) return c.emit().Refuse("no fill value");
  if (!type.is_null()) return c.emit().Refuse("its dtype " + type.dump().substr(0, 80));
  const ValueId zeros = c.emit().Op("ZerosLike", {TensorArgument(c, 0, {"x"})});
  if (c.emit().ok())
    c.AddOutput(c.emit().Op("AddV2", {zeros, c.emit().Scalar(c.emit().dtype(zeros), value.get<double>())}));
}

void OfTwoFloats(LayerCall& c, std::string_view name) {
  const ValueId x = Operand(c, FindArgument(c, 0, {"x1", "x"}), DType::kF32);
  const ValueId y = Operand(c, FindArgument(c, 1, {"x2", "y"}), DType::kF32);
  if (name == "hypot") {
    const ValueId squares = c.emit().Op("AddV2", {c.emit().Op("Square", {x}), c.emit().Op("Square", {y})});
    return c.AddOutput(c.emit().Op("Sqrt", {squares}));
  }
  // max(x, y) plus a correction: the exponentials stay finite.
  const ValueId apart = c.emit().Op("Neg", {c.emit().Op("Abs", {c.emit().Op("Sub", {x, y})})});
  c.AddOutput(c.emit().Op("AddV2", {c.emit().Op("Maximum", {x, y}), c.emit().Op("Softplus", {apart})}));
}

void CountNonZero(LayerCall& c, std::string_view) {
  const bool three = c.keras() >= 3;
  const ValueId x = TensorArgument(c, 0, {"input", "x"});
  auto axes = IntsArgument(c, 1, {"axis"}).value_or(std::vector<int64_t>{});
  const bool keep = FlagArgument(c, 2, {"keepdims"});
  if (axes.empty())
    for (int i = 0; i < c.emit().rank(x); ++i) axes.push_back(i);
  if (!c.emit().ok()) return;
  const ValueId counts = c.emit().dtype(x) == DType::kBool
                             ? x
                             : c.emit().Op("NotEqual", {x, c.emit().Scalar(c.emit().dtype(x), 0)});
  const ValueId ones = c.emit().Cast(counts, three ? DType::kI32 : DType::kI64);
  c.AddOutput(c.emit().Op("Sum", {ones, c.emit().I32s(axes)}, MakeAttrs("keep_dims", keep)));
}

void Moments(LayerCall& c, std::string_view) {
  const ValueId x = c.in();
  const auto axes = IntsArgument(c, 1, {"axes"});
  const bool keep = FlagArgument(c, c.keras() >= 3 ? 2 : 3, {"keepdims"});
  if (!axes) return c.emit().Refuse("no axes");
  const ValueId over = c.emit().I32s(*axes);
  const auto mean = [&](ValueId v, bool kept) {
    return c.emit().Op("Mean", {v, over}, MakeAttrs("keep_dims", kept));
  };
  c.AddOutput(mean(x, keep));
  c.AddOutput(mean(c.emit().Op("SquaredDifference", {x, mean(x, true)}), keep));
}

void Crelu(LayerCall& c, std::string_view) {
  const ValueId x = c.in();
  const int64_t axis = AxesOf(c, {IntArgument(c, 1, {"axis"}, -1)}, c.emit().rank(x))[0];
  c.AddOutput(c.emit().Op("Relu", {c.emit().Concat({x, c.emit().Op("Neg", {x})}, static_cast<int>(axis))}));
}

void LocalResponse(LayerCall& c, std::string_view op) {
  const auto number = [&](size_t position, const char* name, double otherwise) {
    return static_cast<float>(NumberArgument(c, position, {name}, otherwise));
  };
  const int64_t radius = IntArgument(c, 1, {"depth_radius"}, 5);
  c.AddOutput(c.emit().Op(op, {TensorArgument(c, 0, {"input"})},
                          MakeAttrs("depth_radius", radius, "bias", number(2, "bias", 1), "alpha",
                                    number(3, "alpha", 1), "beta", number(4, "beta", 0.5))));
}

void Band(LayerCall& c, std::string_view name) {
  int64_t below = -1;
  int64_t above = -1;
  if (name == "bandpart") {
    below = IntArgument(c, 1, {"num_lower"}, -1);
    above = IntArgument(c, 2, {"num_upper"}, -1);
  } else {
    const int64_t k = IntArgument(c, 1, {"k"}, 0);
    const int64_t size = name == "tril" ? k : -k;
    if (size < 0) return c.emit().Refuse("its k " + std::to_string(k) + ": the diagonal itself must stay");
    (name == "tril" ? above : below) = size;
  }
  c.AddOutput(c.emit().Op("MatrixBandPart",
                          {TensorArgument(c, 0, {"input", "x"}), c.emit().I32(below), c.emit().I32(above)}));
}

void Sorted(LayerCall& c, std::string_view op) {
  ValueId x = TensorArgument(c, 0, {"values", "x"});
  const int rank = c.emit().rank(x);
  const int64_t axis = AxesOf(c, {IntArgument(c, 1, {"axis"}, -1)}, rank)[0];
  const std::string direction = TextArgument(c, 2, {"direction"}, "ASCENDING");
  const bool falls = direction == "DESCENDING";
  if (!falls && direction != "ASCENDING") return c.emit().Refuse("its direction " + direction);
  if (FlagArgument(c, 3, {"stable"}) && falls) return c.emit().Refuse("a stable descending sort");
  if (!c.emit().ok()) return;
  if (c.emit().dtype(x) != DType::kF32) return c.emit().Refuse("a sort of types other than f32");
  std::vector<int64_t> perm;
  for (int i = 0; i < rank; ++i) perm.push_back(i);
  std::swap(perm[static_cast<size_t>(axis)], perm.back());
  const bool last = axis == rank - 1;
  if (!last) x = c.emit().Transpose(x, perm);
  if (!falls) x = c.emit().Op("Neg", {x});
  const auto found = c.emit().Ops("TopKV2", {x, c.emit().SizeValue(c.emit().size(x, -1))}, {}, 2);
  if (!c.emit().ok()) return;
  ValueId y = op == "sort" ? found[0] : found[1];
  if (op == "sort" && !falls) y = c.emit().Op("Neg", {y});
  c.AddOutput(last ? y : c.emit().Transpose(y, perm));
}

void Average(LayerCall& c, std::string_view op) {
  const ValueId x = Fractions(c);
  std::vector<int64_t> axes = IntsArgument(c, 2, {"axis"}).value_or(std::vector<int64_t>{});
  const Given* weights = FindArgument(c, 1, {"weights"});
  const auto* none = weights ? std::get_if<json>(&weights->value) : nullptr;
  const bool plain = !weights || (none && none->is_null());
  const int rank = c.emit().rank(x);
  if (axes.empty())
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  const ValueId over = c.emit().I32s(axes);
  if (plain) return c.AddOutput(c.emit().Op(op, {x, over}));
  ValueId w = Operand(c, weights, DType::kF32);
  if (c.emit().rank(w) == 1 && rank > 1 && axes.size() == 1) {  // along the axis
    std::vector<Extent> shape(static_cast<size_t>(rank), Extent{1});
    shape[static_cast<size_t>(AxesOf(c, axes, rank)[0])] = c.emit().size(w, 0);
    w = c.emit().Reshape(w, shape);
  }
  const ValueId sum = c.emit().Op("Sum", {c.emit().Op("Mul", {x, w}), over});
  c.AddOutput(c.emit().Op("RealDiv", {sum, c.emit().Op("Sum", {w, over})}));
}

// (x + sqrt(x^2 + b)) / 2
void SquarePlus(LayerCall& c, std::string_view) {
  const ValueId x = Fractions(c);
  const ValueId b = c.emit().F32(NumberArgument(c, 1, {"b"}, 4));
  const ValueId root = c.emit().Op("Sqrt", {c.emit().Op("AddV2", {c.emit().Op("Square", {x}), b})});
  c.AddOutput(c.emit().Op("Mul", {c.emit().Op("AddV2", {x, root}), c.emit().F32(0.5)}));
}

// alpha * (exp(x / alpha) - 1) below zero
void Celu(LayerCall& c, std::string_view) {
  const double alpha = NumberArgument(c, 1, {"alpha"}, 1);
  if (alpha == 0) return c.emit().Reject("its alpha is 0");
  const ValueId x = Fractions(c);
  const ValueId bent = c.emit().Op("Elu", {c.emit().Op("Mul", {x, c.emit().F32(1 / alpha)})});
  const ValueId positive = c.emit().Op("Greater", {x, c.emit().F32(0)});
  c.AddOutput(c.emit().Op("SelectV2", {positive, x, c.emit().Op("Mul", {bent, c.emit().F32(alpha)})}));
}

// One half gates the other.
void Glu(LayerCall& c, std::string_view) {
  const ValueId x = Fractions(c);
  const int64_t axis = AxesOf(c, {IntArgument(c, 1, {"axis"}, -1)}, c.emit().rank(x))[0];
  if (c.emit().ok() && c.emit().dim(x, static_cast<int>(axis)) % 2 != 0)
    return c.emit().Refuse("an axis of odd or unknown size");
  const auto halves = c.emit().Ops("Split", {c.emit().I32(axis), x}, MakeAttrs("num_split", int64_t{2}), 2);
  c.AddOutput(c.emit().Op("Mul", {halves[0], c.emit().Op("Sigmoid", {halves[1]})}));
}

void Shrink(LayerCall& c, std::string_view name) {
  const double most = NumberArgument(c, 1, {"threshold"}, 0.5);
  const ValueId x = Fractions(c);
  if (name == "hardshrink") {
    const ValueId far = c.emit().Op("Greater", {c.emit().Op("Abs", {x}), c.emit().F32(most)});
    return c.AddOutput(c.emit().Op("SelectV2", {far, x, c.emit().F32(0)}));
  }
  const ValueId near =
      c.emit().Op("Maximum", {c.emit().Op("Minimum", {x, c.emit().F32(most)}), c.emit().F32(-most)});
  c.AddOutput(c.emit().Op("Sub", {x, near}));
}

void Threshold(LayerCall& c, std::string_view) {
  const double least = NumberArgument(c, 1, {"threshold"}, 0);
  const double otherwise = NumberArgument(c, 2, {"default_value"}, 0);
  const ValueId x = Fractions(c);
  const ValueId above = c.emit().Op("Greater", {x, c.emit().F32(least)});
  c.AddOutput(c.emit().Op("SelectV2", {above, x, c.emit().F32(otherwise)}));
}

}  // namespace fusebox::keras
