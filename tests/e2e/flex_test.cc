// SPDX-License-Identifier: Apache-2.0
// .tflite files with loops over Flex lists, opened: imported by libfusebox-convert in memory.
#include "tests/testing/flex.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <functional>

#include "converter/words.h"
#include "host/tflite/tflite.h"
#include "tests/converter/import/files.h"
#include "tests/testing/keras_cases.h"
#include "tests/testing/on_device.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::SizeIs;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

Result<std::string> Keras(const char* name) {
  for (const KerasCase& one : RecurrentCases()) {
    if (one.name != name) continue;
    const std::string path = TestDir() + "/model.h5";
    WriteH5(path, one.model);
    return path;
  }
  return NotFound(std::string("no Keras case ") + name);
}

// Two layers of Keras 2, one behind the other.
Result<std::string> Stacked() {
  const nlohmann::json layer = {
      {"activation", "tanh"}, {"recurrent_activation", "sigmoid"}, {"use_bias", true}};
  const auto with = [&](int units, bool sequences) {
    nlohmann::json config = layer;
    config["units"] = units;
    config["return_sequences"] = sequences;
    return config;
  };
  KerasFixture model;
  model.config = SequentialConfig(
      {1, 6, 4}, {LayerEntry("LSTM", with(5, true), "first"), LayerEntry("LSTM", with(3, false), "second")});
  const auto weights = [](int64_t in, int64_t units) {
    return std::vector<KerasWeight>{RandomWeight("kernel", {in, 4 * units}),
                                    RandomWeight("recurrent_kernel", {units, 4 * units}),
                                    RandomWeight("bias", {4 * units})};
  };
  model.weights = {{"first", weights(4, 5)}, {"second", weights(5, 3)}};
  const std::string path = TestDir() + "/stacked.h5";
  WriteH5(path, model);
  return path;
}

struct FlexCase {
  const char* name;
  std::function<Result<std::string>()> source;
  std::string op;  // that each layer becomes
  int layers = 1;
  FlexWeights weights = FlexWeights::kFloat;
};

std::vector<FlexCase> FlexCases() {
  const auto sample = [](const char* name) { return [name] { return Sample(name); }; };
  const auto keras = [](const char* name) { return [name] { return Keras(name); }; };
  const std::string lstm = "UNIDIRECTIONAL_SEQUENCE_LSTM";
  return {
      {"Keras2Lstm", sample("keras_lstm"), lstm},
      {"Keras2LstmSequences", sample("lstm_sequences"), lstm},
      {"Keras2LstmBackwards", sample("lstm_backwards"), lstm},
      {"Keras2Gru", sample("gru"), "fusebox.gru"},
      {"Keras2SimpleRnn", sample("simple_rnn"), "UNIDIRECTIONAL_SEQUENCE_RNN"},
      {"Keras2Bidirectional", sample("bidirectional_lstm"), "BIDIRECTIONAL_SEQUENCE_LSTM"},
      {"Keras2Stacked", Stacked, lstm, 2},
      {"Keras3Lstm", sample("keras3_lstm"), lstm},
      {"Keras3Gru", sample("keras3_gru"), "fusebox.gru"},
      {"Keras3SimpleRnn", sample("keras3_simple_rnn"), "UNIDIRECTIONAL_SEQUENCE_RNN"},
      {"LstmOfBytes", sample("keras3_lstm"), lstm, 1, FlexWeights::kEightBits},
      {"GruOfBytes", sample("keras3_gru"), "fusebox.gru", 1, FlexWeights::kEightBits},
      {"SimpleRnnOfBytes", sample("keras3_simple_rnn"), "UNIDIRECTIONAL_SEQUENCE_RNN", 1,
       FlexWeights::kEightBits},
      {"BidirectionalOfBytes", sample("bidirectional_lstm"), "BIDIRECTIONAL_SEQUENCE_LSTM", 1,
       FlexWeights::kEightBits},
      {"LstmOfRows", sample("keras3_lstm"), lstm, 1, FlexWeights::kRowsOfEightBits},
      {"GruOfRows", sample("keras3_gru"), "fusebox.gru", 1, FlexWeights::kRowsOfEightBits},
      {"BidirectionalOfRows", sample("bidirectional_lstm"), "BIDIRECTIONAL_SEQUENCE_LSTM", 1,
       FlexWeights::kRowsOfEightBits},
      {"H5Lstm", keras("LSTM"), lstm},
      {"H5Gru", keras("GRU, reset before"), "fusebox.gru"},
      {"H5Bidirectional", keras("Bidirectional concat, sequence"), "BIDIRECTIONAL_SEQUENCE_LSTM"},
  };
}

