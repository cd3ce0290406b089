// SPDX-License-Identifier: Apache-2.0
// y * scale + shift by constants, batch normalization among them: into the convolution or FULLY_CONNECTED
// before it, and what is left in a row merged to one product and one sum. Computed in double, rounded once.
#include <algorithm>
#include <cmath>
#include <limits>

#include "converter/passes/optimize/broadcast.h"
#include "converter/passes/optimize/edit.h"

namespace fusebox::converter::optimize {
namespace {

// Where an op has its weights' output channel, and its bias.
struct Weighted {
  size_t weights, bias, axis;
};
std::optional<Weighted> WeightedOf(const Node& node) {
  const OpInfo& info = Info(node.op);
  if (info.quantizes != Quantizes::kWeighted) return std::nullopt;
  return Weighted{static_cast<size_t>(info.operands.first_weights()), static_cast<size_t>(info.operands.bias),
                  static_cast<size_t>(info.channel_axis)};
}

// One of + - * / between a value and a constant.
struct Step {
  Op op;
  ValueId x, constant;
  bool reversed;  // constant - x
};
std::optional<Step> StepOf(const Edit& e, const Node& node) {
  const ValueId a = node.operands[0];
  const ValueId b = node.operands[1];
  if (!e.is_f32(a) || !e.is_f32(b) || e.is_const(a) == e.is_const(b)) return std::nullopt;
  const bool first = e.is_const(a);
  if (first && node.is(Op::kDiv)) return std::nullopt;
  return Step{node.op, first ? b : a, first ? a : b, first && node.is(Op::kSub)};
}

// The scale and shift of one step, each as large as the constant, or scalar.
struct ScaleShift {
  Numbers scale, shift;
};
std::optional<ScaleShift> ScaleShiftOf(const Edit& e, const Step& step) {
  Numbers c{e.shape(step.constant), *e.Floats(step.constant)};
  if (!std::ranges::all_of(c.values, [](double x) { return std::isfinite(x); })) return std::nullopt;
  switch (step.op) {
    case Op::kAdd: return ScaleShift{Numbers::Of(1), std::move(c)};
    case Op::kMul: return ScaleShift{std::move(c), Numbers::Of(0)};
    case Op::kSub:
      if (step.reversed) return ScaleShift{Numbers::Of(-1), std::move(c)};
      return ScaleShift{Numbers::Of(1), Map(std::move(c), [](double x) { return -x; })};
    default:
      if (std::ranges::any_of(c.values, [](double x) { return x == 0; })) return std::nullopt;
      return ScaleShift{Map(std::move(c), [](double x) { return 1 / x; }), Numbers::Of(0)};
  }
}

// Returns a constant as one number per channel, from one element or from one per channel in the last
// dimension. If it is something else, returns nothing, and *why names the dimension that it varies over.
std::optional<std::vector<double>> PerChannel(const Numbers& c, int64_t channels, int rank,
                                              std::string* why) {
  if (c.shape.rank() > rank) return std::nullopt;
  if (c.values.size() == 1) return std::vector<double>(static_cast<size_t>(channels), c.values[0]);
  for (int d = 0; d + 1 < c.shape.rank(); ++d) {
    if (c.shape[static_cast<size_t>(d)] == 1) continue;
    *why = "it varies over dimension " + std::to_string(d);
    return std::nullopt;
  }
  if (static_cast<int64_t>(c.values.size()) != channels) return std::nullopt;
  return c.values;
}

// w[.., channel, ..] * scale[channel]
std::vector<double> Scaled(std::vector<double> w, const Shape& shape, size_t axis,
                           const std::vector<double>& scale) {
  size_t inner = 1;
  for (size_t d = axis + 1; d < shape.dims().size(); ++d) inner *= static_cast<size_t>(shape[d]);
  for (size_t i = 0; i < w.size(); ++i) w[i] *= scale[i / inner % scale.size()];
  return w;
}

// An infinite weight makes NaN of a zero, where the product after the sum would not.
bool AreFinite(const std::vector<double>& weights) {
  return std::ranges::all_of(
      weights, [](double w) { return std::abs(w) <= double{std::numeric_limits<float>::max()}; });
}

std::string What(const Step& step) {
  return step.op == Op::kMul || step.op == Op::kDiv ? "the scale" : "the bias";
}

class Merger {
 public:
  Merger(Edit& e, Node& node, const Step& step, const ScaleShift& affine, Node& before, const Weighted& place)
      : e_(e), node_(node), step_(step), affine_(affine), before_(before), place_(place) {}

