// SPDX-License-Identifier: Apache-2.0
// Loops that are a recurrent layer become the layer's composite, which rules then fuse: Keras 3 and other
// models that say nothing about their loops, and .tflite files that stock TFLite cannot run for their Flex
// lists. What is like one but not equal stays a loop, and the notes say why.
#include <set>

#include "converter/passes/outline/composite.h"
#include "converter/passes/outline/loop.h"
#include "converter/passes/pass.h"

namespace fusebox::converter {
namespace {

using namespace outline;

// What a loop was recognized as, before anything is changed.
struct Found {
  StepLoop loop;
  Layer layer;
  std::vector<size_t> states;  // variables of h, and of c
};

// The mask before the transposes and reverses that it shares with the input.
Status ReadMask(const Expressions& caller, const Expressions& body, Found& found) {
  const StepLoop& loop = found.loop;
  Layer& layer = found.layer;
  FUSEBOX_ASSIGN(const ValueId steps, SequenceOf(loop, caller, body, loop.mask));
  FUSEBOX_TRY(CheckMaskLength(loop, caller, steps));
  const Shape& shape = caller.function().value(steps).type.shape;
  if (shape.rank() != 3 || shape[2] != 1) return Unsupported("its mask is no sequence [steps, batch, 1]");
  const Orientation mask = Orient(caller, steps);
  if (mask.time_major != layer.in.time_major || mask.go_backwards != layer.in.go_backwards)
    return Unsupported("its mask is read in another order than its input");
  layer.mask = mask.inputs;
  layer.zero_output_for_mask = loop.zero_output;
  return {};
}

Result<Found> Match(const Module& module, const Expressions& caller, const Expressions& body, size_t index) {
  FUSEBOX_ASSIGN(StepLoop loop, ReadLoop(module, caller, body, index));
  Found out{std::move(loop), {}, {}};
  const StepLoop& in = out.loop;
  const auto lstm = [&](size_t h, size_t c) {
    out.states = {h, c};
    return MatchLstm(body, in.next(h), in.next(c), in.input(h), in.input(c));
  };
  Result<Cell> cell = Unsupported("it carries " + std::to_string(in.states.size()) + " states");
  if (in.states.size() == 2) {
    cell = lstm(in.states[0], in.states[1]);
    if (!cell) {
      auto other = lstm(in.states[1], in.states[0]);
      // The order in which what is written is h has the better reason.
      const bool first = !in.written.empty() && in.written[0].value == in.next(in.states[0]);
      if (other || !first) cell = std::move(other);
    }
  } else if (in.states.size() == 1) {
    const size_t h = in.states[0];
    out.states = {h};
    cell = MatchGru(body, in.next(h), in.input(h));
    const bool sum = body.Plain(in.next(h), Op::kAdd) != nullptr;
    if (!cell) {
      auto simple = MatchSimpleRnn(body, in.next(h), in.input(h));
      if (simple || !sum) cell = std::move(simple);
    }
  }
  if (!cell) return std::unexpected(std::move(cell.error()));
  out.layer.cell = *std::move(cell);
  out.layer.weights = in.body;
  FUSEBOX_ASSIGN(const ValueId sequence, SequenceOf(in, caller, body, out.layer.cell.x));
  FUSEBOX_TRY(CheckLength(in, caller, sequence));
  if (caller.function().value(sequence).type.shape.rank() != 3)
    return Unsupported("its input is no sequence [steps, batch, features]");
  out.layer.in = Orient(caller, sequence);
  for (const size_t state : out.states) out.layer.initial.push_back(in.node->operands[state]);
  if (in.mask != kNoValue) FUSEBOX_TRY(ReadMask(caller, body, out));
  return out;
}

// What others read of the loop must be what the composite gives.
Status CheckResults(const Found& found, const Expressions& caller) {
  const StepLoop& loop = found.loop;
  if (loop.written.size() > 1)
    return Unsupported("it writes " + std::to_string(loop.written.size()) + " lists");
  if (!loop.written.empty() && loop.written[0].value != loop.next(found.states[0]))
    return Unsupported("what it writes is not its state h");
  for (size_t i = 0; i < loop.node->results.size(); ++i) {
    const bool given = i == found.states[0] || i == found.states.back() || loop.output(i) == loop.input(i) ||
                       (!loop.written.empty() && loop.written[0].variable == i);
    if (!given && !caller.uses().readers(loop.node->results[i]).empty())
      return Unsupported("its result " + std::to_string(i) + " is used, which the layer does not give");
  }
  return {};
}

Location LocationOf(const Node& loop) {
  Location out = loop.location;
  const size_t slash = out.name.rfind('/');
  if (slash == std::string::npos) return out;
  const std::string_view last = std::string_view(out.name).substr(slash + 1);
  if (last.starts_with("while") || last.starts_with("While")) out.name.resize(slash);
  return out;
}

class Outliner {
 public:
  explicit Outliner(Context& context) : context_(context) {}

