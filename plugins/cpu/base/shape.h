// SPDX-License-Identifier: Apache-2.0
// Shapes without allocation: counting, broadcasting, strides, axes, and integer operands such as axis lists.
//
// Invalid input throws sdk::Error (FBX_INVALID). Unknown dims are -1 and propagate. Ranks above kMaxRank
// are rejected with FBX_UNSUPPORTED.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include <fusebox/kernel.hpp>

#include "plugins/math/costs.h"
#include "plugins/math/parallel.h"

namespace fusebox::cpu {

using namespace sdk;
using math::Grain;
using math::ParallelFor;

inline constexpr int kMaxRank = 8;

[[noreturn]] inline void Fail(std::string message, std::string subject = {}) {
  throw Error{FBX_INVALID, std::move(message), std::move(subject)};
}

inline std::string Operand(uint32_t i) { return "operand " + std::to_string(i); }

// Dims of a known rank, some possibly unknown (-1); also used for short integer lists.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims) {
    for (const int64_t d : dims) push_back(d);
  }
  // The tensor's dims; its rank must be known.
  explicit Shape(Tensor t) : Shape(t.dims()) {}

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return dims_[static_cast<size_t>(i)]; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + rank_; }
  operator std::span<const int64_t>() const { return {begin(), end()}; }  // NOLINT
  friend bool operator==(const Shape& a, const Shape& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

  void push_back(int64_t d) {
    if (rank_ == kMaxRank) throw Error{FBX_UNSUPPORTED, "more than 8 dimensions"};
    dims_[static_cast<size_t>(rank_++)] = d;
  }
  bool is_static() const {
    return std::all_of(begin(), end(), [](int64_t d) { return d >= 0; });
  }

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

inline std::string Text(std::span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ",";
    text += dims[i] < 0 ? "?" : std::to_string(dims[i]);
  }
  return text + "]";
}

// Product of sizes; throws on overflow.
inline int64_t Product(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) Fail("the size overflows 64 bits");
  return product;
}

// Number of elements; -1: a dim is unknown (but 0 if another dim is 0).
inline int64_t Count(std::span<const int64_t> dims) {
  int64_t count = 1;
  bool unknown = false;
  for (const int64_t d : dims) {
    if (d == 0) return 0;
    if (d < 0) unknown = true;
    else count = Product(count, d);
  }
  return unknown ? -1 : count;
}

// -1: the rank is unknown too.
inline int64_t Count(Tensor t) { return t.rank() < 0 ? -1 : Count(t.dims()); }

// Number of elements before / from an axis. All dims must be known.
inline int64_t CountBefore(const Shape& s, int axis) { return Count({s.begin(), static_cast<size_t>(axis)}); }
inline int64_t CountFrom(const Shape& s, int axis) {
  return Count({s.begin() + axis, static_cast<size_t>(s.rank() - axis)});
}

