/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libfusebox-models: writes test models, as SavedModels or as .tflite files.
 *
 *   fusebox_models_builder* model;
 *   int32_t f, x, y;
 *   fusebox_models_create(FUSEBOX_MODELS_SAVED_MODEL, &model, NULL);
 *   fusebox_models_add_function(model, "call", &f, NULL);
 *   fusebox_models_add_input(model, f, "x", "f32[2,3]", &x, NULL);
 *   fusebox_models_add_op(model, f, "Neg", NULL, &x, 1, NULL, &y, 1, NULL);
 *   fusebox_models_return(model, f, &y, 1, NULL);
 *   ...
 *
 * c_base.h has the rules about errors, text and NULL; text of this library is freed with fusebox_models_free.
 *
 * A model has functions, and a function has values: inputs, constants, results of ops and calls. Both are
 * numbers; numbers of values count within their function. A function is completed by fusebox_models_return,
 * and can be called afterwards. Types are text: "f32[2,3]", "f32[]" (a scalar), "f32[?,3]" (an unknown dim).
 * Names consist of letters, digits and underscores. Attributes are JSON objects, or NULL: numbers, true,
 * false, text, lists of these; {"type": "f32"} is a data type.
 *
 * Threads: a builder is used by one thread at a time; builders may be used at the same time.
 */
#ifndef FUSEBOX_C_MODELS_H_
#define FUSEBOX_C_MODELS_H_

#include "fusebox/c_base.h"

FBX_EXTERN_C_BEGIN

/* The version of this header. Functions of a higher minor are missing in an older library. */
#define FUSEBOX_C_MODELS_MAJOR 1
#define FUSEBOX_C_MODELS_MINOR 0

typedef struct fusebox_models_builder fusebox_models_builder;

enum {
  FUSEBOX_MODELS_SAVED_MODEL = 0, /* ops are TensorFlow's: "AddV2" */
  FUSEBOX_MODELS_TFLITE = 1       /* ops are builtin ops, "ADD", or under any other name custom ops */
};

/* The version of the product, "0.1.0". Static. */
FUSEBOX_API const char* fusebox_models_version(void) FBX_NOEXCEPT;
/* The version of the functions in the library: major * 65536 + minor. */
FUSEBOX_API uint32_t fusebox_models_c_version(void) FBX_NOEXCEPT;
/* NULL: nothing. */
FUSEBOX_API void fusebox_models_free(void* memory) FBX_NOEXCEPT;

FUSEBOX_API fusebox_status fusebox_models_create(int32_t format, fusebox_models_builder** out,
                                                 char** error) FBX_NOEXCEPT;
/* NULL: nothing. */
FUSEBOX_API void fusebox_models_destroy(fusebox_models_builder* model) FBX_NOEXCEPT;

FUSEBOX_API fusebox_status fusebox_models_add_function(fusebox_models_builder* model, const char* name,
                                                       int32_t* function, char** error) FBX_NOEXCEPT;
/* The function is the body of the composite `name`: a call of it is that composite, which rules implement. */
FUSEBOX_API fusebox_status fusebox_models_implements(fusebox_models_builder* model, int32_t function,
                                                     const char* name, const char* attributes,
                                                     char** error) FBX_NOEXCEPT;
FUSEBOX_API fusebox_status fusebox_models_add_input(fusebox_models_builder* model, int32_t function,
                                                    const char* name, const char* type, int32_t* value,
                                                    char** error) FBX_NOEXCEPT;
/* `data`: the elements, row-major, as many bytes as the type needs; copied. */
FUSEBOX_API fusebox_status fusebox_models_add_constant(fusebox_models_builder* model, int32_t function,
                                                       const char* type, const void* data, size_t bytes,
                                                       int32_t* value, char** error) FBX_NOEXCEPT;
/* A variable of a SavedModel, and its value in a function. */
FUSEBOX_API fusebox_status fusebox_models_add_variable(fusebox_models_builder* model, const char* name,
                                                       const char* type, const void* data, size_t bytes,
                                                       int32_t* variable, char** error) FBX_NOEXCEPT;
FUSEBOX_API fusebox_status fusebox_models_read_variable(fusebox_models_builder* model, int32_t function,
                                                        int32_t variable, int32_t* value,
                                                        char** error) FBX_NOEXCEPT;
/* A node. `types`: one per result, or NULL: they are inferred; custom ops of a .tflite need them. `results`
 * receives result_count values. */
FUSEBOX_API fusebox_status fusebox_models_add_op(fusebox_models_builder* model, int32_t function,
                                                 const char* op, const char* attributes,
                                                 const int32_t* inputs, size_t input_count,
                                                 const char* const* types, int32_t* results,
                                                 size_t result_count, char** error) FBX_NOEXCEPT;
/* Calls a complete function. In a .tflite, it must implement a composite. `results` receives as many values
 * as the function returns, which must be result_count. */
FUSEBOX_API fusebox_status fusebox_models_call(fusebox_models_builder* model, int32_t function,
                                               int32_t callee, const int32_t* inputs, size_t input_count,
                                               int32_t* results, size_t result_count,
                                               char** error) FBX_NOEXCEPT;
/* Completes the function: its results. */
FUSEBOX_API fusebox_status fusebox_models_return(fusebox_models_builder* model, int32_t function,
                                                 const int32_t* values, size_t count,
                                                 char** error) FBX_NOEXCEPT;
/* A signature of the model: names for the inputs and the results of a complete function, in their order.
 * TensorFlow sorts the outputs of a signature by name. */
FUSEBOX_API fusebox_status fusebox_models_add_signature(fusebox_models_builder* model, const char* key,
                                                        int32_t function, const char* const* inputs,
                                                        size_t input_count, const char* const* outputs,
                                                        size_t output_count, char** error) FBX_NOEXCEPT;
/* Writes the folder of the SavedModel, or the .tflite file. Nothing can be added afterwards. */
FUSEBOX_API fusebox_status fusebox_models_write(fusebox_models_builder* model, const char* path,
                                                char** error) FBX_NOEXCEPT;

FBX_EXTERN_C_END

#endif
