/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "fusebox.profile/1": named spans of time inside a kernel or delegate.
 *
 * The host measures each node. A plugin adds what it does inside one: the times of spans with equal name and
 * worker are added up, per node. Spans of init, compile and prepare are in traces only. The extension is
 * absent unless the session is profiled or traced, so a run without a profile costs one get_extension per
 * call. The table may be kept; it serves every session, and `enabled` returns whether this one is profiled.
 * [prepare] [invoke] any thread that works for the call.
 */
#ifndef FUSEBOX_ABI_EXT_PROFILE_H_
#define FUSEBOX_ABI_EXT_PROFILE_H_

#include "../host.h"

FBX_EXTERN_C_BEGIN

#define FBX_EXT_PROFILE "fusebox.profile/1"

typedef struct fbx_span {
  fbx_head head;
  fbx_str name;         /* "pack", "gemm"; few different ones. Copied */
  uint32_t worker;      /* as in parallel_for; 0: the thread that entered the callback */
  uint64_t duration_ns; /* end - start of now_ns */
  uint64_t bytes;       /* read and written; 0: not counted */
  uint64_t flops;       /* floating-point operations; 0: not counted */
  uint64_t start_ns;    /* of now_ns; 0: duration_ns before the call. For traces */
} fbx_span;

typedef struct fbx_profile {
  fbx_head head;
  int32_t (*enabled)(const fbx_host*) FBX_NOEXCEPT;
  uint64_t (*now_ns)(const fbx_host*) FBX_NOEXCEPT; /* monotonic */
  void (*add)(const fbx_host*, const fbx_span*) FBX_NOEXCEPT;
} fbx_profile;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_EXT_PROFILE_H_ */
