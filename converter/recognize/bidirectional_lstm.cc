// SPDX-License-Identifier: Apache-2.0
// Two LSTM layers that read one input in opposite directions become one composite, keras.bidirectional,
// around both, so that a plugin can have one op for them. If its rule declines, they are two composites as
// before.
//
// The reversal of the backward sequence and the concatenation of both sequences are part of it, if they are
// present. All other uses (sums, products, averages, last steps) stay outside. If a layer keeps only the last
// step of its sequence, the composite returns that step, which its type shows (keras_layer.h of plugins/rnn);
// nothing is reversed then.
#include <optional>

#include "converter/recognize/recognizer.h"
#include "host/base/status.h"
#include "host/graph/rewriter.h"

namespace fusebox::converter::recognize {
namespace {

constexpr size_t kLayerOperands = 6;  // inputs, h, c, kernel, recurrent kernel, bias
constexpr size_t kSequence = 1;
constexpr size_t kStates = 2;
constexpr size_t kBackward = kStates + 2;  // first result of the backward layer in the composite
constexpr const char* kShared[] = {"time_major", "activation", "recurrent_activation",
                                   "asymmetric_quantize_inputs"};

bool IsLstm(const Node& node) {
  return node.is(Op::kStablehloComposite) && (node.name == "keras.lstm" || node.name.starts_with("lstm_"));
}

bool GoesBackwards(const Node& node) { return node.attrs.b("go_backwards", false); }

std::string NameOf(const Node& node) { return node.location.name.empty() ? node.name : node.location.name; }

// The second result of a layer. kUnclear: nothing tells, or an attribute contradicts the type.
enum class Kept { kWhole, kLastStep, kUnclear };

int64_t Steps(const Type& type, int axis) {
  return type.shape.ranked() && type.shape.rank() == 3 ? type.shape[static_cast<size_t>(axis)]
                                                       : Shape::kUnknown;
}

std::optional<int64_t> OneInteger(const View& view, ValueId v) {
  const auto values = view.Ints(v);
  return values && values->size() == 1 ? std::optional((*values)[0]) : std::nullopt;
}

class Pair {
 public:
  Pair(const View& view, const Node& forward, const Node& backward)
      : view_(view), forward_(&forward), backward_(&backward), made_(view) {}

  Result<Region> Form() {
    FUSEBOX_TRY(Check());
    Function& body = made_.AddFunction("bidirectional");
    ValueIds operands;
    for (const Node* layer : {forward_, backward_})
      for (size_t i = layer == forward_ ? 0 : 1; i < kLayerOperands; ++i) {
        operands.push_back(made_.Input(layer->operands[i]));
        const Value& operand = view_.function().value(layer->operands[i]);
        const ValueId v = body.AddInput(operand.type, operand.name);
        body.value(v).quant = operand.quant;
      }
    FillBody(body);
    for (size_t i = 0; i < body.inputs.size(); ++i)
      body.input_names.push_back("operand_" + std::to_string(i));
    for (size_t i = 0; i < body.outputs.size(); ++i)
      body.output_names.push_back("result_" + std::to_string(i));
    AddComposite(std::move(operands), body);
    return made_.Take();
  }

 private:
  // Finds the other nodes of the pair.
  Status Check() {
    const Node& a = *forward_;
    const Node& b = *backward_;
    if (a.operands.size() != kLayerOperands || b.operands.size() != kLayerOperands)
      return Unsupported("a mask is in the way");
    if (a.results.size() < 4 || b.results.size() < 4)
      return Unsupported("they do not have the results of a Keras layer");
    for (const char* key : kShared) {
      const AttrValue* of_a = a.attrs.Find(key);
      const AttrValue* of_b = b.attrs.Find(key);
      if ((of_a == nullptr) != (of_b == nullptr) || (of_a && *of_a != *of_b))
        return Unsupported(std::string("they differ in ") + key);
    }
    axis_ = a.attrs.b("time_major", false) ? 0 : 1;
    for (const Node* layer : {&a, &b})
      if (KeptOf(*layer) == Kept::kUnclear && !view_.readers(layer->results[kSequence]).empty())
        return Unsupported("the sequence of " + NameOf(*layer) + " may be its last step only");
    if (KeptOf(b) != Kept::kLastStep) {
      for (const Uses::Reader& reader : view_.readers(b.results[kSequence])) {
        if (!ReversesTime(reader, axis_))
          return Unsupported("the backward sequence is read in the order of processing");
        reversals_.push_back(reader.node);
      }
    }
    merge_ = ConcatenationOf();
    return {};
  }

  Kept KeptOf(const Node& layer) const {
    const int64_t steps = Steps(view_.type(layer.operands[0]), axis_);
    const int64_t kept = Steps(view_.type(layer.results[kSequence]), axis_);
    const bool maybe_last = kept == 1 || kept == Shape::kUnknown;
    if (layer.attrs.Find("sequence")) {
      if (layer.attrs.b("sequence", false)) return Kept::kWhole;
      return maybe_last ? Kept::kLastStep : Kept::kUnclear;
    }
    if (steps == kept) return Kept::kWhole;
    return kept == 1 ? Kept::kLastStep : Kept::kUnclear;
  }

  bool ReversesTime(const Uses::Reader& reader, int axis) const {
    if (!reader.node || !reader.node->is(Op::kReverseV2) || reader.index != 0) return false;
    const auto along = OneInteger(view_, reader.node->operands[1]);
    return along && (*along == axis || *along == axis - 3);
  }

