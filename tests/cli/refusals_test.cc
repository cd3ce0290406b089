// SPDX-License-Identifier: Apache-2.0
// What is said of models that cannot be converted: the first cause, and what helps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "models/saved_model/saved_model_builder.h"
#include "tests/cli/command.h"

namespace fusebox::cli_test {
namespace {

namespace fs = std::filesystem;
using namespace fusebox::models;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string Refusal(const std::string& model, std::vector<std::string> more = {}) {
  std::vector<std::string> command = {"convert", model, "-o", Path("refused.tflite")};
  command.insert(command.end(), more.begin(), more.end());
  const Finished done = Fusebox(command);
  EXPECT_EQ(done.status, 2) << done.err;
  EXPECT_FALSE(fs::exists(Path("refused.tflite")));
  return done.err;
}

std::string Write(const std::string& name, const tf::SavedModel& model, const SavedModelBuilder& builder) {
  const Status written = WriteSavedModel(Path(name), model, builder.Checkpoint());
  EXPECT_TRUE(written) << written.error().message;
  return Path(name);
}

// Functions y = -x of these names, known to the objects, and no signature.
std::string WriteFunctions(const std::vector<std::string>& names, tf::DataType dtype = tf::DT_FLOAT) {
  SavedModelBuilder builder;
  std::vector<std::string> numbered;
  for (const std::string& name : names) {
    FunctionBuilder& f = builder.AddFunction(name);
    f.Return({f.Op(dtype == tf::DT_FLOAT ? "Neg" : "Identity", {f.Arg("x", dtype, {4})}, {4})});
    numbered.push_back(f.name());
  }
  tf::SavedModel model = builder.ToProto();
  tf::MetaGraphDef& graph = *model.mutable_meta_graphs(0);
  graph.clear_signature_def();
  for (const std::string& name : numbered)
    (*graph.mutable_object_graph_def()->mutable_concrete_functions())[name];
  return Write("functions", model, builder);
}

TEST(Refusals, WithoutSignaturesTheFunctionsAreNamed) {
  const std::string model = WriteFunctions({"__inference___call__", "__inference_step", "__inference_step"});
  const std::string said = Refusal(model);
  EXPECT_THAT(said,
              StartsWith("fusebox: " + model + ": it has no signatures; functions that can be converted: "));
  EXPECT_THAT(said, AllOf(HasSubstr("__call__"), Not(HasSubstr("__inference___call__")),
                          HasSubstr("__inference_step_"), EndsWith(" (use --signature NAME)\n")));
  EXPECT_EQ(Fusebox({"convert", model, "-o", Path("call.tflite"), "--signature", "__call__"}).status, 0);
  EXPECT_THAT(
      Refusal(model, {"--signature", "none"}),
      HasSubstr("signature none: no such function, and the model has no signatures; functions that can "
                "be converted: "));
}

TEST(Refusals, WithoutSignaturesAndFunctionsItIsSaidWhatThereIs) {
  SavedModelBuilder weights;
  weights.AddVariable("kernel", Zeros({2}), "kernel");
  tf::SavedModel model = weights.ToProto();
  tf::MetaGraphDef& graph = *model.mutable_meta_graphs(0);
  graph.mutable_object_graph_def()->clear_concrete_functions();
  const std::string said = Refusal(Write("weights", model, weights));
  EXPECT_THAT(said,
              HasSubstr("/weights: it has neither signatures nor functions, only weights; save it again with "
                        "signatures: "));
  EXPECT_THAT(Refusal(Path("weights"), {"--signature", "x"}),
              HasSubstr("signature x: no such function, and the model has no signatures\n"));
  graph.clear_object_graph_def();
  EXPECT_THAT(Refusal(Write("graph", model, weights)),
              HasSubstr("/graph: it has no signatures, so the inputs and outputs among its "));
}

// An LSTM's loop over what an op gives that nothing translates; nobody states shapes.
std::string WriteBehindAnUnknownOp() {
  const std::string path = WriteSample("keras3_lstm"), file = path + "/saved_model.pb";
  tf::SavedModel model;
  std::ifstream in(file, std::ios::binary);
  EXPECT_TRUE(model.ParseFromIstream(&in));
  auto& graph = *model.mutable_meta_graphs(0)->mutable_graph_def();
  int unknown = 0;
  for (tf::FunctionDef& function : *graph.mutable_library()->mutable_function()) {
    for (tf::NodeDef& node : *function.mutable_node_def()) {
      node.mutable_attr()->erase("_output_shapes");
      if (node.op() != "Transpose" || unknown++ > 0) continue;
      node.set_op("NormalizeUTF8");
      node.clear_attr();
    }
  }
  EXPECT_GT(unknown, 0);
  std::ofstream(file, std::ios::binary) << model.SerializeAsString();
  return path;
}

TEST(Refusals, OfAnOpThatNothingTranslatesIsTheCauseAndNotWhatFollows) {
  const std::string model = WriteBehindAnUnknownOp();
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--batch", "1"}}) {
    std::vector<std::string> flags = {"--signature", "serving_default"};
    flags.insert(flags.end(), more.begin(), more.end());
    const std::string said = Refusal(model, flags);
    EXPECT_THAT(
        said,
        HasSubstr("signature serving_default: op NormalizeUTF8 (sequential/rnn/Transpose): there is no"));
    EXPECT_THAT(said, HasSubstr("fusebox: NormalizeUTF8 (1, first at "));
    EXPECT_THAT(said, AllOf(Not(HasSubstr("first at function while_body")), Not(HasSubstr("not known")),
                            Not(HasSubstr("--batch N")), Not(HasSubstr("--shape"))));
  }
}

// Of a variables folder that is not whole.
TEST(Refusals, WhatIsMissingOfTheVariablesIsSaidFirst) {
  const std::string model = WriteSample("keras_lstm"), folder = model + "/variables/";
  const std::string data = folder + "variables.data-00000-of-00001", index = folder + "variables.index";
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4665a5ea\nsize 12345\n";
  const auto replaced = [&](const std::string& file, const std::string& by) {
    fs::rename(file, file + ".kept");
    if (!by.empty()) std::ofstream(file) << by;
    const std::string said = Refusal(model);
    fs::rename(file + ".kept", file);
    return said;
  };
  EXPECT_THAT(replaced(data, ""), StartsWith("fusebox: " + data + ": missing, although " + index +
                                             " refers to it; copy the whole variables folder ("));
  EXPECT_THAT(replaced(index, ""), StartsWith("fusebox: " + index + ": missing, "));
  for (const std::string& file : {data, index, model + "/saved_model.pb"})
    EXPECT_EQ(replaced(file, pointer), "fusebox: " + file +
                                           ": is a Git LFS pointer; fetch the file with "
                                           "`git lfs pull`\n");
  std::ofstream(Path("model.h5")) << pointer;
  EXPECT_THAT(Refusal(Path("model.h5")), HasSubstr("model.h5: is a Git LFS pointer"));
  fs::remove_all(folder);
  const std::string none = Refusal(model);
  EXPECT_THAT(none, HasSubstr(": no variables folder, or an empty one, but variable "));
  fs::create_directory(folder);
  EXPECT_EQ(Refusal(model), none);
}

// Frozen graphs have such a folder.
TEST(Refusals, AnEmptyVariablesFolderIsEnoughWhereThereAreNone) {
  const std::string model = WriteFunctions({"__inference___call__"});
  fs::remove_all(model + "/variables");
  fs::create_directory(model + "/variables");
  const Finished done = Fusebox({"convert", model, "-o", Path("call.tflite"), "--signature", "__call__"});
  EXPECT_EQ(done.status, 0) << done.err;
}

TEST(Refusals, AFolderThatIsNoSavedModelIsToldFromWhatItHolds) {
  const std::string model = WriteSample("dense");
  fs::create_directories(Path("served/1"));
  fs::copy(model, Path("served/1"), fs::copy_options::recursive);
  EXPECT_THAT(Refusal(Path("served")),
              HasSubstr("served: not a SavedModel folder: no saved_model.pb; " + Path("served/1") + " does"));
  fs::create_directories(Path("checkpoint"));
  fs::copy(model + "/variables/variables.index", Path("checkpoint/ckpt-1.index"));
  EXPECT_THAT(Refusal(Path("checkpoint")),
              HasSubstr(", only a checkpoint (ckpt-1.index), which has only weights"));
}

// The command was copied without what belongs to it.
TEST(Refusals, NameTheProgramThatChecksHdf5FilesWhereItIsMissing) {
  const std::string program = Path("moved/bin/fusebox"), model = Path("model.h5");
  std::filesystem::create_directories(std::filesystem::path(program).parent_path());
  std::filesystem::copy_file(FUSEBOX_COMMAND, program);
  const std::filesystem::path built = std::filesystem::path(FUSEBOX_COMMAND).parent_path().parent_path();
  std::filesystem::create_directories(Path("moved/libexec/fusebox"));
  std::filesystem::copy_file(built / "libexec/fusebox/fusebox-convert",
                             Path("moved/libexec/fusebox/fusebox-convert"));
  ASSERT_TRUE(WriteFile(model, std::as_bytes(std::span(std::string_view("\x89HDF\r\n\x1a\n")))));
  const Finished done = Fusebox({"convert", model, "-o", Path("out.tflite")}, program);
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(done.err, AllOf(HasSubstr("model.h5: the program fusebox-hdf5-check is not installed"),
                              HasSubstr(Path("moved") + "/libexec/fusebox/fusebox-hdf5-check"),
                              HasSubstr("reinstall Fusebox")));
}

TEST(Refusals, NameTheProgramThatConvertsWhereItIsMissing) {
  const std::string program = Path("moved/bin/fusebox");
  std::filesystem::create_directories(std::filesystem::path(program).parent_path());
  std::filesystem::copy_file(FUSEBOX_COMMAND, program);
  const Finished done = Fusebox({"convert", "model", "-o", Path("out.tflite")}, program);
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(done.err, HasSubstr("convert: the program fusebox-convert is not installed (tried " +
                                  Path("moved") + "/libexec/fusebox/fusebox-convert"));
}

}  // namespace
}  // namespace fusebox::cli_test
