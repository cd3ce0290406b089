// SPDX-License-Identifier: Apache-2.0
// libfusebox-tflite_c: what the tests of TensorFlow Lite's C API check (docs/tflite-c-api.md has the table).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "fusebox/tflite/c/c_api_experimental.h"
#include "tests/doors/handles.h"
#include "tests/doors/models.h"

namespace fusebox::doors {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CApi, HasVersions) {
  EXPECT_STRNE(TfLiteVersion(), "");
  EXPECT_STRNE(TfLiteExtensionApisVersion(), "");
  EXPECT_EQ(TfLiteSchemaVersion(), 3);
}

TEST(CApi, RunsAModelOnSeveralShapes) {
  const Opened opened(DoubleModel());
  ASSERT_NE(opened.get(), nullptr);
  TfLiteInterpreter* interpreter = opened.get();
  ASSERT_EQ(TfLiteInterpreterGetInputTensorCount(interpreter), 1);
  ASSERT_EQ(TfLiteInterpreterGetOutputTensorCount(interpreter), 1);
  TfLiteTensor* input = TfLiteInterpreterGetInputTensor(interpreter, 0);
  EXPECT_EQ(TfLiteTensorType(input), kTfLiteFloat32);
  EXPECT_EQ(TfLiteTensorNumDims(input), 2);
  EXPECT_EQ(TfLiteTensorDim(input, 0), 1) << "an open dim starts as 1";
  EXPECT_EQ(TfLiteTensorData(input), nullptr) << "before AllocateTensors";
  EXPECT_STREQ(TfLiteTensorName(input), "x");
  EXPECT_NE(TfLiteInterpreterInvoke(interpreter), kTfLiteOk);
  for (const int rows : {1, 2, 5, 1}) {
    const int dims[] = {rows, 3};
    ASSERT_EQ(TfLiteInterpreterResizeInputTensor(interpreter, 0, dims, 2), kTfLiteOk);
    EXPECT_EQ(TfLiteTensorDim(input, 0), rows);
    ASSERT_EQ(TfLiteInterpreterAllocateTensors(interpreter), kTfLiteOk);
    const TfLiteTensor* output = TfLiteInterpreterGetOutputTensor(interpreter, 0);
    EXPECT_EQ(TfLiteTensorDim(output, 0), rows);
    EXPECT_EQ(TfLiteTensorByteSize(output), 12u * static_cast<size_t>(rows));
    const void* address = TfLiteTensorData(output);
    ASSERT_NE(address, nullptr);
    std::vector<float> values(3 * static_cast<size_t>(rows), 1.5f);
    for (int run = 0; run < 2; ++run) {
      ASSERT_EQ(TfLiteTensorCopyFromBuffer(input, values.data(), 4 * values.size()), kTfLiteOk);
      ASSERT_EQ(TfLiteInterpreterInvoke(interpreter), kTfLiteOk);
      std::vector<float> results(values.size());
      ASSERT_EQ(TfLiteTensorCopyToBuffer(output, results.data(), 4 * results.size()), kTfLiteOk);
      EXPECT_THAT(results, ::testing::Each(3.0f));
      EXPECT_EQ(TfLiteTensorData(output), address) << "programs keep the address";
    }
  }
}

TEST(CApi, RefusesBuffersOfAnotherSize) {
  const Opened opened(DoubleModel());
  TfLiteTensor* input = TfLiteInterpreterGetInputTensor(opened.get(), 0);
  float values[4] = {};
  EXPECT_EQ(TfLiteTensorCopyFromBuffer(input, values, 12), kTfLiteError) << "not allocated";
  ASSERT_EQ(TfLiteInterpreterAllocateTensors(opened.get()), kTfLiteOk);
  EXPECT_EQ(TfLiteTensorCopyFromBuffer(input, values, 16), kTfLiteError);
  EXPECT_EQ(TfLiteTensorCopyFromBuffer(input, values, 12), kTfLiteOk);
  EXPECT_EQ(TfLiteTensorCopyToBuffer(TfLiteInterpreterGetOutputTensor(opened.get(), 0), values, 16),
            kTfLiteError);
  EXPECT_EQ(TfLiteInterpreterGetInputTensor(opened.get(), 1), nullptr);
  EXPECT_EQ(TfLiteInterpreterGetOutputTensor(opened.get(), -1), nullptr);
  const int negative[] = {-1, 3};
  EXPECT_EQ(TfLiteInterpreterResizeInputTensor(opened.get(), 0, negative, 2), kTfLiteError);
}

