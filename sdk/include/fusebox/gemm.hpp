// SPDX-License-Identifier: Apache-2.0
// Gemm: a matrix product with constant weights, packed once, for kernels (abi/ext/gemm.h has types and
// layouts).
//
//   explicit Dense(const Node& n) : gemm_(n, SpecOf(n)) {}
//   static Gemm::Spec SpecOf(const Node& n) { return {.weights = n.in(1), .activation = FBX_GEMM_RELU}; }
//   static void supports(const Node& n) { Gemm::supports(n, SpecOf(n)); }
//   uint32_t prepare(const Node& n, Plan& plan) const { return gemm_.prepare(plan, n.in(0).dim(0)); }
//   void invoke(const Node& n, uint32_t slot) const {
//     gemm_.run(n, slot, n.in(0).data<const float>(), n.in(0).dim(0), n.out(0).data<float>());
//   }
//   Gemm gemm_;
//
// In the manifest: "requires": {"extensions": ["fusebox.gemm/1", "fusebox.weights/1?"]}.
#pragma once

#include <memory>
#include <optional>

#include "fusebox/abi/ext/gemm.h"
#include "fusebox/node.hpp"

namespace fusebox::sdk {
inline namespace v1 {

// Optional arguments of a call. Strides are in elements; 0: rows without gaps. `times`: abi/ext/gemm.h.
struct GemmRows {
  int64_t a_stride = 0;
  int64_t c_stride = 0;
  const float* times = nullptr;
  int64_t times_stride = 0;
};

class Gemm {
 public:
  struct Spec {
    Tensor weights;
    std::optional<Tensor> bias = {};
    fbx_gemm_order order = FBX_GEMM_NK;
    fbx_gemm_activation activation = FBX_GEMM_NONE;
    float lowest = 0;  // of FBX_GEMM_CLAMP
    float highest = 0;
    const fbx_quant* input = nullptr;  // of A and C, if they are i8
    const fbx_quant* output = nullptr;
  };

  // Throws Reject with the reason if this product is unsupported.
  static void supports(const Node& n, const Spec& spec) { make(n.host(), spec, nullptr); }

  Gemm() = default;
  // In init. Weights and bias live as long as the model, so operands and nothing else.
  Gemm(const Node& n, const Spec& spec) : gemm_(&table(n.host())) {
    fbx_gemm_product* product = nullptr;
    make(n.host(), spec, &product);
    product_ = {product, gemm_->destroy};
  }

  // The slot of the scratch memory of a run with up to m rows.
  uint32_t prepare(Plan& plan, int64_t m) const { return plan.scratch(gemm_->scratch(product_.get(), m)); }
  // c [m][N] = epilogue(a [m][K] * weights), f32 or i8. Throws Error.
  void run(const Node& n, uint32_t slot, const void* a, int64_t m, void* c, const GemmRows& rows = {}) const {
    const fbx_gemm_call call{.head = FBX_HEAD(fbx_gemm_call),
                             .m = m,
                             .a = a,
                             .a_stride = rows.a_stride,
                             .c = c,
                             .c_stride = rows.c_stride,
                             .times = rows.times,
                             .times_stride = rows.times_stride,
                             .scratch = n.scratch<void>(slot)};
    if (const fbx_status status = gemm_->run(n.host(), product_.get(), &call); status != FBX_OK)
      throw Error{status, "a product of " + std::to_string(m) + " rows failed"};
  }

 private:
  static const fbx_gemm& table(const fbx_host* host) {
    const auto* gemm = static_cast<const fbx_gemm*>(host->get_extension(host, to_fbx_str(FBX_EXT_GEMM)));
    if (!FBX_HAS(gemm, run))
      throw Error{FBX_UNSUPPORTED,
                  "there is no " FBX_EXT_GEMM
                  ": list it under \"requires\" in the manifest, and use a host that provides it"};
    return *gemm;
  }

  static void make(const fbx_host* host, const Spec& spec, fbx_gemm_product** product) {
    const fbx_gemm_spec abi{.head = FBX_HEAD(fbx_gemm_spec),
                            .weights = spec.weights.abi(),
                            .bias = spec.bias ? spec.bias->abi() : nullptr,
                            .order = spec.order,
                            .activation = spec.activation,
                            .lowest = spec.lowest,
                            .highest = spec.highest,
                            .input = spec.input,
                            .output = spec.output};
    const fbx_status status = table(host).create(host, &abi, product);
    if (status == FBX_NOT_APPLICABLE) throw Reject{"GEMM", "the product is unsupported"};
    if (status != FBX_OK) throw Error{status, "the product cannot be made"};
  }

  const fbx_gemm* gemm_ = nullptr;
  std::unique_ptr<fbx_gemm_product, void (*)(fbx_gemm_product*) noexcept> product_{nullptr, nullptr};
};

}  // namespace v1
}  // namespace fusebox::sdk
