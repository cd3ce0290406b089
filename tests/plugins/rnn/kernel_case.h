// SPDX-License-Identifier: Apache-2.0
// Shared by cell kernel tests: random operands, kernel calls through the ABI, differences.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/plugins/rnn/fake_host.h"

namespace fusebox::testing {

// The plugin's kernel of this op.
const fbx_kernel* KernelOfThePlugin(std::string_view op);

// Uniform in [-scale, scale), one list of values per shape.
std::vector<std::vector<double>> RandomVectors(const std::vector<std::vector<int64_t>>& dims,
                                               const std::vector<double>& scales, uint32_t seed);

// f32 or f64; rounds the values to the dtype.
FakeTensor TensorOf(fbx_dtype dtype, const std::vector<int64_t>& dims, const std::vector<double>& values,
                    uint32_t flags = 0);
FakeTensor EmptyTensor(fbx_dtype dtype, const std::vector<int64_t>& dims);
std::vector<double> ValuesOf(const FakeTensor& tensor, fbx_dtype dtype);
inline FakeTensor F32Tensor(std::vector<int64_t> dims) { return {FBX_F32, std::move(dims)}; }

// Calls supports to invoke; throws std::runtime_error with the diagnostics on failure.
void RunNode(const FakeHost& host, FakeNode& node);
// Why the kernel declines the node: "CODE subject: message"; "error ..." if it fails.
std::string Declined(const FakeHost& host, FakeNode& node);

}  // namespace fusebox::testing
