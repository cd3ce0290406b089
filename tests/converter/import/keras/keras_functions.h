// SPDX-License-Identifier: Apache-2.0
// Models of one function, in TensorFlow's form of Keras 2 and as an operation of Keras 3.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/converter/import/keras/keras_graph.h"
#include "tests/converter/import/keras/keras_run.h"

namespace fusebox::testing {

inline const nlohmann::json kNone = nlohmann::json::object();
inline const Tensor kX = Floats({1, 2, 2}, {-1, 2, 0.5F, 4});

inline Result<Tensors> Of2(const std::string& function, const nlohmann::json& keywords,
                           const Tensor& x = kX) {
  nlohmann::json shape = x.type.shape.dims();
  shape[0] = nullptr;
  return RunModel({Graph2()
                       .Input("x", std::move(shape))
                       .Layer("TFOpLambda", {{"function", function}}, "y", {"x"}, keywords)
                       .Config(),
                   {}},
                  {x});
}

inline Result<Tensors> Of3(const std::string& function, const nlohmann::json& config,
                           nlohmann::json args = {}, const Tensor& x = kX) {
  if (args.is_null()) args = {Graph3::Tensor("x")};
  const std::string file = TestDir() + "/model.keras";
  const nlohmann::json shape = x.type.shape.dims();
  const std::string type = x.type.dtype == DType::kI32 ? "int32" : "float32";
  WriteKeras(file, Graph3().Input("x", shape, type).Operation(function, config, "y", args).Config(), {});
  return RunFile(file, {x});
}

// An operation of two tensors.
inline Result<Tensors> OfPair3(const std::string& function, const nlohmann::json& config, const Tensor& x,
                               const Tensor& y) {
  const std::string file = TestDir() + "/pair.keras";
  const nlohmann::json first = x.type.shape.dims();
  const nlohmann::json second = y.type.shape.dims();
  const nlohmann::json args = {Graph3::Tensor("x"), Graph3::Tensor("y")};
  WriteKeras(file,
             Graph3().Input("x", first).Input("y", second).Operation(function, config, "z", args).Config(),
             {});
  return RunFile(file, {x, y});
}

// Expects integers or bools with exactly these values.
template <class T>
void ExpectExactly(const Result<Tensors>& got, const std::vector<T>& want) {
  ASSERT_TRUE(got) << got.error().message;
  const auto values = got->at(0).data.As<T>();
  EXPECT_EQ(std::vector<T>(values.begin(), values.end()), want);
}

}  // namespace fusebox::testing
