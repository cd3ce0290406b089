// SPDX-License-Identifier: Apache-2.0
// The samples of TensorFlow Lite's interfaces, and members that Fusebox lacks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "fusebox/tflite/interpreter.h"
#include "fusebox/tflite/kernels/register.h"
#include "tests/doors/models.h"

namespace fusebox::doors {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kPrograms = std::string(FUSEBOX_BUILD_DIR) + "/bin/";

std::string OutputOf(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::string out;
  std::array<char, 4096> part;
  for (size_t n; (n = fread(part.data(), 1, part.size(), pipe)) > 0;) out.append(part.data(), n);
  const int status = pclose(pipe);
  return status == 0 ? out : out + "exit status " + std::to_string(status);
}

TEST(Samples, RunInTheCppShape) {
  EXPECT_EQ(OutputOf(kPrograms + "sample_minimal " + WriteModel(DoubleModel(), "minimal.tflite")),
            "y FLOAT32[1,3] 2 2 2\n");
  EXPECT_EQ(OutputOf(kPrograms + "sample_custom_op " + WriteModel(FusedOpModel(), "fused.tflite")),
            "sum 1\nlarger 1\n");
}

TEST(Samples, KeepWeightsInAFile) {
  const std::string cache = WriteModel("", "sample.cache");
  std::filesystem::remove_all(cache);
  const std::string command =
      kPrograms + "sample_weight_cache " + WriteModel(DenseModel(64), "cached.tflite") + " " + cache;
  EXPECT_EQ(OutputOf(command), "y\n");
  ASSERT_TRUE(std::filesystem::exists(cache));
  const auto written = std::filesystem::last_write_time(cache);
  EXPECT_EQ(OutputOf(command), "y\n");
  EXPECT_EQ(std::filesystem::last_write_time(cache), written) << "the second start packs again";
}

TEST(Samples, LabelImageClassifiesAPicture) {
  std::string pixels(8 * 8 * 3, '\x40');
  pixels[0] = '\xff';
  const std::string picture = WriteModel("P6\n8 8\n255\n" + pixels, "picture.ppm");
  const std::string labels = WriteModel("first\nsecond\nthird\n", "labels.txt");
  const std::string drawn = WriteModel("", "drawn.ppm");
  const std::string out =
      OutputOf("LD_LIBRARY_PATH=" + std::string(FUSEBOX_BUILD_DIR) + "/lib/fusebox/tflite " + kPrograms +
               "label_image " + WriteModel(PictureModel(), "picture.tflite") + " " + picture + " " + labels +
               " -d " + drawn);
  EXPECT_THAT(out, HasSubstr("0 first\n"));
  EXPECT_LT(out.find("first"), out.find("second")) << out;
  EXPECT_EQ(std::filesystem::file_size(drawn), std::filesystem::file_size(picture));
  EXPECT_THAT(OutputOf("LD_LIBRARY_PATH=" + std::string(FUSEBOX_BUILD_DIR) + "/lib/fusebox/tflite " +
                       kPrograms + "label_image missing.tflite " + picture),
              HasSubstr("missing.tflite: is no .tflite file"));
}

TEST(CppShape, RunsSignaturesThreadsAndShapes) {
  const std::string bytes = DoubleModel();
  const auto model = tflite::FlatBufferModel::BuildFromBuffer(bytes.data(), bytes.size());
  ASSERT_NE(model, nullptr);
  tflite::ops::builtin::BuiltinOpResolverWithoutDefaultDelegates resolver;
  std::unique_ptr<tflite::Interpreter> interpreter;
  ASSERT_EQ(tflite::InterpreterBuilder(*model, resolver)(&interpreter, 2), kTfLiteOk);
  ASSERT_EQ(interpreter->SetNumThreads(1), kTfLiteOk);
  const int input = interpreter->inputs()[0];
  EXPECT_EQ(interpreter->ResizeInputTensorStrict(input, {2, 4}), kTfLiteError);
  ASSERT_EQ(interpreter->ResizeInputTensor(input, {2, 3}), kTfLiteOk);
  EXPECT_EQ(interpreter->typed_input_tensor<float>(0), nullptr);
  ASSERT_EQ(interpreter->AllocateTensors(), kTfLiteOk);
  EXPECT_EQ(interpreter->typed_input_tensor<int>(0), nullptr) << "another type";
  float* x = interpreter->typed_tensor<float>(input);
  for (int i = 0; i < 6; ++i) x[i] = static_cast<float>(i);
  ASSERT_EQ(interpreter->Invoke(), kTfLiteOk);
  const float* y = interpreter->typed_output_tensor<float>(0);
  EXPECT_THAT(std::vector<float>(y, y + 6), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_EQ(interpreter->ResetVariableTensors(), kTfLiteOk);

  ASSERT_EQ(interpreter->signature_keys().size(), 1u);
  EXPECT_EQ(*interpreter->signature_keys()[0], "double");
  EXPECT_EQ(interpreter->GetSignatureRunner("foo"), nullptr);
  tflite::SignatureRunner* runner = interpreter->GetSignatureRunner("double");
  ASSERT_NE(runner, nullptr);
  EXPECT_EQ(runner, interpreter->GetSignatureRunner("double"));
  ASSERT_EQ(runner->AllocateTensors(), kTfLiteOk);
  EXPECT_STREQ(runner->input_names()[0], "value");
  EXPECT_NE(runner->input_tensor("value"), nullptr);
  ASSERT_EQ(runner->Invoke(), kTfLiteOk);
}

TEST(CppShape, OwnOpsOnlyWithoutABuiltinResolver) {
  const std::string bytes = DoubleModel();
  class Silent : public tflite::ErrorReporter {
   public:
    int Report(const char*, va_list) override { return 0; }
  } silent;
  const auto model = tflite::FlatBufferModel::BuildFromBuffer(bytes.data(), bytes.size(), &silent);
  tflite::MutableOpResolver resolver;
  std::unique_ptr<tflite::Interpreter> interpreter;
  EXPECT_EQ(tflite::InterpreterBuilder(*model, resolver)(&interpreter), kTfLiteError);
  EXPECT_EQ(interpreter, nullptr);
}

TEST(CppShape, NamesWhatIsMissingWhenItIsCompiled) {
  const std::string source = WriteModel(
      "#include \"tensorflow/lite/interpreter.h\"\nint Nodes(const tflite::Interpreter& i) { i.nodes_size(); "
      "return 0; "
      "}\n",
      "missing.cc");
  const std::string out =
      OutputOf(std::string(FUSEBOX_CXX) + " -std=c++17 -fsyntax-only " + FUSEBOX_INCLUDES + " " + source);
  EXPECT_THAT(out, HasSubstr("Fusebox has no tflite::Interpreter::nodes_size: `fusebox inspect`"));
}

}  // namespace
}  // namespace fusebox::doors
