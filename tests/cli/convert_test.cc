// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>

#include "host/base/buffer.h"
#include "host/graph/npy.h"
#include "host/tflite/tflite.h"
#include "tests/cli/command.h"
#include "tests/testing/models/v1_graph.h"

namespace fusebox::cli_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Convert, ADenseModelRunsAsItsFile) {
  const std::string out = Path("dense.tflite");
  const Finished done = Fusebox({"convert", WriteSample("dense"), "-o", out, "--batch", "1"});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(Fusebox({"inspect", out, "--json"}).Json()["ops"]["FULLY_CONNECTED"].get<int>() > 0, true);
  EXPECT_EQ(Fusebox({"run", out, "--signature", "serving_default"}).status, 0);
}

TEST(Convert, TheLstmIsFusedAndAgreesWithItsLoop) {
  const std::string model = WriteSample("keras_lstm"), rnn = PluginFolder("fusebox.rnn");
  const std::string fused = Path("fused.tflite"), loop = Path("loop.tflite");
  const Finished done =
      Fusebox({"convert", model, "-o", fused, "--batch", "1", "--plugin", rnn, "--verify", "strict",
               "--explain", "--report", Path("report.json"), "--require-full-fusion"});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("fused -> UNIDIRECTIONAL_SEQUENCE_LSTM"));
  EXPECT_THAT(done.out, HasSubstr("composites: 1 of 1 fused"));
  EXPECT_THAT(done.out, HasSubstr("before"));
  const auto report = nlohmann::json::parse(ReadTextFile(Path("report.json")).value_or("{}"));
  EXPECT_EQ(report["sites"][0]["fused"], true);
  EXPECT_EQ(report["sites"][0]["rules"][0]["plugin"], "fusebox.rnn");
  EXPECT_EQ(report["ops_after"]["UNIDIRECTIONAL_SEQUENCE_LSTM"], 1);
  ASSERT_EQ(Fusebox({"convert", model, "-o", loop, "--batch", "1", "--composites", "inline"}).status, 0);
  EXPECT_EQ(Fusebox({"inspect", loop, "--json"}).Json()["ops"]["WHILE"], 1);
  const Finished compared = Fusebox({"compare", fused, loop, "--runs", "5", "--plugin", rnn});
  EXPECT_EQ(compared.status, 0) << compared.out << compared.err;
}

TEST(Convert, PrintsTheReportAsJson) {
  const std::string model = WriteSample("keras_lstm");
  const Finished done = Fusebox({"convert", model, "-o", Path("out.tflite"), "--batch", "1", "--plugin",
                                 PluginFolder("fusebox.rnn"), "--json", "--report", Path("report.json")});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.Json()["sites"][0]["fused"], true);
  const nlohmann::json replaced = done.Json()["sites"][0]["replaced"];
  const auto loop = std::ranges::find(replaced, "WHILE", [](const auto& node) { return node["op"]; });
  ASSERT_NE(loop, replaced.end());
  EXPECT_EQ((*loop)["name"], "StatelessWhile");
  EXPECT_EQ(done.Json()["error"], nullptr);
  EXPECT_EQ(done.out, ReadTextFile(Path("report.json")).value_or(""));
  const Finished failed = Fusebox({"convert", Path("missing"), "-o", Path("out2.tflite"), "--json"});
  EXPECT_EQ(failed.status, 2);
  EXPECT_THAT(failed.Json()["error"].get<std::string>(), HasSubstr("missing"));
  const Finished refused =
      Fusebox({"convert", model, "-o", Path("out2.tflite"), "--json", "--signature", "none"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.Json()["error"].get<std::string>(), HasSubstr("none"));
  EXPECT_EQ(Fusebox({"convert", model, "-o", Path("out2.tflite"), "--json", "--explain"}).status, 2);
}

TEST(Convert, QuantizesOnCalibrationData) {
  const std::string model = WriteSample("conv_classifier"), out = Path("int8.tflite"),
                    samples = Path("samples");
  std::filesystem::create_directories(samples);
  const Shape shape({4, 16, 16, 3});
  std::vector<float> values(4 * 768);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97) / 48 - 1;
  ASSERT_TRUE(WriteNpy(samples + "/image.npy", {{DType::kF32, shape}, Buffer::Of<float>(values)}));
  const Finished done = Fusebox({"convert", model, "-o", out, "--batch", "1", "--quantize", "int8",
                                 "--calibration", samples, "--explain", "--report", Path("report.json")});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("largest error"));
  EXPECT_THAT(done.out, Not(HasSubstr("calibration data is")));
  const auto report = nlohmann::json::parse(ReadTextFile(Path("report.json")).value_or("{}"));
  EXPECT_EQ(report["layers"][0]["op"], "CONV_2D");
  EXPECT_EQ(report["layers"][0]["quantized"], true);
  EXPECT_EQ(Fusebox({"run", out}).status, 0);
  const Finished without = Fusebox({"convert", model, "-o", out, "--quantize", "int8"});
  EXPECT_EQ(without.status, 2);
  EXPECT_THAT(without.err, HasSubstr("(--calibration DIR)"));
}

