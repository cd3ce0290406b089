// SPDX-License-Identifier: Apache-2.0
#include "cli/page/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <set>

#include "host/base/buffer.h"
#include "tests/cli/page/models.h"

namespace fusebox::cli::page {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The data of a page that the command wrote.
Json DataOf(const std::string& html) {
  const std::string mark = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = html.find(mark) + mark.size();
  return Json::parse(html.substr(begin, html.find("</script>", begin) - begin));
}

std::string PageOf(const Module& module, const std::string& more = "") {
  Write(module, PathOf("model.tflite"));
  const Finished done =
      Fusebox("inspect " + PathOf("model.tflite") + " --html " + PathOf("page.html") + more);
  EXPECT_EQ(done.status, 0) << done.err;
  return ReadTextFile(PathOf("page.html")).value_or("");
}

TEST(Page, HasAViewPerSubgraphAndEdgesFromLayout) {
  const Json views = ViewsJson(*SmallModel());
  ASSERT_EQ(views.size(), 4u);
  const Json& main = views[0];
  EXPECT_EQ(main["title"], "main");
  EXPECT_EQ(main["nodes"].size(), 6u);  // x, 4 ops, 1 output
  EXPECT_EQ(main["edges"].size(), 6u);
  EXPECT_EQ(main["nodes"][2]["label"], "acme.gelu");
  EXPECT_EQ(main["nodes"][2]["views"], Json::array({1}));
  EXPECT_EQ(main["nodes"][3]["views"].size(), 2u);
  for (const Json& edge : main["edges"]) EXPECT_GE(edge["points"].size(), 4u);
}

TEST(Page, ShowsConstantsByTheirStatistics) {
  const Json values = ValuesJson(*SmallModel());
  const auto weights =
      std::ranges::find_if(values[0], [](const Json& v) { return v.value("count", 0) == 64; });
  ASSERT_NE(weights, values[0].end());
  EXPECT_NEAR((*weights)["min"].get<double>(), -0.4, 1e-6);
  EXPECT_NEAR((*weights)["max"].get<double>(), 8.0 / 9 - 0.4, 1e-6);
  size_t sum = 0;
  for (const Json& bin : (*weights)["bins"]) sum += bin.get<size_t>();
  EXPECT_EQ(sum, 64u);
}

TEST(Page, NamesCannotEndTheScript) {
  const std::string html = PageOf(*SmallModel());
  EXPECT_THAT(html, Not(HasSubstr("<img src=x")));
  const Json data = DataOf(html);
  EXPECT_EQ(data["model"]["subgraphs"].size(), 4u);
  EXPECT_THAT(data["views"][0]["nodes"].back()["label"].get<std::string>(), HasSubstr("</script><img src=x"));
  const std::string title = PageHtml(Json::object(), "<b>&\"\xff");
  EXPECT_THAT(title, HasSubstr("<title>&lt;b>&amp;\"\xef\xbf\xbd"));
}

TEST(Page, LongNamesAreCut) {
  auto module = SmallModel();
  module->functions[0]->value(module->functions[0]->outputs[0]).name = std::string(1 << 20, 'x');
  const std::string html = PageOf(*module);
  EXPECT_LT(html.size(), 200'000u);
  EXPECT_THAT(html, HasSubstr("(1048576 bytes)"));
}

TEST(Page, TellsWhatRunsEachNodeAndWhere) {
  const Json data = DataOf(PageOf(*SmallModel()));
  const Json& runs = data["runs"][0];
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[0]["runner"], "fusebox.cpu");
  ASSERT_EQ(runs[1]["loaded"].size(), 2u);  // the composite's body, inlined
  EXPECT_EQ(runs[1]["loaded"][0]["op"], "TANH");
  EXPECT_EQ(runs[1]["site"]["composite"], "acme.gelu");
  EXPECT_EQ(runs[2]["runner"], "host");
  ASSERT_FALSE(data["memory"].empty());
  EXPECT_EQ(data["memory"][0]["function"], "main");
  for (const Json& plan : data["memory"])
    for (const Json& piece : plan["pieces"]) {
      EXPECT_LE(piece[1].get<size_t>() + piece[2].get<size_t>(), plan["bytes"].get<size_t>());
      EXPECT_LE(piece[3], piece[4]);
      EXPECT_LT(piece[4], plan["steps"].size());
    }
}

// Pieces that are in use in one step do not overlap.
TEST(Page, TheMemoryPlanIsThatOfTheArena) {
  Module module;
  Function& f = module.Add("main");
  const Type type{DType::kF32, {1, 8}};
  f.outputs = {f.AddInput(type, "x")};
  const ValueId weights = f.AddConst<float>(DType::kF32, {8, 8}, std::vector<float>(64, 0.1f), "w");
  for (int i = 0; i < 12; ++i)
    f.outputs = {f.AddNode(Op::kFullyConnected, {f.outputs[0], weights, kNoValue}, {type}).results[0]};
  const Json data = DataOf(PageOf(module));
  ASSERT_EQ(data["memory"].size(), 1u);
  const Json& pieces = data["memory"][0]["pieces"];
  EXPECT_GE(pieces.size(), 11u);  // two of them at a time
  EXPECT_LE(data["memory"][0]["bytes"], 11 * 64);
  for (size_t i = 0; i < pieces.size(); ++i)
    for (size_t k = 0; k < i; ++k) {
      const Json &a = pieces[i], &b = pieces[k];
      if (a[4] < b[3] || b[4] < a[3]) continue;
      const size_t at = a[1], size = a[2], other = b[1], other_size = b[2];
      EXPECT_TRUE(at + size <= other || other + other_size <= at) << a << " and " << b;
    }
}

TEST(Page, PutsTheTimesOfBenchOnNodes) {
  Write(*SmallModel(), PathOf("model.tflite"));
  const std::string profile = PathOf("profile.json");
  const std::string bench =
      "bench " + PathOf("model.tflite") + " --json --profile --num-runs 2 --min-secs 0 --warmup-min-secs 0";
  ASSERT_EQ(std::system(("FUSEBOX_PLUGIN_PATH= " FUSEBOX_COMMAND " " + bench + " >" + profile).c_str()), 0);
  const Json data = DataOf(PageOf(*SmallModel(), " --profile " + profile));
  std::set<std::pair<int, int>> timed;
  for (const Json& row : data["profile"]["rows"])
    for (const Json& at : row["at"]) timed.emplace(at[0], at[1]);
  EXPECT_THAT(timed,
              ::testing::IsSupersetOf({std::pair(0, 0), std::pair(0, 1), std::pair(0, 2), std::pair(0, 3)}));
  Write(*ChainModel(3), PathOf("other.tflite"));
  const Finished other = Fusebox("inspect " + PathOf("other.tflite") + " --html " + PathOf("other.html") +
                                 " --profile " + PathOf("model.tflite"));
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.err, HasSubstr("not JSON"));
  EXPECT_FALSE(std::filesystem::exists(PathOf("other.html")));
}

