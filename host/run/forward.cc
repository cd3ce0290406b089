// SPDX-License-Identifier: Apache-2.0
// fusebox.forward/1: kernels run the partition whose delegate called.
#include "fusebox/abi/ext/forward.h"

#include <fmt/format.h>

#include <utility>

#include "host/eval/callback.h"
#include "host/run/frame.h"

namespace fusebox::run {
namespace {

fbx_status AbiOf(Code code) {
  switch (code) {
    case Code::kInvalid: return FBX_INVALID;
    case Code::kUnsupported: return FBX_UNSUPPORTED;
    case Code::kOutOfMemory: return FBX_OUT_OF_MEMORY;
    case Code::kIo: return FBX_IO;
    default: return FBX_INTERNAL;
  }
}

using Activity = delegate::Session::Activity;

// Calls `work(runner, part)` for the partition whose callback runs. No exception may reach the plugin.
template <class Work>
fbx_status Forward(const fbx_host* host, Activity activity, const Work& work) noexcept {
  return CallFromPlugin(host, [&]() -> fbx_status {
    const auto* services = dynamic_cast<const CallerServices*>(HostCall::From(host).services());
    Runner* const runner = services == nullptr ? nullptr : services->runner();
    const auto part = runner == nullptr ? std::nullopt : runner->ForwardedPart(activity);
    if (!part) {
      const std::string_view callback = activity == Activity::kPrepare ? "prepare" : "invoke";
      return Refuse(host, FBX_NOT_APPLICABLE,
                    fmt::format("fusebox.forward/1: no partition is in {}, or it is forwarded already; call "
                                "this function in {} of a partition",
                                callback, callback));
    }
    const Status done = work(*runner, *part);
    if (done || done.error().code == Code::kCancelled) return done ? FBX_OK : FBX_CANCELLED;
    return Refuse(host, AbiOf(done.error().code), done.error().message);
  });
}

Status CheckOutputs(const Function& function, const fbx_call& call) {
  if (call.output_count != function.outputs.size())
    return Invalid(
        fmt::format("the partition has {} outputs, not {}", function.outputs.size(), call.output_count));
  for (uint32_t i = 0; i < call.output_count; ++i) {
    const DType expected = function.value(function.outputs[i]).type.dtype;
    if (call.outputs[i]->dtype != static_cast<fbx_dtype>(expected))
      return Invalid(fmt::format("output {} is {}, expected {}", i,
                                 Name(static_cast<DType>(call.outputs[i]->dtype)), Name(expected)));
  }
  return {};
}

Status CheckData(const fbx_tensor* const* tensors, uint32_t count, std::string_view what) {
  for (uint32_t i = 0; i < count; ++i)
    if (tensors[i]->data == nullptr && tensors[i]->bytes > 0)
      return Invalid(fmt::format("{} {} has no data", what, i));
  return {};
}

}  // namespace

// While it lives, kernels run all partitions.
class Runner::KernelsOnly {
 public:
  explicit KernelsOnly(Runner& runner)
      : runner_(runner), delegates_(std::exchange(runner.context_.delegates, nullptr)) {}
  ~KernelsOnly() {
    runner_.context_.delegates = delegates_;
    runner_.watched_ = {};
  }
  KernelsOnly(const KernelsOnly&) = delete;

 private:
  Runner& runner_;
  delegate::Session* const delegates_;
};

std::optional<size_t> Runner::ForwardedPart(Activity activity) const {
  return context_.delegates == nullptr ? std::nullopt : delegates_.active(activity);
}

Status Runner::PrepareForward(size_t part, const fbx_call& call) {
  const plan::Code& code = program_.CodeOf(part);
  FUSEBOX_TRY(CheckOutputs(*code.function, call));
  const KernelsOnly only(*this);
  std::set<const void*> done;
  return FrameOf(code).Prepare({call.inputs, call.input_count}, done);
}

Status Runner::RunForward(size_t part, const fbx_call& call, const fbx_host* host,
                          const fbx_forward_watch* watch) {
  const plan::Code& code = program_.CodeOf(part);
  FUSEBOX_TRY(CheckOutputs(*code.function, call));
  FUSEBOX_TRY(CheckData(call.inputs, call.input_count, "input"));
  FUSEBOX_TRY(CheckData(call.outputs, call.output_count, "output"));
  forward_outs_.clear();
  for (uint32_t i = 0; i < call.output_count; ++i)
    forward_outs_.push_back({const_cast<fbx_tensor*>(call.outputs[i]), nullptr});
  const KernelsOnly only(*this);
  if (watch != nullptr) watched_ = {&code, host, watch};
  return FrameOf(code).Call({call.inputs, call.input_count}, forward_outs_);
}

Status Frame::RunForwarded(plan::Step& step) {
  const Runner::Watched& watched = runner_.watched_;
  const auto node = static_cast<uint32_t>(step.node);
  watched.watch->before(watched.host, watched.watch->user, node);
  FUSEBOX_TRY(RunWatched(step));
  watched.watch->after(watched.host, watched.watch->user, node);
  return {};
}

const fbx_forward& ForwardApi() {
  static constexpr fbx_forward kForward{
      FBX_HEAD(fbx_forward),
      [](const fbx_host* host, const fbx_call* call) noexcept {
        return Forward(host, Activity::kPrepare,
                       [&](Runner& runner, size_t part) { return runner.PrepareForward(part, *call); });
      },
      [](const fbx_host* host, const fbx_call* call, const fbx_forward_watch* watch) noexcept {
        return Forward(host, Activity::kInvoke, [&](Runner& runner, size_t part) {
          return runner.RunForward(part, *call, host, watch);
        });
      }};
  return kForward;
}

}  // namespace fusebox::run
