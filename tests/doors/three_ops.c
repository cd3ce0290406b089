/* SPDX-License-Identifier: Apache-2.0 */
/* three_ops MODEL: a program of the C API with custom ops: my_scale (no state, options), my_positive (a
 * result whose size depends on data) and my_sum (a variable tensor). Prints all outputs of three runs, a
 * reset and two more. One binary runs with TensorFlow Lite's library and with ours
 * (LD_LIBRARY_PATH). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/lite/c/c_api.h"
#include "tensorflow/lite/c/c_api_experimental.h"
#include "tensorflow/lite/c/common.h"

static TfLiteTensor* Input(TfLiteContext* context, TfLiteNode* node, int i) {
  return &context->tensors[node->inputs->data[i]];
}
static TfLiteTensor* Output(TfLiteContext* context, TfLiteNode* node, int i) {
  return &context->tensors[node->outputs->data[i]];
}
static int Elements(const TfLiteTensor* tensor) {
  int count = 1;
  for (int i = 0; i < tensor->dims->size; ++i) count *= tensor->dims->data[i];
  return count;
}

/* my_scale: y = factor * x + the sum of a temporary; the factor is the first option byte. */
typedef struct {
  float factor;
  int scratch;
  int prepared;
} Scale;

static void* ScaleInit(TfLiteContext* context, const char* buffer, size_t length) {
  Scale* scale = malloc(sizeof *scale);
  scale->factor = length > 0 ? (float)buffer[0] : 1.0f;
  scale->prepared = 0;
  context->AddTensors(context, 1, &scale->scratch);
  return scale;
}
static void ScaleFree(TfLiteContext* context, void* data) {
  (void)context;
  free(data);
}
static TfLiteStatus ScalePrepare(TfLiteContext* context, TfLiteNode* node) {
  Scale* scale = node->user_data;
  TF_LITE_ENSURE_EQ(context, node->inputs->size, 1);
  TF_LITE_ENSURE_TYPES_EQ(context, Input(context, node, 0)->type, kTfLiteFloat32);
  TfLiteIntArrayFree(node->temporaries);
  node->temporaries = TfLiteIntArrayCreate(1);
  node->temporaries->data[0] = scale->scratch;
  TfLiteTensor* temporary = &context->tensors[scale->scratch];
  temporary->type = kTfLiteFloat32;
  temporary->allocation_type = kTfLiteArenaRw;
  TfLiteIntArray* size = TfLiteIntArrayCreate(1);
  size->data[0] = 8;
  TF_LITE_ENSURE_STATUS(context->ResizeTensor(context, temporary, size));
  scale->prepared = 1;
  return context->ResizeTensor(context, Output(context, node, 0),
                               TfLiteIntArrayCopy(Input(context, node, 0)->dims));
}
static TfLiteStatus ScaleInvoke(TfLiteContext* context, TfLiteNode* node) {
  const Scale* scale = node->user_data;
  TF_LITE_ENSURE(context, scale->prepared);
  float* scratch = context->tensors[node->temporaries->data[0]].data.f;
  for (int i = 0; i < 8; ++i) scratch[i] = (float)i;
  const TfLiteTensor* x = Input(context, node, 0);
  for (int i = 0; i < Elements(x); ++i)
    Output(context, node, 0)->data.f[i] = scale->factor * x->data.f[i] + scratch[7];
  return kTfLiteOk;
}

/* my_positive: the elements above 10, in order. */
static TfLiteStatus PositivePrepare(TfLiteContext* context, TfLiteNode* node) {
  TfLiteTensor* y = Output(context, node, 0);
  y->allocation_type = kTfLiteDynamic;
  y->data.raw = NULL;
  return kTfLiteOk;
}
static TfLiteStatus PositiveInvoke(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* x = Input(context, node, 0);
  int count = 0;
  for (int i = 0; i < Elements(x); ++i) count += x->data.f[i] > 10;
  TfLiteIntArray* size = TfLiteIntArrayCreate(1);
  size->data[0] = count;
  TF_LITE_ENSURE_STATUS(context->ResizeTensor(context, Output(context, node, 0), size));
  count = 0;
  for (int i = 0; i < Elements(x); ++i)
    if (x->data.f[i] > 10) Output(context, node, 0)->data.f[count++] = x->data.f[i];
  return kTfLiteOk;
}

