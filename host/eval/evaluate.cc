// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstring>
#include <deque>

#include "host/eval/callback.h"
#include "host/eval/eval.h"
#include "host/plugin/call.h"

namespace fusebox {
namespace {

// Runs one kernel from init to free.
class Evaluation final : public Resizer {
 public:
  Evaluation(const KernelRef& kernel, HostCall& call, const Function& function, const Node& node)
      : kernel_(*kernel.kernel), call_(call), node_(node), view_(function, node) {}
  ~Evaluation() override {
    const InCall in(call_, *view_.abi());
    if (state_ != nullptr && FBX_HAS(&kernel_, free_state)) kernel_.free_state(kernel_.user, state_);
    if (instance_ != nullptr && FBX_HAS(&kernel_, free)) kernel_.free(kernel_.user, instance_);
  }

  Result<std::vector<Tensor>> Run(std::span<const Tensor> operands) {
    FUSEBOX_TRY(BindOperands(operands));
    std::vector<Type> types;
    Inference inference(node_.results.size(), types);
    FUSEBOX_ASSIGN(const Accepted accepted, Accepted::Make(kernel_, call_, *view_.abi(), inference));
    FUSEBOX_TRY(PlaceResults(inference));
    if (!AreEmpty()) {
      FUSEBOX_TRY(accepted.Init(&instance_));
      FUSEBOX_TRY(Prepare());
      FUSEBOX_TRY(Invoke());
    }
    std::vector<Tensor> results;
    for (size_t i = 0; i < memory_.size(); ++i) {
      const fbx_tensor& tensor = view_.result(i).edit();
      const auto* data = static_cast<const std::byte*>(tensor.data);
      results.push_back({TypeOf(tensor), Buffer(memory_[i], {data, tensor.bytes})});
    }
    return results;
  }

  fbx_status Resize(size_t, uint32_t result, std::span<const int64_t> dims, size_t bytes) override {
    if (result >= memory_.size()) return FBX_INVALID;
    TensorView& view = view_.result(result);
    const Type type{static_cast<DType>(view.edit().dtype), Shape::Of(dims)};
    if (type.dtype != DType::kString) {
      const auto size = StorageSize(type);
      if (!size) return FBX_INVALID;
      bytes = *size;
    }
    Allocate(result, type, bytes);
    return FBX_OK;
  }

 private:
  Status BindOperands(std::span<const Tensor> operands) {
    if (operands.size() != view_.operand_count())
      return Internal("evaluated with another number of operands");
    for (size_t i = 0; i < operands.size(); ++i) {
      if (node_.operands[i] == kNoValue) continue;
      const Tensor& value = operands[i];
      if (!value.data) return Internal(fmt::format("evaluated without a value for operand {}", i));
      view_.operand(i).SetType(value.type);
      fbx_tensor& tensor = view_.operand(i).edit();
      tensor.data = const_cast<std::byte*>(value.data.data());
      tensor.bytes = value.data.size();
      tensor.flags = FBX_TENSOR_CONST;
    }
    return {};
  }

  Status PlaceResults(const Inference& inference) {
    if (!inference.needed().empty()) return Internal("infer requires a value that is known");
    memory_.resize(node_.results.size());
    for (uint32_t i = 0; i < memory_.size(); ++i) {
      if (node_.results[i] == kNoValue) continue;
      const Type& type = inference.types()[i];
      const auto size = StorageSize(type);
      if (size) {
        Allocate(i, type, *size);
      } else {
        view_.result(i).SetType(type);
        view_.result(i).edit().data = nullptr;
      }
    }
    return {};
  }

  // Returns whether nothing is to be computed. A kernel could loop over billions of pixels without channels.
  bool AreEmpty() {
    for (size_t i = 0; i < memory_.size(); ++i)
      if (memory_[i] == nullptr || view_.result(i).edit().bytes > 0) return false;
    return true;
  }

