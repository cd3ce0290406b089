// SPDX-License-Identifier: Apache-2.0
// Embedding lookups: from a SavedModel to one op, each refusal, and the kernel over its kinds of tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/run/run.h"
#include "models/saved_model/saved_model_builder.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using namespace fusebox::models;

const std::shared_ptr<Registry>& Embedding() {
  static const auto registry = *Plugins({"fusebox.embedding"});
  return registry;
}

struct Case {
  std::string implements = "embedding_lookup";
  Shape table = {7, 3};
  tf::DataType id_type = tf::DT_INT32;
  Shape ids = {-1};
  bool swapped = false;  // the function's arguments
  tf::DataType table_type = tf::DT_FLOAT;
  bool table_is_input = false;
  std::vector<int64_t> reshaped = {};  // what the body makes of the rows; empty: it leaves them
};

// ids -> rows of a table, through a function that gathers them and carries the name.
std::string WriteModel(const Case& c) {
  models::Random random(5);
  SavedModelBuilder model;
  VariableRef table;
  if (!c.table_is_input) {
    TensorValue value = random.Uniform(c.table, -1, 1);
    value.dtype = c.table_type;
    table = model.AddVariable("table", std::move(value), "table");
  }
  fusebox::Shape rows = c.ids;
  if (!rows.ranked() || !c.table.ranked()) rows = fusebox::Shape();
  else rows.dims().insert(rows.dims().end(), c.table.dims().begin() + 1, c.table.dims().end());
  FunctionBuilder& lookup = model.AddFunction("__inference_lookup");
  lookup.SetAttr(Attr("_implements", c.implements));
  Ref ids, embs;
  const auto add_ids = [&] { ids = lookup.Arg("ids", c.id_type, c.ids); };
  if (c.swapped) add_ids();
  embs = lookup.Arg("embs", c.table_type, c.table);
  if (!c.swapped) add_ids();
  Ref found = lookup.Op("GatherV2", {embs, ids, lookup.Const(Int(0))}, rows);
  if (!c.reshaped.empty())
    found = lookup.Op("Reshape",
                      {found, lookup.Const(Ints(std::vector<int32_t>(c.reshaped.begin(), c.reshaped.end())))},
                      fusebox::Shape(c.reshaped));
  lookup.Return({found});
  FunctionBuilder& f = model.AddFunction("__inference_call");
  const Ref input = f.Arg("ids", c.id_type, c.ids);
  const Ref read = c.table_is_input ? f.Arg("table", c.table_type, c.table) : f.Read(table);
  f.Return(f.Call(lookup, c.swapped ? std::vector<Ref>{input, read} : std::vector<Ref>{read, input}));
  std::vector<std::string> names = {"ids"};
  if (c.table_is_input) names.push_back("table");
  model.AddSignature("serving_default", f, names, {"rows"});
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

TEST(EmbeddingLookup, BecomesOneOpThatGivesWhatTheBodyGives) {
  for (const char* name : {"embedding_lookup", "embedding_matmul"}) {
    for (const fusebox::Shape& table :
         {fusebox::Shape{7, 3}, fusebox::Shape{7, 2, 3}, fusebox::Shape{1, 1}}) {
      SCOPED_TRACE(name + ToString(table));
      const std::string dir = WriteModel({.implements = name, .table = table});
      const auto fused = Convert(dir, With(Embedding(), converter::Composites::kFuse), "fused");
      ASSERT_TRUE(fused) << fused.error().message;
      EXPECT_FALSE(fused->report.verification_failed);
      ASSERT_EQ(fused->report.sites.size(), 1u);
      EXPECT_TRUE(fused->report.sites[0].fused) << fused->report.sites[0].why;
      const auto loose = Convert(dir, With(Embedding(), converter::Composites::kInline), "loose");
      ASSERT_TRUE(loose) << loose.error().message;
      const auto a = Open(fused->path, Embedding()), b = Open(loose->path, Embedding());
      ASSERT_TRUE(a && b);
      for (const std::vector<int32_t>& ids : {std::vector<int32_t>{}, {0}, {0, 0, 0, 0, 0}}) {
        std::vector<int32_t> some = ids;
        for (size_t i = 0; i < some.size(); ++i)
          some[i] = static_cast<int32_t>((i * 5) % static_cast<size_t>(table[0]));
        const Tensor input{{DType::kI32, {static_cast<int64_t>(some.size())}}, Buffer::Of<int32_t>(some)};
        const auto ours = Invoke(**a, {input}), body = Invoke(**b, {input});
        ASSERT_TRUE(ours) << ours.error().message;
        ASSERT_TRUE(body) << body.error().message;
        EXPECT_EQ((*ours)[0].type, (*body)[0].type);
        EXPECT_EQ((*ours)[0], (*body)[0]);
      }
    }
  }
}

// The example in TensorFlow's guide to fused ops ends with such a reshape.
TEST(EmbeddingLookup, FusesABodyThatFlattensItsRows) {
  const Case c = {.table = {7, 2, 3}, .reshaped = {-1, 6}};
  const auto fused = Convert(WriteModel(c), With(Embedding(), converter::Composites::kFuse), "fused");
  ASSERT_TRUE(fused) << fused.error().message;
  EXPECT_THAT(fused->report.ops_after, ElementsAre(Pair("EMBEDDING_LOOKUP", 1)));
  const auto loose = Convert(WriteModel(c), With(Embedding(), converter::Composites::kInline), "loose");
  ASSERT_TRUE(loose) << loose.error().message;
  const auto a = Open(fused->path, Embedding()), b = Open(loose->path, Embedding());
  ASSERT_TRUE(a && b);
  const Tensor ids{{DType::kI32, {3}}, Buffer::Of<int32_t>(std::vector<int32_t>{6, 0, 2})};
  const auto ours = Invoke(**a, {ids}), body = Invoke(**b, {ids});
  ASSERT_TRUE(ours && body);
  EXPECT_EQ((*ours)[0].type, (Type{DType::kF32, {3, 6}}));
  EXPECT_EQ((*ours)[0], (*body)[0]);
}

// Ids of i64 and of other ranks: one lookup between reshapes, for sizes that are known and that are not.
TEST(EmbeddingLookup, ReshapesIdsOfOtherRanks) {
  struct Ids {
    fusebox::Shape declared, given;
  };
  for (const char* name : {"embedding_lookup", "odml.embedding_lookup"})
    for (const tf::DataType type : {tf::DT_INT32, tf::DT_INT64})
      for (const Ids& ids : {Ids{{2, 3}, {2, 3}}, Ids{{-1, 3}, {4, 3}}, Ids{{-1, -1}, {2, 5}},
                             Ids{fusebox::Shape::Scalar(), fusebox::Shape::Scalar()},
                             Ids{{2, -1, 3}, {2, 2, 3}}, Ids{{-1}, {4}}, Ids{{-1, 0}, {4, 0}}})
        for (const fusebox::Shape& table :
             {fusebox::Shape{7, 3}, fusebox::Shape{7, 2, 3}, fusebox::Shape{7, 2, 0}}) {
          SCOPED_TRACE(std::string(name) + ToString(ids.declared) + ToString(table));
          const bool swapped = std::string(name) == "odml.embedding_lookup";
          const std::string dir = WriteModel(
              {.implements = name, .table = table, .id_type = type, .ids = ids.declared, .swapped = swapped});
          const auto fused = Convert(dir, With(Embedding(), converter::Composites::kFuse), "fused");
          ASSERT_TRUE(fused) << fused.error().message;
          ASSERT_TRUE(fused->report.sites.at(0).fused) << fused->report.sites[0].why;
          EXPECT_FALSE(fused->report.verification_failed);
          EXPECT_THAT(fused->report.ops_after, Contains(Pair("EMBEDDING_LOOKUP", 1)));
          const auto loose = Convert(dir, With(Embedding(), converter::Composites::kInline), "loose");
          ASSERT_TRUE(loose) << loose.error().message;
          const auto a = Open(fused->path, Embedding()), b = Open(loose->path, Embedding());
          ASSERT_TRUE(a && b);
          const auto count = static_cast<size_t>(*ids.given.element_count());
          std::vector<int64_t> wide(count);
          for (size_t i = 0; i < count; ++i) wide[i] = static_cast<int64_t>(i * 5 % 7);
          const std::vector<int32_t> narrow(wide.begin(), wide.end());
          const bool is_wide = type == tf::DT_INT64;
          const Tensor input = {{is_wide ? DType::kI64 : DType::kI32, ids.given},
                                is_wide ? Buffer::Of<int64_t>(wide) : Buffer::Of<int32_t>(narrow)};
          const auto ours = Invoke(**a, {input}), body = Invoke(**b, {input});
          ASSERT_TRUE(ours) << ours.error().message;
          ASSERT_TRUE(body) << body.error().message;
          EXPECT_EQ((*ours)[0].type, (*body)[0].type);
          EXPECT_EQ((*ours)[0], (*body)[0]);
        }
}

TEST(EmbeddingLookup, KeepsWideIdsOutsideOfTheTable) {
  const std::string dir = WriteModel({.id_type = tf::DT_INT64});
  const auto fused = Convert(dir, With(Embedding(), converter::Composites::kFuse), "fused");
  ASSERT_TRUE(fused) << fused.error().message;
  const auto session = Open(fused->path, Embedding());
  ASSERT_TRUE(session);
  for (const int64_t id : {int64_t{1} << 32, -(int64_t{1} << 32), int64_t{7}, int64_t{-1}}) {
    const auto found =
        Invoke(**session, {{{DType::kI64, {1}}, Buffer::Of<int64_t>(std::vector<int64_t>{id})}});
    ASSERT_FALSE(found) << id;
    EXPECT_THAT(found.error().message, HasSubstr("is outside of dimension 7"));
  }
}

TEST(EmbeddingLookup, TheFileHoldsTheTableOnceAndNothingElse) {
  const auto fused = Convert(WriteModel({}), With(Embedding(), converter::Composites::kFuse), "fused");
  ASSERT_TRUE(fused) << fused.error().message;
  EXPECT_THAT(fused->report.ops_after, ElementsAre(Pair("EMBEDDING_LOOKUP", 1)));
}

TEST(EmbeddingLookup, SaysWhyItDoesNotApply) {
  const std::pair<Case, const char*> cases[] = {
      {{.swapped = true}, "the table must be operand 0"},
      {{.implements = "odml.embedding_lookup"},
       "is the ids; the table must be operand 1 (operand 1 (table))"},
      {{.table = {7}}, "has rank 1, expected 2 or more (operand 0 (table))"},
      {{.table_type = tf::DT_INT32},
       "is i32, expected f32, or 8 or 4 bits with scales and an f32 result (operand 0 (table))"},
      {{.ids = Shape()}, "has an unknown rank (operand 1 (ids))"},
      {{.table = {7, -1, 2}, .table_is_input = true}, "dimension 1 is not known (operand 0 (table))"},
      {{.table = {7, 2, 3}, .reshaped = {-1, 3}}, "is not one vector of 6 values per id (result 0)"},
      {{.table = {7, 2, 3}, .reshaped = {-1}}, "has rank 1, expected 2 or 3 (result 0)"},
  };
  for (const auto& [c, why] : cases) {
    const auto converted = Convert(WriteModel(c), With(Embedding(), converter::Composites::kFuse), "refused");
    ASSERT_TRUE(converted) << converted.error().message;  // the body is inlined
    ASSERT_EQ(converted->report.sites.size(), 1u);
    const SiteReport& site = converted->report.sites[0];
    EXPECT_FALSE(site.fused);
    ASSERT_EQ(site.rules.size(), 1u) << site.why;
    EXPECT_EQ(site.rules[0].outcome, RuleReport::Outcome::kNotApplicable);
    EXPECT_THAT(site.rules[0].reasons, ElementsAre(HasSubstr(why)));
  }
}

// EMBEDDING_LOOKUP alone, on this table.
Result<Tensors> Look(const Value& table, const std::vector<int32_t>& ids) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId in = f.AddInput({DType::kI32, {static_cast<int64_t>(ids.size())}}, "ids");
  const ValueId rows = f.AddConst(table.type, table.data, "table");
  f.value(rows).quant = table.quant;
  fusebox::Shape shape = table.type.shape;
  shape.dims()[0] = static_cast<int64_t>(ids.size());
  f.outputs = {f.AddNode(Op::kEmbeddingLookup, {in, rows}, {{DType::kF32, shape}}).results[0]};
  FUSEBOX_ASSIGN(const auto model, Model::FromModule(std::move(module), {.registry = Embedding()}));
  FUSEBOX_ASSIGN(const auto session, Session::Create(model));
  return Invoke(*session, {{{DType::kI32, {static_cast<int64_t>(ids.size())}}, Buffer::Of<int32_t>(ids)}});
}

