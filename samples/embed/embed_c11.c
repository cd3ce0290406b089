/* SPDX-License-Identifier: Apache-2.0 */
/* embed_c11 MODEL [ENDLESS]: runs a model from memory without copies, prints the time of each node, and
 * cancels a model that does not end. C11. */
#include <fusebox/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>

/* Ends the program after a failure. `error` is a pointer: its text is set by the call that yields `status`.
 */
static void check(fusebox_status status, char** error) {
  if (status == FUSEBOX_OK) return;
  fprintf(stderr, "embed_c11: %s: %s\n", fusebox_status_name(status), *error != NULL ? *error : "");
  exit(2);
}

/* At least `bytes` and 16 more, aligned to 64 bytes: what bound memory needs to be used in place. */
static void* aligned(size_t bytes) {
  const size_t size = (bytes + 16 + 63) / 64 * 64;
  void* memory = aligned_alloc(64, size);
  if (memory == NULL) exit(2);
  return memset(memory, 0, size);
}

static void* read_file(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
    perror(path);
    exit(2);
  }
  *size = (size_t)ftell(file);
  rewind(file);
  void* bytes = aligned(*size);
  if (fread(bytes, 1, *size, file) != *size) exit(2);
  fclose(file);
  return bytes;
}

static fusebox_model* open_model(const char* path) {
  size_t size = 0;
  void* bytes = read_file(path, &size);
  fusebox_model* model = NULL;
  char* error = NULL;
  /* free is called when nothing uses the bytes any more, also after a failure */
  check(fusebox_model_from_memory(bytes, size, free, bytes, NULL, NULL, &model, &error), &error);
  return model;
}

/* Binds the first f32 input to `values` (dims that are not known become 1). Returns the number of elements.
 */
static size_t bind_input(fusebox_session* session, float** values) {
  char* error = NULL;
  fusebox_tensor input = FUSEBOX_TENSOR;
  check(fusebox_session_input(session, 0, &input, &error), &error);
  int64_t dims[8] = {0};
  size_t count = 1;
  for (int32_t i = 0; i < input.rank && i < 8; ++i) {
    dims[i] = input.dims[i] < 0 ? 1 : input.dims[i];
    count *= (size_t)dims[i];
  }
  check(fusebox_session_resize_input(session, 0, dims, input.rank, &error), &error);
  *values = aligned(count * sizeof(float));
  for (size_t i = 0; i < count; ++i) (*values)[i] = (float)i;
  check(fusebox_session_bind_input(session, 0, *values, count * sizeof(float), &error), &error);
  return count;
}

static void print_times(fusebox_session* session) {
  char* error = NULL;
  int32_t count = 0;
  check(fusebox_session_times(session, &count, &error), &error);
  for (int32_t i = 0; i < count; ++i) {
    fusebox_node_time time = FUSEBOX_NODE_TIME;
    check(fusebox_session_time(session, i, &time, &error), &error);
    printf("node %d %s on %s: %.3f us\n", (int)time.node, time.op, time.runner,
           (double)time.total_ns / 1000.0 / (double)time.runs);
  }
}

static void run(const char* path) {
  char* error = NULL;
  fusebox_model* model = open_model(path);
  fusebox_session* session = NULL;
  check(fusebox_session_create(model, "{\"profile\": true}", NULL, &session, &error), &error);
  float* values = NULL;
  const size_t count = bind_input(session, &values);
  check(fusebox_session_run(session, &error), &error);
  fusebox_tensor output = FUSEBOX_TENSOR;
  check(fusebox_session_output(session, 0, &output, &error), &error);
  printf("%zu values in, %zu bytes out", count, output.bytes);
  if (output.dtype == FBX_F32 && output.bytes > 0) printf(", first %g", (double)*(const float*)output.data);
  printf("\n");
  print_times(session);
  fusebox_session_free(session);
  fusebox_model_free(model);
  free(values);
}

static int cancel_soon(void* session) {
  const struct timespec pause = {0, 20 * 1000 * 1000};
  thrd_sleep(&pause, NULL);
  return fusebox_session_cancel(session) == FUSEBOX_OK ? 0 : 1;
}

static void run_endless(const char* path) {
  char* error = NULL;
  fusebox_model* model = open_model(path);
  fusebox_session* session = NULL;
  check(fusebox_session_create(model, NULL, NULL, &session, &error), &error);
  thrd_t other;
  if (thrd_create(&other, cancel_soon, session) != thrd_success) exit(2);
  const fusebox_status status = fusebox_session_run(session, &error);
  thrd_join(other, NULL);
  printf("%s\n", fusebox_status_name(status));
  fusebox_text_free(error);
  fusebox_session_free(session);
  fusebox_model_free(model);
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: embed_c11 MODEL [ENDLESS]\n");
    return 2;
  }
  run(argv[1]);
  if (argc > 2) run_endless(argv[2]);
  return 0;
}
