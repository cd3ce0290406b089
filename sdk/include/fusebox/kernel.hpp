// SPDX-License-Identifier: Apache-2.0
// Adapter for kernels in C++: kernel_of<K> turns a class with some of these members into an fbx_kernel.
//
//   struct Scale {
//     static constexpr std::string_view custom = "acme.scale";           // or: builtin = "MUL"
//     static void supports(const Node&);                                 // optional; throws Reject
//     static void infer(const Node& n, Infer& out) { out.like(0, n.in(0)); }
//     explicit Scale(const Node&);                                       // optional: parse options, pack constants
//     State prepare(const Node&, Plan&) const;                           // optional; State (or void) is per session
//     void invoke(const Node& n, State&) const;                          // or invoke(n) when there is no State
//     static void reset(State&);                                         // optional
//     static double cost(const Node&);                                   // optional: nanoseconds (abi/ext/cost.h)
//   };
// Optional constants: min_version, max_version (int), flags (uint32_t, FBX_KERNEL_*).
#pragma once

#include "fusebox/detail/kernel_adapter.hpp"
#include "fusebox/node.hpp"

namespace fusebox::sdk {
inline namespace v1 {

template <class K>
inline constexpr fbx_kernel kernel_of = detail::KernelAdapter<K>::make();

}  // namespace v1
}  // namespace fusebox::sdk
