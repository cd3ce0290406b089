// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/products/panels.h"

#include <vector>

namespace fusebox::cpu {

void PackPanels(const float* weights, const PanelShape& s, float* to) {
  if (s.k == 0) return;  // of any number of columns
  std::vector<float> moved;
  if (s.taps > 1) {
    moved.resize(static_cast<size_t>(s.n * s.k));
    MoveTapsFirst(weights, s.n / s.taps, s.taps, s.k, moved.data());
    weights = moved.data();
  }
  for (int64_t group = 0; group < s.groups; ++group, weights += s.n * s.k, to += s.each())
    (s.transposed ? math::PackF32Transposed : math::PackF32)(s.layout(), weights, to);
}

namespace {

math::F32Task PanelTask(const DotTask<float>& task, size_t k) {
  const ActivationRange<float> range(task.activation);
  return {.layout = PanelLayout(task.n, static_cast<int64_t>(k)),
          .weights = task.b,
          .start = task.bias,
          .low = range.lowest,
          .high = range.highest};
}

}  // namespace

void MultiplyPanels(const DotTask<float>& x, const math::Rows<float>& rows) {
  const math::F32Task task = PanelTask(x, rows.segments * rows.segment);
  math::BestF32Kernels().multiply(task, rows, 0, task.layout.groups());
  for (size_t i = 0; x.activation == Activation::kTanh && i < rows.m; ++i)
    Activate(x.activation, rows.c[i], static_cast<size_t>(x.n));
}

void MultiplyPanels(const fbx_host* host, const DotProduct<float>& x) {
  const auto m = static_cast<int64_t>(x.a.count());
  math::Multiply(host, {x.a, PanelTask(x.task, x.a.columns), x.c, static_cast<size_t>(x.ldc)});
  for (int64_t i = 0; x.task.activation == Activation::kTanh && i < m; ++i)
    Activate(x.task.activation, x.c + i * x.ldc, static_cast<size_t>(x.task.n));
}

const float* KeptPanels::Get(const Node& n) const {
  packed_.make_once([&] {
    const Tensor weights = n.in(operand_);
    const PanelShape& s = shape_;
    return PackedWeights(
        n,
        {.what = "f32 panels",
         .numbers = {static_cast<int64_t>(math::BestF32Kernels().lanes), s.n, s.k, s.groups, s.taps,
                     s.transposed},
         .sources = {weights},
         .size = static_cast<size_t>(Product(s.elements(), sizeof(float)))},
        [&](void* to) { PackPanels(weights.data<const float>(), s, static_cast<float*>(to)); });
  });
  return packed_->data<float>();
}

}  // namespace fusebox::cpu
