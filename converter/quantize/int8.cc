// SPDX-License-Identifier: Apache-2.0
// Every node that has an 8-bit kernel gets one; borders between it and what stays float are QUANTIZE and DEQUANTIZE.
#include <algorithm>
#include <cmath>
#include <set>

#include "converter/quantize/ops8.h"
#include "converter/quantize/quantize.h"

namespace fusebox::converter::quantize {
namespace {

std::shared_ptr<const Quant> QuantOf(float scale, int64_t zero_point) {
  return std::make_shared<const Quant>(Quant{{scale}, {}, {}, {zero_point}});
}

// Asymmetric i8 for a range that holds zero.
std::shared_ptr<const Quant> QuantOf(const Range& range) {
  const double span = static_cast<double>(range.max) - range.min;
  const float scale = span > 0 ? static_cast<float>(span / 255) : 1.0f;
  const double zero = std::round(-128 - range.min / static_cast<double>(scale));
  return QuantOf(scale, static_cast<int64_t>(std::clamp(zero, -128.0, 127.0)));
}

// Which values have one scale, and what each scale is.
class Scales {
 public:
  Scales(const Function& f, const Ranges& ranges) : f_(f), ranges_(ranges) {
    for (const auto& node : f.nodes) Fix(*node);
    for (const auto& node : f.nodes)
      if (Role(*node) == Role8::kSame) TieResults(*node);
    for (const auto& node : f.nodes)
      if (Role(*node) == Role8::kLstm) TieOutputState(*node);
    for (const auto& node : f.nodes)
      if (Role(*node) == Role8::kJoin) TieOperands(*node);
    for (const auto& node : f.nodes)
      if (Role(*node) == Role8::kLstm && WantsSymmetricOutput(*node))
        symmetric_.insert(Root(node->results[0]));
    for (const auto& [v, range] : ranges) {
      Range& all = groups_[Root(v)];
      all.min = std::min(all.min, range.min);
      all.max = std::max(all.max, range.max);
      all.seen = all.seen || range.seen;
    }
  }

  // Null where the value was never seen, or spans more than makes sense in 256 steps: huge numbers that stand for a mask.
  std::shared_ptr<const Quant> Of(ValueId v) {
    const ValueId root = Root(v);
    if (const auto fixed = fixed_.find(root); fixed != fixed_.end()) return fixed->second;
    auto [known, added] = quants_.emplace(root, nullptr);
    const auto group = groups_.find(root);
    if (added && group != groups_.end() && group->second.seen && !IsTooWide(v))
      known->second = symmetric_.contains(root) ? SymmetricScale(group->second) : QuantOf(group->second);
    return known->second;
  }

  bool IsTooWide(ValueId v) {
    constexpr float kWidest = 1e9F;
    const auto group = groups_.find(Root(v));
    return group != groups_.end() && (group->second.max > kWidest || group->second.min < -kWidest);
  }

 private:
  void Fix(const Node& node) {
    if (const auto fixed = FixedScale(node)) fixed_[node.results[0]] = QuantOf(fixed->first, fixed->second);
  }

  ValueId Root(ValueId v) {
    auto [it, added] = parent_.emplace(v, v);
    if (it->second == v) return v;
    const ValueId root = Root(it->second);
    parent_[v] = root;
    return root;
  }

  // A group of a fixed scale keeps it.
  void Tie(ValueId a, ValueId b) {
    a = Root(a), b = Root(b);
    if (a == b) return;
    if (fixed_.contains(b) && fixed_.contains(a)) return;
    if (fixed_.contains(b)) std::swap(a, b);
    parent_[b] = a;
  }

  bool IsActivation(ValueId v) const { return v != kNoValue && ranges_.contains(v); }

  void TieResults(const Node& node) {
    const ValueId x = node.operands[DataOperand(node)];
    if (!IsActivation(x)) return;
    for (ValueId result : node.results)
      if (IsActivation(result)) Tie(x, result);
  }

  void TieOutputState(const Node& node) {
    if (node.operands.size() <= kLstmOutputState) return;
    const ValueId state = node.operands[kLstmOutputState];
    if (IsActivation(state) && IsActivation(node.results[0])) Tie(node.results[0], state);
  }

  // What comes with a scale of its own is converted instead.
  void TieOperands(const Node& node) {
    for (ValueId v : node.operands)
      if (IsActivation(v) && !fixed_.contains(Root(v)) && !fixed_.contains(Root(node.results[0])))
        Tie(node.results[0], v);
  }

  const Function& f_;
  const Ranges& ranges_;
  std::map<ValueId, ValueId> parent_;
  std::map<ValueId, std::shared_ptr<const Quant>> fixed_, quants_;
  std::map<ValueId, Range> groups_;
  std::set<ValueId> symmetric_;  // with an LSTM's output
};

class Quantiser {
 public:
  Quantiser(Context& context, Function& f, const Measured& measured)
      : context_(context),
        f_(f),
        scales_(f, measured.values),
        ranges_(measured.values),
        lstms_(measured.lstms) {}