TEST(CApi, ShowsQuantization) {
  const Opened opened(QuantizedModel());
  ASSERT_EQ(TfLiteInterpreterAllocateTensors(opened.get()), kTfLiteOk);
  const TfLiteTensor* output = TfLiteInterpreterGetOutputTensor(opened.get(), 0);
  EXPECT_EQ(TfLiteTensorType(output), kTfLiteUInt8);
  EXPECT_EQ(TfLiteTensorQuantizationParams(output).scale, 0.5f);
  EXPECT_EQ(TfLiteTensorQuantizationParams(output).zero_point, 128);
  ASSERT_EQ(output->quantization.type, kTfLiteAffineQuantization);
  EXPECT_EQ(static_cast<TfLiteAffineQuantization*>(output->quantization.params)->scale->data[0], 0.5f);
}

TEST(CApi, ReportsErrorsToTheApplication) {
  std::string reported;
  TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
  TfLiteInterpreterOptionsSetErrorReporter(options, Collect, &reported);
  const Opened opened(DoubleModel(), options);
  TfLiteInterpreterOptionsDelete(options);
  EXPECT_EQ(TfLiteInterpreterInvoke(opened.get()), kTfLiteError);
  EXPECT_THAT(reported, HasSubstr("AllocateTensors"));
}

// Bindings of other languages often show the format alone.
TEST(CApi, ReportsMessagesWithoutArguments) {
  std::string shown;
  const auto show = [](void* text, const char* format, va_list) {
    *static_cast<std::string*>(text) = format;
  };
  EXPECT_EQ(TfLiteModelCreateFromFileWithErrorReporter("missing.tflite", show, &shown), nullptr);
  EXPECT_THAT(shown, HasSubstr("missing.tflite"));
  std::string formatted;
  EXPECT_EQ(TfLiteModelCreateFromFileWithErrorReporter("100%s.tflite", Collect, &formatted), nullptr);
  EXPECT_THAT(formatted, HasSubstr("100%s.tflite"));
}

TEST(CApi, ReportsNumbersOfThreadsThatAreNone) {
  for (const int threads : {-4, -1, 0, 2}) {
    std::string reported;
    TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
    TfLiteInterpreterOptionsSetErrorReporter(options, Collect, &reported);
    TfLiteInterpreterOptionsSetNumThreads(options, threads);
    const Opened opened(DoubleModel(), options);
    TfLiteInterpreterOptionsDelete(options);
    EXPECT_EQ(TfLiteInterpreterAllocateTensors(opened.get()), kTfLiteOk);
    if (threads < -1) EXPECT_THAT(reported, HasSubstr("-4 threads"));
    else EXPECT_EQ(reported, "");
  }
}

TEST(CApi, RefusesWhatIsNoModel) {
  std::string reported;
  const std::vector<char> bytes(20, 'c');
  EXPECT_EQ(TfLiteModelCreateWithErrorReporter(bytes.data(), bytes.size(), Collect, &reported), nullptr);
  EXPECT_NE(reported, "");
  reported.clear();
  EXPECT_EQ(TfLiteModelCreateFromFileWithErrorReporter("missing.tflite", Collect, &reported), nullptr);
  EXPECT_THAT(reported, HasSubstr("missing.tflite"));
  const std::string whole = DoubleModel();
  EXPECT_EQ(TfLiteModelCreateWithErrorReporter(whole.data(), whole.size() / 2, Collect, &reported), nullptr);
  EXPECT_EQ(TfLiteInterpreterCreate(nullptr, nullptr), nullptr);
}

