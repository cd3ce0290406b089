// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "host/base/trace.h"
#include "host/delegate/delegate.h"

namespace fusebox::delegate {
namespace {

constexpr size_t kMostNotices = 100;

// Compares output shapes of the delegate with those of the kernels.
Status CheckShapes(const Inference& said, const fbx_call& call) {
  if (!said.needed().empty()) return Invalid("infer requires the value of an input");
  for (uint32_t i = 0; i < call.output_count; ++i) {
    const Type& type = said.types()[i];
    if (type.dtype == DType::kNone) continue;
    const Type expected = TypeOf(*call.outputs[i]);
    if (type == expected) continue;
    return Invalid(
        fmt::format("it computes output {} as {}, the kernels as {}", i, ToString(type), ToString(expected)));
  }
  return {};
}

bool IsCancelled(const Status& status) { return !status && status.error().code == Code::kCancelled; }

}  // namespace

Session::Session(const Module& module, std::span<const std::unique_ptr<Part>> parts, HostCalls& calls)
    : module_(module), parts_(parts), calls_(calls), slots_(parts.size()) {}

Session::~Session() {
  for (const Slot& slot : slots_) {
    if (slot.partition != nullptr) slot.delegate->destroy_partition(slot.delegate->user, slot.partition);
  }
  for (const Opened& opened : opened_) {
    if (opened.session != nullptr && FBX_HAS(&opened.delegate->abi(), close_session))
      opened.delegate->abi().close_session(opened.delegate->abi().user, opened.session);
  }
}

void Session::Compile(std::span<const size_t> numbers) {
  for (const size_t part : numbers) {
    if (slots_[part].state != kNew) continue;
    Status status = CompileOne(part);
    if (IsCancelled(status)) return Forget(numbers);
    if (!status) Decline(part, "compile", status.error());
  }
  const bool compiled = std::ranges::any_of(opened_, &Opened::unfinished);
  for (Opened& opened : opened_) {
    if (opened.unfinished && !Finish(opened)) return Forget(numbers);
  }
  if (compiled) ReleaseModel(numbers);
}

// Delegates have packed their weights or found them in the cache, so the pages of the model are not needed.
void Session::ReleaseModel(std::span<const size_t> numbers) const {
  for (const size_t part : numbers) {
    const Function& function = *parts_[part]->function;
    for (ValueId id = 0; id < function.value_count(); ++id) {
      const Buffer& data = function.value(id).data;
      if (data && data.file() != nullptr) return data.ReleaseFile();  // it holds all other constants too
    }
  }
}

Result<Session::Opened*> Session::Open(const Instance& delegate) {
  for (Opened& opened : opened_) {
    if (opened.delegate == &delegate) return &opened;
  }
  void* session = nullptr;
  if (FBX_HAS(&delegate.abi(), open_session)) {
    HostCall& call = calls_.For(delegate.plugin());
    const InCall in(call, "delegate", delegate.abi().name);
    FUSEBOX_TRY(
        call.Check(delegate.abi().open_session(call.abi(), delegate.abi().user, delegate.self(), &session)));
  }
  opened_.push_back({&delegate, session, false});
  return &opened_.back();
}

Status Session::CompileOne(size_t number) {
  const Part& part = *parts_[number];
  TraceSpan span("compile partition");
  if (span) span.Arg("partition", ToString(part));
  Slot& slot = slots_[number];
  FUSEBOX_ASSIGN(Opened* const opened, Open(*part.delegate));
  slot.delegate = &part.delegate->abi();
  slot.call = &calls_.For(part.delegate->plugin());
  const GraphView view(module_, *part.function);
  void* partition = nullptr;
  const InCall in(*slot.call, "delegate", slot.delegate->name);
  FUSEBOX_TRY(
      slot.call->Check(slot.delegate->compile(slot.call->abi(), slot.delegate->user, part.delegate->self(),
                                              opened->session, view.abi(), &partition)));
  slot.partition = partition;
  slot.state = kReady;
  opened->unfinished = true;
  return {};
}

// Drops partitions that are compiled, but perhaps not finished, since the run was cancelled. The next
// compiles them again.
void Session::Forget(std::span<const size_t> numbers) {
  for (Opened& opened : opened_) opened.unfinished = false;
  for (const size_t part : numbers) {
    Slot& slot = slots_[part];
    if (slot.state != kReady || slot.prepared != 0) continue;
    slot.delegate->destroy_partition(slot.delegate->user, slot.partition);
    slot = {};
  }
}

// False: cancelled.
bool Session::Finish(Opened& opened) {
  const fbx_delegate& abi = opened.delegate->abi();
  opened.unfinished = false;
  if (!FBX_HAS(&abi, finish)) return true;
  const TraceSpan span("finish partitions");
  HostCall& call = calls_.For(opened.delegate->plugin());
  const InCall in(call, "delegate", abi.name);
  const Status status = call.Check(abi.finish(call.abi(), abi.user, opened.delegate->self(), opened.session));
  if (status) return true;
  if (IsCancelled(status)) return false;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const bool fresh = slots_[i].state == kReady && slots_[i].prepared == 0;
    if (fresh && parts_[i]->delegate == opened.delegate) Decline(i, "finish", status.error());
  }
  return true;
}

