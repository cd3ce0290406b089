// SPDX-License-Identifier: Apache-2.0
// Einsum held against its definition: a sum over all values of all labels.
#include <gmock/gmock.h>

#include <map>
#include <numeric>

#include "host/graph/values.h"
#include "tests/converter/import/tables/translate_cases.h"
#include "tests/converter/passes/bench.h"

namespace fusebox::converter {
namespace {

using ::testing::HasSubstr;

struct Operand {
  std::string labels;
  std::vector<double> values;
};

std::map<char, int64_t> SizesOf(const std::string& labels) {
  std::map<char, int64_t> sizes;
  for (const char c : labels) sizes[c] = 2 + (c - 'a') % 4;
  return sizes;
}

std::vector<int64_t> Dims(const std::string& labels) {
  std::vector<int64_t> dims;
  for (const char c : labels) dims.push_back(SizesOf(labels)[c]);
  return dims;
}

size_t IndexOf(const std::string& labels, const std::map<char, int64_t>& at) {
  size_t index = 0;
  for (const char c : labels)
    index = index * static_cast<size_t>(SizesOf(labels)[c]) + static_cast<size_t>(at.at(c));
  return index;
}

std::vector<double> ByDefinition(const std::vector<Operand>& operands, const std::string& result) {
  std::string all = result;
  for (const Operand& operand : operands) {
    for (const char c : operand.labels) {
      if (all.find(c) == std::string::npos) all += c;
    }
  }
  const auto dims = Dims(result);
  std::vector<double> out(
      static_cast<size_t>(std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>())));
  std::map<char, int64_t> at;
  for (const char c : all) at[c] = 0;
  for (bool more = true; more;) {
    double product = 1;
    for (const Operand& operand : operands) product *= operand.values[IndexOf(operand.labels, at)];
    out[IndexOf(result, at)] += product;
    more = false;
    for (const char c : all) {
      if (++at[c] < SizesOf(all)[c]) {
        more = true;
        break;
      }
      at[c] = 0;
    }
  }
  return out;
}

Tensor Numbers(const std::string& labels, int salt) {
  const auto dims = Dims(labels);
  std::vector<float> values(
      static_cast<size_t>(std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>())));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((i * 7 + static_cast<size_t>(salt)) % 11) - 5;
  return F(dims, values);
}

// `open`: labels whose size the graph does not know. `said`: what stands in the file, where that is not the
// equation itself.
void Check(const std::string& equation, bool constant, const std::string& open = "",
           const std::string& said = "") {
  SCOPED_TRACE(said + " " + equation + (constant ? ", constant" : "") + " open " + open);
  const std::string sides = equation.substr(0, equation.find("->")),
                    result = equation.substr(equation.find("->") + 2);
  std::vector<std::string> labels = {sides.substr(0, sides.find(','))};
  if (labels[0] != sides) labels.push_back(sides.substr(labels[0].size() + 1));
  Bench bench;
  Function& f = bench.Add("main");
  std::vector<ValueId> operands;
  std::vector<Tensor> inputs;
  std::vector<Operand> reference;
  for (size_t i = 0; i < labels.size(); ++i) {
    const Tensor value = Numbers(labels[i], static_cast<int>(i) + 3);
    reference.push_back({labels[i], ToDoubles(value)});
    if (i == 1 && constant) {
      operands.push_back(f.AddConst(value));
      continue;
    }
    Type type = value.type;
    for (size_t d = 0; d < labels[i].size(); ++d) {
      if (open.find(labels[i][d]) != std::string::npos) type.shape.dims()[d] = Shape::kUnknown;
    }
    operands.push_back(f.AddInput(type));
    inputs.push_back(value);
  }
  f.outputs = {
      Opaque(f, "Einsum", operands, {DType::kF32, Shape()}, A("equation", said.empty() ? equation : said))};
  bench.Sign(f);
  ASSERT_EQ(bench.Run(FoldToFixpoint), "");
  ASSERT_EQ(Count(f, Op::kOpaque), 0u) << ToText(f);
  const auto outputs = bench.Compute("main", inputs);
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].type.shape.dims(), Dims(result)) << ToText(f);
  EXPECT_EQ(ToDoubles(outputs[0]), ByDefinition(reference, result)) << ToText(f);
}

