// SPDX-License-Identifier: Apache-2.0
#include "host/graph/view.h"

#include <gtest/gtest.h>

#include "host/graph/flex.h"

namespace fusebox {
namespace {

TEST(AttrApi, ReadsEachKindAndNoOther) {
  Attrs attrs;
  attrs.Set("flag", true);
  attrs.Set("int", 7);
  attrs.Set("one", 1);
  attrs.Set("real", 0.5);
  attrs.Set("text", "abc");
  attrs.Set("type", DType::kI8);
  attrs.Set("shape", Shape({1, -1}));
  attrs.Set("words", std::vector<std::string>{"x", "yz"});
  attrs.Set("tensor", Tensor{{DType::kU8, {2}}, Buffer::Make(2, {})});
  attrs.Set("func", FunctionRef{"body"});
  const fbx_attr_api& api = AttrApi();
  const fbx_attrs* view = AsAbi(attrs);
  const auto key = [](const char* text) { return AsAbi(std::string_view(text)); };
  EXPECT_EQ(api.count(view), 10u);
  EXPECT_EQ(FromAbi(api.key_at(view, 0)), "flag");
  EXPECT_EQ(api.kind(view, key("func")), FBX_ATTR_FUNC);
  int32_t b = 0;
  int64_t i = 0;
  double d = 0;
  fbx_str s;
  EXPECT_EQ(api.get_bool(view, key("one"), &b), FBX_OK);
  EXPECT_EQ(b, 1);
  EXPECT_EQ(api.get_bool(view, key("int"), &b), FBX_INVALID);
  EXPECT_EQ(api.get_i64(view, key("int"), &i), FBX_OK);
  EXPECT_EQ(i, 7);
  EXPECT_EQ(api.get_i64(view, key("real"), &i), FBX_INVALID);
  EXPECT_EQ(api.get_i64(view, key("missing"), &i), FBX_NOT_APPLICABLE);
  EXPECT_EQ(api.get_f64(view, key("int"), &d), FBX_OK);
  EXPECT_EQ(d, 7.0);
  EXPECT_EQ(api.get_str(view, key("func"), &s), FBX_OK);
  EXPECT_EQ(FromAbi(s), "body");
  const int64_t* dims = nullptr;
  size_t count = 0;
  EXPECT_EQ(api.get_i64s(view, key("shape"), &dims, &count), FBX_OK);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(dims[1], -1);
  const fbx_str* words = nullptr;
  EXPECT_EQ(api.get_strs(view, key("words"), &words, &count), FBX_OK);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(FromAbi(words[1]), "yz");
  const fbx_tensor* tensor = nullptr;
  EXPECT_EQ(api.get_tensor(view, key("tensor"), &tensor), FBX_OK);
  EXPECT_EQ(tensor->bytes, 2u);
}

TEST(GraphView, ShowsValuesNodesAndNestedFunctions) {
  Module module;
  Function& main = module.Add("main");
  module.Add("inner").AddInput({DType::kF32, {1}});
  const ValueId x = main.AddInput({DType::kF32, {-1, 2}}, "x");
  const ValueId w = main.AddConst<float>(DType::kF32, {2, 2}, {1, 2, 3, 4}, "w");
  Node& node = main.AddNode(Op::kFullyConnected, {x, w, kNoValue}, {{DType::kF32, {-1, 2}}});
  main.outputs = node.results;
  const GraphView view(module, main);
  const fbx_graph* graph = view.abi();
  ASSERT_EQ(graph->node_count, 1u);
  const fbx_value* ids = nullptr;
  const fbx_node* shown = graph->node(graph, 0, &ids);
  EXPECT_EQ(FromAbi(shown->op), "FULLY_CONNECTED");
  EXPECT_EQ(shown->kind, FBX_OP_BUILTIN);
  EXPECT_EQ(shown->operands[1]->flags, uint32_t{FBX_TENSOR_CONST});
  EXPECT_EQ(shown->operands[2]->flags, uint32_t{FBX_TENSOR_ABSENT});
  EXPECT_EQ(ids[2], FBX_NO_VALUE);
  EXPECT_EQ(ids[3], static_cast<fbx_value>(node.results[0]));
  EXPECT_EQ(graph->value(graph, 0)->dims[0], -1);
  EXPECT_EQ(graph->value(graph, 99), nullptr);
  EXPECT_EQ(graph->node(graph, 1, &ids), nullptr);
  ASSERT_NE(graph->function(graph, AsAbi(std::string_view("inner"))), nullptr);
  EXPECT_EQ(graph->function(graph, AsAbi(std::string_view("none"))), nullptr);
}

TEST(NodeView, MarksStateOperands) {
  Function f("f");
  const Type row{DType::kF32, {1, 4}};
  const ValueId x = f.AddInput(row), w = f.AddConst<float>(DType::kF32, {4, 4}, std::vector<float>(16));
  const ValueId h = f.AddNode(Op::kAbs, {x}, {row}).results[0];
  const NodeView view(f, f.AddNode(Op::kRnn, {x, w, w, w, h}, {row, row}));
  EXPECT_EQ(view.abi()->operands[4]->flags, uint32_t{FBX_TENSOR_VARIABLE});
  EXPECT_EQ(view.abi()->operands[0]->flags, 0u);
}

TEST(NodeView, ForgetsTheNodeThatItShowedBefore) {
  Function f("f");
  const Type row{DType::kF32, {1, 4}};
  const ValueId x = f.AddInput(row, "x"), w = f.AddConst<float>(DType::kF32, {4, 4}, std::vector<float>(16));
  f.value(w).quant = std::make_shared<const Quant>(Quant{.scales = {1}, .zero_points = {0}});
  const Node first = f.AddNode(Op::kFullyConnected, {w, w}, {row});
  const Node second = f.AddNode(Op::kFullyConnected, {x, x, kNoValue}, {row});
  NodeView view(f, first);
  EXPECT_NE(view.abi()->operands[0]->quant, nullptr);
  view.Show(f, second);
  ASSERT_EQ(view.abi()->operand_count, 3u);
  EXPECT_EQ(view.abi()->operands[2]->flags, uint32_t{FBX_TENSOR_ABSENT});
  view.Show(f, second);
  const fbx_tensor& operand = *view.abi()->operands[0];
  EXPECT_EQ(FromAbi(operand.name), "x");
  EXPECT_EQ(operand.quant, nullptr);
  EXPECT_EQ(operand.data, nullptr);
  EXPECT_EQ(operand.flags, 0u);
  view.Show(f, first);
  EXPECT_EQ(view.abi()->operand_count, 2u);
  EXPECT_EQ(view.abi()->operands[0]->bytes, 64u);
  EXPECT_EQ(view.abi()->results[0]->flags, 0u);
}

TEST(NodeView, HasTheOptionBytesOfACustomOpOfTheFileOrItsMap) {
  Function f("f");
  const ValueId x = f.AddInput({DType::kF32, {1}}, "x");
  Node& custom = f.AddNode(Op::kCustom, {x}, {{DType::kF32, {1}}});
  custom.name = "acme.op";
  custom.attrs.Set("n", 3);
  custom.location.name = "layer";
  const auto bytes = [](const NodeView& view) {
    const fbx_bytes raw = view.abi()->raw_options;
    return std::string_view(static_cast<const char*>(raw.ptr), raw.len);
  };
  NodeView view(f, custom);
  EXPECT_EQ(bytes(view), WriteFlexMap(custom.attrs));
  EXPECT_EQ(FromAbi(view.abi()->location), "layer");
  custom.raw_options = "raw";
  view.Show(f, custom);
  EXPECT_EQ(bytes(view), "raw");
  Node& abs = f.AddNode(Op::kAbs, {x}, {{DType::kF32, {1}}});
  abs.attrs.Set("n", 3);
  view.Show(f, abs);
  EXPECT_EQ(bytes(view), "");
}

}  // namespace
}  // namespace fusebox
