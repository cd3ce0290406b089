// SPDX-License-Identifier: Apache-2.0
// Estimates for fusebox.cost/1. The time of a node is a sum of amounts of work, each times a constant of a
// table of a plugin.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include <fusebox/detail/cost_adapter.hpp>
#include <fusebox/node.hpp>

namespace fusebox::cost {

// Amounts of one node. Unknown dims count as 1.
struct Work {
  double products = 0;  // multiplications, of all columns that are computed at once
  double lookups = 0;   // taps of windows, or rows of a softmax
  double elements = 0;  // of results; of sums before they are added in a transposed convolution
  double weights = 0;   // elements that are read once: of filters, or of the inputs of other ops
};

// The constants of an op, in ns.
struct Row {
  std::string_view op;      // as in TFLite; empty: all others
  fbx_dtype input, filter;  // FBX_DTYPE_NONE: there is no filter
  double columns;           // of a product that are computed at once
  double node, product, lookup, element, weight;
};

// Instruction sets of tables.
inline bool HasAvx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}
inline bool HasAvx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}
// The instructions for the work of one of AVX2, with vectors of 16 bytes.
inline double Slowness() { return HasAvx2() ? 1 : 2; }

inline double Count(sdk::Tensor t) {
  double count = 1;
  for (const int64_t d : t.dims()) count *= static_cast<double>(std::max<int64_t>(d, 1));
  return count;
}

inline double Dim(sdk::Tensor t, int i) {
  return t.rank() < (i < 0 ? -i : i + 1) ? 1 : static_cast<double>(std::max<int64_t>(t.dim(i), 1));
}

// Operands of an op that multiplies by a filter; -1: none.
struct Operands {
  int input = 0;
  int filter = -1;
};

inline Operands OperandsOf(const sdk::Node& n) {
  const std::string_view op = n.op();
  if (op == "TRANSPOSE_CONV") return {2, 1};
  const bool multiplies =
      op == "CONV_2D" || op == "DEPTHWISE_CONV_2D" || op == "FULLY_CONNECTED" || op == "BATCH_MATMUL";
  return {0, multiplies ? 1 : -1};
}

// The columns that are computed for `n`, if `at_once` are computed at once.
inline double Columns(double n, double at_once) {
  return static_cast<double>(static_cast<int64_t>((n + at_once - 1) / at_once)) * at_once;
}

inline Work ProductOf(const sdk::Node& n, Operands at, double at_once) {
  const std::string_view op = n.op();
  const sdk::Tensor in = n.in(static_cast<uint32_t>(at.input));
  const sdk::Tensor filter = n.in(static_cast<uint32_t>(at.filter));
  const double results = Count(n.out(0));
  const double taps = filter.rank() == 4 ? Dim(filter, 1) * Dim(filter, 2) : 1;
  Work work{.elements = results, .weights = Count(filter)};
  if (op == "DEPTHWISE_CONV_2D") {
    const double channels = Dim(filter, 3);
    work.products = results / channels * taps * Columns(channels, at_once);
    work.lookups = results / channels * taps;
  } else if (op == "TRANSPOSE_CONV") {
    const double pixels = Count(in) / Dim(in, 3);
    work.products = pixels * Columns(taps * Dim(filter, 0), at_once) * Dim(in, 3);
    work.lookups = pixels * taps;
    work.elements += pixels * taps * Dim(filter, 0);
  } else if (op == "CONV_2D") {
    const double groups = std::max(1.0, Dim(in, 3) / Dim(filter, 3));
    const double pixels = results / Dim(filter, 0);
    work.products = pixels * groups * Columns(Dim(filter, 0) / groups, at_once) * taps * Dim(filter, 3);
    const bool moves = taps > 1 || n.attrs().i64("stride_h", 1) * n.attrs().i64("stride_w", 1) > 1;
    work.lookups = moves ? pixels * taps : 0;
  } else {
    const double columns = Dim(n.out(0), -1);
    const double depth =
        op == "FULLY_CONNECTED" ? Dim(filter, 1) : Dim(in, n.attrs().b("adj_x", false) ? -2 : -1);
    work.products = results / columns * Columns(columns, at_once) * depth;
  }
  return work;
}

inline Work WorkOf(const sdk::Node& n, double at_once) {
  if (const Operands at = OperandsOf(n); at.filter >= 0) return ProductOf(n, at, at_once);
  Work work{.elements = Count(n.out(0))};
  for (uint32_t i = 0; i < n.in_count(); ++i)
    if (n.has_in(i) && !n.in(i).is_const()) work.weights += Count(n.in(i));
  if (n.op() == "SOFTMAX") work.lookups = work.elements / Dim(n.out(0), -1);
  return work;
}

// u8 as i8.
inline fbx_dtype TypeOf(sdk::Tensor t) { return t.dtype() == FBX_U8 ? FBX_I8 : t.dtype(); }

// Returns the row of the node, or null. Later rows hold for more ops.
inline const Row* Find(std::span<const Row> table, const sdk::Node& n) {
  const Operands at = OperandsOf(n);
  if (!n.has_in(static_cast<uint32_t>(at.input)) || n.out_count() == 0) return nullptr;
  const fbx_dtype input = TypeOf(n.in(static_cast<uint32_t>(at.input)));
  const bool multiplies = at.filter >= 0;
  if (multiplies && !n.has_in(static_cast<uint32_t>(at.filter))) return nullptr;
  const fbx_dtype filter = multiplies ? TypeOf(n.in(static_cast<uint32_t>(at.filter))) : FBX_DTYPE_NONE;
  const auto fits = [&](const Row& row) {
    return row.op == n.op() && row.input == input && row.filter == filter;
  };
  const auto found = std::find_if(table.begin(), table.end(), fits);
  return found == table.end() ? nullptr : &*found;
}

inline double Sum(const Row& row, const Work& work) {
  return row.node + row.product * work.products + row.lookup * work.lookups + row.element * work.elements +
         row.weight * work.weights;
}

inline double CostOf(std::span<const Row> table, const sdk::Node& n) {
  bool constant = n.in_count() > 0;
  for (uint32_t i = 0; i < n.in_count(); ++i) constant = constant && (!n.has_in(i) || n.in(i).is_const());
  if (constant) return 0;  // computed once
  const Row* const row = Find(table, n);
  return row == nullptr ? FBX_NO_COST : Sum(*row, WorkOf(n, row->columns));
}

}  // namespace fusebox::cost
