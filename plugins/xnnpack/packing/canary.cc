// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/packing/canary.h"

#include <xnnpack.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plugins/xnnpack/cache/digest.h"

namespace fusebox::xnnpack {

namespace {

using Dims = std::vector<size_t>;

// Sizes that no tile divides, so that every channel tile is partly filled; rows of 4-bit blocks must be
// complete.
constexpr size_t kRows = 67;
constexpr size_t kColumns = 38;
constexpr size_t kBlockColumns = 64;
constexpr size_t kBlock = 32;
constexpr size_t kChannels = 11;

// A weights cache that digests packed bytes and stores nothing.
class Capture {
 public:
  Capture() {
    callbacks_.context = this;
    callbacks_.look_up = [](void*, const xnn_weights_cache_look_up_key*) { return SIZE_MAX; };
    callbacks_.reserve_space = [](void* self, size_t size) {
      return static_cast<Capture*>(self)->Reserve(size);
    };
    callbacks_.look_up_or_insert = [](void* self, const xnn_weights_cache_look_up_key* key, void* data,
                                      size_t size) {
      return static_cast<Capture*>(self)->Insert(key->seed, data, size);
    };
    callbacks_.is_finalized = [](void*) { return true; };
    callbacks_.offset_to_addr = [](void* self, size_t offset) -> void* {
      return static_cast<Capture*>(self)->packed_[offset].get();
    };
    callbacks_.delete_cache = [](void*) { return xnn_status_success; };
  }
  xnn_weights_cache_t get() { return &callbacks_; }
  uint64_t digest() const { return cache::Hash(std::as_bytes(std::span(text_))).low; }
  void Note(int value) { text_ += std::to_string(value) + ";"; }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  // Zeroed: XNNPACK leaves gaps between the parts of a transposed convolution.
  void* Reserve(size_t size) {
    const size_t room = (size + 127) / 128 * 128;
    packed_.emplace_back(std::aligned_alloc(128, room));
    return packed_.back() ? std::memset(packed_.back().get(), 0, room) : nullptr;
  }
  size_t Insert(uint32_t seed, void* data, size_t size) {
    const cache::Digest d = cache::Hash({static_cast<const std::byte*>(data), size});
    text_ += std::to_string(seed) + "," + std::to_string(size) + "," + cache::Hex(d) + ";";
    return packed_.size() - 1;
  }
  xnn_weights_cache_provider callbacks_{};
  std::vector<std::unique_ptr<void, Free>> packed_;
  std::string text_;
};

// One op and its weights, to define and pack.
class Canary {
 public:
  Canary(Family family, Form form, bool plain)
      : family_(family),
        form_(form),
        plain_(plain),
        columns_(form == Form::kDynamicBlocks4 ? kBlockColumns : kColumns) {
    const size_t side = this->side();
    if (flat()) {
      filter_ = transposed() ? Dims{columns_, kRows} : Dims{kRows, columns_};
    } else {
      filter_ = {kRows, side, side, kChannels};
    }
    size_t count = 1;
    for (const size_t d : filter_) count *= d;
    uint32_t state = 1;
    bytes_.resize(count);
    for (uint8_t& b : bytes_) b = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
    if (real()) {
      floats_.resize(count);
      for (size_t i = 0; i < count; ++i) floats_[i] = 0.01f * static_cast<float>(bytes_[i]) - 1;
    }
    for (size_t i = 0; i < kRows; ++i) {
      bias_.push_back(static_cast<int32_t>(i * 977) - 30000);
      float_bias_.push_back(0.25f * static_cast<float>(i) - 3);
      scales_.push_back(0.01f + 0.001f * static_cast<float>(i));
    }
    for (size_t i = 0; i < kRows * kBlockColumns / kBlock; ++i)
      block_scales_.push_back(static_cast<uint16_t>(0x3c00 + i));  // bfloat16, about 0.01
  }

  // Returns XNNPACK's status; packs through `cache`.
  int Pack(xnn_weights_cache_t cache) {
    xnn_subgraph_t graph = nullptr;
    if (const int status = xnn_create_subgraph(2, 0, &graph)) return status;
    int status = Define(graph);
    xnn_runtime_t runtime = nullptr;
    if (status == 0) status = xnn_create_runtime_v4(graph, cache, nullptr, nullptr, 0, &runtime);
    if (runtime != nullptr) xnn_delete_runtime(runtime);
    xnn_delete_subgraph(graph);
    return status;
  }

 private:
  bool flat() const { return family_ == Family::kFullyConnected; }
  bool real() const { return form_ == Form::kFloat || form_ == Form::kHalf; }
  bool transposed() const { return flat() && plain_ && real(); }  // XNNPACK supports no others
  uint32_t side() const { return plain_ && family_ == Family::kConvolution ? 1 : 3; }
  bool dynamic() const {
    return form_ == Form::kDynamicInt8 || form_ == Form::kDynamicInt4 || form_ == Form::kDynamicBlocks4;
  }

  int Define(xnn_subgraph_t graph) {
    const xnn_datatype type = form_ == Form::kUint8  ? xnn_datatype_quint8
                              : form_ == Form::kInt8 ? xnn_datatype_qint8
                              : form_ == Form::kHalf ? xnn_datatype_fp16
                                                     : xnn_datatype_fp32;
    const Dims in = flat() ? Dims{1, columns_} : Dims{1, 7, 7, kChannels};
    const Dims out = flat() ? Dims{1, kRows} : Dims{1, 7, 7, kRows};
    uint32_t x = 0;
    uint32_t y = 0;
    uint32_t f = 0;
    uint32_t b = 0;
    int status = Value(graph, type, in, 0, XNN_VALUE_FLAG_EXTERNAL_INPUT, &x);
    if (status == 0) status = Value(graph, type, out, 1, XNN_VALUE_FLAG_EXTERNAL_OUTPUT, &y);
    if (status == 0) status = Filter(graph, &f);
    if (status == 0) status = Bias(graph, &b);
    if (status == 0 && dynamic()) status = Dynamic(graph, in, flat() ? 1 : 3, &x);
    return status != 0 ? status : Op(graph, x, f, b, y);
  }