// A negative axis counts from the end; an axis outside of [-rank, rank) throws.
inline int Axis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    Fail("axis " + std::to_string(axis) + " is outside of rank " + std::to_string(rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// Two dims that must be equal: returns the known one.
inline int64_t SameDim(int64_t a, int64_t b, const char* what) {
  if (a >= 0 && b >= 0 && a != b)
    Fail(std::string(what) + " differ: " + std::to_string(a) + " and " + std::to_string(b));
  return a >= 0 ? a : b;
}

// Element strides of a dense row-major tensor.
inline Shape Strides(const Shape& dims) {
  Shape strides = dims;
  int64_t step = 1;
  for (int i = dims.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= std::max<int64_t>(dims[i], 1);
  }
  return strides;
}

// NumPy broadcasting. An unknown dim and 1 stay unknown; an unknown dim and n give n.
inline Shape Broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape out = longer;
  const int shift = longer.rank() - shorter.rank();
  for (int i = 0; i < shorter.rank(); ++i) {
    int64_t& d = out[i + shift];
    const int64_t e = shorter[i];
    if (d == e || e == 1) continue;
    if (d == 1 || (d < 0 && e >= 0)) d = e;
    else if (e >= 0) Fail("shapes " + Text(a) + " and " + Text(b) + " do not broadcast");
  }
  return out;
}

// Element strides of `in` in the index space of `out`: 0 along broadcast dims.
inline Shape BroadcastStrides(const Shape& in, const Shape& out) {
  const Shape dense = Strides(in);
  const int shift = out.rank() - in.rank();
  Shape strides = out;
  for (int i = 0; i < out.rank(); ++i) strides[i] = i < shift || in[i - shift] == 1 ? 0 : dense[i - shift];
  return strides;
}

// A row-major index over `dims` with N matching offsets.
template <size_t N>
class Walk {
 public:
  Walk(const Shape& dims, const std::array<Shape, N>& strides) : dims_(dims), strides_(strides) {
    for (int i = 0; i < dims.rank(); ++i) index_[static_cast<size_t>(i)] = 0;
  }
  // Jumps to the element with this row-major index.
  void Seek(int64_t position) {
    offset_.fill(0);
    for (int i = dims_.rank() - 1; i >= 0; --i) {
      const int64_t at = position % dims_[i];
      position /= dims_[i];
      index_[static_cast<size_t>(i)] = at;
      for (size_t k = 0; k < N; ++k) offset_[k] += at * strides_[k][i];
    }
  }
  void Next() {
    for (int i = dims_.rank() - 1; i >= 0; --i) {
      int64_t& at = index_[static_cast<size_t>(i)];
      for (size_t k = 0; k < N; ++k) offset_[k] += strides_[k][i];
      if (++at < dims_[i]) return;
      for (size_t k = 0; k < N; ++k) offset_[k] -= at * strides_[k][i];
      at = 0;
    }
  }
  int64_t offset(size_t k) const { return offset_[k]; }
  int64_t index(int dim) const { return index_[static_cast<size_t>(dim)]; }

 private:
  Shape dims_;
  std::array<Shape, N> strides_;
  std::array<int64_t, kMaxRank> index_{};
  std::array<int64_t, N> offset_{};
};

// Element i of an i32 or i64 operand; the operand must have a value.
inline int64_t IntAt(Tensor t, int64_t i) {
  if (t.dtype() == FBX_I32) return t.data<const int32_t>()[i];
  if (t.dtype() == FBX_I64) return t.data<const int64_t>()[i];
  Fail("an integer operand has dtype " + std::string(dtype_name(t.dtype())));
}

// A short integer operand (scalar or 1-D: axes, sizes, a permutation) as a list; it must have a value.
inline Shape IntList(Tensor t, uint32_t operand) {
  if (t.dtype() != FBX_I32 && t.dtype() != FBX_I64)
    Fail("expected i32 or i64, got " + std::string(dtype_name(t.dtype())), Operand(operand));
  if (t.rank() > 1)
    Fail("expected a scalar or a list, got rank " + std::to_string(t.rank()), Operand(operand));
  if (t.count() > kMaxRank) throw Error{FBX_UNSUPPORTED, "more than 8 values", Operand(operand)};
  Shape list;
  for (int64_t i = 0; i < t.count(); ++i) list.push_back(IntAt(t, i));
  return list;
}

// A scalar integer operand (rank 0, or one element); it must have a value.
inline int64_t IntScalar(Tensor t, uint32_t operand) {
  const Shape list = IntList(t, operand);
  if (list.rank() != 1) Fail("expected one value, got " + std::to_string(list.rank()), Operand(operand));
  return list[0];
}

// Throws unless the node has this many operands (including absent ones) and results.
inline void Arity(const Node& n, uint32_t least, uint32_t most, uint32_t results = 1) {
  if (n.in_count() < least || n.in_count() > most)
    Fail("has " + std::to_string(n.in_count()) + " operands, expected " + std::to_string(least) +
         (most > least ? ".." + std::to_string(most) : ""));
  for (uint32_t i = 0; i < least; ++i)
    if (!n.has_in(i)) Fail("is missing", Operand(i));
  if (n.out_count() != results)
    Fail("has " + std::to_string(n.out_count()) + " results, expected " + std::to_string(results));
}

// For infer: dims that depend on values that are not known yet. A negative rank is unknown, too.
inline void SetUnknownDims(Infer& out, fbx_dtype dtype, int64_t rank, uint32_t result = 0) {
  if (rank < 0) return out.unranked(result, dtype);
  Shape dims;
  for (int64_t i = 0; i < rank; ++i) dims.push_back(-1);
  out.set(result, dtype, dims);
}
// The same where the dims are the elements of an operand, a list.
inline void SetUnknownDimsOfList(const Node& n, Infer& out, uint32_t operand, fbx_dtype dtype) {
  out.needs_value(operand);
  const Tensor list = n.in(operand);
  SetUnknownDims(out, dtype, list.rank() == 1 ? list.dim(0) : -1);
}

}  // namespace fusebox::cpu
