// SPDX-License-Identifier: Apache-2.0
#include "tests/plugins/rnn/kernel_case.h"

#include <random>
#include <stdexcept>

namespace fusebox::testing {
namespace {

std::string Text(const Diagnostic& d) { return d.code + " " + d.subject + ": " + d.message; }

}  // namespace

const fbx_kernel* KernelOfThePlugin(std::string_view op) {
  const FakeHost host;
  const fbx_plugin* plugin = nullptr;
  if (fusebox_entry_v1.load(host.abi(), &plugin) != FBX_OK) return nullptr;
  for (uint32_t i = 0; i < plugin->kernel_count; ++i) {
    const fbx_str name = plugin->kernels[i]->op;
    if (std::string_view(name.ptr, name.len) == op) return plugin->kernels[i];
  }
  return nullptr;
}

std::vector<std::vector<double>> RandomVectors(const std::vector<std::vector<int64_t>>& dims,
                                               const std::vector<double>& scales, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<std::vector<double>> all;
  for (size_t i = 0; i < dims.size(); ++i) {
    size_t count = 1;
    for (const int64_t d : dims[i]) count *= static_cast<size_t>(d);
    std::vector<double> values(count);
    // Of the 24 bits that f32 keeps, so that both types see the same numbers.
    for (double& v : values) v = static_cast<float>(scales[i] * (2.0 * (generator() >> 8) / (1 << 24) - 1.0));
    all.push_back(std::move(values));
  }
  return all;
}

FakeTensor TensorOf(fbx_dtype dtype, const std::vector<int64_t>& dims, const std::vector<double>& values,
                    uint32_t flags) {
  if (dtype == FBX_F64) return FakeTensor::Of<double>(dtype, dims, values, flags);
  return FakeTensor::Of<float>(dtype, dims, std::vector<float>(values.begin(), values.end()), flags);
}

FakeTensor EmptyTensor(fbx_dtype dtype, const std::vector<int64_t>& dims) {
  FakeTensor t(dtype, dims);
  t.Allocate(dtype == FBX_F64 ? sizeof(double) : sizeof(float));
  return t;
}

std::vector<double> ValuesOf(const FakeTensor& tensor, fbx_dtype dtype) {
  if (dtype == FBX_F64) return {tensor.data<double>(), tensor.data<double>() + tensor.count()};
  return {tensor.data<float>(), tensor.data<float>() + tensor.count()};
}

void RunNode(const FakeHost& host, FakeNode& node) {
  if (node.Supports() == FBX_OK && node.Prepare() == FBX_OK && node.Invoke() == FBX_OK) return;
  std::string why = "the kernel failed";
  for (const Diagnostic& d : host.diagnostics) why += "; " + Text(d);
  throw std::runtime_error(why);
}

std::string Declined(const FakeHost& host, FakeNode& node) {
  const fbx_status status = node.Supports();
  if (status == FBX_OK || host.diagnostics.empty()) return "status " + std::to_string(status);
  return (status == FBX_NOT_APPLICABLE ? "" : "error ") + Text(host.diagnostics.back());
}

}  // namespace fusebox::testing