TEST(Convert, WithoutThePluginFullFusionIsNotMet) {
  const std::string out = Path("lstm.tflite");
  const Finished done = Fusebox({"convert", WriteSample("keras_lstm"), "-o", out, "--batch", "1",
                                 "--require-full-fusion", "--report", Path("report.json")});
  EXPECT_EQ(done.status, 1);
  EXPECT_THAT(done.err, HasSubstr("not fused: "));
  EXPECT_FALSE(std::filesystem::exists(out));
  const auto report = nlohmann::json::parse(ReadTextFile(Path("report.json")).value_or("{}"));
  EXPECT_EQ(report["sites"][0]["fused"], false);
}

TEST(Convert, StrictVerificationKeepsTheBodyOfALyingComposite) {
  const std::string out = Path("swapped.tflite");
  const Finished done =
      Fusebox({"convert", WriteSample("lstm_swapped_gates"), "-o", out, "--batch", "1", "--plugin",
               PluginFolder("fusebox.rnn"), "--verify", "strict", "--verify-seed", "5"});
  EXPECT_EQ(done.status, 1) << done.err;
  EXPECT_THAT(done.err, HasSubstr("keeps its body"));
  EXPECT_THAT(done.err, HasSubstr("--verify strict --verify-seed 5"));
  const auto ops = Fusebox({"inspect", out, "--json"}).Json()["ops"];
  EXPECT_FALSE(ops.contains("UNIDIRECTIONAL_SEQUENCE_LSTM"));
  EXPECT_EQ(Fusebox({"run", out}).status, 0);
}

TEST(Convert, ALyingCompositeKeepsItsBodyByDefault) {
  const std::string model = WriteSample("lstm_swapped_gates"), rnn = PluginFolder("fusebox.rnn");
  const Finished done =
      Fusebox({"convert", model, "-o", Path("kept.tflite"), "--batch", "1", "--plugin", rnn});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("fusebox.keras_lstm"));
  EXPECT_THAT(done.err, HasSubstr("keeps its body"));
  EXPECT_THAT(done.err, HasSubstr("--verify sample --verify-seed 1"));
  const auto ops = [](const std::string& file) { return Fusebox({"inspect", file, "--json"}).Json()["ops"]; };
  EXPECT_FALSE(ops(Path("kept.tflite")).contains("UNIDIRECTIONAL_SEQUENCE_LSTM"));
  const Finished off = Fusebox(
      {"convert", model, "-o", Path("fused.tflite"), "--batch", "1", "--plugin", rnn, "--verify", "off"});
  EXPECT_EQ(off.err, "");
  EXPECT_TRUE(ops(Path("fused.tflite")).contains("UNIDIRECTIONAL_SEQUENCE_LSTM"));
}

TEST(Convert, PrintsALineAboutTheFile) {
  const std::string model = WriteSample("keras_lstm"), file = Path("lstm.tflite");
  const std::vector<std::string> line = {"convert",  model,   "-o",       file,
                                         "--batch",  "1",     "--plugin", PluginFolder("fusebox.rnn"),
                                         "--verify", "strict"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), line.begin(), line.end());
    return Fusebox(more).out;
  };
  EXPECT_TRUE(std::regex_match(
      with({}), std::regex(".*lstm\\.tflite: [0-9.]+ KB, [0-9]+ ops -> [0-9]+, 1 of 1 composites fused "
                           "\\(lstm by fusebox\\.rnn\\), 1 verified; [0-9.]+ s\n")))
      << with({});
  EXPECT_EQ(with({"--quiet"}), "");
  EXPECT_THAT(with({"--composites", "inline", "--verify", "off"}), Not(HasSubstr("composites fused (")));
  EXPECT_EQ(nlohmann::json::parse(with({"--json"}))["signatures"].size(), 1u) << "nothing else on stdout";
}

