/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "fusebox.cache/1", of a plugin that keeps packed weights on disk: what is kept, whether it is
 * whole, what may go, and why a model does not find its weights there. It is what `fusebox cache` is made of.
 *
 * `path` is what the option weight_cache_path takes: a file, a directory, or "auto". Every function answers
 * through a sink, whose functions are called before it returns, on the same thread; those that are NULL are
 * passed over. What is handed to them lives until they return.
 *
 * FBX_OK: done, whatever was found.   FBX_NOT_APPLICABLE: there is no cache at this path, and why.
 * FBX_IO: something is there that cannot be used or written, and why.   Files are untrusted: no content is
 * more than a segment in a bad state. Any thread, several at once. [any]
 */
#ifndef FUSEBOX_ABI_EXT_CACHE_H_
#define FUSEBOX_ABI_EXT_CACHE_H_

#include "../rule.h"

FBX_EXTERN_C_BEGIN

#define FBX_EXT_CACHE "fusebox.cache/1"

typedef int32_t fbx_cache_state;
enum {
  FBX_CACHE_UNVERIFIED = 0, /* its index is right; its bytes are checked when they are first used */
  FBX_CACHE_VERIFIED = 1,   /* its bytes were checked too, since this machine was started */
  FBX_CACHE_BAD = 2,        /* damaged: never used, packed anew */
  FBX_CACHE_UNUSABLE = 3 /* whole, as far as can be seen, but not for here: a later format, another store's */
};

typedef struct fbx_cache_store {
  fbx_head head;
  fbx_str path; /* absolute */
  int32_t single_file;
} fbx_cache_store;

/* A file of the store. */
typedef struct fbx_cache_segment {
  fbx_head head;
  fbx_str id;   /* its name in this store, for remove */
  fbx_str path; /* absolute */
  fbx_cache_state state;
  fbx_str why;    /* of BAD and UNUSABLE */
  fbx_str writer; /* who packed; the members from here on are empty or 0 where the file cannot be read */
  uint64_t bytes; /* of the file */
  uint64_t entry_count;
  uint64_t packed_bytes; /* of its entries, shared ones once */
  int64_t created;       /* seconds since 1970 */
  int64_t used;          /* the same, to the day; 0: not known */
} fbx_cache_segment;

/* Packed weights of one op, or of several that pack the same. */
typedef struct fbx_cache_entry {
  fbx_head head;
  fbx_str segment; /* id */
  fbx_str identity;
  fbx_str family; /* "fully connected" */
  fbx_str recipe; /* for people */
  uint64_t bytes;
  uint32_t shared; /* how many entries of the segment have these very bytes, this one included */
  int32_t current; /* 1: this machine, with this library, would use it; 0: not; -1: not known, as it is
                      another plugin's */
} fbx_cache_entry;

typedef int32_t fbx_cache_kind;
enum {
  FBX_CACHE_CACHED = 0,   /* packed once; a start that finds it reads no weights */
  FBX_CACHE_REPACKED = 1, /* packed at every start, then dropped for the cached bytes */
  FBX_CACHE_PRIVATE = 2   /* packed for each session, or read where it lies; never in a cache */
};

/* A constant of a model, as one op packs it. */
typedef struct fbx_cache_weight {
  fbx_head head;
  fbx_str location; /* of the node */
  fbx_str op;
  fbx_str identity; /* equal for what is packed once for several nodes; empty for PRIVATE */
  fbx_str recipe;
  fbx_cache_kind kind;
  int32_t found;
  uint64_t bytes;        /* in the model */
  uint64_t packed_bytes; /* 0: not found, or not known */
  fbx_str segment;       /* id, where it is found */
  fbx_str code;          /* why it is not: absent, weights, cpu, library, fingerprint, damaged */
  fbx_str why;           /* the same as a sentence */
} fbx_cache_weight;

typedef struct fbx_cache_sink {
  fbx_head head;
  void (*store)(const struct fbx_cache_sink*, const fbx_cache_store*) FBX_NOEXCEPT; /* first of all */
  void (*segment)(const struct fbx_cache_sink*, const fbx_cache_segment*) FBX_NOEXCEPT;
  void (*entry)(const struct fbx_cache_sink*, const fbx_cache_entry*) FBX_NOEXCEPT; /* after its segment */
  void (*weight)(const struct fbx_cache_sink*, const fbx_cache_weight*) FBX_NOEXCEPT;
  void (*fact)(const struct fbx_cache_sink*, fbx_str name, fbx_str value) FBX_NOEXCEPT;
  /* A file that is gone or was put aside, with its size. */
  void (*removed)(const struct fbx_cache_sink*, fbx_str path, uint64_t bytes) FBX_NOEXCEPT;
} fbx_cache_sink;

typedef struct fbx_cache {
  fbx_head head;
  /* store, segments, entries. Changes nothing. */
  fbx_status (*list)(const fbx_host*, fbx_str path, const fbx_cache_sink*) FBX_NOEXCEPT;
  /* The same after reading every byte. What is damaged is put aside (removed) where
     the store can be written. */
  fbx_status (*verify)(const fbx_host*, fbx_str path, const fbx_cache_sink*) FBX_NOEXCEPT;
  /* Removes leftovers, what newer entries replaced, and the least recently used segments until max_bytes are
     left. Whoever has a removed file open keeps it. */
  fbx_status (*collect)(const fbx_host*, fbx_str path, uint64_t max_bytes,
                        const fbx_cache_sink*) FBX_NOEXCEPT;
  /* Removes these segments. FBX_INVALID: there is none of that id; then none is removed. */
  fbx_status (*remove)(const fbx_host*, fbx_str path, const fbx_str* ids, size_t count,
                       const fbx_cache_sink*) FBX_NOEXCEPT;
  /* Removes all that belongs to the store, and its directories unless something else is in them. */
  fbx_status (*clear)(const fbx_host*, fbx_str path, const fbx_cache_sink*) FBX_NOEXCEPT;
  /* What entries depend on beside the weights: library, CPU, a fingerprint per family. */
  fbx_status (*facts)(const fbx_host*, const fbx_cache_sink*) FBX_NOEXCEPT;
  /* The weights of a graph that this plugin's delegate compiled or would: found or not, and why. Nothing is
     packed. A cache that is not there has none of them: no error here. */
  fbx_status (*explain)(const fbx_host*, fbx_str path, const fbx_graph*, const fbx_cache_sink*) FBX_NOEXCEPT;
  /* Waits until all that sessions of this process have packed is on disk. FBX_IO: something could not be
   * kept, and why. */
  fbx_status (*flush)(const fbx_host*, fbx_str path) FBX_NOEXCEPT;
} fbx_cache;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_EXT_CACHE_H_ */
