/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "fusebox.cache/1": inspects and maintains the packed weights that a plugin keeps on disk.
 * `fusebox cache` uses it.
 *
 * `path` has the form of the option weight_cache_path: a file, a directory, or "auto". Functions report to a
 * sink, on the calling thread, before they return. NULL members of the sink are skipped. Arguments of a sink
 * function are valid until it returns.
 *
 * FBX_OK: done.   FBX_NOT_APPLICABLE: there is no cache at this path; the reason is emitted.
 * FBX_IO: the cache cannot be read or written; the reason is emitted.   Files are untrusted: invalid content
 * only makes a segment BAD or UNUSABLE. Any thread, several at once. [any]
 */
#ifndef FUSEBOX_ABI_EXT_CACHE_H_
#define FUSEBOX_ABI_EXT_CACHE_H_

#include "../rule.h"

FBX_EXTERN_C_BEGIN

#define FBX_EXT_CACHE "fusebox.cache/1"

typedef int32_t fbx_cache_state;
enum {
  FBX_CACHE_UNVERIFIED = 0, /* the index is valid; the bytes are checked on first use */
  FBX_CACHE_VERIFIED = 1,   /* the bytes were checked too, since the last boot */
  FBX_CACHE_BAD = 2,        /* damaged: never used, packed again */
  FBX_CACHE_UNUSABLE = 3    /* not damaged, but a newer format or a segment of another store */
};

typedef struct fbx_cache_store {
  fbx_head head;
  fbx_str path; /* absolute */
  int32_t single_file;
} fbx_cache_store;

/* A file of the store. */
typedef struct fbx_cache_segment {
  fbx_head head;
  fbx_str id;   /* name in this store, for remove */
  fbx_str path; /* absolute */
  fbx_cache_state state;
  fbx_str why;    /* for BAD and UNUSABLE */
  fbx_str writer; /* packing plugin; from here on empty or 0 if the file is unreadable */
  uint64_t bytes; /* of the file */
  uint64_t entry_count;
  uint64_t packed_bytes; /* of its entries; shared bytes count once */
  int64_t created;       /* seconds since 1970 */
  int64_t used;          /* same, to the day; 0: unknown */
} fbx_cache_segment;

/* Packed weights of one op, or of several ops that pack to the same bytes. */
typedef struct fbx_cache_entry {
  fbx_head head;
  fbx_str segment; /* id */
  fbx_str identity;
  fbx_str family; /* "fully connected" */
  fbx_str recipe; /* for display */
  uint64_t bytes;
  uint32_t shared; /* entries of the segment with the same bytes, including this one */
  int32_t current; /* 1: valid for this machine and library; 0: not; -1: unknown (another plugin's entry) */
} fbx_cache_entry;

typedef int32_t fbx_cache_kind;
enum {
  FBX_CACHE_CACHED = 0,   /* packed once; on a cache hit, a start does not read the weights */
  FBX_CACHE_REPACKED = 1, /* packed at every start, then replaced by the cached bytes */
  FBX_CACHE_PRIVATE = 2   /* packed per session, or read in place; never cached */
};

/* A constant of a model, as one op packs it. */
typedef struct fbx_cache_weight {
  fbx_head head;
  fbx_str location; /* of the node */
  fbx_str op;
  fbx_str identity; /* equal for weights that several nodes share; empty for PRIVATE */
  fbx_str recipe;
  fbx_cache_kind kind;
  int32_t found;
  uint64_t bytes;        /* in the model */
  uint64_t packed_bytes; /* 0: not found, or unknown */
  fbx_str segment;       /* id, if found */
  fbx_str code;          /* cause of a miss: absent, weights, cpu, library, fingerprint, damaged */
  fbx_str why;           /* the same as a sentence */
} fbx_cache_weight;

typedef struct fbx_cache_sink {
  fbx_head head;
  void (*store)(const struct fbx_cache_sink*, const fbx_cache_store*) FBX_NOEXCEPT; /* first */
  void (*segment)(const struct fbx_cache_sink*, const fbx_cache_segment*) FBX_NOEXCEPT;
  void (*entry)(const struct fbx_cache_sink*, const fbx_cache_entry*) FBX_NOEXCEPT; /* after its segment */
  void (*weight)(const struct fbx_cache_sink*, const fbx_cache_weight*) FBX_NOEXCEPT;
  void (*fact)(const struct fbx_cache_sink*, fbx_str name, fbx_str value) FBX_NOEXCEPT;
  /* A file that was removed or quarantined, and its size. */
  void (*removed)(const struct fbx_cache_sink*, fbx_str path, uint64_t bytes) FBX_NOEXCEPT;
} fbx_cache_sink;

typedef struct fbx_cache {
  fbx_head head;
  /* Reports store, segments and entries. Changes nothing. */
  fbx_status (*list)(const fbx_host*, fbx_str path, const fbx_cache_sink*) FBX_NOEXCEPT;
  /* Like list, after reading every byte. Quarantines damaged segments if the store is writable, and reports
     them through removed. */
  fbx_status (*verify)(const fbx_host*, fbx_str path, const fbx_cache_sink*) FBX_NOEXCEPT;
  /* Removes leftovers, superseded entries, and the least recently used segments until max_bytes are left.
     Processes that have a removed file open keep it. */
  fbx_status (*collect)(const fbx_host*, fbx_str path, uint64_t max_bytes,
                        const fbx_cache_sink*) FBX_NOEXCEPT;
  /* Removes these segments. FBX_INVALID: an id is unknown; nothing is removed. */
  fbx_status (*remove)(const fbx_host*, fbx_str path, const fbx_str* ids, size_t count,
                       const fbx_cache_sink*) FBX_NOEXCEPT;
  /* Removes all files of the store, and its directories unless they hold other files. */
  fbx_status (*clear)(const fbx_host*, fbx_str path, const fbx_cache_sink*) FBX_NOEXCEPT;
  /* Reports the facts besides the weights that entries depend on: library, CPU, a fingerprint per family. */
  fbx_status (*facts)(const fbx_host*, const fbx_cache_sink*) FBX_NOEXCEPT;
  /* Reports the weights of a graph that the delegate of this plugin compiled or would compile: hit or miss,
     and the cause. Packs nothing. A missing cache is not an error here. */
  fbx_status (*explain)(const fbx_host*, fbx_str path, const fbx_graph*, const fbx_cache_sink*) FBX_NOEXCEPT;
  /* Waits until all weights that sessions of this process packed are on disk. FBX_IO: writing failed. */
  fbx_status (*flush)(const fbx_host*, fbx_str path) FBX_NOEXCEPT;
} fbx_cache;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_EXT_CACHE_H_ */
