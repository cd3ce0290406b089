// SPDX-License-Identifier: Apache-2.0
#include "tests/doors/models.h"

#include <filesystem>
#include <fstream>

#include "host/graph/graph.h"
#include "host/tflite/tflite.h"

namespace fusebox::doors {
namespace {

std::string BytesOf(const Module& module) {
  auto bytes = tflite::Write(module);
  if (!bytes) CheckFailed("models.cc", 0, bytes.error().message.c_str());
  return *std::move(bytes);
}

Type FloatType(std::vector<int64_t> dims) { return {DType::kF32, Shape(std::move(dims))}; }

ValueId Custom(Function& f, const char* op, ValueIds operands, const Type& type, const char* name,
               std::string options = {}) {
  Node& node = f.AddNode(Op::kCustom, std::move(operands), {type});
  node.name = op;
  node.version = 1;
  node.raw_options = std::move(options);
  f.value(node.results[0]).name = name;
  return node.results[0];
}

ValueId Result(Function& f, Op op, ValueIds operands, const Type& type, const char* name) {
  const ValueId id = f.AddNode(op, std::move(operands), {type}).results[0];
  f.value(id).name = name;
  return id;
}

}  // namespace

std::string ThreeOpsModel() {
  Module module;
  Function& f = module.Add("main");
  const Type type = FloatType({1, 4});
  const ValueId x = f.AddInput(type, "x");
  const ValueId scaled = Custom(f, "my_scale", {x}, type, "scaled", "\3");
  const ValueId chosen = Custom(f, "my_positive", {scaled}, FloatType({1}), "chosen");
  const ValueId state = f.AddValue(type, "state");
  f.value(state).is_variable = true;
  f.outputs = {scaled, chosen, Custom(f, "my_sum", {scaled, state}, type, "sum")};
  return BytesOf(module);
}

std::string DoubleModel() {
  Module module;
  Function& f = module.Add("main");
  const ValueId x = f.AddInput(FloatType({-1, 3}), "x");
  f.outputs = {Result(f, Op::kAdd, {x, x}, FloatType({-1, 3}), "y")};
  module.signatures = {{"double", "main", {"value"}, {"doubled"}}};
  module.metadata.push_back({"note", Buffer::Of(std::span<const char>("hello", 5))});
  return BytesOf(module);
}

std::string TwoSignaturesModel() {
  Module module;
  const Type type = FloatType({2, 2});
  Function& add = module.Add("main");
  const ValueId x = add.AddInput(type, "x"), y = add.AddInput(type, "y");
  add.outputs = {Result(add, Op::kAdd, {x, y}, type, "sum")};
  Function& negate = module.Add("negate");
  negate.outputs = {Result(negate, Op::kNeg, {negate.AddInput(type, "z")}, type, "negative")};
  module.signatures = {{"add", "main", {"y_first", "x_second"}, {"sum"}}, {"negate", "negate", {"x"}, {"y"}}};
  return BytesOf(module);
}

std::string HalfRunnableModel() {
  Module module;
  const Type type = FloatType({2, 2});
  Function& train = module.Add("main");
  Node& node = train.AddNode(Op::kCustom, {train.AddInput(type, "x")}, {type});
  node.name = "unknown_op";
  train.outputs = node.results;
  train.value(node.results[0]).name = "loss";
  Function& negate = module.Add("negate");
  negate.outputs = {Result(negate, Op::kNeg, {negate.AddInput(type, "z")}, type, "negative")};
  module.signatures = {{"train", "main", {"x"}, {"loss"}}, {"negate", "negate", {"x"}, {"y"}}};
  return BytesOf(module);
}

std::string TextModel() {
  Module module;
  Function& f = module.Add("main");
  const Type type{DType::kString, {-1}};
  const ValueId x = f.AddInput(type, "text");
  const ValueId dims = f.AddConst<int32_t>(DType::kI32, {1}, {-1}, "dims");
  f.outputs = {Result(f, Op::kReshape, {x, dims}, type, "same")};
  return BytesOf(module);
}

std::string QuantizedModel() {
  Module module;
  Function& f = module.Add("main");
  auto quant = std::make_shared<Quant>();
  quant->scales = std::vector<float>{0.5f};
  quant->zero_points = std::vector<int64_t>{128};
  const ValueId x = f.AddInput({DType::kU8, {1, 2}}, "quantized");
  const ValueId dims = f.AddConst<int32_t>(DType::kI32, {1}, {2}, "dims");
  f.outputs = {Result(f, Op::kReshape, {x, dims}, {DType::kU8, {2}}, "flat")};
  f.value(x).quant = quant;
  f.value(f.outputs[0]).quant = quant;
  return BytesOf(module);
}

std::string ChainModel(int nodes, int64_t size) {
  Module module;
  Function& f = module.Add("main");
  const Type type = FloatType({1, size});
  ValueId value = f.AddInput(type, "x");
  for (int i = 0; i < nodes; ++i) value = Result(f, Op::kNeg, {value}, type, "y");
  f.outputs = {value};
  return BytesOf(module);
}

std::string CustomModel(const char* op) {
  Module module;
  Function& f = module.Add("main");
  const Type type = FloatType({2, 2});
  f.outputs = {Custom(f, op, {f.AddInput(type, "x")}, type, "y")};
  return BytesOf(module);
}

std::string DenseModel(int64_t size) {
  Module module;
  Function& f = module.Add("main");
  const ValueId x = f.AddInput(FloatType({1, size}), "x");
  const ValueId weights = f.AddConst<float>(
      DType::kF32, {size, size}, std::vector<float>(static_cast<size_t>(size * size), 1), "weights");
  f.outputs = {Result(f, Op::kFullyConnected, {x, weights, kNoValue}, FloatType({1, size}), "y")};
  return BytesOf(module);
}

std::string FusedOpModel() {
  Module module;
  Function& f = module.Add("main");
  const Type type = FloatType({2, 2});
  const ValueId x = f.AddInput(type, "x");
  Node& node = f.AddNode(Op::kCustom, {x, f.AddInput(type, "y")}, {type, type});
  node.name = "my_custom_fused_op";
  node.version = 1;
  f.outputs = {node.results[0], node.results[1]};
  f.value(f.outputs[0]).name = "sum";
  f.value(f.outputs[1]).name = "larger";
  return BytesOf(module);
}

std::string PictureModel() {
  Module module;
  Function& f = module.Add("main");
  const ValueId x = f.AddInput(FloatType({1, 4, 4, 3}), "picture");
  const ValueId axes = f.AddConst<int32_t>(DType::kI32, {2}, {1, 2}, "axes");
  f.outputs = {Result(f, Op::kMean, {x, axes}, FloatType({1, 3}), "colors")};
  return BytesOf(module);
}

std::string WriteModel(const std::string& bytes, const std::string& name) {
  const auto folder = std::filesystem::path(FUSEBOX_BUILD_DIR) / "tests" / "doors-models";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / name, std::ios::binary) << bytes;
  return folder / name;
}

}  // namespace fusebox::doors
