// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "host/base/buffer.h"
#include "host/graph/npy.h"
#include "host/tflite/tflite.h"
#include "tests/cli/command.h"
#include "tests/testing/on_device.h"

namespace fusebox::cli_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor Values(Shape shape, const std::vector<float>& values) {
  return {{DType::kF32, std::move(shape)}, Buffer::Of<float>(values)};
}

std::string WriteInput(const std::string& name, const Tensor& value) {
  const std::string path = Path(name);
  EXPECT_TRUE(WriteNpy(path, value));
  return path;
}

std::vector<float> Floats(const std::string& path) {
  const Result<Tensor> value = ReadNpy(path);
  EXPECT_TRUE(value) << value.error().message;
  if (!value) return {};
  const auto floats = value->data.As<float>();
  return {floats.begin(), floats.end()};
}

TEST(Run, PrintsTheAnswerFirstThoughPluginsAreFoundTwice) {
  const std::string model = WriteAddModel("add.tflite", 1),
                    folder = std::string(FUSEBOX_BUILD_DIR "/plugins");
  std::filesystem::copy(PluginFolder("fusebox.rnn"), Path("copy"), std::filesystem::copy_options::recursive);
  const Finished done =
      Fusebox({"run", model, "--plugin", folder, "--plugin", Path("copy"), "--delegate", "none"});
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.err, "");
  EXPECT_THAT(done.out, testing::StartsWith("output"));
}

TEST(Run, StopsAtTheMemoryLimit) {
  const std::string model = WriteAddModel("add.tflite", 1);
  const Finished done = Fusebox({"run", model, "--memory-limit", "32"});
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(done.err, HasSubstr("f32[2,3]"));
  EXPECT_THAT(done.err, HasSubstr("the memory limit is 32 bytes"));
  EXPECT_EQ(Fusebox({"run", model, "--memory-limit", "1M"}).status, 0);
}

// 12 TiB, declared by a small file: no command fills any of it before the plan is known to fit.
TEST(Run, RefusesAGiantInputByName) {
  Module module;
  Function& f = module.Add("main");
  const Type giant{DType::kF32, Shape({-1, int64_t{1} << 20, 1 << 20, 3})};
  f.outputs = f.AddNode(Op::kAbs, {f.AddInput(giant, "pixels")}, {giant}).results;
  const std::string model = Path("giant.tflite");
  ASSERT_TRUE(tflite::WriteFile(module, model));
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"run", model},
        {"run", model, "--memory-limit", "1G"},
        {"bench", model},
        {"compare", model, model},
        {"run", model, "--runs", "2", "--output-dir", Path("giant")}}) {
    const Finished done = Fusebox(arguments);
    EXPECT_EQ(done.status, 2) << done.err;
    EXPECT_THAT(done.err, HasSubstr("input 0 'pixels'"));
    EXPECT_THAT(done.err, HasSubstr("the memory limit is"));
  }
}

// It fits, but its result does not.
TEST(Run, RefusesAGiantResultByName) {
  Module module;
  Function& f = module.Add("main");
  const Type row{DType::kF32, Shape({1 << 24, 1})}, column{DType::kF32, Shape({1, 1 << 24})};
  f.outputs = f.AddNode(Op::kAdd, {f.AddInput(row, "a"), f.AddInput(column, "b")},
                        {{DType::kF32, Shape({1 << 24, 1 << 24})}})
                  .results;
  f.value(f.outputs[0]).name = "table";
  ASSERT_TRUE(tflite::WriteFile(module, Path("wide.tflite")));
  const Finished done = Fusebox({"run", Path("wide.tflite")});
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(done.err, HasSubstr("'table', f32[16777216,16777216]"));
}

