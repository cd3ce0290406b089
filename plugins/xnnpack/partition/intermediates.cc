// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/partition/intermediates.h"

#include <algorithm>
#include <numeric>

#include "plugins/xnnpack/partition/op.h"

namespace fusebox::xnnpack {

namespace {

constexpr size_t kLine = 64;

// XNNPACK's vectors read slightly past the end.
size_t Rounded(size_t size) { return (size + XNN_EXTRA_BYTES + kLine - 1) / kLine * kLine; }

struct Piece {
  size_t bytes;
  uint32_t first, last;
  size_t at = 0;
};

// The lowest gap between pieces with overlapping lifetimes. `placed` is sorted by offset.
size_t LowestGap(const Piece& piece, const std::vector<const Piece*>& placed) {
  size_t at = 0;
  for (const Piece* other : placed) {
    if (other->last < piece.first || piece.last < other->first) continue;
    if (at + piece.bytes <= other->at) break;
    at = std::max(at, other->at + other->bytes);
  }
  return at;
}

// Largest first: small pieces fit into the gaps.
size_t PlacePieces(std::vector<Piece>& pieces) {
  std::vector<size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return pieces[a].bytes > pieces[b].bytes; });
  std::vector<const Piece*> placed;
  size_t total = 0;
  for (const size_t i : order) {
    Piece& piece = pieces[i];
    piece.at = LowestGap(piece, placed);
    total = std::max(total, piece.at + piece.bytes);
    const auto behind = std::upper_bound(placed.begin(), placed.end(), piece.at,
                                         [](size_t at, const Piece* other) { return at < other->at; });
    placed.insert(behind, &piece);
  }
  return total;
}

}  // namespace

Intermediates::Intermediates(const Network& network) {
  std::vector<uint32_t> number(network.graph().value_count(), kNone);
  Follow(network, number);
  Choose(network, number);
  size_t count = 0;
  // `onto` refers to values by index: renumber after removal.
  std::vector<uint32_t> now(lives_.size(), kNone);
  for (uint32_t i = 0; i < lives_.size(); ++i) {
    if (!lives_[i].kept) continue;
    now[i] = static_cast<uint32_t>(count);
    ids_[count] = ids_[i];
    lives_[count] = lives_[i];
    if (const uint32_t onto = lives_[i].onto; onto != kNone) lives_[count].onto = now[onto];
    ++count;
  }
  ids_.resize(count);
  lives_.resize(count);
  offsets_.resize(count);
}

// Finds the producer and the last reader of each value.
void Intermediates::Follow(const Network& network, std::vector<uint32_t>& number) {
  const Graph& graph = network.graph();
  std::vector<bool> outside(number.size());
  for (const auto& list : {graph.inputs(), graph.outputs()}) {
    for (const fbx_value id : list) outside[id] = true;
  }
  for (uint32_t i = 0; i < graph.node_count(); ++i) {
    const NetworkNode node(network, i);
    for (uint32_t k = 0; k < node.in_count(); ++k) {
      const fbx_value id = node.in_id(k);
      if (id >= number.size() || number[id] == kNone) continue;
      Life& life = lives_[number[id]];
      life.last = i;
      ++life.readers;
    }
    for (uint32_t k = 0; k < node.out_count(); ++k) {
      const fbx_value id = node.out_id(k);
      if (id >= number.size() || outside[id] || number[id] != kNone) continue;
      if (network.Constant(id)) continue;  // unpacked by its readers
      number[id] = static_cast<uint32_t>(ids_.size());
      ids_.push_back(id);
      lives_.push_back({i, i});
    }
  }
}

// Finds values internal to XNNPACK, and values that reuse an operand's memory.
void Intermediates::Choose(const Network& network, const std::vector<uint32_t>& number) {
  const auto of = [&](fbx_value id) { return id < number.size() ? number[id] : kNone; };
  for (uint32_t i = 0; i < network.graph().node_count(); ++i) {
    const NetworkNode node(network, i);
    const Operation* const operation = FindOperation(node.op());
    if (operation == nullptr || operation->joins == Joins::kNothing || node.out_count() != 1) continue;
    const uint32_t result = of(node.out_id(0));
    if (operation->joins == Joins::kReader) {
      if (result != kNone && lives_[result].readers == 1) lives_[result].kept = false;
      // The joined op reads in the position of the second one.
      if (const uint32_t operand = of(node.in_id(0)); result != kNone && operand != kNone)
        lives_[operand].last = std::max(lives_[operand].last, lives_[result].last);
      continue;
    }
    for (uint32_t k = 0; k < node.in_count(); ++k) {
      const uint32_t operand = of(node.in_id(k));
      if (operand == kNone || !lives_[operand].kept) continue;
      if (operation->joins == Joins::kMaker && lives_[operand].readers == 1) {
        lives_[operand].kept = false;
        // The joined op writes in the position of the first one.
        if (result != kNone) lives_[result].first = lives_[operand].first;
      } else if (result != kNone && lives_[operand].last == i) {
        lives_[result].onto = operand;
        break;
      }
    }
  }
}

size_t Intermediates::Place(std::span<const size_t> sizes) {
  std::vector<Piece> pieces;
  std::vector<size_t> piece_of(sizes.size(), SIZE_MAX);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) continue;
    const Life& life = lives_[i];
    if (life.onto != kNone && sizes[life.onto] == sizes[i]) {
      piece_of[i] = piece_of[life.onto];
      pieces[piece_of[i]].last = life.last;
      continue;
    }
    piece_of[i] = pieces.size();
    pieces.push_back({Rounded(sizes[i]), life.first, life.last});
  }
  const size_t total = PlacePieces(pieces);
  for (size_t i = 0; i < sizes.size(); ++i) offsets_[i] = sizes[i] == 0 ? 0 : pieces[piece_of[i]].at;
  return total;
}

}  // namespace fusebox::xnnpack
