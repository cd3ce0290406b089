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
  CheckBias(n, o.bias, outputs);
}

std::unique_ptr<const MatrixProduct> MatrixProduct::Choose(const Node& n, const ProductSpec& spec) {
  if (!TakesQuantized(n, spec.operands)) return ProductOfFloats(n, spec);
  if (spec.operands.blocks && HasBlocks(n, spec.operands)) return ProductOfBlocks(n, spec);
  if (n.in(spec.operands.input).dtype() == FBX_I16) return ProductOfWords(n, spec);
  return ProductOfBytes(n, spec);
}

}  // namespace fusebox::cpu
