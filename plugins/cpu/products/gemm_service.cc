// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/products/gemm_service.h"

#include <memory>

#include "plugins/cpu/products/gemm_product.h"

struct fbx_gemm_product : fusebox::cpu::GemmProduct {
  using GemmProduct::GemmProduct;
};

namespace fusebox::cpu {
namespace {

fbx_status Create(const fbx_host* host, const fbx_gemm_spec* spec, fbx_gemm_product** out) noexcept {
  return call_guarded(host, [&] {
    if (out == nullptr) return void(fbx_gemm_product(*spec));
    auto product = std::make_unique<fbx_gemm_product>(*spec);
    product->PackForStore(host, *spec->weights);
    *out = product.release();
  });
}

void Destroy(fbx_gemm_product* product) noexcept { delete product; }

size_t Scratch(const fbx_gemm_product* product, int64_t m) noexcept {
  try {
    return product->ScratchBytes(m);
  } catch (...) {  // Error
    return SIZE_MAX;
  }
}

fbx_status RunGemm(const fbx_host* host, const fbx_gemm_product* product,
                   const fbx_gemm_call* call) noexcept {
  return call_guarded(host, [&] { product->Run(host, *call); });
}

constexpr fbx_gemm kGemmTable{
    .head = FBX_HEAD(fbx_gemm), .create = Create, .destroy = Destroy, .scratch = Scratch, .run = RunGemm};

}  // namespace

const void* GemmService::table() noexcept { return &kGemmTable; }

}  // namespace fusebox::cpu
