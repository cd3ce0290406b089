// SPDX-License-Identifier: Apache-2.0
// Composites of litert-torch, JAX and LiteRT's converter that builtin ops compute: activations, products,
// pooling, resizing, and ops that move elements. A table in one_op.cc has the function of each name.
//
// Sizes (i32 scalars) may stand before the operands, as exports with dynamic shapes write them. A rule
// declines attributes that the op lacks, and composites whose attributes do not determine what the body
// computes.
#pragma once

#include <fusebox/rule.hpp>

namespace fusebox::nn {

using namespace sdk;

struct OneOpRule {
  static constexpr std::string_view id = "fusebox.one_op";
  static constexpr std::string_view implements = "aten.hardswish.default";  // the manifest lists all names
  static void match(const Site&);
  static void rewrite(const Site&, Build&);
};

// The operands of a composite behind the sizes. Declines if there are not `count` of them.
class Operands {
 public:
  Operands(const Site&, uint32_t count, uint32_t results = 1);
  Tensor operator[](uint32_t i) const { return site_.in(first_ + i); }
  Value value(const Build& b, uint32_t i) const { return b.in(first_ + i); }
  std::vector<Value> values(const Build&) const;

  // Decline otherwise.
  void RequireFloats(uint32_t i, int rank = -1) const { site_.operand(first_ + i, FBX_F32, rank); }
  void RequireUnscaled(uint32_t i) const;  // a known rank, and no scales, which the result could not keep
  void RequireIntegers(uint32_t i) const;  // i32 or i64, rank 1

 private:
  std::string Subject(uint32_t i) const;

  const Site& site_;
  uint32_t first_;
};

// Images have rank 4, with the channels last unless `is_nchw_op` is true.
void AveragePool(const Site&, Build&);
void ResizeBilinear(const Site&, Build&);
void ResizeNearest(const Site&, Build&);
void MirrorPad(const Site&, Build&);

// Parameters of the runtime, i32, are an operand, which the op does not need.
void RuntimeProduct(const Site&, Build&);
void CacheUpdate(const Site&, Build&);

}  // namespace fusebox::nn
