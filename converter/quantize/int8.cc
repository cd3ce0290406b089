// SPDX-License-Identifier: Apache-2.0
// Converts the selected nodes to integers, with QUANTIZE and DEQUANTIZE at the borders to float nodes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "converter/quantize/ops8.h"
#include "converter/quantize/quantize.h"

namespace fusebox::converter::quantize {
namespace {

Range RangeOf(const Value& constant) {
  Range range;
  range.Widen({constant.type, constant.data});
  return range;
}

class Quantizer {
 public:
  // All nodes except `floats`.
  Quantizer(Context& context, Function& f, const Measured& measured, Reasons floats, Scheme scheme)
      : context_(context),
        f_(f),
        floats_(std::move(floats)),
        scheme_(scheme),
        scales_(context.registry, f, measured.values, floats_, scheme.activations),
        ranges_(measured.values),
        magnitudes_(measured.magnitudes),
        lstms_(measured.lstms) {}

  // Why each node has no 8-bit form, or "". Leaves unused values in the function.
  std::vector<std::string> Try() {
    std::vector<std::string> whys;
    for (size_t i = 0, count = f_.nodes.size(); i < count; ++i) {
      Node& node = *f_.nodes[i];
      const Before before = Now(node);
      whys.push_back(Role(node) == Quantizes::kWeighted
                         ? WhyNoProduct(node, *RolesOf(context_.registry, node, scheme_.rows))
                         : Convert(node));
      Restore(before, node);
    }
    return whys;
  }

  QuantizedValues Run() {
    std::vector<std::unique_ptr<Node>> nodes = std::move(f_.nodes);
    f_.nodes.clear();
    std::vector<std::pair<ValueId, const Node*>> makers;
    Reasons stay;
    for (auto& node : nodes) {
      const Before before = Now(*node);
      for (size_t i = 0; i < ProperResultCount(*node); ++i) makers.emplace_back(node->results[i], node.get());
      const auto chosen = floats_.find(node.get());
      const std::string why = chosen == floats_.end() ? Convert(*node) : chosen->second;
      if (chosen == floats_.end() && why.empty()) {
        Keep(before, *node);
        const bool sum = node->is(Op::kAdd) || node->is(Op::kSub);
        if (sum && scheme_.activations == DType::kI16) node->attrs.Set("pot_scale_int16", false);
      } else {
        Restore(before, *node);
        Float(*node);
        if (HasFloats(*node) && !why.empty()) stay[node.get()] = why;
      }
      f_.nodes.push_back(std::move(node));
    }
    for (ValueId& v : f_.outputs) v = AsFloat(v, nullptr);
    NoteErased(makers);
    RemoveDead(f_);
    for (const auto& node : f_.nodes)
      if (const auto why = stay.find(node.get()); why != stay.end())
        context_.Note(Place(*node) + ": stays f32: " + why->second);
    std::erase_if(quantized_, [&](const auto& quantized) { return !native_.contains(quantized.first); });
    return quantized_;
  }

 private:
  // Notes values that are mostly below half a step, once per group.
  void NoteErased(std::span<const std::pair<ValueId, const Node*>> makers) {
    constexpr double kMost = 0.5;
    std::set<ValueId> groups;
    for (const auto& [v, maker] : makers) {
      const auto seen = magnitudes_.find(v);
      if (seen == magnitudes_.end() || !quantized_.contains(v) || scales_.IsFixed(v)) continue;
      const auto quant = scales_.Of(v);
      const double share = quant ? seen->second.ShareBelow(quant->scales[0] / 2.0) : 0;
      const Range& range = ranges_.at(v);
      if (share <= kMost || !groups.insert(scales_.Root(v)).second) continue;
      context_.Note(
          fmt::format("{}: {:.0f}% of its values other than zero become zero: one step is {:.3g}, "
                      "because its range reaches {:.3g}",
                      Place(*maker), 100 * share, quant->scales[0], std::max(-range.min, range.max)));
    }
  }

  bool HasFloats(const Node& node) const {
    if (node.is(Op::kQuantize) || node.is(Op::kDequantize))
      return false;  // borders of an already quantized model
    return std::ranges::any_of(node.results, [&](ValueId v) { return v != kNoValue && ranges_.contains(v); });
  }

