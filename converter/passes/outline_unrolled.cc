// SPDX-License-Identifier: Apache-2.0
// Unrolled recurrent layers (a copy of the cell per step, on the parts of an UNPACK) become the layer's
// composite.
#include <algorithm>
#include <set>

#include "converter/passes/outline/composite.h"
#include "converter/passes/outline/step.h"
#include "converter/passes/pass.h"

namespace fusebox::converter {
namespace {

using namespace outline;

class Unrolled {
 public:
  Unrolled(Module& module, Function& f, const Chain& chain)
      : module_(module), f_(f), in_(f), chain_(chain), axis_(chain.unpack->attrs.i64("axis", 0)) {}

  // False: it stays as it is.
  Result<bool> Replace() {
    const ValueId sequence = chain_.unpack->operands[0];
    if (f_.value(sequence).type.shape.rank() != 3 || axis_ < 0 || axis_ > 1) return false;
    SetLayer(sequence);
    FUSEBOX_ASSIGN(Function* const body, BodyOf());
    size_t at = Earliest();
    const Node composite = AddComposite(f_, at, layer_, body->name);  // a copy: nodes move
    ReplaceResults(at, composite);
    return true;
  }

 private:
  const Step& first() const { return *chain_.steps.front(); }
  const Step& last() const { return *chain_.steps.back(); }

  void SetLayer(ValueId sequence) {
    layer_.cell = chain_.steps[1]->cell;  // the first step's weights may be folded
    layer_.weights = &f_;
    layer_.location = chain_.unpack->location;
    if (const size_t slash = layer_.location.name.rfind('/'); slash != std::string::npos)
      layer_.location.name.resize(slash);
    layer_.in = axis_ == 0 ? Orient(in_, sequence) : Orientation{sequence, false, false};
    if (chain_.reversed && layer_.in.go_backwards) layer_.in = Orientation{sequence, axis_ == 0, true};
    else layer_.in.go_backwards |= chain_.reversed;
    const bool lstm = layer_.cell.kind == Cell::Kind::kLstm;
    ValueId h = first().h;
    if (h == kNoValue) {  // zeros, which went with their products
      const Type type = f_.value(lstm ? first().c : first().next_h).type;
      const auto count = static_cast<size_t>(std::max<int64_t>(type.shape.element_count().value_or(0), 0));
      h = f_.AddConst(type, Buffer::Of<float>(std::vector<float>(count)));
    }
    layer_.initial = {h};
    if (lstm) layer_.initial.push_back(first().c);
  }

  Result<Function*> BodyOf() {
    Region region;
    region.bound[layer_.in.inputs] = 0;
    region.bound[layer_.initial[0]] = 1;
    if (layer_.initial.size() > 1) BindC(region);
    for (const Step* step : chain_.steps) region.wanted.push_back(step->next_h);
    if (layer_.initial.size() > 1) region.wanted.push_back(last().next_c);
    auto body = std::make_unique<Function>(module_.UniqueName(layer_.location.name + "/layer"));
    FUSEBOX_ASSIGN(std::vector<ValueId> got, CopyRegion(f_, region, layer_, *body));
    ValueId c = kNoValue;
    if (layer_.initial.size() > 1) {
      c = got.back();
      got.pop_back();
    }
    Attrs attrs;
    attrs.Set("axis", layer_.in.time_axis());
    attrs.Set("values_count", got.size());
    const ValueId h = got.back();
    const ValueId all = body->AddNode(Op::kPack, got, {{DType::kF32, Shape()}}, std::move(attrs)).results[0];
    FinishBody(*body, layer_, h, all, c);
    module_.functions.push_back(std::move(body));
    return module_.functions.back().get();
  }

  // Both states may start from one value: the first product with c reads the operand c.
  void BindC(Region& region) const {
    const Node& sum = *in_.Producer(first().next_c);
    for (const ValueId part : sum.operands) {
      const Node* mul = in_.Plain(part, Op::kMul);
      for (size_t i = 0; mul && i < mul->operands.size(); ++i)
        if (mul->operands[i] == first().c) region.bound_operands[{mul, i}] = 2;
    }
  }

  // The first place where all operands are there.
  size_t Earliest() const {
    std::set<const Node*> before;
    before.insert(in_.Producer(layer_.in.inputs));
    for (const ValueId v : {first().h, first().c}) before.insert(in_.Producer(v));
    size_t at = 0;
    for (size_t i = 0; i < f_.nodes.size(); ++i)
      if (before.contains(f_.nodes[i].get())) at = i + 1;
    return at;
  }

  // The PACK that puts all outputs together again, in the order of the steps; null: nobody does.
  const Node* Packed() const {
    for (const auto& reader : in_.uses().readers(last().next_h)) {
      if (!reader.node || !reader.node->is(Op::kPack) || reader.node->operands.size() != chain_.steps.size())
        continue;
      bool all = true;
      for (size_t t = 0; t < chain_.steps.size(); ++t)
        all &= reader.node->operands[t] == chain_.steps[t]->next_h;
      if (all && reader.node->attrs.i64("axis", 0) >= 0 && reader.node->attrs.i64("axis", 0) <= 1)
        return reader.node;
    }
    return nullptr;
  }

  void ReplaceResults(size_t at, const Node& composite) {
    if (const Node* pack = Packed()) {
      const ValueId all = pack->results[0];
      if (pack->attrs.i64("axis", 0) == 0) ReplaceSequence(f_, at, all, layer_, composite);
      else if (!layer_.in.time_major) f_.ReplaceUses(all, composite.results[1]);
    }
    Attrs attrs;
    attrs.Set("axis", layer_.in.time_axis());
    attrs.Set("num", chain_.steps.size());
    const std::vector<Type> types(chain_.steps.size(), f_.value(last().next_h).type);
    const Node& parts = f_.InsertNode(at, Op::kUnpack, {composite.results[1]}, types, std::move(attrs));
    const std::vector<ValueId> each = parts.results;
    for (size_t t = 0; t + 1 < each.size(); ++t) f_.ReplaceUses(chain_.steps[t]->next_h, each[t]);
    f_.ReplaceUses(last().next_h, composite.results[0]);
    if (layer_.initial.size() > 1) f_.ReplaceUses(last().next_c, composite.results[3]);
  }

  Module& module_;
  Function& f_;
  const Expressions in_;
  const Chain& chain_;
  int64_t axis_;
  Layer layer_;
};

// One layer at a time: what is known of uses is out of date after each.
Result<bool> ReplaceOne(Context& context, Function& f) {
  const Expressions in(f);
  const std::vector<Step> steps = FindSteps(in);
  for (const Chain& chain : FindChains(in, steps)) {
    auto replaced = Unrolled(context.module, f, chain).Replace();
    if (!replaced) {
      context.Note("function " + f.name + ": the unrolled layer at " + chain.unpack->location.name +
                   " stays: " + replaced.error().message);
      continue;
    }
    if (!*replaced) continue;
    FUSEBOX_TRY(Fold(context.registry, context.module, f));
    RemoveDead(f);
    return true;
  }
  return false;
}

}  // namespace

Status OutlineUnrolled(Context& context) {
  if (context.options.composites == Composites::kInline) return {};
  for (const Signature& s : context.module.signatures) {
    Function& f = *context.module.Find(s.function);
    for (bool again = true; again;) {
      FUSEBOX_ASSIGN(again, ReplaceOne(context, f));
    }
  }
  return {};
}

}  // namespace fusebox::converter
