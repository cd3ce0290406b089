// SPDX-License-Identifier: Apache-2.0
#include "tests/host/tflite/models.h"

namespace fusebox::tflite {
namespace {

const Type kRow{DType::kF32, {1, 4}};

void AddRecurrent(Function& f, ValueId x) {
  const ValueId w = f.AddConst<float>(DType::kF32, {4, 4}, std::vector<float>(16, 0.5f), "w");
  const ValueId b = f.AddConst<float>(DType::kF32, {4}, std::vector<float>(4, 0.25f), "b");
  const ValueId dims = f.AddConst<int32_t>(DType::kI32, {2}, {1, 4}, "dims");
  const ValueId zero = f.AddConst<float>(DType::kF32, Shape::Scalar(), {0}, "zero");
  // One state that starts from a value, and one that the session keeps.
  const ValueId start = f.AddNode(Op::kFill, {dims, zero}, {kRow}).results[0];
  const auto stateless = f.AddNode(Op::kRnn, {x, w, w, b, start}, {kRow, kRow}).results;
  const ValueId kept = f.AddValue(kRow, "kept");
  f.value(kept).is_variable = true;
  const auto stateful = f.AddNode(Op::kRnn, {stateless[1], w, w, b, kept}, {kRow, kRow}).results;
  f.outputs.push_back(stateless[1]);
  f.outputs.push_back(stateful[0]);
}

void AddCalls(Module& module, Function& main, ValueId x) {
  Function& cond = module.Add("cond");
  cond.AddInput(kRow, "x");
  const ValueId yes = cond.AddConst<uint8_t>(DType::kBool, {1}, {1}, "yes");
  cond.outputs = {yes};
  Function& body = module.Add("body");
  body.outputs = body.AddNode(Op::kAbs, {body.AddInput(kRow, "x")}, {kRow}).results;
  Attrs loop;
  loop.Set("cond_subgraph_index", FunctionRef{"cond"});
  loop.Set("body_subgraph_index", FunctionRef{"body"});
  const ValueId looped = main.AddNode(Op::kWhile, {x}, {kRow}, loop).results[0];
  Attrs options;
  options.Set("epsilon", 0.001);
  options.Set("axes", std::vector<int64_t>{-1});
  Node& composite = main.AddNode(Op::kStablehloComposite, {looped}, {kRow}, options);
  composite.name = "acme.norm";
  composite.version = 3;
  composite.body = "body";
  main.outputs.push_back(composite.results[0]);
}

}  // namespace

std::unique_ptr<Module> Everything() {
  auto module = std::make_unique<Module>();
  Function& main = module->Add("main");
  module->description = "made by a test";
  const ValueId x = main.AddInput(kRow, "x");
  const ValueId batch = main.AddInput({DType::kF32, {-1, 3}}, "batch");
  AddRecurrent(main, x);
  AddCalls(*module, main, x);
  Attrs options;
  options.Set("example_option", 10);
  Node& custom =
      main.AddNode(Op::kCustom, {batch, kNoValue}, {{DType::kF32, Shape()}, {DType::kI8, {2, 2}}}, options);
  custom.name = "my_custom_fused_op";
  auto quant = std::make_shared<Quant>();
  quant->scales = {0.5f, 0.25f};
  quant->zero_points = {0, 3};
  quant->axis = 1;
  main.value(custom.results[1]).quant = quant;
  main.outputs.insert(main.outputs.end(), custom.results.begin(), custom.results.end());
  const ValueId empty = main.AddConst({DType::kF32, {0, 4}}, Buffer::Copy({}), "empty");
  main.outputs.push_back(main.AddNode(Op::kConcatenation, {x, empty}, {kRow}).results[0]);
  module->signatures.push_back({"serving_default", "main", {"x", "batch"}, {"z", "y", "c", "d", "e", "f"}});
  module->metadata.push_back({"note", Buffer::Of(std::span<const char>("hello", 5))});
  return module;
}

}  // namespace fusebox::tflite
