// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit inputs with packed weights (byte_code.h), in parallel tasks of some rows and channels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugins/cpu/products/integer_gemm.h"
#include "plugins/cpu/quantized/byte_code.h"

namespace fusebox::cpu {

// One packed matrix [channels, depth]: the weights, and by output the sums of their rows, what is added for
// the sum of the input (minus their zero points) and what all sums start with.
struct PackedMatrix {
  PackedMatrix(const ByteLayout& of, std::byte* at)
      : layout(of),
        values(reinterpret_cast<int8_t*>(at)),
        sums(reinterpret_cast<int32_t*>(values + of.bytes())),
        zeros(sums + of.padded()),
        start(zeros + of.padded()),
        any_zeros(start + of.padded()) {}
  static size_t Bytes(const ByteLayout& of) { return of.bytes() + 3 * of.padded() * sizeof(int32_t) + 16; }

  ByteLayout layout;
  int8_t* values;
  int32_t *sums, *zeros, *start, *any_zeros;
};

struct BytePlan {
  int64_t chunk = 1;     // rows per task
  uint32_t workers = 0;  // number of scratch areas
  bool copied = false;
  bool sums = false;
  bool kept = false;        // the packed weights are
  ByteLayout layout = {};   // of a packed matrix
  size_t matrix_bytes = 0;  // of a packed matrix
  uint32_t rows_slot = 0;
  uint32_t terms_slot = 0;
  uint32_t sums_slot = 0;
  uint32_t packed_slot = 0;
};
// `copied`: rows are built in scratch. `sums`: results are computed from sums in scratch.
BytePlan PlanBytes(Plan& plan, const ProductShape& shape, bool copied, bool sums);

// Replaces rows of the kind of bytes that the code does not read by a flipped copy at `to`, which may be the
// place of the rows.
void FlipRows(ByteTask& product, bool rows_are_unsigned, int8_t* to);

struct ByteProductRows {
  const void* at;
  int64_t stride;  // bytes
};

// A task's part of the rows, of one group's panels [begin, end), and its scratch.
struct ByteTile {
  int64_t group, first, count;
  size_t begin, end;
  int8_t* rows;
  int32_t *terms[2], *sums;  // [count] each; [count][outputs of a group of panels]
};

// Outputs of a group of panels.
inline size_t SumsWidth() { return math::kBytePanels * BestByteKernels().lanes; }
inline size_t PanelGroups(const ByteLayout& layout) {
  return (layout.panels() + math::kBytePanels - 1) / math::kBytePanels;
}

// Calls run(ByteTile) for all parts.
template <class Run>
void ForByteTiles(const Node& n, const BytePlan& plan, const ProductShape& s, const Run& run) {
  if (s.m == 0 || s.n == 0) return;
  const ByteLayout layout{BestByteKernels().lanes, static_cast<size_t>(s.n), static_cast<size_t>(s.k)};
  const int64_t chunks = (s.m + plan.chunk - 1) / plan.chunk;
  const auto panels = static_cast<int64_t>(PanelGroups(layout));
  // Rows are built once for all channels, if there are enough of them for all threads.
  const int64_t each = chunks * s.groups >= 2 * int64_t{plan.workers} || plan.workers < 2 ? panels : 1;
  const int64_t blocks = (panels + each - 1) / each;
  auto* const all_rows = plan.copied ? n.scratch<int8_t>(plan.rows_slot) : nullptr;
  auto* const all_terms = n.scratch<int32_t>(plan.terms_slot);
  auto* const all_sums = plan.sums ? n.scratch<int32_t>(plan.sums_slot) : nullptr;
  const size_t width = SumsWidth();
  const auto tasks = [&](size_t begin, size_t end, uint32_t worker) {
    const int64_t skipped = worker * plan.chunk;
    for (auto task = static_cast<int64_t>(begin); task < static_cast<int64_t>(end); ++task) {
      const int64_t block = task % blocks;
      const int64_t first = task / blocks % chunks * plan.chunk;
      int32_t* const terms = all_terms + 2 * skipped;
      run(ByteTile{task / blocks / chunks,
                   first,
                   std::min(plan.chunk, s.m - first),
                   static_cast<size_t>(block * each),
                   static_cast<size_t>(std::min(panels, (block + 1) * each)),
                   all_rows ? all_rows + skipped * s.k : nullptr,
                   {terms, terms + plan.chunk},
                   all_sums ? all_sums + skipped * static_cast<int64_t>(width) : nullptr});
    }
  };
  const auto count = static_cast<size_t>(s.groups * chunks * blocks);
  if (thread_count(n.host()) > plan.workers) return tasks(0, count, 0);
  // Few rows cost as much as some more: the time to read the weights.
  const int64_t work = std::max<int64_t>(8, plan.chunk) * each * static_cast<int64_t>(width) * s.k;
  ParallelFor(n.host(), count, Grain(work / math::kBytesPerUnit), tasks);
}

}  // namespace fusebox::cpu
