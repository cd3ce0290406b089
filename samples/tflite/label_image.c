/* SPDX-License-Identifier: Apache-2.0 */
/*
 * label_image: classifies a picture with the C API of TensorFlow Lite. It builds and runs with Fusebox's
 * library and with TensorFlow Lite's.
 *
 *   label_image MODEL PICTURE.ppm [LABELS.txt] [-t THREADS] [-n RUNS] [-x] [-w CACHE] [-d DRAWN.ppm]
 *
 * The model has one input, [1, height, width, 3] of floats in -1..1, u8 or i8, and one output of scores. The
 * picture is a binary PPM; it is scaled to the input. -x: the XNNPACK delegate; -w: keep its packed weights
 * in a file; -d: write the picture with a bar for each of the five best scores. Prints the five best labels.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tensorflow/lite/c/c_api.h"
#include "tensorflow/lite/delegates/xnnpack/xnnpack_delegate.h"

enum { kBest = 5, kMaxLabels = 4096 };

typedef struct {
  int width, height;
  unsigned char* rgb;
} Picture;

static void Fail(const char* what, const char* subject) {
  fprintf(stderr, "label_image: %s: %s\n", subject, what);
  exit(2);
}

static Picture ReadPicture(const char* path) {
  Picture picture = {0, 0, NULL};
  FILE* file = fopen(path, "rb");
  int most = 0;
  if (file == NULL) Fail("cannot be read", path);
  if (fscanf(file, "P6 %d %d %d", &picture.width, &picture.height, &most) != 3 || most != 255 ||
      picture.width < 1 || picture.height < 1 || picture.width > 1 << 14 || picture.height > 1 << 14)
    Fail("is no binary PPM with 8 bits per color", path);
  fgetc(file);
  const size_t bytes = (size_t)picture.width * (size_t)picture.height * 3;
  picture.rgb = malloc(bytes);
  if (picture.rgb == NULL || fread(picture.rgb, 1, bytes, file) != bytes) Fail("ends too early", path);
  fclose(file);
  return picture;
}

/* The nearest pixel of the picture for each element of the input. */
static void FillInput(const Picture* picture, TfLiteTensor* input) {
  if (TfLiteTensorNumDims(input) != 4 || TfLiteTensorDim(input, 3) != 3)
    Fail("the input is not [1, height, width, 3]", TfLiteTensorName(input));
  const int height = TfLiteTensorDim(input, 1);
  const int width = TfLiteTensorDim(input, 2);
  void* data = TfLiteTensorData(input);
  for (int i = 0; i < height * width * 3; ++i) {
    const int y = i / 3 / width * picture->height / height;
    const int x = i / 3 % width * picture->width / width;
    const int color = picture->rgb[(y * picture->width + x) * 3 + i % 3];
    switch (TfLiteTensorType(input)) {
      case kTfLiteFloat32: ((float*)data)[i] = (float)color / 127.5f - 1; break;
      case kTfLiteUInt8: ((unsigned char*)data)[i] = (unsigned char)color; break;
      case kTfLiteInt8: ((signed char*)data)[i] = (signed char)(color - 128); break;
      default: Fail("the input is neither f32, u8 nor i8", TfLiteTensorName(input));
    }
  }
}

static float ScoreAt(const TfLiteTensor* output, int i) {
  const TfLiteQuantizationParams quant = TfLiteTensorQuantizationParams(output);
  const void* data = TfLiteTensorData(output);
  switch (TfLiteTensorType(output)) {
    case kTfLiteFloat32: return ((const float*)data)[i];
    case kTfLiteUInt8: return quant.scale * (float)(((const unsigned char*)data)[i] - quant.zero_point);
    case kTfLiteInt8: return quant.scale * (float)(((const signed char*)data)[i] - quant.zero_point);
    default: Fail("the output is neither f32, u8 nor i8", TfLiteTensorName(output));
  }
  return 0;
}

static int FindBest(const TfLiteTensor* output, int best[kBest]) {
  int count = 1;
  int found = 0;
  for (int d = 0; d < TfLiteTensorNumDims(output); ++d) count *= TfLiteTensorDim(output, d);
  for (int i = 0; i < count; ++i) {
    int at = found < kBest ? found++ : kBest;
    for (; at > 0 && ScoreAt(output, i) > ScoreAt(output, best[at - 1]); --at)
      if (at < kBest) best[at] = best[at - 1];
    if (at < kBest) best[at] = i;
  }
  return found;
}