  Status Visit(const std::string& name) {
    if (!seen_.insert(name).second) return {};
    Function& f = *context_.module.Find(name);
    bool changed = false;
    for (size_t i = 0; i < f.nodes.size(); ++i) {
      Node& node = *f.nodes[i];
      if (node.is(Op::kStablehloComposite)) {  // its own rule decides, with its own body
        TellMaskedOutputs(node);
        continue;
      }
      if (node.is(Op::kWhile)) {
        FUSEBOX_ASSIGN(const bool replaced, Loop(f, i));
        changed |= replaced;
        if (replaced) continue;
      }
      for (const std::string& callee : References(*f.nodes[i])) FUSEBOX_TRY(Visit(callee));
    }
    if (!changed) return {};
    FUSEBOX_TRY(Fold(context_.registry, context_.module, f));
    RemoveDead(f);
    return {};
  }

 private:
  // A layer's function of TensorFlow has the mask as its last operand, and no attribute for what is given
  // where that leaves a step out: its loop knows.
  void TellMaskedOutputs(Node& composite) {
    const Function* body = context_.module.Find(composite.body);
    if (!body || body->inputs.empty() || composite.attrs.Find("zero_output_for_mask")) return;
    const ValueId mask = body->inputs.back();
    if (body->value(mask).type.dtype != DType::kBool) return;
    const Expressions outside(*body);
    for (size_t i = 0; i < body->nodes.size(); ++i) {
      if (!body->nodes[i]->is(Op::kWhile)) continue;
      const auto& step = *context_.module.Find(body->nodes[i]->attrs.function("body_subgraph_index")->name);
      const auto zeros = ZerosForMask(outside, Expressions(step), i, mask);
      if (zeros) composite.attrs.Set("zero_output_for_mask", *zeros);
      else
        context_.Note("function " + body->name +
                      ": what it gives for masked steps is not known: " + zeros.error().message);
    }
  }

  Result<bool> ZerosForMask(const Expressions& caller, const Expressions& body, size_t index, ValueId mask) {
    FUSEBOX_ASSIGN(const StepLoop loop, ReadLoop(context_.module, caller, body, index));
    if (loop.mask == kNoValue) return Unsupported("its loop has no mask");
    FUSEBOX_ASSIGN(const ValueId steps, SequenceOf(loop, caller, body, loop.mask));
    const Node* expand = caller.Producer(Orient(caller, steps).inputs);
    if (!expand || !expand->is(Op::kExpandDims) || expand->operands[0] != mask)
      return Unsupported("the mask of its loop is not its last operand");
    return loop.zero_output;
  }

  // Replaces the loop at nodes[i] if it is a layer; i is then the composite's.
  Result<bool> Loop(Function& f, size_t& i) {
    const Function& body = *context_.module.Find(f.nodes[i]->attrs.function("body_subgraph_index")->name);
    const Expressions caller(f), inside(body);
    auto found = Match(context_.module, caller, inside, i);
    Status usable = found ? CheckResults(*found, caller) : Status(std::unexpected(found.error()));
    if (usable) {
      found->layer.location = LocationOf(*f.nodes[i]);
      auto made = BodyOf(f, *found);
      if (made) {
        Replace(f, i, *found, **made);
        return true;
      }
      usable = std::unexpected(std::move(made.error()));
    }
    if (WritesLists(context_.module, *f.nodes[i]))
      context_.Note("function " + f.name + ": " + Describe(f, *f.nodes[i]) +
                    " is no recurrent layer that is known: " + usable.error().message);
    return false;
  }

