// SPDX-License-Identifier: Apache-2.0
// Where the host places nodes, for made-up estimates (fusebox.cost/1).
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/delegates/models.h"

namespace fusebox::delegates_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Estimates of a node, in ns; negative: none.
struct Estimate {
  double toy, kernel;
};

// y = x + x, then y = y + y, and so on.
std::unique_ptr<Module> Sums(const std::vector<Estimate>& estimates, bool throws = false) {
  auto module = std::make_unique<Module>();
  module->source = "sums.tflite";
  Function& f = module->Add("main");
  ValueId value = f.AddInput(F32({2}), "x");
  for (const Estimate& estimate : estimates) {
    Attrs attrs;
    attrs.Set("toy_ns", estimate.toy);
    attrs.Set("kernel_ns", estimate.kernel);
    if (throws) attrs.Set("throws", true);
    Node& node = f.AddNode(Op::kCustom, {value, value}, {F32({2})}, std::move(attrs));
    node.name = "test.packed_add";
    value = node.results[0];
  }
  f.outputs = {value};
  return module;
}

std::shared_ptr<const Model> Placed(const std::vector<Estimate>& estimates, double border, double byte = 0) {
  Config::Delegate toy{"toy"};
  toy.options.Set("border_ns", border);
  toy.options.Set("byte_ns", byte);
  return Open(Sums(estimates), {toy});
}

// 'T': the toy, 'K': its kernel.
std::string Choice(const Model& model) {
  std::string choice;
  for (const Placement& row : model.placements()) choice += row.runner.starts_with("toy") ? 'T' : 'K';
  return choice;
}

std::string Chosen(const std::vector<Estimate>& estimates, double border, double byte = 0) {
  return Choice(*Placed(estimates, border, byte));
}

TEST(Place, PutsEachNodeWhereTheSumIsLeast) {
  const std::vector<Estimate> middle = {{10, 2000}, {1000, 10}, {10, 2000}};
  EXPECT_EQ(Chosen(middle, 100), "TKT");
  EXPECT_EQ(Chosen(middle, 494), "TKT");
  EXPECT_EQ(Chosen(middle, 496), "TTT");  // leaving and entering again costs more than the node
  EXPECT_EQ(Chosen({{90, 100}, {90, 100}, {90, 100}}, 14), "TTT");
  EXPECT_EQ(Chosen({{90, 100}, {90, 100}, {90, 100}}, 16), "KKK");  // the border takes what the nodes save
  EXPECT_EQ(Chosen({{90, 100}, {90, 100}, {90, 100}}, 10, 0.5), "TTT");
  EXPECT_EQ(Chosen({{90, 100}, {90, 100}, {90, 100}}, 10, 1), "KKK");  // 8 bytes cross
}

TEST(Place, RunsTheModelThatItPlaced) {
  const auto session = SessionOf(Placed({{10, 1000}, {1000, 10}, {10, 1000}}, 100));
  const int before = toy::counts.invoked;
  EXPECT_THAT(Output(*session, {1, 2}), ElementsAre(8, 16));
  EXPECT_EQ(toy::counts.invoked - before, 2);
}

TEST(Place, KeepsNodesWithoutAnEstimate) {
  const double none = -1;
  EXPECT_EQ(Chosen({{none, 1}, {1000, none}, {none, none}}, 100), "TTT");
  EXPECT_EQ(Chosen({{1000, 10}, {none, 1}, {1000, 10}}, 100), "KTK");
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_EQ(Chosen({{bad, 1}, {1000, bad}}, 100), "TT");
  EXPECT_EQ(Choice(*Open(Sums({{1000, 10}}, true), {ToyThat()})), "T");  // cost of the kernel threw
}

TEST(Place, ExplainsBothEstimates) {
  const auto rows = Placed({{1500, 300000}, {200000, 12340}, {1500, 300000}}, 100)->placements();
  EXPECT_EQ(rows[0].runner, "toy (partition 0)");
  EXPECT_EQ(rows[0].why, "toy: estimates 1.5 us, on kernels 300.0 us");
  EXPECT_EQ(rows[1].runner, "test.toy");
  EXPECT_EQ(rows[1].why, "toy: COST: estimates 200.0 us, on kernels 12.3 us");
}

TEST(Place, LeavesDelegatesWithoutEstimatesAsTheyAre) {
  for (const Placement& row : Open(Chain(), {ToyThat()})->placements())
    EXPECT_THAT(row.why, Not(HasSubstr("estimates")));
}

// The sum for one choice of all.
double SumOf(const std::vector<Estimate>& estimates, const std::string& choice, double border) {
  double sum = 0;
  char before = 'K';
  for (size_t i = 0; i <= choice.size(); ++i) {
    const char now = i < choice.size() ? choice[i] : 'K';
    if (now != before) sum += border;
    before = now;
    if (i < choice.size()) sum += now == 'T' ? estimates[i].toy : estimates[i].kernel;
  }
  return sum;
}

TEST(Place, FindsTheLeastSumOfAllChoices) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> ns(1, 100);
  for (int round = 0; round < 40; ++round) {
    std::vector<Estimate> estimates(7);
    for (Estimate& estimate : estimates) estimate = {ns(random), ns(random)};
    const double border = ns(random) / 2;
    double least = std::numeric_limits<double>::infinity();
    for (unsigned bits = 0; bits < 1u << estimates.size(); ++bits) {
      std::string choice;
      for (size_t i = 0; i < estimates.size(); ++i) choice += (bits >> i & 1) != 0 ? 'T' : 'K';
      least = std::min(least, SumOf(estimates, choice, border));
    }
    EXPECT_NEAR(SumOf(estimates, Chosen(estimates, border), border), least, 1e-6);
  }
}

TEST(Profile, HasTheEstimatesBesideTheTimes) {
  const auto model = Placed({{1500, 300000}, {200000, 12340}, {1500, 300000}}, 100);
  auto session = *Session::Create(model, {.profile = true});
  Output(*session, {1, 2});
  std::vector<double> estimates;
  for (const NodeTime& row : session->times()) estimates.push_back(row.estimate_ns);
  EXPECT_THAT(estimates, ElementsAre(1700, 12340, 1700));  // with both borders of a partition
}

}  // namespace
}  // namespace fusebox::delegates_test
