// SPDX-License-Identifier: Apache-2.0
// Loops that are a recurrent layer, ConvLSTM among them: Keras 3 and other models without annotations, and
// .tflite files that stock TFLite cannot run because of their Flex lists. A loop that is not equal to a layer
// stays a loop, with the reason in the notes.
#include <algorithm>

#include "converter/recognize/rnn/hybrid.h"
#include "converter/recognize/rnn/layer.h"
#include "converter/recognize/rnn/scan.h"
#include "host/graph/rewriter.h"

namespace fusebox::converter::recognize {
namespace {

// A recognized loop.
struct Found {
  Scan loop;
  Layer layer;
  std::vector<size_t> states;  // variables of h, and of c
};

// The mask before the transposes and reverses that it shares with the input.
Status ReadMask(const View& caller, const View& body, Found& found) {
  const Scan& loop = found.loop;
  Layer& layer = found.layer;
  FUSEBOX_ASSIGN(const ValueId steps, SequenceOf(loop, caller, body, loop.mask));
  FUSEBOX_TRY(CheckMaskLength(loop, caller, steps));
  const Shape& shape = caller.shape(steps);
  if (shape.rank() != 3 || shape[2] != 1) return Unsupported("its mask is no sequence [steps, batch, 1]");
  const SequenceLayout mask = LayoutOf(caller, steps);
  if (mask.time_major != layer.in.time_major || mask.go_backwards != layer.in.go_backwards)
    return Unsupported("its mask is read in another order than its input");
  layer.mask = mask.inputs;
  layer.zero_output_for_mask = loop.zero_output;
  return {};
}

// The cell of one or two states, and which is which.
Result<Cell> MatchCell(const View& body, const Scan& in, std::vector<size_t>& states) {
  states = in.states;
  if (in.states.size() == 2) {
    const auto lstm = [&] {
      return MatchLstm(body, in.next(states[0]), in.next(states[1]), in.input(states[0]),
                       in.input(states[1]));
    };
    const auto conv_lstm = [&] {
      return MatchConvLstm(body, in.next(states[0]), in.next(states[1]), in.input(states[0]),
                           in.input(states[1]));
    };
    const bool convolves = body.shape(in.input(states[0])).rank() > 2;
    const auto match = [&] { return convolves ? conv_lstm() : lstm(); };
    auto cell = match();
    if (cell) return cell;
    std::swap(states[0], states[1]);
    auto other = match();
    // The order in which what is written is h has the better reason.
    const bool first = !in.written.empty() && in.written[0].value == in.next(in.states[0]);
    return other || !first ? std::move(other) : std::move(cell);
  }
  if (in.states.size() != 1) return Unsupported("it carries " + std::to_string(in.states.size()) + " states");
  const ValueId h = in.input(states[0]);
  const ValueId next = in.next(states[0]);
  auto gru = MatchGru(body, next, h);
  if (gru) return gru;
  auto simple = MatchSimpleRnn(body, next, h);
  const bool sum = body.Producer(next, Op::kAdd) != nullptr;
  return simple || !sum ? std::move(simple) : std::move(gru);
}

// Rank and layout of the input. The composite of a ConvLSTM has no masks and is not time-major.
Status CheckInput(const View& caller, const View& body, ValueId sequence, Found& found) {
  Layer& layer = found.layer;
  const Shape& state = body.shape(found.loop.input(found.states[0]));
  if (caller.shape(sequence).rank() != state.rank() + 1)
    return Unsupported("its input is no sequence [steps, batch, features]");
  layer.in = LayoutOf(caller, sequence);
  if (layer.cell.kind != Cell::Kind::kConvLstm) return {};
  if (found.loop.mask != kNoValue) return Unsupported("a ConvLSTM with a mask");
  if (layer.in.time_major) return Unsupported("a ConvLSTM over a sequence [steps, batch, ..]");
  layer.space.assign(state.dims().begin() + 1, state.dims().end() - 1);
  if (layer.space.size() != layer.cell.gates[0].input.window.kernel.size())
    return Unsupported("its windows and its states differ in their dimensions");
  return {};
}

Result<Found> Match(const View& caller, const View& body, Scan loop) {
  Found out{std::move(loop), {}, {}};
  const Scan& in = out.loop;
  FUSEBOX_ASSIGN(out.layer.cell, MatchCell(body, in, out.states));
  out.layer.weights = in.body;
  out.layer.hybrid = IsHybrid(*in.body, out.layer.cell);
  FUSEBOX_ASSIGN(const ValueId sequence, SequenceOf(in, caller, body, out.layer.cell.x));
  FUSEBOX_TRY(CheckLength(in, caller, sequence));
  FUSEBOX_TRY(CheckInput(caller, body, sequence, out));
  for (const size_t state : out.states) out.layer.initial.push_back(in.node->operands[state]);
  if (in.mask != kNoValue) FUSEBOX_TRY(ReadMask(caller, body, out));
  return out;
}

// Rejects loops with used results that the composite does not produce.
Status CheckResults(const Found& found, const View& caller) {
  const Scan& loop = found.loop;
  if (loop.written.size() > 1)
    return Unsupported("it writes " + std::to_string(loop.written.size()) + " lists");
  if (!loop.written.empty() && loop.written[0].value != loop.next(found.states[0]))
    return Unsupported("what it writes is not its state h");
  for (size_t i = 0; i < loop.node->results.size(); ++i) {
    const bool given = i == found.states[0] || i == found.states.back() || loop.output(i) == loop.input(i) ||
                       (!loop.written.empty() && loop.written[0].variable == i);
    const auto counts = [&](const auto& reader) { return loop.last_indices.contains(reader.node); };
    if (!given && !std::ranges::all_of(caller.readers(loop.node->results[i]), counts))
      return Unsupported("its result " + std::to_string(i) + " is used, which the layer does not give");
  }
  return {};
}

// Without the name of the loop itself.
Location LocationOf(const Node& loop) {
  Location out = loop.location;
  const size_t slash = out.name.rfind('/');
  if (slash == std::string::npos) return out;
  const std::string_view last = std::string_view(out.name).substr(slash + 1);
  if (last.starts_with("while") || last.starts_with("While")) out.name.resize(slash);
  return out;
}

// [batch, steps, units], or steps first; the last step only if no list is written.
ValueId SequenceIn(Function& body, const Layer& layer, ValueId h, ValueId steps) {
  Rewriter write(body);
  const Type unknown{DType::kF32, Shape()};
  if (steps == kNoValue)
    return write.Typed(Op::kExpandDims, {h, write.I32Scalar(layer.in.time_axis())}, unknown);
  if (layer.in.time_major) return steps;
  return write.Typed(Op::kTranspose, {steps, write.I32(ExchangeOf(static_cast<int>(layer.space.size()) + 3))},
                     unknown);
}

// The loop with its transposes and lists, as the definition of the composite.
Result<const Function*> BodyOf(Replacement& made, const Found& found, const Layer& layer, ValueId sequence) {
  const Scan& loop = found.loop;
  LayerBody body = AddLayerBody(made, layer);
  Bindings bound;
  bound.values[found.layer.in.inputs] = body.inputs;
  if (layer.mask != kNoValue) bound.values[found.layer.mask] = body.mask;
  std::vector<ValueId> wanted;
  for (size_t k = 0; k < found.states.size(); ++k) {
    bound.operands[{loop.node, found.states[k]}] = body.states[k];
    wanted.push_back(loop.node->results[found.states[k]]);
  }
  if (sequence != kNoValue) wanted.push_back(sequence);
  FUSEBOX_ASSIGN(std::vector<ValueId> got, CopyRegion(made.view(), wanted, bound, body.f));
  const ValueId steps = sequence == kNoValue ? kNoValue : got.back();
  got.resize(found.states.size());
  body.SetResults(layer, SequenceIn(body.f, layer, got[0], steps), got);
  return &body.f;
}

Result<Region> Replace(const View& view, Found found) {
  const Scan& loop = found.loop;
  found.layer.location = LocationOf(*loop.node);
  const ValueId steps = loop.written.empty() ? kNoValue : loop.written[0].steps;
  found.layer.sequence = steps != kNoValue && loop.written[0].whole;
  Replacement made(view);
  const Layer layer = Imported(made, found.layer);
  FUSEBOX_ASSIGN(const Function* const body, BodyOf(made, found, layer, steps));
  const std::vector<ValueId> results = AddLayer(made, layer, *body);
  for (size_t k = 0; k < found.states.size(); ++k)
    made.SetResult(loop.node->results[found.states[k]], results[2 + k]);
  for (size_t k = 0; k < loop.node->results.size(); ++k)
    if (loop.output(k) == loop.input(k) && !view.readers(loop.node->results[k]).empty())
      made.SetResult(loop.node->results[k], made.Input(loop.node->operands[k]));
  if (steps != kNoValue) SetSequence(made, steps, layer, results);
  for (const Scan::Written& list : loop.written)
    for (const ValueId item : list.last) made.SetResult(item, results[0]);
  return made.Take();
}

// Nothing for a loop without states: its steps do not depend on each other.
Result<std::optional<Region>> ReadLayer(const View& view, const Node& node) {
  const View body(view.module(), view.Callee(node, "body_subgraph_index"));
  FUSEBOX_ASSIGN(Scan loop, ReadScan(view, body, node));
  if (loop.states.empty()) return std::nullopt;
  FUSEBOX_ASSIGN(Found found, Match(view, body, std::move(loop)));
  FUSEBOX_TRY(CheckResults(found, view));
  FUSEBOX_ASSIGN(Region region, Replace(view, std::move(found)));
  return std::optional(std::move(region));
}

}  // namespace

Result<std::optional<Region>> FindRnnLoop(const View& view, const Node& loop) {
  auto region = ReadLayer(view, loop);
  if (region) return region;
  if (!WritesLists(view, loop)) return std::nullopt;
  return Unsupported("no recurrent layer: " + region.error().message);
}

}  // namespace fusebox::converter::recognize
