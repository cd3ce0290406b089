// SPDX-License-Identifier: Apache-2.0
// Optimizes a function of f32 inputs; the test checks equal results and the resulting ops.
#pragma once

#include <cmath>
#include <random>

#include "tests/converter/passes/bench.h"

namespace fusebox::converter {

struct Rewritten : Bench {
  Function& f = Add("main");

  ValueId In(std::vector<int64_t> dims) { return f.AddInput(F32(std::move(dims))); }
  ValueId C(std::vector<int64_t> dims, const std::vector<float>& values) {
    return f.AddConst<float>(DType::kF32, Shape(std::move(dims)), values);
  }
  ValueId C(float value) { return f.AddConst<float>(DType::kF32, Shape::Scalar(), {value}); }
  // Distinct nonzero values.
  ValueId Weights(std::vector<int64_t> dims) {
    const auto count = static_cast<size_t>(*Shape(dims).element_count());
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i)
      values[i] = 0.25f + 0.5f * std::sin(1.7f * static_cast<float>(i + next_));
    next_ += count;
    return C(std::move(dims), values);
  }
  ValueId Ints(const std::vector<int32_t>& values) {
    return f.AddConst<int32_t>(DType::kI32, {static_cast<int64_t>(values.size())}, values);
  }
  ValueId Pairs(const std::vector<int32_t>& values) {
    return f.AddConst<int32_t>(DType::kI32, {static_cast<int64_t>(values.size() / 2), 2}, values);
  }
  // With inferred result type.
  ValueId Op1(Op op, std::vector<ValueId> operands, Attrs attrs = {}) {
    Node& node = f.AddNode(op, std::move(operands), {Type{}}, std::move(attrs));
    const ValueId result = node.results[0];
    const Status inferred = InferNode(*BuiltIn(), module, f, node);
    EXPECT_TRUE(inferred) << inferred.error().message;
    return result;
  }
  static Attrs With(std::initializer_list<std::pair<const char*, AttrValue>> values) {
    Attrs attrs;
    for (const auto& [name, value] : values) attrs.Set(name, value);
    return attrs;
  }
  static Attrs Window(int64_t stride = 1, const char* padding = "SAME") {
    return With({{"stride_h", stride}, {"stride_w", stride}, {"padding", std::string(padding)}});
  }

  // Optimizes; outputs must stay equal within `tolerance`.
  void Finish(std::vector<ValueId> outputs, double tolerance = 1e-5) {
    f.outputs = std::move(outputs);
    Sign(f);
    std::vector<Tensor> inputs;
    std::mt19937 random(7);
    std::uniform_real_distribution<float> values(-2, 2);
    for (const ValueId v : f.inputs) {
      std::vector<int64_t> dims = f.value(v).type.shape.dims();
      for (int64_t& d : dims) d = d < 0 ? 2 : d;
      std::vector<float> data(static_cast<size_t>(*Shape(dims).element_count()));
      for (float& x : data) x = values(random);
      inputs.push_back(Floats(dims, data));
    }
    const auto before = Compute("main", inputs);
    ASSERT_EQ(Bench::Run(Optimize), "");
    const auto after = Compute("main", inputs);
    ASSERT_EQ(before.size(), after.size());
    for (size_t o = 0; o < before.size(); ++o) {
      EXPECT_EQ(before[o].type, after[o].type);
      const auto was = FloatsOf(before[o]), is = FloatsOf(after[o]);
      ASSERT_EQ(was.size(), is.size());
      for (size_t i = 0; i < was.size(); ++i)
        ASSERT_NEAR(was[i], is[i], tolerance * (1 + std::abs(was[i]))) << "output " << o << " element " << i;
    }
  }
  // "CONV_2D RELU", in order.
  std::string Ops() const {
    std::string all;
    for (const auto& node : f.nodes) all += (all.empty() ? "" : " ") + std::string(Name(node->op));
    return all;
  }

 private:
  size_t next_ = 0;
};

}  // namespace fusebox::converter
