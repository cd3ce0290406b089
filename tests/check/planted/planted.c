/* SPDX-License-Identifier: Apache-2.0 */
#include "planted.h"

#include <fcntl.h>
#include <fenv.h>
#include <fusebox/abi/ext/threads.h>
#include <fusebox/abi/plugin.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IS(fault) (FAULT == (fault))
#define STR(text) {text, sizeof(text) - 1}

static fbx_str Str(const char* text) {
  fbx_str str;
  str.ptr = text;
  str.len = strlen(text);
  return str;
}

static fbx_status Decline(const fbx_host* host, const char* why) {
  fbx_diag diag = {FBX_HEAD(fbx_diag), FBX_REASON, STR("SHAPE"), {NULL, 0}, {NULL, 0}};
  diag.message = Str(why);
  if (!IS(RuleWithoutReason)) host->emit(host, &diag);
  return FBX_NOT_APPLICABLE;
}

static int IsF32(const fbx_tensor* t, int32_t rank) { return t->dtype == FBX_F32 && t->rank == rank; }
static int IsPair(const fbx_tensor* const* operands) {
  const fbx_tensor *const x = operands[0], *const w = operands[1];
  return IsF32(x, 2) && IsF32(w, 2) && w->dims[0] >= 0 && w->dims[0] == w->dims[1] &&
         x->dims[1] == w->dims[0];
}

/* ---- the rule: the composite becomes the op of its name */
static fbx_status Match(const fbx_host* host, void* user, const fbx_composite* c) FBX_NOEXCEPT {
  static int calls = 0;
  const int is_norm = c->name.len == 12 && memcmp(c->name.ptr, "planted.norm", 12) == 0;
  const uint32_t operands = is_norm ? 2 : 1;
  (void)user;
  if (IS(RuleAcceptsAll)) return FBX_OK;
  if (IS(RuleDeclinesAll)) return Decline(host, "is never accepted");
  if (IS(RuleKeepsState) && calls++ % 2 == 1) return Decline(host, "was called an odd number of times");
  if (IS(RuleReadsAbsent) && ((const volatile fbx_tensor*)c->operands[1])->rank == 9)
    return Decline(host, "rank 9");
  if (c->operand_count != operands || c->result_count != 1)
    return Decline(host, "has other operands or results");
  if (is_norm && !IsPair(c->operands)) return Decline(host, "expected f32[B,D] and f32[D,D]");
  if (!is_norm &&
      (c->operands[0]->dtype != FBX_I8 || c->operands[0]->quant == NULL || c->results[0]->quant == NULL))
    return Decline(host, "expected i8 with scales");
  return FBX_OK;
}
static fbx_status Rewrite(const fbx_host* host, void* user, const fbx_composite* c,
                          const fbx_builder* b) FBX_NOEXCEPT {
  fbx_value operands[8], result;
  uint32_t i;
  (void)user;
  for (i = 0; i < c->operand_count && i < 8; ++i) operands[i] = b->operand(b, i);
  if (b->add_node(b, FBX_OP_CUSTOM, c->name, 1, operands, i, &result, 1) != FBX_OK) return FBX_INVALID;
  if (host->attrs->kind(c->attrs, Str("epsilon")) != FBX_ATTR_NONE) b->attr_copy(b, c->attrs, Str("epsilon"));
  if (host->attrs->kind(c->attrs, Str("mode")) != FBX_ATTR_NONE) b->attr_copy(b, c->attrs, Str("mode"));
  b->set_result(b, 0, result);
  return FBX_OK;
}

/* ---- planted.norm */
struct Instance {
  float epsilon;
  const fbx_tensor* view;
  fbx_str mode;
};
struct State {
  uint32_t rows; /* slot: one row per worker */
  uint32_t workers;
  int calls;
};