  // A new function: the loop with its transposes and lists, as the definition of the composite.
  Result<Function*> BodyOf(const Function& f, Found& found) {
    const StepLoop& loop = found.loop;
    Layer& layer = found.layer;
    const ValueId stack =
        !loop.written.empty() && loop.written[0].stack ? loop.written[0].stack->results[0] : kNoValue;
    layer.sequence = stack != kNoValue && loop.written[0].whole;
    Region region;
    region.bound[layer.in.inputs] = 0;
    for (size_t k = 0; k < found.states.size(); ++k) {
      region.bound_operands[{loop.node, found.states[k]}] = k + 1;
      region.wanted.push_back(loop.node->results[found.states[k]]);
    }
    if (stack != kNoValue) region.wanted.push_back(stack);
    auto body = std::make_unique<Function>(context_.module.UniqueName(layer.location.name + "/layer"));
    FUSEBOX_ASSIGN(const std::vector<ValueId> got, CopyRegion(f, region, layer, *body));
    const ValueId sequence = SequenceIn(*body, layer, got[0], stack == kNoValue ? kNoValue : got.back());
    FinishBody(*body, layer, got[0], sequence, found.states.size() > 1 ? got[1] : kNoValue);
    context_.module.functions.push_back(std::move(body));
    return context_.module.functions.back().get();
  }

  static ValueId SequenceIn(Function& body, const Layer& layer, ValueId h, ValueId stack) {
    const auto constant = [&](std::vector<int32_t> values) {
      const auto n = static_cast<int64_t>(values.size());
      return body.AddConst(DType::kI32, Shape{n}, std::move(values));
    };
    if (stack == kNoValue) {
      const ValueId axis =
          body.AddConst(DType::kI32, Shape::Scalar(), std::vector<int32_t>{layer.in.time_axis()});
      return body.AddNode(Op::kExpandDims, {h, axis}, {{DType::kF32, Shape()}}).results[0];
    }
    if (layer.in.time_major) return stack;
    return body.AddNode(Op::kTranspose, {stack, constant({1, 0, 2})}, {{DType::kF32, Shape()}}).results[0];
  }

  void Replace(Function& f, size_t& i, const Found& found, const Function& body) {
    const StepLoop& loop = found.loop;
    const Node composite = AddComposite(f, i, found.layer, body.name);  // a copy: nodes move
    const std::unique_ptr<Node> old = std::move(f.nodes[i]);
    f.nodes.erase(f.nodes.begin() + static_cast<std::ptrdiff_t>(i));
    for (size_t k = 0; k < old->results.size(); ++k)
      if (loop.output(k) == loop.input(k)) f.ReplaceUses(old->results[k], old->operands[k]);
    for (size_t k = 0; k < found.states.size(); ++k)
      f.ReplaceUses(old->results[found.states[k]], composite.results[2 + k]);
    if (!loop.written.empty() && loop.written[0].stack) {
      const ValueId steps = loop.written[0].stack->results[0];
      std::erase_if(f.nodes, [&](const auto& node) { return node.get() == loop.written[0].stack; });
      ReplaceSequence(f, i, steps, found.layer, composite);
    }
    --i;
  }

  Context& context_;
  std::set<std::string> seen_;
};

bool HasLoops(const Module& module) {
  for (const auto& f : module.functions)
    for (const auto& node : f->nodes)
      if (node->is(Op::kWhile)) return true;
  return false;
}

}  // namespace

Status OutlineLoops(Context& context) {
  if (context.options.composites == Composites::kInline || !HasLoops(context.module)) return {};
  // Weights that loops carry unchanged become constants of their bodies, where slices of them fold.
  FUSEBOX_TRY(SimplifyLoops(context));
  FUSEBOX_TRY(FoldToFixpoint(context));
  Outliner outliner(context);
  for (const Signature& s : context.module.signatures) FUSEBOX_TRY(outliner.Visit(s.function));
  RemoveUnreachable(context.module);
  return {};
}

}  // namespace fusebox::converter
