/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin with one rule and one kernel (it copies its operand), and with one fault, chosen at compile time.
 * FAULT_NAME is its name; CMakeLists.txt lists the faults. Without any it is sound. */
#include <fusebox/abi/plugin.h>
#include <string.h>

#define STR(text) {text, sizeof(text) - 1}

#ifndef SAID_ID
#define SAID_ID "fault." FAULT_NAME
#endif
#ifndef SAID_VERSION
#define SAID_VERSION "1.0.0"
#endif
#ifndef SAID_OP
#define SAID_OP "fault." FAULT_NAME
#endif
#ifndef ENTRY_MAGIC
#define ENTRY_MAGIC FBX_ENTRY_MAGIC
#endif
#ifndef ENTRY_MAJOR
#define ENTRY_MAJOR FBX_ABI_MAJOR
#endif
#ifndef ENTRY_SIZE
#define ENTRY_SIZE sizeof(fbx_entry)
#endif
#ifndef ENTRY_FLAGS
#define ENTRY_FLAGS FBX_BUILD_FLAGS
#endif
#ifndef MIN_HOST_MINOR
#define MIN_HOST_MINOR 0
#endif
#ifndef PLUGIN_SIZE
#define PLUGIN_SIZE sizeof(fbx_plugin)
#endif
#ifndef RULE_SIZE
#define RULE_SIZE sizeof(fbx_rule)
#endif
#ifndef KERNEL_SIZE
#define KERNEL_SIZE sizeof(struct grown_kernel)
#endif
#ifndef NO_INVOKE
#define NO_INVOKE 0
#endif
#ifndef RULE_COUNT
#define RULE_COUNT 1
#endif

/* A later version's kernel: members that this host does not know stand at its end. */
struct grown_kernel {
  fbx_kernel kernel;
  unsigned char tail[48];
};

#ifdef MISSING_LIBRARY
int fault_gone(void); /* of a library that is not there when the plugin is loaded */
#endif

static fbx_status Match(const fbx_host* host, void* user, const fbx_composite* composite) {
  (void)host, (void)user;
  return composite->operand_count == 1 ? FBX_OK : FBX_NOT_APPLICABLE;
}

static fbx_status Rewrite(const fbx_host* host, void* user, const fbx_composite* composite,
                          const fbx_builder* b) {
  const fbx_value operand = b->operand(b, 0);
  const fbx_str op = STR(SAID_OP);
  fbx_value result;
  (void)host, (void)user;
  (void)composite;
  if (b->add_node(b, FBX_OP_CUSTOM, op, 1, &operand, 1, &result, 1) != FBX_OK) return FBX_INTERNAL;
  b->set_result(b, 0, result);
  return FBX_OK;
}

static fbx_status Infer(const fbx_host* host, void* user, const fbx_node* node, const fbx_infer* infer) {
  const fbx_tensor* x = node->operands[0];
  (void)host, (void)user;
#if defined(INFER_BEYOND)
  infer->set(infer, 7, x->dtype, x->dims, x->rank);
#elif defined(INFER_NOTHING)
  (void)x;
  (void)infer;
#elif defined(INFER_NEGATIVE)
  static const int64_t kDims[] = {-5, INT64_MIN};
  infer->set(infer, 0, x->dtype, kDims, 2);
#elif defined(INFER_HUGE_RANK)
  infer->set(infer, 0, x->dtype, x->dims, 1 << 30);
#elif defined(INFER_UNKNOWN_DTYPE)
  infer->set(infer, 0, 9999, x->dims, x->rank);
#else
  infer->set(infer, 0, x->dtype, x->dims, x->rank);
#endif
  return FBX_OK;
}

static fbx_status Invoke(const fbx_host* host, void* user, const void* instance, void* state,
                         const fbx_node* node) {
  (void)host, (void)user;
  (void)instance;
  (void)state;
#ifdef MISSING_LIBRARY
  if (fault_gone()) return FBX_INTERNAL;
#endif
  memcpy(node->results[0]->data, node->operands[0]->data, node->operands[0]->bytes);
  return FBX_OK;
}

#ifdef TOLERANCE_SIZE
static const fbx_tolerance kTolerance = {.head = {TOLERANCE_SIZE, 1, 0}};
#define TOLERANCE &kTolerance
#else
#define TOLERANCE NULL
#endif

static const fbx_rule kRule = {
    .head = {(uint32_t)(RULE_SIZE), 1, 0},
    .id = STR("fault." FAULT_NAME ".rule"),
    .implements = STR("fault." FAULT_NAME),
    .match = Match,
    .rewrite = Rewrite,
    .tolerance = TOLERANCE,
};
static const struct grown_kernel kKernel = {
    .kernel = {.head = {(uint32_t)(KERNEL_SIZE), 1, 9},
               .kind = FBX_OP_CUSTOM,
               .op = STR(SAID_OP),
               .infer = Infer,
               .invoke = NO_INVOKE ? NULL : Invoke},
    .tail = {0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 0xAB},
};
static const fbx_rule* const kRules[] = {&kRule};
static const fbx_kernel* const kKernels[] = {&kKernel.kernel};
static const fbx_plugin kPlugin = {
    .head = {(uint32_t)(PLUGIN_SIZE), 1, 0},
    .id = STR(SAID_ID),
    .version = STR(SAID_VERSION),
    .rule_count = RULE_COUNT,
    .kernel_count = 1,
    .rules = kRules,
    .kernels = kKernels,
};

static fbx_status Load(const fbx_host* host, const fbx_plugin** out) {
#if defined(LOAD_FAILS)
  const fbx_diag diag = {
      FBX_HEAD(fbx_diag), FBX_ERROR, STR("LICENCE"), STR("the licence server is down"), {0, 0}};
  (void)out;
  (void)kPlugin;
  host->emit(host, &diag);
  return FBX_IO;
#elif defined(LOAD_GIVES_NOTHING)
  (void)host;
  (void)out;
  (void)kPlugin;
  return FBX_OK;
#else
  (void)host;
  *out = &kPlugin;
  return FBX_OK;
#endif
}

#ifdef NO_ENTRY
fbx_status (*fault_load)(const fbx_host*, const fbx_plugin**) = Load;
#else
const fbx_entry fusebox_entry_v1 = {ENTRY_MAGIC, ENTRY_MAJOR,    FBX_ABI_MINOR,   (uint32_t)(ENTRY_SIZE),
                                    ENTRY_FLAGS, MIN_HOST_MINOR, STR("faulty.c"), Load,
                                    NULL};
#endif
