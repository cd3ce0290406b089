// SPDX-License-Identifier: Apache-2.0
// Checks that the kernels share. In `supports` they throw Reject, in `infer` and later Error.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include <fusebox/kernel.hpp>

#include "plugins/common/text.h"

namespace fusebox::signal {

using namespace sdk;

// The operands' types, in order.
inline void RequireTypes(const Node& n, std::initializer_list<fbx_dtype> types) {
  uint32_t i = 0;
  for (const fbx_dtype type : types) {
    if (i >= n.in_count()) return;
    if (n.in(i).dtype() != type)
      throw Reject{"DTYPE",
                   std::string("is ") + dtype_name(n.in(i).dtype()) + ", expected " + dtype_name(type),
                   common::Subject(i)};
    ++i;
  }
}

// An option in [least, most].
inline int64_t Option(const Node& n, std::string_view key, int64_t least, int64_t most) {
  const auto value = n.attrs().find_i64(key);
  if (!value) throw Reject{"ATTR", "is missing", "attr " + std::string(key)};
  if (*value < least || *value > most)
    throw Reject{"ATTR",
                 "is " + std::to_string(*value) + ", expected " + std::to_string(least) + " to " +
                     std::to_string(most),
                 "attr " + std::string(key)};
  return *value;
}

inline void RequireArity(const Node& n, uint32_t operands, uint32_t results) {
  bool complete = n.in_count() == operands && n.out_count() == results;
  for (uint32_t i = 0; complete && i < operands; ++i) complete = n.has_in(i);
  if (!complete)
    throw Error{FBX_INVALID, std::to_string(n.in_count()) + " operands and " + std::to_string(n.out_count()) +
                                 " results, expected " + std::to_string(operands) + " and " +
                                 std::to_string(results)};
}

[[noreturn]] inline void Fail(const std::string& why, uint32_t operand) {
  throw Error{FBX_INVALID, why, common::Subject(operand)};
}

// Returns the last dim of an operand, or -1 if it is unknown. A scalar is an error.
inline int64_t LastDim(const Node& n, uint32_t operand) {
  const Tensor t = n.in(operand);
  if (t.rank() < 0) return -1;
  if (t.rank() == 0) Fail("is a scalar", operand);
  return t.dim(-1);
}

// Returns the number of elements of an operand, or -1 if it is unknown.
inline int64_t CountOf(const Tensor& t) { return t.is_static() ? t.count() : -1; }

inline void RequireCount(const Node& n, uint32_t operand, int64_t least, int64_t most) {
  const int64_t count = CountOf(n.in(operand));
  if (count < 0 || (count >= least && count <= most)) return;
  Fail("has " + std::to_string(count) + " elements, expected " + std::to_string(least) +
           (most > least ? " or more" : ""),
       operand);
}

// The operand's dims with another last one, or with others instead of the last `drop`.
inline void SetDims(const Node& n, Infer& out, uint32_t result, fbx_dtype type, size_t drop,
                    std::initializer_list<int64_t> last) {
  const auto shape = n.in(0).shape();
  if (!shape) return out.unranked(result, type);
  if (shape->size() < drop) Fail("has rank " + std::to_string(shape->size()), 0);
  std::vector<int64_t> dims(shape->begin(), shape->end() - static_cast<std::ptrdiff_t>(drop));
  dims.insert(dims.end(), last);
  out.set(result, type, dims);
}

}  // namespace fusebox::signal
