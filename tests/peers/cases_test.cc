// SPDX-License-Identifier: Apache-2.0
// Conformance cases beside stock TFLite: what a case expects of our kernels, stock's compute too.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

#include "tests/conformance/cases/harness.h"
#include "tests/conformance/delegates/single.h"

namespace fusebox::testing {
namespace {

using conformance::Case;

// Cases of an op that stock TFLite 2.9 does not take, or to which it gives another answer.
struct Judged {
  std::string op;
  std::map<std::string, std::string> not_in_stock = {};  // the case's name, why
};

const std::vector<Judged>& Ops() {
  constexpr const char* kNoScale = "stock reads a scale that is not there";
  static const std::vector<Judged> all = {
      {"EQUAL", {{"u8 is unsigned", kNoScale}}},
      {"EMBEDDING_LOOKUP_SPARSE"},
      {"EXPAND_DIMS"},
      {"FILL"},
      {"GATHER",
       {{"i16 indices, bool values", "stock takes i32 and i64"},
        {"bools, of rows without elements", "LiteRT takes bools, TFLite 2.9 does not"},
        {"columns of strings", "stock takes lists of strings"}}},
      {"GATHER_ND"},
      {"HARD_SWISH",
       {{"i16 by value", "stock takes no 16 bits"},
        {"the ends of the range", "stock gives NaN or infinity"}}},
      {"HASHTABLE_LOOKUP", {{"an empty table", "stock takes none"}}},
      {"LSH_PROJECTION", {{"no items", "stock wants one"}}},
      {"MULTINOMIAL", {{"no class that can be", "stock gives one that is not there"}}},
      {"NOT_EQUAL", {{"u8 is unsigned", kNoScale}}},
      {"RANDOM_STANDARD_NORMAL", {{"without seeds", "stock takes i32"}}},
      {"RANDOM_UNIFORM", {{"without seeds", "stock takes i32"}}},
      {"MEAN",
       {{"a scalar", "stock gives NaN"},
        {"i16", "stock takes no zero point"},
        {"images without a scale", "stock divides 0 by 0 and gives zeros"}}},
      {"REDUCE_PROD", {{"u8", "stock has no such product"}}},
      {"RESHAPE", {{"absent operand", "stock crashes"}, {"shape in i64", "TFLite 2.9 takes i32"}}},
      {"SCATTER_ND", {{"rows", "stock takes i32"}}},
      {"SKIP_GRAM", {{"nearly all words", "stock tries 2^40 ways"}}},
      {"SLICE"},
      {"SPARSE_TO_DENSE",
       {{"places in a matrix, one value", "stock wants one for each place"},
        {"a great many places without indices", "stock wants one value for each place"},
        {"one place", "stock crashes"},
        {"strings", "stock takes none"}}},
      {"SQUEEZE"},
      {"STRIDED_SLICE",
       {{"ellipsis for nothing", "stock lets it stand for a dimension"},
        {"i64 operands, bool values", "TFLite 2.9 takes i32"},
        {"end as an offset", "TFLite 2.9 does not know the option"},
        {"end as an offset from the back", "TFLite 2.9 does not know the option"}}},
      {"TILE"},
  };
  return all;
}

void PrintTo(const Judged& judged, std::ostream* out) { *out << judged.op; }

class StockCases : public ::testing::TestWithParam<Judged> {};

TEST_P(StockCases, Hold) {
  FUSEBOX_NEEDS_STOCK();
  const Judged& judged = GetParam();
  int judged_cases = 0;
  for (const Case& c : conformance::AllCases()) {
    if (c.op != judged.op || !c.error.empty() || !c.refused.empty()) continue;
    SCOPED_TRACE(c.op + ": " + c.name);
    if (const auto skipped = judged.not_in_stock.find(c.name); skipped != judged.not_in_stock.end()) {
      std::cout << "skipped: " << c.op << ": " << c.name << ": " << skipped->second << "\n";
      continue;
    }
    const std::string path = TestDir() + "/case.tflite";
    std::ofstream(path, std::ios::binary) << conformance::FileOf(c, 0);
    auto stock = Stock::Open(path);
    ASSERT_TRUE(stock) << stock.error().message;
    if (const Status status = (*stock)->Run(); !status) {
      ADD_FAILURE() << status.error().message;
      continue;
    }
    for (size_t i = 0; i < c.results.size(); ++i) {
      const auto value = (*stock)->output(static_cast<int>(i));
      ASSERT_TRUE(value) << value.error().message;
      const std::vector<int64_t> dims(value->type.shape.dims().begin(), value->type.shape.dims().end());
      EXPECT_EQ(dims, c.results[i].dims);
      ASSERT_EQ(value->data.size(), c.results[i].bytes.size());
      conformance::ExpectValues(c.results[i], value->data.data(), c);
    }
    ++judged_cases;
  }
  EXPECT_GT(judged_cases, 0);
}

INSTANTIATE_TEST_SUITE_P(Every, StockCases, ::testing::ValuesIn(Ops()),
                         [](const auto& info) { return info.param.op; });

}  // namespace
}  // namespace fusebox::testing