  bool Run() {
    if (HasActivation(before_)) return false;
    if (HasActivation(node_) && before_.is(Op::kTransposeConv)) return false;
    const ValueId weights = before_.operands[place_.weights];
    const Shape& shape = e_.shape(weights);
    if (shape.rank() <= static_cast<int>(place_.axis)) return false;
    channels_ = shape[place_.axis];
    const int rank = e_.rank(before_.results[0]);
    if (channels_ < 1 || rank < 1 || e_.shape(before_.results[0]).dims().back() != channels_) return false;
    std::string why;
    const auto scale = PerChannel(affine_.scale, channels_, rank, &why);
    const auto shift = PerChannel(affine_.shift, channels_, rank, &why);
    if (!scale || !shift) return why.empty() ? false : Refuse(why);
    if (!e_.read_once(step_.x))
      return Refuse("its operand has " + std::to_string(e_.reads(step_.x)) + " readers");
    return Scale(weights, *scale) && Shift(*scale, *shift);
  }

 private:
  bool Refuse(const std::string& why) {
    e_.Note(node_, What(step_) + " is not merged into " + std::string(Name(before_.op)) + ": " + why);
    return false;
  }

  // Everything that may stand in the way is looked at before anything is changed.
  bool Scale(ValueId weights, const std::vector<double>& scale) {
    const ValueId bias = before_.operands.size() > place_.bias ? before_.operands[place_.bias] : kNoValue;
    if (bias != kNoValue && !e_.Floats(bias)) return false;
    bias_ = bias;
    if (std::ranges::all_of(scale, [](double s) { return s == 1; })) return true;
    auto values = e_.Floats(weights);
    if (!values) return false;
    if (!e_.read_once(weights))
      return Refuse("its weights have " + std::to_string(e_.reads(weights)) + " readers");
    const Shape shape = e_.shape(weights);
    const std::string name = e_.f().value(weights).name;
    values = Scaled(*std::move(values), shape, place_.axis, scale);
    if (!AreFinite(*values)) return Refuse("its weights would be infinite");
    e_.SetOperand(before_, place_.weights, e_.F32(shape, *values, name));
    return true;
  }

  bool Shift(const std::vector<double>& scale, const std::vector<double>& shift) {
    std::vector<double> bias(static_cast<size_t>(channels_), 0.0);
    if (bias_ != kNoValue) bias = *e_.Floats(bias_);
    bias.resize(static_cast<size_t>(channels_), 0.0);
    for (size_t i = 0; i < bias.size(); ++i) bias[i] = bias[i] * scale[i] + shift[i];
    const bool none = bias_ == kNoValue && std::ranges::all_of(bias, [](double b) { return b == 0; });
    if (!none) {
      const std::string name = e_.f().value(bias_ == kNoValue ? step_.constant : bias_).name;
      e_.SetOperand(before_, place_.bias, e_.F32(Shape{channels_}, bias, name));
    }
    if (HasActivation(node_))
      before_.attrs.Set("fused_activation_function", node_.attrs.str("fused_activation_function", "NONE"));
    e_.Absorb(node_, step_.x);
    return true;
  }

