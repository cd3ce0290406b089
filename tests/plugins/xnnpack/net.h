// SPDX-License-Identifier: Apache-2.0
// Small models with quantized and float tensors, run through XNNPACK with and without a cache.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "host/model.h"
#include "host/session.h"

namespace fusebox::xnnpack_test {

// Scale and zero point; scale 0: not quantized.
struct Q {
  float scale = 0;
  int64_t zero_point = 0;
};

class Net {
 public:
  Net() : module_(std::make_unique<Module>()), f_(module_->Add("main")) { module_->source = "net.tflite"; }

  Type Of(DType dtype, std::vector<int64_t> dims) { return {dtype, Shape(std::move(dims))}; }
  ValueId Input(DType dtype, std::vector<int64_t> dims, Q q = {}) {
    return Quantized(f_.AddInput(Of(dtype, std::move(dims)), "x" + std::to_string(f_.inputs.size())), {q});
  }
  template <class T>
  ValueId Const(DType dtype, std::vector<int64_t> dims, const std::vector<T>& values, std::vector<Q> q = {},
                int axis = 0) {
    const auto bytes = std::as_bytes(std::span(values));
    return Quantized(f_.AddConst(Of(dtype, std::move(dims)), Buffer::Copy(bytes)), q, axis);
  }
  // Another value that shares the bytes of a constant.
  ValueId Again(ValueId constant, std::vector<int64_t> dims, std::vector<Q> q = {}) {
    const Value& value = f_.value(constant);
    return Quantized(f_.AddConst(Of(value.type.dtype, std::move(dims)), Buffer(value.data)), q);
  }
  ValueId Add(Op op, std::vector<ValueId> operands, DType dtype, std::vector<int64_t> dims, Attrs attrs = {},
              Q q = {}) {
    Node& node = f_.AddNode(op, std::move(operands), {Of(dtype, std::move(dims))}, std::move(attrs));
    node.location.name = std::string(Name(op));
    return Quantized(node.results[0], {q});
  }
  Function& function() { return f_; }
  std::unique_ptr<Module> Take(std::vector<ValueId> outputs) {
    f_.outputs = std::move(outputs);
    return std::move(module_);
  }

 private:
  ValueId Quantized(ValueId id, const std::vector<Q>& qs, int axis = 0) {
    if (qs.empty() || qs[0].scale == 0) return id;
    std::vector<float> scales;
    std::vector<int64_t> zero_points;
    for (const Q& q : qs) {
      scales.push_back(q.scale);
      zero_points.push_back(q.zero_point);
    }
    f_.value(id).quant =
        std::make_shared<const Quant>(Quant{.scales = scales, .zero_points = zero_points, .axis = axis});
    return id;
  }
  std::unique_ptr<Module> module_;
  Function& f_;
};

// Options("padding", "SAME", "stride_h", 1).
inline Attrs Options() { return {}; }
template <class T, class... Rest>
Attrs Options(const char* name, T&& value, Rest&&... rest) {
  Attrs attrs = Options(std::forward<Rest>(rest)...);
  attrs.Set(name, std::forward<T>(value));
  return attrs;
}

template <class T>
std::vector<T> Noise(size_t count, uint32_t seed, double low, double high) {
  std::mt19937 random(seed);
  std::vector<T> values(count);
  for (T& v : values) v = static_cast<T>(low + (high - low) * (random() / 4294967296.0));
  return values;
}

using Build = std::function<std::unique_ptr<Module>()>;

inline std::shared_ptr<Registry> XnnpackRegistry() {
  static const std::shared_ptr<Registry> registry = [] {
    Config config;
    config.plugins = {FUSEBOX_XNNPACK};
    config.search_default_path = false;
    auto made = Registry::Create(config);
    return made ? *made : nullptr;
  }();
  return registry;
}

inline Tensor NoiseFor(const Type& type, uint32_t seed) {
  size_t count = 1;
  for (const int64_t d : type.shape.dims()) count *= static_cast<size_t>(d < 0 ? 1 : d);
  Type known = type;
  for (int64_t& d : known.shape.dims()) d = d < 0 ? 1 : d;
  switch (type.dtype) {
    case DType::kF32: return {known, Buffer::Of<float>(Noise<float>(count, seed, -2, 2))};
    case DType::kU8: return {known, Buffer::Of<uint8_t>(Noise<uint8_t>(count, seed, 0, 256))};
    default: return {known, Buffer::Of<int8_t>(Noise<int8_t>(count, seed, -128, 128))};
  }
}

struct Ran {
  std::vector<Tensor> outputs;
  std::string error;
  std::vector<Placement> placements;
};

// The delegate for every node that XNNPACK supports, also where kernels are faster.
inline Config::Delegate AllOnXnnpack() {
  Config::Delegate delegate{"xnnpack"};
  delegate.options.Set("placement", "all");
  return delegate;
}

// A cache folder for the running test, not created yet.
inline std::string FreshCache() {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(info->test_suite_name()) + "-" + info->name();
  std::replace(name.begin(), name.end(), '/', '-');
  const std::string dir = ::testing::TempDir() + "/xnnpack-" + name;
  std::filesystem::remove_all(dir);
  return dir + "/";
}

inline void ExpectSame(const std::vector<Tensor>& want, const std::vector<Tensor>& got) {
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(want[i] == got[i]) << "output " << i;
}

// Runs the module once on noise and returns all outputs; cache "": none. XNNPACK must run every node, unless
// `used` is false.
inline Ran RunNet(std::unique_ptr<Module> module, const std::string& cache = {}, int threads = 1,
                  bool used = true) {
  std::vector<Config::Delegate> delegates;
  if (used) delegates.push_back(AllOnXnnpack());
  if (used && !cache.empty()) delegates[0].options.Set("weight_cache_path", cache);
  const auto model =
      Model::FromModule(std::move(module), {.registry = XnnpackRegistry(), .delegates = delegates});
  if (!model) return {.error = model.error().message};
  auto session = Session::Create(*model, {.threads = threads});
  if (!session) return {.error = session.error().message};
  for (size_t i = 0; i < (*session)->inputs().size(); ++i) {
    const Tensor noise = NoiseFor((*session)->inputs()[i].type, static_cast<uint32_t>(7 + i));
    if (const Status s = (*session)->SetInput(static_cast<int>(i), noise); !s)
      return {.error = s.error().message};
  }
  if (const Status s = (*session)->Run(); !s) return {.error = s.error().message};
  Ran ran;
  for (size_t i = 0; i < (*session)->outputs().size(); ++i) {
    auto output = (*session)->output(static_cast<int>(i));
    if (!output) return {.error = output.error().message};
    ran.outputs.push_back({output->type, Buffer::Copy(output->data.bytes())});
  }
  ran.placements = (*session)->placements();
  for (const auto& row : ran.placements)
    if (used && !row.runner.starts_with("xnnpack"))
      ran.error += row.op + " is run by " + row.runner + ": " + row.why + "; ";
  return ran;
}

}  // namespace fusebox::xnnpack_test
