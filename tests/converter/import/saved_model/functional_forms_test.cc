// SPDX-License-Identifier: Apache-2.0
// Branches, loops and handles as functions may have them, from the file to the numbers.
#include <gmock/gmock.h>

#include <functional>

#include "models/saved_model/saved_model_builder.h"
#include "tests/converter/import/files.h"
#include "tests/converter/passes/bench.h"

namespace fusebox::converter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace fusebox::models;
using Damage = std::function<void(tf::SavedModel&)>;

Result<Converted> Convert(SavedModelBuilder& model, const Damage& damage = {}) {
  tf::SavedModel proto = model.ToProto();
  if (damage) damage(proto);
  const std::string dir = testing::FreshDir();
  FUSEBOX_TRY(WriteSavedModel(dir, proto, model.Checkpoint()));
  Conversion conversion = FromSavedModel(dir);
  conversion.options.registry = BuiltIn();
  return conversion.Convert();
}

std::vector<float> Outputs(const Converted& converted, const std::vector<Tensor>& inputs) {
  const auto program = run::Program::Create(*converted.module, BuiltIn());
  EXPECT_TRUE(program) << program.error().message;
  if (!program) return {};
  const auto runner = run::Runner::Create(**program, 1);
  const auto outputs = (*runner)->Run(converted.module->signatures[0].function, inputs);
  EXPECT_TRUE(outputs) << outputs.error().message;
  return outputs ? FloatsOf((*outputs)[0]) : std::vector<float>();
}

Tensor Number(int32_t value) { return {I32({}), Buffer::Of<int32_t>(std::vector{value})}; }

// A function x -> op(x, number).
FunctionBuilder& With(SavedModelBuilder& model, const std::string& name, const char* op, float number) {
  FunctionBuilder& f = model.AddFunction(name);
  const models::Ref x = f.Arg("x", tf::DT_FLOAT, {2});
  f.Return({f.Op(op, {x, f.Const(models::Float(number))}, {2})});
  return f;
}

TEST(Case, RunsTheBranchOfItsIndexAndTheLastOneOutsideOfThem) {
  SavedModelBuilder model;
  Attr branches("branches", 0);
  for (int i = 0; i < 5; ++i)
    branches.proto.mutable_list()->add_func()->set_name(
        With(model, "branch_" + std::to_string(i), "AddV2", static_cast<float>(i) * 10).name());
  FunctionBuilder& f = model.AddFunction("__inference_call");
  const models::Ref index = f.Arg("index", tf::DT_INT32, kScalar), x = f.Arg("x", tf::DT_FLOAT, {2});
  f.Return(f.Ops("StatelessCase", {index, x}, {{2}},
                 {branches, Attr("Tin", std::vector<tf::DataType>{tf::DT_FLOAT}),
                  Attr("Tout", std::vector<tf::DataType>{tf::DT_FLOAT})}));
  model.AddSignature("serving_default", f, {"index", "x"}, {"y"});
  const auto converted = Convert(model);
  ASSERT_TRUE(converted) << converted.error().message;
  for (const int32_t i : {0, 1, 2, 3, 4, 5, -1, 1000, INT32_MIN}) {
    const float added = i < 0 || i > 4 ? 40 : static_cast<float>(i) * 10;
    EXPECT_THAT(Outputs(*converted, {Number(i), Floats({2}, {1, 2})}), ElementsAre(1 + added, 2 + added))
        << i;
  }
}

// A file may define no ops.
TEST(Case, HasTheResultsOfItsTypes) {
  SavedModelBuilder model;
  Attr branches("branches", 0);
  for (const char* name : {"first", "second"}) {
    FunctionBuilder& branch = model.AddFunction(name);
    const models::Ref x = branch.Arg("x", tf::DT_FLOAT, {2});
    const bool first = std::string_view(name) == "first";
    const models::Ref y = branch.Op("AddV2", {x, branch.Const(models::Float(first ? 10 : 20))}, {2});
    branch.Return({x, y});
    branches.proto.mutable_list()->add_func()->set_name(branch.name());
  }
  FunctionBuilder& f = model.AddFunction("__inference_call");
  const models::Ref index = f.Arg("index", tf::DT_INT32, kScalar), x = f.Arg("x", tf::DT_FLOAT, {2});
  f.Return({f.Ops("StatelessCase", {index, x}, {{2}, {2}},
                  {branches, Attr("Tin", std::vector<tf::DataType>{tf::DT_FLOAT}),
                   Attr("Tout", std::vector<tf::DataType>(2, tf::DT_FLOAT))})[1]});
  model.AddSignature("serving_default", f, {"index", "x"}, {"y"});
  const auto converted = Convert(model, [](tf::SavedModel& m) {
    m.mutable_meta_graphs(0)->mutable_meta_info_def()->clear_stripped_op_list();
  });
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_THAT(Outputs(*converted, {Number(1), Floats({2}, {1, 2})}), ElementsAre(21, 22));
}

