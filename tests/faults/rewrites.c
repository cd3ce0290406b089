/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin whose rules lie: each composite "fault.<what>" has one operand x and one result of x's type, and
 * the rule builds something else, then claims success. */
#include <fusebox/abi/plugin.h>
#include <stddef.h>
#include <string.h>

#define STR(text) {text, sizeof(text) - 1}

static const fbx_str kCopy = STR("fault.copy");

static fbx_value Copy(const fbx_builder* b, fbx_value from) {
  fbx_value result = FBX_NO_VALUE;
  (void)b->add_node(b, FBX_OP_CUSTOM, kCopy, 1, &from, 1, &result, 1);
  return result;
}
static fbx_status Sound(const fbx_host* h, void* user, const fbx_composite* c, const fbx_builder* b) {
  (void)h, (void)user, (void)c;
  b->set_result(b, 0, Copy(b, b->operand(b, 0)));
  return FBX_OK;
}
static fbx_status MissingResult(const fbx_host* h, void* user, const fbx_composite* c, const fbx_builder* b) {
  (void)h, (void)user, (void)c;
  (void)Copy(b, b->operand(b, 0));
  return FBX_OK;
}
static fbx_status WrongType(const fbx_host* h, void* user, const fbx_composite* c, const fbx_builder* b) {
  const int64_t dims[] = {3};
  void* data = NULL;
  (void)h, (void)user, (void)c;
  b->set_result(b, 0, b->add_const(b, FBX_I32, dims, 1, &data));
  return FBX_OK;
}
static fbx_status WrongShape(const fbx_host* h, void* user, const fbx_composite* c, const fbx_builder* b) {
  const int64_t dims[] = {5, 5, 5};
  void* data = NULL;
  (void)h, (void)user, (void)c;
  b->set_result(b, 0, b->add_const(b, FBX_F32, dims, 3, &data));
  return FBX_OK;
}
static fbx_status UnknownBuiltin(const fbx_host* h, void* user, const fbx_composite* c,
                                 const fbx_builder* b) {
  const fbx_str op = STR("NO_SUCH_OP");
  const fbx_value x = b->operand(b, 0);
  fbx_value result = x;
  (void)h, (void)user, (void)c;
  (void)b->add_node(b, FBX_OP_BUILTIN, op, 1, &x, 1, &result, 1);
  b->set_result(b, 0, result);
  return FBX_OK;
}
static fbx_status UnknownCustom(const fbx_host* h, void* user, const fbx_composite* c, const fbx_builder* b) {
  const fbx_str op = STR("nobody.knows");
  const fbx_value x = b->operand(b, 0);
  fbx_value result = x;
  (void)h, (void)user, (void)c;
  (void)b->add_node(b, FBX_OP_CUSTOM, op, 1, &x, 1, &result, 1);
  b->set_result(b, 0, result);
  return FBX_OK;
}
static fbx_status DanglingResult(const fbx_host* h, void* user, const fbx_composite* c,
                                 const fbx_builder* b) {
  (void)h, (void)user, (void)c;
  b->set_result(b, 0, 4711);
  return FBX_OK;
}
static fbx_status DanglingOperand(const fbx_host* h, void* user, const fbx_composite* c,
                                  const fbx_builder* b) {
  (void)h, (void)user, (void)c;
  b->set_result(b, 0, Copy(b, 4711));
  return FBX_OK;
}
static fbx_status FourResults(const fbx_host* h, void* user, const fbx_composite* c, const fbx_builder* b) {
  const fbx_value x = b->operand(b, 0);
  fbx_value results[4] = {x, x, x, x};
  (void)h, (void)user, (void)c;
  (void)b->add_node(b, FBX_OP_CUSTOM, kCopy, 1, &x, 1, results, 4);
  b->set_result(b, 0, results[3]);
  return FBX_OK;
}
static fbx_status ResultBeyond(const fbx_host* h, void* user, const fbx_composite* c, const fbx_builder* b) {
  const fbx_value copy = Copy(b, b->operand(b, 0));
  (void)h, (void)user, (void)c;
  b->set_result(b, 0, copy);
  b->set_result(b, 5, copy);
  return FBX_OK;
}
static fbx_status OperandBeyond(const fbx_host* h, void* user, const fbx_composite* c, const fbx_builder* b) {
  (void)h, (void)user, (void)c;
  b->set_result(b, 0, b->operand(b, 9));
  return FBX_OK;
}
static fbx_status HugeConst(const fbx_host* h, void* user, const fbx_composite* c, const fbx_builder* b) {
  const int64_t dims[] = {INT64_C(1) << 40, INT64_C(1) << 40};
  void* data = NULL;
  const fbx_value v = b->add_const(b, FBX_F32, dims, 2, &data);
  (void)h, (void)user, (void)c;
  b->set_result(b, 0, v);
  return FBX_OK;
}
static fbx_status EarlyAttr(const fbx_host* h, void* user, const fbx_composite* c, const fbx_builder* b) {
  const fbx_str key = STR("axis");
  (void)h, (void)user, (void)c;
  b->attr_i64(b, key, 1);
  b->set_result(b, 0, Copy(b, b->operand(b, 0)));
  return FBX_OK;
}
static fbx_status FailsLate(const fbx_host* h, void* user, const fbx_composite* c, const fbx_builder* b) {
  const fbx_diag diag = {FBX_HEAD(fbx_diag), FBX_ERROR, STR("LATE"), STR("changed its mind"), {0, 0}};
  b->set_result(b, 0, Copy(b, b->operand(b, 0)));
  (void)user, (void)c;
  h->emit(h, &diag);
  return FBX_INTERNAL;
}
static fbx_status StrangeStatus(const fbx_host* h, void* user, const fbx_composite* c, const fbx_builder* b) {
  (void)Sound(h, user, c, b);
  return 77;
}
static fbx_status DeclinesLate(const fbx_host* h, void* user, const fbx_composite* c, const fbx_builder* b) {
  (void)Sound(h, user, c, b);
  return FBX_NOT_APPLICABLE;
}

