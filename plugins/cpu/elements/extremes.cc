// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/elements/extremes.h"

#include <algorithm>

#include "plugins/cpu/base/dispatch.h"

namespace fusebox::cpu {

// min(a, b) is ~max(~a, ~b), for signed and unsigned integers.
void RunIntegerExtremes(const Node& n, const BroadcastPlan& plan, bool larger) {
  Dispatch(kIntegers, n.in(0).dtype(), [&]<class T>() {
    RunBroadcast(n.host(), plan, n.in(0).data<const T>(), n.in(1).data<const T>(), n.out(0).data<T>(),
                 [flip = static_cast<T>(larger ? 0 : -1)](T a, T b) FUSEBOX_INLINE {
                   const T x = static_cast<T>(a ^ flip);
                   const T y = static_cast<T>(b ^ flip);
                   return static_cast<T>((x > y ? x : y) ^ flip);
                 });
  });
}

}  // namespace fusebox::cpu