TEST(Convert, NamesFilesOfOtherFrameworks) {
  for (const auto& [name, message] :
       {std::pair("net.onnx", "net.onnx: an ONNX model is not supported; expected"),
        {"net.pt", "net.pt: a PyTorch file is not supported; expected"},
        {"train.py", "train.py: Python code is not supported; expected"}}) {
    std::ofstream(Path(name)) << "some bytes";
    EXPECT_THAT(Fusebox({"convert", Path(name), "-o", Path("x.tflite")}).err, HasSubstr(message));
  }
  std::ofstream(Path("nothing")).flush();
  EXPECT_THAT(Fusebox({"convert", Path("nothing"), "-o", Path("x.tflite")}).err,
              HasSubstr("nothing: the file is empty; not supported"));
}

TEST(Convert, DumpAfterPrintsTheGraphOfThatPass) {
  const std::string model = WriteSample("dense");
  const Finished early = Fusebox({"convert", model, "-o", Path("a.tflite"), "--dump-after", "inline-calls"});
  const Finished late = Fusebox({"convert", model, "-o", Path("b.tflite"), "--dump-after", "finish"});
  EXPECT_THAT(early.out, HasSubstr("MatMul"));
  EXPECT_THAT(late.out, HasSubstr("FULLY_CONNECTED"));
  EXPECT_NE(early.out, late.out);
}

TEST(Convert, CutsAFrozenGraphAtTheNamedTensors) {
  test_models::V1Graph g;
  const std::string x = g.Placeholder("x", tf::DT_FLOAT, Shape()), y = g.Placeholder("y", tf::DT_FLOAT, {2});
  g.Op("Mul", {g.Op("Neg", {x}, tf::DT_INVALID, {}, "n"), y}, tf::DT_INVALID, {}, "z");
  const std::string frozen = Path("frozen.pb");
  ASSERT_TRUE(test_models::WriteFrozenGraph(frozen, g.graph()));
  const Finished done = Fusebox(
      {"convert", frozen, "-o", Path("a.tflite"), "--inputs", "n:0,y", "--outputs", "z", "--shape", "n=3,2"});
  EXPECT_EQ(done.status, 0) << done.err;
  const Finished all = Fusebox({"convert", frozen, "-o", Path("b.tflite"), "--shape", "x=3,2"});
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_THAT(all.err, HasSubstr("inputs: x, y (placeholders"));
  EXPECT_THAT(all.err, HasSubstr("outputs: z (nodes"));
  const Finished keras = Fusebox({"convert", Path("a.tflite"), "-o", Path("c.tflite"), "--inputs", "x"});
  EXPECT_EQ(keras.status, 2);
  EXPECT_THAT(keras.err, HasSubstr("which this is not"));
}

TEST(Convert, ErrorsNameFileAndReasonAndWriteNothing) {
  const std::string dense = WriteSample("dense");
  std::ofstream(Path("file.bin")) << "x";
  std::ofstream(Path("file.pb")) << "x";
  std::filesystem::create_directories(Path("empty"));
  std::filesystem::create_directories(Path("cut"));
  std::filesystem::create_directories(Path("out"));
  std::ofstream(Path("cut/saved_model.pb"))
      << ReadTextFile(dense + "/saved_model.pb").value_or("").substr(0, 100);
  const std::string out = Path("out/x.tflite");
  struct Bad {
    std::vector<std::string> arguments;
    std::vector<std::string> message;
  };
  for (const Bad& bad :
       std::vector<Bad>{{{Path("none"), "-o", out}, {"none", "No such file"}},
                        {{Path("file.bin"), "-o", out},
                         {"file.bin",
                          "not supported; expected the folder of a SavedModel, a Keras file (.h5, .keras), a "
                          ".tflite file or a frozen graph (.pb, .pbtxt)"}},
                        {{Path("file.pb"), "-o", out}, {"file.pb", "not a GraphDef in text form"}},
                        {{dense, "-o", out, "--outputs", "none"}, {"output none", "no such node"}},
                        {{Path("empty"), "-o", out}, {"empty", "saved_model.pb"}},
                        {{Path("cut"), "-o", out}, {"cut", "saved_model.pb"}},
                        {{dense, "-o", out, "--signature", "none"}, {"none", "serving_default"}},
                        {{dense, "-o", out, "--shape", "nothing=1,2"}, {"nothing"}},
                        {{dense, "-o", Path("nowhere/x.tflite")}, {"nowhere", "No such file"}},
                        {{dense, "-o", out, "--report", Path("nowhere/r.json")}, {"nowhere", "No such file"}},
                        {{dense, "-o", out, "--plugin", Path("none")}, {"none", "no such file"}}}) {
    std::vector<std::string> line = bad.arguments;
    line.insert(line.begin(), "convert");
    const Finished done = Fusebox(line);
    EXPECT_EQ(done.status, 2) << done.err;
    EXPECT_EQ(done.out, "");
    for (const std::string& part : bad.message) EXPECT_THAT(done.err, HasSubstr(part));
    EXPECT_THAT(FilesBelow(Path("out")), IsEmpty()) << done.err;
  }
}