  Edit& e_;
  Node& node_;
  const Step& step_;
  const ScaleShift& affine_;
  Node& before_;
  const Weighted& place_;
  int64_t channels_ = 0;
  ValueId bias_ = kNoValue;
};

bool IntoWeights(Edit& e, Node& node) {
  const auto step = StepOf(e, node);
  if (!step) return false;
  Node* const before = e.producer(step->x);
  const auto place = before ? WeightedOf(*before) : std::nullopt;
  if (!place) return false;
  const auto affine = ScaleShiftOf(e, *step);
  return affine && Merger(e, node, *step, *affine, *before, *place).Run();
}

// x * scale by input channel, before FULLY_CONNECTED or CONV_2D: into the weights. Padding stays zero.
bool FromInput(Edit& e, Node& node) {
  Node* const before = e.producer(node.operands[0], Op::kMul);
  const ValueId weights = node.operands[1];
  if (!before || HasActivation(*before) || !e.read_once(node.operands[0])) return false;
  const auto step = StepOf(e, *before);
  auto values = e.Floats(weights);
  if (!step || !values || !e.read_once(weights)) return false;
  const Shape shape = e.shape(weights);
  const Shape in = e.shape(step->x);
  if (in.rank() < 1 || in != e.shape(before->results[0]) || in.dims().back() != shape.dims().back())
    return false;
  std::string why;
  const Numbers c{e.shape(step->constant), *e.Floats(step->constant)};
  const auto scale = PerChannel(c, shape.dims().back(), in.rank(), &why);
  if (!scale) return false;
  const auto axis = static_cast<size_t>(shape.rank() - 1);
  values = Scaled(*std::move(values), shape, axis, *scale);
  if (!AreFinite(*values)) return false;
  e.SetOperand(node, 1, e.F32(shape, *values, e.f().value(weights).name));
  e.SetOperand(node, 0, step->x);
  return true;
}
constexpr Rule kFromInput = {Op::kConv2D, Op::kFullyConnected, FromInput};

// Returns whether adding the constant to a value, or multiplying by it, keeps the value's shape.
bool Fits(const Shape& c, const Shape& x) {
  if (c.rank() > x.rank()) return false;
  for (int d = 1; d <= c.rank(); ++d) {
    const int64_t size = c.dims()[static_cast<size_t>(c.rank() - d)];
    if (size != 1 && size != x.dims()[static_cast<size_t>(x.rank() - d)]) return false;
  }
  return true;
}

double Largest(const Numbers& numbers) {
  double largest = 0;
  for (const double value : numbers.values) largest = std::max(largest, std::abs(value));
  return largest;
}

// Returns whether all of these are normal f32 numbers or zero, so that no digits are lost.
bool FitsF32(const Numbers& numbers) {
  using Limits = std::numeric_limits<float>;
  return std::ranges::all_of(numbers.values, [](double value) {
    const double size = std::abs(value);
    return value == 0 || (size >= double{Limits::min()} && size <= double{Limits::max()});
  });
}

// x + 2^23 - 2^23 rounds x, and is meant to.
bool Rounds(const Numbers& sum, const Numbers& added, const Numbers& before) {
  constexpr double kLost = 0x1p-16;
  return Largest(before) > 0 && Largest(added) > 0 && Largest(sum) <= Largest(before) * kLost;
}

// A row of steps that ends here becomes one product and one sum at most, where that is less.
bool AffinesInARow(Edit& e, Node& node) {
  ScaleShift all{Numbers::Of(1), Numbers::Of(0)};
  Node* at = &node;
  int count = 0;
  ValueId x = kNoValue;
  while (at && (at == &node || (!HasActivation(*at) && e.read_once(at->results[0])))) {
    const bool known = at->is(Op::kAdd) || at->is(Op::kSub) || at->is(Op::kMul) || at->is(Op::kDiv);
    const auto step = known ? StepOf(e, *at) : std::nullopt;
    const auto affine = step ? ScaleShiftOf(e, *step) : std::nullopt;
    if (!affine || !Fits(e.shape(step->constant), e.shape(step->x))) break;
    // all(step(x)) = scale * (s x + t) + shift
    const auto shift = Combine(all.scale, affine->shift, [](double a, double b) { return a * b; });
    const auto total =
        shift ? Combine(*shift, all.shift, [](double a, double b) { return a + b; }) : std::nullopt;
    const auto scale = Combine(all.scale, affine->scale, [](double a, double b) { return a * b; });
    if (!total || !scale || !FitsF32(*total) || !FitsF32(*scale) || Rounds(*total, *shift, all.shift)) break;
    all = {*scale, *total};
    x = step->x;
    ++count;
    at = e.producer(x);
  }
  const bool scales = !all.scale.IsAll(1);
  const bool shifts = !all.shift.IsAll(0);
  if (count < 2 || static_cast<int>(scales) + static_cast<int>(shifts) >= count) return false;
  if (!scales && !shifts) return false;  // left to what finds neutral ops
  Attrs attrs;
  if (HasActivation(node))
    attrs.Set("fused_activation_function", node.attrs.str("fused_activation_function", "NONE"));
  ValueId y = x;
  if (scales) y = e.Value(Op::kMul, {y, e.F32(all.scale.shape, all.scale.values)}, shifts ? Attrs() : attrs);
  if (shifts) y = e.Value(Op::kAdd, {y, e.F32(all.shift.shape, all.shift.values)}, attrs);
  e.Replace(node, y);
  return true;
}

// Adds a constant, one number or one per channel, to the bias of an op whose result has `shape`.
bool AddToBias(Edit& e, Node& node, const Weighted& place, const Shape& shape, const Numbers& shift,
               const std::string& name) {
  if (HasActivation(node) || shape.rank() < 1 || shape.dims().back() < 1) return false;
  const int64_t channels = shape.dims().back();
  std::string why;
  auto bias = PerChannel(shift, channels, shape.rank(), &why);
  const ValueId known = node.operands.size() > place.bias ? node.operands[place.bias] : kNoValue;
  const auto values =
      known == kNoValue ? std::vector<double>(static_cast<size_t>(channels)) : e.Floats(known);
  if (!bias || !values || values->size() != bias->size()) return false;
  for (size_t i = 0; i < bias->size(); ++i) (*bias)[i] += (*values)[i];
  e.SetOperand(node, place.bias,
               e.F32(Shape{channels}, *bias, known == kNoValue ? name : e.f().value(known).name));
  return true;
}

// (convolution + y) + c, as an LSTM's cell has it: the constant goes into the convolution's bias.
bool IntoASummand(Edit& e, Node& node) {
  const auto step = StepOf(e, node);
  Node* const sum = step && !step->reversed ? e.producer(step->x, Op::kAdd) : nullptr;
  if (!sum || HasActivation(*sum) || !e.read_once(step->x)) return false;
  const auto affine = ScaleShiftOf(e, *step);
  if (!affine) return false;
  for (const ValueId summand : sum->operands) {
    Node* const before = e.producer(summand);
    const auto place = before ? WeightedOf(*before) : std::nullopt;
    const Shape shape = e.shape(summand);
    if (!place || !e.read_once(summand) || shape != e.shape(node.results[0])) continue;
    if (!AddToBias(e, *before, *place, shape, affine->shift, e.f().value(step->constant).name)) continue;
    if (HasActivation(node))
      sum->attrs.Set("fused_activation_function", node.attrs.str("fused_activation_function", "NONE"));
    e.Absorb(node, step->x);
    return true;
  }
  return false;
}

}  // namespace

std::span<const Rule> AffineRules() {
  static constexpr Rule kRules[] = {{Op::kAdd, Op::kSub, IntoASummand},
                                    {kArithmetic, IntoWeights},
                                    {kArithmetic, AffinesInARow},
                                    kFromInput};
  return kRules;
}

}  // namespace fusebox::converter::optimize
