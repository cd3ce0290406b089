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

math::F32Task PanelTask(const DotTask<float>& x, int64_t k) {
  const ActivationRange<float> range(x.activation);
  return {.rows = x.rows,
          .m = static_cast<size_t>(x.m),
          .segments = static_cast<size_t>(x.segments),
          .segment = static_cast<size_t>(x.segment),
          .layout = PanelLayout(x.n, k),
          .weights = x.b,
          .start = x.bias,
          .c = x.c,
          .ldc = static_cast<size_t>(x.ldc),
          .low = range.lowest,
          .high = range.highest};
}

void ActivateRows(const DotTask<float>& x) {
  for (int64_t i = 0; x.activation == Activation::kTanh && i < x.m; ++i)
    Activate(x.activation, x.c + i * x.ldc, static_cast<size_t>(x.n));
}

}  // namespace

void MultiplyPanels(const DotTask<float>& x) {
  const math::F32Task task = PanelTask(x, x.k());
  math::BestF32Kernels().multiply(task, 0, task.layout.groups());
  ActivateRows(x);
}

void MultiplyPanelsParallel(const fbx_host* host, const float* a, int64_t k, const DotTask<float>& x) {
  const auto depth = static_cast<size_t>(k);
  math::Multiply(host, {math::MatrixRows(a, static_cast<size_t>(x.m), depth, depth), PanelTask(x, k)});
  ActivateRows(x);
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
