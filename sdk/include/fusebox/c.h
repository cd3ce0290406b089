/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libfusebox: run .tflite models with plugins, from C11, C++11 and every language that calls C.
 *
 *   fusebox_model* model;
 *   fusebox_session* session;
 *   fusebox_model_open("model.tflite", NULL, NULL, &model, NULL);
 *   fusebox_session_create(model, "{\"threads\": 2}", NULL, &session, NULL);
 *   fusebox_session_set_input(session, 0, pixels, sizeof pixels, NULL);
 *   fusebox_session_run(session, NULL);
 *   fusebox_tensor scores = FUSEBOX_TENSOR;
 *   fusebox_session_output(session, 0, &scores, NULL);
 *
 * c_base.h has the rules about errors, text, NULL and options.
 *
 * Threads: registries, models and thread pools may be used by any thread at any time. A session is used by
 * one thread at a time, except fusebox_session_cancel. Many sessions may run one model at the same time.
 *
 * Lifetimes: a handle is freed once, in any order: a session keeps its model, and a model its registry, until
 * they are freed too. Freeing NULL does nothing.
 */
#ifndef FUSEBOX_C_H_
#define FUSEBOX_C_H_

#include "fusebox/abi/tensor.h"
#include "fusebox/c_base.h"

FBX_EXTERN_C_BEGIN

/* The version of this header. Functions of a higher minor are missing in an older library. */
#define FUSEBOX_C_MAJOR 1
#define FUSEBOX_C_MINOR 0

typedef struct fusebox_registry fusebox_registry;
typedef struct fusebox_model fusebox_model;
typedef struct fusebox_session fusebox_session;
typedef struct fusebox_thread_pool fusebox_thread_pool;
struct fbx_entry; /* abi/plugin.h */

/* ---- The library. Any thread. */

/* The version of the product, "0.1.0". Static. */
FUSEBOX_API const char* fusebox_version(void) FBX_NOEXCEPT;
/* The version of the functions in the library: major * 65536 + minor. */
FUSEBOX_API uint32_t fusebox_c_version(void) FBX_NOEXCEPT;
/* The version of the plugin ABI that the host implements: major * 65536 + minor. */
FUSEBOX_API uint32_t fusebox_abi_version(void) FBX_NOEXCEPT;
/* The name of a status, "invalid"; "unknown" for other numbers. Static. */
FUSEBOX_API const char* fusebox_status_name(fusebox_status status) FBX_NOEXCEPT;
/* The name of an element type, "f32"; "none" for other numbers. Static. */
FUSEBOX_API const char* fusebox_dtype_name(fbx_dtype dtype) FBX_NOEXCEPT;
/* Frees text that a function returned through `char**`. NULL: nothing. */
FUSEBOX_API void fusebox_text_free(char* text) FBX_NOEXCEPT;

/* Sends all log lines of the library to `sink` instead of stderr; NULL: to stderr again. After it returns,
 * the sink before is not called. Warnings are always on; FUSEBOX_LOG=TOPIC,... in the environment adds
 * others. */
FUSEBOX_API fusebox_status fusebox_set_log_sink(fusebox_log_sink sink, void* user, char** error) FBX_NOEXCEPT;

/* ---- Registry: the plugins of a process. */

/* Finds plugins and reads their manifests; libraries are opened when needed. `file`: path of a fusebox.json,
 * or NULL. `config`: the same as text, or NULL; its keys replace keys of the file. Relative paths of both
 * are relative to the folder of the file, or without one to the working directory. Plugins under the key
 * "plugins" must load. Error: invalid configuration. A broken plugin on the search path is no error:
 * fusebox_registry_plugins lists it. */
FUSEBOX_API fusebox_status fusebox_registry_create(const char* file, const char* config,
                                                   fusebox_registry** out, char** error) FBX_NOEXCEPT;
FUSEBOX_API void fusebox_registry_free(fusebox_registry* registry) FBX_NOEXCEPT;
/* Adds a plugin that is linked into the program, and loads it. Models opened from now on use it, before
 * plugins that were found. `manifest`:
 * the text of its fusebox-plugin.json, whose libraries are not read; NULL: derived from its tables. `entry`
 * outlives the registry. Error: an invalid manifest, a failed load, or an id that is there already. */
