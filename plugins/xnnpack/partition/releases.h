// SPDX-License-Identifier: Apache-2.0
// Functions and flags of XNNPACK that its releases from 2024-11 on have in different forms. Each takes the
// newest form that the header declares: a call that does not compile is not chosen.
#pragma once

#include <xnnpack.h>

#include <span>

#include "plugins/xnnpack/partition/values.h"

namespace fusebox::xnnpack {

#ifdef XNN_FLAG_TENSORFLOW_RESHAPE_2D
inline constexpr uint32_t kFlattensRows = XNN_FLAG_TENSORFLOW_RESHAPE_2D;
#else
inline constexpr uint32_t kFlattensRows = 0;  // the rows must be a matrix
#endif

template <class Graph>
xnn_status DefinePad(Graph graph, const Dims& before, const Dims& behind, float value, uint32_t in,
                     uint32_t out) {
  if constexpr (requires {
                  xnn_define_static_constant_pad_v2(graph, before.size(), before.data(), behind.data(), value,
                                                    in, out, 0U);
                }) {
    return xnn_define_static_constant_pad_v2(graph, before.size(), before.data(), behind.data(), value, in,
                                             out, 0U);
  } else {
    return xnn_define_static_constant_pad(graph, before.data(), behind.data(), value, in, out, 0U);
  }
}

// Joins two to five values.
template <class Graph>
xnn_status DefineConcatenate(Graph graph, int32_t axis, std::span<const uint32_t> ids, uint32_t out) {
  if constexpr (requires { xnn_define_concatenate(graph, axis, ids.size(), ids.data(), out, 0U); }) {
    return xnn_define_concatenate(graph, axis, ids.size(), ids.data(), out, 0U);
  } else {
    switch (ids.size()) {
      case 2: return xnn_define_concatenate2(graph, axis, ids[0], ids[1], out, 0U);
      case 3: return xnn_define_concatenate3(graph, axis, ids[0], ids[1], ids[2], out, 0U);
      case 4: return xnn_define_concatenate4(graph, axis, ids[0], ids[1], ids[2], ids[3], out, 0U);
      default: return xnn_define_concatenate5(graph, axis, ids[0], ids[1], ids[2], ids[3], ids[4], out, 0U);
    }
  }
}

}  // namespace fusebox::xnnpack