  void Allocate(uint32_t result, const Type& type, size_t bytes) {
    auto block = std::make_shared<Block>();
    block->Reserve(bytes);
    view_.result(result).SetType(type);
    fbx_tensor& tensor = view_.result(result).edit();
    tensor.data = block->data();
    tensor.bytes = bytes;
    tensor.flags &= ~uint32_t{FBX_TENSOR_CONST};
    memory_[result] = std::move(block);
  }

  struct Slots {
    fbx_plan plan;  // first: callbacks cast from it
    std::deque<Block> blocks;
    std::vector<void*> pointers;
  };
  static fbx_status AddSlot(const fbx_plan* plan, size_t bytes, uint32_t* slot) noexcept {
    auto& slots = *const_cast<Slots*>(reinterpret_cast<const Slots*>(plan));
    return CallFromPlugin(nullptr, [&] {
      Block& block = slots.blocks.emplace_back();
      block.Reserve(bytes, true);
      *slot = static_cast<uint32_t>(slots.pointers.size());
      slots.pointers.push_back(block.data());
      return FBX_OK;
    });
  }

  Status Prepare() {
    if (!FBX_HAS(&kernel_, prepare)) return {};
    const InCall in(call_, *view_.abi());
    return Check(kernel_.prepare(call_.abi(), kernel_.user, instance_, view_.abi(), &slots_.plan, &state_));
  }

  Status Invoke() {
    view_.edit().scratch = slots_.pointers.data();
    const ResizableNode node{*view_.abi(), this, 0};
    const InCall in(call_, node.abi);
    FUSEBOX_TRY(Check(kernel_.invoke(call_.abi(), kernel_.user, instance_, state_, &node.abi)));
    for (size_t i = 0; i < memory_.size(); ++i) {
      if (node_.results[i] != kNoValue && memory_[i] == nullptr) {
        return Internal(fmt::format("plugin {}: result {} was not resized", call_.plugin().id(), i));
      }
    }
    return {};
  }

  Status Check(fbx_status status) { return status == FBX_OK ? Status() : call_.Check(status); }

  const fbx_kernel& kernel_;
  HostCall& call_;
  const Node& node_;
  NodeView view_;
  std::vector<std::shared_ptr<Block>> memory_;  // of the results
  Slots slots_{{FBX_HEAD(fbx_plan), AddSlot, AddSlot, 1}, {}, {}};
  void* instance_ = nullptr;
  void* state_ = nullptr;
};

}  // namespace

Result<std::vector<Tensor>> Evaluate(const KernelRef& kernel, HostCalls& calls, const Function& function,
                                     const Node& node, std::span<const Tensor> operands) {
  if (!StateOperands(node.op).empty()) return Unsupported("an op with state has no constant value");
  return Evaluation(kernel, calls.For(*kernel.plugin), function, node).Run(operands);
}

Result<std::vector<Tensor>> Evaluate(Registry& registry, const Function& function, const Node& node,
                                     std::span<const Tensor> operands) {
  if (Has(node.op, kHost))
    return Unsupported(fmt::format("{} cannot be evaluated outside a session", Name(node.op)));
  FUSEBOX_ASSIGN(const KernelRef kernel, ChooseKernel(registry, function, node));
  HostCalls calls(SerialServices());
  return Evaluate(kernel, calls, function, node, operands);
}

std::optional<Tensor> ShapeValue(const Node& node, const Shape& operand, DType result) {
  std::vector<int64_t> values;
  Shape shape;
  if (node.is(Op::kShape) && operand.is_static()) {
    values = operand.dims();
    shape = Shape({operand.rank()});
  } else if (node.is(Op::kRank) && operand.ranked()) {
    values = {operand.rank()};
    shape = Shape(std::vector<int64_t>());
  } else {
    return std::nullopt;
  }
  if (result == DType::kI64) return Tensor{{result, shape}, Buffer::Of<int64_t>(values)};
  if (result != DType::kI32) return std::nullopt;
  const std::vector<int32_t> narrow(values.begin(), values.end());
  return Tensor{{result, shape}, Buffer::Of<int32_t>(narrow)};
}

}  // namespace fusebox