static int ReadLabels(const char* path, char* labels[kMaxLabels]) {
  int count = 0;
  char line[256];
  FILE* file = fopen(path, "r");
  if (file == NULL) Fail("cannot be read", path);
  while (count < kMaxLabels && fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\r\n")] = '\0';
    labels[count] = malloc(strlen(line) + 1);
    strcpy(labels[count++], line);
  }
  fclose(file);
  return count;
}

/* A bar per score in the lower left corner. */
static void Draw(const char* path, Picture* picture, const float* scores, int count) {
  for (int b = 0; b < count; ++b) {
    const float score = scores[b] < 0 ? 0 : scores[b] > 1 ? 1 : scores[b];
    const int length = (int)(score * (float)(picture->width - 1));
    for (int y = 0; y < 6; ++y) {
      const int row = picture->height - 8 * (count - b) + y;
      for (int x = 0; row >= 0 && x <= length; ++x)
        memcpy(&picture->rgb[(row * picture->width + x) * 3], "\xff\x40\x20", 3);
    }
  }
  FILE* file = fopen(path, "wb");
  if (file == NULL) Fail("cannot be written", path);
  fprintf(file, "P6\n%d %d\n255\n", picture->width, picture->height);
  fwrite(picture->rgb, 3, (size_t)picture->width * (size_t)picture->height, file);
  if (fclose(file) != 0) Fail("cannot be written", path);
}

static double Milliseconds(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int main(int argc, char** argv) {
  const char* paths[3] = {NULL, NULL, NULL};
  const char* drawn = NULL;
  const char* cache = NULL;
  int given = 0;
  int threads = 1;
  int runs = 1;
  int xnnpack = 0;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "-x") == 0) xnnpack = 1;
    else if (strcmp(argv[i], "-t") == 0 && i + 1 < argc) threads = atoi(argv[++i]);
    else if (strcmp(argv[i], "-n") == 0 && i + 1 < argc) runs = atoi(argv[++i]);
    else if (strcmp(argv[i], "-w") == 0 && i + 1 < argc) cache = argv[++i];
    else if (strcmp(argv[i], "-d") == 0 && i + 1 < argc) drawn = argv[++i];
    else if (given < 3) paths[given++] = argv[i];
  }
  if (given < 2)
    Fail("usage: MODEL PICTURE.ppm [LABELS.txt] [-t N] [-n N] [-x] [-w CACHE] [-d DRAWN.ppm]", "arguments");

  TfLiteModel* model = TfLiteModelCreateFromFile(paths[0]);
  if (model == NULL) Fail("is no .tflite file", paths[0]);
  TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
  TfLiteInterpreterOptionsSetNumThreads(options, threads);
  TfLiteDelegate* delegate = NULL;
  if (xnnpack || cache != NULL) {
    TfLiteXNNPackDelegateOptions wanted = TfLiteXNNPackDelegateOptionsDefault();
    wanted.num_threads = threads;
    wanted.weight_cache_file_path = cache;
    delegate = TfLiteXNNPackDelegateCreate(&wanted);
    TfLiteInterpreterOptionsAddDelegate(options, delegate);
  }
  TfLiteInterpreter* interpreter = TfLiteInterpreterCreate(model, options);
  if (interpreter == NULL || TfLiteInterpreterAllocateTensors(interpreter) != kTfLiteOk)
    Fail("cannot run", paths[0]);

  Picture picture = ReadPicture(paths[1]);
  FillInput(&picture, TfLiteInterpreterGetInputTensor(interpreter, 0));
  const double start = Milliseconds();
  for (int run = 0; run < runs; ++run)
    if (TfLiteInterpreterInvoke(interpreter) != kTfLiteOk) Fail("failed to run", paths[0]);
  fprintf(stderr, "%.2f ms per run\n", (Milliseconds() - start) / (runs > 0 ? runs : 1));

  char* labels[kMaxLabels];
  const int label_count = paths[2] != NULL ? ReadLabels(paths[2], labels) : 0;
  const TfLiteTensor* output = TfLiteInterpreterGetOutputTensor(interpreter, 0);
  int best[kBest];
  float scores[kBest];
  const int found = FindBest(output, best);
  for (int b = 0; b < found; ++b) {
    scores[b] = ScoreAt(output, best[b]);
    printf("%.4f %d %s\n", scores[b], best[b], best[b] < label_count ? labels[best[b]] : "");
  }
  if (drawn != NULL) Draw(drawn, &picture, scores, found);

  for (int i = 0; i < label_count; ++i) free(labels[i]);
  free(picture.rgb);
  TfLiteInterpreterDelete(interpreter);
  TfLiteXNNPackDelegateDelete(delegate);
  TfLiteInterpreterOptionsDelete(options);
  TfLiteModelDelete(model);
  return 0;
}