FUSEBOX_API fusebox_status fusebox_registry_add_plugin(fusebox_registry* registry,
                                                       const struct fbx_entry* entry, const char* manifest,
                                                       char** error) FBX_NOEXCEPT;
/* All plugins found, and the searched folders, as JSON:
 *   {"plugins": [{"id", "version", "state", "reason", "manifest", "library", "loaded", "built_in"}],
 *    "searched": ["/usr/lib/fusebox/plugins"]}
 * state: ok, shadowed, denied, broken. */
FUSEBOX_API fusebox_status fusebox_registry_plugins(const fusebox_registry* registry, char** json,
                                                    char** error) FBX_NOEXCEPT;

/* ---- Model: a .tflite file, read, fused, with kernels and delegates chosen. Immutable. */

/* `options`: JSON, or NULL.
 *   "fuse": bool (true)                 fuse composites
 *   "delegates": [{"name", "options"}]  in the order in which nodes are offered; []: none. Absent: the
 *                                       configuration's delegates, else the default delegates
 *   "delegate_options": {NAME: {...}}   over options of the configuration
 *   "missing": "warn"                   if the plugin of a fused op or composite is missing: run its body with a
 *                                       notice ("warn"), without one ("body"), or fail ("error")
 *   "import": "never"                   a file with ops of TensorFlow (Flex), of which nothing runs otherwise, is
 *                                       translated by libfusebox-convert, which is loaded on demand ("auto"), as
 *                                       `fusebox convert` does it; or is an error ("never")
 *   "name": string ("<memory>")         of a model from memory, in messages
 *   "time_limit_ms": number (0)         opening that takes more milliseconds ends with FUSEBOX_CANCELLED, at its
 *                                       next node; 0: no limit, but ten seconds for an import
 * `registry`: NULL: one with the default search path, which the process shares. Error: an invalid file, or no
 * signature can run (the text names op, plugin and searched folders). */
FUSEBOX_API fusebox_status fusebox_model_open(const char* path, const char* options,
                                              fusebox_registry* registry, fusebox_model** out,
                                              char** error) FBX_NOEXCEPT;
/* Same, for the bytes of a .tflite file, which are not copied if they are aligned to 8 bytes and stay
 * unchanged while the model is used. `release`, if not NULL, is called with `user` once, when nothing uses
 * the bytes any more: also if opening fails, and in any thread. Without it, the bytes must outlive the model
 * and its sessions. Kernels may read 16 bytes beyond a constant: one that ends within 16 bytes of the end of
 * the file is copied. */
FUSEBOX_API fusebox_status fusebox_model_from_memory(const void* bytes, size_t size,
                                                     void (*release)(void* user), void* user,
                                                     const char* options, fusebox_registry* registry,
                                                     fusebox_model** out, char** error) FBX_NOEXCEPT;
/* Same, with a copy of the bytes. */
FUSEBOX_API fusebox_status fusebox_model_from_copy(const void* bytes, size_t size, const char* options,
                                                   fusebox_registry* registry, fusebox_model** out,
                                                   char** error) FBX_NOEXCEPT;
FUSEBOX_API void fusebox_model_free(fusebox_model* model) FBX_NOEXCEPT;

/* The entries that a session can select: the signatures in file order, then the main function if no signature
 * runs it. -1: NULL. */
FUSEBOX_API int32_t fusebox_model_signature_count(const fusebox_model* model) FBX_NOEXCEPT;
/* The key of an entry; "" is the main function. Lives as long as the model. `why`, if not NULL, receives why
 * the entry cannot run, or NULL if it can. Returns NULL for a wrong index or model. */
FUSEBOX_API const char* fusebox_model_signature(const fusebox_model* model, int32_t index,
                                                const char** why) FBX_NOEXCEPT;
/* Reports what was fused and what runs each node, as JSON:
 *   {"name", "signatures": [{"key", "function", "can_run", "reason"}], "functions": [NAME], "notices": ["..."],
 *    "sites": [{"function", "location", "composite", "fused", "reason", "emitted", "replaced",
 *               "rules": [...]}],
 *    "fused": [{"function", "node", "op", "plugin", "version", "rule", "composite"}],
 *    "placements": [{"function", "node", "op", "runner", "reason"}]}
 * sites: composites of the file and the result of fusion here; fused: ops that a rule made, here or in the
 * converter. Objects may get more keys. */
