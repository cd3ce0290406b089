// SPDX-License-Identifier: Apache-2.0
// Turns the class of a delegate into an fbx_delegate (delegate.hpp).
#pragma once

#include <concepts>
#include <type_traits>

#include "fusebox/call.hpp"
#include "fusebox/detail/member.hpp"

namespace fusebox::sdk {
inline namespace v1 {

namespace detail {

template <class D>
concept NamesDelegate = requires { std::string_view(D::delegate); };
template <class D>
concept HasSession = requires { typename D::Session; };

template <class D>
struct DelegateAdapter {
  using Partition = typename D::Partition;

  static constexpr bool claims = requires(D& d, const Graph& g, Claim& c) { d.claim(g, c); };
  static constexpr bool prepares =
      requires(Partition& p, const Call& c, Infer& i, Plan& plan) { p.prepare(c, i, plan); };
  static constexpr bool reshapes = requires(Partition& p, const Call& c) { p.reshape(c); };
  static constexpr bool recompiles = requires { requires D::recompiles; };

  static D& self(void* p) { return *static_cast<D*>(p); }

  static fbx_status create(const fbx_host* h, void*, const fbx_attrs* options, void** out) noexcept {
    return call_guarded(h, [&] {
      if constexpr (std::constructible_from<D, const Attrs&>) {
        *out = new D(Attrs(h, options));
      } else {
        *out = new D();
      }
    });
  }
  static void destroy(void*, void* p) noexcept { delete &self(p); }

  static void answer(D& d, const Graph& graph, const Claim& claim, uint32_t i) {
    using Answer = decltype(d.supports(graph, graph.node(i)));
    static_assert(
        std::is_void_v<Answer> || std::is_same_v<Answer, Accept>,
        "supports returns nothing or Accept: it declines by throwing Reject, or with GraphNode::require");
    try {
      if constexpr (std::is_void_v<Answer>) {
        d.supports(graph, graph.node(i));
        claim.accept(i);
      } else {
        claim.accept(i, d.supports(graph, graph.node(i)));
      }
    } catch (const Reject& r) {
      claim.reject(i, r.code, r.subject.empty() ? r.why : r.why + " (" + r.subject + ")");
    }
  }
  static fbx_status claim(const fbx_host* h, void*, void* p, const fbx_graph* g,
                          const fbx_claim* c) noexcept {
    return call_guarded(h, [&] {
      const Graph graph(h, g);
      Claim claim(c);
      if constexpr (claims) {
        self(p).claim(graph, claim);
      } else {
        for (uint32_t i = 0; i < graph.node_count(); ++i)
          if (claim.offered(i)) answer(self(p), graph, claim, i);
      }
    });
  }

  static fbx_status compile(const fbx_host* h, void*, void* p, void* session, const fbx_graph* g,
                            void** out) noexcept {
    return call_guarded(h, [&] {
      if constexpr (HasSession<D>) {
        *out = new Partition(self(p), *static_cast<typename D::Session*>(session), Graph(h, g));
      } else {
        (void)session;
        *out = new Partition(self(p), Graph(h, g));
      }
    });
  }
  static fbx_status prepare(const fbx_host* h, void*, void* partition, const fbx_call* c, const fbx_infer* i,
                            const fbx_plan* p) noexcept {
    return call_guarded(h, [&] {
      Infer infer(i);
      Plan plan(p);
      if constexpr (prepares) static_cast<Partition*>(partition)->prepare(Call(h, c), infer, plan);
    });
  }
  static fbx_status reshape(const fbx_host* h, void*, void* partition, const fbx_call* c) noexcept {
    return call_guarded(h, [&] {
      if constexpr (reshapes) static_cast<Partition*>(partition)->reshape(Call(h, c));
    });
  }
  static fbx_status invoke(const fbx_host* h, void*, void* partition, const fbx_call* c) noexcept {
    return call_guarded(h, [&] { static_cast<Partition*>(partition)->invoke(Call(h, c)); });
  }
  static void destroy_partition(void*, void* partition) noexcept {
    delete static_cast<Partition*>(partition);
  }

  static fbx_status open_session(const fbx_host* h, void*, void* p, void** session) noexcept {
    return call_guarded(h, [&] {
      if constexpr (HasSession<D>) *session = new typename D::Session(self(p), h);
    });
  }
  template <class T>
  static constexpr bool finishes = requires(T& t, const fbx_host* h) { t.finish(h); };
  static constexpr bool session_finishes() {
    if constexpr (HasSession<D>) return finishes<typename D::Session>;
    return false;
  }
  static fbx_status finish(const fbx_host* h, void*, void* p, void* session) noexcept {
    return call_guarded(h, [&] {
      if constexpr (session_finishes()) {
        static_cast<typename D::Session*>(session)->finish(h);
      } else if constexpr (finishes<D>) {
        self(p).finish(h);
      }
    });
  }
  static void close_session(void*, void* session) noexcept {
    if constexpr (HasSession<D>) delete static_cast<typename D::Session*>(session);
  }

  // A callback with a wrong signature would be ignored.
  static constexpr void check() {
    static_assert(claims || !names_claim<D>, "claim is `void claim(const Graph&, Claim&)`");
    static_assert(prepares || !names_prepare<Partition>,
                  "a partition's prepare is `void prepare(const Call&, Infer&, Plan&)`");
    static_assert(reshapes || !names_reshape<Partition>,
                  "a partition's reshape is `void reshape(const Call&)`");
    static_assert(finishes<D> || !names_finish<D>, "finish is `void finish(const fbx_host*)`");
    if constexpr (HasSession<D>)
      static_assert(finishes<typename D::Session> || !names_finish<typename D::Session>,
                    "a session's finish is `void finish(const fbx_host*)`");
  }
  static constexpr fbx_delegate make() {
    check();
    fbx_delegate d{};
    d.head = FBX_HEAD(fbx_delegate);
    d.name = {std::string_view(D::delegate).data(), std::string_view(D::delegate).size()};
    d.create = create;
    d.destroy = destroy;
    d.claim = claim;
    d.compile = compile;
    d.prepare = prepare;
    d.invoke = invoke;
    d.destroy_partition = destroy_partition;
    if constexpr (HasSession<D>) {
      d.open_session = open_session;
      d.close_session = close_session;
    }
    if constexpr (session_finishes() || finishes<D>) d.finish = finish;
    if constexpr (reshapes) d.reshape = reshape;
    if constexpr (recompiles) d.recompile = compile;
    return d;
  }
};

}  // namespace detail

}  // namespace v1
}  // namespace fusebox::sdk
