/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Basic types of the Fusebox plugin ABI, version 1: strings, status, heads, diagnostics.
 *
 * Everything under abi/ is plain C11 and needs no library. Rules:
 *  - fbx_str, fbx_bytes, fbx_head and fbx_value are frozen. They may be passed by value.
 *  - Every other struct begins with fbx_head and grows only at its end. The writer sets head.size to its own
 *    sizeof. The reader checks FBX_HAS before it uses a member newer than 1.0; a missing member counts as
 *    absent. Sizes are never compared for equality. Arrays of growable structs are arrays of pointers,
 *    and no struct holds a growable one by value.
 *  - Enumerations are int32_t. An unknown value is unsupported, never a crash.
 *  - A callback receives the `user` pointer of its rule, kernel, delegate or plugin: after the host, or first
 *    if it receives no host.
 *  - Text is UTF-8 with a length. It need not end in NUL.
 *
 * Threads: a tag in brackets at the end of a comment states when a function may be called:
 *   [load] while a plugin or a model is loaded   [convert] while rules run (converter, or Model::Open)
 *   [prepare] while a session is planned   [invoke] while it runs: no allocation, no locks on the host   [any]
 * Calls with one tag never overlap for one object unless its comment states otherwise.
 *
 * Lifetimes: a view (any pointer to const that a callback receives) is valid until the callback returns. The
 * data of a constant lives as long as the model, and the data of a descriptor as long as the plugin.
 */
#ifndef FUSEBOX_ABI_BASE_H_
#define FUSEBOX_ABI_BASE_H_

#include <stddef.h>
#include <stdint.h>

#define FBX_ABI_MAJOR 1
#define FBX_ABI_MINOR 0

#ifdef __cplusplus
#define FBX_NOEXCEPT noexcept /* a callback that can throw does not even compile */
#define FBX_EXTERN_C_BEGIN extern "C" {
#define FBX_EXTERN_C_END }
#else
#define FBX_NOEXCEPT
#define FBX_EXTERN_C_BEGIN
#define FBX_EXTERN_C_END
#endif

#if defined(__GNUC__)
#define FBX_EXPORT __attribute__((visibility("default")))
#else
#define FBX_EXPORT
#endif

FBX_EXTERN_C_BEGIN

typedef struct fbx_str {
  const char* ptr;
  size_t len;
} fbx_str;

typedef struct fbx_bytes {
  const void* ptr;
  size_t len;
} fbx_bytes;

/* First member of every growable struct. */
typedef struct fbx_head {
  uint32_t size; /* sizeof the whole struct, in the version of its writer */
  uint16_t major;
  uint16_t minor;
} fbx_head;

#define FBX_HEAD(type) {(uint32_t)sizeof(type), FBX_ABI_MAJOR, FBX_ABI_MINOR}

/* True if *p is long enough to hold `member`, and the member is set. */
#if defined(__cplusplus)
#define FBX_HAS(p, member)                                                                              \
  ((p) != nullptr &&                                                                                    \
   (p)->head.size >= (reinterpret_cast<const char*>(&(p)->member) - reinterpret_cast<const char*>(p)) + \
                         sizeof((p)->member) &&                                                         \
   (p)->member)
#else
#define FBX_HAS(p, member)                                                                           \
  ((p) != NULL &&                                                                                    \
   (p)->head.size >= (size_t)((const char*)&(p)->member - (const char*)(p)) + sizeof((p)->member) && \
   (p)->member)
#endif

/* Returned by callbacks of plugins and by functions of the host. docs/plugin-errors.md has the effect of each
 * status in each callback. The diagnostics of a call are the text of its error. */
typedef int32_t fbx_status;
enum {
  FBX_OK = 0,
  /* declined; the reason is a diagnostic. Not an error: the next candidate is tried. Where there is none
     (infer, init, prepare and invoke of a kernel), an error like UNSUPPORTED */
  FBX_NOT_APPLICABLE = 1,
  FBX_INVALID = 2,       /* the model, its data or an option is wrong */
  FBX_UNSUPPORTED = 3,   /* valid, but not implemented by the plugin or by this host */
  FBX_OUT_OF_MEMORY = 4, /* of the machine, or over a limit */
  FBX_IO = 5,            /* a file or device failed */
  FBX_INTERNAL = 6,      /* a bug in the plugin; the host counts an unknown status as this one */
  /* stopped early because fbx_host.cancelled returned 1. An error of the plugin if it did not */
  FBX_CANCELLED = 7
};

enum {
  FBX_NOTE = 0,
  FBX_REASON = 1, /* why something was declined */
  FBX_WARNING = 2,
  FBX_ERROR = 3
};

/* A message of a plugin about the current call. The host copies the text. */
typedef struct fbx_diag {
  fbx_head head;
  int32_t severity;
  fbx_str code;    /* short stable token: DTYPE, SHAPE, RANK, ARITY, NONCONST, ATTR, ...; may be empty */
  fbx_str message; /* one sentence, no full stop */
  fbx_str subject; /* "operand 1", "attr epsilon"; may be empty */
} fbx_diag;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_BASE_H_ */