FUSEBOX_API fusebox_status fusebox_model_report(const fusebox_model* model, char** json,
                                                char** error) FBX_NOEXCEPT;

/* ---- Session: memory, state and threads to run a model. */

/* Threads that several sessions share, also those that run at the same time. `threads`: maximum of one loop,
 * including the calling thread; 0: one per core of the process. */
FUSEBOX_API fusebox_status fusebox_thread_pool_create(int32_t threads, fusebox_thread_pool** out,
                                                      char** error) FBX_NOEXCEPT;
FUSEBOX_API void fusebox_thread_pool_free(fusebox_thread_pool* pool) FBX_NOEXCEPT;
/* -1: NULL. */
FUSEBOX_API int32_t fusebox_thread_pool_threads(const fusebox_thread_pool* pool) FBX_NOEXCEPT;

/* `options`: JSON, or NULL.
 *   "signature": key ("")     "" selects the only one, or the main function's
 *   "threads": number (1)     maximum of one run, including the calling thread; 0: one per core
 *   "memory_limit": bytes (0) of tensors and scratch memory; 0: sessions share half of what is available
 *   "keep_values": bool       for fusebox_session_value; takes more memory
 *   "profile": bool           for fusebox_session_times
 *   "shadow": number (0)      N: every N-th call of a fused op also runs its body, and compares; 0: none
 * `pool`: its threads run the session, and "threads" is not used; NULL: new threads. Error: an unknown
 * signature, or one that cannot run. */
FUSEBOX_API fusebox_status fusebox_session_create(fusebox_model* model, const char* options,
                                                  fusebox_thread_pool* pool, fusebox_session** out,
                                                  char** error) FBX_NOEXCEPT;
FUSEBOX_API void fusebox_session_free(fusebox_session* session) FBX_NOEXCEPT;

/* The key of the selected signature; "" is the main function. NULL: session is NULL. Valid until select. */
FUSEBOX_API const char* fusebox_session_signature(const fusebox_session* session) FBX_NOEXCEPT;
/* Selects the signature of the next runs. State is kept; values, shapes and bindings of inputs are not. */
FUSEBOX_API fusebox_status fusebox_session_select(fusebox_session* session, const char* key,
                                                  char** error) FBX_NOEXCEPT;

/* ---- Inputs and outputs, by index, in the order of the signature. */

/* A tensor of a session. The caller sets struct_size; functions fill the members that fit. */
typedef struct fusebox_tensor {
  uint32_t struct_size; /* sizeof(fusebox_tensor) */
  fbx_dtype dtype;      /* FBX_F32, ...: abi/tensor.h */
  const char* name;
  const int64_t* dims; /* -1: not known yet */
  int32_t rank;        /* -1: not known yet */
  int32_t scale_axis;  /* of several scales */
  const void* data;    /* NULL: no value yet, or no elements. Strings: use fusebox_tensor_string */
  size_t bytes;
  /* Quantization: real = scale * (stored - zero_point). No scales: not quantized. */
  const float* scales;
  const int64_t* zero_points;
  size_t scale_count;
} fusebox_tensor;
/* Initializes a fusebox_tensor. */
#define FUSEBOX_TENSOR {(uint32_t)sizeof(fusebox_tensor), 0, NULL, NULL, 0, 0, NULL, 0, NULL, NULL, 0}

/* -1: session is NULL. */
FUSEBOX_API int32_t fusebox_session_input_count(const fusebox_session* session) FBX_NOEXCEPT;
FUSEBOX_API int32_t fusebox_session_output_count(const fusebox_session* session) FBX_NOEXCEPT;
/* Error: no such name; the text lists all. */
FUSEBOX_API fusebox_status fusebox_session_find_input(const fusebox_session* session, const char* name,
                                                      int32_t* index, char** error) FBX_NOEXCEPT;
FUSEBOX_API fusebox_status fusebox_session_find_output(const fusebox_session* session, const char* name,
                                                       int32_t* index, char** error) FBX_NOEXCEPT;
/* Name, type and dims of an input: as declared, or as resized. data is NULL. Valid until a function changes
 * the session. */
FUSEBOX_API fusebox_status fusebox_session_input(const fusebox_session* session, int32_t index,
                                                 fusebox_tensor* out, char** error) FBX_NOEXCEPT;
