// SPDX-License-Identifier: Apache-2.0
// Shared parts of the kernels of string ops: operands, types, and loops over elements.
//
// All kernels follow the TensorFlow op of the same name. Strings are bytes; where an op reads characters, it
// reads UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/common/string_list.h"
#include "plugins/common/text.h"

namespace fusebox::strings {

using namespace sdk;
using namespace common;

// The type of an attribute that is a dtype: a converter's, or its name in the options of a file.
fbx_dtype DTypeAttr(const Node& n, std::string_view key, fbx_dtype otherwise);

// supports: operand i is i32 or i64.
void RequireInteger(const Node& n, uint32_t i);
// supports: the attribute is one of these; its value, or the first one if it is missing.
std::string_view OneOf(const Node& n, std::string_view key, std::initializer_list<std::string_view> values);

// infer: strings with the shape of t. Their first size stays unknown, because memory is allocated when the
// strings are known.
void StringsLike(Infer& out, uint32_t result, const Tensor& t);
// infer: a tensor whose sizes depend on values.
void Unsized(Infer& out, uint32_t result, fbx_dtype dtype, int rank);

// invoke: the value of an operand with one element.
std::string_view TextOf(const Node& n, uint32_t operand);
int64_t IntegerOf(const Node& n, uint32_t operand);
std::vector<int64_t> DimsOf(const Tensor& t);

// Elements of `t` on the shape `dims`, to which it is broadcast: the index of the element at each place.
class Broadcast {
 public:
  Broadcast(const Tensor& t, std::span<const int64_t> dims);
  int64_t at(int64_t place) const;

 private:
  std::vector<int64_t> dims_, strides_;
};
// The shape of both, broadcast. Throws Error if they do not fit. An unknown size stays unknown.
std::vector<int64_t> BroadcastDims(std::span<const int64_t> a, std::span<const int64_t> b);

// A kernel from strings to strings of the same shape: Op(node), op(text, bytes) appends one string to bytes.
template <class Op>
class Mapped {
 public:
  static constexpr std::string_view custom = Op::custom;
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n) {
    n.arity(1, 1);
    n.operand(0, FBX_STRING);
    Op::check(n);
  }
  static void infer(const Node& n, Infer& out) { StringsLike(out, 0, n.in(0)); }
  explicit Mapped(const Node& n) : op_(n) {}
  void invoke(const Node& n) const {
    const Strings in(n.in(0));
    StringList out;
    for (int64_t i = 0; i < in.size(); ++i) {
      op_(in[i], out.bytes());
      out.Close();
    }
    out.Store(n, 0, DimsOf(n.in(0)));
  }

 private:
  Op op_;
};

// A kernel from strings to numbers of the same shape: op(text) is one number.
template <class Op>
class Measured {
 public:
  using Number = decltype(std::declval<const Op&>()(std::string_view()));
  static constexpr std::string_view custom = Op::custom;
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n) {
    n.arity(1, 1);
    n.operand(0, FBX_STRING);
    Op::check(n);
  }
  static void infer(const Node& n, Infer& out) { out.like(0, n.in(0), dtype_of<Number>); }
  explicit Measured(const Node& n) : op_(n) {}
  void invoke(const Node& n) const {
    const Strings in(n.in(0));
    auto* const out = n.out(0).data<Number>();
    for (int64_t i = 0; i < in.size(); ++i) out[i] = op_(in[i]);
  }

 private:
  Op op_;
};

}  // namespace fusebox::strings
