/* SPDX-License-Identifier: Apache-2.0 */
/* The XNNPACK delegate of TensorFlow Lite's API: Fusebox's plugin `xnnpack` and its weight cache. */
#ifndef FUSEBOX_TFLITE_DELEGATES_XNNPACK_XNNPACK_DELEGATE_H_
#define FUSEBOX_TFLITE_DELEGATES_XNNPACK_XNNPACK_DELEGATE_H_

#include "fusebox/tflite/c/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* FORCE_FP16 computes in 16-bit floats. The others choose ops that the plugin always runs where it can. */
#define TFLITE_XNNPACK_DELEGATE_FLAG_QS8 0x00000001
#define TFLITE_XNNPACK_DELEGATE_FLAG_QU8 0x00000002
#define TFLITE_XNNPACK_DELEGATE_FLAG_FORCE_FP16 0x00000004
#define TFLITE_XNNPACK_DELEGATE_FLAG_DYNAMIC_FULLY_CONNECTED 0x00000008
#define TFLITE_XNNPACK_DELEGATE_FLAG_VARIABLE_OPERATORS 0x00000010
#define TFLITE_XNNPACK_DELEGATE_FLAG_TRANSIENT_INDIRECTION_BUFFER 0x00000020
#define TFLITE_XNNPACK_DELEGATE_FLAG_ENABLE_LATEST_OPERATORS 0x00000040
#define TFLITE_XNNPACK_DELEGATE_FLAG_ENABLE_SUBGRAPH_RESHAPING 0x00000080
#define TFLITE_XNNPACK_DELEGATE_FLAG_SLOW_CONSISTENT_ARITHMETIC 0x00000200
#define TFLITE_XNNPACK_DELEGATE_FLAG_DISABLE_SUBGRAPH_RESHAPING 0x00000400

struct TfLiteXNNPackDelegateWeightsCache;

typedef struct {
  int32_t num_threads; /* raises the number of the interpreter */
  uint32_t runtime_flags;
  uint32_t flags;
  struct TfLiteXNNPackDelegateWeightsCache* weights_cache;
  bool handle_variable_ops;
  const char* weight_cache_file_path; /* a file, or a folder for many models; NULL: no cache. Copied */
  int weight_cache_file_descriptor;   /* refused unless it is 0 or less */
  void* weight_cache_provider;        /* refused unless it is NULL */
  bool weight_cache_lock_memory;      /* has no effect */
  uint32_t fusebox_layout;            /* set by the functions below; padding in TensorFlow Lite's struct */
} TfLiteXNNPackDelegateOptions;

/* `options`: NULL: defaults. NULL: an option is refused. */
TFL_CAPI_EXPORT TfLiteDelegate* TfLiteXNNPackDelegateCreate(const TfLiteXNNPackDelegateOptions* options);
TFL_CAPI_EXPORT TfLiteDelegate* TfLiteXNNPackDelegateCreateWithThreadpool(
    const TfLiteXNNPackDelegateOptions* options, TfLiteContext* context);

/* The struct has grown with releases of TensorFlow Lite, and programs do not pass its size. So these
 * functions are inline in C and C++: a program that is built with this header runs with each release, and
 * this value in fusebox_layout tells Fusebox that the struct has all members above. Without it, only the
 * first 32 bytes are read, and the exported function TfLiteXNNPackDelegateOptionsDefault sets these only: all
 * releases since 2.17 have them. */
#define FUSEBOX_TFLITE_XNNPACK_LAYOUT 0x46425831u
#ifndef FUSEBOX_TFLITE_BUILDS_LIBRARY
TFL_CAPI_EXPORT TfLiteXNNPackDelegateOptions TfLiteXNNPackDelegateOptionsDefault(void);

static inline TfLiteXNNPackDelegateOptions FuseboxTfLiteXNNPackDelegateOptionsDefault(void) {
  TfLiteXNNPackDelegateOptions options = {0, 0, 0, NULL, false, NULL, 0, NULL, false, 0};
  return options;
}
static inline TfLiteDelegate* FuseboxTfLiteXNNPackDelegateCreateWithThreadpool(
    const TfLiteXNNPackDelegateOptions* options, TfLiteContext* context) {
  if (options == NULL) return TfLiteXNNPackDelegateCreateWithThreadpool(NULL, context);
  TfLiteXNNPackDelegateOptions marked = *options;
  marked.fusebox_layout = FUSEBOX_TFLITE_XNNPACK_LAYOUT;
  return TfLiteXNNPackDelegateCreateWithThreadpool(&marked, context);
}
static inline TfLiteDelegate* FuseboxTfLiteXNNPackDelegateCreate(
    const TfLiteXNNPackDelegateOptions* options) {
  if (options == NULL) return TfLiteXNNPackDelegateCreate(NULL);
  TfLiteXNNPackDelegateOptions marked = *options;
  marked.fusebox_layout = FUSEBOX_TFLITE_XNNPACK_LAYOUT;
  return TfLiteXNNPackDelegateCreate(&marked);
}
#define TfLiteXNNPackDelegateOptionsDefault FuseboxTfLiteXNNPackDelegateOptionsDefault
#define TfLiteXNNPackDelegateCreate FuseboxTfLiteXNNPackDelegateCreate
#define TfLiteXNNPackDelegateCreateWithThreadpool FuseboxTfLiteXNNPackDelegateCreateWithThreadpool
#endif
/* NULL: the threads are the interpreter's. */
TFL_CAPI_EXPORT void* TfLiteXNNPackDelegateGetThreadPool(TfLiteDelegate* delegate);
/* NULL: of another delegate. */
TFL_CAPI_EXPORT const TfLiteXNNPackDelegateOptions* TfLiteXNNPackDelegateGetOptions(TfLiteDelegate* delegate);
TFL_CAPI_EXPORT int TfLiteXNNPackDelegateGetFlags(TfLiteDelegate* delegate);
/* After the interpreters that use it. */
TFL_CAPI_EXPORT void TfLiteXNNPackDelegateDelete(TfLiteDelegate* delegate);
/* A path for weights that interpreters of the process share, without a file. */
TFL_CAPI_EXPORT bool TfLiteXNNPackDelegateCanUseInMemoryWeightCacheProvider(void);
TFL_CAPI_EXPORT const char* TfLiteXNNPackDelegateInMemoryFilePath(void);

/* A cache in memory: delegates that have one share their weights. Finalizing does nothing. */
TFL_CAPI_EXPORT struct TfLiteXNNPackDelegateWeightsCache* TfLiteXNNPackDelegateWeightsCacheCreate(void);
TFL_CAPI_EXPORT struct TfLiteXNNPackDelegateWeightsCache* TfLiteXNNPackDelegateWeightsCacheCreateWithSize(
    size_t size);
TFL_CAPI_EXPORT bool TfLiteXNNPackDelegateWeightsCacheFinalizeSoft(
    struct TfLiteXNNPackDelegateWeightsCache* cache);
TFL_CAPI_EXPORT bool TfLiteXNNPackDelegateWeightsCacheFinalizeHard(
    struct TfLiteXNNPackDelegateWeightsCache* cache);
TFL_CAPI_EXPORT void TfLiteXNNPackDelegateWeightsCacheDelete(struct TfLiteXNNPackDelegateWeightsCache* cache);

#ifdef __cplusplus
}
#endif

#endif
