// SPDX-License-Identifier: Apache-2.0
// Checks of operands that several ops share. `supports` throws Reject, `infer` Error.
#pragma once

#include <string>

#include <fusebox/kernel.hpp>

#include "plugins/common/text.h"

namespace fusebox::vision {

using namespace sdk;

inline void RejectUnlessF32(const Node& n, uint32_t operands) {
  for (uint32_t i = 0; i < operands && i < n.in_count(); ++i) {
    if (n.in(i).dtype() != FBX_F32)
      throw Reject{"DTYPE", std::string("dtype ") + dtype_name(n.in(i).dtype()) + ", expected f32",
                   common::Subject(i)};
  }
}

inline void RequireArity(const Node& n, uint32_t operands, uint32_t results) {
  bool complete = n.in_count() == operands && n.out_count() == results;
  for (uint32_t i = 0; complete && i < operands; ++i) complete = n.has_in(i);
  if (!complete)
    throw Error{FBX_INVALID, std::to_string(n.in_count()) + " operands and " + std::to_string(n.out_count()) +
                                 " results, expected " + std::to_string(operands) + " and " +
                                 std::to_string(results)};
}

inline void RequireRank(const Node& n, uint32_t operand, int rank) {
  const int has = n.in(operand).rank();
  if (has >= 0 && has != rank)
    throw Error{FBX_INVALID, "rank " + std::to_string(has) + ", expected " + std::to_string(rank),
                common::Subject(operand)};
}

// Returns a dim of an operand, or -1 if the dim or the rank is unknown.
inline int64_t DimOf(const Tensor& t, int i) { return t.rank() < 0 ? -1 : t.dim(i); }

}  // namespace fusebox::vision