  Twins Run() {
    std::vector<std::unique_ptr<Node>> before = std::move(f_.nodes);
    f_.nodes.clear();
    for (auto& node : before) {
      const std::string why = Convert(*node);
      if (!why.empty()) {
        Float(*node);
        if (HasFloats(*node)) context_.Note(Place(*node) + ": stays f32: " + why);
      }
      f_.nodes.push_back(std::move(node));
    }
    for (ValueId& v : f_.outputs) v = AsFloat(v, nullptr);
    RemoveDead(f_);
    return stored_;
  }

 private:
  bool HasFloats(const Node& node) const {
    return std::ranges::any_of(node.results, [&](ValueId v) { return v != kNoValue && ranges_.contains(v); });
  }

  // A node before the one that is being looked at.
  void Emit(Op op, ValueId from, ValueId to, const Node* place) {
    Node& made = f_.AddNode(op, {from}, {});
    made.results = {to};
    if (place) made.location = place->location;
  }

  ValueId Twin(ValueId v, const std::shared_ptr<const Quant>& quant) {
    const ValueId twin = f_.AddValue(Type{DType::kI8, f_.value(v).type.shape}, f_.value(v).name);
    f_.value(twin).quant = quant;
    return twin;
  }

  ValueId Stored(ValueId v, const Node& place) {
    if (const auto known = stored_.find(v); known != stored_.end()) return known->second;
    const auto quant = scales_.Of(v);
    if (!quant) return kNoValue;
    const ValueId twin = Twin(v, quant);
    Emit(Op::kQuantize, v, twin, &place);
    return stored_[v] = twin;
  }

  // The f32 value itself; where only its twin is made, DEQUANTIZE makes it.
  ValueId AsFloat(ValueId v, const Node* place) {
    if (v == kNoValue || !native_.contains(v) || !restored_.insert(v).second) return v;
    Emit(Op::kDequantize, stored_.at(v), v, place);
    return v;
  }
  void Float(Node& node) {
    for (ValueId v : node.operands) AsFloat(v, &node);
  }

  // Rewrites the node; why not, else.
  std::string Convert(Node& node) {
    const Role8 role = Role(node);
    if (role == Role8::kNone) return "there is no 8-bit form of " + std::string(Name(node.op));
    for (size_t i = 0; i < ProperResultCount(node); ++i)
      if (const ValueId v = node.results[i];
          v != kNoValue && f_.value(v).type.dtype == DType::kF32 && !scales_.Of(v))
        return scales_.IsTooWide(v) ? "its values are too far apart for 8 bits" : "it was not observed";
    const std::vector<ValueId> operands = node.operands, results = node.results, inner = node.intermediates;
    const std::set<ValueId> restored = restored_;
    const size_t kept = f_.nodes.size();
    const Twins known = stored_;
    std::string why = role == Role8::kWeighted ? Weighted(node)
                      : role == Role8::kLstm   ? Lstm(node)
                                               : Elementwise(node, role);
    if (why.empty()) {
      for (ValueId& v : node.results)
        if (v != kNoValue && f_.value(v).type.dtype == DType::kF32) v = Twin(v, scales_.Of(v));
      why = Refusal(context_, f_, node);
    }
    if (!why.empty()) {
      node.operands = operands, node.results = results, node.intermediates = inner;
      f_.nodes.resize(kept);
      stored_ = known;
      restored_ = restored;
      return why;
    }
    if (role == Role8::kLstm) {
      for (const size_t state : {kLstmOutputState, kLstmCellState})
        f_.value(operands[state]).is_variable = false;
      if (const std::string warning = LstmWarning(f_, node); !warning.empty())
        context_.Note(Place(node) + ": " + warning);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (node.results[i] == results[i]) continue;
      stored_[results[i]] = node.results[i];
      native_.insert(results[i]);
    }
    return "";
  }

  // Operands that are no constants as bytes, and f32 constants with them.
  std::string Elementwise(Node& node, Role8 role) {
    for (ValueId& v : node.operands) {
      if (v == kNoValue || f_.value(v).type.dtype != DType::kF32) continue;
      const auto same = role == Role8::kOwn ? nullptr : scales_.Of(node.results[0]);
      if (f_.value(v).is_const()) {
        v = Constant(v, same);
        if (v == kNoValue) return "a constant is not finite";
        continue;
      }
      if (!scales_.Of(v)) return "an operand was not observed";
      ValueId twin = Stored(v, node);
      if (same && *f_.value(twin).quant != *same) {
        const ValueId again = Twin(v, same);
        Emit(Op::kQuantize, twin, again, &node);
        twin = again;
      }
      v = twin;
    }
    return "";
  }

  ValueId Constant(ValueId v, std::shared_ptr<const Quant> quant) {
    Range range;
    for (const float value : f_.value(v).data.As<float>()) {
      if (!std::isfinite(value)) return kNoValue;
      range.min = std::min(range.min, value);
      range.max = std::max(range.max, value);
    }
    if (!quant) quant = QuantOf(range);
    std::vector<int8_t> bytes;
    for (const float value : f_.value(v).data.As<float>())
      bytes.push_back(static_cast<int8_t>(
          std::clamp(std::round(value / quant->scales[0]) + static_cast<float>(quant->zero_points[0]),
                     -128.0f, 127.0f)));
    const ValueId out =
        f_.AddConst(Type{DType::kI8, f_.value(v).type.shape}, Buffer::Of<int8_t>(bytes), f_.value(v).name);
    f_.value(out).quant = quant;
    return out;
  }