// The delegate allocates the memory of values inside of its partition: 16 MB each.
TEST(Run, CountsValuesInsideOfAPartition) {
  Module module;
  Function& f = module.Add("main");
  const Type table{DType::kF32, Shape({2048, 2048})}, mean{DType::kF32, Shape({1, 1})};
  const ValueId a = f.AddInput({DType::kF32, Shape({2048, 1})}, "a");
  const ValueId b = f.AddInput({DType::kF32, Shape({1, 2048})}, "b");
  const ValueId sum = f.AddNode(Op::kAdd, {a, b}, {table}).results[0];
  const ValueId negative = f.AddNode(Op::kNeg, {sum}, {table}).results[0];
  const ValueId product = f.AddNode(Op::kMul, {sum, negative}, {table}).results[0];
  const ValueId axes = f.AddConst<int32_t>(DType::kI32, {2}, {0, 1});
  Attrs attrs;
  attrs.Set("keep_dims", true);
  f.outputs = f.AddNode(Op::kMean, {product, axes}, {mean}, attrs).results;
  const std::string model = Path("inside.tflite");
  ASSERT_TRUE(tflite::WriteFile(module, model));
  const auto run = [&](const char* limit) {
    return Fusebox({"run", model, "--plugin", PluginFolder("fusebox.xnnpack"), "--memory-limit", limit});
  };
  const Finished refused = run("20M");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("values inside of"));
  const Finished fits = run("100M");
  EXPECT_EQ(fits.status, 0) << fits.err;
}

TEST(Run, AMemoryLimitIsANumberOfBytes) {
  const std::string model = WriteAddModel("add.tflite", 1);
  for (const char* command : {"run", "bench"}) {
    for (const char* limit : {"-1", "-500M", "0", "0K", "", "M", "1X"}) {
      const Finished done = Fusebox({command, model, "--memory-limit", limit});
      EXPECT_EQ(done.status, 2) << limit;
      EXPECT_THAT(done.err, HasSubstr("--memory-limit")) << limit;
    }
  }
}

TEST(Run, ComputesFromAFileGivenByName) {
  const std::string model = WriteAddModel("add.tflite", 10);
  const std::string input = WriteInput("x.npy", Values({2, 3}, {1, 2, 3, 4, 5, 6}));
  const Finished done = Fusebox({"run", model, "--input", "x=" + input, "--json"});
  ASSERT_EQ(done.status, 0) << done.err;
  const nlohmann::json json = done.Json();
  EXPECT_EQ(json["outputs"][0]["name"], "y");
  EXPECT_EQ(json["outputs"][0]["dtype"], "f32");
  EXPECT_THAT(json["outputs"][0]["shape"], ElementsAre(2, 3));
  EXPECT_THAT(json["outputs"][0]["first_values"], ElementsAre(11, 12, 13, 14, 15, 16));
  EXPECT_EQ(done.err, "");
}

TEST(Run, TablesNameTheFirstOfWhatWasFused) {
  Module module;
  Function& f = module.Add("main");
  const Type type{DType::kF32, {2}};
  const ValueId y = f.AddNode(Op::kAbs, {f.AddInput(type, "x")}, {type}).results[0];
  f.value(y).name = "net/conv;net/bias;net/relu";
  f.outputs = {y};
  const std::string model = Path("fused.tflite");
  ASSERT_TRUE(tflite::WriteFile(module, model));
  const Finished done = Fusebox({"run", model, "--explain"});
  EXPECT_THAT(done.out, HasSubstr("node 0 ABS (net/conv;...) "));
  const auto json = Fusebox({"run", model, "--explain", "--json"}).Json();
  EXPECT_EQ(json["placements"][0]["node"], "node 0 ABS (net/conv;net/bias;net/relu)");
}

TEST(Run, JsonKeepsItsKeys) {
  const nlohmann::json json = Fusebox({"run", WriteAddModel("add.tflite", 1), "--json", "--explain"}).Json();
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("inputs", "median_us", "model", "notices", "outputs", "placements", "runs",
                                "signature", "threads"));
  ASSERT_EQ(json["placements"].size(), 1u);
  EXPECT_EQ(json["placements"][0]["op"], "ADD");
  EXPECT_EQ(json["placements"][0]["runner"], "fusebox.cpu");
}

