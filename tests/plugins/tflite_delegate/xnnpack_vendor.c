/* SPDX-License-Identifier: Apache-2.0 */
/* An external delegate of TensorFlow Lite over XNNPACK's of a TensorFlow Lite C library. Options: "library",
 * the path of that library; "flags", a number: 1 runs signed 8-bit ops, 2 unsigned ones. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "fusebox/tflite/c/common.h"

/* TfLiteXNNPackDelegateOptions of release 2.9, and room for what a later one may append. */
typedef struct Options {
  int32_t threads;
  uint32_t flags;
  uint64_t later[8];
} Options;

static void (*destroy)(TfLiteDelegate*); /* of the library that was loaded last */

TFL_CAPI_EXPORT TfLiteDelegate* tflite_plugin_create_delegate(char** keys, char** values, size_t count,
                                                              void (*report)(const char*)) {
  Options options;
  memset(&options, 0, sizeof options);
  options.threads = 1;
  void* library = NULL;
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(keys[i], "library") == 0) library = dlopen(values[i], RTLD_NOW | RTLD_LOCAL);
    if (strcmp(keys[i], "flags") == 0) options.flags = (uint32_t)atoi(values[i]);
  }
  if (library == NULL) {
    report("the option \"library\" names no library");
    return NULL;
  }
  TfLiteDelegate* (*create)(const void*) = NULL;
  *(void**)&create = dlsym(library, "TfLiteXNNPackDelegateCreate");
  *(void**)&destroy = dlsym(library, "TfLiteXNNPackDelegateDelete");
  if (create == NULL || destroy == NULL) {
    report("the library has no XNNPACK delegate");
    return NULL;
  }
  return create(&options);
}

TFL_CAPI_EXPORT void tflite_plugin_destroy_delegate(TfLiteDelegate* delegate) { destroy(delegate); }