  int Op(xnn_subgraph_t graph, uint32_t x, uint32_t f, uint32_t b, uint32_t y) const {
    const uint32_t side = this->side();
    const uint32_t stride = plain_ ? 1 : 2;
    if (flat())
      return xnn_define_fully_connected(graph, -1, 1, x, f, b, y,
                                        transposed() ? XNN_FLAG_TRANSPOSE_WEIGHTS : 0);
    if (family_ == Family::kConvolution)
      return xnn_define_convolution_2d(graph, 0, 0, 0, 0, side, side, 1, 1, 1, 1, 1, kChannels, kRows, -1, 1,
                                       x, f, b, y, 0);
    return xnn_define_deconvolution_2d(graph, 0, 0, 0, 0, 0, 0, side, side, stride, stride, 1, 1, 1,
                                       kChannels, kRows, -1, 1, x, f, b, y, 0);
  }

  static int Value(xnn_subgraph_t graph, xnn_datatype type, const Dims& dims, uint32_t external,
                   uint32_t flags, uint32_t* id) {
    if (type == xnn_datatype_fp32 || type == xnn_datatype_fp16)
      return xnn_define_tensor_value(graph, type, dims.size(), dims.data(), nullptr, external, flags, id);
    return xnn_define_quantized_tensor_value(graph, type, 5, 0.05f, dims.size(), dims.data(), nullptr,
                                             external, flags, id);
  }

  static int Dynamic(xnn_subgraph_t graph, const Dims& dims, size_t nonbatch, uint32_t* id) {
    const uint32_t from = *id;
    const int status = xnn_define_dynamically_quantized_tensor_value(
        graph, xnn_datatype_qdint8, dims.size(), nonbatch, dims.data(), XNN_INVALID_VALUE_ID, 0, id);
    return status != 0 ? status : xnn_define_unary(graph, xnn_unary_convert, nullptr, from, *id, 0);
  }

  int Filter(xnn_subgraph_t graph, uint32_t* id) const {
    const auto channelwise = [&](xnn_datatype type) -> int {
      return xnn_define_channelwise_quantized_tensor_value(graph, type, scales_.data(), filter_.size(), 0,
                                                           filter_.data(), bytes_.data(),
                                                           XNN_INVALID_VALUE_ID, 0, id);
    };
    switch (form_) {
      case Form::kFloat:
      case Form::kHalf:
        return xnn_define_tensor_value(graph, xnn_datatype_fp32, filter_.size(), filter_.data(),
                                       floats_.data(), XNN_INVALID_VALUE_ID, 0, id);
      case Form::kUint8:
        return xnn_define_quantized_tensor_value(graph, xnn_datatype_quint8, 120, 0.02f, filter_.size(),
                                                 filter_.data(), bytes_.data(), XNN_INVALID_VALUE_ID, 0, id);
      case Form::kInt8:
      case Form::kDynamicInt8: return channelwise(xnn_datatype_qcint8);
      case Form::kDynamicInt4: return channelwise(xnn_datatype_qcint4);
      case Form::kDynamicBlocks4: break;
    }
    return xnn_define_blockwise_quantized_tensor_value(graph, xnn_datatype_qbint4, 8, block_scales_.data(),
                                                       filter_.size(), 0, kBlock, filter_.data(),
                                                       bytes_.data(), XNN_INVALID_VALUE_ID, 0, id);
  }

  int Bias(xnn_subgraph_t graph, uint32_t* id) const {
    const size_t count = kRows;
    if (real() || dynamic())
      return xnn_define_tensor_value(graph, xnn_datatype_fp32, 1, &count, float_bias_.data(),
                                     XNN_INVALID_VALUE_ID, 0, id);
    if (form_ == Form::kUint8)
      return xnn_define_quantized_tensor_value(graph, xnn_datatype_qint32, 0, 0.02f, 1, &count, bias_.data(),
                                               XNN_INVALID_VALUE_ID, 0, id);
    return xnn_define_channelwise_quantized_tensor_value(graph, xnn_datatype_qcint32, scales_.data(), 1, 0,
                                                         &count, bias_.data(), XNN_INVALID_VALUE_ID, 0, id);
  }

  const Family family_;
  const Form form_;
  const bool plain_;
  const size_t columns_;
  Dims filter_;
  std::vector<uint8_t> bytes_;
  std::vector<float> floats_, float_bias_, scales_;
  std::vector<int32_t> bias_;
  std::vector<uint16_t> block_scales_;
};

}  // namespace

// A family has two variants: a kernel of one element or of several (transposed: stride 1 or more), floats as
// they are or transposed. Other flat weights have one.
uint64_t PackCanary(Family family, Form form) {
  Capture capture;
  const bool floats = form == Form::kFloat || form == Form::kHalf;
  capture.Note(Canary(family, form, false).Pack(capture.get()));
  if (family != Family::kFullyConnected || floats)
    capture.Note(Canary(family, form, true).Pack(capture.get()));
  return capture.digest();
}

}  // namespace fusebox::xnnpack
