/* SPDX-License-Identifier: Apache-2.0 */
/* acme.swiglu(gate, up) = gate * sigmoid(gate) * up, for f32 tensors of one shape: a rule and a kernel in
 * C11. */
#include <fusebox/abi/ext/threads.h>
#include <fusebox/abi/plugin.h>
#include <math.h>

#define TEXT(literal) {literal, sizeof(literal) - 1}
#define OP TEXT("acme.swiglu")

/* Declines with a reason: not an error, the composite keeps its body. */
static fbx_status decline(const fbx_host* host, fbx_str code, fbx_str why) {
  const fbx_diag diag = {
      .head = FBX_HEAD(fbx_diag), .severity = FBX_REASON, .code = code, .message = why, .subject = TEXT("")};
  host->emit(host, &diag);
  return FBX_NOT_APPLICABLE;
}

/* The rule and the kernel have the same conditions. */
static fbx_status check(const fbx_host* host, const fbx_tensor* const* operands, uint32_t count) {
  static const fbx_str arity = TEXT("ARITY");
  static const fbx_str two = TEXT("needs 2 operands");
  static const fbx_str dtype = TEXT("DTYPE");
  static const fbx_str f32 = TEXT("only f32 is supported");
  static const fbx_str shape = TEXT("SHAPE");
  static const fbx_str same = TEXT("the operands differ in shape");
  if (count != 2) return decline(host, arity, two);
  const fbx_tensor* gate = operands[0];
  const fbx_tensor* up = operands[1];
  if (gate->dtype != FBX_F32 || up->dtype != FBX_F32) return decline(host, dtype, f32);
  if (gate->rank != up->rank) return decline(host, shape, same);
  for (int32_t i = 0; i < gate->rank; ++i)
    if (gate->dims[i] != up->dims[i]) return decline(host, shape, same);
  return FBX_OK;
}

static fbx_status match(const fbx_host* host, void* user, const fbx_composite* c) {
  (void)user;
  return check(host, c->operands, c->operand_count);
}

static fbx_status rewrite(const fbx_host* host, void* user, const fbx_composite* c, const fbx_builder* b) {
  const fbx_value operands[] = {b->operand(b, 0), b->operand(b, 1)};
  const fbx_str op = OP;
  fbx_value result = FBX_NO_VALUE;
  (void)host;
  (void)user;
  (void)c;
  const fbx_status status = b->add_node(b, FBX_OP_CUSTOM, op, 1, operands, 2, &result, 1);
  if (status != FBX_OK) return status;
  b->set_result(b, 0, result);
  return FBX_OK;
}

static fbx_status supports(const fbx_host* host, void* user, const fbx_node* n) {
  (void)user;
  return check(host, n->operands, n->operand_count);
}

static fbx_status infer(const fbx_host* host, void* user, const fbx_node* n, const fbx_infer* out) {
  (void)host;
  (void)user;
  out->set(out, 0, FBX_F32, n->operands[0]->dims, n->operands[0]->rank);
  return FBX_OK;
}

static void compute(void* context, size_t begin, size_t end, uint32_t worker) {
  const fbx_node* n = context;
  const float* gate = n->operands[0]->data;
  const float* up = n->operands[1]->data;
  float* out = n->results[0]->data;
  (void)worker;
  for (size_t i = begin; i < end; ++i) out[i] = gate[i] / (1 + expf(-gate[i])) * up[i];
}

static fbx_status invoke(const fbx_host* host, void* user, const void* instance, void* state,
                         const fbx_node* n) {
  static const fbx_str id = TEXT(FBX_EXT_THREADS);
  const fbx_threads* threads = host->get_extension(host, id);
  const size_t count = n->operands[0]->bytes / sizeof(float);
  (void)user;
  (void)instance;
  (void)state;
  if (FBX_HAS(threads, parallel_for)) threads->parallel_for(host, count, 4096, compute, (void*)n);
  else compute((void*)n, 0, count, 0);
  return FBX_OK;
}

static const fbx_rule rule = {.head = FBX_HEAD(fbx_rule),
                              .id = TEXT("acme.swiglu.f32"),
                              .implements = OP,
                              .match = match,
                              .rewrite = rewrite};
static const fbx_kernel kernel = {.head = FBX_HEAD(fbx_kernel),
                                  .kind = FBX_OP_CUSTOM,
                                  .op = OP,
                                  .flags = FBX_KERNEL_DETERMINISTIC,
                                  .supports = supports,
                                  .infer = infer,
                                  .invoke = invoke};
static const fbx_rule* const rules[] = {&rule};
static const fbx_kernel* const kernels[] = {&kernel};
static const fbx_plugin plugin = {.head = FBX_HEAD(fbx_plugin),
                                  .id = TEXT("com.acme.swiglu"),
                                  .version = TEXT("1.0.0"),
                                  .rule_count = 1,
                                  .kernel_count = 1,
                                  .rules = rules,
                                  .kernels = kernels};

static fbx_status load(const fbx_host* host, const fbx_plugin** out) {
  (void)host;
  *out = &plugin;
  return FBX_OK;
}

FBX_ENTRY(load, NULL, 0);
