// SPDX-License-Identifier: Apache-2.0
// The callbacks of kernels.
#include <algorithm>
#include <cstring>
#include <new>

#include "check/child.h"
#include "check/invocation.h"
#include "host/graph/view.h"

namespace fusebox::check {
namespace {

const KernelProxy& ProxyOf(void* user) { return *static_cast<const KernelProxy*>(user); }

// Calls `call(real kernel, host as shown, node as shown)`; memory is the only thing that can fail here.
template <class Call>
fbx_status WithViews(const char* callback, void* user, const fbx_host* host, const fbx_node* node,
                     const Call& call) noexcept {
  const KernelProxy& proxy = ProxyOf(user);
  SetPlace(callback, FromAbi(proxy.real->op));
  try {
    ViewPages pages;
    const ShownTexts texts(*node, pages);
    ShownNode shown = Show(*node, *proxy.rig, pages);
    return call(*proxy.real, Show(host, *proxy.rig, pages), shown, pages);
  } catch (const std::bad_alloc&) {
    return FBX_OUT_OF_MEMORY;
  }
}

fbx_status Supports(const fbx_host* host, void* user, const fbx_node* node) noexcept {
  return WithViews("supports", user, host, node, [](auto& real, auto* shown_host, ShownNode& n, ViewPages&) {
    return real.supports(shown_host, real.user, n.node);
  });
}

fbx_status Infer(const fbx_host* host, void* user, const fbx_node* node, const fbx_infer* infer) noexcept {
  const AgedInPlace aged(infer->head, offsetof(fbx_infer, set_quant) + sizeof(infer->set_quant),
                         ProxyOf(user).rig->conditions().abi);
  return WithViews("infer", user, host, node, [&](auto& real, auto* shown_host, ShownNode& n, ViewPages&) {
    return real.infer(shown_host, real.user, n.node, infer);
  });
}

// Constants get separate read-only memory, which lives as long as the instance, as the host's does.
void GuardConstants(const fbx_node& node, const Conditions& conditions, InstanceProxy& instance) {
  const bool start = conditions.memory == Conditions::Memory::kGuardedStart;
  instance.constants.resize(node.operand_count);
  for (size_t i = 0; i < node.operand_count; ++i) {
    const fbx_tensor& t = *node.operands[i];
    if (t.data == nullptr || !(t.flags & FBX_TENSOR_CONST)) continue;
    const size_t element = BitsOf(static_cast<DType>(t.dtype)) / 8;
    const size_t alignment = t.dtype == FBX_STRING ? 4 : std::clamp<size_t>(element, 1, 8);
    Region memory(t.bytes, alignment, start ? Region::Side::kStart : Region::Side::kEnd, conditions.fill,
                  "constant operand " + std::to_string(i));
    std::memcpy(memory.data(), t.data, t.bytes);
    memory.Protect();
    instance.constants[i].emplace(std::move(memory));
  }
}

void ShowConstants(const InstanceProxy& instance, ShownNode& node) {
  for (size_t i = 0; i < instance.constants.size() && i < node.operands.size(); ++i)
    if (instance.constants[i]) node.operands[i]->data = instance.constants[i]->data();
}

fbx_status Init(const fbx_host* host, void* user, const fbx_node* node, void** instance) noexcept {
  const KernelProxy& proxy = ProxyOf(user);
  return WithViews("init", user, host, node, [&](auto& real, auto* shown_host, ShownNode& n, ViewPages&) {
    auto made = std::make_unique<InstanceProxy>();
    if (proxy.rig->conditions().memory != Conditions::Memory::kOfHost)
      GuardConstants(*node, proxy.rig->conditions(), *made);
    ShowConstants(*made, n);
    fbx_status status = FBX_OK;
    if (real.init != nullptr) status = real.init(shown_host, real.user, n.node, &made->real);
    if (status == FBX_OK) *instance = made.release();
    return status;
  });
}

struct ShownPlan {
  fbx_plan abi;
  const fbx_plan* real;
  const Conditions& conditions;
  StateProxy& state;