  // CONV_2D and its like: weights by channel, biases in the scale of the sums.
  std::string Weighted(Node& node) {
    const WeightedForm form = *FormOf(node);
    const ValueId x = node.operands[form.input], w = node.operands[form.weights];
    const ValueId b = form.bias < node.operands.size() ? node.operands[form.bias] : kNoValue;
    if (x == kNoValue || f_.value(x).is_const() || !scales_.Of(x)) return "its input was not observed";
    if (!f_.value(w).is_const() || f_.value(w).type.dtype != DType::kF32)
      return "its weights are not constant";
    if (b != kNoValue && (!f_.value(b).is_const() || f_.value(b).type.dtype != DType::kF32))
      return "its bias is not constant";
    const double scale = scales_.Of(x)->scales[0];
    const auto stored = SymmetricBytes(f_.value(w), form.axis, Smallest(b, scale, form.axis < 0));
    if (!stored) return "its weights are not finite";
    const ValueId weights =
        f_.AddConst(Type{DType::kI8, f_.value(w).type.shape}, stored->data, f_.value(w).name);
    f_.value(weights).quant = stored->quant;
    const ValueId bias = b == kNoValue ? kNoValue : Bias(b, scale, *stored->quant);
    node.operands[form.input] = Stored(x, node);
    node.operands[form.weights] = weights;
    if (b != kNoValue) node.operands[form.bias] = bias;
    return "";
  }

  // All of it in integers; the states are made as integers too.
  std::string Lstm(Node& node) {
    const ValueId x = node.operands[0];
    if (f_.value(x).is_const() || !scales_.Of(x)) return "its input was not observed";
    if (node.operands.size() <= kLstmCellState) return "it is of the basic form";
    const auto seen = lstms_.find(node.results[0]);
    const LstmRanges ranges = seen == lstms_.end() ? LstmRanges{} : seen->second;
    const auto output = scales_.Of(node.results[0]);
    std::string why = StoreLstmWeights(f_, node, ranges, *scales_.Of(x), output);
    if (!why.empty()) return why;
    node.operands[0] = Stored(x, node);
    const std::pair<DType, std::shared_ptr<const Quant>> states[] = {
        {DType::kI8, output}, {DType::kI16, CellStateScale(ranges.cell)}};
    for (size_t i = 0; i < std::size(states); ++i) {
      ValueId& state = node.operands[kLstmOutputState + i];
      state = StoreState(f_, AsFloat(state, &node), states[i].first, states[i].second);
      ValueId& final_state = node.results[1 + i];
      if (final_state == kNoValue) continue;
      final_state = f_.AddValue(f_.value(state).type, f_.value(final_state).name);
      f_.value(final_state).quant = states[i].second;
    }
    return "";
  }

  // Scales of weights below which a bias would not fit 32 bits.
  std::vector<double> Smallest(ValueId bias, double input_scale, bool one) const {
    std::vector<double> out;
    if (bias == kNoValue) return out;
    for (const float value : f_.value(bias).data.As<float>()) {
      const double least = std::abs(static_cast<double>(value)) / (kLargestBias * input_scale);
      if (!one || out.empty()) out.push_back(least);
      else out[0] = std::max(out[0], least);
    }
    return out;
  }

  ValueId Bias(ValueId v, double input_scale, const Quant& weights) {
    std::vector<float> steps;
    std::vector<int32_t> values;
    const auto floats = f_.value(v).data.As<float>();
    for (const float scale : weights.scales) steps.push_back(static_cast<float>(input_scale * scale));
    for (size_t i = 0; i < floats.size(); ++i) {
      const double step = input_scale * weights.scales[weights.scales.size() > 1 ? i : 0];
      values.push_back(
          static_cast<int32_t>(std::clamp(std::round(floats[i] / step), -2147483648.0, 2147483647.0)));
    }
    const ValueId out =
        f_.AddConst(Type{DType::kI32, f_.value(v).type.shape}, Buffer::Of<int32_t>(values), f_.value(v).name);
    f_.value(out).quant = std::make_shared<const Quant>(
        Quant{.scales = steps, .zero_points = std::vector<int64_t>(steps.size())});
    return out;
  }

  Context& context_;
  Function& f_;
  Scales scales_;
  const Ranges& ranges_;
  const std::map<ValueId, LstmRanges>& lstms_;
  Twins stored_;
  std::set<ValueId> native_;    // only their twin is made by a node
  std::set<ValueId> restored_;  // and those that DEQUANTIZE has made since
};

}  // namespace

Twins ToInt8(Context& context, Function& f, const Measured& measured) {
  return Quantiser(context, f, measured).Run();
}

}  // namespace fusebox::converter::quantize