  // A node before the current one.
  void Emit(Op op, ValueId from, ValueId to, const Node* place) {
    Node& made = f_.AddNode(op, {from}, {});
    made.results = {to};
    if (place) made.location = place->location;
  }

  ValueId AddQuantized(ValueId v, const std::shared_ptr<const Quant>& quant) {
    const ValueId quantized =
        f_.AddValue(Type{scheme_.activations, f_.value(v).type.shape}, f_.value(v).name);
    f_.value(quantized).quant = quant;
    return quantized;
  }

  ValueId AsQuantized(ValueId v, const Node& place) {
    if (const auto known = quantized_.find(v); known != quantized_.end()) return known->second;
    const auto quant = scales_.Of(v);
    if (!quant) return kNoValue;
    const ValueId quantized = AddQuantized(v, quant);
    Emit(Op::kQuantize, v, quantized, &place);
    return quantized_[v] = quantized;
  }

  // The f32 value; DEQUANTIZE restores it if only its twin is produced.
  ValueId AsFloat(ValueId v, const Node* place) {
    if (v == kNoValue || !native_.contains(v) || !dequantized_.insert(v).second) return v;
    Emit(Op::kDequantize, quantized_.at(v), v, place);
    return v;
  }
  void Float(Node& node) {
    for (ValueId v : node.operands) AsFloat(v, &node);
  }

  // The node before its conversion.
  struct Before {
    ValueIds operands, results, intermediates;
    size_t nodes;
    QuantizedValues quantized;
    std::set<ValueId> dequantized;
  };
  Before Now(const Node& node) const {
    return {.operands = node.operands,
            .results = node.results,
            .intermediates = node.intermediates,
            .nodes = f_.nodes.size(),
            .quantized = quantized_,
            .dequantized = dequantized_};
  }
  void Restore(const Before& before, Node& node) {
    node.operands = before.operands;
    node.results = before.results;
    node.intermediates = before.intermediates;
    f_.nodes.resize(before.nodes);
    quantized_ = before.quantized;
    dequantized_ = before.dequantized;
  }

  // Makes its results twins.
  void Keep(const Before& before, const Node& node) {
    if (Role(node) == Quantizes::kLstm) {
      for (const size_t state : {kLstmOutputState, kLstmCellState})
        f_.value(before.operands[state]).is_variable = false;
      if (const std::string warning = LstmWarning(f_, node); !warning.empty())
        context_.Note(Place(node) + ": " + warning);
    }
    for (size_t i = 0; i < before.results.size(); ++i) {
      if (node.results[i] == before.results[i]) continue;
      quantized_[before.results[i]] = node.results[i];
      native_.insert(before.results[i]);
    }
  }

  // Rewrites the node. On failure returns the reason and leaves the node half-converted.
  std::string Convert(Node& node) {
    const auto roles = RolesOf(context_.registry, node, scheme_.rows);
    const bool custom = node.is(Op::kCustom);
    const bool words = scheme_.activations == DType::kI16;
    const bool eight_only = words && (custom || Role(node) == Quantizes::kLstm);
    if (eight_only || (custom ? !roles : Role(node) == Quantizes::kNone))
      return (words ? "no 16-bit form of " : "no 8-bit form of ") +
             (custom ? node.name : std::string(Name(node.op)));
    for (size_t i = 0; i < ProperResultCount(node); ++i)
      if (const ValueId v = node.results[i]; v != kNoValue && f_.value(v).type.dtype == DType::kF32)
        if (std::string why = scales_.WhyNot(v); !why.empty()) return why;
    std::string why = Role(node) == Quantizes::kLstm ? Lstm(node) : Operands(node, *roles);
    if (!why.empty()) return why;
    for (ValueId& v : node.results)
      if (v != kNoValue && f_.value(v).type.dtype == DType::kF32) v = AddQuantized(v, scales_.Of(v));
    why = Refusal(context_, f_, node);
    return custom && !why.empty() ? "no 8-bit form: " + why : why;
  }