  const Node* ConcatenationOf() const {
    for (const Node* reversal : reversals_) {
      for (const Uses::Reader& reader : view_.readers(reversal->results[0])) {
        const Node* node = reader.node;
        if (!node || !node->is(Op::kConcatenation) || node->operands.size() != 2) continue;
        const int64_t along = node->attrs.i64("axis", 0);
        if ((along == 2 || along == -1) && node->operands[0] == forward_->results[kSequence] &&
            node->operands[1] == reversal->results[0] &&
            node->attrs.str("fused_activation_function", "NONE") == "NONE")
          return node;
      }
    }
    return nullptr;
  }

  // The type of a layer's sequence, made to show how many steps it has.
  Type SequenceType(const Node& layer) const {
    Type type = view_.type(layer.results[kSequence]);
    const Kept kept = KeptOf(layer);
    if (type.shape.rank() != 3) type.shape = Shape{Shape::kUnknown, Shape::kUnknown, Shape::kUnknown};
    int64_t& steps = type.shape.dims()[static_cast<size_t>(axis_)];
    if (kept == Kept::kLastStep) steps = 1;
    if (kept == Kept::kUnclear) steps = Shape::kUnknown;
    if (kept == Kept::kWhole && steps == Shape::kUnknown) steps = Steps(view_.type(layer.operands[0]), axis_);
    return type;
  }

  // Both layers, the reversal and the concatenation.
  void FillBody(Function& body) {
    Rewriter write(body);
    for (const Node* layer : {forward_, backward_}) {
      const bool backward = layer == backward_;
      ValueIds operands = {body.inputs[0]};
      for (size_t i = 1; i < kLayerOperands; ++i)
        operands.push_back(body.inputs[i + (backward ? kLayerOperands - 1 : 0)]);
      std::vector<Type> types;
      for (const ValueId v : layer->results) types.push_back(v == kNoValue ? Type{} : view_.type(v));
      types[kSequence] = SequenceType(*layer);
      Node& copy = write.EmitTyped(Op::kStablehloComposite, std::move(operands), types, layer->attrs);
      copy.name = layer->name;
      copy.version = layer->version;
      copy.body = layer->body;
      copy.location = layer->location;
      body.outputs.insert(body.outputs.end(), copy.results.begin(), copy.results.begin() + kStates + 2);
    }
    if (KeptOf(*backward_) != Kept::kLastStep) {
      ValueId& sequence = body.outputs[kBackward + kSequence];
      sequence = write.Typed(Op::kReverseV2, {sequence, write.I32({axis_})}, write.type(sequence));
    }
    if (!merge_) return;
    body.outputs.push_back(write.Typed(Op::kConcatenation,
                                       {body.outputs[kSequence], body.outputs[kBackward + kSequence]},
                                       view_.type(merge_->results[0]), MakeAttrs("axis", 2)));
  }

  void AddComposite(ValueIds operands, const Function& body) {
    Attrs attrs;
    for (const char* key : kShared)
      if (const AttrValue* value = forward_->attrs.Find(key)) attrs.Set(key, *value);
    attrs.Set("merge", merge_ != nullptr);
    std::vector<Type> types;
    for (const ValueId v : body.outputs) types.push_back(body.value(v).type);
    Rewriter write(made_.f());
    Node& node = write.EmitTyped(Op::kStablehloComposite, std::move(operands), types, attrs);
    node.location = forward_->location;  // the results keep their names
    node.name = "keras.bidirectional";
    node.version = 1;
    node.body = body.name;
    const bool turned = KeptOf(*backward_) != Kept::kLastStep;
    for (const Node* layer : {forward_, backward_}) {
      const size_t first = layer == backward_ ? kBackward : 0;
      for (size_t i = 0; i < kStates + 2; ++i)
        if (!(turned && first && i == kSequence)) made_.SetResult(layer->results[i], node.results[first + i]);
      if (layer->results.size() > kStates + 2)
        made_.SetResult(layer->results[kStates + 2], write.Scalar(DType::kF32, 1));
    }
    for (const Node* reversal : reversals_)
      made_.SetResult(reversal->results[0], node.results[kBackward + kSequence]);
    if (merge_) made_.SetResult(merge_->results[0], node.results[2 * kBackward]);
  }

  const View& view_;
  const Node *forward_, *backward_;
  Replacement made_;
  int axis_ = 1;                        // of time
  std::vector<const Node*> reversals_;  // of the backward sequence
  const Node* merge_ = nullptr;         // the concatenation; null: none
};

}  // namespace

Result<std::optional<Region>> FindBidirectionalLstm(const View& view, const Node& forward) {
  if (!IsLstm(forward) || GoesBackwards(forward) || forward.operands.empty()) return std::nullopt;
  Status stays;
  for (const auto& reader : view.readers(forward.operands[0])) {
    if (!reader.node || reader.index != 0 || !IsLstm(*reader.node) || !GoesBackwards(*reader.node)) continue;
    auto region = Pair(view, forward, *reader.node).Form();
    if (region) return std::optional(*std::move(region));
    stays = Unsupported(NameOf(forward) + " and " + NameOf(*reader.node) +
                        " stay two ops: " + region.error().message);
  }
  if (!stays) return std::unexpected(std::move(stays.error()));
  return std::nullopt;
}

}  // namespace fusebox::converter::recognize
