// SPDX-License-Identifier: Apache-2.0
// Runs one case on one kernel as a host does, only through the C ABI, and reports errors as test failures.
//
// Each case is inferred with unknown and with increasingly known operands, and runs in several settings:
// operands aligned, and only element-aligned where memory ends with them, without and with threads, on
// poisoned results and scratch between guard bytes, twice in a row, and (INPLACE kernels) on top of an
// operand.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/conformance/case.h"

namespace fusebox::conformance {

// A table of kernels under test.
struct Implementation {
  std::string name;
  std::span<const fbx_kernel* const> kernels;
  struct Skip {
    std::string op, name;  // of the case; empty name: all cases of the op
    std::string why;
  };
  std::vector<Skip> skips = {};
};

// The kernel of a builtin op in a table; nullptr: none.
const fbx_kernel* FindKernel(std::span<const fbx_kernel* const>, std::string_view op);

// Why the case is skipped; empty: it is not.
std::string WhySkipped(const Implementation&, const Case&);

void RunCase(const fbx_kernel&, const Case&);

// Compares a result with the expected values, within the case's tolerance; reports test failures.
void ExpectValues(const Data& want, const void* got, const Case&);

// The f64 twin of a case with f32 in it.
Case Retyped(const Case&);
bool HasF32(const Case&);

}  // namespace fusebox::conformance
