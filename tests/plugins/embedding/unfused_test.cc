// SPDX-License-Identifier: Apache-2.0
// The body of an embedding lookup as libraries write it, a loop that puts one row after the other into an
// empty tensor: it proves the fused op, and it runs where nobody fuses it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/saved_model/op_table.h"
#include "models/saved_model/saved_model_builder.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;
using namespace fusebox::models;

enum class Loop { kFor, kWhile };

struct Case {
  const char* name;
  Loop loop = Loop::kFor;
  const char* implements = "embedding_lookup";
  bool flat = false;  // a table of rank 3
  int64_t delta = 1;  // -1: from the last row to the first
};

// For's body: (i, table, ids, rows) -> (table, ids, rows with row i = table[ids[i]]). It says no shapes.
void FillBody(FunctionBuilder& f, const std::vector<int32_t>& row) {
  const Shape any;
  const Ref i = f.Arg("i", tf::DT_INT32, any), table = f.Arg("embs", tf::DT_FLOAT, any);
  const Ref ids = f.Arg("ids", tf::DT_INT32, any), rows = f.Arg("rets", tf::DT_FLOAT, any);
  const Ref axis = f.Const(Int(0));
  const Ref id = f.Op("GatherV2", {ids, i, axis}, any);
  const Ref found = f.Op("GatherV2", {table, id, axis}, any);
  TensorValue shape{tf::DT_INT32, {static_cast<int64_t>(row.size())}, {}, {}};
  shape.bytes.assign(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(int32_t));
  const Ref one = f.Op("Reshape", {found, f.Const(shape)}, any);
  const Ref at = f.Op("Pack", {i}, any, {Attr("axis", 0)});
  f.Return({table, ids, f.Op("InplaceUpdate", {rows, at, one}, any)});
}

std::vector<Ref> ForLoop(SavedModelBuilder& model, FunctionBuilder& f, const Case& c,
                         const std::vector<int32_t>& row, const std::vector<Ref>& carried, const Ref& count) {
  FunctionBuilder& body = model.AddFunction("EmbFpropLoop");
  FillBody(body, row);
  const Ref zero = f.Const(Int(0)), minus = f.Const(Int(-1));
  std::vector<Ref> operands = {zero, count, f.Const(Int(1))};
  if (c.delta < 0) operands = {f.Op("AddV2", {count, minus}, kScalar), minus, minus};
  operands.insert(operands.end(), carried.begin(), carried.end());
  return f.Ops("For", operands, {Shape(), Shape(), Shape()}, {Attr("body", body.name(), {})});
}

// The same with a counter and a condition of its own.
std::vector<Ref> WhileLoop(SavedModelBuilder& model, FunctionBuilder& f, const std::vector<int32_t>& row,
                           const std::vector<Ref>& carried, const Ref& count) {
  FunctionBuilder& step = model.AddFunction("EmbFpropLoop");
  FillBody(step, row);
  FunctionBuilder& cond = model.AddFunction("EmbFpropLoop_Cond");
  FunctionBuilder& body = model.AddFunction("EmbFpropLoop_Body");
  std::vector<Ref> args;
  for (FunctionBuilder* inside : {&cond, &body}) {
    args = {inside->Arg("i", tf::DT_INT32, kScalar), inside->Arg("n", tf::DT_INT32, kScalar)};
    for (const Ref& value : carried)
      args.push_back(inside->Arg("arg" + std::to_string(args.size()), value.dtype, Shape()));
    if (inside == &cond) cond.Return({cond.Op("Less", {args[0], args[1]}, kScalar)});
  }
  std::vector<Ref> results = {body.Op("AddV2", {args[0], body.Const(Int(1))}, kScalar), args[1]};
  for (const Ref& value : body.Call(step, {args[0], args[2], args[3], args[4]})) results.push_back(value);
  body.Return(results);
  std::vector<Ref> operands = {f.Const(Int(0)), count};
  operands.insert(operands.end(), carried.begin(), carried.end());
  const std::vector<Ref> all = f.While(cond, body, operands);
  return {all.begin() + 2, all.end()};
}

