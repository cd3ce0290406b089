// SPDX-License-Identifier: Apache-2.0
// BITCAST, RIGHT_SHIFT.
#include <algorithm>
#include <cstring>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/elements/broadcast.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

// Reinterprets bytes as the result's type. Widening merges the last dimension into one element; narrowing
// adds a last dimension.
struct Bitcast {
  static constexpr std::string_view builtin = "BITCAST";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) {
    if (ElementSize(n.in(0).dtype()) == 0) RejectDtype(n.in(0).dtype(), 0);
    if (n.out_count() == 0) return;
    const fbx_dtype to = n.out(0).dtype();
    // A byte may be an invalid bool.
    if (ElementSize(to) == 0 || (to == FBX_BOOL && n.in(0).dtype() != FBX_BOOL))
      throw Reject{"DTYPE", std::string(dtype_name(n.in(0).dtype())) + " to " + dtype_name(to), "result 0"};
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1);
    const Tensor in = n.in(0);
    const fbx_dtype dtype = n.out(0).dtype();
    const auto from = static_cast<int64_t>(ElementSize(in.dtype()));
    const auto to = static_cast<int64_t>(ElementSize(dtype));
    if (in.rank() < 0 || from == 0 || to == 0) return out.unranked(0, dtype);
    Shape dims(in);
    if (from > to) dims.push_back(from / to);
    if (from >= to) return out.set(0, dtype, dims);
    const int last = dims.rank() - 1;
    if (last < 0 || (dims[last] >= 0 && dims[last] != to / from))
      Fail(Text(dims) + " has no last dimension of " + std::to_string(to / from) + " to make one " +
               dtype_name(dtype) + " of",
           Operand(0));
    out.set(0, dtype, Shape(std::span(dims.begin(), static_cast<size_t>(last))));
  }
  void invoke(const Node& n) const {
    const size_t bytes = static_cast<size_t>(n.in(0).count()) * ElementSize(n.in(0).dtype());
    if (bytes > 0) std::memcpy(n.out(0).data<void>(), n.in(0).data<const void>(), bytes);
  }
};

// Arithmetic shift. A negative count shifts by none, a large one by all bits but one.
struct RightShift {
  static constexpr std::string_view builtin = "RIGHT_SHIFT";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) {
    RequireDtype(n, 0, kIntegers);
    RequireDtype(n, 1, kIntegers);
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    SameDtype(n, 0, 1);
    if (n.in(0).rank() < 0 || n.in(1).rank() < 0) return out.unranked(0, n.in(0).dtype());
    out.set(0, n.in(0).dtype(), Broadcast(Shape(n.in(0)), Shape(n.in(1))));
  }
  void invoke(const Node& n) const {
    const BroadcastPlan plan = PlanBroadcast(Shape(n.in(0)), Shape(n.in(1)));
    Dispatch(kIntegers, n.in(0).dtype(), [&]<class T>() {
      RunBroadcast(n.host(), plan, n.in(0).data<const T>(), n.in(1).data<const T>(), n.out(0).data<T>(),
                   [](T x, T by) FUSEBOX_INLINE {
                     return static_cast<T>(x >> std::clamp<T>(by, 0, 8 * sizeof(T) - 1));
                   });
    });
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<Bitcast>, &kernel_of<RightShift>};

}  // namespace

constinit const KernelTable kBitsKernels = kTable;

}  // namespace fusebox::cpu
