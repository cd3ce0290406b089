// SPDX-License-Identifier: Apache-2.0
// Two LSTM layers that read one input in opposite directions become one composite, keras.bidirectional,
// around both, so that a plugin can offer one op for them. A rule that declines leaves them as they were: two
// composites.
//
// Taken along where they are there: the reversal of the backward sequence, and the concatenation of both
// sequences. Everything else that is done with them (sums, products, averages, last steps) stays outside. Of
// a layer that keeps the last step of its sequence only, the composite gives that step, and its type tells
// (keras_layer.h of plugins/rnn): there is nothing to reverse.
#include <algorithm>
#include <optional>
#include <set>

#include "converter/passes/pass.h"

namespace fusebox::converter {
namespace {

constexpr size_t kLayerOperands = 6;  // inputs, h, c, kernel, recurrent kernel, bias
constexpr size_t kSequence = 1, kStates = 2;

bool IsLstm(const Node& node) {
  return node.is(Op::kStablehloComposite) && (node.name == "keras.lstm" || node.name.starts_with("lstm_"));
}

bool GoesBackwards(const Node& node) { return node.attrs.b("go_backwards", false); }

std::string NameOf(const Node& node) { return node.location.name.empty() ? node.name : node.location.name; }

// What the second result of a layer is. kUnclear: nothing tells, or what tells differs.
enum class Kept { kWhole, kLastStep, kUnclear };

int64_t Steps(const Type& type, int axis) {
  return type.shape.ranked() && type.shape.rank() == 3 ? type.shape[static_cast<size_t>(axis)]
                                                       : Shape::kUnknown;
}

std::optional<int64_t> OneInteger(const Value& v) {
  if (!v.is_const() || v.type.dtype != DType::kI32 || v.data.size() != sizeof(int32_t)) return std::nullopt;
  return v.data.As<int32_t>()[0];
}

class Pairs {
 public:
  Pairs(Context& context, Function& f) : context_(context), f_(f) {}

  void Run() {
    while (FormOne()) {
    }
  }

 private:
  struct Pair {
    Node *forward = nullptr, *backward = nullptr;
    int axis = 1;                  // of time
    std::vector<Node*> reversals;  // of the backward sequence
    Node* merge = nullptr;         // the concatenation; null: none
  };

  bool FormOne() {
    for (const auto& forward : f_.nodes) {
      if (!IsLstm(*forward) || GoesBackwards(*forward) || done_.contains(forward.get())) continue;
      for (const auto& backward : f_.nodes) {
        if (!IsLstm(*backward) || !GoesBackwards(*backward) || done_.contains(backward.get())) continue;
        if (forward->operands.empty() || backward->operands.empty() ||
            forward->operands[0] != backward->operands[0])
          continue;
        Pair pair{forward.get(), backward.get()};
        const std::string why = WhyNot(pair);
        if (why.empty()) {
          Form(pair);
          return true;
        }
        context_.Note("bidirectional: " + NameOf(*forward) + " and " + NameOf(*backward) +
                      " stay two ops: " + why);
        done_.insert({forward.get(), backward.get()});
        return true;
      }
    }
    return false;
  }

  // Fills in the rest of the pair, or says what is in the way.
  std::string WhyNot(Pair& pair) const {
    const Uses uses(f_);
    const Node &a = *pair.forward, &b = *pair.backward;
    if (a.operands.size() != kLayerOperands || b.operands.size() != kLayerOperands)
      return "a mask is in the way";
    if (a.results.size() < 4 || b.results.size() < 4) return "they do not have the results of a Keras layer";
    for (const char* key : {"time_major", "activation", "recurrent_activation"}) {
      const AttrValue *of_a = a.attrs.Find(key), *of_b = b.attrs.Find(key);
      if ((of_a == nullptr) != (of_b == nullptr) || (of_a && *of_a != *of_b))
        return std::string("they differ in ") + key;
    }
    pair.axis = a.attrs.b("time_major", false) ? 0 : 1;
    for (const Node* layer : {&a, &b}) {
      if (KeptOf(*layer, pair.axis) == Kept::kUnclear && !uses.readers(layer->results[kSequence]).empty())
        return "the sequence of " + NameOf(*layer) + " may be its last step only";
    }
    if (KeptOf(b, pair.axis) != Kept::kLastStep) {
      for (const Uses::Reader& reader : uses.readers(b.results[kSequence])) {
        if (!ReversesTime(reader, pair.axis))
          return "the backward sequence is read in the order of processing";
        pair.reversals.push_back(reader.node);
      }
    }
    pair.merge = ConcatenationOf(uses, pair);
    return Place(uses, pair) ? "" : "one is read before the operands of the other are there";
  }

