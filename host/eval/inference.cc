// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "host/base/no_throw.h"
#include "host/eval/eval.h"
#include "host/plugin/call.h"

namespace fusebox {
namespace {

constexpr int32_t kMostDims = 64;

// Returns the mistake in a result that infer sets, or an empty string if there is none.
std::string Mistake(size_t results, uint32_t result, fbx_dtype dtype, const int64_t* dims, int32_t rank) {
  if (result >= results) return fmt::format("result {}, but the op has {} results", result, results);
  if (dtype <= FBX_DTYPE_NONE || dtype > FBX_VARIANT)
    return fmt::format("result {} to dtype {}, which does not exist", result, dtype);
  if (rank > kMostDims || rank < -1)
    return fmt::format("result {} to rank {}, expected -1 (unknown) to {}", result, rank, kMostDims);
  if (rank > 0 && dims == nullptr) return fmt::format("result {} to rank {} without dims", result, rank);
  for (int32_t i = 0; i < rank; ++i) {
    if (dims[i] < Shape::kUnknown)
      return fmt::format("dim {} of result {} to {}, expected at least -1 (unknown)", i, result, dims[i]);
  }
  return {};
}

// Passes valid results on to an Inference and keeps the first mistake.
struct Checker {
  fbx_infer abi;  // first: callbacks cast from it
  const fbx_infer* to;
  size_t results;
  std::string mistake = {};

  static Checker& Of(const fbx_infer* abi) {
    return *const_cast<Checker*>(reinterpret_cast<const Checker*>(abi));
  }
  static void Failed(const fbx_infer* abi) { Of(abi).mistake = "out of memory"; }
  static void Set(const fbx_infer* abi, uint32_t result, fbx_dtype dtype, const int64_t* dims, int32_t rank) {
    Checker& self = Of(abi);
    if (self.mistake.empty()) self.mistake = Mistake(self.results, result, dtype, dims, rank);
    if (self.mistake.empty()) self.to->set(self.to, result, dtype, dims, rank);
  }
  static void NeedsValue(const fbx_infer* abi, uint32_t operand) noexcept {
    Of(abi).to->needs_value(Of(abi).to, operand);
  }
  static void SetQuant(const fbx_infer* abi, uint32_t result, const fbx_quant* quant) noexcept {
    Of(abi).to->set_quant(Of(abi).to, result, quant);
  }
};

}  // namespace

Inference::Inference(size_t results, std::vector<Type>& types)
    : abi_{FBX_HEAD(fbx_infer), kNoThrow<Set, Failed>, kNoThrow<NeedsValue, Failed>,
           kNoThrow<SetQuant, Failed>},
      types_(types) {
  types_.assign(results, {});
}

Inference& Inference::Of(const fbx_infer* abi) {
  return *const_cast<Inference*>(reinterpret_cast<const Inference*>(abi));
}

void Inference::Failed(const fbx_infer* abi) {
  Of(abi).failure_ = Fail(Code::kOutOfMemory, "out of memory");  // allocates nothing
}

void Inference::Set(const fbx_infer* abi, uint32_t result, fbx_dtype dtype, const int64_t* dims,
                    int32_t rank) {
  Inference& self = Of(abi);
  // Final states, which have the types of the operands, and mistakes.
  if (!Mistake(self.types_.size(), result, dtype, dims, rank).empty()) return;
  Type& type = self.types_[result];
  type.dtype = static_cast<DType>(dtype);
  type.shape = rank < 0 ? Shape() : Shape::Of({dims, static_cast<size_t>(rank)});
}

void Inference::NeedsValue(const fbx_infer* abi, uint32_t operand) { Of(abi).needed_.push_back(operand); }

void Inference::SetQuant(const fbx_infer* abi, uint32_t result, const fbx_quant* from) {
  Inference& self = Of(abi);
  auto quant = FromAbi(from);
  if (quant && result >= self.types_.size()) quant = Invalid("there is no such result");
  if (!quant) {
    self.failure_ =
        Invalid(fmt::format("infer sets the scales of result {}: {}", result, quant.error().message));
    return;
  }
  self.quants_.resize(self.types_.size());
  self.quants_[result] = *std::move(quant);
}

Status CallInfer(const fbx_kernel& kernel, HostCall& call, const fbx_node& node, Inference& inference) {
  if (!kernel.infer) return Internal("the kernel has no infer");
  Checker checker{
      {FBX_HEAD(fbx_infer), kNoThrow<Checker::Set, Checker::Failed>, Checker::NeedsValue, Checker::SetQuant},
      inference.abi(),
      node.result_count};
  const InCall in(call, node);
  const fbx_status status = kernel.infer(call.abi(), kernel.user, &node, &checker.abi);
  if (status != FBX_OK) return call.Check(status);
  const auto wrong = [&](std::string_view what) {
    return Internal(fmt::format("plugin {}: {}: infer {}", call.plugin().id(), FromAbi(node.op), what));
  };
  if (!inference.failure()) return inference.failure();
  if (!checker.mistake.empty()) return wrong("sets " + checker.mistake);
  for (size_t i = 0; i < inference.types().size(); ++i) {
    const bool set = inference.types()[i].dtype != DType::kNone;
    if (!set && inference.needed().empty() && i < node.result_count)
      return wrong(fmt::format("does not set result {}", i));
  }
  for (const uint32_t operand : inference.needed()) {
    if (operand >= node.operand_count) {
      return wrong(fmt::format("requires operand {} of {}", operand, node.operand_count));
    }
  }
  return {};
}

Result<Accepted> Accepted::Make(const fbx_kernel& kernel, HostCall& call, const fbx_node& node,
                                Inference& inference) {
  FUSEBOX_TRY(CallInfer(kernel, call, node, inference));
  return Accepted(kernel, call, node);
}

Result<Accepted> Accepted::Declared(const fbx_kernel& kernel, HostCall& call, NodeView& view,
                                    size_t results) {
  std::vector<Type> types;
  const auto accept = [&] {
    Inference inference(results, types);
    return Make(kernel, call, *view.abi(), inference);
  };
  Result<Accepted> accepted = accept();
  if (accepted || accepted.error().code == Code::kInternal) return accepted;
  for (size_t i = 0; i < view.operand_count(); ++i) {
    fbx_tensor& tensor = view.operand(i).edit();
    if ((tensor.flags & (FBX_TENSOR_CONST | FBX_TENSOR_ABSENT)) == 0)
      view.operand(i).SetType({static_cast<DType>(tensor.dtype), Shape()});
  }
  const InCall in(call, *view.abi());
  const bool supported = kernel.supports(call.abi(), kernel.user, view.abi()) == FBX_OK;
  call.TakeDiags();
  auto by_constants = accept();
  return supported && by_constants ? by_constants : accepted;
}

Status Accepted::Init(void** instance) const {
  *instance = nullptr;
  if (!FBX_HAS(kernel_, init)) return {};
  const InCall in(*call_, *node_);
  const fbx_status status = kernel_->init(call_->abi(), kernel_->user, node_, instance);
  return status == FBX_OK ? Status() : call_->Check(status);
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
