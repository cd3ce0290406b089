// SPDX-License-Identifier: Apache-2.0
// A product of fusebox.gemm/1: checked and described once, const afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <fusebox/abi/ext/gemm.h>
#include <fusebox/weights.hpp>

#include "plugins/cpu/quantized/byte_code.h"
#include "plugins/math/gemm/f32.h"

namespace fusebox::cpu {

using namespace sdk;

class GemmProduct {
 public:
  // Throws Reject. Keeps no views but the data of weights and bias.
  explicit GemmProduct(const fbx_gemm_spec& spec);

  // In create: packs the weights now if there is a store for them.
  void PackForStore(const fbx_host* host, const fbx_tensor& weights) const;
  // Throws Error if m is negative or the size overflows.
  size_t ScratchBytes(int64_t m) const;
  void Run(const fbx_host* host, const fbx_gemm_call& call) const;

 private:
  enum class Kind { kFloat, kHybrid, kBytes };
  // Some rows and columns of C.
  struct Tile {
    int64_t row, rows, column, columns;
  };
  struct QuantizedRows;

  void CheckWeights(const fbx_tensor& weights);
  void CheckScales(const fbx_tensor& weights);
  void CheckBias(const fbx_tensor* bias);
  void SetActivation(const fbx_gemm_spec& spec);
  void SetResultScales(const fbx_gemm_spec& spec);
  math::F32Layout FloatLayout() const;
  ByteLayout Layout() const;  // of i8 weights
  size_t PackedBytes() const;
  void Pack(void* to) const;
  void PackOnce(const fbx_host* host, const fbx_tensor* weights) const;
  const int32_t* RowSums() const;  // of packed i8 weights
  QuantizedRows RowsAt(void* scratch, int64_t m) const;
  void Quantize(const fbx_host* host, const fbx_gemm_call& call, const QuantizedRows& to) const;
  void RunFloat(const fbx_gemm_call& call, const Tile& tile) const;
  void RunHybrid(const fbx_gemm_call& call, const QuantizedRows& rows, const Tile& tile) const;
  void RunBytes(const fbx_gemm_call& call, const Tile& tile) const;
  void Finish(const fbx_gemm_call& call, const Tile& tile) const;

  Kind kind_;
  int64_t n_, k_;
  fbx_gemm_order order_;
  fbx_dtype weights_dtype_;
  const void* weights_;
  const void* bias_ = nullptr;
  fbx_gemm_activation activation_;
  float lowest_, highest_;
  std::vector<float> scales_;  // of i8 weights: N, or one
  int32_t input_zero_ = 0;
  ByteScales result_scales_;  // kBytes
  const ByteKernels& code_ = BestByteKernels();
  LatePackedWeights packed_;
};

}  // namespace fusebox::cpu
