// SPDX-License-Identifier: Apache-2.0
// SavedModels that claim what cannot be, or are made to blow up, or are of a kind that TFLite cannot say: one
// sentence with the place, exit status 2, nothing written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "models/saved_model/op_table.h"
#include "models/saved_model/saved_model_builder.h"
#include "tests/converter/import/files.h"
#include "tests/e2e/damaged_model.h"

namespace fusebox::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace fusebox::models;

const Shape kFour = {4};

// y = f(x) through a call of "inner"; `build` makes the body of inner out of x, `damage` changes what is
// written.
CommandResult ConvertOne(const std::function<Ref(SavedModelBuilder&, FunctionBuilder&, const Ref&)>& build,
                         const Damage& damage = {}) {
  SavedModelBuilder model;
  FunctionBuilder& inner = model.AddFunction("inner");
  const Ref x = inner.Arg("x", tf::DT_FLOAT, kFour);
  inner.Return({build(model, inner, x)});
  FunctionBuilder& f = model.AddFunction("outer");
  f.Return(f.Call(inner, {f.Arg("x", tf::DT_FLOAT, kFour)}));
  model.AddSignature("serving_default", f, {"x"}, {"y"});
  return ConvertDamaged(model, damage);
}

Ref Negated(SavedModelBuilder&, FunctionBuilder& f, const Ref& x) { return f.Op("Neg", {x}, kFour); }

TEST(Hostile, CallsWithOtherNumbersOfArgumentsAreRefused) {
  const auto fewer = [](tf::SavedModel& m) {
    NodeIn(FunctionIn(m, "outer"), "PartitionedCall").clear_input();
  };
  ExpectRefused(ConvertOne(Negated, fewer), "outer", "differ in number");
  const auto more = [](tf::SavedModel& m) {
    NodeIn(FunctionIn(m, "outer"), "PartitionedCall").add_input("x");
  };
  ExpectRefused(ConvertOne(Negated, more), "outer", "differ in number");
  const auto results = [](tf::SavedModel& m) {
    auto& types = *(*NodeIn(FunctionIn(m, "outer"), "PartitionedCall").mutable_attr())["Tout"].mutable_list();
    types.add_type(tf::DT_FLOAT);
  };
  ExpectRefused(ConvertOne(Negated, results), "outer", "differ in number");
}

TEST(Hostile, OpsWithOtherNumbersOfOperandsAreRefused) {
  ExpectRefused(
      ConvertOne(Negated, [](tf::SavedModel& m) { NodeIn(FunctionIn(m, "inner"), "Neg").clear_input(); }),
      "Neg", "operand");
}

TEST(Hostile, FunctionsThatCallThemselvesAreRefused) {
  const auto recursive = [](tf::SavedModel& m) {
    auto& f = *(*NodeIn(FunctionIn(m, "outer"), "PartitionedCall").mutable_attr())["f"].mutable_func();
    f.set_name(FunctionIn(m, "outer").signature().name());
  };
  ExpectRefused(ConvertOne(Negated, recursive), "outer", "recursive");
}

// 20000 functions that call each other in a row.
TEST(Hostile, ChainsOfCallsWithoutEndAreRefused) {
  const auto chain = [](tf::SavedModel& m) {
    auto& library = *m.mutable_meta_graphs(0)->mutable_graph_def()->mutable_library();
    const tf::FunctionDef link = FunctionIn(m, "outer");
    std::string next = FunctionIn(m, "inner").signature().name();
    for (int i = 0; i < 20000; ++i) {
      tf::FunctionDef& f = *library.add_function();
      f = link;
      f.mutable_signature()->set_name("link_" + std::to_string(i));
      (*NodeIn(f, "PartitionedCall").mutable_attr())["f"].mutable_func()->set_name(next);
      next = f.signature().name();
    }
    (*NodeIn(FunctionIn(m, "outer"), "PartitionedCall").mutable_attr())["f"].mutable_func()->set_name(next);
  };
  ExpectRefused(ConvertOne(Negated, chain), "", "deep");
}