TEST(Run, TextSaysOutputsAndLatency) {
  const Finished done = Fusebox({"run", WriteAddModel("add.tflite", 1), "--runs", "5"});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("output"));
  EXPECT_THAT(done.out, HasSubstr("[2,3]"));
  EXPECT_THAT(done.out, HasSubstr("\nmedian latency of 5 runs: "));
  EXPECT_THAT(done.out, HasSubstr(" us (1 thread)"));
  EXPECT_THAT(Fusebox({"run", WriteAddModel("add.tflite", 1)}).out, HasSubstr("\nfirst run: "));
}

TEST(Run, HelpListsWordsWithoutTheirNumbers) {
  const std::string help = Fusebox({"run", "--help"}).out;
  EXPECT_THAT(help, HasSubstr("{warn,body,error}"));
  EXPECT_THAT(help, Not(HasSubstr("->")));
}

TEST(Run, NoMoreThreadsThanTheProcessMayUse) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  const std::string model = WriteAddModel("add.tflite", 1);
  for (const auto& [set, count] : {std::pair(one, 1), std::pair(all, CPU_COUNT(&all))}) {
    ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    for (const char* threads : {"0", "1024"})
      EXPECT_EQ(Fusebox({"run", model, "--json", "--threads", threads}).Json()["threads"], count);
  }
}

TEST(Run, InputDirAndOutputDirAreFilesOfOneForm) {
  const std::string model = WriteAddModel("add.tflite", 2);
  std::filesystem::create_directories(Path("in"));
  WriteInput("in/x.npy", Values({2, 3}, {0, 1, 2, 3, 4, 5}));
  const std::string out = Path("out");
  const Finished done =
      Fusebox({"run", model, "--input-dir", Path("in"), "--output-dir", out, "--runs", "2"});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(FilesBelow(out), ElementsAre("in0.npy", "io.json", "run0.out0.npy", "run1.out0.npy"));
  EXPECT_THAT(Floats(out + "/run1.out0.npy"), ElementsAre(2, 3, 4, 5, 6, 7));
  const auto io = nlohmann::json::parse(ReadTextFile(out + "/io.json").value_or("{}"));
  EXPECT_EQ(io["inputs"], nlohmann::json::parse(R"([{"name": "x_tensor", "dtype": 1, "shape": [2, 3]}])"));
  EXPECT_EQ(io["outputs"], nlohmann::json::parse(R"([{"name": "y_tensor", "dtype": 1, "shape": [2, 3]}])"));
  // What was written can be read again: in0.npy comes before a file with the input's name.
  const Finished again = Fusebox({"run", model, "--input-dir", out, "--json"});
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.Json()["outputs"][0]["first_values"], ElementsAre(2, 3, 4, 5, 6, 7));
}

TEST(Run, SeedAloneDecidesMadeUpInputs) {
  const std::string model = WriteAddModel("add.tflite", 0);
  for (const char* run : {"a", "b", "c"}) {
    const char* seed = *run == 'c' ? "8" : "7";
    ASSERT_EQ(Fusebox({"run", model, "--seed", seed, "--output-dir", Path(run)}).status, 0);
  }
  const auto a = Floats(Path("a/in0.npy"));
  EXPECT_EQ(a, Floats(Path("b/in0.npy")));
  EXPECT_NE(a, Floats(Path("c/in0.npy")));
  EXPECT_EQ(a, Floats(Path("a/run0.out0.npy")));
  EXPECT_THAT(a, testing::Each(testing::AllOf(testing::Ge(-1), testing::Lt(1))));
}

std::string WriteOnDevice(const std::vector<std::string>& order) {
  const std::string path = Path("train.tflite");
  EXPECT_TRUE(tflite::WriteFile(*fixtures::OnDevice::Make(order), path));
  return path;
}

