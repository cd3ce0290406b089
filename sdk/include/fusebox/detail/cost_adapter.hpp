// SPDX-License-Identifier: Apache-2.0
// The table of fusebox.cost/1, made of the classes of a plugin that have a member `cost` (plugin.hpp).
#pragma once

#include "fusebox/abi/ext/cost.h"
#include "fusebox/delegate.hpp"
#include "fusebox/kernel.hpp"

namespace fusebox::sdk {
inline namespace v1 {

FUSEBOX_MEMBER_(cost)
FUSEBOX_MEMBER_(border)

namespace detail {

template <class T>
concept KernelCosts = requires(const Node& n) { double{T::cost(n)}; };
template <class T>
concept DelegateCosts = requires(const T& d, const Graph& g, const GraphNode& n) { double{d.cost(g, n)}; };
template <class T>
concept BorderCosts = requires(const T& d, uint64_t bytes) { double{d.border(bytes)}; };

template <class F>
double guarded_cost(const F& f) noexcept {
  try {
    return f();
  } catch (...) {
    return FBX_NO_COST;
  }
}

template <class... Ts>
struct CostAdapter {
  static_assert(((KernelCosts<Ts> || DelegateCosts<Ts> || !names_cost<Ts>) && ...),
                "cost is `static double cost(const Node&)` of a kernel, or `double cost(const Graph&, const "
                "GraphNode&) const` of a delegate");
  static_assert(((BorderCosts<Ts> || !NamesDelegate<Ts> || !names_border<Ts>) && ...),
                "border is `double border(uint64_t bytes) const`");
  static constexpr bool used = ((KernelCosts<Ts> || DelegateCosts<Ts>) || ... || false);

  static double kernel(const fbx_host* h, const fbx_kernel* k, const fbx_node* n) noexcept {
    double cost = FBX_NO_COST;
    (
        [&] {
          if constexpr (KernelCosts<Ts>)
            if (k == &kernel_of<Ts>) cost = guarded_cost([&] { return double{Ts::cost(Node(h, n))}; });
        }(),
        ...);
    return cost;
  }
  static double node(const fbx_host* h, const fbx_delegate* d, void* self, const fbx_graph* g,
                     uint32_t i) noexcept {
    double cost = FBX_NO_COST;
    (
        [&] {
          if constexpr (DelegateCosts<Ts>)
            if (d == &delegate_of<Ts>)
              cost = guarded_cost([&] {
                const Graph graph(h, g);
                return double{static_cast<const Ts*>(self)->cost(graph, graph.node(i))};
              });
        }(),
        ...);
    return cost;
  }
  static double border(const fbx_host*, const fbx_delegate* d, void* self, uint64_t bytes) noexcept {
    double cost = FBX_NO_COST;
    (
        [&] {
          if constexpr (DelegateCosts<Ts> && BorderCosts<Ts>)
            if (d == &delegate_of<Ts>)
              cost = guarded_cost([&] { return double{static_cast<const Ts*>(self)->border(bytes)}; });
        }(),
        ...);
    return cost;
  }
  static constexpr fbx_cost table{FBX_HEAD(fbx_cost), kernel, node, border};
};

}  // namespace detail
}  // namespace v1
}  // namespace fusebox::sdk
