/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libfusebox-convert: a TensorFlow SavedModel, a Keras file or a .tflite file in, a .tflite file out.
 *
 *   char *report, *error;
 *   if (fusebox_convert("saved_model", "model.tflite", "{\"batch\": 1}", NULL, NULL, &report, &error)) puts(error);
 *
 * c_base.h has the rules about errors, text, NULL and options. Nothing of <fusebox/c.h> is needed, and no
 * handle passes between the two libraries: use a path or bytes. Text and bytes that a function returns are
 * freed with fusebox_convert_free.
 *
 * Threads: every function may be called from any thread; conversions may run at the same time.
 */
#ifndef FUSEBOX_C_CONVERT_H_
#define FUSEBOX_C_CONVERT_H_

#include "fusebox/c_base.h"

FBX_EXTERN_C_BEGIN

struct fbx_static_plugin; /* abi/plugin.h */

/* The version of this header. Functions of a higher minor are missing in an older library. */
#define FUSEBOX_C_CONVERT_MAJOR 1
#define FUSEBOX_C_CONVERT_MINOR 0

/* The version of the product, "0.1.0". Static. */
FUSEBOX_API const char* fusebox_convert_version(void) FBX_NOEXCEPT;
/* The version of the functions in the library: major * 65536 + minor. */
FUSEBOX_API uint32_t fusebox_convert_c_version(void) FBX_NOEXCEPT;
/* NULL: nothing. */
FUSEBOX_API void fusebox_convert_free(void* memory) FBX_NOEXCEPT;

/* As fusebox_set_log_sink, for the lines of this library. */
FUSEBOX_API fusebox_status fusebox_convert_set_log_sink(fusebox_log_sink sink, void* user,
                                                        char** error) FBX_NOEXCEPT;

/* Called before each pass, in the thread of the conversion. `total` may grow. `pass` lives until it returns.
 */
typedef void (*fusebox_convert_progress)(void* user, const char* pass, uint64_t done, uint64_t total);

/* Converts `source`, the path of a SavedModel's folder, of a whole Keras model (.h5, .hdf5, .keras) or of a
 * .tflite file, and writes the file `destination`: all of it, or nothing. `options`: JSON, or NULL. Its keys
 * are the flags of `fusebox convert`:
 *   "signature": [KEY, ...]                  to convert; absent: all that can be converted
 *   "batch": N                               for every unknown first dimension of an input
 *   "shape": {NAME: [1, 28, 28]}             of inputs
 *   "plugin": [PATH, ...], "config": PATH    as for `fusebox convert`
 *   "composites": fuse | keep | inline       (fuse)
 *   "keep_bodies": none | custom | all       (custom)
 *   "verify": off | sample | strict          (sample)
 *   "verify_seed": N                         (1)
 *   "placeholders": fuse | error             bodies that nothing can be verified against (fuse)
 *   "quantize": none | float16 | dynamic | int8 | int16x8   (none)
 *   "calibration": PATH                      folder of .npy files, for int8 and int16x8
 *   "per_channel_fc": bool                   with these: a scale per row of FULLY_CONNECTED's weights (false)
 *   "input_type", "output_type": float32; with int8 also int8 | uint8, with int16x8 also int16   of f32
 *                                            inputs and outputs (float32)
 *   "require_full_fusion": bool              a composite that is not fused is an error (false)
 * `report`, if not NULL, receives what `fusebox convert --report` writes, also after a failure (NULL if the
 * arguments are wrong): signatures, fusion sites with the reason of each refusal and the nodes that were
 * replaced, variables, ops before and after, notes. A fusion that verification refused is no error: the
 * composite keeps its body, and "verification_failed" is true. */
FUSEBOX_API fusebox_status fusebox_convert(const char* source, const char* destination, const char* options,
                                           fusebox_convert_progress progress, void* user, char** report,
                                           char** error) FBX_NOEXCEPT;
/* Same, into memory: the .tflite file in *bytes, aligned for fusebox_model_from_memory. */
FUSEBOX_API fusebox_status fusebox_convert_to_memory(const char* source, const char* options,
                                                     fusebox_convert_progress progress, void* user,
                                                     void** bytes, size_t* size, char** report,
                                                     char** error) FBX_NOEXCEPT;

/* A .tflite file in memory, and the plugins of the program. The caller sets struct_size. */
typedef struct fusebox_convert_source {
  uint32_t struct_size; /* sizeof(fusebox_convert_source) */
  uint32_t plugin_count;
  const void* bytes; /* unchanged until the conversion ends */
  size_t size;
  const char* name; /* in messages and in the report; NULL: "<memory>" */
  /* The text of a fusebox.json, whose keys replace keys of the file of the option "config". NULL: none. */
  const char* config;
  const struct fbx_static_plugin* const* plugins; /* linked into the program; NULL: none */
  /* The conversion ends with FUSEBOX_CANCELLED soon after another thread sets this byte, atomically, to 1.
   * NULL: never. */
  const uint8_t* cancel;
  /* Calls with the same number, if it is not 0, share the plugins that the first of them found. The caller
   * takes another number for other plugins and another configuration. */
  uint64_t registry;
  /* The conversion ends with FUSEBOX_CANCELLED soon after this time. 0: no limit. */
  int64_t time_limit_ms;
} fusebox_convert_source;
/* Initializes a fusebox_convert_source. */
#define FUSEBOX_CONVERT_SOURCE {(uint32_t)sizeof(fusebox_convert_source), 0, NULL, 0, NULL, NULL, NULL, NULL, 0, 0}
/* Same, from memory into memory. libfusebox calls it for models that are opened with "import": "auto". */
FUSEBOX_API fusebox_status fusebox_convert_bytes(const fusebox_convert_source* source, const char* options,
                                                 fusebox_convert_progress progress, void* user, void** bytes,
                                                 size_t* size, char** report, char** error) FBX_NOEXCEPT;

FBX_EXTERN_C_END

#endif