class FlexFile : public ::testing::TestWithParam<FlexCase> {
 protected:
  // Writes the file.
  void SetUp() override {
    const auto source = GetParam().source();
    ASSERT_OK(source);
    auto conversion = converter::FromPath(*source);
    ASSERT_OK(conversion);
    const Status written = WriteFlex(*std::move(conversion), path, GetParam().weights);
    ASSERT_OK(written);
  }
  // As `fusebox convert` does it.
  Result<std::shared_ptr<const Model>> Converted() {
    converter::Conversion conversion = converter::FromTflite(path);
    conversion.options.registry = *Plugins();
    FUSEBOX_ASSIGN(const converter::Converted converted, conversion.Convert());
    FUSEBOX_TRY(converted.Write(path + ".out"));
    return Model::Open(path + ".out", {.registry = *Plugins()});
  }

  const std::string path = TestDir() + "/flex.tflite";
};

TEST_P(FlexFile, OpensAsTheFileThatConvertWrites) {
  const auto model = Model::Open(path, {.registry = *Plugins(), .import_ops = ImportOps::kAuto});
  ASSERT_OK(model);
  const auto ops = OpsOf((*model)->module());
  // Keras 3 writes the function of each signature.
  const size_t functions = (*model)->module().functions.size();
  const size_t fused = static_cast<size_t>(GetParam().layers) * functions;
  EXPECT_EQ(static_cast<size_t>(ops.contains(GetParam().op) ? ops.at(GetParam().op) : 0), fused)
      << ToText((*model)->module());
  EXPECT_THAT(ops, Not(Contains(Key("WHILE"))));
  EXPECT_THAT((*model)->fusions(), SizeIs(fused));
  EXPECT_THAT((*model)->notices(), Contains(AllOf(HasSubstr(" s; to do it once: fusebox convert " + path))));
  EXPECT_EQ((*model)->name(), path);

  const auto converted = Converted();
  ASSERT_OK(converted);
  auto ours = Session::Create(*model), theirs = Session::Create(*converted);
  ASSERT_OK(ours);
  ASSERT_OK(theirs);
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const Tensors inputs = RandomInputs(**ours, seed);
    const auto a = Invoke(**ours, inputs), b = Invoke(**theirs, inputs);
    ASSERT_OK(a);
    ASSERT_OK(b);
    ASSERT_EQ(a->size(), b->size());
    for (size_t i = 0; i < a->size(); ++i) EXPECT_EQ((*a)[i], (*b)[i]) << "seed " << seed;
  }
}

// The loop on kernels is the reference of the fused op.
TEST_P(FlexFile, ComputesWhatItsLoopComputes) {
  const auto fused = Model::Open(path, {.registry = *Plugins(), .import_ops = ImportOps::kAuto});
  const auto loop =
      Model::Open(path, {.registry = *Plugins(), .fuse = false, .import_ops = ImportOps::kAuto});
  ASSERT_OK(fused);
  ASSERT_OK(loop);
  EXPECT_THAT(OpsOf((*loop)->module()), Contains(Key("WHILE")));
  auto ours = Session::Create(*fused), theirs = Session::Create(*loop);
  ASSERT_OK(ours);
  ASSERT_OK(theirs);
  const Tensors inputs = RandomInputs(**ours, 7);
  const auto a = Invoke(**ours, inputs), b = Invoke(**theirs, inputs);
  ASSERT_OK(a);
  ASSERT_OK(b);
  // The loop rounds h to 8 bits in each step; a layer of f32 does not.
  const double rounding = GetParam().weights == FlexWeights::kRowsOfEightBits ? 0.01 : 1e-5;
  EXPECT_EQ(Difference(*a, *b, rounding), "");
}