static fbx_status Match(const fbx_host* h, void* user, const fbx_composite* c) {
  (void)h, (void)user, (void)c;
  return FBX_OK;
}

#define RULE(name, function)                                              \
  static const fbx_rule k##function = {.head = FBX_HEAD(fbx_rule),        \
                                       .id = STR("fault.rewrites." name), \
                                       .implements = STR("fault." name),  \
                                       .match = Match,                    \
                                       .rewrite = function};
#define RULES(X)                         \
  X("sound", Sound)                      \
  X("missing_result", MissingResult)     \
  X("wrong_type", WrongType)             \
  X("wrong_shape", WrongShape)           \
  X("unknown_builtin", UnknownBuiltin)   \
  X("unknown_custom", UnknownCustom)     \
  X("dangling_result", DanglingResult)   \
  X("dangling_operand", DanglingOperand) \
  X("four_results", FourResults)         \
  X("result_beyond", ResultBeyond)       \
  X("operand_beyond", OperandBeyond)     \
  X("huge_const", HugeConst)             \
  X("early_attr", EarlyAttr)             \
  X("fails_late", FailsLate)             \
  X("strange_status", StrangeStatus)     \
  X("declines_late", DeclinesLate)
RULES(RULE)

static fbx_status Infer(const fbx_host* h, void* user, const fbx_node* node, const fbx_infer* infer) {
  const fbx_tensor* x = node->operands[0];
  (void)h, (void)user;
  infer->set(infer, 0, x->dtype, x->dims, x->rank);
  return FBX_OK;
}
static fbx_status Invoke(const fbx_host* h, void* user, const void* instance, void* state,
                         const fbx_node* node) {
  (void)h, (void)user, (void)instance, (void)state;
  memcpy(node->results[0]->data, node->operands[0]->data, node->operands[0]->bytes);
  return FBX_OK;
}
static const fbx_kernel kKernel = {.head = FBX_HEAD(fbx_kernel),
                                   .kind = FBX_OP_CUSTOM,
                                   .op = STR("fault.copy"),
                                   .infer = Infer,
                                   .invoke = Invoke};

#define ENTRY(name, function) &k##function,
static const fbx_rule* const kRules[] = {RULES(ENTRY)};
static const fbx_kernel* const kKernels[] = {&kKernel};
static const fbx_plugin kPlugin = {
    .head = FBX_HEAD(fbx_plugin),
    .id = STR("fault.rewrites"),
    .version = STR("1.0.0"),
    .rule_count = sizeof(kRules) / sizeof(kRules[0]),
    .kernel_count = 1,
    .rules = kRules,
    .kernels = kKernels,
};
static fbx_status Load(const fbx_host* h, const fbx_plugin** out) {
  (void)h;
  *out = &kPlugin;
  return FBX_OK;
}
const fbx_entry fusebox_entry_v1 = {
    FBX_ENTRY_MAGIC,   FBX_ABI_MAJOR, FBX_ABI_MINOR, sizeof(fbx_entry), FBX_BUILD_FLAGS, 0,
    STR("rewrites.c"), Load,          NULL};