  Kept KeptOf(const Node& layer, int axis) const {
    const int64_t steps = Steps(f_.value(layer.operands[0]).type, axis);
    const int64_t kept = Steps(f_.value(layer.results[kSequence]).type, axis);
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
    const auto along = OneInteger(f_.value(reader.node->operands[1]));
    return along && (*along == axis || *along == axis - 3);
  }

  Node* ConcatenationOf(const Uses& uses, const Pair& pair) const {
    for (const Node* reversal : pair.reversals) {
      for (const Uses::Reader& reader : uses.readers(reversal->results[0])) {
        const Node* node = reader.node;
        if (!node || !node->is(Op::kConcatenation) || node->operands.size() != 2) continue;
        const int64_t along = node->attrs.i64("axis", 0);
        if ((along == 2 || along == -1) && node->operands[0] == pair.forward->results[kSequence] &&
            node->operands[1] == reversal->results[0] &&
            node->attrs.str("fused_activation_function", "NONE") == "NONE")
          return reader.node;
      }
    }
    return nullptr;
  }

  bool Within(const Pair& pair, const Node* node) const {
    if (!node) return false;
    return node == pair.forward || node == pair.backward || node == pair.merge ||
           std::find(pair.reversals.begin(), pair.reversals.end(), node) != pair.reversals.end();
  }

  // Where the composite can stand: behind all operands and before all other readers of the results.
  std::optional<size_t> Place(const Uses& uses, const Pair& pair) const {
    size_t earliest = 0, latest = f_.nodes.size();
    for (const Node* layer : {pair.forward, pair.backward})
      for (const ValueId v : layer->operands)
        if (v != kNoValue && Within(pair, uses.producer(v))) return std::nullopt;
    for (size_t i = 0; i < f_.nodes.size(); ++i) {
      const Node* node = f_.nodes[i].get();
      for (const Node* layer : {pair.forward, pair.backward}) {
        for (const ValueId v : layer->operands)
          if (v != kNoValue && uses.producer(v) == node) earliest = i + 1;
      }
      if (Within(pair, node)) continue;
      for (const ValueId v : node->operands)
        if (v != kNoValue && uses.producer(v) && Within(pair, uses.producer(v))) latest = std::min(latest, i);
    }
    if (earliest > latest) return std::nullopt;
    return earliest;
  }

  void Form(const Pair& pair) {
    const size_t place = *Place(Uses(f_), pair);
    Function& body = context_.module.Add("bidirectional");
    std::vector<ValueId> operands, results;
    const auto input = [&](ValueId v) {
      operands.push_back(v);
      body.AddInput(f_.value(v).type, f_.value(v).name);
    };
    input(pair.forward->operands[0]);
    for (const Node* layer : {pair.forward, pair.backward}) {
      const size_t first = body.inputs.size();
      for (size_t i = 1; i < kLayerOperands; ++i) input(layer->operands[i]);
      AddLayer(body, *layer, first);
    }
    results = ResultsOf(pair, body);
    for (size_t i = 0; i < body.inputs.size(); ++i)
      body.input_names.push_back("operand_" + std::to_string(i));
    for (size_t i = 0; i < body.outputs.size(); ++i)
      body.output_names.push_back("result_" + std::to_string(i));
    Replace(pair, place, body, std::move(operands), std::move(results));
  }

  // The layer's operands are the inputs of the body from `first` on.
  void AddLayer(Function& body, const Node& layer, size_t first) {
    std::vector<ValueId> ins = {body.inputs[0]};
    ins.insert(ins.end(), body.inputs.begin() + static_cast<ptrdiff_t>(first), body.inputs.end());
    std::vector<Type> types;
    for (const ValueId v : layer.results) types.push_back(v == kNoValue ? Type{} : f_.value(v).type);
    Node& copy = body.AddNode(Op::kStablehloComposite, std::move(ins), std::move(types), layer.attrs);
    copy.name = layer.name;
    copy.version = layer.version;
    copy.body = layer.body;
    copy.location = layer.location;
  }

