// SPDX-License-Identifier: Apache-2.0
// Small files whose functions use the next one twice: what they compute has 2^60 nodes without sharing. A
// test that does not end is a failure.
#include <gmock/gmock.h>

#include "host/tflite/tflite.h"
#include "tests/converter/import/files.h"
#include "tests/converter/passes/bench.h"

namespace fusebox::converter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kDeep = 60;
const Type kFlag{DType::kBool, Shape::Scalar()}, kTwo = F32({2});

// f0..f60 map (flag, x) to the same with x negated at the end. `kinds`: the op of each level, in turn.
struct Nest : Bench {
  explicit Nest(std::vector<Op> kinds) {
    Function& never = Add("f0");
    for (int i = 1; i <= kDeep; ++i) Add("f" + std::to_string(i));
    Function& stop = Add("stop");
    stop.AddInput(kFlag), stop.AddInput(kTwo);
    stop.outputs = {stop.AddConst<uint8_t>(DType::kBool, Shape::Scalar(), {0})};
    for (int i = 0; i <= kDeep; ++i) {
      Function& f = *module.Find("f" + std::to_string(i));
      std::vector<ValueId> now = {f.AddInput(kFlag, "flag"), f.AddInput(kTwo, "x")};
      if (i == kDeep) now[1] = f.AddNode(Op::kNeg, {now[1]}, {kTwo}).results[0];
      else now = Level(f, kinds[static_cast<size_t>(i) % kinds.size()], "f" + std::to_string(i + 1), now);
      f.outputs = now;
    }
    Sign(never);
  }

  static std::vector<ValueId> Level(Function& f, Op op, const std::string& next, std::vector<ValueId> now) {
    if (op == Op::kIf) {
      const auto branches = Ref("then_subgraph_index", next, "else_subgraph_index", next);
      const auto& results = f.AddNode(op, {now[0], now[0], now[1]}, {kFlag, kTwo}, branches).results;
      return {results.begin(), results.end()};
    }
    for (int use = 0; use < 2; ++use) {
      Attrs attrs;
      if (op == Op::kWhile) attrs = Ref("cond_subgraph_index", "stop", "body_subgraph_index", next);
      if (op == Op::kCall) attrs = Ref("subgraph", next);
      Node& node = f.AddNode(op, now, {kFlag, kTwo}, attrs);
      if (op == Op::kStablehloComposite) node.name = "twice", node.body = next;
      now = {node.results.begin(), node.results.end()};
    }
    return now;
  }

  Result<std::unique_ptr<Module>> Converted(Options options = {}) {
    const std::string path = testing::FreshDir() + "/model.tflite";
    FUSEBOX_TRY(tflite::WriteFile(module, path));
    Conversion conversion = FromTflite(path);
    conversion.options = options;
    conversion.options.registry = BuiltIn();
    FUSEBOX_ASSIGN(const auto converted, conversion.Convert());
    FUSEBOX_TRY(converted.Write(path));
    return tflite::ReadFile(path);
  }
};

TEST(SharedFunctions, OfBranchesAndLoopsAreConvertedOnce) {
  for (const auto& kinds : {std::vector{Op::kIf},
                            {Op::kWhile},
                            {Op::kIf, Op::kWhile},
                            {Op::kIf, Op::kStablehloComposite, Op::kWhile}}) {
    for (const Quantization quantization : {Quantization::kNone, Quantization::kDynamic}) {
      Nest nest(kinds);
      auto converted = nest.Converted({.quantization = quantization});
      ASSERT_TRUE(converted) << converted.error().message;
      EXPECT_LE((*converted)->functions.size(), 62u);
      const std::vector<Tensor> inputs = {{kFlag, Buffer::Of<uint8_t>(std::vector<uint8_t>{1})},
                                          Floats({2}, {3, 4})};
      const auto expected = FloatsOf(nest.Compute("f0", inputs)[1]);
      nest.module = std::move(**converted);
      EXPECT_EQ(FloatsOf(nest.Compute(nest.module.functions[0]->name, inputs)[1]), expected);
    }
  }
}

TEST(SharedFunctions, OfCallsAndCompositesAreLimited) {
  for (const Op op : {Op::kCall, Op::kStablehloComposite}) {
    const auto converted = Nest({op}).Converted();
    ASSERT_FALSE(converted);
    EXPECT_THAT(converted.error().message, HasSubstr("its nested calls expand to more than"));
  }
}

// Every function is a signature as well.
TEST(SharedFunctions, MayBeSignatures) {
  Nest nest({Op::kIf});
  for (int i = 1; i <= kDeep; ++i) nest.Sign(*nest.module.Find("f" + std::to_string(i)));
  const auto converted = nest.Converted();
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_EQ((*converted)->functions.size(), 61u);
  EXPECT_EQ((*converted)->signatures.size(), 61u);
}

}  // namespace
}  // namespace fusebox::converter
