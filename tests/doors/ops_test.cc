// SPDX-License-Identifier: Apache-2.0
// Ops of the application, delegates and resolvers of libfusebox-tflite_c.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "fusebox/tflite/c/c_api_experimental.h"
#include "fusebox/tflite/c/c_api_opaque.h"
#include "fusebox/tflite/delegates/xnnpack/xnnpack_delegate.h"
#include "tests/doors/handles.h"
#include "tests/doors/models.h"

namespace fusebox::doors {
namespace {

using ::testing::HasSubstr;

struct Counts {
  int inits = 0, frees = 0, prepares = 0, invokes = 0;
};

TfLiteRegistration AddOne() {
  TfLiteRegistration op{};
  op.invoke = [](TfLiteContext* context, TfLiteNode* node) {
    const TfLiteTensor& x = context->tensors[node->inputs->data[0]];
    TfLiteTensor& y = context->tensors[node->outputs->data[0]];
    for (size_t i = 0; i < x.bytes / 4; ++i) y.data.f[i] = x.data.f[i] + 1;
    return kTfLiteOk;
  };
  return op;
}

float RunOnTwos(TfLiteInterpreter* interpreter) {
  EXPECT_EQ(TfLiteInterpreterAllocateTensors(interpreter), kTfLiteOk);
  TfLiteTensor* input = TfLiteInterpreterGetInputTensor(interpreter, 0);
  for (size_t i = 0; i < input->bytes / 4; ++i) input->data.f[i] = 2;
  EXPECT_EQ(TfLiteInterpreterInvoke(interpreter), kTfLiteOk);
  return TfLiteInterpreterGetOutputTensor(interpreter, 0)->data.f[0];
}

TEST(AppOps, UnknownOneIsAnErrorThatNamesIt) {
  std::string reported;
  TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
  TfLiteInterpreterOptionsSetErrorReporter(options, Collect, &reported);
  EXPECT_EQ(Opened(ThreeOpsModel(), options).get(), nullptr);
  EXPECT_THAT(reported, HasSubstr("my_scale"));
  TfLiteInterpreterOptionsDelete(options);
}

TEST(AppOps, WithoutPrepareKeepsTheDimsOfTheFile) {
  const TfLiteRegistration op = AddOne();
  TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
  TfLiteInterpreterOptionsAddCustomOp(options, "my_op", &op, 1, 1);
  const Opened opened(CustomModel("my_op"), options);
  TfLiteInterpreterOptionsDelete(options);
  ASSERT_NE(opened.get(), nullptr);
  EXPECT_EQ(RunOnTwos(opened.get()), 3);
  EXPECT_EQ(TfLiteTensorNumDims(TfLiteInterpreterGetOutputTensor(opened.get(), 0)), 2);
}

TEST(AppOps, AreInitializedOncePerNode) {
  Counts counts;
  TfLiteOperator* op = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "my_op", 1, &counts);
  TfLiteOperatorSetInitWithData(op, [](void* user, TfLiteOpaqueContext*, const char*, size_t) -> void* {
    return ++static_cast<Counts*>(user)->inits, user;
  });
  TfLiteOperatorSetFreeWithData(op, [](void* user, TfLiteOpaqueContext*, void* data) {
    EXPECT_EQ(user, data);
    ++static_cast<Counts*>(user)->frees;
  });
  TfLiteOperatorSetPrepareWithData(op, [](void* user, TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
    ++static_cast<Counts*>(user)->prepares;
    EXPECT_EQ(TfLiteOpaqueNodeGetUserData(node), user);
    EXPECT_EQ(TfLiteOpaqueNodeNumberOfInputs(node), 1);
    const TfLiteOpaqueTensor* x = TfLiteOpaqueNodeGetInput(context, node, 0);
    TfLiteIntArray* dims = TfLiteIntArrayCreate(TfLiteOpaqueTensorNumDims(x));
    for (int i = 0; i < dims->size; ++i) dims->data[i] = TfLiteOpaqueTensorDim(x, i);
    return TfLiteOpaqueContextResizeTensor(context, TfLiteOpaqueNodeGetOutput(context, node, 0), dims);
  });
  TfLiteOperatorSetInvokeWithData(op, [](void* user, TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
    ++static_cast<Counts*>(user)->invokes;
    const TfLiteOpaqueTensor* x = TfLiteOpaqueNodeGetInput(context, node, 0);
    TfLiteOpaqueTensor* y = TfLiteOpaqueNodeGetOutput(context, node, 0);
    return TfLiteOpaqueTensorCopyFromBuffer(y, TfLiteOpaqueTensorData(x), TfLiteOpaqueTensorByteSize(x));
  });
  TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
  TfLiteInterpreterOptionsAddOperator(options, op);
  {
    const Opened opened(CustomModel("my_op"), options);
    ASSERT_NE(opened.get(), nullptr);
    EXPECT_EQ(counts.inits, 1);
    EXPECT_EQ(RunOnTwos(opened.get()), 2);
    EXPECT_EQ(RunOnTwos(opened.get()), 2);
    EXPECT_EQ(counts.invokes, 2);
    EXPECT_GE(counts.prepares, 1);
    EXPECT_EQ(counts.inits, 1);
  }
  EXPECT_EQ(counts.frees, 1);
  TfLiteInterpreterOptionsDelete(options);
  TfLiteOperatorDelete(op);
}

TEST(AppOps, ReportTheirErrors) {
  TfLiteRegistration op = AddOne();
  op.invoke = [](TfLiteContext* context, TfLiteNode*) {
    TfLiteIntArray* plan = nullptr;
    EXPECT_EQ(context->GetExecutionPlan(context, &plan), kTfLiteError) << "only delegates have it";
    context->ReportError(context, "the value %d is odd", 7);
    return kTfLiteError;
  };
  std::string reported;
  TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
  TfLiteInterpreterOptionsSetErrorReporter(options, Collect, &reported);
  TfLiteInterpreterOptionsAddCustomOp(options, "my_op", &op, 1, 1);
  const Opened opened(CustomModel("my_op"), options);
  ASSERT_EQ(TfLiteInterpreterAllocateTensors(opened.get()), kTfLiteOk);
  EXPECT_EQ(TfLiteInterpreterInvoke(opened.get()), kTfLiteError);
  EXPECT_THAT(reported, HasSubstr("the value 7 is odd"));
  EXPECT_THAT(reported, HasSubstr("my_op"));
  TfLiteInterpreterOptionsDelete(options);
}

TEST(AppOps, ThatFailToPrepareFailInAllocateTensors) {
  TfLiteRegistration op = AddOne();
  op.prepare = [](TfLiteContext* context, TfLiteNode*) {
    context->ReportError(context, "not today");
    return kTfLiteError;
  };
  std::string reported;
  TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
  TfLiteInterpreterOptionsSetErrorReporter(options, Collect, &reported);
  TfLiteInterpreterOptionsAddCustomOp(options, "my_op", &op, 1, 1);
  const Opened opened(CustomModel("my_op"), options);
  ASSERT_NE(opened.get(), nullptr);
  EXPECT_EQ(reported, "");
  EXPECT_EQ(TfLiteInterpreterAllocateTensors(opened.get()), kTfLiteError);
  EXPECT_THAT(reported, HasSubstr("not today"));
  TfLiteInterpreterOptionsDelete(options);
}

TEST(AppOps, ReplaceBuiltinOps) {
  const TfLiteRegistration op = AddOne();
  TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
  TfLiteInterpreterOptionsAddBuiltinOp(options, kTfLiteBuiltinAdd, &op, 1, 9);
  const Opened opened(DoubleModel(), options);
  EXPECT_EQ(RunOnTwos(opened.get()), 3);
  TfLiteInterpreter* selected = TfLiteInterpreterCreateWithSelectedOps(opened.model(), options);
  ASSERT_NE(selected, nullptr);
  EXPECT_EQ(RunOnTwos(selected), 3);
  TfLiteInterpreterDelete(selected);
  TfLiteInterpreterOptionsDelete(options);
  options = TfLiteInterpreterOptionsCreate();
  EXPECT_EQ(TfLiteInterpreterCreateWithSelectedOps(opened.model(), options), nullptr);
  TfLiteInterpreterOptionsDelete(options);
}

TEST(AppOps, AreFoundByResolvers) {
  static const TfLiteRegistration op = AddOne();
  TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
  int data = 5;
  TfLiteInterpreterOptionsSetOpResolver(
      options, nullptr,
      [](void* user, const char* name, int version) -> const TfLiteRegistration* {
        EXPECT_EQ(*static_cast<int*>(user), 5);
        return std::string(name) == "my_op" && version == 1 ? &op : nullptr;
      },
      &data);
  const Opened opened(CustomModel("my_op"), options);
  ASSERT_NE(opened.get(), nullptr);
  EXPECT_EQ(RunOnTwos(opened.get()), 3);
  EXPECT_EQ(Opened(CustomModel("other"), options).get(), nullptr);
  TfLiteInterpreterOptionsDelete(options);
}

TEST(Delegates, OfOtherLibrariesAreRefused) {
  TfLiteDelegate foreign = TfLiteDelegateCreate();
  foreign.Prepare = [](TfLiteContext*, TfLiteDelegate*) { return kTfLiteOk; };
  std::string reported;
  TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
  TfLiteInterpreterOptionsSetErrorReporter(options, Collect, &reported);
  TfLiteInterpreterOptionsAddDelegate(options, &foreign);
  EXPECT_EQ(Opened(DoubleModel(), options).get(), nullptr);
  EXPECT_THAT(reported, HasSubstr("tflite_delegate"));
  TfLiteInterpreterOptionsDelete(options);
}

TEST(Delegates, XnnpackKeepsItsWeightsInAFile) {
  const std::string cache = WriteModel("", "weights.cache");
  std::filesystem::remove_all(cache);
  TfLiteXNNPackDelegateOptions wanted = TfLiteXNNPackDelegateOptionsDefault();
  wanted.weight_cache_file_path = cache.c_str();
  TfLiteDelegate* delegate = TfLiteXNNPackDelegateCreate(&wanted);
  ASSERT_NE(delegate, nullptr);
  EXPECT_STREQ(TfLiteXNNPackDelegateGetOptions(delegate)->weight_cache_file_path, cache.c_str());
  const std::string path = WriteModel(DenseModel(64), "dense.tflite");
  TfLiteModel* model = TfLiteModelCreateFromFile(path.c_str());
  for (int start = 0; start < 2; ++start) {
    TfLiteInterpreter* interpreter = TfLiteInterpreterCreate(model, nullptr);
    ASSERT_EQ(TfLiteInterpreterModifyGraphWithDelegate(interpreter, delegate), kTfLiteOk);
    EXPECT_EQ(RunOnTwos(interpreter), 128);
    TfLiteInterpreterDelete(interpreter);
    EXPECT_TRUE(std::filesystem::exists(cache));
  }
  TfLiteModelDelete(model);
  TfLiteXNNPackDelegateDelete(delegate);
  wanted.weight_cache_file_descriptor = 5;
  EXPECT_EQ(TfLiteXNNPackDelegateCreate(&wanted), nullptr);
}

template <class F>
F* Exported(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

// TfLiteXNNPackDelegateOptions as binaries have it that were built with headers of other releases.
struct OptionsOf217 {
  int32_t num_threads;
  uint32_t flags;
  void* weights_cache;
  bool handle_variable_ops;
  const char* weight_cache_file_path;
};
struct OptionsOf220 {
  int32_t num_threads;
  uint32_t runtime_flags, flags;
  void* weights_cache;
  bool handle_variable_ops;
  const char* weight_cache_file_path;
  int weight_cache_file_descriptor;
  void* weight_cache_provider;
};

// Options with filled memory behind them. The library neither writes this memory nor depends on its values.
template <class Options>
struct Guarded {
  Options options;
  uint64_t after[8];

  Guarded() {
    std::memset(static_cast<void*>(this), 0x5a, sizeof *this);
    new (&options) Options(Exported<Options()>("TfLiteXNNPackDelegateOptionsDefault")());
  }
  bool intact() const {
    return std::ranges::all_of(after, [](uint64_t word) { return word == 0x5a5a5a5a5a5a5a5aU; });
  }
  TfLiteXNNPackDelegateOptions Read() const {
    TfLiteDelegate* delegate =
        Exported<TfLiteDelegate*(const Options*)>("TfLiteXNNPackDelegateCreate")(&options);
    const TfLiteXNNPackDelegateOptions out = *TfLiteXNNPackDelegateGetOptions(delegate);
    TfLiteXNNPackDelegateDelete(delegate);
    return out;
  }
};

TEST(Delegates, XnnpackReadsOptionsOfRelease217) {
  Guarded<OptionsOf217> given;
  EXPECT_TRUE(given.intact());
  EXPECT_EQ(given.options.weight_cache_file_path, nullptr);
  EXPECT_EQ(given.Read().weight_cache_file_path, nullptr);
  EXPECT_EQ(given.Read().flags, 0U);
  given.options.num_threads = 3;
  given.options.flags = TFLITE_XNNPACK_DELEGATE_FLAG_FORCE_FP16;
  given.options.weight_cache_file_path = "a path that is gone";
  EXPECT_EQ(given.Read().num_threads, 3);
  EXPECT_EQ(given.Read().flags, static_cast<uint32_t>(TFLITE_XNNPACK_DELEGATE_FLAG_FORCE_FP16));
  EXPECT_NE(given.Read().weight_cache_file_path, nullptr);
  EXPECT_EQ(given.Read().weights_cache, nullptr);
}

TEST(Delegates, XnnpackReadsOptionsOfRelease220) {
  Guarded<OptionsOf220> given;
  EXPECT_TRUE(given.intact());
  given.options.num_threads = 3;
  given.options.flags = TFLITE_XNNPACK_DELEGATE_FLAG_FORCE_FP16;
  given.options.handle_variable_ops = true;
  EXPECT_EQ(given.Read().num_threads, 3);
  EXPECT_EQ(given.Read().flags, static_cast<uint32_t>(TFLITE_XNNPACK_DELEGATE_FLAG_FORCE_FP16));
  EXPECT_EQ(given.Read().weight_cache_file_path, nullptr);
  EXPECT_EQ(given.Read().weights_cache, nullptr);
}

TEST(Delegates, XnnpackReadsAllOptionsOfProgramsWithOurHeader) {
  TfLiteXNNPackDelegateOptions wanted = {};
  wanted.weight_cache_file_path = "weights";
  TfLiteDelegate* delegate = TfLiteXNNPackDelegateCreate(&wanted);
  ASSERT_NE(delegate, nullptr);
  EXPECT_STREQ(TfLiteXNNPackDelegateGetOptions(delegate)->weight_cache_file_path, "weights");
  TfLiteXNNPackDelegateDelete(delegate);
  delegate = TfLiteXNNPackDelegateCreateWithThreadpool(&wanted, nullptr);
  ASSERT_NE(delegate, nullptr);
  EXPECT_STREQ(TfLiteXNNPackDelegateGetOptions(delegate)->weight_cache_file_path, "weights");
  TfLiteXNNPackDelegateDelete(delegate);
}

}  // namespace
}  // namespace fusebox::doors
