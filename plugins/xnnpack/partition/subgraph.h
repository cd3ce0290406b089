// SPDX-License-Identifier: Apache-2.0
// Subgraph: the XNNPACK subgraph of a partition while its ops are defined.
//
// Functions throw Reject if XNNPACK fails, with its status and the op set by Defining.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <xnnpack.h>

#include "plugins/xnnpack/packing/pack_provider.h"
#include "plugins/xnnpack/partition/values.h"

namespace fusebox::xnnpack {

// The weights of a conv, transposed conv or fully connected op.
struct Weights {
  uint32_t filter = 0;                        // operand
  uint32_t bias = UINT32_MAX;                 // operand; absent: UINT32_MAX
  xnn_datatype datatype = xnn_datatype_fp32;  // fp32, qint8, quint8, qcint8, qcint4 or qbint4
  Dims dims;                                  // of the filter, as XNNPACK requires
  size_t channel_dim = 0;
  float least_scale = 0;       // of the filter: smaller ones have no effect, and XNNPACK rejects them
  bool dynamic = false;        // the activation is quantized at run time: the bias is f32
  bool always_packed = false;  // XNNPACK packs this op without look-up
  // Adjacent results in a row of a convolution that are computed as one with more channels. Their filters are
  // `step` columns apart, and zero elsewhere; dims are the dims of all of them.
  size_t pixels = 1;
  size_t step = 0;
};

class Subgraph {
 public:
  // `between`: values that use memory of the caller. `half`: floats are f16, except those that the partition
  // reads and returns, weights and biases.
  Subgraph(const Network& network, PackProvider& provider, std::span<const fbx_value> between,
           bool half = false);
  Subgraph(const Subgraph&) = delete;
  ~Subgraph();

  xnn_subgraph_t get() const { return subgraph_; }
  // External values, by their id in the subgraph: inputs, then outputs, then `between`.
  std::span<const fbx_value> external() const { return external_; }
  uint32_t external_id(fbx_value value) const { return external_ids_[value]; }
  bool uses(fbx_value value) const { return ids_[value] != XNN_INVALID_VALUE_ID; }

  // Ids of a node's operands and results. A constant operand is read in place, or as f32 after unpacking.
  uint32_t In(const NetworkNode& node, uint32_t operand);
  // A constant operand with a single dim [n], repeated: [times, n].
  uint32_t Repeated(const NetworkNode& node, uint32_t operand, size_t times);
  uint32_t Out(const NetworkNode& node, uint32_t result = 0);
  // A value between ops that is not in the graph.
  uint32_t Temporary(xnn_datatype datatype, TensorQuant affine, const Dims& dims);
  // The operand quantized per row at run time; the last `nonbatch` dims are a row.
  uint32_t Dynamic(uint32_t from, const Dims& dims, size_t nonbatch);
  // Same, for the images that a convolution reads. If their number is unknown, MayGrow becomes false: when it
  // grows, XNNPACK frees memory that it did not allocate, for each image but one.
  uint32_t DynamicImages(const NetworkNode& node, uint32_t operand, uint32_t from);
  bool MayGrow() const { return may_grow_; }
  bool half() const { return real_ == xnn_datatype_fp16; }
  // The operand as f32, quantized or not.
  uint32_t FloatIn(const NetworkNode& node, uint32_t operand);
  // Runs `define` on an f32 value that becomes the result, quantized or not.
  void FloatOut(const NetworkNode& node, const std::function<void(uint32_t id)>& define);
  void Convert(uint32_t from, uint32_t to);
  // Converts between two quantizations, to the nearest step: through f32, because the factor of XNNPACK's own
  // conversion has 8 bits. Its results are up to a step off.
  void Requantize(uint32_t from, uint32_t to, const Dims& dims);

  // Calls `define` with the result's id and the range of its activation. Adds a bias that is not constant
  // here (another partition unpacks it) afterwards.
  void WithBias(const NetworkNode& node, uint32_t bias, Range range,
                const std::function<void(uint32_t out, Range range)>& define);

  struct Ids {
    uint32_t filter, bias;
  };
  // Defines filter and bias, and registers them in the cache under `recipe`, completed by the properties of
  // the weights.
  Ids Pack(const NetworkNode& node, Recipe recipe, const Weights& weights);
  // Same, for an op that XNNPACK packs without the cache.
  Ids Private(const NetworkNode& node, const Weights& weights);
  // A converted constant; the memory lives as long as the runtime.
  const void* Keep(std::vector<uint8_t> bytes);
  uint32_t Constant(xnn_datatype datatype, const Dims& dims, const void* data);
  // Adds a constant for activations: f32 values, converted if these are f16.
  uint32_t RealConstant(const Dims& dims, const void* data);

  void Check(xnn_status status, const char* what = "define") const;
  // Sets the current op, for messages.
  void Defining(const NetworkNode& node);
  // After the last op.
  void Finish();
  // The memory of Keep; the partition owns it from now on.
  std::vector<std::vector<uint8_t>> TakeMemory() { return std::move(memory_); }

 private:
  uint32_t Define(Tensor t, const Dims& dims, const void* data, uint32_t external, uint32_t flags);
  uint32_t DefineReal(xnn_datatype datatype, const Dims& dims, uint32_t external, uint32_t flags);
  uint32_t DefineFilter(const Weights& weights, Tensor filter, const void* data);
  uint32_t DefineBias(const NetworkNode& node, const Weights& weights);
  const float* Scales(const Weights& weights, Tensor filter, size_t count);

  const Network& network_;
  PackProvider& provider_;
  const xnn_datatype real_;  // of activations that are not quantized
  xnn_subgraph_t subgraph_ = nullptr;
  std::vector<fbx_value> external_;
  size_t first_between_ = 0;                            // in external_
  std::vector<std::pair<uint32_t, uint32_t>> results_;  // f16, and the f32 result of the partition
  std::vector<uint32_t> external_ids_;  // by graph value; XNN_INVALID_VALUE_ID: internal to XNNPACK
  std::vector<uint32_t> ids_;           // by graph value; XNN_INVALID_VALUE_ID: not defined yet
  std::vector<std::vector<uint8_t>> memory_;
  std::string defining_;
  bool may_grow_ = true;
};

}  // namespace fusebox::xnnpack