// A composite of LiteRT on this table, whose body reads rows before it scales them.
std::unique_ptr<Module> Scaled(const Value& table, const fusebox::Shape& ids) {
  auto module = std::make_unique<Module>();
  Function& main = module->Add("main");
  Function& body = module->Add("body");
  fusebox::Shape shape = ids;
  shape.dims().push_back(table.type.shape[1]);
  const ValueId ids_in = body.AddInput({DType::kI32, ids}, "ids");
  const ValueId rows_in = body.AddInput(table.type, "table");
  body.value(rows_in).quant = table.quant;
  const ValueId real = body.AddNode(Op::kDequantize, {rows_in}, {{DType::kF32, table.type.shape}}).results[0];
  body.outputs = {body.AddNode(Op::kGather, {real, ids_in}, {{DType::kF32, shape}}).results[0]};
  const ValueId in = main.AddInput({DType::kI32, ids}, "ids");
  const ValueId rows = main.AddConst(table.type, table.data, "table");
  main.value(rows).quant = table.quant;
  Node& node = main.AddNode(Op::kStablehloComposite, {in, rows}, {{DType::kF32, shape}});
  node.name = "odml.embedding_lookup";
  node.version = 1;
  node.body = "body";
  main.outputs = node.results;
  return module;
}

Value Table(Type type, Buffer data, Quant quant) {
  Value value;
  value.type = std::move(type);
  value.data = std::move(data);
  value.quant = std::make_shared<const Quant>(std::move(quant));
  return value;
}