/* my_sum: adds x to a variable tensor; y is the sum so far. */
static TfLiteStatus SumPrepare(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE(context, Input(context, node, 1)->is_variable);
  return context->ResizeTensor(context, Output(context, node, 0),
                               TfLiteIntArrayCopy(Input(context, node, 0)->dims));
}
static TfLiteStatus SumInvoke(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* x = Input(context, node, 0);
  float* sum = Input(context, node, 1)->data.f;
  for (int i = 0; i < Elements(x); ++i) {
    sum[i] += x->data.f[i];
    Output(context, node, 0)->data.f[i] = sum[i];
  }
  return kTfLiteOk;
}

static int Check(int holds, const char* what) {
  if (!holds) {
    printf("failed: %s\n", what);
    exit(1);
  }
  return holds;
}

static void RunOnce(TfLiteInterpreter* interpreter, float from) {
  TfLiteTensor* input = TfLiteInterpreterGetInputTensor(interpreter, 0);
  float values[64];
  const int count = (int)(TfLiteTensorByteSize(input) / sizeof(float));
  for (int i = 0; i < count; ++i) values[i] = from + (float)i;
  Check(TfLiteTensorCopyFromBuffer(input, values, TfLiteTensorByteSize(input)) == kTfLiteOk, "copy");
  Check(TfLiteInterpreterInvoke(interpreter) == kTfLiteOk, "invoke");
  for (int o = 0; o < TfLiteInterpreterGetOutputTensorCount(interpreter); ++o) {
    const TfLiteTensor* output = TfLiteInterpreterGetOutputTensor(interpreter, o);
    printf("%s [", TfLiteTensorName(output));
    for (int d = 0; d < TfLiteTensorNumDims(output); ++d) printf(" %d", TfLiteTensorDim(output, d));
    printf(" ]:");
    Check(TfLiteTensorByteSize(output) <= sizeof values, "size");
    Check(TfLiteTensorCopyToBuffer(output, values, TfLiteTensorByteSize(output)) == kTfLiteOk, "output");
    for (size_t i = 0; i < TfLiteTensorByteSize(output) / sizeof(float); ++i) printf(" %g", values[i]);
    printf("\n");
  }
}

int main(int argc, char** argv) {
  static const TfLiteRegistration scale = {
      .init = ScaleInit, .free = ScaleFree, .prepare = ScalePrepare, .invoke = ScaleInvoke, .version = 1};
  static const TfLiteRegistration positive = {
      .prepare = PositivePrepare, .invoke = PositiveInvoke, .version = 1};
  static const TfLiteRegistration sum = {.prepare = SumPrepare, .invoke = SumInvoke, .version = 1};
  Check(argc == 2, "usage: three_ops MODEL");
  TfLiteModel* model = TfLiteModelCreateFromFile(argv[1]);
  Check(model != NULL, "model");
  TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
  TfLiteInterpreterOptionsAddCustomOp(options, "my_scale", &scale, 1, 1);
  TfLiteInterpreterOptionsAddCustomOp(options, "my_positive", &positive, 1, 1);
  TfLiteInterpreterOptionsAddCustomOp(options, "my_sum", &sum, 1, 1);
  TfLiteInterpreter* interpreter = TfLiteInterpreterCreate(model, options);
  Check(interpreter != NULL, "interpreter");
  TfLiteInterpreterOptionsDelete(options);
  TfLiteModelDelete(model);
  Check(TfLiteInterpreterAllocateTensors(interpreter) == kTfLiteOk, "allocate");
  for (int run = 0; run < 3; ++run) RunOnce(interpreter, (float)run);
  const int larger[] = {2, 3};
  Check(TfLiteInterpreterResizeInputTensor(interpreter, 0, larger, 2) == kTfLiteOk, "resize");
  Check(TfLiteInterpreterInvoke(interpreter) != kTfLiteOk, "invoke before allocate is an error");
  const int back[] = {1, 4};
  Check(TfLiteInterpreterResizeInputTensor(interpreter, 0, back, 2) == kTfLiteOk, "resize back");
  Check(TfLiteInterpreterAllocateTensors(interpreter) == kTfLiteOk, "allocate again");
  Check(TfLiteInterpreterResetVariableTensors(interpreter) == kTfLiteOk, "reset");
  for (int run = 0; run < 2; ++run) RunOnce(interpreter, 5);
  TfLiteInterpreterDelete(interpreter);
  return 0;
}