// Each claims terabytes: no constant is made of it.
TEST(Hostile, OpsThatWouldMakeHugeConstantsAreNotComputed) {
  const auto converted = [](const std::function<Ref(FunctionBuilder&, const Ref&)>& huge) {
    return ConvertOne([&](SavedModelBuilder&, FunctionBuilder& f, const Ref& x) {
      return f.Op("AddV2", {f.Op("Sum", {huge(f, x), f.Const(Ints({0, 1}))}, kScalar), x}, kFour);
    });
  };
  const TensorValue huge = Ints({1 << 20, 1 << 20});
  for (const CommandResult& command : {converted([&](FunctionBuilder& f, const Ref&) {
                                         return f.Op("Fill", {f.Const(huge), f.Const(Float(1))}, Shape());
                                       }),
                                       converted([&](FunctionBuilder& f, const Ref&) {
                                         const Ref one =
                                             f.Const(models::Floats({1, 1}, std::vector<float>{1}));
                                         return f.Op("Tile", {one, f.Const(huge)}, Shape());
                                       })}) {
    EXPECT_THAT(command.status, ::testing::AnyOf(0, 2)) << command.err;
    EXPECT_THAT(command.err, Not(HasSubstr("internal")));
  }
}

TEST(Hostile, ShapesThatOverflowAreRefused) {
  const auto overflow = [](tf::SavedModel& m) {
    tf::TensorInfo& x =
        (*(*m.mutable_meta_graphs(0)->mutable_signature_def())["serving_default"].mutable_inputs())["x"];
    *x.mutable_tensor_shape() = ShapeProto({int64_t{1} << 62, int64_t{1} << 62});
  };
  const CommandResult command = ConvertOne(Negated, overflow);
  EXPECT_EQ(command.status, 2) << command.err;
  EXPECT_THAT(command.err, AllOf(HasSubstr("/model"), Not(HasSubstr("internal"))));
}

TEST(Hostile, AttributesThatNestWithoutEndAreRefused) {
  const auto nested = [](tf::SavedModel& m) {
    tf::AttrValue* attr = &(*NodeIn(FunctionIn(m, "inner"), "Neg").mutable_attr())["nested"];
    for (int i = 0; i < 400; ++i) attr = &(*attr->mutable_func()->mutable_attr())["a"];
    attr->set_i(1);
  };
  const CommandResult command = ConvertOne(Negated, nested);
  ExpectRefused(command, "saved_model.pb", "damaged");
}

TEST(Hostile, WhatTfliteCannotSayIsNamedWithTheReason) {
  DefineOp("XlaCallModule(args: [Tin]) -> (output: [Tout])");
  DefineOp("RaggedTensorToSparse(x: T) -> (y: T)");
  DefineOp("SparseTensorDenseMatMul(x: T) -> (y: T)");
  const auto with = [](const char* op, const std::vector<Attr>& attrs = {}) {
    return ConvertOne(
        [&](SavedModelBuilder&, FunctionBuilder& f, const Ref& x) { return f.Op(op, {x}, kFour, attrs); });
  };
  const std::vector<Attr> module = {Attr("Tout", std::vector<tf::DataType>{tf::DT_FLOAT}),
                                    Attr("module", std::string("ML\xefR"))};
  ExpectRefused(with("XlaCallModule", module), "op XlaCallModule", "compiled StableHLO");
  ExpectRefused(with("RaggedTensorToSparse"), "op RaggedTensorToSparse", "no ragged tensors");
  ExpectRefused(with("SparseTensorDenseMatMul"), "op SparseTensorDenseMatMul", "no sparse tensors");
}

TEST(Hostile, SparseAndRaggedInputsAndOutputsAreNamed) {
  const auto without_name = [](bool input) {
    return ConvertOne(Negated, [input](tf::SavedModel& m) {
      auto& signature = (*m.mutable_meta_graphs(0)->mutable_signature_def())["serving_default"];
      auto& tensors = input ? *signature.mutable_inputs() : *signature.mutable_outputs();
      tensors[input ? "x" : "y"].clear_name();
    });
  };
  ExpectRefused(without_name(true), "signature serving_default: input x", "sparse or ragged");
  ExpectRefused(without_name(false), "signature serving_default: output y", "sparse or ragged");
}

TEST(Hostile, ValuesThatDoNotFitTheirChecksumAreRefused) {
  const auto dir = Sample("keras_lstm");
  ASSERT_TRUE(dir);
  const std::string data = *dir + "/variables/variables.data-00000-of-00001",
                    out = TestDir() + "/none.tflite";
  std::string bytes = ReadAll(data);
  bytes[bytes.size() / 2] ^= 1;
  WriteAll(data, bytes);
  const auto command = Fusebox({"convert", *dir, "-o", out, "--batch", "1"});
  EXPECT_EQ(command.status, 2);
  EXPECT_THAT(command.err, AllOf(HasSubstr(data), HasSubstr("checksum")));
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace
}  // namespace fusebox::testing