TEST(CApi, ReadsFiles) {
  TfLiteModel* model = TfLiteModelCreateFromFile(WriteModel(DoubleModel(), "double.tflite").c_str());
  ASSERT_NE(model, nullptr);
  TfLiteInterpreter* first = TfLiteInterpreterCreate(model, nullptr);
  TfLiteInterpreter* second = TfLiteInterpreterCreate(model, nullptr);
  TfLiteModelDelete(model);  // interpreters keep what they need
  for (TfLiteInterpreter* interpreter : {first, second}) {
    ASSERT_NE(interpreter, nullptr);
    EXPECT_EQ(TfLiteInterpreterAllocateTensors(interpreter), kTfLiteOk);
    EXPECT_EQ(TfLiteInterpreterInvoke(interpreter), kTfLiteOk);
    TfLiteInterpreterDelete(interpreter);
  }
}

TEST(CApi, NumbersTensorsAsTheFile) {
  const Opened opened(DoubleModel());
  EXPECT_EQ(TfLiteInterpreterGetInputTensorIndex(opened.get(), 0),
            TfLiteInterpreterInputTensorIndices(opened.get())[0]);
  EXPECT_EQ(TfLiteInterpreterGetOutputTensorIndex(opened.get(), 3), -1);
  const int number = TfLiteInterpreterOutputTensorIndices(opened.get())[0];
  EXPECT_EQ(TfLiteInterpreterGetTensor(opened.get(), number),
            TfLiteInterpreterGetOutputTensor(opened.get(), 0));
  EXPECT_EQ(TfLiteInterpreterGetTensor(opened.get(), 99), nullptr);
}

TEST(CApi, ReadsAndWritesStrings) {
  const Opened opened(TextModel());
  const int two[] = {2};
  ASSERT_EQ(TfLiteInterpreterResizeInputTensor(opened.get(), 0, two, 1), kTfLiteOk);
  ASSERT_EQ(TfLiteInterpreterAllocateTensors(opened.get()), kTfLiteOk);
  TfLiteTensor* input = TfLiteInterpreterGetInputTensor(opened.get(), 0);
  const int32_t packed[] = {2, 16, 18, 19, 0x00636261};  // "ab", "c"
  ASSERT_EQ(TfLiteTensorRealloc(19, input), kTfLiteOk);
  std::memcpy(input->data.raw, packed, 19);
  for (int run = 0; run < 2; ++run) {
    ASSERT_EQ(TfLiteInterpreterInvoke(opened.get()), kTfLiteOk);
    const TfLiteTensor* output = TfLiteInterpreterGetOutputTensor(opened.get(), 0);
    ASSERT_EQ(TfLiteTensorByteSize(output), 19u);
    EXPECT_EQ(std::memcmp(TfLiteTensorData(output), packed, 19), 0);
    EXPECT_EQ(TfLiteTensorDim(output, 0), 2);
  }
  input->data.raw[4] = 99;  // the first offset
  EXPECT_EQ(TfLiteInterpreterInvoke(opened.get()), kTfLiteError);
}

TEST(CApi, UsesMemoryOfTheApplication) {
  alignas(64) static char memory[4096];
  const Opened opened(DoubleModel());
  const TfLiteCustomAllocation allocation{memory, sizeof memory};
  const int number = TfLiteInterpreterGetOutputTensorIndex(opened.get(), 0);
  ASSERT_EQ(TfLiteInterpreterSetCustomAllocationForTensor(opened.get(), number, &allocation, 0), kTfLiteOk);
  ASSERT_EQ(TfLiteInterpreterAllocateTensors(opened.get()), kTfLiteOk);
  const float values[] = {1, 2, 3};
  ASSERT_EQ(TfLiteTensorCopyFromBuffer(TfLiteInterpreterGetInputTensor(opened.get(), 0), values, 12),
            kTfLiteOk);
  ASSERT_EQ(TfLiteInterpreterInvoke(opened.get()), kTfLiteOk);
  EXPECT_THAT(std::vector<float>(reinterpret_cast<float*>(memory), reinterpret_cast<float*>(memory) + 3),
              ElementsAre(2, 4, 6));
  const TfLiteCustomAllocation small{memory, 4};
  ASSERT_EQ(TfLiteInterpreterSetCustomAllocationForTensor(opened.get(), number, &small, 0), kTfLiteOk);
  EXPECT_EQ(TfLiteInterpreterAllocateTensors(opened.get()), kTfLiteError);
  const TfLiteCustomAllocation odd{memory + 4, 64};
  EXPECT_EQ(TfLiteInterpreterSetCustomAllocationForTensor(opened.get(), number, &odd, 0), kTfLiteError);
}