  fbx_status Take(size_t bytes, uint32_t* slot, bool persistent) noexcept {
    if (conditions.memory == Conditions::Memory::kOfHost)
      return (persistent ? real->persistent : real->scratch)(real, bytes, slot);
    try {
      const bool start = conditions.memory == Conditions::Memory::kGuardedStart;
      StateProxy::Slot& added = state.slots.emplace_back(bytes);
      if (persistent) {
        added.kept.emplace(bytes, kAlignment, start ? Region::Side::kStart : Region::Side::kEnd,
                           conditions.fill, "persistent slot " + std::to_string(state.slots.size() - 1));
        added.kept->Fill(0);
      }
      *slot = static_cast<uint32_t>(state.slots.size() - 1);
      return FBX_OK;
    } catch (const std::bad_alloc&) {
      return FBX_OUT_OF_MEMORY;
    }
  }
};

ShownPlan& PlanOf(const fbx_plan* plan) { return *reinterpret_cast<ShownPlan*>(const_cast<fbx_plan*>(plan)); }
fbx_status Scratch(const fbx_plan* plan, size_t bytes, uint32_t* slot) noexcept {
  return PlanOf(plan).Take(bytes, slot, false);
}
fbx_status Persistent(const fbx_plan* plan, size_t bytes, uint32_t* slot) noexcept {
  return PlanOf(plan).Take(bytes, slot, true);
}

fbx_status Prepare(const fbx_host* host, void* user, const void* instance, const fbx_node* node,
                   const fbx_plan* plan, void** state) noexcept {
  const KernelProxy& proxy = ProxyOf(user);
  const auto* const made = static_cast<const InstanceProxy*>(instance);
  return WithViews("prepare", user, host, node, [&](auto& real, auto* shown_host, ShownNode& n, auto& pages) {
    const Conditions& conditions = proxy.rig->conditions();
    auto kept = std::make_unique<StateProxy>();
    ShowConstants(*made, n);
    auto* const shown = pages.Make(ShownPlan{*plan, plan, conditions, *kept});
    shown->abi.scratch = Scratch;
    shown->abi.persistent = Persistent;
    if (conditions.chunks != Conditions::Chunks::kOfHost) shown->abi.threads = conditions.workers;
    FUSEBOX_AGE(shown->abi, threads, conditions.abi);
    fbx_status status = FBX_OK;
    if (real.prepare != nullptr)
      status = real.prepare(shown_host, real.user, made->real, n.node, &shown->abi, &kept->real);
    if (status == FBX_OK) *state = kept.release();
    return status;
  });
}

fbx_status Invoke(const fbx_host* host, void* user, const void* instance, void* state,
                  const fbx_node* node) noexcept {
  try {
    auto& made = *const_cast<InstanceProxy*>(static_cast<const InstanceProxy*>(instance));
    return Invocation(ProxyOf(user), host, *node, made, *static_cast<StateProxy*>(state)).Run();
  } catch (const std::bad_alloc&) {
    return FBX_OUT_OF_MEMORY;
  }
}

void Reset(void* user, const void* instance, void* state) noexcept {
  const fbx_kernel& real = *ProxyOf(user).real;
  SetPlace("reset", FromAbi(real.op));
  if (state == nullptr) return;
  auto& kept = *static_cast<StateProxy*>(state);
  for (StateProxy::Slot& slot : kept.slots)
    if (slot.kept) slot.kept->Fill(0);
  if (real.reset) real.reset(real.user, static_cast<const InstanceProxy*>(instance)->real, kept.real);
}

void FreeState(void* user, void* state) noexcept {
  const fbx_kernel& real = *ProxyOf(user).real;
  SetPlace("free_state", FromAbi(real.op));
  const std::unique_ptr<StateProxy> kept(static_cast<StateProxy*>(state));
  if (kept && kept->real && real.free_state) real.free_state(real.user, kept->real);
}

void Free(void* user, void* instance) noexcept {
  const fbx_kernel& real = *ProxyOf(user).real;
  SetPlace("free", FromAbi(real.op));
  const std::unique_ptr<InstanceProxy> made(static_cast<InstanceProxy*>(instance));
  if (made && made->real && real.free) real.free(real.user, made->real);
}

}  // namespace

void Wrap(KernelProxy& proxy) {
  fbx_kernel& abi = proxy.abi;
  abi = *proxy.real;
  abi.head = FBX_HEAD(fbx_kernel);
  abi.user = &proxy;
  if (abi.supports) abi.supports = Supports;
  abi.infer = Infer;
  abi.init = Init;
  abi.prepare = Prepare;
  abi.invoke = Invoke;
  abi.reset = Reset;
  abi.free_state = FreeState;
  abi.free = Free;
  // Guarded memory is never shared.
  if (proxy.rig->conditions().memory != Conditions::Memory::kOfHost)
    abi.flags &= ~static_cast<uint32_t>(FBX_KERNEL_INPLACE);
}

}  // namespace fusebox::check