/* Sets the dims of an input, of the declared rank. Dims that the model fixes may change too, if its ops
 * support it. The value of the input becomes zeros. */
FUSEBOX_API fusebox_status fusebox_session_resize_input(fusebox_session* session, int32_t index,
                                                        const int64_t* dims, int32_t rank,
                                                        char** error) FBX_NOEXCEPT;
/* Copies the value in. `bytes` must match the dims; resize first if some are not known. Bools are bytes 0 and
 * 1. */
FUSEBOX_API fusebox_status fusebox_session_set_input(fusebox_session* session, int32_t index,
                                                     const void* data, size_t bytes,
                                                     char** error) FBX_NOEXCEPT;
/* Copies strings in and sets the dims. `lengths`: NULL if each string ends in NUL. */
FUSEBOX_API fusebox_status fusebox_session_set_strings(fusebox_session* session, int32_t index,
                                                       const char* const* strings, const size_t* lengths,
                                                       const int64_t* dims, int32_t rank,
                                                       char** error) FBX_NOEXCEPT;
/* The session's memory of an input, to fill in place; its dims must be known. Valid until the input is set,
 * resized or bound, until a run with other shapes, and until select. */
FUSEBOX_API fusebox_status fusebox_session_input_data(fusebox_session* session, int32_t index, void** data,
                                                      size_t* bytes, char** error) FBX_NOEXCEPT;
/* Runs read an input from, and write an output to, `memory`, which stays valid until it is unbound: by NULL
 * with 0 bytes, by setting or resizing the input, by select. The dims of all inputs must be known, and the
 * size of the tensor must follow from them: no strings. `bytes`: the size of the tensor, or 16 more that are
 * only read. The memory is used without a copy if it is aligned to 64 bytes and the 16 bytes after the tensor
 * are part of it, or in the page of its last byte, or if only kernels of the plugin cpu use the tensor, which
 * read no further; otherwise each run copies. It does not count towards the memory limit. Memory of two
 * outputs must not overlap. An input and an output may have the same memory: then an op that can updates it
 * in place, such as DYNAMIC_UPDATE_SLICE of a KV cache; a run fails if an op reads the input when the output
 * is written, or later. */
FUSEBOX_API fusebox_status fusebox_session_bind_input(fusebox_session* session, int32_t index, void* memory,
                                                      size_t bytes, char** error) FBX_NOEXCEPT;
FUSEBOX_API fusebox_status fusebox_session_bind_output(fusebox_session* session, int32_t index, void* memory,
                                                       size_t bytes, char** error) FBX_NOEXCEPT;
/* An output. Before the first run: name, declared type and dims, data NULL; after prepare, with the dims that
 * follow from the dims of the inputs. After a run: the value, valid until the next run, select or free, or
 * until prepare finds other dims. */
FUSEBOX_API fusebox_status fusebox_session_output(fusebox_session* session, int32_t index,
                                                  fusebox_tensor* out, char** error) FBX_NOEXCEPT;
/* Element `index` of a string tensor, in row-major order. The text does not end in NUL. It lives as long as
 * tensor->data. */
FUSEBOX_API fusebox_status fusebox_tensor_string(const fusebox_tensor* tensor, size_t index,
                                                 const char** text, size_t* length,
                                                 char** error) FBX_NOEXCEPT;

/* ---- Runs. */

/* Plans if needed, then runs. Inputs keep their values. After a failure, outputs are undefined. */
FUSEBOX_API fusebox_status fusebox_session_run(fusebox_session* session, char** error) FBX_NOEXCEPT;
/* Ends the run or prepare in progress, or the next one if there is none, with FUSEBOX_CANCELLED, at its next
 * step: a node, a partition of a delegate, an iteration of a loop, a chunk of a parallel loop. Outputs and
 * state are then undefined until reset_state. Any thread; never waits. The session must not be freed
 * meanwhile. */
FUSEBOX_API fusebox_status fusebox_session_cancel(fusebox_session* session) FBX_NOEXCEPT;
/* Plans without running: checks shapes and allocates memory. */
FUSEBOX_API fusebox_status fusebox_session_prepare(fusebox_session* session, char** error) FBX_NOEXCEPT;
/* Resets variables, hash tables and the memory of stateful kernels to their initial values. */
FUSEBOX_API fusebox_status fusebox_session_reset_state(fusebox_session* session, char** error) FBX_NOEXCEPT;