static fbx_status Supports(const fbx_host* host, void* user, const fbx_node* n) FBX_NOEXCEPT {
  (void)user;
  if (IS(VersionCompared) && host->head.minor != FBX_ABI_MINOR) return Decline(host, "another host");
  if (IS(SizesCompared) && n->head.size != sizeof(fbx_node)) return Decline(host, "another fbx_node");
  if (IS(SupportsAnything))
    return n->operands[0]->dtype == n->operands[1]->dtype ? FBX_OK : Decline(host, "mixed types");
  if (n->operand_count != 2 || n->result_count != 1) return Decline(host, "expected 2 operands and a result");
  return IsPair(n->operands) ? FBX_OK : Decline(host, "expected f32[B,D] and f32[D,D]");
}
static fbx_status Infer(const fbx_host* host, void* user, const fbx_node* n,
                        const fbx_infer* infer) FBX_NOEXCEPT {
  const fbx_tensor* const x = n->operands[0];
  (void)host, (void)user;
  infer->set(infer, 0, x->dtype, x->dims, x->rank);
  return FBX_OK;
}
static fbx_status Init(const fbx_host* host, void* user, const fbx_node* n, void** out) FBX_NOEXCEPT {
  struct Instance* const instance = (struct Instance*)calloc(1, sizeof(struct Instance));
  double epsilon = 0;
  (void)user;
  if (host->attrs->get_f64(n->attrs, Str("epsilon"), &epsilon) != FBX_OK) epsilon = 1e-3;
  instance->epsilon = IS(IgnoredAttribute) ? 1e-3f : (float)epsilon;
  if (host->attrs->get_str(n->attrs, Str("mode"), &instance->mode) != FBX_OK) instance->mode = Str("rows");
  instance->view = n->operands[0];
  *out = instance;
  return FBX_OK;
}
static fbx_status Prepare(const fbx_host* host, void* user, const void* instance, const fbx_node* n,
                          const fbx_plan* plan, void** out) FBX_NOEXCEPT {
  struct State* const state = (struct State*)calloc(1, sizeof(struct State));
  (void)host, (void)user, (void)instance;
  if (IS(LeakPerSession)) *(volatile char*)malloc(100) = 1;
  state->workers = plan->threads > 0 ? plan->threads : 1;
  if (IS(FixedWorkers) && state->workers > 16) state->workers = 16;
  *out = state;
  return plan->scratch(plan, sizeof(float) * state->workers * (size_t)n->operands[1]->dims[0], &state->rows);
}

struct Work {
  const struct Instance* instance;
  const float *x, *w;
  float *y, *rows;
  int64_t batch, depth;
  uint32_t threads;
};

static float MeanOfSquares(const struct Work* work, int64_t row) {
  const int64_t depth = work->depth, count = IS(WrongAxis) ? work->batch : depth;
  const float* const x = work->x + row * depth;
  float sum = 0;
  int64_t i;
  if (IS(ReadBeforeStart) && row == 0) sum += ((volatile const float*)x)[-1];
  for (i = 0; i < count + (IS(ReadPastEnd) ? 1 : 0); ++i) {
    const float value = IS(WrongAxis) ? work->x[i * depth + row % depth] : x[i];
    if (!IS(SwallowsNan) || value == value) sum += value * value;
  }
  while (IS(SpinsOnNan) && sum != sum) usleep(1000);
  if (IS(AbortsOnInfinity) && isinf(sum)) abort();
  return IS(SumForMean) ? sum : sum / (float)count;
}

static void Row(void* context, size_t begin, size_t end, uint32_t worker) FBX_NOEXCEPT {
  const struct Work* const work = (const struct Work*)context;
  const int64_t depth = work->depth;
  float* const scaled = work->rows + worker * (size_t)depth;
  size_t row;
#if defined(__x86_64__)
  if (IS(FlushesInWorkers)) __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#else
  if (IS(FlushesInWorkers)) fesetround(FE_UPWARD);
#endif
  if (IS(RoundsInWorkers)) fesetround(FE_TOWARDZERO);
  for (row = begin; row < end; ++row) {
    const float mean = MeanOfSquares(work, (int64_t)row);
    const float scale = 1.0f / sqrtf(mean + (IS(EpsilonDropped) ? 0.0f : work->instance->epsilon));
    const int64_t columns = IS(TailSkipped) ? depth / 4 * 4 : depth;
    float* const y = work->y + row * (size_t)depth;
    int64_t i, j;
    if ((IS(WrongInLargeBatches) && row >= 64) || (IS(WrongInHugeBatches) && row >= 128)) {
      memset(y, 0, sizeof(float) * (size_t)depth);
      continue;
    }
    for (i = 0; i < depth; ++i) {
      if (IS(SwallowsNan) && work->x[(int64_t)row * depth + i] != work->x[(int64_t)row * depth + i])
        scaled[i] = 0;
      else if (IS(UninitializedScratch)) scaled[i] += work->x[(int64_t)row * depth + i] * scale;
      else scaled[i] = work->x[(int64_t)row * depth + i] * scale;
    }
    for (j = 0; j < columns; ++j) {
      float sum = 0;
      for (i = 0; i < depth; ++i)
        sum += scaled[i] * work->w[IS(WeightsTransposed) ? i * depth + j : j * depth + i];
      y[j] = sum;
    }
    if (IS(DataRace) && row > 0) work->y[0] += 0.5f * y[0];
    if (IS(OrderOfChunks) && row > 0) y[0] += 0.1f * y[-1];
    if (IS(ThreadCount)) y[0] += 0.01f * (float)work->threads;
    if (IS(NotDeterministic)) y[0] += 1e-6f * (float)work->threads;
  }
}

