// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "host/base/trace.h"
#include "host/delegate/delegate.h"

namespace fusebox::delegate {
namespace {

constexpr size_t kMostNotices = 100;

// Compares output shapes of the delegate with the kernels' output shapes.
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

bool HasKnownDims(const Function& function) {
  const auto known = [&](ValueId id) { return id == kNoValue || function.value(id).type.shape.is_static(); };
  return std::ranges::all_of(function.inputs, known) &&
         std::ranges::all_of(function.nodes,
                             [&](const auto& node) { return std::ranges::all_of(node->results, known); });
}

}  // namespace

Session::Session(const Module& module, std::span<const std::unique_ptr<Part>> parts, HostCalls& calls)
    : module_(module), parts_(parts), calls_(calls), slots_(parts.size()) {}

Session::~Session() {
  for (Slot& slot : slots_) Destroy(slot);
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
  opened_.reserve(opened_.size() + 1);
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
  slot.forms.reserve(slot.forms.size() + 1);  // before there is a partition to lose
  Form form;
  const Status status = CompileForm(*opened, part, slot.delegate->compile, *part.function, form);
  const bool later = !status && status.error().code == Code::kUnsupported && !HasKnownDims(*part.function) &&
                     FBX_HAS(slot.delegate, recompile);
  if (!status && !later) return status;
  slot.forms.push_back(std::move(form));
  slot.awaits_dims = later;
  slot.state = kReady;
  return {};
}

Status Session::CompileForm(Opened& opened, const Part& part, decltype(fbx_delegate::compile) compile,
                            const Function& function, Form& form) {
  const fbx_delegate& abi = part.delegate->abi();
  HostCall& call = calls_.For(part.delegate->plugin());
  const GraphView view(module_, function);
  const InCall in(call, "delegate", abi.name);
  FUSEBOX_TRY(call.Check(
      compile(call.abi(), abi.user, part.delegate->self(), opened.session, view.abi(), &form.partition)));
  opened.unfinished = true;
  return {};
}

// Drops partitions that are compiled, but perhaps not finished, since the run was cancelled. The next
// compiles them again.
void Session::Forget(std::span<const size_t> numbers) {
  for (Opened& opened : opened_) opened.unfinished = false;
  for (const size_t part : numbers) {
    Slot& slot = slots_[part];
    if (!slot.fresh()) continue;
    Destroy(slot);
    slot = {};
  }
}

void Session::Restart() {
  for (Slot& slot : slots_) {
    if (slot.state != kReady) continue;
    Destroy(slot);
    slot = {};
  }
}

Status Session::CallFinish(Opened& opened) {
  const fbx_delegate& abi = opened.delegate->abi();
  opened.unfinished = false;
  if (!FBX_HAS(&abi, finish)) return {};
  const TraceSpan span("finish partitions");
  HostCall& call = calls_.For(opened.delegate->plugin());
  const InCall in(call, "delegate", abi.name);
  return call.Check(abi.finish(call.abi(), abi.user, opened.delegate->self(), opened.session));
}

// Returns false if cancelled.
bool Session::Finish(Opened& opened) {
  const Status status = CallFinish(opened);
  if (status) return true;
  if (IsCancelled(status)) return false;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].fresh() && parts_[i]->delegate == opened.delegate) Decline(i, "finish", status.error());
  }
  return true;
}

uint64_t Session::Prepare(size_t part, const fbx_call& call, const fbx_plan& plan, const Misfit& misfit) {
  if (slots_[part].state != kReady) return 0;
  Form* const form = FormFor(part, call, misfit);
  if (form == nullptr) return 0;
  form->prepared = ++count_;
  if (const Status status = PrepareOne(part, *form, call, plan); !status) {
    if (IsCancelled(status)) return 0;
    if (form->function == nullptr) Decline(part, "prepare", status.error());
    else DropForm(part, *form, status.error());
    return 0;
  }
  return form->prepared;
}

Status Session::PrepareOne(size_t part, const Form& form, const fbx_call& call, const fbx_plan& plan) {
  TraceSpan span("prepare partition");
  if (span) span.Arg("partition", ToString(*parts_[part]));
  Slot& slot = slots_[part];
  std::vector<Type> types;
  Inference inference(call.output_count, types);
  const Active active(*this, part, Activity::kPrepare);
  const InCall in(*slot.call, "delegate", slot.delegate->name);
  FUSEBOX_TRY(slot.call->Check(slot.delegate->prepare(slot.call->abi(), slot.delegate->user, form.partition,
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
  Destroy(slot);
  slot.state = kDeclined;
  slot.why = fmt::format("{} declined at {}: {}", ToString(*parts_[part]), step, error.message);
  Notice(part, slot.why);
}

void Session::Destroy(Slot& slot) {
  for (const Form& form : slot.forms)
    if (form.partition != nullptr) slot.delegate->destroy_partition(slot.delegate->user, form.partition);
  slot.forms.clear();
}

void Session::Notice(size_t part, const std::string& why) {
  if (notices_.size() >= kMostNotices) return;
  const size_t nodes = parts_[part]->origin.nodes.size();
  notices_.push_back(
      why + (nodes == 1 ? "; a kernel runs its node" : fmt::format("; kernels run its {} nodes", nodes)));
}

}  // namespace fusebox::delegate