TEST(EmbeddingLookup, ScalesStoredRows) {
  const Buffer bytes = Buffer::Of<int8_t>(std::vector<int8_t>{-128, 127, 0, 5, -1, 64});
  const auto one =
      Look(Table({DType::kI8, {3, 2}}, bytes, {.scales = {0.5f}, .min = {}, .max = {}, .zero_points = {2}}),
           {2, 0, 2});
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_THAT((*one)[0].data.As<float>(), ElementsAre(-1.5f, 31, -65, 62.5f, -1.5f, 31));
  const Quant per_row{.scales = {0.5f, 2, 0.25f}, .min = {}, .max = {}, .zero_points = {0, 0, 0}};
  const auto each = Look(Table({DType::kI8, {3, 2}}, bytes, per_row), {0, 1, 2});
  ASSERT_TRUE(each) << each.error().message;
  EXPECT_THAT((*each)[0].data.As<float>(), ElementsAre(-64, 63.5f, 0, 10, -0.25f, 16));
  // Two to a byte, low half first, rows of three: the second row begins in the middle of a byte.
  const Buffer packed = Buffer::Of<uint8_t>(std::vector<uint8_t>{0x8F, 0x71, 0xE0});
  const Quant four{.scales = {1, 10}, .min = {}, .max = {}, .zero_points = {0, 0}};
  const auto nibbles = Look(Table({DType::kI4, {2, 3}}, packed, four), {1, 0});
  ASSERT_TRUE(nibbles) << nibbles.error().message;
  EXPECT_THAT((*nibbles)[0].data.As<float>(), ElementsAre(70, 0, -20, -1, -8, 1));
}

