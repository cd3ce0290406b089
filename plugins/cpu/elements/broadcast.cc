// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/elements/broadcast.h"

#include "plugins/cpu/base/dispatch.h"

namespace fusebox::cpu {
namespace {

// Runs below kShort elements cost more than their elements: operands that are broadcast are copied, so that
// several runs are one of up to kJoined elements.
constexpr int64_t kShort = 16;
constexpr int64_t kJoined = 512;

// One task's part of a loop over broadcast operands.
class Part {
 public:
  Part(const BroadcastPlan& plan, const std::array<BroadcastOperand, 2>& in, InnerLoop loop, const void* f)
      : plan_(plan), in_(in), loop_(loop), f_(f) {}

  // `rows` runs from these elements of the operands on.
  void Run(std::array<int64_t, 2> at, std::array<int64_t, 2> row, int64_t rows, void* z) {
    BroadcastRuns runs{{At(0, at[0]), At(1, at[1])}, z, row, plan_.step, rows, plan_.inner};
    if (rows > 1 && plan_.inner < kShort) Join(runs);
    loop_(f_, runs);
  }
  int64_t most_rows() const { return plan_.inner < kShort ? kJoined / plan_.inner : INT64_MAX; }

 private:
  const void* At(size_t k, int64_t element) const {
    return static_cast<const char*>(in_[k].data) + element * static_cast<int64_t>(in_[k].width);
  }

  void Join(BroadcastRuns& runs) {
    for (size_t k = 0; k < 2; ++k) {
      if (runs.row[k] == runs.count * runs.step[k]) continue;  // one run, or one element
      runs.in[k] = Copied(k, runs);
      runs.step[k] = 1;
    }
    runs.count *= runs.rows;
    runs.rows = 1;
  }

  // The operand's runs one after the other. Runs of a row that repeats are kept for the next call.
  const void* Copied(size_t k, const BroadcastRuns& runs) {
    const bool repeats = runs.row[k] == 0;
    if (repeats && from_[k] == runs.in[k] && rows_[k] >= runs.rows) return copies_[k];
    from_[k] = repeats ? runs.in[k] : nullptr;
    rows_[k] = runs.rows;
    DispatchWidth(in_[k].width, [&]<class T>() {
      const T* from = static_cast<const T*>(runs.in[k]);
      T* to = reinterpret_cast<T*>(copies_[k]);
      const int64_t row = runs.row[k];
      const int64_t step = runs.step[k];
      const int64_t count = runs.count;
      for (int64_t r = 0; r < runs.rows; ++r, from += row)
        for (int64_t i = 0; i < count; ++i) *to++ = from[i * step];
    });
    return copies_[k];
  }

  const BroadcastPlan& plan_;
  const std::array<BroadcastOperand, 2>& in_;
  InnerLoop loop_;
  const void* f_;
  std::array<const void*, 2> from_{};
  std::array<int64_t, 2> rows_{};
  alignas(16) std::byte copies_[2][kJoined * sizeof(Bits128)];
};

}  // namespace

void WalkBroadcast(const fbx_host* host, const BroadcastPlan& plan, std::array<BroadcastOperand, 2> in,
                   void* z, size_t z_width, InnerLoop loop, const void* f) {
  if (plan.outer_count == 0 || plan.inner == 0) return;
  const auto result = [&](int64_t element) {
    return static_cast<char*>(z) + element * static_cast<int64_t>(z_width);
  };
  if (plan.outer_count == 1) {
    return ParallelFor(host, static_cast<size_t>(plan.inner), 16384, [&](size_t begin, size_t end, uint32_t) {
      const auto at = static_cast<int64_t>(begin);
      const auto data = [&](size_t k) {
        return static_cast<const char*>(in[k].data) + at * plan.step[k] * static_cast<int64_t>(in[k].width);
      };
      loop(f, {{data(0), data(1)}, result(at), {}, plan.step, 1, static_cast<int64_t>(end - begin)});
    });
  }
  const int last = plan.outer.rank() - 1;
  const int64_t rows = plan.outer[last];
  const std::array<int64_t, 2> row{plan.strides[0][last], plan.strides[1][last]};
  Shape outer;
  std::array<Shape, 2> strides;
  for (int i = 0; i < last; ++i) {
    outer.push_back(plan.outer[i]);
    for (size_t k = 0; k < 2; ++k) strides[k].push_back(plan.strides[k][i]);
  }
  ParallelFor(host, static_cast<size_t>(plan.outer_count), Grain(plan.inner),
              [&](size_t begin, size_t end, uint32_t) {
                Part part(plan, in, loop, f);
                Walk<2> walk(outer, strides);
                auto at = static_cast<int64_t>(begin);
                walk.Seek(at / rows);
                for (int64_t first = at % rows; at < static_cast<int64_t>(end);) {
                  const int64_t count =
                      std::min({rows - first, static_cast<int64_t>(end) - at, part.most_rows()});
                  part.Run({walk.offset(0) + first * row[0], walk.offset(1) + first * row[1]}, row, count,
                           result(at * plan.inner));
                  at += count;
                  first += count;
                  if (first == rows) {
                    first = 0;
                    walk.Next();
                  }
                }
              });
}

}  // namespace fusebox::cpu
