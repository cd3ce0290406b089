// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstring>

#include "host/plugin/call.h"
#include "host/run/frame.h"

namespace fusebox::run {
namespace {

// For shapes seen before, grants the delegate the same slots as then.
class SameMemory {
 public:
  SameMemory(const plan::Step& step, uint32_t threads)
      : abi_{FBX_HEAD(fbx_plan), Scratch, Persistent, threads}, step_(step) {}
  const fbx_plan& abi() const { return abi_; }

 private:
  static fbx_status Scratch(const fbx_plan* abi, size_t bytes, uint32_t* slot) noexcept {
    return Reuse(abi, bytes, slot, false);
  }
  static fbx_status Persistent(const fbx_plan* abi, size_t bytes, uint32_t* slot) noexcept {
    return Reuse(abi, bytes, slot, true);
  }
  static fbx_status Reuse(const fbx_plan* abi, size_t bytes, uint32_t* slot, bool persistent) noexcept {
    auto& self = *const_cast<SameMemory*>(reinterpret_cast<const SameMemory*>(abi));
    if (self.next_ >= self.step_.slots.size()) return FBX_OUT_OF_MEMORY;
    const plan::Step::Slot& had = self.step_.slots[self.next_];
    if (had.persistent != persistent || had.bytes < bytes) return FBX_OUT_OF_MEMORY;
    *slot = static_cast<uint32_t>(self.next_++);
    return FBX_OK;
  }