TEST(EmbeddingLookup, FusesTablesOf8And4Bits) {
  const Buffer bytes = Buffer::Of<int8_t>(std::vector<int8_t>{-128, 127, 0, 5, -1, 64});
  const Buffer packed = Buffer::Of<uint8_t>(std::vector<uint8_t>{0x8F, 0x71, 0xE0});
  const Quant one{.scales = {0.5f}, .min = {}, .max = {}, .zero_points = {2}};
  const Quant rows{.scales = {0.5f, 2, 0.25f}, .min = {}, .max = {}, .zero_points = {0, 0, 0}};
  const Quant four{.scales = {1, 10}, .min = {}, .max = {}, .zero_points = {0, 0}};
  const Value tables[] = {Table({DType::kI8, {3, 2}}, bytes, one), Table({DType::kI8, {3, 2}}, bytes, rows),
                          Table({DType::kI4, {2, 3}}, packed, four)};
  for (const Value& table : tables) {
    SCOPED_TRACE(ToString(table.type));
    const Tensor ids{{DType::kI32, {2, 2}}, Buffer::Of<int32_t>(std::vector<int32_t>{1, 0, 0, 1})};
    std::vector<Tensor> results;
    for (const bool fuse : {true, false}) {
      const auto model = Model::FromModule(Scaled(table, {2, 2}), {.registry = Embedding(), .fuse = fuse});
      ASSERT_TRUE(model) << model.error().message;
      EXPECT_EQ(fuse, !(*model)->fusions().empty() && (*model)->fusions()[0].fused);
      const auto session = Session::Create(*model);
      ASSERT_TRUE(session) << session.error().message;
      const auto found = Invoke(**session, {ids});
      ASSERT_TRUE(found) << found.error().message;
      results.push_back((*found)[0]);
    }
    EXPECT_EQ(results[0], results[1]);
  }
}