TEST(Page, GraphvizHasAClusterPerSubgraph) {
  Write(*SmallModel(), PathOf("model.tflite"));
  ASSERT_EQ(Fusebox("inspect " + PathOf("model.tflite") + " --dot " + PathOf("model.dot")).status, 0);
  const std::string dot = ReadTextFile(PathOf("model.dot")).value_or("");
  for (const char* part :
       {"subgraph cluster_3", "f0_n0 [label=\"FULLY_CONNECTED\\nf32[1,8]\"]", "f0_n0 -> f0_n1;",
        "f0_n2 -> f3_a [style=dashed, lhead=cluster_3]", "onerror=alert(1)>\\\"'&\\\\xff\"]"})
    EXPECT_THAT(dot, HasSubstr(part));
}

TEST(Page, ModelExplorerHasWhatRunsEachNode) {
  Write(*SmallModel(), PathOf("model.tflite"));
  ASSERT_EQ(Fusebox("inspect " + PathOf("model.tflite") + " --model-explorer " + PathOf("who.json")).status,
            0);
  const Json who = Json::parse(ReadTextFile(PathOf("who.json")).value_or(""));
  ASSERT_TRUE(who.contains("main") && who.contains("loop_body"));
  EXPECT_EQ(who["main"]["results"]["0"]["value"], "fusebox.cpu");
  EXPECT_EQ(who["main"]["results"]["2"]["value"], "host");
  const Finished idle = Fusebox("inspect " + PathOf("model.tflite") + " --profile " + PathOf("who.json"));
  EXPECT_EQ(idle.status, 2);
  EXPECT_THAT(idle.err, HasSubstr("--profile has no effect without"));
}

TEST(Page, ModelExplorerHasTheTimesOfAProfile) {
  const auto model = SmallModel();
  Json profile;
  profile["rows"] = {{{"avg_ms", 2.0}, {"at", {{0, 0}}}}, {{"avg_ms", 0.5}, {"at", {{0, 0}, {3, 1}}}}};
  const Json times = ModelExplorerJson(*model, {}, profile);
  EXPECT_EQ(times["main"]["results"]["0"]["value"], 2.5);
  EXPECT_EQ(times["loop_body"]["results"]["1"]["value"], 0.5);
  EXPECT_EQ(times["main"]["gradient"].size(), 2u);
}

