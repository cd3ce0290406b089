// SPDX-License-Identifier: Apache-2.0
#include "converter/recognize/recognize.h"
#include "converter/recognize/rnn/scan.h"

namespace fusebox::converter::recognize {
namespace {

// The state that goes on with what the list gets, if every turn writes and there is one at least.
std::optional<size_t> StateOf(const Scan& loop, const Scan::Written& list) {
  if (loop.mask != kNoValue) return {};
  for (const Extent& limit : loop.limits)
    if (limit.size == 0 || limit != loop.limits[0]) return {};
  for (const size_t state : loop.states)
    if (loop.output(state) == list.value) return state;
  return {};
}

}  // namespace

std::vector<LastItem> FindLastItems(const Module& module, const Function& f) {
  std::vector<LastItem> found;
  const View caller(module, f);
  for (const auto& node : f.nodes) {
    if (!node->is(Op::kWhile) || !WritesLists(caller, *node)) continue;
    const View body(module, caller.Callee(*node, "body_subgraph_index"));
    const auto loop = ReadScan(caller, body, *node);
    if (!loop) continue;
    for (const Scan::Written& list : loop->written) {
      const auto state = list.steps != kNoValue ? StateOf(*loop, list) : std::nullopt;
      if (!state) continue;
      for (const auto& [reader, operand] : caller.readers(list.steps))
        if (reader && operand == 0 && MatchesLast(caller, *reader, 0, false))
          found.push_back({reader->results[0], loop->node->results[*state]});
    }
  }
  return found;
}

}  // namespace fusebox::converter::recognize