TEST(EmbeddingLookup, NamesAnIdThatIsOutside) {
  const Value table = Table({DType::kF32, {3, 2}}, Buffer::Of<float>(std::vector<float>(6)), {});
  for (const int32_t id : {3, -1, INT32_MIN}) {
    const auto found = Look(table, {0, id});
    ASSERT_FALSE(found);
    EXPECT_THAT(found.error().message,
                HasSubstr("index " + std::to_string(id) + " is outside of dimension 3"));
  }
}

TEST(EmbeddingLookup, RefusesScalesThatSayNothing) {
  const Buffer bytes = Buffer::Of<int8_t>(std::vector<int8_t>(6));
  const std::pair<Quant, const char*> bad[] = {
      {{.scales = {1, 2}, .min = {}, .max = {}, .zero_points = {0, 0}, .axis = 1},
       "neither one scale nor one per row"},
      {{.scales = {0}, .min = {}, .max = {}, .zero_points = {0}}, "a scale of 0"}};
  for (const auto& [quant, why] : bad) {
    const auto found = Look(Table({DType::kI8, {3, 2}}, bytes, quant), {0});
    ASSERT_FALSE(found);
    EXPECT_THAT(found.error().message, HasSubstr(why));
  }
}

}  // namespace
}  // namespace fusebox::testing