TEST(Page, ShowsTheReportOfAConversion) {
  const std::string report = PathOf("report.json");
  Write(*SmallModel(), PathOf("in.tflite"));
  const std::string convert = "convert " + PathOf("in.tflite") + " -o " + PathOf("out.tflite");
  ASSERT_EQ(Fusebox(convert + " --composites keep --report " + report).status, 0);
  const Json data = DataOf(PageOf(*SmallModel(), " --report " + report));
  EXPECT_EQ(data["report"]["ops_after"]["WHILE"], 1);
  for (const std::string_view other : {"[]", "{\"sites\": [5]}", "{", ""}) {
    ASSERT_TRUE(WriteFile(report, std::as_bytes(std::span(other))));
    const Finished done =
        Fusebox("inspect " + PathOf("in.tflite") + " --html " + PathOf("no.html") + " --report " + report);
    EXPECT_EQ(done.status, 2) << other;
    EXPECT_THAT(done.err, HasSubstr("report.json: ")) << other;
    EXPECT_FALSE(std::filesystem::exists(PathOf("no.html")));
  }
}

TEST(Page, ShowsWhereModelsDiffer) {
  auto other = SmallModel();
  Function& main = *other->functions[0];
  main.value(main.nodes[0]->operands[2]).data = Buffer::Of<float>(std::vector<float>(8, 0.75f));  // the bias
  Write(*SmallModel(), PathOf("a.tflite"));
  Write(*other, PathOf("b.tflite"));
  const std::string both = "compare " + PathOf("a.tflite") + " " + PathOf("b.tflite") + " --layers --html ";
  EXPECT_EQ(Fusebox(both + PathOf("layers.html")).status, 1);
  const Json data = DataOf(ReadTextFile(PathOf("layers.html")).value_or(""));
  const Json& rows = data["layers"]["rows"];
  ASSERT_GE(rows.size(), 4u);
  EXPECT_EQ(rows[0]["op"], "FULLY_CONNECTED");
  EXPECT_EQ(rows[0]["equal"], false);
  EXPECT_EQ(rows[0]["at"], Json::parse("[[0, 0]]"));
  EXPECT_EQ(rows[1]["op"], "TANH");  // in the composite's body, inlined
  EXPECT_EQ(rows[1]["at"], Json::parse("[[0, 1]]"));
  EXPECT_EQ(rows.back()["at"], Json::parse("[[0, 3]]"));
  const Finished same = Fusebox(both + PathOf("b.tflite"));
  EXPECT_EQ(same.status, 2);
  EXPECT_THAT(same.err, HasSubstr("would replace the input"));
}

TEST(Page, RefusesToReplaceWhatItReads) {
  Write(*ChainModel(3), PathOf("chain.tflite"));
  const Finished done = Fusebox("inspect " + PathOf("chain.tflite") + " --html " + PathOf("chain.tflite"));
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(done.err, HasSubstr("would replace the input"));
  EXPECT_EQ(Fusebox("inspect " + PathOf("chain.tflite")).status, 0);
  EXPECT_EQ(Fusebox("inspect " + PathOf("chain.tflite") + " --html /dev/null/page.html").status, 2);
}

TEST(Page, ModelsWithoutNodesHaveAPage) {
  Module constant;
  Function& f = constant.Add("main");
  f.outputs = {f.AddConst<float>(DType::kF32, {2}, {1, 2}, "c")};
  const Json data = DataOf(PageOf(constant));
  ASSERT_EQ(data["views"][0]["nodes"].size(), 2u);
  EXPECT_EQ(data["views"][0]["nodes"][0]["kind"], "const");
  EXPECT_EQ(data["views"][0]["edges"].size(), 1u);
}

// In groups by scope of the names, each with edges of its own.
TEST(Page, LargeModelsAreInGroups) {
  const auto module = ChainModel(2000);
  const std::vector<Group> groups = GroupsOf(*module->functions[0]);
  EXPECT_GT(groups.size(), 20u);
  size_t next = 0;
  for (const Group& group : groups) {
    EXPECT_EQ(group.begin, next);
    next = group.end;
  }
  EXPECT_EQ(next, 2000u);
  const Json views = ViewsJson(*module);
  ASSERT_EQ(views.size(), groups.size() + 1);
  EXPECT_EQ(views[0]["nodes"].size(), groups.size() + 2);
  EXPECT_EQ(views[0]["nodes"][1]["kind"], "group");
  EXPECT_TRUE(views[1]["group"].get<bool>());
}

TEST(Page, TenThousandNodesTakeLessThanThreeSeconds) {
  const auto module = ChainModel(10'000);
  const auto start = std::chrono::steady_clock::now();
  const Json views = ViewsJson(*module);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 3);
  size_t nodes = 0;
  for (const Json& view : views)
    for (const Json& node : view["nodes"]) nodes += node["kind"] == "op";
  EXPECT_EQ(nodes, 10'000u);
}

}  // namespace
}  // namespace fusebox::cli::page
