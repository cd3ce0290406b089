// SPDX-License-Identifier: Apache-2.0
#include "host/plan/memory_plan.h"

#include <algorithm>
#include <unordered_map>

#include "host/plan/plan.h"

namespace fusebox::plan {
namespace {

using Piece = MemoryPlan::Piece;

MemoryPlan::Step StepOf(const Code& code, size_t index) {
  const Node& node = *code.function->nodes[index];
  const size_t number = code.origin == nullptr ? index : code.origin->nodes[index];
  return {node.name.empty() ? std::string(Name(node.op)) : node.name,
          number == delegate::kNoNode ? -1 : static_cast<int>(number)};
}

// Values of one segment. A value that shares memory makes the piece of its owner last longer.
class Pieces {
 public:
  Pieces(const Code& code, const Segment& segment) : code_(code), segment_(segment) {}

  void Add(const Place& place) {
    const auto owner = static_cast<ValueId>(place.at);
    if (place.kind == Place::kArena) {
      index_[place.value] = pieces_.size();
      pieces_.push_back({.name = code_.function->value(place.value).name,
                         .offset = place.at,
                         .bytes = place.bytes,
                         .first = 0,
                         .last = 0,
                         .scratch = false});
      pieces_.back().first = At(code_.use(place.value).defined);
      pieces_.back().last = At(code_.use(place.value).last_use);
    } else if (place.kind == Place::kAlias && index_.contains(owner)) {
      const size_t index = index_[place.value] = index_[owner];
      pieces_[index].last = std::max(pieces_[index].last, At(code_.use(place.value).last_use));
    }
  }

  void Add(const Step& step) {
    const size_t at = At(static_cast<int>(step.node));
    for (const Step::Slot& slot : step.slots)
      if (!slot.persistent)
        pieces_.push_back(
            {.name = "", .offset = slot.at, .bytes = slot.bytes, .first = at, .last = at, .scratch = true});
  }

  std::vector<Piece> Take() {
    for (Piece& piece : pieces_) piece.last = std::max(piece.last, piece.first);
    return std::move(pieces_);
  }

 private:
  // The step of a node, within the segment.
  size_t At(int node) const {
    const int begin = static_cast<int>(segment_.begin);
    const int end = static_cast<int>(segment_.end);
    return static_cast<size_t>(std::clamp(node, begin, std::max(begin, end - 1)) - begin);
  }

  const Code& code_;
  const Segment& segment_;
  std::vector<Piece> pieces_;
  std::unordered_map<ValueId, size_t> index_;
};

}  // namespace

MemoryPlan PlanOf(const Code& code, const Segment& segment) {
  MemoryPlan out{.function = code.name(), .bytes = segment.arena_bytes, .steps = {}, .pieces = {}};
  for (size_t i = segment.begin; i < segment.end; ++i) out.steps.push_back(StepOf(code, i));
  Pieces pieces(code, segment);
  for (const Place& place : segment.places) pieces.Add(place);
  for (const Step& step : segment.steps) pieces.Add(step);
  out.pieces = pieces.Take();
  return out;
}

}  // namespace fusebox::plan
