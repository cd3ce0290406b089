// SPDX-License-Identifier: Apache-2.0
// The layout of every struct of the plugin ABI, frozen as numbers: a plugin built years ago relies on each. A
// struct may only grow: new members are new rows at the end of its list, and its size. No other number here
// ever changes.
#include <fusebox/abi/delegate.h>
#include <fusebox/abi/plugin.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "tests/abi/layout.h"

namespace {

static_assert(sizeof(void*) == 8, "the numbers are for 64-bit machines");

FUSEBOX_SIZE(fbx_str, 16);
FUSEBOX_MEMBER(fbx_str, ptr, 0);
FUSEBOX_MEMBER(fbx_str, len, 8);

FUSEBOX_SIZE(fbx_bytes, 16);
FUSEBOX_MEMBER(fbx_bytes, ptr, 0);
FUSEBOX_MEMBER(fbx_bytes, len, 8);

FUSEBOX_SIZE(fbx_head, 8);
FUSEBOX_MEMBER(fbx_head, size, 0);
FUSEBOX_MEMBER(fbx_head, major, 4);
FUSEBOX_MEMBER(fbx_head, minor, 6);

FUSEBOX_SIZE(fbx_diag, 64);
FUSEBOX_MEMBER(fbx_diag, head, 0);
FUSEBOX_MEMBER(fbx_diag, severity, 8);
FUSEBOX_MEMBER(fbx_diag, code, 16);
FUSEBOX_MEMBER(fbx_diag, message, 32);
FUSEBOX_MEMBER(fbx_diag, subject, 48);

FUSEBOX_SIZE(fbx_quant, 40);
FUSEBOX_MEMBER(fbx_quant, head, 0);
FUSEBOX_MEMBER(fbx_quant, kind, 8);
FUSEBOX_MEMBER(fbx_quant, axis, 12);
FUSEBOX_MEMBER(fbx_quant, block_size, 16);
FUSEBOX_MEMBER(fbx_quant, count, 20);
FUSEBOX_MEMBER(fbx_quant, scales, 24);
FUSEBOX_MEMBER(fbx_quant, zero_points, 32);

FUSEBOX_SIZE(fbx_file, 72);
FUSEBOX_MEMBER(fbx_file, head, 0);
FUSEBOX_MEMBER(fbx_file, path, 8);
FUSEBOX_MEMBER(fbx_file, device, 24);
FUSEBOX_MEMBER(fbx_file, inode, 32);
FUSEBOX_MEMBER(fbx_file, size, 40);
FUSEBOX_MEMBER(fbx_file, modified_ns, 48);
FUSEBOX_MEMBER(fbx_file, changed_ns, 56);
FUSEBOX_MEMBER(fbx_file, data, 64);

FUSEBOX_SIZE(fbx_tensor, 80);
FUSEBOX_MEMBER(fbx_tensor, head, 0);
FUSEBOX_MEMBER(fbx_tensor, dtype, 8);
FUSEBOX_MEMBER(fbx_tensor, rank, 12);
FUSEBOX_MEMBER(fbx_tensor, dims, 16);
FUSEBOX_MEMBER(fbx_tensor, flags, 24);
FUSEBOX_MEMBER(fbx_tensor, uses, 28);
FUSEBOX_MEMBER(fbx_tensor, data, 32);
FUSEBOX_MEMBER(fbx_tensor, bytes, 40);
FUSEBOX_MEMBER(fbx_tensor, quant, 48);
FUSEBOX_MEMBER(fbx_tensor, name, 56);
FUSEBOX_MEMBER(fbx_tensor, file, 72);

FUSEBOX_SIZE(fbx_attr_api, 112);
FUSEBOX_MEMBER(fbx_attr_api, head, 0);
FUSEBOX_MEMBER(fbx_attr_api, count, 8);
FUSEBOX_MEMBER(fbx_attr_api, key_at, 16);
FUSEBOX_MEMBER(fbx_attr_api, kind, 24);
FUSEBOX_MEMBER(fbx_attr_api, get_bool, 32);
FUSEBOX_MEMBER(fbx_attr_api, get_i64, 40);
FUSEBOX_MEMBER(fbx_attr_api, get_f64, 48);
FUSEBOX_MEMBER(fbx_attr_api, get_str, 56);
FUSEBOX_MEMBER(fbx_attr_api, get_dtype, 64);
FUSEBOX_MEMBER(fbx_attr_api, get_i64s, 72);
FUSEBOX_MEMBER(fbx_attr_api, get_f64s, 80);
FUSEBOX_MEMBER(fbx_attr_api, get_strs, 88);
FUSEBOX_MEMBER(fbx_attr_api, get_tensor, 96);
FUSEBOX_MEMBER(fbx_attr_api, get_map, 104);

FUSEBOX_SIZE(fbx_host, 80);
FUSEBOX_MEMBER(fbx_host, head, 0);
FUSEBOX_MEMBER(fbx_host, emit, 8);
FUSEBOX_MEMBER(fbx_host, get_extension, 16);
FUSEBOX_MEMBER(fbx_host, attrs, 24);
FUSEBOX_MEMBER(fbx_host, options, 32);
FUSEBOX_MEMBER(fbx_host, name, 40);
FUSEBOX_MEMBER(fbx_host, version, 56);
FUSEBOX_MEMBER(fbx_host, cancelled, 72);

FUSEBOX_SIZE(fbx_node, 128);
FUSEBOX_MEMBER(fbx_node, head, 0);
FUSEBOX_MEMBER(fbx_node, kind, 8);
FUSEBOX_MEMBER(fbx_node, op, 16);
FUSEBOX_MEMBER(fbx_node, version, 32);
FUSEBOX_MEMBER(fbx_node, attrs, 40);
FUSEBOX_MEMBER(fbx_node, raw_options, 48);
FUSEBOX_MEMBER(fbx_node, operand_count, 64);
FUSEBOX_MEMBER(fbx_node, result_count, 68);
FUSEBOX_MEMBER(fbx_node, operands, 72);
FUSEBOX_MEMBER(fbx_node, results, 80);
FUSEBOX_MEMBER(fbx_node, location, 88);
FUSEBOX_MEMBER(fbx_node, scratch, 104);
FUSEBOX_MEMBER(fbx_node, intermediates, 112);
FUSEBOX_MEMBER(fbx_node, intermediate_count, 120);

FUSEBOX_SIZE(fbx_infer, 32);
FUSEBOX_MEMBER(fbx_infer, head, 0);
FUSEBOX_MEMBER(fbx_infer, set, 8);
FUSEBOX_MEMBER(fbx_infer, needs_value, 16);
FUSEBOX_MEMBER(fbx_infer, set_quant, 24);

FUSEBOX_SIZE(fbx_plan, 32);
FUSEBOX_MEMBER(fbx_plan, head, 0);
FUSEBOX_MEMBER(fbx_plan, scratch, 8);
FUSEBOX_MEMBER(fbx_plan, persistent, 16);
FUSEBOX_MEMBER(fbx_plan, threads, 24);

FUSEBOX_SIZE(fbx_kernel, 120);
FUSEBOX_MEMBER(fbx_kernel, head, 0);
FUSEBOX_MEMBER(fbx_kernel, kind, 8);
FUSEBOX_MEMBER(fbx_kernel, op, 16);
FUSEBOX_MEMBER(fbx_kernel, min_version, 32);
FUSEBOX_MEMBER(fbx_kernel, max_version, 36);
FUSEBOX_MEMBER(fbx_kernel, flags, 40);
FUSEBOX_MEMBER(fbx_kernel, user, 48);
FUSEBOX_MEMBER(fbx_kernel, supports, 56);
FUSEBOX_MEMBER(fbx_kernel, infer, 64);
FUSEBOX_MEMBER(fbx_kernel, init, 72);
FUSEBOX_MEMBER(fbx_kernel, prepare, 80);
FUSEBOX_MEMBER(fbx_kernel, invoke, 88);
FUSEBOX_MEMBER(fbx_kernel, reset, 96);
FUSEBOX_MEMBER(fbx_kernel, free_state, 104);
FUSEBOX_MEMBER(fbx_kernel, free, 112);

FUSEBOX_SIZE(fbx_graph, 80);
FUSEBOX_MEMBER(fbx_graph, head, 0);
FUSEBOX_MEMBER(fbx_graph, name, 8);
FUSEBOX_MEMBER(fbx_graph, value_count, 24);
FUSEBOX_MEMBER(fbx_graph, node_count, 28);
FUSEBOX_MEMBER(fbx_graph, input_count, 32);
FUSEBOX_MEMBER(fbx_graph, output_count, 36);
FUSEBOX_MEMBER(fbx_graph, inputs, 40);
FUSEBOX_MEMBER(fbx_graph, outputs, 48);
FUSEBOX_MEMBER(fbx_graph, value, 56);
FUSEBOX_MEMBER(fbx_graph, node, 64);
FUSEBOX_MEMBER(fbx_graph, function, 72);

FUSEBOX_SIZE(fbx_composite, 88);
FUSEBOX_MEMBER(fbx_composite, head, 0);
FUSEBOX_MEMBER(fbx_composite, name, 8);
FUSEBOX_MEMBER(fbx_composite, version, 24);
FUSEBOX_MEMBER(fbx_composite, attrs, 32);
FUSEBOX_MEMBER(fbx_composite, operand_count, 40);
FUSEBOX_MEMBER(fbx_composite, result_count, 44);
FUSEBOX_MEMBER(fbx_composite, operands, 48);
FUSEBOX_MEMBER(fbx_composite, results, 56);
FUSEBOX_MEMBER(fbx_composite, body, 64);
FUSEBOX_MEMBER(fbx_composite, location, 72);

FUSEBOX_SIZE(fbx_builder, 192);
FUSEBOX_MEMBER(fbx_builder, head, 0);
FUSEBOX_MEMBER(fbx_builder, operand, 8);
FUSEBOX_MEMBER(fbx_builder, add_const, 16);
FUSEBOX_MEMBER(fbx_builder, add_node, 24);
FUSEBOX_MEMBER(fbx_builder, attr_bool, 32);
FUSEBOX_MEMBER(fbx_builder, attr_i64, 40);
FUSEBOX_MEMBER(fbx_builder, attr_f64, 48);
FUSEBOX_MEMBER(fbx_builder, attr_str, 56);
FUSEBOX_MEMBER(fbx_builder, attr_i64s, 64);
FUSEBOX_MEMBER(fbx_builder, attr_f64s, 72);
FUSEBOX_MEMBER(fbx_builder, attr_strs, 80);
FUSEBOX_MEMBER(fbx_builder, attr_copy, 88);
FUSEBOX_MEMBER(fbx_builder, type, 96);
FUSEBOX_MEMBER(fbx_builder, set_result, 104);
FUSEBOX_MEMBER(fbx_builder, raw_options, 112);
FUSEBOX_MEMBER(fbx_builder, set_quant, 120);
FUSEBOX_MEMBER(fbx_builder, attr_dtype, 128);
FUSEBOX_MEMBER(fbx_builder, attr_shape, 136);
FUSEBOX_MEMBER(fbx_builder, attr_tensor, 144);
FUSEBOX_MEMBER(fbx_builder, begin_map, 152);
FUSEBOX_MEMBER(fbx_builder, end_map, 160);
FUSEBOX_MEMBER(fbx_builder, add_tensor, 168);
FUSEBOX_MEMBER(fbx_builder, set_dtype, 176);
FUSEBOX_MEMBER(fbx_builder, add_variable, 184);

FUSEBOX_SIZE(fbx_tolerance, 24);
FUSEBOX_MEMBER(fbx_tolerance, head, 0);
FUSEBOX_MEMBER(fbx_tolerance, atol, 8);
FUSEBOX_MEMBER(fbx_tolerance, rtol, 16);

FUSEBOX_SIZE(fbx_rule, 88);
FUSEBOX_MEMBER(fbx_rule, head, 0);
FUSEBOX_MEMBER(fbx_rule, id, 8);
FUSEBOX_MEMBER(fbx_rule, implements, 24);
FUSEBOX_MEMBER(fbx_rule, min_version, 40);
FUSEBOX_MEMBER(fbx_rule, max_version, 44);
FUSEBOX_MEMBER(fbx_rule, benefit, 48);
FUSEBOX_MEMBER(fbx_rule, user, 56);
FUSEBOX_MEMBER(fbx_rule, match, 64);
FUSEBOX_MEMBER(fbx_rule, rewrite, 72);
FUSEBOX_MEMBER(fbx_rule, tolerance, 80);

FUSEBOX_SIZE(fbx_claim, 40);
FUSEBOX_MEMBER(fbx_claim, head, 0);
FUSEBOX_MEMBER(fbx_claim, accept, 8);
FUSEBOX_MEMBER(fbx_claim, reject, 16);
FUSEBOX_MEMBER(fbx_claim, accept_join, 24);
FUSEBOX_MEMBER(fbx_claim, offered, 32);

FUSEBOX_SIZE(fbx_call, 40);
FUSEBOX_MEMBER(fbx_call, head, 0);
FUSEBOX_MEMBER(fbx_call, input_count, 8);
FUSEBOX_MEMBER(fbx_call, output_count, 12);
FUSEBOX_MEMBER(fbx_call, inputs, 16);
FUSEBOX_MEMBER(fbx_call, outputs, 24);
FUSEBOX_MEMBER(fbx_call, scratch, 32);

FUSEBOX_SIZE(fbx_delegate, 128);
FUSEBOX_MEMBER(fbx_delegate, head, 0);
FUSEBOX_MEMBER(fbx_delegate, name, 8);
FUSEBOX_MEMBER(fbx_delegate, user, 24);
FUSEBOX_MEMBER(fbx_delegate, create, 32);
FUSEBOX_MEMBER(fbx_delegate, destroy, 40);
FUSEBOX_MEMBER(fbx_delegate, claim, 48);
FUSEBOX_MEMBER(fbx_delegate, compile, 56);
FUSEBOX_MEMBER(fbx_delegate, prepare, 64);
FUSEBOX_MEMBER(fbx_delegate, invoke, 72);
FUSEBOX_MEMBER(fbx_delegate, destroy_partition, 80);
FUSEBOX_MEMBER(fbx_delegate, open_session, 88);
FUSEBOX_MEMBER(fbx_delegate, finish, 96);
FUSEBOX_MEMBER(fbx_delegate, close_session, 104);
FUSEBOX_MEMBER(fbx_delegate, reshape, 112);
FUSEBOX_MEMBER(fbx_delegate, recompile, 120);

FUSEBOX_SIZE(fbx_plugin, 96);
FUSEBOX_MEMBER(fbx_plugin, head, 0);
FUSEBOX_MEMBER(fbx_plugin, id, 8);
FUSEBOX_MEMBER(fbx_plugin, version, 24);
FUSEBOX_MEMBER(fbx_plugin, rule_count, 40);
FUSEBOX_MEMBER(fbx_plugin, kernel_count, 44);
FUSEBOX_MEMBER(fbx_plugin, delegate_count, 48);
FUSEBOX_MEMBER(fbx_plugin, rules, 56);
FUSEBOX_MEMBER(fbx_plugin, kernels, 64);
FUSEBOX_MEMBER(fbx_plugin, delegates, 72);
FUSEBOX_MEMBER(fbx_plugin, user, 80);
FUSEBOX_MEMBER(fbx_plugin, get_extension, 88);

FUSEBOX_SIZE(fbx_entry, 56);
FUSEBOX_MEMBER(fbx_entry, magic, 0);
FUSEBOX_MEMBER(fbx_entry, major, 4);
FUSEBOX_MEMBER(fbx_entry, minor, 6);
FUSEBOX_MEMBER(fbx_entry, size, 8);
FUSEBOX_MEMBER(fbx_entry, flags, 12);
FUSEBOX_MEMBER(fbx_entry, min_host_minor, 16);
FUSEBOX_MEMBER(fbx_entry, build, 24);
FUSEBOX_MEMBER(fbx_entry, load, 40);
FUSEBOX_MEMBER(fbx_entry, unload, 48);

// The first 16 bytes of an entry are the same for every major version.
static_assert(FBX_ENTRY_MAGIC == 0x31584246u && FBX_ABI_MAJOR == 1);

#define FUSEBOX_VALUE(name, value) static_assert(static_cast<int>(name) == (value))
FUSEBOX_VALUE(FBX_OK, 0);
FUSEBOX_VALUE(FBX_NOT_APPLICABLE, 1);
FUSEBOX_VALUE(FBX_INVALID, 2);
FUSEBOX_VALUE(FBX_UNSUPPORTED, 3);
FUSEBOX_VALUE(FBX_OUT_OF_MEMORY, 4);
FUSEBOX_VALUE(FBX_IO, 5);
FUSEBOX_VALUE(FBX_INTERNAL, 6);
FUSEBOX_VALUE(FBX_ERROR, 3);
FUSEBOX_VALUE(FBX_F32, 1);
FUSEBOX_VALUE(FBX_F64, 4);
FUSEBOX_VALUE(FBX_I64, 8);
FUSEBOX_VALUE(FBX_BOOL, 13);
FUSEBOX_VALUE(FBX_STRING, 14);
FUSEBOX_VALUE(FBX_VARIANT, 23);
FUSEBOX_VALUE(FBX_QUANT_BLOCKWISE, 3);
FUSEBOX_VALUE(FBX_TENSOR_CONST, 1);
FUSEBOX_VALUE(FBX_TENSOR_VARIABLE, 2);
FUSEBOX_VALUE(FBX_TENSOR_ABSENT, 4);
FUSEBOX_VALUE(FBX_TENSOR_KNOWN, 8);
FUSEBOX_VALUE(FBX_ATTR_MAP, 12);
FUSEBOX_VALUE(FBX_OP_BUILTIN, 0);
FUSEBOX_VALUE(FBX_OP_CUSTOM, 1);
FUSEBOX_VALUE(FBX_OP_INTERNAL, 2);
FUSEBOX_VALUE(FBX_KERNEL_INPLACE, 2);
FUSEBOX_VALUE(FBX_BUILT_WITH_MSAN, 4);

// A callback that may throw has another type than the ABI's, so that a plugin with one does not compile.
using Rewrite = decltype(fbx_rule::rewrite);
using Invoke = decltype(fbx_kernel::invoke);
using Throwing = fbx_status (*)(const fbx_host*, void*, const fbx_composite*, const fbx_builder*);
using ThrowingInvoke = fbx_status (*)(const fbx_host*, void*, const void*, void*, const fbx_node*);
static_assert(!std::is_assignable_v<Rewrite&, Throwing> && !std::is_assignable_v<Invoke&, ThrowingInvoke>);
static_assert(std::is_assignable_v<Throwing&, Rewrite> && std::is_assignable_v<ThrowingInvoke&, Invoke>);

fbx_kernel Kernel() {
  fbx_kernel kernel{};
  kernel.head = FBX_HEAD(fbx_kernel);
  kernel.free = [](void*, void*) noexcept {};
  return kernel;
}

TEST(Abi, AMemberBeyondTheStructsOwnSizeIsAbsent) {
  fbx_kernel kernel = Kernel();
  EXPECT_TRUE(FBX_HAS(&kernel, free));
  kernel.head.size = offsetof(fbx_kernel, free) + sizeof(kernel.free) - 1;
  EXPECT_FALSE(FBX_HAS(&kernel, free));
}

TEST(Abi, AMemberThatIsNotSetIsAbsent) {
  fbx_kernel kernel = Kernel();
  kernel.free = nullptr;
  EXPECT_FALSE(FBX_HAS(&kernel, free));
  const fbx_kernel* none = nullptr;
  EXPECT_FALSE(FBX_HAS(none, free));
}

TEST(Abi, AStructThatGrewIsReadAsFarAsItIsKnown) {
  struct {
    fbx_kernel kernel = Kernel();
    unsigned char tail[40];
  } grown;
  for (unsigned char& byte : grown.tail) byte = 0xAB;
  grown.kernel.head.size = sizeof(grown);
  grown.kernel.head.minor = 9;
  EXPECT_TRUE(FBX_HAS(&grown.kernel, free));
}

}  // namespace
