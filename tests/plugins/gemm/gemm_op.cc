// SPDX-License-Identifier: Apache-2.0
#include "tests/plugins/gemm/gemm_op.h"

#include <fusebox/gemm.hpp>
#include <fusebox/plugin.hpp>

namespace fusebox {
using namespace sdk;
namespace {

Gemm::Spec SpecOf(const Node& n) {
  const bool bytes = n.in(0).dtype() == FBX_I8;
  return {.weights = n.in(1),
          .bias = n.has_in(2) ? std::optional(n.in(2)) : std::nullopt,
          .order = static_cast<fbx_gemm_order>(n.attrs().i64("order")),
          .activation = static_cast<fbx_gemm_activation>(n.attrs().i64("activation")),
          .lowest = static_cast<float>(n.attrs().f64("lowest", 0)),
          .highest = static_cast<float>(n.attrs().f64("highest", 0)),
          .input = bytes ? n.in(0).quant() : nullptr,
          .output = bytes ? n.out(0).quant() : nullptr};
}

struct GemmOp {
  static constexpr std::string_view custom = "t.gemm";
  static void supports(const Node& n) { Gemm::supports(n, SpecOf(n)); }
  static void infer(const Node& n, Infer& out) {
    const int64_t order = n.attrs().i64("order");
    out.set(0, n.in(0).dtype(), {n.in(0).dim(0), n.in(1).dim(order == FBX_GEMM_KN ? 1 : 0)});
  }
  explicit GemmOp(const Node& n) : gemm_(n, SpecOf(n)) {}
  uint32_t prepare(const Node& n, Plan& plan) const { return gemm_.prepare(plan, n.in(0).dim(0)); }
  void invoke(const Node& n, uint32_t slot) const {
    gemm_.run(n, slot, n.in(0).data<const void>(), n.in(0).dim(0), n.out(0).data<void>(),
              {.times = n.has_in(3) ? n.in(3).data<const float>() : nullptr});
  }
  Gemm gemm_;
};

using Tables = detail::Tables<GemmOp>;
constexpr fbx_plugin kPlugin =
    detail::make_plugin("t.plugin", "1.0.0", Tables::rule_table, Tables::kernel_table);
fbx_status Load(const fbx_host*, const fbx_plugin** out) noexcept {
  *out = &kPlugin;
  return FBX_OK;
}

}  // namespace
}  // namespace fusebox

constinit const fbx_entry kGemmOp = fusebox::sdk::detail::make_entry(&fusebox::Load);