TEST(Convert, NothingThatIsReadIsWrittenOver) {
  const std::string model = WriteSample("dense"), out = Path("out.tflite"), link = Path("link.tflite");
  const std::string graph = model + "/saved_model.pb", before = ReadTextFile(graph).value_or("");
  ASSERT_EQ(Fusebox({"convert", model, "-o", out}).status, 0);
  const std::string written = ReadTextFile(out).value_or("");
  std::filesystem::create_symlink(out, link);
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{model, "-o", graph},
                                             {model, "-o", Path("new"), "--report", graph},
                                             {out, "-o", out},
                                             {link, "-o", out},
                                             {out, "-o", link},
                                             {out, "-o", Path("new"), "--report", out},
                                             {model, "-o", out, "--report", link},
                                             {model, "-o", Path("new"), "--report", Path("new")}}) {
    std::vector<std::string> command = {"convert"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Finished done = Fusebox(command);
    EXPECT_EQ(done.status, 2) << testing::PrintToString(arguments);
    EXPECT_THAT(done.err, HasSubstr("write elsewhere"));
  }
  EXPECT_EQ(ReadTextFile(graph).value_or(""), before);
  EXPECT_EQ(ReadTextFile(out).value_or(""), written);
  EXPECT_FALSE(std::filesystem::exists(Path("new")));
  EXPECT_EQ(Fusebox({"convert", model, "-o", model + "/model.tflite"}).status, 0)
      << "a new file in the folder";
  EXPECT_EQ(Fusebox({"convert", model, "-o", "/dev/null", "--report", "/dev/null"}).status, 0);
}

TEST(Convert, OptionsThatLeaveEachOtherNothingToDo) {
  const std::string model = WriteSample("keras_lstm"), out = Path("out.tflite");
  for (const char* composites : {"inline", "keep"}) {
    for (const auto& more : std::vector<std::vector<std::string>>{
             {"--require-full-fusion"}, {"--verify", "strict"}, {"--keep-bodies", "all"}}) {
      std::vector<std::string> command = {"convert", model, "-o", out, "--composites", composites};
      command.insert(command.end(), more.begin(), more.end());
      const Finished done = Fusebox(command);
      EXPECT_EQ(done.status, 2);
      EXPECT_THAT(done.err, HasSubstr(more[0]));
      EXPECT_THAT(done.err, HasSubstr("has no effect"));
    }
  }
  const Finished fixed = Fusebox({"convert", WriteSample("conv_relu"), "-o", out, "--batch", "5"});
  EXPECT_EQ(fixed.status, 0);
  EXPECT_THAT(fixed.err, HasSubstr("--batch 5 has no effect"));
}

TEST(Convert, CalibrationWithOneValueIsToldOf) {
  const std::string samples = Path("samples");
  std::filesystem::create_directories(samples);
  const std::vector<float> values(768);
  ASSERT_TRUE(
      WriteNpy(samples + "/image.npy", {{DType::kF32, Shape({1, 16, 16, 3})}, Buffer::Of<float>(values)}));
  const Finished done = Fusebox({"convert", WriteSample("conv_classifier"), "-o", Path("int8.tflite"),
                                 "--batch", "1", "--quantize", "int8", "--calibration", samples});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("input image: all calibration data is 0"));
}

TEST(Convert, AFileIsKnownByItsContent) {
  const std::string out = Path("noend");
  ASSERT_EQ(Fusebox({"convert", WriteSample("dense"), "-o", out}).status, 0);
  EXPECT_EQ(Fusebox({"convert", out, "-o", Path("again.tflite")}).status, 0);
}

TEST(Convert, AFailureIsInTheReportToo) {
  const std::string report = Path("report.json");
  const Finished done = Fusebox(
      {"convert", WriteSample("dense"), "-o", Path("out"), "--signature", "nosuch", "--report", report});
  EXPECT_EQ(done.status, 2);
  const auto json = nlohmann::json::parse(ReadTextFile(report).value_or("{}"));
  EXPECT_THAT(json.value("error", ""), HasSubstr("nosuch"));
}

