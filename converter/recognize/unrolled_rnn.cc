// SPDX-License-Identifier: Apache-2.0
// Unrolled recurrent layers: a copy of the cell per step, on the parts of an UNPACK.
#include <algorithm>

#include "converter/recognize/rnn/hybrid.h"
#include "converter/recognize/rnn/layer.h"
#include "converter/recognize/rnn/steps.h"
#include "host/graph/rewriter.h"

namespace fusebox::converter::recognize {
namespace {

class Unrolled {
 public:
  Unrolled(const View& view, const Chain& chain)
      : view_(view), chain_(chain), made_(view), axis_(chain.unpack->attrs.i64("axis", 0)) {}

  Result<Region> Replace() {
    SetLayer();
    const ValueId sequence = layer_.in.inputs;
    layer_ = Imported(made_, std::move(layer_));
    SetInitial();
    FUSEBOX_ASSIGN(const Function* const body, AddBody(sequence));
    SetResults(AddLayer(made_, layer_, *body));
    return made_.Take();
  }

 private:
  const Step& first() const { return *chain_.steps.front(); }
  const Step& last() const { return *chain_.steps.back(); }
  bool is_lstm() const { return layer_.cell.kind == Cell::Kind::kLstm; }

  void SetLayer() {
    const ValueId sequence = chain_.unpack->operands[0];
    layer_.cell = chain_.steps[1]->cell;  // the first step's weights may be folded
    layer_.weights = &view_.function();
    layer_.hybrid = IsHybrid(view_.function(), layer_.cell);
    layer_.location = chain_.unpack->location;
    if (const size_t slash = layer_.location.name.rfind('/'); slash != std::string::npos)
      layer_.location.name.resize(slash);
    layer_.in = axis_ == 0 ? LayoutOf(view_, sequence) : SequenceLayout{sequence, false, false};
    if (chain_.reversed && layer_.in.go_backwards) layer_.in = SequenceLayout{sequence, axis_ == 0, true};
    else layer_.in.go_backwards |= chain_.reversed;
  }

  void SetInitial() {
    if (first().h != kNoValue) {
      layer_.initial = {made_.Input(first().h)};
    } else {  // zeros, which were folded with their products
      const Type& type = view_.type(is_lstm() ? first().c : first().next_h);
      const auto count = static_cast<size_t>(std::max<int64_t>(type.shape.element_count().value_or(0), 0));
      layer_.initial = {made_.f().AddConst(type, Buffer::Of<float>(std::vector<float>(count)))};
    }
    if (is_lstm()) layer_.initial.push_back(made_.Input(first().c));
  }

  Result<const Function*> AddBody(ValueId sequence) {
    LayerBody body = AddLayerBody(made_, layer_);
    Bindings bound;
    bound.values[sequence] = body.inputs;
    if (first().h != kNoValue) bound.values[first().h] = body.states[0];
    if (is_lstm()) BindC(bound, body.states[1]);
    std::vector<ValueId> wanted;
    for (const Step* step : chain_.steps) wanted.push_back(step->next_h);
    if (is_lstm()) wanted.push_back(last().next_c);
    FUSEBOX_ASSIGN(std::vector<ValueId> got, CopyRegion(view_, wanted, bound, body.f));
    std::vector<ValueId> states = {got[chain_.steps.size() - 1]};
    if (is_lstm()) states.push_back(got.back());
    got.resize(chain_.steps.size());
    const ValueId all =
        Rewriter(body.f).Typed(Op::kPack, got, {DType::kF32, Shape()},
                               MakeAttrs("axis", layer_.in.time_axis(), "values_count", got.size()));
    body.SetResults(layer_, all, states);
    return &body.f;
  }

  // Both states may start from one value: the first product with c reads the operand c.
  void BindC(Bindings& bound, ValueId c) const {
    const Node& sum = *view_.Producer(first().next_c);
    for (const ValueId part : sum.operands) {
      const Node* mul = view_.Producer(part, Op::kMul);
      for (size_t i = 0; mul && i < mul->operands.size(); ++i)
        if (mul->operands[i] == first().c) bound.operands[{mul, i}] = c;
    }
  }

  // Returns the PACK that puts all outputs together again, in the order of the steps, or null if there is
  // none.
  const Node* Packed() const {
    for (const auto& reader : view_.readers(last().next_h)) {
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

  void SetResults(const std::vector<ValueId>& results) {
    if (const Node* pack = Packed()) {
      const ValueId all = pack->results[0];
      if (pack->attrs.i64("axis", 0) == 0) SetSequence(made_, all, layer_, results);
      else if (!layer_.in.time_major) made_.SetResult(all, results[1]);
    }
    const size_t steps = chain_.steps.size();
    const auto parts =
        Rewriter(made_.f())
            .EmitTyped(Op::kUnpack, {results[1]}, std::vector<Type>(steps, view_.type(last().next_h)),
                       MakeAttrs("axis", layer_.in.time_axis(), "num", steps))
            .results;
    for (size_t t = 0; t + 1 < steps; ++t) made_.SetResult(chain_.steps[t]->next_h, parts[t]);
    made_.SetResult(last().next_h, results[0]);
    if (is_lstm()) made_.SetResult(last().next_c, results[3]);
  }

  const View& view_;
  const Chain& chain_;
  Replacement made_;
  const int64_t axis_;
  Layer layer_;
};

}  // namespace

Result<std::optional<Region>> FindUnrolledRnn(const View& view, const Node& unpack) {
  const int64_t axis = unpack.attrs.i64("axis", 0);
  if (view.shape(unpack.operands[0]).rank() != 3 || axis < 0 || axis > 1) return std::nullopt;
  const std::vector<Step> steps = FindSteps(view, unpack);
  Status stays;
  for (const Chain& chain : FindChains(view, unpack, steps)) {
    auto region = Unrolled(view, chain).Replace();
    if (region) return std::optional(*std::move(region));
    stays = Unsupported("the unrolled layer stays: " + region.error().message);
  }
  if (!stays) return std::unexpected(std::move(stays.error()));
  return std::nullopt;
}

}  // namespace fusebox::converter::recognize
