/* SPDX-License-Identifier: Apache-2.0 */
/* both MODEL: linked with libfusebox-tflite_c and libtensorflowlite_c, in one of two orders. Runs the model
   with the functions that the linker chose, then with those of each library by dlopen. Prints the library and
   the first output of each run. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fusebox/tflite/c/c_api.h>
#include <stdio.h>
#include <string.h>

typedef struct Api {
  TfLiteModel* (*open)(const char*);
  TfLiteInterpreterOptions* (*options)(void);
  TfLiteInterpreter* (*create)(const TfLiteModel*, const TfLiteInterpreterOptions*);
  TfLiteStatus (*allocate)(TfLiteInterpreter*);
  TfLiteTensor* (*input)(const TfLiteInterpreter*, int32_t);
  TfLiteStatus (*invoke)(TfLiteInterpreter*);
  const TfLiteTensor* (*output)(const TfLiteInterpreter*, int32_t);
  TfLiteStatus (*copy_in)(TfLiteTensor*, const void*, size_t);
  TfLiteStatus (*copy_out)(const TfLiteTensor*, void*, size_t);
  size_t (*size)(const TfLiteTensor*);
  void (*delete_interpreter)(TfLiteInterpreter*);
  void (*delete_options)(TfLiteInterpreterOptions*);
  void (*delete_model)(TfLiteModel*);
} Api;

static const char* LibraryOf(void* function) {
  Dl_info info;
  if (dladdr(function, &info) == 0) return "?";
  return strstr(info.dli_fname, "fusebox-tflite") != NULL ? "ours" : "stock";
}

static int Run(const char* how, const Api* api, const char* path) {
  TfLiteModel* model = api->open(path);
  if (model == NULL) return 1;
  TfLiteInterpreterOptions* options = api->options();
  TfLiteInterpreter* interpreter = api->create(model, options);
  if (interpreter == NULL || api->allocate(interpreter) != kTfLiteOk) return 1;
  float values[64] = {1, 2, 3, 4};
  TfLiteTensor* x = api->input(interpreter, 0);
  if (api->copy_in(x, values, api->size(x)) != kTfLiteOk || api->invoke(interpreter) != kTfLiteOk) return 1;
  const TfLiteTensor* y = api->output(interpreter, 0);
  if (api->copy_out(y, values, api->size(y)) != kTfLiteOk) return 1;
  printf("%s: %s %g\n", how, LibraryOf((void*)api->invoke), values[0]);
  api->delete_interpreter(interpreter);
  api->delete_options(options);
  api->delete_model(model);
  return 0;
}

static int RunLoaded(const char* library, const char* path) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    printf("%s\n", dlerror());
    return 1;
  }
  const char* const names[] = {"TfLiteModelCreateFromFile",
                               "TfLiteInterpreterOptionsCreate",
                               "TfLiteInterpreterCreate",
                               "TfLiteInterpreterAllocateTensors",
                               "TfLiteInterpreterGetInputTensor",
                               "TfLiteInterpreterInvoke",
                               "TfLiteInterpreterGetOutputTensor",
                               "TfLiteTensorCopyFromBuffer",
                               "TfLiteTensorCopyToBuffer",
                               "TfLiteTensorByteSize",
                               "TfLiteInterpreterDelete",
                               "TfLiteInterpreterOptionsDelete",
                               "TfLiteModelDelete"};
  Api api;
  void* functions[sizeof names / sizeof names[0]];
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) functions[i] = dlsym(handle, names[i]);
  memcpy(&api, functions, sizeof api);
  return Run("loaded", &api, path);
}

int main(int argc, char** argv) {
  const Api linked = {TfLiteModelCreateFromFile,
                      TfLiteInterpreterOptionsCreate,
                      TfLiteInterpreterCreate,
                      TfLiteInterpreterAllocateTensors,
                      TfLiteInterpreterGetInputTensor,
                      TfLiteInterpreterInvoke,
                      TfLiteInterpreterGetOutputTensor,
                      TfLiteTensorCopyFromBuffer,
                      TfLiteTensorCopyToBuffer,
                      TfLiteTensorByteSize,
                      TfLiteInterpreterDelete,
                      TfLiteInterpreterOptionsDelete,
                      TfLiteModelDelete};
  if (argc != 2) return 2;
  if (Run("linked", &linked, argv[1]) != 0) return 1;
  if (RunLoaded("libfusebox-tflite_c.so.0", argv[1]) != 0) return 1;
  return RunLoaded("libtensorflowlite_c.so", argv[1]);
}