TEST(Einsum, IsTheSumOverItsLabels) {
  for (const bool constant : {false, true}) {
    for (const char* equation :
         {"ab,bc->ac", "abc,cd->abd", "abc,cde->abde", "aecd,abcd->acbe", "acbe,aecd->abcd", "abcd,cde->abe",
          "abcd,cde->eab", "ab,ab->ab", "ab,ab->a", "ab,cd->abcd", "ab,b->a", "a,ab->b", "abc,abd->acd",
          "abc,bd->ad", "ab,bc->ca", "a,b->ab", "ab,ab->", "ba,cb->ac"})
      Check(equation, constant);
  }
  for (const char* equation : {"ab->ba", "abc->b", "abc->cab"}) Check(equation, false);
}

TEST(Einsum, LeavesSizesOpenThatAreNotKnown) {
  for (const char* open : {"a", "ab", "abd"}) {
    Check("abc,cde->abde", true, open);
    Check("aecd,abcd->acbe", false, open);
    Check("abcd,cde->abe", true, open);
  }
}

TEST(Einsum, WithWeightsIsOneFullyConnected) {
  Bench bench;
  Function& f = bench.Add("main");
  const ValueId x = f.AddInput(F32({-1, -1, 4}));
  f.outputs = {Opaque(f, "Einsum", {x, f.AddConst(Numbers("cd", 1))}, {DType::kF32, Shape()},
                      A("equation", "abc,cd->abd"))};
  bench.Sign(f);
  ASSERT_EQ(bench.Run(FoldToFixpoint), "");
  EXPECT_EQ(Count(f, Op::kFullyConnected), 1u);
  EXPECT_EQ(f.nodes.size(), 1u) << ToText(f);
}

// What `equation` says in letters is `spelled`.
void CheckEllipsis(const std::string& equation, const std::string& spelled) {
  Check(spelled, false, "", equation);
}

TEST(Einsum, HasAnEllipsisForAnyDimensions) {
  CheckEllipsis("...x,xy->...y", "abx,xy->aby");
  CheckEllipsis("...x,xy->...y", "x,xy->y");
  CheckEllipsis("x...,xy->y...", "xab,xy->yab");
  CheckEllipsis("...ij,...jk->...ik", "abij,abjk->abik");
  CheckEllipsis("...ij,...jk->...ik", "abij,bjk->abik");  // counted from the right
  CheckEllipsis("...ij->...ji", "abij->abji");
  CheckEllipsis("b...x,b...x->b...", "bacx,bacx->bac");
}

TEST(Einsum, NamesItsResultItself) {
  CheckEllipsis("ij,jk", "ij,jk->ik");
  CheckEllipsis("ki,jk", "ki,jk->ij");
  CheckEllipsis("...ij,jk", "abij,jk->abik");
  CheckEllipsis("ba", "ba->ab");
}

TEST(Einsum, RefusesWhatItCannotSay) {
  const std::pair<const char*, const char*> bad[] = {
      {"...a,ab->b", "sums over its ellipsis"},
      {"...abc,bc->...a", "for an operand of rank 2"},
      {"a...,b...->ab...", "dimension 1 of operand 0 is 3, dimension 1 of operand 1 is 4"},
      {"aa,ab->b", "repeats a label"},
      {"ab,bc,cd->ad", "more operands than it has"},
      {"ab,bc->ad", "in the result only"},
      {"a1,bc->ac", "not a letter"},
      {"abc,bc->a", "has rank 2, but \"abc\""}};
  for (const auto& [equation, why] : bad) {
    Bench bench;
    Function& f = bench.Add("main");
    const ValueId a = f.AddInput(F32({2, 3})), b = f.AddInput(F32({3, 4}));
    Opaque(f, "Einsum", {a, b}, F32({-1, -1}), A("equation", equation));
    const Node& node = *f.nodes[0];
    Translation translation(bench.module, f, *BuiltIn(), node);
    const Status status = FindTranslation("Einsum")(translation);
    ASSERT_FALSE(status) << equation;
    EXPECT_THAT(status.error().message, HasSubstr(why));
  }
}

TEST(Einsum, RefusesSizesThatOverflow) {
  Bench bench;
  Function& f = bench.Add("main");
  const ValueId a = f.AddInput(F32({int64_t{1} << 40, int64_t{1} << 40})), b = f.AddInput(F32({3, 4}));
  Opaque(f, "Einsum", {a, b}, F32({-1, -1}), A("equation", "ab,bc->ac"));
  Translation translation(bench.module, f, *BuiltIn(), *f.nodes[0]);
  const Status status = FindTranslation("Einsum")(translation);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("operand 0 has too many elements"));
}

}  // namespace
}  // namespace fusebox::converter