  static ValueId AddReversal(Function& body, ValueId sequence, int axis) {
    const ValueId along = body.AddConst(DType::kI32, Shape{1}, std::vector<int32_t>{axis});
    return body.AddNode(Op::kReverseV2, {sequence, along}, {body.value(sequence).type}).results[0];
  }

  // Lets the type of a layer's sequence tell what it is.
  void DeclareSteps(const Node& layer, int axis) {
    Type& type = f_.value(layer.results[kSequence]).type;
    const Kept kept = KeptOf(layer, axis);
    if (type.shape.rank() != 3) type.shape = Shape{Shape::kUnknown, Shape::kUnknown, Shape::kUnknown};
    int64_t& steps = type.shape.dims()[static_cast<size_t>(axis)];
    if (kept == Kept::kLastStep) steps = 1;
    if (kept == Kept::kUnclear) steps = Shape::kUnknown;
    if (kept == Kept::kWhole && steps == Shape::kUnknown)
      steps = Steps(f_.value(layer.operands[0]).type, axis);
  }

  // What of f_ each result of the composite stands for; the body's outputs are set along.
  std::vector<ValueId> ResultsOf(const Pair& pair, Function& body) {
    std::vector<ValueId> results;
    const Node* const layers[] = {body.nodes[0].get(), body.nodes[1].get()};
    for (size_t layer = 0; layer < 2; ++layer) {
      const Node& node = layer == 0 ? *pair.forward : *pair.backward;
      const bool reversed = layer == 1 && KeptOf(node, pair.axis) != Kept::kLastStep;
      DeclareSteps(node, pair.axis);
      for (size_t i = 0; i < kStates + 2; ++i) {
        const bool turn = reversed && i == kSequence;
        const ValueId inner = layers[layer]->results[i];
        results.push_back(turn ? f_.AddValue(f_.value(node.results[i]).type) : node.results[i]);
        body.outputs.push_back(turn ? AddReversal(body, inner, pair.axis) : inner);
      }
    }
    if (!pair.merge) return results;
    const Type merged = f_.value(pair.merge->results[0]).type;
    Attrs attrs;
    attrs.Set("axis", int64_t{2});
    const std::vector<ValueId> both = {body.outputs[kSequence], body.outputs[kStates + 2 + kSequence]};
    body.outputs.push_back(body.AddNode(Op::kConcatenation, both, {merged}, attrs).results[0]);
    results.push_back(pair.merge->results[0]);
    return results;
  }

  void Replace(const Pair& pair, size_t place, const Function& body, std::vector<ValueId> operands,
               std::vector<ValueId> results) {
    std::vector<Type> types;
    for (const ValueId v : results) types.push_back(f_.value(v).type);
    const ValueId backward_sequence = results[kStates + 2 + kSequence];
    const Node &a = *pair.forward, &b = *pair.backward;
    Attrs attrs;
    for (const char* key : {"time_major", "activation", "recurrent_activation"})
      if (const AttrValue* value = a.attrs.Find(key)) attrs.Set(key, *value);
    attrs.Set("merge", pair.merge != nullptr);
    std::vector<ValueId> runtimes;
    for (const Node* layer : {&a, &b})
      if (layer->results.size() > kStates + 2) runtimes.push_back(layer->results[kStates + 2]);
    for (const Node* reversal : pair.reversals) f_.ReplaceUses(reversal->results[0], backward_sequence);
    Node& composite = f_.InsertNode(place, Op::kStablehloComposite, std::move(operands), types, attrs);
    composite.name = "keras.bidirectional";
    composite.version = 1;
    composite.body = body.name;
    composite.location = a.location;
    composite.results = results;
    for (const ValueId v : runtimes) {
      const ValueId cpu = f_.AddConst(DType::kF32, Shape::Scalar(), std::vector<float>{1.0F});
      f_.ReplaceUses(v, cpu);
    }
    for (auto& node : f_.nodes)
      if (node.get() != &composite && Within(pair, node.get())) node.reset();
    f_.Sweep();
  }

  Context& context_;
  Function& f_;
  std::set<const Node*> done_;
};

}  // namespace

Status FormBidirectional(Context& context) {
  if (context.options.composites == Composites::kInline) return {};
  std::vector<Function*> functions;  // the pass adds bodies, which have no pairs of their own
  for (const auto& f : context.module.functions) functions.push_back(f.get());
  for (Function* f : functions) Pairs(context, *f).Run();
  return {};
}

}  // namespace fusebox::converter