TEST(If, TakesANumberForWhetherItIsZero) {
  SavedModelBuilder model;
  const FunctionBuilder& yes = With(model, "yes", "AddV2", 10);
  const FunctionBuilder& no = With(model, "no", "AddV2", 20);
  FunctionBuilder& f = model.AddFunction("__inference_call");
  const models::Ref c = f.Arg("c", tf::DT_INT32, kScalar), x = f.Arg("x", tf::DT_FLOAT, {2});
  f.Return(f.If(c, yes, no, {x}, {{2}}));
  model.AddSignature("serving_default", f, {"c", "x"}, {"y"});
  const auto converted = Convert(model);
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_THAT(Outputs(*converted, {Number(0), Floats({2}, {1, 2})}), ElementsAre(21, 22));
  EXPECT_THAT(Outputs(*converted, {Number(-3), Floats({2}, {1, 2})}), ElementsAre(11, 12));
}

TEST(If, TakesATensorForWhetherItHasElements) {
  for (const int64_t size : {0, 1, 2}) {
    SavedModelBuilder model;
    const FunctionBuilder& yes = With(model, "yes", "AddV2", 10);
    const FunctionBuilder& no = With(model, "no", "AddV2", 20);
    FunctionBuilder& f = model.AddFunction("__inference_call");
    const models::Ref c = f.Arg("c", tf::DT_BOOL, {size}), x = f.Arg("x", tf::DT_FLOAT, {2});
    f.Return(f.If(c, yes, no, {x}, {{2}}));
    model.AddSignature("serving_default", f, {"c", "x"}, {"y"});
    const auto converted = Convert(model);
    ASSERT_TRUE(converted) << converted.error().message;
    const Tensor none{{DType::kBool, {size}}, Buffer::Make(static_cast<size_t>(size), {})};
    const float added = size > 0 ? 10 : 20;
    EXPECT_THAT(Outputs(*converted, {none, Floats({2}, {1, 2})}), ElementsAre(1 + added, 2 + added)) << size;
  }
}

// y = x + (v += 1): the handle goes through an Identity, and the file declares no ops.
TEST(Handles, KeepTheirTypeWhereNobodyDeclaresIt) {
  SavedModelBuilder model;
  const VariableRef v = model.AddVariable("v", models::Float(5), "v");
  FunctionBuilder& f = model.AddFunction("__inference_call");
  const models::Ref x = f.Arg("x", tf::DT_FLOAT, {2});
  const models::Ref handle = f.Op("Identity", {f.Capture(v)}, kScalar);
  f.Assign("AssignAddVariableOp", v, f.Const(models::Float(1)));
  const models::Ref value = f.Op("ReadVariableOp", {handle}, kScalar, {Attr("dtype", tf::DT_FLOAT)});
  f.Return({f.Op("AddV2", {x, value}, {2})});
  model.AddSignature("serving_default", f, {"x"}, {"y"});
  const auto converted = Convert(model, [](tf::SavedModel& m) {
    m.mutable_meta_graphs(0)->mutable_meta_info_def()->clear_stripped_op_list();
  });
  ASSERT_TRUE(converted) << converted.error().message;
  size_t handles = 0;
  for (const auto& f : converted->module->functions) {
    for (const auto& node : f->nodes) {
      if (!node->is(Op::kVarHandle)) continue;
      EXPECT_EQ(f->value(node->results[0]).type.dtype, DType::kResource);
      ++handles;
    }
  }
  EXPECT_GT(handles, 0u);
  EXPECT_THAT(Outputs(*converted, {Floats({2}, {1, 2})}), ElementsAre(7, 8));
}

TEST(Signatures, SayWhatIsNotFed) {
  const auto error = [](const Damage& damage) {
    SavedModelBuilder model;
    FunctionBuilder& f = model.AddFunction("__inference_call");
    f.Return({f.Op("Relu", {f.Arg("x", tf::DT_FLOAT, {2})}, {2})});
    model.AddSignature("serving_default", f, {"x"}, {"y"});
    const auto converted = Convert(model, damage);
    return converted ? "it converts" : converted.error().message;
  };
  const auto signature = [](tf::SavedModel& m) -> tf::SignatureDef& {
    return (*m.mutable_meta_graphs(0)->mutable_signature_def())["serving_default"];
  };
  EXPECT_THAT(error([&](tf::SavedModel& m) { signature(m).clear_inputs(); }),
              HasSubstr("it is not an input of the signature"));
  EXPECT_THAT(error([&](tf::SavedModel& m) { (*signature(m).mutable_inputs())["x"].set_name("nope:0"); }),
              HasSubstr("input x: is fed to nope:0, which does not exist"));
  EXPECT_THAT(
      error([&](tf::SavedModel& m) { (*signature(m).mutable_inputs())["x"].set_dtype(tf::DT_INT32); }),
      HasSubstr("input x: is declared i32, its placeholder f32"));
}

}  // namespace
}  // namespace fusebox::converter