TEST(Run, ASignatureRunsWhateverAnotherOneHolds) {
  const std::string x = WriteInput("x.npy", Values({2}, {10, 100}));
  for (const std::vector<std::string>& order : {std::vector<std::string>{"infer", "restore", "save", "train"},
                                                {"save", "restore", "train", "infer"}}) {
    const std::string model = WriteOnDevice(order);
    const Finished infer =
        Fusebox({"run", model, "--signature", "infer", "--input", "x=" + x, "--json", "--explain"});
    ASSERT_EQ(infer.status, 0) << infer.err;
    EXPECT_EQ(infer.err, "");
    EXPECT_THAT(infer.Json()["outputs"][0]["first_values"], ElementsAre(20, 300));
    const Finished train = Fusebox({"run", model, "--signature", "train", "--input", "x=" + x, "--json"});
    ASSERT_EQ(train.status, 0) << train.err;
    EXPECT_THAT(train.Json()["outputs"][0]["first_values"], ElementsAre(12, 103));
  }
}

TEST(Run, ASignatureThatCannotRunSaysWhyAndWhatCan) {
  const std::string model = WriteOnDevice({"save", "infer", "restore", "train"});
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"run", model}, {"run", model, "--signature", "save"}}) {
    const Finished done = Fusebox(line);
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(done.err, HasSubstr("train.tflite: signature save cannot run: function save_function: "));
    EXPECT_THAT(done.err, HasSubstr("no kernel for FlexSaveV2("));
    EXPECT_THAT(done.err, HasSubstr("; signatures that can run: infer, train\n"));
  }
}

TEST(Run, WithoutASignatureTheOthersAreNamed) {
  const std::string model = WriteOnDevice({"infer", "restore", "save", "train"});
  const Finished text = Fusebox({"run", model});
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("signature infer, one of 4; --signature KEY selects another (train)\n"));
  EXPECT_THAT(text.err, HasSubstr("train.tflite: signature save cannot run: function save_function: "));
  EXPECT_THAT(text.err, HasSubstr("no kernel for FlexRestoreV2("));
  const Finished json = Fusebox({"run", model, "--json"});
  ASSERT_EQ(json.status, 0) << json.err;
  EXPECT_THAT(json.Json()["notices"].dump(), HasSubstr("signature save cannot run: "));
}

TEST(Run, WhereNoSignatureRunsTheFirstReasonIsTheError) {
  const std::string model = WriteOnDevice({"save", "restore"});
  const Finished done = Fusebox({"run", model, "--signature", "restore", "--import", "never"});
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(done.err, HasSubstr("train.tflite: function save_function: "));
  EXPECT_THAT(done.err, HasSubstr("no kernel for FlexSaveV2("));
}

TEST(Run, WhereNoSignatureRunsTheErrorIsTheImporters) {
  const std::string model = WriteOnDevice({"save", "restore"});
  const Finished done = Fusebox({"run", model, "--signature", "restore"});
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(done.err, HasSubstr("train.tflite: pass legal: signature save: op SaveV2"));
}

struct Bad {
  std::vector<std::string> arguments;
  std::vector<std::string> message;
};

