// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "host/eval/eval.h"

namespace fusebox {
namespace {

constexpr int32_t kMostDims = 64;

}  // namespace

Inference::Inference(size_t results, std::vector<Type>& types)
    : abi_{FBX_HEAD(fbx_infer), Set, NeedsValue}, types_(types) {
  types_.assign(results, {});
}

void Inference::Set(const fbx_infer* abi, uint32_t result, fbx_dtype dtype, const int64_t* dims,
                    int32_t rank) noexcept {
  auto& self = *const_cast<Inference*>(reinterpret_cast<const Inference*>(abi));
  // Ignores an invalid result, which AskInfer then reports as missing.
  if (result >= self.types_.size() || rank > kMostDims || (rank > 0 && dims == nullptr)) return;
  if (dtype <= FBX_DTYPE_NONE || dtype > FBX_VARIANT) return;
  Type& type = self.types_[result];
  type.dtype = static_cast<DType>(dtype);
  type.shape = rank < 0 ? Shape() : Shape::Of({dims, static_cast<size_t>(rank)});
}

void Inference::NeedsValue(const fbx_infer* abi, uint32_t operand) noexcept {
  const_cast<Inference*>(reinterpret_cast<const Inference*>(abi))->needed_.push_back(operand);
}

Status CallInfer(const fbx_kernel& kernel, HostCall& call, const fbx_node& node, Inference& inference) {
  if (!kernel.infer) return Internal("the kernel has no infer");
  const fbx_status status = kernel.infer(call.abi(), &node, inference.abi());
  if (status != FBX_OK) return call.Check(status);
  for (size_t i = 0; i < inference.types().size(); ++i) {
    const Type& type = inference.types()[i];
    if (type.dtype == DType::kNone && inference.needed().empty() && i < node.result_count) {
      return Internal(fmt::format("plugin {}: infer does not set result {}", call.plugin().id(), i));
    }
    for (const int64_t dim : type.shape.dims()) {
      if (dim < Shape::kUnknown)
        return Invalid(fmt::format("result {} would have shape {}", i, ToString(type.shape)));
    }
  }
  for (const uint32_t operand : inference.needed()) {
    if (operand >= node.operand_count) {
      return Internal(fmt::format("plugin {}: infer requires operand {} of {}", call.plugin().id(), operand,
                                  node.operand_count));
    }
  }
  return {};
}

std::optional<Type> Refine(const Type& a, const Type& b) {
  if (a.dtype == DType::kNone) return b;
  if (b.dtype == DType::kNone) return a;
  if (a.dtype != b.dtype) return std::nullopt;
  if (!a.shape.ranked()) return b;
  if (!b.shape.ranked()) return a;
  if (a.shape.rank() != b.shape.rank()) return std::nullopt;
  Type refined = a;
  for (size_t i = 0; i < refined.shape.dims().size(); ++i) {
    int64_t& dim = refined.shape.dims()[i];
    if (dim == Shape::kUnknown) dim = b.shape[i];
    if (b.shape[i] != Shape::kUnknown && b.shape[i] != dim) return std::nullopt;
  }
  return refined;
}

}  // namespace fusebox
