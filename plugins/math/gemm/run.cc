// SPDX-License-Identifier: Apache-2.0
#include "plugins/math/gemm/run.h"

#include <algorithm>

#include "plugins/math/costs.h"
#include "plugins/math/parallel.h"

namespace fusebox::math {
namespace {

// Rows [first, first + count), groups [begin, end).
void MultiplyRows(const F32Product& product, size_t first, size_t count, size_t begin, size_t end) {
  F32Task task = product.task;
  ForRows(product.a, product.c, product.ldc, first, count, [&](size_t row, const Rows<float>& rows) {
    if (task.start) task.start = product.task.start + row * task.start_stride;
    BestF32Kernels().multiply(task, rows, begin, end);
  });
}

}  // namespace

void Multiply(const F32Product& product, size_t begin, size_t end) {
  MultiplyRows(product, 0, product.a.count(), begin, end);
}

void Multiply(const fbx_host* host, const F32Product& product) {
  const F32Layout& layout = product.task.layout;
  const size_t groups = std::max<size_t>(1, kTaskOutputs / (kGroupPanels * layout.lanes));
  const size_t across = (layout.groups() + groups - 1) / groups;
  const size_t down = (product.a.count() + kTaskRows - 1) / kTaskRows;
  const auto work = static_cast<int64_t>(kTaskRows * kTaskOutputs * layout.k);
  ParallelFor(host, down * across, Grain(work), [&](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; ++i) {
      const size_t row = i / across * kTaskRows;
      const size_t group = i % across * groups;
      MultiplyRows(product, row, std::min(kTaskRows, product.a.count() - row), group,
                   std::min(group + groups, layout.groups()));
    }
  });
}

}  // namespace fusebox::math
