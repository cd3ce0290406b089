// SPDX-License-Identifier: Apache-2.0
// The layout of the extensions' structs, frozen like that of the ABI itself (layout_test.cc).
#include <fusebox/abi/ext/cache.h>
#include <fusebox/abi/ext/caller.h>
#include <fusebox/abi/ext/cost.h>
#include <fusebox/abi/ext/forward.h>
#include <fusebox/abi/ext/gemm.h>
#include <fusebox/abi/ext/profile.h>
#include <fusebox/abi/ext/progress.h>
#include <fusebox/abi/ext/pthreadpool.h>
#include <fusebox/abi/ext/resize.h>
#include <fusebox/abi/ext/resources.h>
#include <fusebox/abi/ext/threads.h>
#include <fusebox/abi/ext/weights.h>
#include <gtest/gtest.h>

#include "tests/abi/layout.h"

namespace {

FUSEBOX_SIZE(fbx_threads, 24);
FUSEBOX_MEMBER(fbx_threads, head, 0);
FUSEBOX_MEMBER(fbx_threads, thread_count, 8);
FUSEBOX_MEMBER(fbx_threads, parallel_for, 16);

FUSEBOX_SIZE(fbx_pthreadpool, 24);
FUSEBOX_MEMBER(fbx_pthreadpool, head, 0);
FUSEBOX_MEMBER(fbx_pthreadpool, pool, 8);
FUSEBOX_MEMBER(fbx_pthreadpool, parallelize_1d, 16);

FUSEBOX_SIZE(fbx_resize, 16);
FUSEBOX_MEMBER(fbx_resize, head, 0);
FUSEBOX_MEMBER(fbx_resize, resize, 8);

FUSEBOX_SIZE(fbx_caller, 40);
FUSEBOX_MEMBER(fbx_caller, head, 0);
FUSEBOX_MEMBER(fbx_caller, plugin, 8);
FUSEBOX_MEMBER(fbx_caller, delegate_options, 16);
FUSEBOX_MEMBER(fbx_caller, find, 24);
FUSEBOX_MEMBER(fbx_caller, keep, 32);

FUSEBOX_SIZE(fbx_cost, 32);
FUSEBOX_MEMBER(fbx_cost, head, 0);
FUSEBOX_MEMBER(fbx_cost, kernel, 8);
FUSEBOX_MEMBER(fbx_cost, node, 16);
FUSEBOX_MEMBER(fbx_cost, border, 24);

FUSEBOX_SIZE(fbx_forward_watch, 32);
FUSEBOX_MEMBER(fbx_forward_watch, head, 0);
FUSEBOX_MEMBER(fbx_forward_watch, user, 8);
FUSEBOX_MEMBER(fbx_forward_watch, before, 16);
FUSEBOX_MEMBER(fbx_forward_watch, after, 24);

FUSEBOX_SIZE(fbx_forward, 24);
FUSEBOX_MEMBER(fbx_forward, head, 0);
FUSEBOX_MEMBER(fbx_forward, prepare, 8);
FUSEBOX_MEMBER(fbx_forward, run, 16);

FUSEBOX_SIZE(fbx_gemm_spec, 56);
FUSEBOX_MEMBER(fbx_gemm_spec, head, 0);
FUSEBOX_MEMBER(fbx_gemm_spec, weights, 8);
FUSEBOX_MEMBER(fbx_gemm_spec, bias, 16);
FUSEBOX_MEMBER(fbx_gemm_spec, order, 24);
FUSEBOX_MEMBER(fbx_gemm_spec, activation, 28);
FUSEBOX_MEMBER(fbx_gemm_spec, lowest, 32);
FUSEBOX_MEMBER(fbx_gemm_spec, highest, 36);
FUSEBOX_MEMBER(fbx_gemm_spec, input, 40);
FUSEBOX_MEMBER(fbx_gemm_spec, output, 48);

FUSEBOX_SIZE(fbx_gemm_call, 72);
FUSEBOX_MEMBER(fbx_gemm_call, head, 0);
FUSEBOX_MEMBER(fbx_gemm_call, m, 8);
FUSEBOX_MEMBER(fbx_gemm_call, a, 16);
FUSEBOX_MEMBER(fbx_gemm_call, a_stride, 24);
FUSEBOX_MEMBER(fbx_gemm_call, c, 32);
FUSEBOX_MEMBER(fbx_gemm_call, c_stride, 40);
FUSEBOX_MEMBER(fbx_gemm_call, times, 48);
FUSEBOX_MEMBER(fbx_gemm_call, times_stride, 56);
FUSEBOX_MEMBER(fbx_gemm_call, scratch, 64);

FUSEBOX_SIZE(fbx_gemm, 40);
FUSEBOX_MEMBER(fbx_gemm, head, 0);
FUSEBOX_MEMBER(fbx_gemm, create, 8);
FUSEBOX_MEMBER(fbx_gemm, destroy, 16);
FUSEBOX_MEMBER(fbx_gemm, scratch, 24);
FUSEBOX_MEMBER(fbx_gemm, run, 32);

FUSEBOX_SIZE(fbx_weights_recipe, 80);
FUSEBOX_MEMBER(fbx_weights_recipe, head, 0);
FUSEBOX_MEMBER(fbx_weights_recipe, what, 8);
FUSEBOX_MEMBER(fbx_weights_recipe, layout, 24);
FUSEBOX_MEMBER(fbx_weights_recipe, numbers, 40);
FUSEBOX_MEMBER(fbx_weights_recipe, number_count, 48);
FUSEBOX_MEMBER(fbx_weights_recipe, source_count, 52);
FUSEBOX_MEMBER(fbx_weights_recipe, sources, 56);
FUSEBOX_MEMBER(fbx_weights_recipe, size, 64);
FUSEBOX_MEMBER(fbx_weights_recipe, graph, 72);

FUSEBOX_SIZE(fbx_packed, 40);
FUSEBOX_MEMBER(fbx_packed, head, 0);
FUSEBOX_MEMBER(fbx_packed, data, 8);
FUSEBOX_MEMBER(fbx_packed, memory, 16);
FUSEBOX_MEMBER(fbx_packed, handle, 24);
FUSEBOX_MEMBER(fbx_packed, size, 32);

FUSEBOX_SIZE(fbx_weights, 48);
FUSEBOX_MEMBER(fbx_weights, head, 0);
FUSEBOX_MEMBER(fbx_weights, acquire, 8);
FUSEBOX_MEMBER(fbx_weights, commit, 16);
FUSEBOX_MEMBER(fbx_weights, release, 24);
FUSEBOX_MEMBER(fbx_weights, put, 32);
FUSEBOX_MEMBER(fbx_weights, keeps, 40);

FUSEBOX_SIZE(fbx_resources, 16);
FUSEBOX_MEMBER(fbx_resources, head, 0);
FUSEBOX_MEMBER(fbx_resources, acquire, 8);

FUSEBOX_SIZE(fbx_progress, 32);
FUSEBOX_MEMBER(fbx_progress, head, 0);
FUSEBOX_MEMBER(fbx_progress, begin, 8);
FUSEBOX_MEMBER(fbx_progress, advance, 16);
FUSEBOX_MEMBER(fbx_progress, end, 24);

FUSEBOX_SIZE(fbx_span, 64);
FUSEBOX_MEMBER(fbx_span, head, 0);
FUSEBOX_MEMBER(fbx_span, name, 8);
FUSEBOX_MEMBER(fbx_span, worker, 24);
FUSEBOX_MEMBER(fbx_span, duration_ns, 32);
FUSEBOX_MEMBER(fbx_span, bytes, 40);
FUSEBOX_MEMBER(fbx_span, flops, 48);
FUSEBOX_MEMBER(fbx_span, start_ns, 56);

FUSEBOX_SIZE(fbx_profile, 32);
FUSEBOX_MEMBER(fbx_profile, head, 0);
FUSEBOX_MEMBER(fbx_profile, enabled, 8);
FUSEBOX_MEMBER(fbx_profile, now_ns, 16);
FUSEBOX_MEMBER(fbx_profile, add, 24);

FUSEBOX_SIZE(fbx_cache_store, 32);
FUSEBOX_MEMBER(fbx_cache_store, head, 0);
FUSEBOX_MEMBER(fbx_cache_store, path, 8);
FUSEBOX_MEMBER(fbx_cache_store, single_file, 24);

FUSEBOX_SIZE(fbx_cache_segment, 120);
FUSEBOX_MEMBER(fbx_cache_segment, head, 0);
FUSEBOX_MEMBER(fbx_cache_segment, id, 8);
FUSEBOX_MEMBER(fbx_cache_segment, path, 24);
FUSEBOX_MEMBER(fbx_cache_segment, state, 40);
FUSEBOX_MEMBER(fbx_cache_segment, why, 48);
FUSEBOX_MEMBER(fbx_cache_segment, writer, 64);
FUSEBOX_MEMBER(fbx_cache_segment, bytes, 80);
FUSEBOX_MEMBER(fbx_cache_segment, entry_count, 88);
FUSEBOX_MEMBER(fbx_cache_segment, packed_bytes, 96);
FUSEBOX_MEMBER(fbx_cache_segment, created, 104);
FUSEBOX_MEMBER(fbx_cache_segment, used, 112);

FUSEBOX_SIZE(fbx_cache_entry, 88);
FUSEBOX_MEMBER(fbx_cache_entry, head, 0);
FUSEBOX_MEMBER(fbx_cache_entry, segment, 8);
FUSEBOX_MEMBER(fbx_cache_entry, identity, 24);
FUSEBOX_MEMBER(fbx_cache_entry, family, 40);
FUSEBOX_MEMBER(fbx_cache_entry, recipe, 56);
FUSEBOX_MEMBER(fbx_cache_entry, bytes, 72);
FUSEBOX_MEMBER(fbx_cache_entry, shared, 80);
FUSEBOX_MEMBER(fbx_cache_entry, current, 84);

FUSEBOX_SIZE(fbx_cache_weight, 144);
FUSEBOX_MEMBER(fbx_cache_weight, head, 0);
FUSEBOX_MEMBER(fbx_cache_weight, location, 8);
FUSEBOX_MEMBER(fbx_cache_weight, op, 24);
FUSEBOX_MEMBER(fbx_cache_weight, identity, 40);
FUSEBOX_MEMBER(fbx_cache_weight, recipe, 56);
FUSEBOX_MEMBER(fbx_cache_weight, kind, 72);
FUSEBOX_MEMBER(fbx_cache_weight, found, 76);
FUSEBOX_MEMBER(fbx_cache_weight, bytes, 80);
FUSEBOX_MEMBER(fbx_cache_weight, packed_bytes, 88);
FUSEBOX_MEMBER(fbx_cache_weight, segment, 96);
FUSEBOX_MEMBER(fbx_cache_weight, code, 112);
FUSEBOX_MEMBER(fbx_cache_weight, why, 128);

FUSEBOX_SIZE(fbx_cache_sink, 56);
FUSEBOX_MEMBER(fbx_cache_sink, head, 0);
FUSEBOX_MEMBER(fbx_cache_sink, store, 8);
FUSEBOX_MEMBER(fbx_cache_sink, segment, 16);
FUSEBOX_MEMBER(fbx_cache_sink, entry, 24);
FUSEBOX_MEMBER(fbx_cache_sink, weight, 32);
FUSEBOX_MEMBER(fbx_cache_sink, fact, 40);
FUSEBOX_MEMBER(fbx_cache_sink, removed, 48);

FUSEBOX_SIZE(fbx_cache, 72);
FUSEBOX_MEMBER(fbx_cache, head, 0);
FUSEBOX_MEMBER(fbx_cache, list, 8);
FUSEBOX_MEMBER(fbx_cache, verify, 16);
FUSEBOX_MEMBER(fbx_cache, collect, 24);
FUSEBOX_MEMBER(fbx_cache, remove, 32);
FUSEBOX_MEMBER(fbx_cache, clear, 40);
FUSEBOX_MEMBER(fbx_cache, facts, 48);
FUSEBOX_MEMBER(fbx_cache, explain, 56);
FUSEBOX_MEMBER(fbx_cache, flush, 64);

static_assert(FBX_CACHE_UNVERIFIED == 0 && FBX_CACHE_VERIFIED == 1 && FBX_CACHE_BAD == 2 &&
              FBX_CACHE_UNUSABLE == 3);
static_assert(FBX_CACHE_CACHED == 0 && FBX_CACHE_REPACKED == 1 && FBX_CACHE_PRIVATE == 2);

TEST(Abi, ASinkThatIsShorterThanItsReaderKnowsLacksTheRest) {
  fbx_cache_sink sink{};
  sink.head = FBX_HEAD(fbx_cache_sink);
  sink.removed = [](const fbx_cache_sink*, fbx_str, uint64_t) noexcept {};
  EXPECT_TRUE(FBX_HAS(&sink, removed));
  sink.head.size = offsetof(fbx_cache_sink, removed);
  EXPECT_FALSE(FBX_HAS(&sink, removed));
}

}  // namespace
