// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/converter/passes/bench.h"

namespace fusebox::converter {
namespace {

using ::testing::HasSubstr;

// Two layers of 2 units over x [1,3,1], the second backwards; bodies are not looked at.
struct Layers {
  Bench bench;
  Function& f = bench.Add("main");
  ValueId x = f.AddInput(F32({1, 3, 1}));
  Node* forward = &Layer("forward", x, false);
  Node* backward = &Layer("backward", x, true);
  ValueId reversed = kNoValue;

  Node& Layer(const std::string& name, ValueId input, bool backwards) {
    std::vector<ValueId> operands = {input};
    for (const auto& dims : std::vector<std::vector<int64_t>>{{1, 2}, {1, 2}, {1, 8}, {2, 8}, {8}})
      operands.push_back(f.AddConst<float>(
          DType::kF32, Shape(dims), std::vector<float>(static_cast<size_t>(*Shape(dims).element_count()))));
    Attrs attrs;
    attrs.Set("go_backwards", backwards);
    Node& node = f.AddNode(Op::kStablehloComposite, operands,
                           {F32({1, 2}), F32({1, 3, 2}), F32({1, 2}), F32({1, 2}), F32({})}, attrs);
    node.name = "lstm_" + name;
    node.location.name = name;
    node.body = Body(name).name;
    return node;
  }
  Function& Body(const std::string& name) {
    Function& body = bench.Add(name + "_body");
    for (const auto& dims : std::vector<std::vector<int64_t>>{{1, 3, 1}, {1, 2}, {1, 2}, {1, 8}, {2, 8}, {8}})
      body.AddInput(F32(dims));
    const auto constant = [&](std::vector<int64_t> dims) {
      const Shape shape(dims);
      return body.AddConst<float>(DType::kF32, shape,
                                  std::vector<float>(static_cast<size_t>(*shape.element_count())));
    };
    body.outputs = {constant({1, 2}), constant({1, 3, 2}), body.inputs[1], body.inputs[2], constant({})};
    return body;
  }
  void Reverse(int axis = 1) {
    const ValueId along = f.AddConst<int32_t>(DType::kI32, {1}, {axis});
    reversed = f.AddNode(Op::kReverseV2, {backward->results[1], along}, {F32({1, 3, 2})}).results[0];
  }
  Node& Merge(Op op, Type type, Attrs attrs = {}) {
    Node& node = f.AddNode(op, {forward->results[1], reversed}, {type}, attrs);
    f.outputs = {node.results[0]};
    return node;
  }
  Node& Concatenate() {
    Attrs attrs;
    attrs.Set("axis", int64_t{2});
    return Merge(Op::kConcatenation, F32({1, 3, 4}), attrs);
  }
  int Composites() const {
    int n = 0;
    for (const auto& node : f.nodes) n += node->is(Op::kStablehloComposite);
    return n;
  }
};

TEST(Bidirectional, TakesBothLayersReversalAndConcatenation) {
  Layers l;
  l.Reverse();
  l.Concatenate();
  EXPECT_EQ(l.bench.Run(RecognizeComposites), "");
  ASSERT_EQ(l.f.nodes.size(), 1u) << ToText(l.f);
  const Node& pair = *l.f.nodes[0];
  EXPECT_EQ(pair.name, "keras.bidirectional");
  EXPECT_EQ(pair.operands.size(), 11u);
  EXPECT_TRUE(pair.attrs.b("merge", false));
  EXPECT_EQ(l.f.outputs[0], pair.results[8]);
  const Function* body = l.bench.module.Find(pair.body);
  ASSERT_TRUE(body);
  EXPECT_EQ(body->nodes.size(), 4u);
  EXPECT_EQ(body->nodes[0]->body, "forward_body");
  EXPECT_EQ(body->nodes[1]->body, "backward_body");
}

TEST(Bidirectional, LeavesOtherMergesOutside) {
  Layers l;
  l.Reverse();
  l.Merge(Op::kMul, F32({1, 3, 2}));
  EXPECT_EQ(l.bench.Run(RecognizeComposites), "");
  ASSERT_EQ(l.f.nodes.size(), 2u);
  EXPECT_FALSE(l.f.nodes[0]->attrs.b("merge", true));
  EXPECT_EQ(l.f.nodes[1]->operands,
            (std::vector<ValueId>{l.f.nodes[0]->results[1], l.f.nodes[0]->results[5]}));
}

TEST(Bidirectional, NeedsNoSequenceAtAll) {
  Layers l;
  l.f.outputs = {l.forward->results[0], l.backward->results[0], l.backward->results[4]};
  EXPECT_EQ(l.bench.Run(RecognizeComposites), "");
  ASSERT_EQ(l.f.nodes.size(), 1u);
  EXPECT_EQ(l.f.outputs[1], l.f.nodes[0]->results[4]);
  EXPECT_EQ(l.f.value(l.f.outputs[2]).data.As<float>()[0], 1.0F);
}

// Nothing tells what they are, and the op for both gives all steps of both.
TEST(Bidirectional, DoesNotSayHowManyStepsAnUnclearSequenceHas) {
  Layers l;
  for (Node* layer : {l.forward, l.backward}) l.f.value(layer->results[1]).type = F32({1, 2, 2});
  l.f.outputs = {l.forward->results[0], l.backward->results[0]};
  EXPECT_EQ(l.bench.Run(RecognizeComposites), "");
  ASSERT_EQ(l.f.nodes.size(), 1u);
  for (const size_t sequence : {1u, 5u})
    EXPECT_EQ(l.f.value(l.f.nodes[0]->results[sequence]).type, F32({1, -1, 2}));
}

// As newer Keras writes layers that return no sequences, and as attributes say it.
TEST(Bidirectional, GivesTheLastStepOfLayersThatKeepNoOther) {
  for (const bool by_attribute : {false, true}) {
    Layers l;
    for (Node* layer : {l.forward, l.backward}) {
      if (by_attribute) layer->attrs.Set("sequence", false);
      l.f.value(layer->results[1]).type = F32({1, by_attribute ? -1 : 1, 2});
    }
    l.f.outputs = {l.forward->results[1], l.backward->results[1]};  // in the order of processing
    const std::vector<ValueId> read = l.f.outputs;
    EXPECT_EQ(l.bench.Run(RecognizeComposites), "");
    ASSERT_EQ(l.f.nodes.size(), 1u) << l.bench.Notes();
    const Node& pair = *l.f.nodes[0];
    EXPECT_EQ((std::vector<ValueId>{pair.results[1], pair.results[5]}), read);
    for (const size_t sequence : {1u, 5u}) EXPECT_EQ(l.f.value(pair.results[sequence]).type, F32({1, 1, 2}));
    const Function* body = l.bench.module.Find(pair.body);
    ASSERT_TRUE(body);
    EXPECT_EQ(body->nodes.size(), 2u);  // nothing is turned
  }
}

TEST(Bidirectional, GivesTheWholeSequenceBesideALastStep) {
  Layers l;
  l.f.value(l.forward->results[1]).type = F32({1, 1, 2});
  l.Reverse();
  l.f.outputs = {l.forward->results[1], l.reversed};
  EXPECT_EQ(l.bench.Run(RecognizeComposites), "");
  ASSERT_EQ(l.f.nodes.size(), 1u) << l.bench.Notes();
  EXPECT_EQ(l.f.value(l.f.nodes[0]->results[1]).type, F32({1, 1, 2}));
  EXPECT_EQ(l.f.value(l.f.nodes[0]->results[5]).type, F32({1, 3, 2}));
  EXPECT_EQ(l.f.outputs[1], l.f.nodes[0]->results[5]);
}

// Why two layers stay two.
template <class Change>
std::string Reason(const Change& change) {
  Layers l;
  change(l);
  EXPECT_EQ(l.bench.Run(RecognizeComposites), "");
  EXPECT_EQ(l.Composites(), 2);
  return l.bench.Notes();
}

TEST(Bidirectional, SaysWhatIsInTheWay) {
  EXPECT_THAT(
      Reason([](Layers& l) { l.f.outputs = {l.forward->results[1], l.backward->results[1]}; }),
      HasSubstr(
          "bidirectional: forward and backward stay two ops: the backward sequence is read in the order"));
  EXPECT_THAT(Reason([](Layers& l) {
                l.Reverse(2);
                l.Concatenate();
              }),
              HasSubstr("read in the order of processing"));
  EXPECT_THAT(Reason([](Layers& l) { l.backward->attrs.Set("time_major", true); }),
              HasSubstr("they differ in time_major"));
  EXPECT_THAT(Reason([](Layers& l) {
                l.forward->operands.push_back(l.f.AddInput({DType::kBool, Shape{1, 3}}));
                l.bench.module.Find("forward_body")->AddInput({DType::kBool, Shape{1, 3}});
              }),
              HasSubstr("a mask is in the way"));
  EXPECT_THAT(Reason([](Layers& l) { l.backward->operands[1] = l.forward->results[2]; }),
              HasSubstr("read before all operands are computed"));
  EXPECT_THAT(Reason([](Layers& l) {
                const ValueId h = l.forward->results[2];
                l.backward->operands[1] = l.f.InsertNode(1, Op::kAdd, {h, h}, {F32({1, 2})}).results[0];
              }),
              HasSubstr("read before all operands are computed"));
  EXPECT_THAT(Reason([](Layers& l) {
                l.f.value(l.forward->results[1]).type = F32({1, 2, 2});
                l.f.outputs = {l.forward->results[1]};
              }),
              HasSubstr("may be its last step only"));
}

TEST(Bidirectional, BelievesTheAttributeThatSaysWhatTheSequenceIs) {
  EXPECT_THAT(Reason([](Layers& l) {
                l.backward->attrs.Set("sequence", false);
                l.Reverse();
                l.Concatenate();
              }),
              HasSubstr("may be its last step only"));
}

TEST(Bidirectional, PairsOnlyOppositeDirectionsOfOneInput) {
  Layers same, other;
  same.backward->attrs.Set("go_backwards", false);
  same.f.outputs = {same.forward->results[0], same.backward->results[0]};
  EXPECT_EQ(same.bench.Run(RecognizeComposites), "");
  EXPECT_EQ(same.Composites(), 2);
  other.backward->operands[0] = other.f.AddInput(F32({1, 3, 1}));
  EXPECT_EQ(other.bench.Run(RecognizeComposites), "");
  EXPECT_EQ(other.Composites(), 2);
  EXPECT_EQ(same.bench.Notes() + other.bench.Notes(), "");
}

}  // namespace
}  // namespace fusebox::converter
