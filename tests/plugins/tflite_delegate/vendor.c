/* SPDX-License-Identifier: Apache-2.0 */
/* An external delegate of TensorFlow Lite for tests. It runs ADD, MUL and SUB of f32 tensors of one size, and
 * DEQUANTIZE of 16-bit floats. The option "mode" makes it claim less, or fail. */
#include <stdlib.h>
#include <string.h>

#include "fusebox/tflite/c/common.h"

enum { kAdd = 0, kDequantize = 6, kMul = 18, kSub = 41 };

typedef struct Vendor {
  TfLiteDelegate base;
  char mode[32];
  int claimed; /* nodes */
} Vendor;

typedef struct Kernel {
  const Vendor* vendor;
  int count;
  int op[16], a[16], b[16], out[16];
  float* between[64]; /* values inside, by tensor */
} Kernel;

static int Is(const Vendor* vendor, const char* mode) { return strcmp(vendor->mode, mode) == 0; }

static int Supports(const Vendor* vendor, int code) {
  if (Is(vendor, "some")) return code == kAdd;
  return code == kAdd || code == kMul || code == kSub || code == kDequantize;
}

static float Half(uint16_t bits) { /* normal numbers and zero */
  const uint32_t wide =
      (bits & 0x8000U) << 16 | ((bits & 0x7fffU) != 0 ? ((bits & 0x7fffU) << 13) + (112U << 23) : 0);
  float out;
  memcpy(&out, &wide, sizeof out);
  return out;
}

static void* Init(TfLiteContext* context, const char* buffer, size_t length) {
  (void)length;
  const TfLiteDelegateParams* params = (const TfLiteDelegateParams*)buffer;
  Kernel* kernel = calloc(1, sizeof(Kernel));
  kernel->vendor = (const Vendor*)params->delegate->data_;
  for (int i = 0; i < params->nodes_to_replace->size; ++i) {
    TfLiteNode* node;
    TfLiteRegistration* registration;
    if (context->GetNodeAndRegistration(context, params->nodes_to_replace->data[i], &node, &registration) !=
        kTfLiteOk)
      continue;
    kernel->op[kernel->count] = registration->builtin_code;
    kernel->a[kernel->count] = node->inputs->data[0];
    kernel->b[kernel->count] = node->inputs->data[node->inputs->size - 1];
    kernel->out[kernel->count++] = node->outputs->data[0];
  }
  return kernel;
}

static void Free(TfLiteContext* context, void* data) {
  (void)context;
  Kernel* kernel = data;
  for (int i = 0; i < 64; ++i) free(kernel->between[i]);
  free(kernel);
}

static int IsOutput(const TfLiteNode* node, int tensor) {
  for (int i = 0; i < node->outputs->size; ++i)
    if (node->outputs->data[i] == tensor) return 1;
  return 0;
}

static TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  Kernel* kernel = node->user_data;
  if (Is(kernel->vendor, "prepare")) {
    context->ReportError(context, "no memory for %d nodes", kernel->count);
    return kTfLiteError;
  }
  if (Is(kernel->vendor, "dynamic"))
    context->tensors[node->outputs->data[0]].allocation_type = kTfLiteDynamic;
  if (Is(kernel->vendor, "shape")) {
    const int dims[] = {3, 1};
    return context->ResizeTensorExplicit(context, &context->tensors[node->outputs->data[0]], 2, dims);
  }
  if (Is(kernel->vendor, "scratch")) {
    int index;
    return context->RequestScratchBufferInArena(context, 64, &index);
  }
  for (int i = 0; i < kernel->count; ++i)
    if (!IsOutput(node, kernel->out[i]))
      kernel->between[kernel->out[i]] = malloc(context->tensors[kernel->out[i]].bytes);
  return kTfLiteOk;
}

static float Compute(int op, float a, float b) { return op == kAdd ? a + b : op == kMul ? a * b : a - b; }

static float* DataOf(TfLiteContext* context, const Kernel* kernel, int tensor) {
  return kernel->between[tensor] != NULL ? kernel->between[tensor] : context->tensors[tensor].data.f;
}

static TfLiteStatus Invoke(TfLiteContext* context, TfLiteNode* node) {
  const Kernel* kernel = node->user_data;
  if (Is(kernel->vendor, "invoke")) {
    context->ReportError(context, "the device is gone");
    return kTfLiteError;
  }
  for (int i = 0; i < kernel->count; ++i) {
    const TfLiteTensor* out = &context->tensors[kernel->out[i]];
    float* y = DataOf(context, kernel, kernel->out[i]);
    const float* a = DataOf(context, kernel, kernel->a[i]);
    const float* b = DataOf(context, kernel, kernel->b[i]);
    const size_t count_a =
        context->tensors[kernel->a[i]].bytes / sizeof(float); /* it may be a row of the result */
    const size_t count_b = context->tensors[kernel->b[i]].bytes / sizeof(float);
    for (size_t k = 0; k < out->bytes / sizeof(float); ++k) {
      if (kernel->op[i] == kDequantize) y[k] = Half(context->tensors[kernel->a[i]].data.f16[k].data);
      else y[k] = Compute(kernel->op[i], a[k % count_a], b[k % count_b]);
    }
  }
  return kTfLiteOk;
}

static TfLiteStatus Apply(TfLiteContext* context, TfLiteDelegate* delegate) {
  Vendor* vendor = delegate->data_;
  if (Is(vendor, "apply")) {
    context->ReportError(context, "no device");
    return kTfLiteError;
  }
  if (Is(vendor, "metadata")) {
    const char* text;
    size_t bytes;
    return context->GetModelMetadata(context, "name", &text, &bytes);
  }
  TfLiteIntArray* plan;
  if (context->GetExecutionPlan(context, &plan) != kTfLiteOk) return kTfLiteError;
  TfLiteIntArray* nodes = malloc(sizeof(TfLiteIntArray) + (size_t)plan->size * sizeof(int));
  nodes->size = 0;
  for (int i = 0; i < plan->size; ++i) {
    TfLiteNode* node;
    TfLiteRegistration* registration;
    context->GetNodeAndRegistration(context, plan->data[i], &node, &registration);
    if (Supports(vendor, registration->builtin_code)) nodes->data[nodes->size++] = plan->data[i];
  }
  TfLiteDelegateParams* parts;
  int count = 0;
  TfLiteStatus status = context->PreviewDelegatePartitioning(context, nodes, &parts, &count);
  if (count > 0 && parts[0].delegate != delegate) status = kTfLiteError;
  TfLiteRegistration kernel;
  memset(&kernel, 0, sizeof kernel);
  kernel.init = Init;
  kernel.free = Free;
  kernel.prepare = Prepare;
  kernel.invoke = Invoke;
  kernel.custom_name = "Vendor";
  if (status == kTfLiteOk)
    status = context->ReplaceNodeSubsetsWithDelegateKernels(context, kernel, nodes, delegate);
  free(nodes);
  return status;
}

TFL_CAPI_EXPORT TfLiteDelegate* tflite_plugin_create_delegate(char** keys, char** values, size_t count,
                                                              void (*report)(const char*)) {
  Vendor* vendor = calloc(1, sizeof(Vendor));
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(keys[i], "mode") == 0) {
      strncpy(vendor->mode, values[i], sizeof(vendor->mode) - 1);
    } else {
      report("an unknown option");
      free(vendor);
      return NULL;
    }
  }
  vendor->base.data_ = vendor;
  vendor->base.Prepare = Apply;
  return &vendor->base;
}

TFL_CAPI_EXPORT void tflite_plugin_destroy_delegate(TfLiteDelegate* delegate) { free(delegate->data_); }
