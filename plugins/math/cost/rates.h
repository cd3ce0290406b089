// SPDX-License-Identifier: Apache-2.0
// How long work takes: the table of constants of the estimates that plugins give for their nodes
// (fusebox.cost/1), by instruction set. Nothing is measured while a model is opened, so that placement is the
// same at each start.
//
// tests/bench/rates_bench.cc measures the numbers of this machine's instruction set and prints them as
// rates.def.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace fusebox::math {

// The instruction sets whose code differs in speed.
enum class Isa : uint8_t { kSse4, kAvx2, kAvx2Vnni, kAvx512, kAvx512Vnni, kNeon, kNeonDot };

// Kinds of work, and their units.
enum Item : uint8_t {
  kNode,        // a node, whatever it computes
  kF32Product,  // a multiply-add of a tile of f32, lanes without a result included
  kF32Dot,      // a multiply-add of f32 outside of such tiles
  kF32Tile,     // beginning and storing a tile
  kF32Weight,   // a weight that a product reads, once per block of rows
  kF32Result,   // a result of a product of f32
  kI8Product,   // the same of bytes
  kU8Product,   // of unsigned bytes
  kI8Tile,
  kI8Weight,
  kI8Result,
  kF32Tap,     // a multiply-add of a depthwise convolution of f32
  kF32FarTap,  // the same of a window of more than nine taps
  kI8Tap,      // the same of bytes
  kI8FarTap,
  kPixel,        // a pixel of a depthwise convolution, by block of channels
  kStridePixel,  // a pixel of a transposed convolution
  kAddress,      // the address of a tap, or of a line of an input patch
  kF32Element,   // an f32 that is read or written
  kI8Element,    // a byte that is read or written
  kFunction,     // exp, tanh, ... of an f32
  kRow,          // a row of SOFTMAX
  kBorder,       // entering or leaving a partition
  kBorderByte,   // a byte that crosses
  kItems
};

// Amounts of each item, or nanoseconds of a unit of each.
using Work = std::array<double, kItems>;
using Rates = std::array<double, kItems>;

// Returns the instruction set of this machine, and its rates. Null: there are none, so that plugins give no
// estimates.
Isa BestIsa();
const Rates* KernelRates();
const Rates* XnnpackRates();

// Nanoseconds on one thread.
inline double Time(const Work& work, const Rates& rates) {
  double sum = 0;
  for (size_t i = 0; i < kItems; ++i) sum += work[i] * rates[i];
  return sum;
}

}  // namespace fusebox::math