TEST(CApi, CancelsOnlyTheRunInProgress) {
  EXPECT_EQ(TfLiteInterpreterCancel(Opened(DoubleModel()).get()), kTfLiteError) << "not enabled";
  TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
  ASSERT_EQ(TfLiteInterpreterOptionsEnableCancellation(options, true), kTfLiteOk);
  const Opened opened(ChainModel(2000, 20000), options);
  TfLiteInterpreterOptionsDelete(options);
  ASSERT_EQ(TfLiteInterpreterAllocateTensors(opened.get()), kTfLiteOk);
  ASSERT_EQ(TfLiteInterpreterCancel(opened.get()), kTfLiteOk);
  EXPECT_EQ(TfLiteInterpreterInvoke(opened.get()), kTfLiteOk) << "no run was in progress";
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) TfLiteInterpreterCancel(opened.get());
  });
  bool cancelled = false;  // the other thread may get no core at first
  for (int i = 0; i < 1000 && !cancelled; ++i)
    cancelled = TfLiteInterpreterInvoke(opened.get()) == kTfLiteCancelled;
  EXPECT_TRUE(cancelled);
  done = true;
  other.join();
  EXPECT_EQ(TfLiteInterpreterInvoke(opened.get()), kTfLiteOk);
}

TEST(SignatureRunner, RunsEachSignature) {
  const Opened opened(TwoSignaturesModel());
  ASSERT_EQ(TfLiteInterpreterGetSignatureCount(opened.get()), 2);
  EXPECT_STREQ(TfLiteInterpreterGetSignatureKey(opened.get(), 0), "add");
  EXPECT_EQ(TfLiteInterpreterGetSignatureKey(opened.get(), 2), nullptr);
  EXPECT_EQ(TfLiteInterpreterGetSignatureRunner(opened.get(), "foo"), nullptr);
  TfLiteSignatureRunner* add = TfLiteInterpreterGetSignatureRunner(opened.get(), "add");
  TfLiteSignatureRunner* negate = TfLiteInterpreterGetSignatureRunner(opened.get(), "negate");
  ASSERT_NE(add, nullptr);
  ASSERT_NE(negate, nullptr);
  EXPECT_EQ(TfLiteSignatureRunnerGetInputCount(add), 2u);
  EXPECT_STREQ(TfLiteSignatureRunnerGetInputName(add, 0), "x_second") << "names are sorted";
  EXPECT_STREQ(TfLiteSignatureRunnerGetInputName(add, 1), "y_first");
  EXPECT_EQ(TfLiteSignatureRunnerGetInputName(add, 2), nullptr);
  EXPECT_STREQ(TfLiteSignatureRunnerGetOutputName(negate, 0), "y");
  EXPECT_EQ(TfLiteSignatureRunnerGetInputTensor(add, "foo"), nullptr);
  EXPECT_EQ(TfLiteSignatureRunnerInvoke(add), kTfLiteError) << "not allocated";
  ASSERT_EQ(TfLiteSignatureRunnerAllocateTensors(add), kTfLiteOk);
  ASSERT_EQ(TfLiteSignatureRunnerAllocateTensors(negate), kTfLiteOk);
  const float ones[] = {1, 1, 1, 1}, counted[] = {1, 2, 3, 4};
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(TfLiteTensorCopyFromBuffer(TfLiteSignatureRunnerGetInputTensor(add, "y_first"), ones, 16),
              kTfLiteOk);
    ASSERT_EQ(TfLiteTensorCopyFromBuffer(TfLiteSignatureRunnerGetInputTensor(add, "x_second"), counted, 16),
              kTfLiteOk);
    ASSERT_EQ(TfLiteTensorCopyFromBuffer(TfLiteSignatureRunnerGetInputTensor(negate, "x"), counted, 16),
              kTfLiteOk);
    ASSERT_EQ(TfLiteSignatureRunnerInvoke(add), kTfLiteOk);
    ASSERT_EQ(TfLiteSignatureRunnerInvoke(negate), kTfLiteOk);
    float sum[4], negative[4];
    ASSERT_EQ(TfLiteTensorCopyToBuffer(TfLiteSignatureRunnerGetOutputTensor(add, "sum"), sum, 16), kTfLiteOk);
    ASSERT_EQ(TfLiteTensorCopyToBuffer(TfLiteSignatureRunnerGetOutputTensor(negate, "y"), negative, 16),
              kTfLiteOk);
    EXPECT_THAT(sum, ElementsAre(2, 3, 4, 5));
    EXPECT_THAT(negative, ElementsAre(-1, -2, -3, -4));
  }
  TfLiteSignatureRunnerDelete(add);
  TfLiteSignatureRunnerDelete(negate);
}

