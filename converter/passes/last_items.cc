// SPDX-License-Identifier: Apache-2.0
// If only the last item of a list is read (the last output of a layer), the item is replaced by the loop
// state with the same value. Then the list has no reader left and is removed from the loop.
#include "converter/passes/outline/loop.h"
#include "converter/passes/pass.h"

namespace fusebox::converter {
namespace {

using namespace outline;

// tensor[-1]: the last item along the first dimension, which is dropped.
bool TakesLast(const Expressions& in, const Node& slice) {
  if (!slice.is(Op::kStridedSlice)) return false;
  const auto begin = in.Ints(slice.operands[1]), strides = in.Ints(slice.operands[3]);
  if (!begin || !strides || begin->empty() || begin->size() > 31) return false;
  const int64_t others = (int64_t{1} << begin->size()) - 2;  // whole, all of them
  for (const int64_t stride : *strides)
    if (stride != 1) return false;
  return (*begin)[0] == -1 && slice.attrs.i64("shrink_axis_mask", 0) == 1 &&
         (slice.attrs.i64("begin_mask", 0) & (others | 1)) == others &&
         (slice.attrs.i64("end_mask", 0) & others) == others && !slice.attrs.i64("ellipsis_mask", 0) &&
         !slice.attrs.i64("new_axis_mask", 0);
}

// The state updated with the value that is written to the list, if every iteration writes and there is at
// least one.
std::optional<size_t> StateOf(const StepLoop& loop, const StepLoop::Written& list) {
  if (loop.mask != kNoValue) return {};
  for (const Extent& limit : loop.limits)
    if (limit.size == 0 || limit != loop.limits[0]) return {};
  for (const size_t state : loop.states)
    if (loop.output(state) == list.value) return state;
  return {};
}

struct Found {
  ValueId item, state;
};

std::vector<Found> FindItems(const Module& module, const Function& f) {
  std::vector<Found> found;
  const Expressions caller(f);
  for (size_t i = 0; i < f.nodes.size(); ++i) {
    if (!f.nodes[i]->is(Op::kWhile) || !WritesLists(module, *f.nodes[i])) continue;
    const Expressions body(*module.Find(f.nodes[i]->attrs.function("body_subgraph_index")->name));
    const auto loop = ReadLoop(module, caller, body, i);
    if (!loop) continue;
    for (const StepLoop::Written& list : loop->written) {
      const auto state = list.stack ? StateOf(*loop, list) : std::nullopt;
      if (!state) continue;
      for (const auto& [reader, operand] : caller.uses().readers(list.stack->results[0]))
        if (reader && operand == 0 && TakesLast(caller, *reader))
          found.push_back({reader->results[0], loop->node->results[*state]});
    }
  }
  return found;
}

}  // namespace

Status ReadLastItems(Context& context) {
  std::vector<Function*> changed;
  for (const auto& f : context.module.functions) {
    const std::vector<Found> found = FindItems(context.module, *f);
    for (const Found& last : found) f->ReplaceUses(last.item, last.state);
    if (!found.empty()) changed.push_back(f.get());
  }
  if (changed.empty()) return {};
  for (Function* f : changed) RemoveDead(*f);
  FUSEBOX_TRY(SimplifyLoops(context));
  for (Function* f : changed) RemoveDead(*f);  // lists that no loop uses any more
  return {};
}

}  // namespace fusebox::converter
