// SPDX-License-Identifier: Apache-2.0
// One of MediaPipe's custom ops as a model.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/plugins/composite.h"

namespace fusebox::mediapipe_test {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

using Ints = std::vector<int32_t>;
using Floats = std::vector<float>;

struct Given {
  Shape shape;
  Floats values;
};

struct OpNode {
  std::string name;
  int version = 1;
  std::vector<Given> operands;
  Ints raw = {};  // options that are a struct
  Attrs attrs = {};
  size_t results = 1;
  std::vector<DType> types = {};  // of operands; empty: f32
  size_t constant = SIZE_MAX;     // an operand of f32

  Result<std::vector<Tensor>> Run() const {
    auto module = std::make_unique<Module>();
    module->source = "mediapipe.tflite";
    Function& f = module->Add("main");
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Type type{i < types.size() ? types[i] : DType::kF32, operands[i].shape};
      inputs.push_back(i == constant ? f.AddConst(type, Buffer::Of<float>(operands[i].values))
                                     : f.AddInput(type, "in" + std::to_string(i)));
    }
    Node& node =
        f.AddNode(Op::kCustom, inputs, std::vector<Type>(results, Type{DType::kF32, Shape()}), attrs);
    node.name = name;
    node.version = version;
    node.raw_options.assign(reinterpret_cast<const char*>(raw.data()), 4 * raw.size());
    f.outputs = node.results;
    FUSEBOX_ASSIGN(const auto model,
                   Model::FromModule(std::move(module), {.registry = testing::OnlyPlugin(FUSEBOX_VISION)}));
    FUSEBOX_ASSIGN(const auto session, Session::Create(model));
    int input = 0;
    for (size_t i = 0; i < operands.size(); ++i)
      if (i != constant)
        FUSEBOX_TRY(session->SetInput(
            input++, {{DType::kF32, operands[i].shape}, Buffer::Of<float>(operands[i].values)}));
    FUSEBOX_TRY(session->Run());
    std::vector<Tensor> out;
    for (size_t i = 0; i < results; ++i) {
      FUSEBOX_ASSIGN(const Tensor t, session->output(static_cast<int>(i)));
      out.push_back({t.type, Buffer::Copy(t.data.bytes())});
    }
    return out;
  }
  std::string Error() const {
    const auto out = Run();
    return out ? "" : out.error().message;
  }
};

inline Floats FloatsOf(const Tensor& t) {
  const auto values = t.data.As<float>();
  return {values.begin(), values.end()};
}

inline Given Some(Shape shape, uint32_t seed) {
  Given given{shape, {}};
  int64_t count = 1;
  for (const int64_t d : shape.dims()) count *= d;
  for (uint32_t state = seed; count > 0; --count) {
    state = state * 1664525u + 1013904223u;
    given.values.push_back(static_cast<float>(state >> 16) / 16384.0F - 2.0F);
  }
  return given;
}

inline void Near(const Tensor& t, const Shape& shape, const std::vector<double>& wanted, float most = 1e-5F) {
  EXPECT_EQ(t.type.shape, shape);
  EXPECT_THAT(FloatsOf(t), Pointwise(FloatNear(most), wanted));
}

}  // namespace fusebox::mediapipe_test