  std::string Operands(Node& node, const OpQuantization& roles) {
    if (std::string why = Unfit(node); !why.empty()) return why;
    std::string why;
    if (Role(node) == Quantizes::kWeighted) why = WhyNoProduct(node, roles);
    else if (node.is(Op::kCustom)) why = WhyNoWeights(f_, node, roles, ScalesOf(node, roles));
    else return Activations(node, roles);
    if (why.empty())
      why = QuantizeProductWeights(f_, node, roles, ScalesOf(node, roles), scheme_.activations);
    if (!why.empty()) return why;
    return Activations(node, roles);
  }

  // Returns the value whose scale the operand must have, or kNoValue if the operand has its own scale.
  ValueId Lead(const Node& node, size_t operand, const OpQuantization& roles) const {
    if (Role(node) == Quantizes::kSame || Role(node) == Quantizes::kJoin) return node.results[0];
    for (const auto& group : roles.same_scale)
      if (std::ranges::find(group.operands, operand) != group.operands.end()) return LeadOf(f_, node, group);
    return kNoValue;
  }

  // Converts computed operands, and f32 constants with them.
  std::string Activations(Node& node, const OpQuantization& roles) {
    std::vector<ValueId> leads;
    for (size_t i = 0; i < node.operands.size(); ++i) leads.push_back(Lead(node, i, roles));
    for (size_t i = 0; i < node.operands.size(); ++i) {
      ValueId& v = node.operands[i];
      if (v == kNoValue || f_.value(v).type.dtype != DType::kF32) continue;
      const auto same = leads[i] == kNoValue ? nullptr : scales_.Of(leads[i]);
      if (f_.value(v).is_const()) {
        v = Constant(v, same);
        if (v == kNoValue) return "a constant is not finite";
        continue;
      }
      if (const std::string why = scales_.WhyNot(v); !why.empty()) return "an operand: " + why;
      ValueId quantized = AsQuantized(v, node);
      if (same && *f_.value(quantized).quant != *same) {
        const ValueId again = AddQuantized(v, same);
        Emit(Op::kQuantize, quantized, again, &node);
        quantized = again;
      }
      v = quantized;
    }
    return "";
  }

  // Operands that readers would reject, or whose values 8 bits would erase.
  std::string Unfit(const Node& node) {
    const auto shape = [&](ValueId v) { return f_.value(v).type.shape; };
    if (node.is(Op::kPrelu) && shape(node.results[0]).rank() > 4 &&
        shape(node.operands[0]) != shape(node.operands[1]))
      return "integer kernels broadcast up to 4 dimensions only";
    if (node.is(Op::kPadV2) && IsFarPadding(node))
      return "its padding is far outside of the range of its operand";
    const bool sums = node.is(Op::kAdd) || node.is(Op::kSub);
    if (!sums || f_.value(node.results[0]).type.dtype != DType::kF32) return "";
    const double all =
        (scheme_.activations == DType::kI16 ? 65534.0 : 255.0) * scales_.Of(node.results[0])->scales[0];
    for (const ValueId v : node.operands)
      if (Step(v) > all) return "its values are smaller than an operand's quantization step";
    return "";
  }
  // The operand would lose most of its steps.
  bool IsFarPadding(const Node& node) const {
    constexpr double kFarMore = 16;
    const auto from = ranges_.find(node.operands[0]);
    const auto to = ranges_.find(node.results[0]);
    if (from == ranges_.end() || to == ranges_.end()) return false;
    const auto width = [](const Range& range) { return static_cast<double>(range.max) - range.min; };
    return width(to->second) > kFarMore * width(from->second);
  }
  double Step(ValueId v) {
    if (f_.value(v).is_const()) return ActivationScale(RangeOf(f_.value(v)), scheme_.activations)->scales[0];
    const auto quant = scales_.Of(v);
    return quant ? quant->scales[0] : 0;
  }

