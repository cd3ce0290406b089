// SPDX-License-Identifier: Apache-2.0
// What the rules of this plugin ask of an operand.
#pragma once

#include <string>

#include <fusebox/rule.hpp>

namespace fusebox::text {

// Present, of that type, and of that rank unless it is -1.
inline void CheckOperand(const Site& site, uint32_t i, fbx_dtype dtype, int rank) {
  const Tensor t = site.in(i);
  const std::string subject = "operand " + std::to_string(i);
  site.require(t.present(), "ARITY", "is absent", subject);
  site.require(t.dtype() == dtype, "DTYPE",
               std::string("is ") + dtype_name(t.dtype()) + ", expected " + dtype_name(dtype), subject);
  if (rank < 0) return;
  site.require(t.rank() >= 0, "RANK", "has an unknown rank", subject);
  site.require(t.rank() == rank, "RANK",
               "has rank " + std::to_string(t.rank()) + ", expected " + std::to_string(rank), subject);
}

inline void CheckAttr(const Site& site, std::string_view key) {
  site.require(site.attrs().has(key), "ATTR", "is missing", "attr " + std::string(key));
}

}  // namespace fusebox::text