static void* Sleep(void* unused) {
  for (;;) sleep(1000);
  return unused;
}
static void OnSignal(int number) { (void)number; }

/* What a kernel must not do to the process. */
static void Misbehave(void) {
  if (IS(Abort)) abort();
  if (IS(ExitZero)) exit(0);
  if (IS(EndlessLoop))
    for (;;) usleep(1000);
  if (IS(StdoutNoise)) puts("planted.norm runs");
  if (IS(OpenFile)) (void)!open("/dev/null", O_RDONLY);
  if (IS(LeftFile)) fclose(fopen("planted.cache", "w"));
  if (IS(RoundingMode)) fesetround(FE_UPWARD);
  if (IS(SetsEnvironment)) setenv("PLANTED", "1", 1);
  if (IS(ChangesFolder)) (void)!chdir("/");
  if (IS(Locale)) setlocale(LC_ALL, "C.UTF-8");
  if (IS(SignalHandler)) signal(SIGUSR1, OnSignal);
  if (IS(LeftThread)) {
    pthread_t thread;
    pthread_create(&thread, NULL, Sleep, NULL);
    pthread_detach(thread);
  }
#ifdef __cplusplus
  if (IS(Throw)) throw 1;
#endif
}

static const fbx_threads* ThreadsOf(const fbx_host* host) {
  return (const fbx_threads*)host->get_extension(host, Str(FBX_EXT_THREADS));
}

static fbx_status Invoke(const fbx_host* host, void* user, const void* instance, void* opaque,
                         const fbx_node* n) FBX_NOEXCEPT {
  static int calls = 0;
  static float* kept_scratch = NULL;
  static const float zeros[1 << 12] = {0};
  static const fbx_host* kept_host = NULL;
  struct State* const state = (struct State*)opaque;
  const fbx_threads* const threads = ThreadsOf(host);
  struct Work work;
  (void)user;
  if (IS(OptionalRequired) && threads == NULL) return FBX_UNSUPPORTED;
  work.instance = (const struct Instance*)instance;
  work.x = (const float*)n->operands[0]->data;
  work.w = (const float*)n->operands[1]->data;
  if (IS(ZeroWeights) && !(n->operands[1]->flags & FBX_TENSOR_CONST)) work.w = zeros;
  work.y = (float*)n->results[0]->data;
  work.rows = (float*)n->scratch[state->rows];
  work.batch = n->operands[0]->dims[0];
  work.depth = n->operands[0]->dims[1];
  work.threads = threads != NULL ? threads->thread_count(host) : 1;
  Misbehave();
  if (IS(EmptyBatch) && work.batch == 0) raise(SIGFPE); /* as a division does on x86-64; on arm64 it is 0 */
  if (IS(FreedScratch)) work.rows = kept_scratch = kept_scratch != NULL ? kept_scratch : work.rows;
  if (IS(KeptView) && ((const volatile fbx_tensor*)work.instance->view)->rank != 2) return FBX_INVALID;
  if (IS(KeptText) && ((volatile const char*)work.instance->mode.ptr)[0] != 'r') return FBX_INVALID;
  if (IS(KeptHost) && kept_host != NULL) (void)ThreadsOf(kept_host);
  kept_host = host;
  if (IS(ResultIsInput)) work.x = work.y;
  if (IS(WriteInput)) ((float*)n->operands[0]->data)[0] += 1e-9f;
  if (IS(WriteConstant)) ((float*)n->operands[1]->data)[0] += 1e-9f;
  if (IS(HugeAllocation)) {
    void* const memory = malloc((size_t)64 << 30);
    if (memory == NULL) return FBX_OUT_OF_MEMORY;
    free(memory);
  }
  if (threads != NULL) threads->parallel_for(host, (size_t)work.batch, 1, Row, &work);
  else Row(&work, 0, (size_t)work.batch, 0);
  if (work.batch == 0) return FBX_OK;
  if (IS(WritePastEnd)) work.y[work.batch * work.depth] = 1;
  if (IS(WriteBeforeStart)) ((volatile float*)work.y)[-1] = 1;
  if (IS(SessionLeak)) work.y[0] += 0.01f * (float)calls++;
  if (IS(StateKeptByReset)) work.y[0] += 0.01f * (float)state->calls++;
  return FBX_OK;
}

