// SPDX-License-Identifier: Apache-2.0
// Arguments of kernel callbacks: Node, Infer, Plan. Borrowed views, valid until the callback returns.
#pragma once

#include "fusebox/abi/ext/resize.h"
#include "fusebox/abi/kernel.h"
#include "fusebox/base.hpp"
#include "fusebox/detail/checks.hpp"

namespace fusebox::sdk {
inline namespace v1 {

// A node with its tensors. supports declines with require, arity, operand and attr.
class Node : public detail::Checks<Node> {
 public:
  Node(const fbx_host* host, const fbx_node* node) : host_(host), node_(node) {}
  std::string_view op() const { return to_string_view(node_->op); }
  int version() const { return node_->version; }
  Attrs attrs() const { return {host_, node_->attrs}; }
  Attrs options() const { return {host_, host_->options}; }  // of the plugin
  uint32_t in_count() const { return node_->operand_count; }
  uint32_t out_count() const { return node_->result_count; }
  Tensor in(uint32_t i) const { return Tensor(node_->operands[i]); }
  bool has_in(uint32_t i) const { return i < node_->operand_count && in(i).present(); }
  Tensor out(uint32_t i) const { return Tensor(node_->results[i]); }
  // Values inside the op whose type and quantization the file stores.
  bool has_intermediate(uint32_t i) const {
    return FBX_HAS(node_, intermediates) && i < node_->intermediate_count && intermediate(i).present();
  }
  Tensor intermediate(uint32_t i) const { return Tensor(node_->intermediates[i]); }
  template <class T>
  T* scratch(uint32_t slot) const {
    return static_cast<T*>(node_->scratch[slot]);
  }
  std::string_view raw_options() const {
    return {static_cast<const char*>(node_->raw_options.ptr), node_->raw_options.len};
  }
  // Sizes result i, once, if infer left it unknown. Returns the tensor with memory.
  Tensor resize(uint32_t i, std::span<const int64_t> dims, size_t bytes = 0) const {
    const auto* ext = static_cast<const fbx_resize*>(host_->get_extension(host_, to_fbx_str(FBX_EXT_RESIZE)));
    if (!FBX_HAS(ext, resize)) throw Error{FBX_UNSUPPORTED, "the host has no fusebox.resize/1"};
    const fbx_status status =
        ext->resize(host_, node_, i, dims.data(), static_cast<int32_t>(dims.size()), bytes);
    if (status != FBX_OK) throw Error{status, "cannot resize result " + std::to_string(i)};
    return out(i);
  }
  bool cancelled() const noexcept { return is_cancelled(host_); }  // stop early, with Error{FBX_CANCELLED}
  const fbx_host* host() const { return host_; }
  const fbx_node* abi() const { return node_; }

 private:
  const fbx_host* host_;
  const fbx_node* node_;
};

class Infer {
 public:
  explicit Infer(const fbx_infer* infer) : infer_(infer) {}
  void set(uint32_t result, fbx_dtype dtype, std::span<const int64_t> dims) {
    infer_->set(infer_, result, dtype, dims.data(), static_cast<int32_t>(dims.size()));
  }
  void set(uint32_t result, fbx_dtype dtype, std::initializer_list<int64_t> dims) {
    set(result, dtype, std::span<const int64_t>(dims.begin(), dims.size()));
  }
  void unranked(uint32_t result, fbx_dtype dtype) { infer_->set(infer_, result, dtype, nullptr, -1); }
  // The shape of t, also an unknown one, and its element type or another.
  void like(uint32_t result, Tensor t) { like(result, t, t.dtype()); }
  void like(uint32_t result, Tensor t, fbx_dtype dtype) {
    infer_->set(infer_, result, dtype, t.abi()->dims, t.rank());
  }
  void needs_value(uint32_t operand) { infer_->needs_value(infer_, operand); }
  // A result that the file or a rule has quantized keeps its own scales.
  void quantize(uint32_t result, const fbx_quant& quant) {
    if (!FBX_HAS(infer_, set_quant)) throw Error{FBX_UNSUPPORTED, "the host does not support set_quant"};
    infer_->set_quant(infer_, result, &quant);
  }
  void quantize(uint32_t result, float scale, int64_t zero_point) {
    quantize(result, per_tensor(scale, zero_point));
  }

 private:
  const fbx_infer* infer_;
};

class Plan {
 public:
  explicit Plan(const fbx_plan* plan) : plan_(plan) {}
  uint32_t scratch(size_t bytes) { return slot(plan_->scratch, bytes); }
  uint32_t persistent(size_t bytes) { return slot(plan_->persistent, bytes); }
  uint32_t threads() const { return plan_->threads; }

 private:
  template <class F>
  uint32_t slot(F ask, size_t bytes) {
    uint32_t slot = 0;
    if (const fbx_status status = ask(plan_, bytes, &slot); status != FBX_OK)
      throw Error{status, "no scratch memory"};
    return slot;
  }
  const fbx_plan* plan_;
};

}  // namespace v1
}  // namespace fusebox::sdk
