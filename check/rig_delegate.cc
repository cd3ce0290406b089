// SPDX-License-Identifier: Apache-2.0
// The callbacks of delegates.
#include <new>

#include "check/child.h"
#include "check/shown.h"
#include "host/graph/view.h"

namespace fusebox::check {
namespace {

const DelegateProxy& DelegateOf(void* user) { return *static_cast<const DelegateProxy*>(user); }

// The structs of the host that a callback receives besides fbx_host, as the conditions state.
class Aged {
 public:
  Aged(void* user, const fbx_graph& graph)
      : aged_(graph.head, offsetof(fbx_graph, function) + sizeof(graph.function), AbiOf(user)) {}
  Aged(void* user, const fbx_call& call)
      : aged_(call.head, offsetof(fbx_call, scratch) + sizeof(call.scratch), AbiOf(user)) {}

 private:
  static Conditions::Abi AbiOf(void* user) { return DelegateOf(user).rig->conditions().abi; }
  AgedInPlace aged_;
};

// Calls `call(real delegate, host as shown)`.
template <class Call>
fbx_status WithHost(const char* callback, void* user, const fbx_host* host, const Call& call) noexcept {
  const DelegateProxy& proxy = DelegateOf(user);
  SetPlace(callback, FromAbi(proxy.real->name));
  try {
    ViewPages pages;
    const fbx_status status = call(*proxy.real, Show(host, *proxy.rig, pages));
    if (status != FBX_OK && status != FBX_NOT_APPLICABLE && status != FBX_UNSUPPORTED)
      proxy.rig->ReportFailure(std::string(callback) + " fails with status " + std::to_string(status));
    return status;
  } catch (const std::bad_alloc&) {
    return FBX_OUT_OF_MEMORY;
  }
}

fbx_status Refuse(const fbx_host* host, fbx_status status) {
  const fbx_diag diag = {
      .head = FBX_HEAD(fbx_diag), .severity = FBX_REASON, .message = AsAbi("refused by the check")};
  host->emit(host, &diag);
  return status;
}

fbx_status Create(const fbx_host* host, void* user, const fbx_attrs* options, void** self) noexcept {
  return WithHost("create", user, host,
                  [&](auto& real, auto* shown) { return real.create(shown, real.user, options, self); });
}
void Destroy(void* user, void* self) noexcept {
  const fbx_delegate& real = *DelegateOf(user).real;
  SetPlace("destroy", FromAbi(real.name));
  real.destroy(real.user, self);
}

struct ShownClaim {
  fbx_claim abi;
  const fbx_claim* real;
  uint64_t seed;
  bool fewer;

