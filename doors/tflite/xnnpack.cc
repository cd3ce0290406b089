// SPDX-License-Identifier: Apache-2.0
#include "doors/tflite/xnnpack.h"

#include <new>

#include "doors/tflite/reporter.h"

using fusebox::tflite::AsXnnpack;
using fusebox::tflite::Reporter;
using fusebox::tflite::XnnpackDelegate;

namespace {

constexpr const char* kInMemory = ":memory:";

// Its address marks our delegates. Other runtimes call it.
TfLiteStatus PrepareElsewhere(TfLiteContext* context, TfLiteDelegate*) {
  context->ReportError(context, "This delegate is Fusebox's and runs in its interpreters only.");
  return kTfLiteDelegateError;
}

std::string CachePathOf(const TfLiteXNNPackDelegateOptions& options) {
  if (options.weights_cache != nullptr) return kInMemory;
  return options.weight_cache_file_path != nullptr ? options.weight_cache_file_path : "";
}

}  // namespace

const XnnpackDelegate* fusebox::tflite::AsXnnpack(const TfLiteDelegate* delegate) {
  return delegate != nullptr && delegate->Prepare == PrepareElsewhere
             ? static_cast<const XnnpackDelegate*>(delegate->data_)
             : nullptr;
}

TfLiteXNNPackDelegateOptions TfLiteXNNPackDelegateOptionsDefault(void) { return {}; }

TfLiteDelegate* TfLiteXNNPackDelegateCreate(const TfLiteXNNPackDelegateOptions* options) {
  const TfLiteXNNPackDelegateOptions wanted = options != nullptr ? *options : TfLiteXNNPackDelegateOptions{};
  if (wanted.weight_cache_provider != nullptr || wanted.weight_cache_file_descriptor > 0) {
    Reporter().Report("XNNPACK delegate: a weight cache needs a path; set weight_cache_file_path.");
    return nullptr;
  }
  try {
    auto* delegate = new XnnpackDelegate{.abi = {}, .options = wanted, .cache_path = CachePathOf(wanted)};
    delegate->options.weight_cache_file_path =
        wanted.weight_cache_file_path != nullptr ? delegate->cache_path.c_str() : nullptr;
    delegate->abi.data_ = delegate;
    delegate->abi.Prepare = PrepareElsewhere;
    return &delegate->abi;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

TfLiteDelegate* TfLiteXNNPackDelegateCreateWithThreadpool(const TfLiteXNNPackDelegateOptions* options,
                                                          TfLiteContext*) {
  return TfLiteXNNPackDelegateCreate(options);
}

void* TfLiteXNNPackDelegateGetThreadPool(TfLiteDelegate*) { return nullptr; }

const TfLiteXNNPackDelegateOptions* TfLiteXNNPackDelegateGetOptions(TfLiteDelegate* delegate) {
  const XnnpackDelegate* ours = AsXnnpack(delegate);
  return ours != nullptr ? &ours->options : nullptr;
}

int TfLiteXNNPackDelegateGetFlags(TfLiteDelegate* delegate) {
  const XnnpackDelegate* ours = AsXnnpack(delegate);
  return ours != nullptr ? static_cast<int>(ours->options.flags) : 0;
}

void TfLiteXNNPackDelegateDelete(TfLiteDelegate* delegate) { delete AsXnnpack(delegate); }

bool TfLiteXNNPackDelegateCanUseInMemoryWeightCacheProvider(void) { return true; }
const char* TfLiteXNNPackDelegateInMemoryFilePath(void) { return kInMemory; }

// Weights in memory are shared within the process, so a cache has no state.
struct TfLiteXNNPackDelegateWeightsCache {};

TfLiteXNNPackDelegateWeightsCache* TfLiteXNNPackDelegateWeightsCacheCreate(void) {
  return new (std::nothrow) TfLiteXNNPackDelegateWeightsCache();
}
TfLiteXNNPackDelegateWeightsCache* TfLiteXNNPackDelegateWeightsCacheCreateWithSize(size_t) {
  return TfLiteXNNPackDelegateWeightsCacheCreate();
}
bool TfLiteXNNPackDelegateWeightsCacheFinalizeSoft(TfLiteXNNPackDelegateWeightsCache* cache) {
  return cache != nullptr;
}
bool TfLiteXNNPackDelegateWeightsCacheFinalizeHard(TfLiteXNNPackDelegateWeightsCache* cache) {
  return cache != nullptr;
}
void TfLiteXNNPackDelegateWeightsCacheDelete(TfLiteXNNPackDelegateWeightsCache* cache) { delete cache; }