uint64_t Session::Prepare(size_t part, const fbx_call& call, const fbx_plan& plan,
                          const std::string& misfit) {
  Slot& slot = slots_[part];
  if (slot.state != kReady) return 0;
  if (const Status fits = misfit.empty() ? Status() : Reshape(slot, call, misfit); !fits) {
    Decline(part, "prepare", fits.error());
    return 0;
  }
  slot.prepared = ++count_;
  if (const Status status = PrepareOne(part, call, plan); !status) {
    if (!IsCancelled(status)) Decline(part, "prepare", status.error());
    return 0;
  }
  return slot.prepared;
}

Status Session::Reshape(Slot& slot, const fbx_call& call, const std::string& misfit) {
  if (!FBX_HAS(slot.delegate, reshape)) return Invalid(misfit);
  const InCall in(*slot.call, "delegate", slot.delegate->name);
  return slot.call
      ->Check(slot.delegate->reshape(slot.call->abi(), slot.delegate->user, slot.partition, &call))
      .At(misfit);
}

Status Session::PrepareOne(size_t part, const fbx_call& call, const fbx_plan& plan) {
  TraceSpan span("prepare partition");
  if (span) span.Arg("partition", ToString(*parts_[part]));
  Slot& slot = slots_[part];
  std::vector<Type> types;
  Inference inference(call.output_count, types);
  const Active active(*this, part, Activity::kPrepare);
  const InCall in(*slot.call, "delegate", slot.delegate->name);
  FUSEBOX_TRY(slot.call->Check(slot.delegate->prepare(slot.call->abi(), slot.delegate->user, slot.partition,
                                                      &call, inference.abi(), &plan)));
  return CheckShapes(inference, call);
}

bool Session::Failed(size_t part, fbx_status status) {
  const Status failure = slots_[part].call->Check(status);
  if (!IsCancelled(failure)) Decline(part, "invoke", failure.error());
  return false;
}

void Session::Decline(size_t part, std::string_view step, const Error& error) {
  Slot& slot = slots_[part];
  if (slot.partition != nullptr) slot.delegate->destroy_partition(slot.delegate->user, slot.partition);
  slot.partition = nullptr;
  slot.state = kDeclined;
  slot.why = fmt::format("{} declined at {}: {}", ToString(*parts_[part]), step, error.message);
  if (notices_.size() >= kMostNotices) return;
  const size_t nodes = parts_[part]->origin.nodes.size();
  notices_.push_back(slot.why + (nodes == 1 ? "; a kernel runs its node"
                                            : fmt::format("; kernels run its {} nodes", nodes)));
}

}  // namespace fusebox::delegate
