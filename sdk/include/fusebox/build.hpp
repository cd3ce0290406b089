// SPDX-License-Identifier: Apache-2.0
// Build: builds the replacement of a composite, in a rule's rewrite.
#pragma once

#include "fusebox/abi/rule.h"
#include "fusebox/base.hpp"

namespace fusebox::sdk {
inline namespace v1 {

using Value = fbx_value;
inline constexpr Value no_value = FBX_NO_VALUE;

// Builds the replacement. Every failing step throws Error.
class Build {
 public:
  explicit Build(const fbx_builder* b) : b_(b) {}

  // A node under construction: set its attributes, then index its results.
  class NodeRef {
   public:
    NodeRef(const fbx_builder* b, std::vector<Value> results) : b_(b), results_(std::move(results)) {}
    NodeRef& attr(std::string_view k, bool v) & {
      b_->attr_bool(b_, to_fbx_str(k), v);
      return *this;
    }
    NodeRef& attr(std::string_view k, int v) & {
      b_->attr_i64(b_, to_fbx_str(k), v);
      return *this;
    }
    NodeRef& attr(std::string_view k, int64_t v) & {
      b_->attr_i64(b_, to_fbx_str(k), v);
      return *this;
    }
    NodeRef& attr(std::string_view k, double v) & {
      b_->attr_f64(b_, to_fbx_str(k), v);
      return *this;
    }
    NodeRef& attr(std::string_view k, std::string_view v) & {
      b_->attr_str(b_, to_fbx_str(k), to_fbx_str(v));
      return *this;
    }
    NodeRef& attr(std::string_view k, const char* v) & { return attr(k, std::string_view(v)); }
    NodeRef& attr(std::string_view k, std::span<const int64_t> v) & {
      b_->attr_i64s(b_, to_fbx_str(k), v.data(), v.size());
      return *this;
    }
    NodeRef& attr(std::string_view k, std::span<const double> v) & {
      b_->attr_f64s(b_, to_fbx_str(k), v.data(), v.size());
      return *this;
    }
    NodeRef& attr(std::string_view k, std::span<const std::string_view> v) & {
      std::vector<fbx_str> texts;
      for (const std::string_view text : v) texts.push_back(to_fbx_str(text));
      b_->attr_strs(b_, to_fbx_str(k), texts.data(), texts.size());
      return *this;
    }
    // Otherwise an array would become a pointer, and that a bool.
    template <class T, size_t N>
    NodeRef& attr(std::string_view k, const T (&v)[N]) & {
      return attr(k, std::span<const T>(v));
    }
    NodeRef& attr(std::string_view k, Tensor v) & {
      supported(FBX_HAS(b_, attr_tensor));
      b_->attr_tensor(b_, to_fbx_str(k), v.abi());
      return *this;
    }
    // An element type is a number in C, so it needs a separate name.
    NodeRef& dtype(std::string_view k, fbx_dtype v) {
      supported(FBX_HAS(b_, attr_dtype));
      b_->attr_dtype(b_, to_fbx_str(k), v);
      return *this;
    }
    // Without a value, the rank is unknown.
    NodeRef& shape(std::string_view k, std::optional<std::span<const int64_t>> dims) {
      supported(FBX_HAS(b_, attr_shape));
      if (!dims) {
        b_->attr_shape(b_, to_fbx_str(k), nullptr, -1);
        return *this;
      }
      b_->attr_shape(b_, to_fbx_str(k), dims->data(), static_cast<int32_t>(dims->size()));
      return *this;
    }
    // fill(*this) sets the attributes of the map.
    template <class F>
    NodeRef& map(std::string_view k, F&& fill) {
      supported(FBX_HAS(b_, begin_map) && FBX_HAS(b_, end_map));
      b_->begin_map(b_, to_fbx_str(k));
      fill(*this);
      b_->end_map(b_);
      return *this;
    }
    template <class T>
    NodeRef attr(std::string_view k, T&& v) && {
      attr(k, std::forward<T>(v));
      return *this;
    }
    Value operator[](size_t i) const { return results_.at(i); }

   private:
    static void supported(bool is) {
      if (!is) throw Error{FBX_UNSUPPORTED, "the host does not support attributes of this kind"};
    }
    const fbx_builder* b_;
    std::vector<Value> results_;
  };

  Value in(uint32_t i) const { return check(b_->operand(b_, i)); }
  NodeRef builtin(std::string_view op, std::initializer_list<Value> ins, uint32_t results = 1) {
    return node(FBX_OP_BUILTIN, op, {ins.begin(), ins.size()}, results);
  }
  NodeRef builtin(std::string_view op, std::span<const Value> ins, uint32_t results = 1) {
    return node(FBX_OP_BUILTIN, op, ins, results);
  }
  NodeRef custom(std::string_view op, std::initializer_list<Value> ins, uint32_t results = 1) {
    return node(FBX_OP_CUSTOM, op, {ins.begin(), ins.size()}, results);
  }
  NodeRef custom(std::string_view op, std::span<const Value> ins, uint32_t results = 1) {
    return node(FBX_OP_CUSTOM, op, ins, results);
  }

  template <class T>
  Value constant(std::span<const T> values, std::span<const int64_t> dims) {
    void* data = nullptr;
    const Value v =
        check(b_->add_const(b_, dtype_of<T>, dims.data(), static_cast<int32_t>(dims.size()), &data));
    std::copy(values.begin(), values.end(), static_cast<T*>(data));
    return v;
  }
  Value i32(std::initializer_list<int32_t> values) {  // 1-D
    const int64_t n = static_cast<int64_t>(values.size());
    return constant<int32_t>({values.begin(), values.size()}, {&n, 1});
  }
  Value i32_scalar(int32_t value) { return constant<int32_t>({&value, 1}, {}); }

  Value transpose(Value v, std::initializer_list<int32_t> perm) {
    return builtin("TRANSPOSE", {v, i32(perm)})[0];
  }
  Value reshape(Value v, std::initializer_list<int32_t> dims) {
    return builtin("RESHAPE", {v, i32(dims)})[0];
  }
  Value reverse(Value v, int32_t axis) { return builtin("REVERSE_V2", {v, i32({axis})})[0]; }
  Value slice(Value v, std::initializer_list<int32_t> begin, std::initializer_list<int32_t> size) {
    return builtin("SLICE", {v, i32(begin), i32(size)})[0];
  }
  std::vector<Value> split(Value v, int32_t axis, uint32_t parts) {
    const NodeRef n =
        builtin("SPLIT", {i32_scalar(axis), v}, parts).attr("num_splits", static_cast<int64_t>(parts));
    std::vector<Value> out;
    for (uint32_t i = 0; i < parts; ++i) out.push_back(n[i]);
    return out;
  }
  // A copy of a tensor with data: its type, its scales, its values. Also strings (StringTensor in
  // strings.hpp).
  Value constant(Tensor t) {
    if (!FBX_HAS(b_, add_tensor)) throw Error{FBX_UNSUPPORTED, "the host does not support add_tensor"};
    return check(b_->add_tensor(b_, t.abi()));
  }
  // State of this site: an operand of one op, which updates it. Without `initial`, it starts as zero.
  Value variable(fbx_dtype dtype, std::span<const int64_t> dims) { return variable(dtype, dims, nullptr); }
  template <class T>
  Value variable(std::span<const T> initial, std::span<const int64_t> dims) {
    int64_t count = 1;
    for (const int64_t d : dims) count *= d;
    if (count != static_cast<int64_t>(initial.size()))
      throw Error{FBX_INTERNAL, "a variable's initial value has another size than its dims"};
    return variable(dtype_of<T>, dims, initial.data());
  }
  // Element type of a result of the last node, for ops that do not determine it themselves (QUANTIZE, CAST).
  void dtype(Value v, fbx_dtype dtype) {
    if (!FBX_HAS(b_, set_dtype)) throw Error{FBX_UNSUPPORTED, "the host does not support set_dtype"};
    b_->set_dtype(b_, v, dtype);
  }
  // Sets the scales of a constant, of a variable, or of a result of the last node. A result has the element
  // type of the first quantized operand, unless dtype() was called.
  void quantize(Value v, const fbx_quant& quant) {
    if (!FBX_HAS(b_, set_quant)) throw Error{FBX_UNSUPPORTED, "the host does not support set_quant"};
    b_->set_quant(b_, v, &quant);
  }
  void quantize(Value v, float scale, int64_t zero_point) { quantize(v, per_tensor(scale, zero_point)); }
  Tensor type(Value v) const { return Tensor(b_->type(b_, v)); }
  void result(uint32_t i, Value v) { b_->set_result(b_, i, check(v)); }
  // Option bytes of the last custom op, for ops whose options are not a map.
  void raw_options(std::string_view bytes) {
    if (!FBX_HAS(b_, raw_options)) throw Error{FBX_UNSUPPORTED, "the host does not support raw_options"};
    b_->raw_options(b_, {bytes.data(), bytes.size()});
  }
  void copy_attr(Attrs from, std::string_view key) { b_->attr_copy(b_, from.abi(), to_fbx_str(key)); }

 private:
  Value variable(fbx_dtype dtype, std::span<const int64_t> dims, const void* initial) {
    if (!FBX_HAS(b_, add_variable)) throw Error{FBX_UNSUPPORTED, "the host does not support add_variable"};
    return check(b_->add_variable(b_, dtype, dims.data(), static_cast<int32_t>(dims.size()), initial));
  }
  NodeRef node(fbx_op_kind kind, std::string_view op, std::span<const Value> ins, uint32_t results) {
    std::vector<Value> out(results);
    const fbx_status status = b_->add_node(b_, kind, to_fbx_str(op), 0, ins.data(),
                                           static_cast<uint32_t>(ins.size()), out.data(), results);
    if (status != FBX_OK) throw Error{status, "cannot emit " + std::string(op)};
    return {b_, std::move(out)};
  }
  Value check(Value v) const {
    if (v == FBX_NO_VALUE) throw Error{FBX_INVALID, "the builder failed"};
    return v;
  }
  const fbx_builder* b_;
};

}  // namespace v1
}  // namespace fusebox::sdk