static void FreeState(void* user, void* state) FBX_NOEXCEPT { (void)user, free(state); }
static void Free(void* user, void* instance) FBX_NOEXCEPT { (void)user, free(instance); }

/* ---- planted.relu */
static fbx_status SupportsRelu(const fbx_host* host, void* user, const fbx_node* n) FBX_NOEXCEPT {
  (void)user;
  if (n->operand_count != 1 || n->result_count != 1) return Decline(host, "expected an operand and a result");
  if (n->operands[0]->dtype != FBX_I8 || n->operands[0]->quant == NULL)
    return Decline(host, "expected i8 with scales");
  return FBX_OK;
}
static fbx_status InvokeRelu(const fbx_host* host, void* user, const void* instance, void* state,
                             const fbx_node* n) FBX_NOEXCEPT {
  const fbx_tensor *const x = n->operands[0], *const y = n->results[0];
  size_t i;
  (void)host, (void)user, (void)instance, (void)state;
  if (y->quant == NULL) return FBX_INVALID;
  for (i = 0; i < x->bytes; ++i) {
    const float real = x->quant->scales[0] * (float)(((const int8_t*)x->data)[i] - x->quant->zero_points[0]);
    const float scale = IS(WrongScale) ? x->quant->scales[0] : y->quant->scales[0];
    const float zero = IS(WrongZeroPoint) ? 0.0f : (float)y->quant->zero_points[0];
    const float exact = fmaxf(real, 0.0f) / scale,
                stored = (IS(Truncates) ? truncf(exact) : roundf(exact)) + zero;
    ((int8_t*)y->data)[i] = (int8_t)fminf(fmaxf(stored, -128.0f), 127.0f);
  }
  return FBX_OK;
}

/* ---- the tables */
static const fbx_rule rule = {
    FBX_HEAD(fbx_rule), STR("planted.rule"), STR("planted.*"), 0, 0, 0, NULL, Match, Rewrite, NULL};
static const fbx_kernel norm = {FBX_HEAD(fbx_kernel),
                                FBX_OP_CUSTOM,
                                STR("planted.norm"),
                                0,
                                0,
                                IS(ThreadCount)     ? 0
                                : IS(ResultIsInput) ? FBX_KERNEL_INPLACE
                                                    : FBX_KERNEL_DETERMINISTIC,
                                NULL,
                                Supports,
                                Infer,
                                Init,
                                Prepare,
                                Invoke,
                                NULL,
                                FreeState,
                                Free};
static const fbx_kernel relu = {FBX_HEAD(fbx_kernel),
                                FBX_OP_CUSTOM,
                                STR("planted.relu"),
                                0,
                                0,
                                FBX_KERNEL_DETERMINISTIC,
                                NULL,
                                SupportsRelu,
                                Infer,
                                NULL,
                                NULL,
                                InvokeRelu,
                                NULL,
                                NULL,
                                NULL};
static const fbx_rule* const kRules[] = {&rule};
static const fbx_kernel* const kKernels[] = {&norm, &relu};
static const fbx_plugin plugin = {
    FBX_HEAD(fbx_plugin), STR("planted.plugin"), STR("1.0.0"), 1, 2, 0, kRules, kKernels, NULL, NULL, NULL};

static fbx_status Load(const fbx_host* host, const fbx_plugin** out) FBX_NOEXCEPT {
  (void)host;
  if (IS(LeakPerLoad)) *(volatile char*)malloc(100) = 1;
  *out = &plugin;
  return FBX_OK;
}
static void Unload(void) FBX_NOEXCEPT {
  if (IS(UnloadCrash)) *(volatile int*)16 = 1;
}

#ifdef EXTRA_SYMBOL
FBX_EXPORT int planted_helper(void) { return 1; }
#endif
#ifdef TEXT_RELOCATION
__asm__(".text\n.balign 8\n.quad fusebox_entry_v1\n");
#endif
#ifndef MIN_HOST_MINOR
#define MIN_HOST_MINOR 0
#endif
FBX_ENTRY(Load, Unload, MIN_HOST_MINOR);
