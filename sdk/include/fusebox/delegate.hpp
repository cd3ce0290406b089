// SPDX-License-Identifier: Apache-2.0
// Adapter for delegates in C++: delegate_of<D> turns a class with these members into an fbx_delegate.
//
//   struct Adder {
//     static constexpr std::string_view delegate = "adder";
//     explicit Adder(const Attrs& options);
//     // Returns for a node that it takes, throws Reject for one that it does not. May return Accept::kJoin: not alone.
//     void supports(const Graph&, const GraphNode& n) { n.require(n.op() == "ADD", "OP", "only ADD is added"); }
//     struct Partition {
//       Partition(Adder&, const Graph&);                      // compile; throws Reject to decline
//       void reshape(const Call&);                            // optional: for other static dims; throws Reject
//       void prepare(const Call&, Infer&, Plan&);             // optional
//       void invoke(const Call&);
//     };
//   };
// Optional: `struct Session { Session(Adder&, const fbx_host*); };`, which becomes the second argument of
// Partition; `void finish(const fbx_host*)` of Session or of the class; `void claim(const Graph&, Claim&)`
// instead of supports, for decisions about several nodes. Partitions of several sessions are created and
// finished concurrently: guard state that they change in the class with a lock. `static constexpr bool
// recompiles = true;`: partitions are also constructed for graphs with other dims, which claim has not seen.
// `double cost(const Graph&, const GraphNode&) const` and `double border(uint64_t bytes) const`: nanoseconds,
// by which the host places nodes (abi/ext/cost.h).
#pragma once

#include "fusebox/call.hpp"
#include "fusebox/detail/delegate_adapter.hpp"

namespace fusebox::sdk {
inline namespace v1 {

template <class D>
inline constexpr fbx_delegate delegate_of = detail::DelegateAdapter<D>::make();

}  // namespace v1
}  // namespace fusebox::sdk
