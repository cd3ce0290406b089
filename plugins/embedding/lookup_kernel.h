// SPDX-License-Identifier: Apache-2.0
// EMBEDDING_LOOKUP: ids i32 [N], table [V, D...] -> [N, D...].
//
// f32 tables are copied from; i8 and i4 tables with scales (one, or one per row) give f32: scale * (stored - zero point). The table is
// read where it lies. An id outside of [0, V) is an error that names it. Other tables are left to other kernels.
#pragma once

#include <fusebox/kernel.hpp>

namespace fusebox::embedding {

struct LookupKernel {
  static constexpr std::string_view builtin = "EMBEDDING_LOOKUP";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node&);
  static void infer(const Node&, Infer&);
  void invoke(const Node&) const;
};

}  // namespace fusebox::embedding
