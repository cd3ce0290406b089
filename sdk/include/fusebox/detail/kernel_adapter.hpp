// SPDX-License-Identifier: Apache-2.0
// Turns a class of a kernel into an fbx_kernel (kernel.hpp).
#pragma once

#include <concepts>
#include <type_traits>

#include "fusebox/detail/member.hpp"
#include "fusebox/node.hpp"

namespace fusebox::sdk {
inline namespace v1 {

namespace detail {

template <class K>
concept NamesBuiltin = requires { std::string_view(K::builtin); };
template <class K>
concept NamesCustom = requires { std::string_view(K::custom); };
template <class K>
concept HasSupports = requires(const Node& n) { K::supports(n); };
template <class K>
concept HasInit = std::constructible_from<K, const Node&>;
template <class K>
concept HasPrepare = requires(const K& k, const Node& n, Plan& p) { k.prepare(n, p); };

template <class K>
struct StateOf {
  using type = void;
};
template <HasPrepare K>
struct StateOf<K> {
  using type = decltype(std::declval<const K&>().prepare(std::declval<const Node&>(), std::declval<Plan&>()));
};
template <class K>
using State = typename StateOf<K>::type;

template <class K>
struct KernelAdapter {
  using S = State<K>;
  static constexpr bool kHasState = !std::is_void_v<S>;

  [[gnu::cold]] static fbx_status supports(const fbx_host* h, void*, const fbx_node* n) noexcept {
    return call_guarded(h, [&] { K::supports(Node(h, n)); });
  }
  [[gnu::cold]] static fbx_status infer(const fbx_host* h, void*, const fbx_node* n,
                                        const fbx_infer* i) noexcept {
    return call_guarded(h, [&] {
      Infer infer(i);
      K::infer(Node(h, n), infer);
    });
  }
  static fbx_status init(const fbx_host* h, void*, const fbx_node* n, void** out) noexcept {
    return call_guarded(h, [&] { *out = new K(Node(h, n)); });
  }
  static const K& kernel(const void* instance) {
    if constexpr (HasInit<K>) {
      return *static_cast<const K*>(instance);
    } else {
      static const K k{};
      return k;
    }
  }
  static fbx_status prepare(const fbx_host* h, void*, const void* instance, const fbx_node* n,
                            const fbx_plan* p, void** state) noexcept {
    return call_guarded(h, [&] {
      Plan plan(p);
      if constexpr (kHasState) {
        *state = new S(kernel(instance).prepare(Node(h, n), plan));
      } else {
        kernel(instance).prepare(Node(h, n), plan);
      }
    });
  }
  static fbx_status invoke(const fbx_host* h, void*, const void* instance, void* state,
                           const fbx_node* n) noexcept {
    return call_guarded(h, [&] {
      if constexpr (kHasState) {
        kernel(instance).invoke(Node(h, n), *static_cast<S*>(state));
      } else {
        (void)state;
        kernel(instance).invoke(Node(h, n));
      }
    });
  }
  static void reset(void*, const void*, void* state) noexcept {
    if constexpr (resets()) K::reset(*static_cast<S*>(state));
  }
  static void free_state(void*, void* state) noexcept {
    if constexpr (kHasState) delete static_cast<S*>(state);
  }
  static void free(void*, void* instance) noexcept { delete static_cast<K*>(instance); }

  static constexpr bool resets() {
    if constexpr (kHasState) return requires(S& s) { K::reset(s); };
    return false;
  }
  // A return value would be ignored, and so would a callback with a wrong signature.
  static constexpr void check() {
    static_assert(NamesBuiltin<K> != NamesCustom<K>, "a kernel names its op: `builtin` or `custom`");
    static_assert(HasSupports<K> || !names_supports<K>, "supports is `static void supports(const Node&)`");
    if constexpr (HasSupports<K>)
      static_assert(std::is_void_v<decltype(K::supports(std::declval<const Node&>()))>,
                    "supports returns nothing: it declines by throwing Reject");
    static_assert(std::is_void_v<decltype(K::infer(std::declval<const Node&>(), std::declval<Infer&>()))>,
                  "infer returns nothing: it fails by throwing Error");
    static_assert(HasPrepare<K> || !names_prepare<K>, "prepare is `State prepare(const Node&, Plan&) const`");
    static_assert(resets() || !names_reset<K>,
                  "reset is `static void reset(State&)`, of the State that prepare returns");
    static_assert(HasInit<K> || std::default_initializable<K>,
                  "a kernel is constructed from a `const Node&`, or from nothing");
  }
  static constexpr fbx_kernel make() {
    check();
    fbx_kernel k{};
    k.head = FBX_HEAD(fbx_kernel);
    if constexpr (NamesBuiltin<K>) {
      k.kind = FBX_OP_BUILTIN;
      k.op = {std::string_view(K::builtin).data(), std::string_view(K::builtin).size()};
    } else {
      k.kind = FBX_OP_CUSTOM;
      k.op = {std::string_view(K::custom).data(), std::string_view(K::custom).size()};
    }
    if constexpr (requires { K::min_version; }) k.min_version = K::min_version;
    if constexpr (requires { K::max_version; }) k.max_version = K::max_version;
    if constexpr (requires { K::flags; }) k.flags = K::flags;
    if constexpr (HasSupports<K>) k.supports = supports;
    k.infer = infer;
    if constexpr (HasInit<K>) {
      k.init = init;
      k.free = free;
    }
    if constexpr (HasPrepare<K>) k.prepare = prepare;
    k.invoke = invoke;
    if constexpr (kHasState) {
      k.reset = reset;
      k.free_state = free_state;
    }
    return k;
  }
};

}  // namespace detail

}  // namespace v1
}  // namespace fusebox::sdk
