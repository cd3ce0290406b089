// SPDX-License-Identifier: Apache-2.0
// The XNNPACK subgraph of a partition while its ops define themselves.
//
// Everything throws Reject where XNNPACK refuses, with its status and, through Defining, the op at fault.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <xnnpack.h>

#include "plugins/xnnpack/pack_provider.h"
#include "plugins/xnnpack/values.h"

namespace fusebox::xnnpack {

const char* StatusName(xnn_status status);

// How a constant's elements become floats.
enum class Unpack { kNone, kHalf, kAffine };

// The weights of an op that packs them: of conv, transposed conv and fully connected.
struct Weights {
  uint32_t filter = 0;                        // operand
  uint32_t bias = UINT32_MAX;                 // operand; absent: UINT32_MAX
  xnn_datatype datatype = xnn_datatype_fp32;  // fp32, qint8, quint8, qcint8, qcint4 or qbint4
  Dims dims;                                  // of the filter as XNNPACK shall see it
  size_t channel_dim = 0;
  float least_scale = 0;       // of the filter: smaller ones make nothing, and XNNPACK refuses them
  bool dynamic = false;        // the activation is quantized while it runs: the bias is f32
  bool always_packed = false;  // XNNPACK does not look into the cache before it packs this op
};

class Subgraph {
 public:
  // `between`: values that the caller has memory for.
  Subgraph(const Network& network, PackProvider& provider, std::span<const fbx_value> between);
  Subgraph(const Subgraph&) = delete;
  ~Subgraph();

  xnn_subgraph_t get() const { return subgraph_; }
  // The graph's values that come from or go to the outside, by their id in the subgraph: inputs, then
  // outputs, then `between`.
  std::span<const fbx_value> external() const { return external_; }
  uint32_t external_id(fbx_value value) const { return external_ids_[value]; }
  bool uses(fbx_value value) const { return ids_[value] != XNN_INVALID_VALUE_ID; }

  // Ids of a node's operands and results. A constant operand is read where it lies, or as f32 after
  // unpacking.
  uint32_t In(const NetworkNode& node, uint32_t operand);
  // A constant operand whose last dim is its only one, `times` times over: [times, n].
  uint32_t Repeated(const NetworkNode& node, uint32_t operand, size_t times);
  uint32_t Out(const NetworkNode& node, uint32_t result = 0);
  // A value between ops that the graph does not know.
  uint32_t Temporary(xnn_datatype datatype, Affine affine, const Dims& dims);
  // The operand quantized per row while it runs; the last `nonbatch` dims are a row.
  uint32_t Dynamic(uint32_t from, const Dims& dims, size_t nonbatch);
  // The same for the images that a convolution reads. Where their number is open, MayGrow is false from now
  // on: when it grows, XNNPACK frees, for each image but one, memory that it never had.
  uint32_t DynamicImages(const NetworkNode& node, uint32_t operand, uint32_t from);
  bool MayGrow() const { return may_grow_; }
  // The operand as f32, quantized or not.
  uint32_t FloatIn(const NetworkNode& node, uint32_t operand);
  // Runs `define` on an f32 value that becomes the result, quantized or not.
  void FloatOut(const NetworkNode& node, const std::function<void(uint32_t id)>& define);
  void Convert(uint32_t from, uint32_t to);
  // Between two quantizations of values of these dims; through f32 where XNNPACK's multipliers do not reach.
  void Requantize(uint32_t from, Affine from_affine, uint32_t to, Affine to_affine, const Dims& dims,
                  bool same_type = true);

  // Calls `define` with the result's id and the range of its activation. A bias that is no constant here
  // (another partition unpacks it) is added after.
  void WithBias(const NetworkNode& node, uint32_t bias, Range range,
                const std::function<void(uint32_t out, Range range)>& define);

  struct Ids {
    uint32_t filter, bias;
  };
  // Defines filter and bias, and registers them with the cache under `recipe`, to which it adds what the
  // weights say.
  Ids Pack(const NetworkNode& node, Recipe recipe, const Weights& weights);
  // The same for an op that XNNPACK packs past the cache.
  Ids Private(const NetworkNode& node, const Weights& weights);
  // A constant in another form than it stands: memory that lives as long as the runtime.
  const void* Keep(std::vector<uint8_t> bytes);
  uint32_t Constant(xnn_datatype datatype, const Dims& dims, const void* data);

  void Check(xnn_status status, const char* what = "define") const;
  // For messages: the op that is being defined.
  void Defining(const NetworkNode& node);
  // What Keep holds; the partition owns it from now on.
  std::vector<std::vector<uint8_t>> TakeMemory() { return std::move(memory_); }

 private:
  uint32_t Define(Tensor t, const Dims& dims, const void* data, uint32_t external, uint32_t flags);
  uint32_t DefineFilter(const Weights& weights, Tensor filter, const void* data);
  uint32_t DefineBias(const NetworkNode& node, const Weights& weights);
  const float* Scales(const Weights& weights, Tensor filter, size_t count);

  const Network& network_;
  PackProvider& provider_;
  xnn_subgraph_t subgraph_ = nullptr;
  std::vector<fbx_value> external_;
  std::vector<uint32_t> external_ids_;  // by the graph's value; XNN_INVALID_VALUE_ID: only XNNPACK knows it
  std::vector<uint32_t> ids_;           // by the graph's value; XNN_INVALID_VALUE_ID: not defined yet
  std::vector<std::vector<uint8_t>> memory_;
  std::string defining_;
  bool may_grow_ = true;
};

// f32 values of a constant that is f32, f16, or quantized integers.
std::vector<uint8_t> ToFloat(Tensor constant);

}  // namespace fusebox::xnnpack