TEST(SignatureRunner, RunsWhereTheMainSubgraphCannot) {
  std::string reported;
  TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
  TfLiteInterpreterOptionsSetErrorReporter(options, Collect, &reported);
  const Opened opened(HalfRunnableModel(), options);
  TfLiteInterpreterOptionsDelete(options);
  ASSERT_NE(opened.get(), nullptr);
  EXPECT_EQ(reported, "");
  TfLiteSignatureRunner* negate = TfLiteInterpreterGetSignatureRunner(opened.get(), "negate");
  ASSERT_NE(negate, nullptr);
  ASSERT_EQ(TfLiteSignatureRunnerAllocateTensors(negate), kTfLiteOk);
  const float counted[] = {1, 2, 3, 4};
  ASSERT_EQ(TfLiteTensorCopyFromBuffer(TfLiteSignatureRunnerGetInputTensor(negate, "x"), counted, 16),
            kTfLiteOk);
  ASSERT_EQ(TfLiteSignatureRunnerInvoke(negate), kTfLiteOk);
  float negative[4];
  ASSERT_EQ(TfLiteTensorCopyToBuffer(TfLiteSignatureRunnerGetOutputTensor(negate, "y"), negative, 16),
            kTfLiteOk);
  EXPECT_THAT(negative, ElementsAre(-1, -2, -3, -4));
  TfLiteSignatureRunnerDelete(negate);
  EXPECT_EQ(TfLiteInterpreterAllocateTensors(opened.get()), kTfLiteError);
  EXPECT_THAT(reported, HasSubstr("unknown_op"));
  EXPECT_EQ(TfLiteInterpreterInvoke(opened.get()), kTfLiteError);
}

TEST(SignatureRunner, ResizesOpenDimsOnly) {
  const Opened opened(DoubleModel());
  TfLiteSignatureRunner* runner = TfLiteInterpreterGetSignatureRunner(opened.get(), "double");
  ASSERT_NE(runner, nullptr);
  const int open[] = {4, 3}, fixed[] = {4, 5};
  EXPECT_EQ(TfLiteSignatureRunnerResizeInputTensor(runner, "foo", open, 2), kTfLiteError);
  EXPECT_EQ(TfLiteSignatureRunnerResizeInputTensor(runner, "value", fixed, 2), kTfLiteError);
  ASSERT_EQ(TfLiteSignatureRunnerResizeInputTensor(runner, "value", open, 2), kTfLiteOk);
  ASSERT_EQ(TfLiteSignatureRunnerAllocateTensors(runner), kTfLiteOk);
  EXPECT_EQ(TfLiteTensorDim(TfLiteSignatureRunnerGetOutputTensor(runner, "doubled"), 0), 4);
  TfLiteSignatureRunnerDelete(runner);
  EXPECT_EQ(TfLiteInterpreterGetSignatureCount(Opened(QuantizedModel()).get()), 0);
}

}  // namespace
}  // namespace fusebox::doors
