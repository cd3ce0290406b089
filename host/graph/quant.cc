// SPDX-License-Identifier: Apache-2.0
#include "host/graph/quant.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace fusebox {
namespace {

Status Refuse(const std::string& what) {
  return Invalid("quantization with " + what + "; convert the model again");
}

bool Holds(DType dtype, int64_t number) {
  const size_t bits = BitsOf(dtype);
  if (bits == 0 || bits > 16) return true;
  const int64_t least = dtype == DType::kU8 ? 0 : -(int64_t{1} << (bits - 1));
  return number >= least && number < least + (int64_t{1} << bits);
}

}  // namespace

Status VerifyQuant(const Value& value, bool all) {
  const Quant& quant = *value.quant;
  const size_t scales = quant.scales.size();
  const size_t zeros = quant.zero_points.size();
  for (size_t i = 0; i < scales && (all || scales == 1); ++i)
    if (const float scale = quant.scales[i];
        !std::isfinite(scale) || scale < 0 || (scale == 0 && !value.is_const()))
      return Refuse("the scale " + std::to_string(scale));
  for (const auto* range : {&quant.min, &quant.max})
    if (all && std::ranges::any_of(*range, [](float bound) { return std::isnan(bound); }))
      return Refuse("a range that is NaN");
  if (quant.block_size < 0) return Invalid("quantization has a negative block size");
  if (zeros > scales || (zeros > 1 && zeros < scales))
    return Refuse(std::to_string(zeros) + " zero points, but " + std::to_string(scales) + " scales");
  for (size_t i = 0; i < zeros && (all || zeros == 1); ++i)
    if (const int64_t zero = quant.zero_points[i]; !Holds(value.type.dtype, zero))
      return Refuse("the zero point " + std::to_string(zero) + ", which " +
                    std::string(Name(value.type.dtype)) + " cannot hold");
  return VerifyAxis(quant, value.type);
}

Status VerifyAxis(const Quant& quant, const Type& type) {
  if (quant.block_size > 0 || quant.scales.size() <= 1 || !type.shape.ranked()) return {};
  if (quant.axis < 0 || quant.axis >= type.shape.rank())
    return Invalid("is quantized along dimension " + std::to_string(quant.axis) + " of " + ToString(type));
  const int64_t dim = type.shape[static_cast<size_t>(quant.axis)];
  if (dim >= 0 && static_cast<size_t>(dim) != quant.scales.size()) {
    return Invalid("has " + std::to_string(quant.scales.size()) + " scales, but dimension " +
                   std::to_string(quant.axis) + " of " + ToString(type));
  }
  return {};
}

Status VerifyQuants(const Module& module) {
  for (const auto& f : module.functions)
    for (ValueId id = 0; id < f->value_count(); ++id)
      if (f->value(id).quant)
        FUSEBOX_TRY(VerifyQuant(f->value(id), true)
                        .At("%" + std::to_string(id) + " (" + f->value(id).name + ")")
                        .At("function " + f->name));
  return {};
}

}  // namespace fusebox