  bool Drops(uint32_t node) const {
    uint64_t z = (seed << 32 | node) * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    return fewer && (z >> 40) % 2 == 1;
  }
};
const ShownClaim& ClaimOf(const fbx_claim* claim) { return *reinterpret_cast<const ShownClaim*>(claim); }

void AcceptAs(const fbx_claim* claim, uint32_t node, void (*accept)(const fbx_claim*, uint32_t) noexcept) {
  const ShownClaim& shown = ClaimOf(claim);
  if (shown.Drops(node)) shown.real->reject(shown.real, node, AsAbi("CHECK"), AsAbi("refused by the check"));
  else accept(shown.real, node);
}
void AcceptNode(const fbx_claim* claim, uint32_t node) noexcept {
  AcceptAs(claim, node, ClaimOf(claim).real->accept);
}
void AcceptToJoin(const fbx_claim* claim, uint32_t node) noexcept {
  AcceptAs(claim, node, ClaimOf(claim).real->accept_join);
}
void RejectNode(const fbx_claim* claim, uint32_t node, fbx_str code, fbx_str why) noexcept {
  ClaimOf(claim).real->reject(ClaimOf(claim).real, node, code, why);
}
int32_t Offered(const fbx_claim* claim, uint32_t node) noexcept {
  return ClaimOf(claim).real->offered(ClaimOf(claim).real, node);
}

fbx_status Claim(const fbx_host* host, void* user, void* self, const fbx_graph* graph,
                 const fbx_claim* claim) noexcept {
  const Conditions& conditions = DelegateOf(user).rig->conditions();
  ShownClaim shown{{.head = FBX_HEAD(fbx_claim),
                    .accept = AcceptNode,
                    .reject = RejectNode,
                    .accept_join = AcceptToJoin,
                    .offered = Offered},
                   claim,
                   conditions.seed,
                   conditions.delegates == Conditions::Delegates::kFewerNodes};
  FUSEBOX_AGE(shown.abi, offered, conditions.abi);
  const Aged aged(user, *graph);
  return WithHost("claim", user, host, [&](auto& real, auto* shown_host) {
    return real.claim(shown_host, real.user, self, graph, &shown.abi);
  });
}

fbx_status Compile(const fbx_host* host, void* user, void* self, void* session, const fbx_graph* graph,
                   void** partition) noexcept {
  if (DelegateOf(user).rig->conditions().delegates == Conditions::Delegates::kNoCompile)
    return Refuse(host, FBX_UNSUPPORTED);
  const Aged aged(user, *graph);
  return WithHost("compile", user, host, [&](auto& real, auto* shown) {
    return real.compile(shown, real.user, self, session, graph, partition);
  });
}

fbx_status Recompile(const fbx_host* host, void* user, void* self, void* session, const fbx_graph* graph,
                     void** partition) noexcept {
  const Aged aged(user, *graph);
  return WithHost("recompile", user, host, [&](auto& real, auto* shown) {
    return real.recompile(shown, real.user, self, session, graph, partition);
  });
}

fbx_status PreparePartition(const fbx_host* host, void* user, void* partition, const fbx_call* call,
                            const fbx_infer* infer, const fbx_plan* plan) noexcept {
  const Aged aged(user, *call);
  return WithHost("prepare", user, host, [&](auto& real, auto* shown) {
    return real.prepare(shown, real.user, partition, call, infer, plan);
  });
}

fbx_status InvokePartition(const fbx_host* host, void* user, void* partition, const fbx_call* call) noexcept {
  Rig& rig = *DelegateOf(user).rig;
  if (rig.conditions().delegates == Conditions::Delegates::kNoInvoke) return Refuse(host, FBX_INTERNAL);
  rig.CountPartition();
  const Aged aged(user, *call);
  return WithHost("invoke", user, host,
                  [&](auto& real, auto* shown) { return real.invoke(shown, real.user, partition, call); });
}

void DestroyPartition(void* user, void* partition) noexcept {
  const fbx_delegate& real = *DelegateOf(user).real;
  SetPlace("destroy_partition", FromAbi(real.name));
  real.destroy_partition(real.user, partition);
}

fbx_status OpenSession(const fbx_host* host, void* user, void* self, void** session) noexcept {
  return WithHost("open_session", user, host, [&](auto& real, auto* shown) {
    return real.open_session(shown, real.user, self, session);
  });
}
fbx_status Finish(const fbx_host* host, void* user, void* self, void* session) noexcept {
  return WithHost("finish", user, host,
                  [&](auto& real, auto* shown) { return real.finish(shown, real.user, self, session); });
}
void CloseSession(void* user, void* session) noexcept {
  const fbx_delegate& real = *DelegateOf(user).real;
  SetPlace("close_session", FromAbi(real.name));
  real.close_session(real.user, session);
}

fbx_status Reshape(const fbx_host* host, void* user, void* partition, const fbx_call* call) noexcept {
  const Aged aged(user, *call);
  return WithHost("reshape", user, host,
                  [&](auto& real, auto* shown) { return real.reshape(shown, real.user, partition, call); });
}

}  // namespace

void Wrap(DelegateProxy& proxy) {
  const fbx_delegate& real = *proxy.real;
  proxy.abi = {.head = FBX_HEAD(fbx_delegate),
               .name = real.name,
               .user = &proxy,
               .create = Create,
               .destroy = Destroy,
               .claim = Claim,
               .compile = Compile,
               .prepare = PreparePartition,
               .invoke = InvokePartition,
               .destroy_partition = DestroyPartition};
  if (FBX_HAS(&real, open_session)) proxy.abi.open_session = OpenSession;
  if (FBX_HAS(&real, finish)) proxy.abi.finish = Finish;
  if (FBX_HAS(&real, close_session)) proxy.abi.close_session = CloseSession;
  if (FBX_HAS(&real, reshape)) proxy.abi.reshape = Reshape;
  if (FBX_HAS(&real, recompile)) proxy.abi.recompile = Recompile;
}

}  // namespace fusebox::check