INSTANTIATE_TEST_SUITE_P(Of, FlexFile, ::testing::ValuesIn(FlexCases()),
                         [](const auto& info) { return info.param.name; });

// A Flex file of Keras' LSTM.
Result<std::string> LstmFile() {
  FUSEBOX_ASSIGN(const std::string source, Sample("keras_lstm"));
  FUSEBOX_ASSIGN(converter::Conversion conversion, converter::FromPath(source));
  std::string path = TestDir() + "/lstm.tflite";
  FUSEBOX_TRY(WriteFlex(std::move(conversion), path));
  return path;
}

TEST(FlexImport, IsOffByDefaultAndTheErrorNamesTheOption) {
  const auto file = LstmFile();
  ASSERT_OK(file);
  const auto model = Model::Open(*file, {.registry = *Plugins()});
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message,
              AllOf(HasSubstr(*file), HasSubstr("FlexTensorList"), HasSubstr("\"import\": \"auto\""),
                    HasSubstr("`fusebox convert`")));
}

TEST(FlexImport, WorksFromMemoryAndTwice) {
  const auto file = LstmFile();
  ASSERT_OK(file);
  const std::string bytes = ReadAll(*file);
  for (int i = 0; i < 2; ++i) {
    const auto model = Model::FromMemory(Buffer::Copy(std::as_bytes(std::span(bytes))),
                                         {.registry = *Plugins(), .import_ops = ImportOps::kAuto});
    ASSERT_OK(model);
    EXPECT_EQ((*model)->name(), "<memory>");
    auto session = Session::Create(*model);
    ASSERT_OK(session);
    EXPECT_TRUE(Invoke(**session, RandomInputs(**session, 1)));
  }
}

// A plugin that is linked into the program has the rule, and its kernel runs.
TEST(FlexImport, UsesTheRegistryOfTheModel) {
  const auto file = LstmFile();
  ASSERT_OK(file);
  const auto none = Model::Open(*file, {.registry = *Plugins({}), .import_ops = ImportOps::kAuto});
  ASSERT_OK(none);
  EXPECT_THAT(OpsOf((*none)->module()), Contains(Key("WHILE")));
  Config denied = PluginConfig();
  denied.deny = {"fusebox.rnn"};
  const auto other =
      Model::Open(*file, {.registry = *Registry::Create(denied), .import_ops = ImportOps::kAuto});
  ASSERT_OK(other);
  EXPECT_THAT(OpsOf((*other)->module()), Contains(Key("WHILE")));
}

TEST(FlexImport, LeavesAFileAloneWhoseOtherSignaturesRun) {
  const auto module = fixtures::OnDevice::Make();
  const std::string path = TestDir() + "/train.tflite";
  ASSERT_TRUE(tflite::WriteFile(*module, path));
  const auto model = Model::Open(path, {.import_ops = ImportOps::kAuto});
  ASSERT_OK(model);
  EXPECT_THAT((*model)->notices(), IsEmpty());
}

TEST(FlexImport, GivesTheImportersErrorWithTheNode) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  Node& node = f.AddNode(Op::kCustom, {f.AddInput({DType::kF32, {2}})}, {{DType::kF32, {2}}});
  node.name = "FlexUnheard";
  node.raw_options = fixtures::FlexOptions("Unheard");
  f.outputs = node.results;
  const std::string path = TestDir() + "/unheard.tflite";
  ASSERT_TRUE(tflite::WriteFile(*module, path));
  const auto model = Model::Open(path, {.import_ops = ImportOps::kAuto});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, Code::kUnsupported);
  EXPECT_THAT(model.error().message,
              AllOf(HasSubstr(path), HasSubstr("op Unheard (Unheard)"), HasSubstr("no translation")));
}