TEST(Run, ErrorsNameFileAndReasonAndWriteNothing) {
  const std::string model = WriteAddModel("add.tflite", 1);
  const std::string small = WriteInput("small.npy", Values({2}, {1, 2}));
  std::ofstream(Path("broken.tflite")) << "this is no model";
  std::ofstream(Path("broken.npy")) << "this is no array";
  std::ofstream(Path("empty.tflite"));
  std::ofstream(Path("model.h5")) << "\x89HDF\r\n\x1a\n";
  std::filesystem::create_directories(Path("empty"));
  const std::string saved = WriteSample("dense");
  const std::string pipe = Path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const Bad& bad : std::vector<Bad>{
           {{Path("none.tflite")}, {"none.tflite", "No such file"}},
           {{Path("broken.tflite")}, {"broken.tflite", "not a .tflite file"}},
           {{Path("empty.tflite")}, {"empty.tflite", "the file is empty"}},
           {{Path("model.h5")}, {"model.h5", "an HDF5 file", "fusebox convert MODEL.h5"}},
           {{Path("empty")}, {"empty", "is a folder, expected a file"}},
           {{saved}, {"is a SavedModel", "fusebox convert " + saved + " -o"}},
           {{model, "--input", "x=" + small}, {"small.npy", "f32[2]", "f32[2,3]"}},
           {{model, "--input", "x=" + Path("broken.npy")}, {"broken.npy"}},
           {{model, "--input", "x=" + Path("none.npy")}, {"none.npy", "No such file"}},
           {{model, "--input", "X=" + small}, {"add.tflite", "no input X", "did you mean \"x\"?"}},
           {{model, "--input", small}, {"expected NAME=FILE"}},
           {{model, "--input", "x="}, {"expected NAME=FILE"}},
           {{pipe}, {"pipe", "not a regular file"}},
           {{model, "--input-dir", Path("empty")}, {"empty", "in0.npy", "x.npy"}},
           {{model, "--input-dir", Path("nowhere")}, {"nowhere", "No such file"}},
           {{model, "--signature", "other"}, {"add.tflite", "other", "serving_default"}},
           {{model, "--plugin", Path("none.so")}, {"none.so", "no such file"}},
           {{model, "--config", Path("none.json")}, {"none.json", "No such file"}}}) {
    std::vector<std::string> line = bad.arguments;
    line.insert(line.begin(), "run");
    line.insert(line.end(), {"--output-dir", Path("out")});
    const Finished done = Fusebox(line);
    EXPECT_EQ(done.status, 2) << done.err;
    EXPECT_EQ(done.out, "") << done.err;
    for (const std::string& part : bad.message) EXPECT_THAT(done.err, HasSubstr(part));
    EXPECT_FALSE(std::filesystem::exists(Path("out"))) << done.err;
  }
}

TEST(Run, AConfigurationWithATypoIsToldByItsPlace) {
  std::ofstream(Path("fusebox.json")) << "{\n  \"plugin_pth\": []\n}\n";
  const Finished done = Fusebox({"run", WriteAddModel("add.tflite", 1), "--config", Path("fusebox.json")});
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(done.err, HasSubstr("fusebox.json:2:3"));
  EXPECT_THAT(done.err, HasSubstr("plugin_path"));
}

// y = t.twice(x), fused by a plugin that is not here, with a body.
std::string WriteFusedModel() {
  Module module;
  const Type type{DType::kF32, {2}};
  Function& f = module.Add("main");
  Node& node = f.AddNode(Op::kStablehloComposite, {f.AddInput(type, "x")}, {type});
  node.name = "t.twice";
  node.version = 1;
  node.body = "body";
  f.outputs = node.results;
  Function& body = module.Add("body");
  const ValueId x = body.AddInput(type, "x");
  body.outputs = body.AddNode(Op::kAdd, {x, x}, {type}).results;
  const Status written = tflite::WriteFile(module, Path("fused.tflite"));
  EXPECT_TRUE(written) << written.error().message;
  return Path("fused.tflite");
}

TEST(Run, ACompositeWithoutPluginRunsItsBodyOrFails) {
  const std::string model = WriteFusedModel();
  const Finished warn = Fusebox({"run", model});
  EXPECT_EQ(warn.status, 0);
  EXPECT_THAT(warn.err, Not(HasSubstr("t.twice")));  // no plugin wants the name
  EXPECT_EQ(Fusebox({"run", model, "--missing", "body"}).status, 0);
  const Finished error = Fusebox({"run", model, "--missing", "error"});
  EXPECT_EQ(error.status, 2);
  EXPECT_THAT(error.err,
              HasSubstr("composite t.twice: no plugin has a rule for this name; install its plugin"));
  EXPECT_THAT(Fusebox({"run", model, "--shadow", "1"}).out, HasSubstr("no fused op with a body was called"));
  EXPECT_EQ(Fusebox({"run", model, "--shadow", "0"}).status, 2);
}

}  // namespace
}  // namespace fusebox::cli_test