std::string WriteModel(const Case& c) {
  models::Random random(5);
  SavedModelBuilder model;
  DefineOp("For(start: int32, limit: int32, delta: int32, input: [T]) -> (output: [T])");
  DefineOp("Empty(shape: int32) -> (output: dtype) !");
  DefineOp("InplaceUpdate(x: T, i: int32, v: T) -> (y: T)");
  const Shape table = c.flat ? Shape{7, 2, 3} : Shape{7, 3};
  std::vector<int32_t> row = {1};
  for (size_t i = 1; i < table.dims().size(); ++i) row.push_back(static_cast<int32_t>(table.dims()[i]));
  const VariableRef variable = model.AddVariable("table", random.Uniform(table, -1, 1), "table");

  FunctionBuilder& lookup = model.AddFunction("__inference_lookup");
  lookup.SetAttr(Attr("_implements", c.implements));
  const Ref embs = lookup.Arg("embs", tf::DT_FLOAT, table), ids = lookup.Arg("ids", tf::DT_INT32, {-1});
  const Ref length = lookup.Op("Shape", {ids}, {1}, {Attr("out_type", tf::DT_INT32)});
  const Ref count = lookup.Op("Squeeze", {length}, kScalar, {Attr("squeeze_dims", std::vector<int64_t>{0})});
  std::vector<Ref> dims = {count};
  for (size_t i = 1; i < row.size(); ++i) dims.push_back(lookup.Const(Int(row[i])));
  const Ref empty = lookup.Op("Empty", {lookup.Op("Pack", dims, {-1}, {Attr("axis", 0)})}, Shape(),
                              {Attr("dtype", tf::DT_FLOAT), Attr("init", false)});
  const std::vector<Ref> carried = {embs, ids, empty};
  lookup.Return({c.loop == Loop::kFor ? ForLoop(model, lookup, c, row, carried, count)[2]
                                      : WhileLoop(model, lookup, row, carried, count)[2]});

  FunctionBuilder& f = model.AddFunction("__inference_call");
  const Ref input = f.Arg("ids", tf::DT_INT32, {-1});
  f.Return(f.Call(lookup, {f.Read(variable), input}));
  model.AddSignature("serving_default", f, {"ids"}, {"rows"});
  const std::string dir = TestDir() + "/model";
  const Status written = model.Write(dir);
  EXPECT_TRUE(written) << written.error().message;
  return dir;
}

converter::Options With(const std::shared_ptr<Registry>& registry, converter::Composites composites) {
  converter::Options options;
  options.registry = registry;
  options.composites = composites;
  options.verify = converter::Verification::kStrict;
  return options;
}

Tensor Ids(const std::vector<int32_t>& ids) {
  return {{DType::kI32, {static_cast<int64_t>(ids.size())}}, Buffer::Of<int32_t>(ids)};
}

class UnfusedLookup : public ::testing::TestWithParam<Case> {};

TEST_P(UnfusedLookup, ProvesTheOpAndRunsWithoutIt) {
  const auto with = *Plugins({"fusebox.embedding"}), without = *Plugins({});
  const std::string dir = WriteModel(GetParam());
  const auto fused = Convert(dir, With(with, converter::Composites::kFuse), "fused");
  ASSERT_TRUE(fused) << fused.error().message;
  ASSERT_EQ(fused->report.sites.size(), 1u);
  EXPECT_TRUE(fused->report.sites[0].fused) << fused->report.sites[0].why;
  EXPECT_THAT(fused->report.sites[0].verification, HasSubstr("agrees (f64"));
  const auto loose = Convert(dir, With(with, converter::Composites::kInline), "inline");
  const auto denied = Convert(dir, With(without, converter::Composites::kFuse), "denied");
  std::vector<std::unique_ptr<Session>> sessions;
  for (const auto* written : {&fused, &loose, &denied}) {
    ASSERT_TRUE(*written) << written->error().message;
    EXPECT_THAT((*written)->report.ops_after,
                Contains(Pair(written == &fused ? "EMBEDDING_LOOKUP" : "WHILE", 1)));
    auto session = Open((*written)->path, without);
    ASSERT_TRUE(session) << session.error().message;
    sessions.push_back(std::move(*session));
  }
  for (const std::vector<int32_t>& ids :
       {std::vector<int32_t>{3}, {6, 0, 2, 2, 5}, {1, 2, 3, 4, 5, 6, 0, 6}, {}}) {
    const auto expected = Invoke(*sessions[0], {Ids(ids)});
    ASSERT_TRUE(expected) << expected.error().message;
    EXPECT_EQ((*expected)[0].type.shape[0], static_cast<int64_t>(ids.size()));
    for (size_t i = 1; i < sessions.size(); ++i) {
      const auto results = Invoke(*sessions[i], {Ids(ids)});
      ASSERT_TRUE(results) << results.error().message;
      EXPECT_EQ((*results)[0], (*expected)[0]) << ids.size() << " ids";
    }
  }
  for (const auto& session : sessions) {
    for (const int32_t id : {7, -1}) {
      const auto outside = Invoke(*session, {Ids({0, id})});
      ASSERT_FALSE(outside);
      EXPECT_THAT(outside.error().message,
                  HasSubstr("index " + std::to_string(id) + " is outside of dimension 7"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, UnfusedLookup,
                         ::testing::Values(Case{"for_loop"},
                                           Case{"for_backwards", Loop::kFor, "embedding_lookup", false, -1},
                                           Case{"while_loop", Loop::kWhile},
                                           Case{"matmul_name", Loop::kFor, "embedding_matmul"},
                                           Case{"rank_3", Loop::kFor, "embedding_lookup", true},
                                           Case{"while_rank_3", Loop::kWhile, "embedding_matmul", true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusebox::testing
