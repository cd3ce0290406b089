// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/converter/passes/bench.h"

namespace fusebox::converter {
namespace {

// main: a composite that is given the variable "h"; its body is its value.
struct ReadingLayer {
  Bench bench;
  Function& f = bench.Add("main");
  Function& body = bench.Add("body");
  Node* layer = nullptr;

  ReadingLayer() {
    Variable variable;
    variable.name = "h";
    variable.type = F32({1, 2});
    variable.initial = Buffer::Of<float>(std::vector<float>{3, 4});
    bench.module.variables.push_back(variable);
    body.AddInput(Resource());
    body.outputs = {body.AddNode(Op::kReadVariable, {Handle(body)}, {F32({1, 2})}).results[0]};
    layer = &f.AddNode(Op::kStablehloComposite, {Handle(f)}, {F32({1, 2})});
    layer->name = "layer";
    layer->body = "body";
    f.outputs = {layer->results[0]};
    bench.Sign(f);
  }
  static Type Resource() { return {DType::kResource, Shape::Scalar()}; }
  static ValueId Handle(Function& g) {
    Attrs attrs;
    attrs.Set("shared_name", std::string("h"));
    return g.AddNode(Op::kVarHandle, {}, {Resource()}, attrs).results[0];
  }
  bool Hoisted() {
    EXPECT_EQ(bench.Run(HoistReads), "");
    const Node* read = Uses(f).producer(layer->operands[0]);
    return read->is(Op::kReadVariable) && body.outputs[0] == body.inputs[0] &&
           body.value(body.inputs[0]).type == F32({1, 2});
  }
};

TEST(HoistReads, GivesACompositeTheValueOfAVariableThatItsBodyReads) {
  ReadingLayer layer;
  EXPECT_TRUE(layer.Hoisted());
}

TEST(HoistReads, LeavesAVariableThatTheBodyWrites) {
  ReadingLayer layer;
  layer.body.AddNode(
      Op::kAssignVariable,
      {ReadingLayer::Handle(layer.body), layer.body.AddConst<float>(DType::kF32, {1, 2}, {1, 1})}, {});
  EXPECT_FALSE(layer.Hoisted());
}

TEST(HoistReads, LeavesAVariableThatAFunctionOfTheBodyNames) {
  ReadingLayer layer;
  Function& inner = layer.bench.Add("inner");
  inner.outputs = {inner.AddNode(Op::kReadVariable, {ReadingLayer::Handle(inner)}, {F32({1, 2})}).results[0]};
  Node& call = layer.body.AddNode(Op::kStablehloComposite, {}, {F32({1, 2})});
  call.name = "inner";
  call.body = "inner";
  EXPECT_FALSE(layer.Hoisted());
}

TEST(HoistReads, LeavesAVariableOfUnknownShape) {
  ReadingLayer layer;
  layer.bench.module.variables[0].type = F32({-1, 2});
  EXPECT_FALSE(layer.Hoisted());
}

}  // namespace
}  // namespace fusebox::converter
