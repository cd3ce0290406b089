// SPDX-License-Identifier: Apache-2.0
#include "doors/tflite/xnnpack.h"

#include <cstring>
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

// The options of releases 2.17 to 2.19. Later releases have one more member at the front.
struct ShortOptions {
  int32_t num_threads;
  uint32_t flags;  // later: of the runtime
  union {
    uint64_t weights_cache;
    uint32_t later_flags;
  };
  uint64_t handle_variable_ops;     // later: weights_cache. A bool and padding
  uint64_t weight_cache_file_path;  // later: handle_variable_ops
};
static_assert(sizeof(ShortOptions) == 32);
constexpr uint64_t kNoPointer = 0xffff;  // the largest value that is no pointer, but a bool or flags

// Reads options of a program with another header than ours: the members of both layouts, where one of them
// has a pointer and the other a bool.
TfLiteXNNPackDelegateOptions OfEitherLayout(const void* options) {
  ShortOptions given;
  std::memcpy(&given, options, sizeof given);
  TfLiteXNNPackDelegateOptions out = {};
  out.num_threads = given.num_threads;
  out.flags = given.flags | (given.weights_cache <= kNoPointer ? given.later_flags : 0);
  for (const uint64_t cache : {given.weights_cache, given.handle_variable_ops}) {
    if (cache > kNoPointer) out.weights_cache = reinterpret_cast<TfLiteXNNPackDelegateWeightsCache*>(cache);
  }
  if (given.weight_cache_file_path > kNoPointer)
    out.weight_cache_file_path = reinterpret_cast<const char*>(given.weight_cache_file_path);
  return out;
}

TfLiteXNNPackDelegateOptions Read(const TfLiteXNNPackDelegateOptions* options) {
  if (options == nullptr) return {};
  return options->fusebox_layout == FUSEBOX_TFLITE_XNNPACK_LAYOUT ? *options : OfEitherLayout(options);
}

}  // namespace

const XnnpackDelegate* fusebox::tflite::AsXnnpack(const TfLiteDelegate* delegate) {
  return delegate != nullptr && delegate->Prepare == PrepareElsewhere
             ? static_cast<const XnnpackDelegate*>(delegate->data_)
             : nullptr;
}

// A binary provides memory for the struct of its release, and all since 2.17 have at least these members.
extern "C" TFL_CAPI_EXPORT ShortOptions TfLiteXNNPackDelegateOptionsDefault(void) { return {}; }

TfLiteDelegate* TfLiteXNNPackDelegateCreate(const TfLiteXNNPackDelegateOptions* options) {
  const TfLiteXNNPackDelegateOptions wanted = Read(options);
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