/* ---- Looking inside a session. */

/* A value of the model by name as the last run left it, with "keep_values"; of a loop's body, of the last
 * iteration. Values of the signature's function are found first. Valid until a function changes the session.
 * Error: no such name, not computed, or inside a partition of a delegate. */
FUSEBOX_API fusebox_status fusebox_session_value(fusebox_session* session, const char* name,
                                                 fusebox_tensor* out, char** error) FBX_NOEXCEPT;
/* The values of the selected signature's function, by number: the tensors of its subgraph in the order of the
 * file, then values that were added when the model was read or fused. -1: session is NULL. */
FUSEBOX_API int32_t fusebox_session_value_count(const fusebox_session* session) FBX_NOEXCEPT;
/* The number of the value that an input or output is. -1: NULL, or a wrong index. */
FUSEBOX_API int32_t fusebox_session_input_value(const fusebox_session* session, int32_t index) FBX_NOEXCEPT;
FUSEBOX_API int32_t fusebox_session_output_value(const fusebox_session* session, int32_t index) FBX_NOEXCEPT;
/* A value by its number: name, declared type and dims, quantization. data: of a constant, as long as the
 * model; of another value with "keep_values", if the last run computed it, as in fusebox_session_value; else
 * NULL. */
FUSEBOX_API fusebox_status fusebox_session_value_at(fusebox_session* session, int32_t value,
                                                    fusebox_tensor* out, char** error) FBX_NOEXCEPT;
/* The time of one node, over all runs. The caller sets struct_size. */
typedef struct fusebox_node_time {
  uint32_t struct_size; /* sizeof(fusebox_node_time) */
  int32_t node;         /* index in the function; of a delegate's partition: of its first node */
  int32_t nodes;        /* of a partition; else 1 */
  const char* function;
  const char* op;     /* "CONV_2D", the name of a custom op, "PARTITION" */
  const char* name;   /* in the model; may be "" */
  const char* runner; /* what ran it: plugin id, "xnnpack (partition 0)", "host", "body" */
  uint64_t runs;
  uint64_t total_ns; /* of loops and calls, with the nodes that they run */
} fusebox_node_time;
/* Initializes a fusebox_node_time. */
#define FUSEBOX_NODE_TIME {(uint32_t)sizeof(fusebox_node_time), 0, 0, NULL, NULL, NULL, NULL, 0, 0}

/* With "profile": measures so far, for fusebox_session_time. *count: nodes that ran, by function and in the
 * order of the model. */
FUSEBOX_API fusebox_status fusebox_session_times(fusebox_session* session, int32_t* count,
                                                 char** error) FBX_NOEXCEPT;
/* A row of the last fusebox_session_times. Its text is valid until the next. */
FUSEBOX_API fusebox_status fusebox_session_time(const fusebox_session* session, int32_t index,
                                                fusebox_node_time* out, char** error) FBX_NOEXCEPT;
/* All times as a JSON array of objects with the members of fusebox_node_time, and the spans that plugins
 * measured inside of a node: "spans": [{"name", "worker", "count", "total_ns", "bytes", "flops"}]. */
FUSEBOX_API fusebox_status fusebox_session_times_json(const fusebox_session* session, char** json,
                                                      char** error) FBX_NOEXCEPT;
/* {"signature", "threads", "arena_bytes", "notices": [...], "placements": [...], "shadows": [...]};
 * placements as in fusebox_model_report, and what delegates declined in this session. shadows, with "shadow":
 * {"function", "node", "op", "plugin", "calls", "compared", "drifted", "worst", "where", "reason"} of each
 * fused op with a body; where: the first difference; reason: set if it is not compared. */
FUSEBOX_API fusebox_status fusebox_session_report(const fusebox_session* session, char** json,
                                                  char** error) FBX_NOEXCEPT;
/* The plan for the current shapes as text for people: node, op, types, kernel, memory. */
FUSEBOX_API fusebox_status fusebox_session_explain(const fusebox_session* session, char** text,
                                                   char** error) FBX_NOEXCEPT;

FBX_EXTERN_C_END

#endif
