/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libfusebox: a .tflite file as it is stored, before fusion and delegates: its signatures, tensors and ops.
 * Several models of one file, with different options, share its constants.
 *
 *   fusebox_file* file;
 *   fusebox_file_open("model.tflite", &file, NULL);
 *   fusebox_file_model(file, "{\"delegates\": []}", NULL, &model, NULL);
 *
 * A file is immutable; any thread may use it. All that it returns lives as long as the file. Models keep what
 * they need of it. c_base.h has the rules about errors, text and NULL.
 */
#ifndef FUSEBOX_C_FILE_H_
#define FUSEBOX_C_FILE_H_

#include "fusebox/c.h"

FBX_EXTERN_C_BEGIN

typedef struct fusebox_file fusebox_file;

/* Reads and checks a file. */
FUSEBOX_API fusebox_status fusebox_file_open(const char* path, fusebox_file** out, char** error) FBX_NOEXCEPT;
/* Same, for bytes in memory: as fusebox_model_from_memory. */
FUSEBOX_API fusebox_status fusebox_file_from_memory(const void* bytes, size_t size,
                                                    void (*release)(void* user), void* user,
                                                    fusebox_file** out, char** error) FBX_NOEXCEPT;
FUSEBOX_API void fusebox_file_free(fusebox_file* file) FBX_NOEXCEPT;
/* Opens the file: as fusebox_model_open. */
FUSEBOX_API fusebox_status fusebox_file_model(const fusebox_file* file, const char* options,
                                              fusebox_registry* registry, fusebox_model** out,
                                              char** error) FBX_NOEXCEPT;

/* Signatures of the file. -1: NULL. */
FUSEBOX_API int32_t fusebox_file_signature_count(const fusebox_file* file) FBX_NOEXCEPT;
/* NULL: a wrong index. */
FUSEBOX_API const char* fusebox_file_signature(const fusebox_file* file, int32_t index) FBX_NOEXCEPT;

/* A function of the file. The caller sets struct_size. */
typedef struct fusebox_function {
  uint32_t struct_size; /* sizeof(fusebox_function) */
  int32_t tensor_count;
  const char* name;
  const char* signature; /* its key; "": none */
  const int32_t* inputs; /* numbers of tensors */
  const int32_t* outputs;
  int32_t input_count;
  int32_t output_count;
  const char* const* input_names; /* in the signature; NULL: none */
  const char* const* output_names;
} fusebox_function;
/* Initializes a fusebox_function. */
#define FUSEBOX_FUNCTION {(uint32_t)sizeof(fusebox_function), 0, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL}

/* The function that a session with this key runs; "": the only one, or the main function. */
FUSEBOX_API fusebox_status fusebox_file_function(const fusebox_file* file, const char* key,
                                                 fusebox_function* out, char** error) FBX_NOEXCEPT;
/* A tensor of this function, by its number in the file: name, declared type and dims (-1: any),
 * quantization; of a constant, the data. `flags`: FBX_TENSOR_CONST or FBX_TENSOR_VARIABLE, or 0; may be NULL.
 */
FUSEBOX_API fusebox_status fusebox_file_tensor(const fusebox_file* file, const char* key, int32_t number,
                                               fusebox_tensor* out, uint32_t* flags,
                                               char** error) FBX_NOEXCEPT;

/* An op that nodes of the file use. The caller sets struct_size. */
typedef struct fusebox_opcode {
  uint32_t struct_size; /* sizeof(fusebox_opcode) */
  int32_t builtin_code; /* 32: a custom op */
  int32_t version;
  const char* name; /* "CONV_2D", or the custom code */
} fusebox_opcode;
/* Initializes a fusebox_opcode. */
#define FUSEBOX_OPCODE {(uint32_t)sizeof(fusebox_opcode), 0, 0, NULL}

/* Each op and version once. -1: NULL. */
FUSEBOX_API int32_t fusebox_file_op_count(const fusebox_file* file) FBX_NOEXCEPT;
FUSEBOX_API fusebox_status fusebox_file_op(const fusebox_file* file, int32_t index, fusebox_opcode* out,
                                           char** error) FBX_NOEXCEPT;
/* The metadata of this name. Error: none. */
FUSEBOX_API fusebox_status fusebox_file_metadata(const fusebox_file* file, const char* name,
                                                 const void** data, size_t* bytes, char** error) FBX_NOEXCEPT;

FBX_EXTERN_C_END

#endif