TEST(FlexImport, EndsWhenItIsCancelled) {
  const auto file = LstmFile();
  ASSERT_OK(file);
  ModelOptions options{.registry = *Plugins(), .import_ops = ImportOps::kAuto};
  options.cancel = std::make_shared<std::atomic<bool>>(true);
  const auto model = Model::Open(*file, options);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, Code::kCancelled) << model.error().message;
}

TEST(FlexImport, IsDoneByTheProgram) {
  const auto file = LstmFile();
  ASSERT_OK(file);
  const std::string plugin = FUSEBOX_BUILD_DIR "/plugins/fusebox.rnn", out = TestDir() + "/out.tflite";
  const CommandResult run = Fusebox({"run", *file, "--plugin", plugin, "--explain"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("UNIDIRECTIONAL_SEQUENCE_LSTM"), HasSubstr("keras.lstm")));
  EXPECT_THAT(run.err, HasSubstr("to do it once: fusebox convert " + *file + " -o OUT.tflite"));
  const CommandResult never = Fusebox({"run", *file, "--plugin", plugin, "--import", "never"});
  EXPECT_EQ(never.status, 2);
  EXPECT_THAT(never.err, HasSubstr("no kernel for FlexTensorList"));
  ASSERT_EQ(Fusebox({"convert", *file, "-o", out, "--plugin", plugin}).status, 0);
  const CommandResult same =
      Fusebox({"compare", *file, out, "--plugin", plugin, "--atol", "0", "--rtol", "0"});
  EXPECT_EQ(same.status, 0) << same.out << same.err;
  EXPECT_EQ(Fusebox({"bench", *file, "--plugin", plugin, "--num_runs", "1", "--min_secs", "0",
                     "--warmup_min_secs", "0"})
                .status,
            0);
}

// doors_sweep runs the file in processes of their own, here twice through the same library.
TEST(FlexImport, IsDoneThroughTensorFlowLitesCApi) {
  const auto file = LstmFile();
  ASSERT_OK(file);
  const std::string library = "'" FUSEBOX_BUILD_DIR "/lib/libfusebox-tflite_c.so' ";
  const std::string out = TestDir() + "/swept";
  const std::string command = "FUSEBOX_PLUGIN_PATH='" FUSEBOX_BUILD_DIR "/plugins' '" FUSEBOX_BUILD_DIR
                              "/bin/doors_sweep' " +
                              library + library + "'" + *file + "' >'" + out + "' 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_THAT(ReadAll(out), HasSubstr("1 same"));
}

TEST(FlexImport, IsShownByInspect) {
  const auto file = LstmFile();
  ASSERT_OK(file);
  const std::string plugin = FUSEBOX_BUILD_DIR "/plugins/fusebox.rnn", page = TestDir() + "/page.html";
  const CommandResult text = Fusebox({"inspect", *file, "--plugin", plugin});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("UNIDIRECTIONAL_SEQUENCE_LSTM"));
  EXPECT_THAT(text.err, HasSubstr("to do it once"));
  const CommandResult never = Fusebox({"inspect", *file, "--import", "never"});
  EXPECT_THAT(never.out, HasSubstr("CUSTOM:FlexTensorList"));
  const CommandResult html = Fusebox({"inspect", *file, "--plugin", plugin, "--html", page});
  EXPECT_EQ(html.status, 0) << html.err;
  EXPECT_THAT(ReadAll(page), HasSubstr("UNIDIRECTIONAL_SEQUENCE_LSTM"));
}

// A program without the library beside it.
TEST(FlexImport, NamesThePackageThatIsMissing) {
  const auto file = LstmFile();
  ASSERT_OK(file);
  const std::string program = TestDir() + "/bin/fusebox";
  std::filesystem::create_directories(TestDir() + "/bin");
  std::filesystem::copy_file(FUSEBOX_BUILD_DIR "/bin/fusebox", program);
  const std::string err = TestDir() + "/err";
  EXPECT_NE(std::system(("'" + program + "' run '" + *file + "' 2>'" + err + "'").c_str()), 0);
  EXPECT_THAT(ReadAll(err), AllOf(HasSubstr("libfusebox-convert.so.0"),
                                  HasSubstr("install the package libfusebox-convert0")));
}

}  // namespace
}  // namespace fusebox::testing