  ValueId Constant(ValueId v, std::shared_ptr<const Quant> quant) {
    const Range range = RangeOf(f_.value(v));
    if (!range.finite) return kNoValue;
    if (!quant) quant = ActivationScale(range, scheme_.activations);
    const Buffer steps = scheme_.activations == DType::kI16 ? Steps<int16_t>(f_.value(v), *quant)
                                                            : Steps<int8_t>(f_.value(v), *quant);
    const ValueId out =
        f_.AddConst(Type{scheme_.activations, f_.value(v).type.shape}, steps, f_.value(v).name);
    f_.value(out).quant = quant;
    return out;
  }
  template <class T>
  static Buffer Steps(const Value& constant, const Quant& quant) {
    constexpr auto kLeast = static_cast<float>(std::numeric_limits<T>::min());
    constexpr auto kMost = static_cast<float>(std::numeric_limits<T>::max());
    const auto zero_point = static_cast<float>(quant.zero_points[0]);
    std::vector<T> steps;
    for (const float value : constant.data.As<float>())
      steps.push_back(
          static_cast<T>(std::clamp(std::round(value / quant.scales[0]) + zero_point, kLeast, kMost)));
    return Buffer::Of<T>(steps);
  }

  // Why a builtin op stays f32, before its weights are converted.
  std::string WhyNoProduct(const Node& node, const OpQuantization& roles) {
    const ValueId x = node.operands[DataOperand(node)];
    if (x == kNoValue || f_.value(x).is_const()) return "its input is constant";
    if (const std::string why = scales_.WhyNot(x); !why.empty()) return "its input: " + why;
    if (const std::string why = scales_.WhyNot(node.results[0]); !why.empty()) return why;
    return WhyNoWeights(f_, node, roles, ScalesOf(node, roles));
  }

  OperandScales ScalesOf(const Node& node, const OpQuantization& roles) {
    return [this, &node, &roles](size_t operand) -> double {
      const ValueId lead = Lead(node, operand, roles);
      const ValueId v = OperandOf(node, operand);
      if (v == kNoValue || f_.value(v).type.dtype != DType::kF32) return 0;
      return Step(lead == kNoValue ? v : lead);
    };
  }

  // All operands as integers, including the states.
  std::string Lstm(Node& node) {
    const ValueId x = node.operands[0];
    if (f_.value(x).is_const() || !scales_.Of(x)) return "its input was not observed";
    if (node.operands.size() <= kLstmCellState) return "the basic LSTM form is unsupported";
    const auto seen = lstms_.find(node.results[0]);
    const LstmRanges ranges = seen == lstms_.end() ? LstmRanges{} : seen->second;
    const auto output = scales_.Of(node.results[0]);
    std::string why = QuantizeLstmWeights(f_, node, ranges, *scales_.Of(x), output);
    if (!why.empty()) return why;
    node.operands[0] = AsQuantized(x, node);
    const std::pair<DType, std::shared_ptr<const Quant>> states[] = {
        {DType::kI8, output}, {DType::kI16, CellStateScale(ranges.cell)}};
    for (size_t i = 0; i < std::size(states); ++i) {
      ValueId& state = node.operands[kLstmOutputState + i];
      state = QuantizeState(f_, AsFloat(state, &node), states[i].first, states[i].second);
      ValueId& final_state = node.results[1 + i];
      if (final_state == kNoValue) continue;
      final_state = f_.AddValue(f_.value(state).type, f_.value(final_state).name);
      f_.value(final_state).quant = states[i].second;
    }
    return "";
  }

  Context& context_;
  Function& f_;
  const Reasons floats_;
  const Scheme scheme_;
  Scales scales_;
  const Ranges& ranges_;
  const std::map<ValueId, Magnitudes>& magnitudes_;
  const std::map<ValueId, LstmRanges>& lstms_;
  QuantizedValues quantized_;
  std::set<ValueId> native_;       // a node computes only their quantized form
  std::set<ValueId> dequantized_;  // f32 values restored by DEQUANTIZE
};

}  // namespace

QuantizedValues ToInt8(Context& context, Function& f, const Measured& measured, Scheme scheme) {
  Reasons refused;
  const auto copy = Clone(f, f.name);
  const auto whys = Quantizer(context, *copy, measured, {}, scheme).Try();
  for (size_t i = 0; i < whys.size(); ++i)
    if (!whys[i].empty()) refused[f.nodes[i].get()] = whys[i];
  return Quantizer(context, f, measured, StayFloat(f, std::move(refused)), scheme).Run();
}

}  // namespace fusebox::converter::quantize