TEST(Convert, WhatCannotBeVerifiedIsReported) {
  const Finished done = Fusebox({"convert", WriteSample("custom_fused"), "-o", Path("out.tflite")});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("fused, not verified: the body is a placeholder"));
}

TEST(Convert, StrictFusesAPlaceholderUnlessItIsAnError) {
  const std::vector<std::string> strict = {
      "convert", WriteSample("custom_fused"), "-o", Path("out.tflite"), "--verify", "strict"};
  const Finished fused = Fusebox(strict);
  EXPECT_EQ(fused.status, 0) << fused.err;
  EXPECT_THAT(fused.err, HasSubstr("fused, not verified: the body is a placeholder"));
  EXPECT_TRUE(
      Fusebox({"inspect", Path("out.tflite"), "--json"}).Json()["ops"].contains("CUSTOM:my_custom_fused_op"));
  for (const std::string verify : {"strict", "sample", "off"}) {
    std::vector<std::string> line = strict;
    line.back() = verify;
    line.insert(line.end(), {"--placeholders", "error"});
    const Finished failed = Fusebox(line);
    EXPECT_EQ(failed.status, 2) << failed.err;
    EXPECT_THAT(failed.err, HasSubstr(verify == "off" ? "--placeholders error has no effect with --verify off"
                                                      : "not verified: the body is a placeholder"));
  }
}

TEST(Convert, StrictFusesOnlyWhatIsVerified) {
  const std::string out = Path("no_kernel.tflite");
  const Finished no_kernel =
      Fusebox({"convert", WriteSample("custom_fused_body"), "-o", out, "--verify", "strict"});
  EXPECT_EQ(no_kernel.status, 0) << no_kernel.err;
  EXPECT_THAT(no_kernel.err, HasSubstr("not fused: not verified: the fused op does not run"));
  EXPECT_FALSE(Fusebox({"inspect", out, "--json"}).Json()["ops"].contains("CUSTOM:my_custom_fused_op"));
}

// A file with the composite acme.sum(x, y) = x + y, and a plugin whose rule makes an op of it that no kernel
// takes.
TEST(Convert, StrictFailsIfARuleFails) {
  Module module;
  const Type type{DType::kF32, {2, 3}};
  Function& main = module.Add("main");
  Node& node =
      main.AddNode(Op::kStablehloComposite, {main.AddInput(type, "x"), main.AddInput(type, "y")}, {type});
  node.name = "acme.sum";
  node.version = 1;
  node.body = "body";
  main.outputs = node.results;
  Function& body = module.Add("body");
  body.outputs = body.AddNode(Op::kAdd, {body.AddInput(type), body.AddInput(type)}, {type}).results;
  ASSERT_TRUE(tflite::WriteFile(module, Path("sum.tflite")));
  const std::string folder = Path("sums");
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/fusebox-plugin.json") << R"({"manifest_version": "1.0", "abi": {"major": 1},
 "plugin": {"id": "acme.sums", "version": "1.2.0", "namespace": "acme"},
 "provides": {"rules": [{"id": "acme.sum", "implements": ["acme.sum"], "emits": [{"builtin": "TOPK_V2"}],
                         "rewrite": {}}]}})";
  std::vector<std::string> line = {"convert",          Path("sum.tflite"), "-o",
                                   Path("out.tflite"), "--plugin",         folder};
  EXPECT_EQ(Fusebox(line).status, 0);
  line.insert(line.end(), {"--verify", "strict"});
  const Finished done = Fusebox(line);
  EXPECT_EQ(done.status, 1) << done.err;
  EXPECT_THAT(done.err,
              HasSubstr("acme.sum keeps its body: rule acme.sum of acme.sums: error: the replacement is "
                        "invalid"));
}

TEST(Convert, ServingDefaultIsTheFirstSignature) {
  const std::string out = Path("dense.tflite");
  ASSERT_EQ(Fusebox({"convert", WriteSample("dense"), "-o", out}).status, 0);
  const Finished text = Fusebox({"run", out});
  EXPECT_THAT(text.out, HasSubstr("signature serving_default, one of 2"));
  const auto json = Fusebox({"run", out, "--json"}).Json();
  EXPECT_EQ(json["signature"], "serving_default");
  EXPECT_EQ(json["outputs"],
            Fusebox({"run", out, "--json", "--signature", "serving_default"}).Json()["outputs"]);
}

}  // namespace
}  // namespace fusebox::cli_test
