// SPDX-License-Identifier: Apache-2.0
// SavedModels whose ops, loops and signatures make no sense: one sentence with the place, exit status 2,
// nothing written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "models/saved_model/saved_model_builder.h"
#include "tests/e2e/damaged_model.h"

namespace fusebox::testing {
namespace {

using namespace fusebox::models;

using Build = std::function<Ref(SavedModelBuilder&, FunctionBuilder&, const Ref&)>;

// y = f(x) with x [2,6]; `build` makes the body, `damage` changes what is written.
CommandResult ConvertBody(const Build& build, const Damage& damage = {}) {
  SavedModelBuilder model;
  FunctionBuilder& f = model.AddFunction("body");
  f.Return({build(model, f, f.Arg("x", tf::DT_FLOAT, {2, 6}))});
  model.AddSignature("serving_default", f, {"x"}, {"y"});
  return ConvertDamaged(model, damage);
}

Ref NegatedMatrix(SavedModelBuilder&, FunctionBuilder& f, const Ref& x) { return f.Op("Neg", {x}, {2, 6}); }

// One step that adds x to itself while a flag says so.
Ref Looped(SavedModelBuilder& model, FunctionBuilder& f, const Ref& x) {
  FunctionBuilder& cond = model.AddFunction("while_cond");
  cond.Return({cond.Op("Less", {cond.Arg("i", tf::DT_INT32, kScalar), cond.Const(Int(3))}, kScalar)});
  cond.Arg("x", tf::DT_FLOAT, {2, 6});
  FunctionBuilder& body = model.AddFunction("while_body");
  const Ref i = body.Arg("i", tf::DT_INT32, kScalar), in = body.Arg("x", tf::DT_FLOAT, {2, 6});
  body.Return({body.Op("AddV2", {i, body.Const(Int(1))}, kScalar), body.Op("AddV2", {in, in}, {2, 6})});
  return f.While(cond, body, {f.Const(Int(0)), x})[1];
}

TEST(Nonsense, LoopsWhoseFunctionsTakeOtherVariablesAreRefused) {
  EXPECT_EQ(ConvertBody(Looped).status, 0);
  for (const char* function : {"while_cond", "while_body"}) {
    ExpectRefused(
        ConvertBody(Looped,
                    [&](tf::SavedModel& m) {
                      FunctionIn(m, function).mutable_signature()->mutable_input_arg()->RemoveLast();
                    }),
        "while", "");
  }
  ExpectRefused(ConvertBody(Looped,
                            [](tf::SavedModel& m) {
                              auto& f = FunctionIn(m, "while_body");
                              f.mutable_signature()->mutable_output_arg()->RemoveLast();
                            }),
                "while", "");
}

TEST(Nonsense, LoopsThatContainThemselvesAreRefused) {
  const auto circle = [](tf::SavedModel& m) {
    tf::FunctionDef& body = FunctionIn(m, "while_body");
    tf::NodeDef inner = NodeIn(FunctionIn(m, "body"), "StatelessWhile");
    inner.set_input(0, "i");
    inner.set_input(1, "x");
    inner.set_name("again");
    *body.add_node_def() = inner;
    (*body.mutable_ret())[body.signature().output_arg(1).name()] = "again:output:1";
  };
  ExpectRefused(ConvertBody(Looped, circle), "while_body", "recursive");
}

TEST(Nonsense, NodesThatFeedThemselvesAreRefused) {
  const auto circle = [](tf::SavedModel& m) {
    tf::NodeDef& neg = NodeIn(FunctionIn(m, "body"), "Neg");
    neg.set_input(0, neg.name() + ":y:0");
  };
  ExpectRefused(ConvertBody(NegatedMatrix, circle), "body", "cycle");
}

TEST(Nonsense, FunctionsAndNodesThatAreNotThereAreNamed) {
  const auto no_function = [](tf::SavedModel& m) {
    (*NodeIn(FunctionIn(m, "body"), "StatelessWhile").mutable_attr())["body"].mutable_func()->set_name(
        "gone");
  };
  ExpectRefused(ConvertBody(Looped, no_function), "function body", "\"gone\" is not in the library");
  const auto no_node = [](tf::SavedModel& m) {
    NodeIn(FunctionIn(m, "body"), "Neg").set_input(0, "gone:y:0");
  };
  ExpectRefused(ConvertBody(NegatedMatrix, no_node), "function body", "refers to gone");
}

TEST(Nonsense, InputsOfTypesThatAreNoTensorsAreRefused) {
  for (const auto& [dtype, name] : {std::pair{tf::DT_RESOURCE, "resource"}, {tf::DT_VARIANT, "variant"}}) {
    const auto other = [dtype = dtype](tf::SavedModel& m) {
      (*(*m.mutable_meta_graphs(0)->mutable_signature_def())["serving_default"].mutable_inputs())["x"]
          .set_dtype(dtype);
      for (tf::NodeDef& node : *m.mutable_meta_graphs(0)->mutable_graph_def()->mutable_node())
        if (node.op() == "Placeholder") (*node.mutable_attr())["dtype"].set_type(dtype);
      for (tf::FunctionDef& f :
           *m.mutable_meta_graphs(0)->mutable_graph_def()->mutable_library()->mutable_function())
        if (f.signature().input_arg_size() > 0 && f.signature().input_arg(0).name() == "x")
          f.mutable_signature()->mutable_input_arg(0)->set_type(dtype);
    };
    ExpectRefused(ConvertBody(NegatedMatrix, other), "signature serving_default: input x", name);
  }
}

TEST(Nonsense, PlaceholdersThatNobodyFeedsAreNamed) {
  const auto unfed = [](tf::SavedModel& m) {
    (*m.mutable_meta_graphs(0)->mutable_signature_def())["serving_default"].mutable_inputs()->clear();
  };
  ExpectRefused(ConvertBody(NegatedMatrix, unfed), "serving_default", "Placeholder");
}

struct BadOp {
  const char* name;
  Build build;
};

Ref WithAxis(FunctionBuilder& f, const char* op, std::vector<Ref> in, int axis) {
  in.push_back(f.Const(Int(axis)));
  return f.Op(op, in, Shape(), {Attr("N", in.size() - 1)});
}

const BadOp kBadOps[] = {
    {"ConcatV2", [](auto&, auto& f, const Ref& x) { return WithAxis(f, "ConcatV2", {x, x}, 7); }},
    {"GatherV2",
     [](auto&, auto& f, const Ref& x) { return WithAxis(f, "GatherV2", {x, f.Const(Int(0))}, -9); }},
    {"ExpandDims", [](auto&, auto& f, const Ref& x) { return WithAxis(f, "ExpandDims", {x}, 1 << 30); }},
    {"Transpose",
     [](auto&, auto& f, const Ref& x) { return f.Op("Transpose", {x, f.Const(Ints({0, 0}))}, Shape()); }},
    {"Reshape",
     [](auto&, auto& f, const Ref& x) { return f.Op("Reshape", {x, f.Const(Ints({-1, -1}))}, Shape()); }},
    {"Reshape",
     [](auto&, auto& f, const Ref& x) {
       return f.Op("Reshape", {x, f.Const(Ints({INT32_MAX, INT32_MAX}))}, Shape());
     }},
    {"Split",
     [](auto&, auto& f, const Ref& x) {
       return f.Ops("Split", {f.Const(Int(1)), x}, {Shape(), Shape(), Shape(), Shape()},
                    {Attr("num_split", 4)})[0];
     }},
    {"StridedSlice",
     [](auto&, auto& f, const Ref& x) {
       return f.Op("StridedSlice", {x, f.Const(Ints({0, 0})), f.Const(Ints({1, 1})), f.Const(Ints({0, 0}))},
                   Shape());
     }},
    {"Slice",
     [](auto&, auto& f, const Ref& x) {
       return f.Op("Slice", {x, f.Const(Ints({0, 3})), f.Const(Ints({2, INT32_MAX}))}, Shape());
     }},
    {"Squeeze",
     [](auto&, auto& f, const Ref& x) {
       return f.Op("Squeeze", {x}, Shape(), {Attr("squeeze_dims", std::vector<int64_t>{1 << 20})});
     }},
    {"Tile", [](auto&, auto& f, const Ref& x) { return f.Op("Tile", {x, f.Const(Ints({-1, 1}))}, Shape()); }},
    {"MatMul", [](auto&, auto& f, const Ref& x) { return f.Op("MatMul", {x, x}, Shape()); }},
    {"Conv2D",
     [](auto&, auto& f, const Ref& x) {
       return f.Op("Conv2D", {x, x}, Shape(),
                   {Attr("strides", std::vector<int64_t>{0, -1}), Attr("padding", "NEITHER")});
     }},
    {"Sum", [](auto&, auto& f, const Ref& x) { return f.Op("Sum", {x, f.Const(Ints({5}))}, Shape()); }},
    {"Unpack",
     [](auto&, auto& f, const Ref& x) {
       return f.Ops("Unpack", {x}, {Shape(), Shape(), Shape()}, {Attr("num", 3), Attr("axis", 0)})[0];
     }},
};

class BadOps : public ::testing::TestWithParam<BadOp> {};

TEST_P(BadOps, AreRefusedWithTheirPlace) {
  ExpectRefused(ConvertBody(GetParam().build), GetParam().name, "");
}

INSTANTIATE_TEST_SUITE_P(All, BadOps, ::testing::ValuesIn(kBadOps), [](const auto& info) {
  return info.param.name + std::string("_") + std::to_string(info.index);
});

}  // namespace
}  // namespace fusebox::testing