  fbx_plan abi_;  // first: callbacks cast from it
  const plan::Step& step_;
  size_t next_ = 0;
};

// A step with nothing to do but to call its kernel.
bool IsPlain(const plan::Step& step) {
  return step.kernel != nullptr && !step.once && !step.dynamic && step.copies.empty();
}

}  // namespace

fbx_status Frame::Invoke(const plan::Step& step) {
  const Recorded in(step.invoke);
  return step.kernel->invoke(step.call->abi(), step.kernel->user, step.instance, step.state,
                             &view_.node(step.node).abi);
}

Status Frame::RunSteps(plan::Segment& segment) {
  const bool watched = !records_.empty() || runner_.observer_ != nullptr;
  const bool forwarded = runner_.watched_.code == &code_;
  for (plan::Step& step : segment.steps) {
    Status status;
    if (forwarded) {
      status = RunForwarded(step);
    } else if (watched) {
      status = RunWatched(step);
    } else if (!IsPlain(step)) {
      status = RunStep(step);
    } else if (const fbx_status code = Invoke(step); code != FBX_OK) {
      status = step.call->Check(code);
    }
    if (!status)
      return std::move(status).At(fmt::format("function {}: {}", code_.name(), code_.Describe(step.node)));
    if (runner_.cancelled()) return Runner::Cancelled();
  }
  return {};
}

// With a profile, an observer, or both.
Status Frame::RunWatched(plan::Step& step) {
  const bool timed = !records_.empty();
  const Node& node = *function_.nodes[step.node];
  if (runner_.observer_ == nullptr || step.kernel == nullptr || node.body.empty())
    return timed ? RunTimed(step) : RunStep(step);
  const auto tensors = [&](const ValueIds& ids) {
    std::vector<const fbx_tensor*> out;
    for (const ValueId id : ids) out.push_back(id == kNoValue ? nullptr : &view_.tensor(id));
    return out;
  };
  const bool seen = runner_.observer_->Before(function_, node, tensors(node.operands));
  FUSEBOX_TRY(timed ? RunTimed(step) : RunStep(step));
  if (seen && !runner_.cancelled()) runner_.observer_->After(tensors(node.results));
  return {};
}

// Returns false if the delegate does not run it, so that its body must.
bool Frame::RunPart(plan::Step& step) {
  if (runner_.context_.delegates == nullptr) return false;
  delegate::Session& delegates = *runner_.context_.delegates;
  const auto part = static_cast<size_t>(step.part);
  if (!delegates.runs(part)) return false;
  if (delegates.stale(part, step.prepared)) {
    const CallerServices::Phase phase(runner_.services_);
    const SameMemory memory(step, runner_.context_.threads);
    step.prepared = delegates.Prepare(part, step.delegated, memory.abi(), step.misfit);
    if (step.prepared == 0) return false;
  }
  return delegates.Invoke(part, step.prepared, step.delegated);
}

Status Frame::RunStep(plan::Step& step) {
  Kept* const kept = step.once ? &kept_.at(function_.nodes[step.node]->results[0]) : nullptr;
  if (kept != nullptr && kept->done) return {};
  if (!step.copies.empty()) FUSEBOX_TRY(CopyStates(step));
  if (step.kernel != nullptr) {
    if (const fbx_status status = Invoke(step); status != FBX_OK) return step.call->Check(status);
    if (kept != nullptr) kept->done = !runner_.cancelled();  // else parts of a loop may be missing
  } else if (step.part >= 0 && RunPart(step)) {
    return {};
  } else {
    if (runner_.cancelled()) return Runner::Cancelled();
    FUSEBOX_TRY(RunHost(step));
  }
  return step.dynamic ? CheckSized(step) : Status();
}

Status Frame::CopyStates(const plan::Step& step) {
  for (const plan::StateUse* use : step.copies) {
    const fbx_tensor& from = view_.tensor(use->from);
    const fbx_tensor& to = view_.tensor(use->to);
    if (from.bytes != to.bytes || (from.data == nullptr && from.bytes > 0)) {
      return Internal(fmt::format("state operand {} has {} bytes, its final state {}", use->operand,
                                  from.bytes, to.bytes));
    }
    if (from.bytes > 0) std::memmove(to.data, from.data, from.bytes);
  }
  return {};
}

Status Frame::CheckSized(const plan::Step& step) {
  const Node& node = *function_.nodes[step.node];
  for (size_t i = 0; i < node.results.size(); ++i) {
    const ValueId id = node.results[i];
    if (id == kNoValue || !dynamic_[static_cast<size_t>(id)] || view_.tensor(id).data != nullptr) continue;
    return Internal(
        fmt::format("{}result {} was not resized",
                    step.call != nullptr ? fmt::format("plugin {}: ", step.call->plugin().id()) : "", i));
  }
  return {};
}

fbx_status Frame::Resize(size_t node, uint32_t result, std::span<const int64_t> dims, size_t bytes) {
  const ValueId id = function_.nodes[node]->results[result];
  if (id == kNoValue) return FBX_INVALID;
  fbx_tensor& tensor = view_.tensor(id);
  if (tensor.dtype != FBX_STRING) {
    const size_t bits = BitsOf(static_cast<DType>(tensor.dtype));
    size_t count = bits;
    for (const int64_t dim : dims) {
      if (dim < 0 || __builtin_mul_overflow(count, static_cast<size_t>(dim), &count)) return FBX_INVALID;
    }
    if (bits == 0 || count > SIZE_MAX / 2) return FBX_INVALID;
    bytes = (count + 7) / 8;
  }
  if (!dynamic_[static_cast<size_t>(id)]) return bytes == tensor.bytes ? FBX_OK : FBX_INVALID;
  const auto place = [&] {
    return "result " + code_.DescribeValue(id, {static_cast<DType>(tensor.dtype), Shape::Of(dims)});
  };
  AllocateFor(place, [&] {
    growables_[static_cast<size_t>(id)]->Resize(tensor, dims.data(), static_cast<int32_t>(dims.size()),
                                                bytes);
  });
  return FBX_OK;
}

// Copies outputs that are not in the caller's memory: inputs, constants, state, results sized at run time.
Status Frame::ReturnOutputs(std::span<const Out> outputs) {
  if (outputs.size() != function_.outputs.size()) {
    return Internal(fmt::format("function {} returns {} values, not {}", code_.name(),
                                function_.outputs.size(), outputs.size()));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Out& out = outputs[i];
    if (out.tensor == nullptr || returned_[i]) continue;
    if (out.input >= 0) FUSEBOX_TRY(CheckShared(i, out.input, kNoValue));
    const fbx_tensor& value = view_.tensor(function_.outputs[i]);
    if (value.rank < 0 || (value.data == nullptr && value.bytes > 0)) {
      return Invalid(fmt::format("function {}: output {} is never computed", code_.name(), i));
    }
    if (out.memory != nullptr) {
      out.memory->Assign(*out.tensor, value);
    } else if (out.tensor->dtype != value.dtype || out.tensor->bytes != value.bytes) {
      return Internal(fmt::format("function {}: output {} is {}, planned as {}", code_.name(), i,
                                  ToString(TypeOf(value)), ToString(TypeOf(*out.tensor))));
    } else if (value.bytes > 0) {
      std::memcpy(out.tensor->data, value.data, value.bytes);
    }
  }
  return {};
}

Status Frame::CheckStored(const fbx_tensor& result, const fbx_tensor& value) {
  if (result.dtype == value.dtype && result.bytes == value.bytes) return {};
  const Type declared = TypeOf(result);
  return Invalid(
      fmt::format("the result is declared {}, but the value is {}",
                  result.dtype == value.dtype ? ToString(declared) : std::string(Name(declared.dtype)),
                  ToString(TypeOf(value))));
}

// Copies a value into a result of the current node.
Status Frame::Store(ValueId result, const fbx_tensor& value) {
  fbx_tensor& tensor = view_.tensor(result);
  if (tensor.dtype == value.dtype && dynamic_[static_cast<size_t>(result)]) {
    growables_[static_cast<size_t>(result)]->Assign(tensor, value);
    return {};
  }
  FUSEBOX_TRY(CheckStored(tensor, value));
  if (value.bytes > 0) std::memmove(tensor.data, value.data, value.bytes);
  return {};
}

}  // namespace fusebox::run
