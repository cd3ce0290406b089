// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/products/matrix_product.h"

#include "plugins/cpu/base/dispatch.h"

namespace fusebox::cpu {

void MatrixProduct::Supports(const Node& n, const ProductOperands& o) {
  if (o.blocks && HasBlocks(n, o)) return SupportsBlocks(n, o);
  if (TakesQuantized(n, o)) return SupportsQuantized(n, o);
  for (const uint32_t operand : {o.input, o.weights, o.bias}) RequireDtype(n, operand, kFloats);
  RequireActivation(n, o.input);
}

void MatrixProduct::Check(const Node& n, const ProductOperands& o, int64_t outputs) {
  if (TakesQuantized(n, o)) return CheckQuantized(n, o, outputs);
  SameDtype(n, o.input, o.weights);
  CheckBias(n, o.input, o.bias, outputs);
}

std::unique_ptr<const MatrixProduct> MatrixProduct::Choose(const Node& n, const ProductSpec& spec) {
  if (!TakesQuantized(n, spec.operands)) return ProductOfFloats(n, spec);
  if (spec.operands.blocks && HasBlocks(n, spec.operands)) return ProductOfBlocks(n, spec);
  if (n.in(spec.operands.input).dtype() == FBX_I16) return ProductOfWords(n, spec);
  return ProductOfBytes(n, spec);
}

ProductSums MatrixProduct::Sums(const ProductState&) const { Fail("blocks have no sums"); }
void MatrixProduct::Sum(const Node&, const ProductState&, const void*, uint32_t, int64_t, int64_t,
                        void*) const {
  Fail("blocks have no sums");
}
void MatrixProduct::Finish(const Node&, const ProductState&, int64_t, int64_t, int64_t, void*,
                           int64_t) const {
  Fail("blocks have no sums");
}

}  // namespace fusebox::cpu
