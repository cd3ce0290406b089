/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Custom ops and delegates of TensorFlow Lite: TfLiteContext, TfLiteNode, TfLiteRegistration, TfLiteDelegate.
 * All members and their order equal TensorFlow Lite's. Structs have grown at the end; members that 2.9
 * lacks are marked, and the library reads them only where noted.
 */
#ifndef FUSEBOX_TFLITE_C_COMMON_H_
#define FUSEBOX_TFLITE_C_COMMON_H_

#include <stdarg.h>

#include "fusebox/tflite/c/ensure.h"
#include "fusebox/tflite/c/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct TfLiteContext;
struct TfLiteDelegate;
struct TfLiteRegistration;
struct TfLiteOpaqueDelegateBuilder;

/* Data that ops of one kind share in an interpreter. */
typedef enum TfLiteExternalContextType {
  kTfLiteEigenContext = 0,
  kTfLiteGemmLowpContext = 1,
  kTfLiteEdgeTpuContext = 2,
  kTfLiteCpuBackendContext = 3,
  kTfLiteMaxExternalContexts = 4
} TfLiteExternalContextType;

typedef struct TfLiteExternalContext {
  TfLiteExternalContextType type;
  TfLiteStatus (*Refresh)(struct TfLiteContext* context); /* after the number of threads has changed */
} TfLiteExternalContext;

/* The tensor index of an operand that a node leaves out. */
#define kTfLiteOptionalTensor (-1)

/* ---- The context of an op or a delegate. */

/* Tensors are indices into context->tensors. */
typedef struct TfLiteNode {
  TfLiteIntArray* inputs;
  TfLiteIntArray* outputs;
  TfLiteIntArray* intermediates;
  TfLiteIntArray* temporaries; /* of the op, added in prepare */
  void* user_data;             /* what init returned */
  void* builtin_data;          /* of a builtin op or a delegate's kernel (TfLiteDelegateParams) */
  const void* custom_initial_data;
  int custom_initial_data_size;
  struct TfLiteDelegate* delegate;
  bool might_have_side_effect; /* not in 2.9 */
} TfLiteNode;

/* The nodes that a delegate's kernel replaces: builtin_data of its node and the buffer of its init. */
typedef struct TfLiteDelegateParams {
  struct TfLiteDelegate* delegate;
  TfLiteIntArray* nodes_to_replace;
  TfLiteIntArray* input_tensors;
  TfLiteIntArray* output_tensors;
} TfLiteDelegateParams;

typedef struct TfLiteOpaqueDelegateParams {
  TfLiteOpaqueDelegate* delegate;
  void* delegate_data;
  TfLiteIntArray* nodes_to_replace;
  TfLiteIntArray* input_tensors;
  TfLiteIntArray* output_tensors;
} TfLiteOpaqueDelegateParams;

/* Functions for delegates only fail in an op, and those for one stage in others. */
typedef struct TfLiteContext {
  size_t tensors_size;
  /* For delegates: indices of nodes in running order. The array is the context's, until the next call. */
  TfLiteStatus (*GetExecutionPlan)(struct TfLiteContext* context, TfLiteIntArray** execution_plan);
  TfLiteTensor* tensors; /* moves when tensors are added */
  void* impl_;
  /* Takes ownership of new_size. */
  TfLiteStatus (*ResizeTensor)(struct TfLiteContext*, struct TfLiteTensor* tensor, TfLiteIntArray* new_size);
  void (*ReportError)(struct TfLiteContext*, const char* msg, ...);
  TfLiteStatus (*AddTensors)(struct TfLiteContext*, int tensors_to_add, int* first_new_tensor_index);
  TfLiteStatus (*GetNodeAndRegistration)(struct TfLiteContext*, int node_index, TfLiteNode** node,
                                         struct TfLiteRegistration** registration);
  TfLiteStatus (*ReplaceNodeSubsetsWithDelegateKernels)(struct TfLiteContext*,
                                                        struct TfLiteRegistration registration,
                                                        const TfLiteIntArray* nodes_to_replace,
                                                        struct TfLiteDelegate* delegate);
  int recommended_num_threads;
  TfLiteExternalContext* (*GetExternalContext)(struct TfLiteContext*, TfLiteExternalContextType);
  void (*SetExternalContext)(struct TfLiteContext*, TfLiteExternalContextType, TfLiteExternalContext*);
  bool allow_fp32_relax_to_fp16;
  void* profiler;
  void* (*AllocatePersistentBuffer)(struct TfLiteContext* ctx, size_t bytes);
  TfLiteStatus (*AllocateBufferForEval)(struct TfLiteContext* ctx, size_t bytes, void** ptr);
  TfLiteStatus (*RequestScratchBufferInArena)(struct TfLiteContext* ctx, size_t bytes, int* buffer_idx);
  void* (*GetScratchBuffer)(struct TfLiteContext* ctx, int buffer_idx);
  TfLiteStatus (*ResizeTensorExplicit)(struct TfLiteContext* ctx, struct TfLiteTensor* tensor, int dims,
                                       const int* shape);
  TfLiteStatus (*PreviewDelegatePartitioning)(struct TfLiteContext* context,
                                              const TfLiteIntArray* nodes_to_replace,
                                              TfLiteDelegateParams** partition_params_array,
                                              int* num_partitions);
  TfLiteTensor* (*GetTensor)(const struct TfLiteContext* context, int tensor_idx);
  TfLiteEvalTensor* (*GetEvalTensor)(const struct TfLiteContext* context, int tensor_idx);
  TfLiteStatus (*GetModelMetadata)(const struct TfLiteContext* context, const char* name, const char** ptr,
                                   size_t* bytes);
  /* Newer than 2.9. */
  TfLiteStatus (*AcquireSubgraphContext)(struct TfLiteContext* context, int subgraph_index,
                                         struct TfLiteContext** acquired_context);
  TfLiteStatus (*ReleaseSubgraphContext)(struct TfLiteContext* context, int subgraph_index);
} TfLiteContext;

/* ---- Ops. */

/* Bits of inplace_operator: results that may share memory with operands. */
typedef enum {
  kTfLiteInplaceOpNone = 0,
  kTfLiteInplaceOpDataUnmodified = 1,
  kTfLiteInplaceInputCanBeSharedWithCorrespondingOutput = 2,
  kTfLiteInplaceOpInput0Shared = 4,
  kTfLiteInplaceOpInput1Shared = 8,
  kTfLiteInplaceOpInput2Shared = 16
} TfLiteInPlaceOp;

/* The functions of an op. `init`: once per node; buffer: the custom options of the file. `prepare`: when
 * shapes of inputs are known or have changed; sets the shapes of outputs by ResizeTensor. */
#define FUSEBOX_TFLITE_REGISTRATION_V1                                                   \
  void* (*init)(TfLiteContext * context, const char* buffer, size_t length);             \
  void (*free)(TfLiteContext * context, void* buffer);                                   \
  TfLiteStatus (*prepare)(TfLiteContext * context, TfLiteNode * node);                   \
  TfLiteStatus (*invoke)(TfLiteContext * context, TfLiteNode * node);                    \
  const char* (*profiling_string)(const TfLiteContext* context, const TfLiteNode* node); \
  int32_t builtin_code;                                                                  \
  const char* custom_name;                                                               \
  int version
#define FUSEBOX_TFLITE_REGISTRATION_V2 \
  FUSEBOX_TFLITE_REGISTRATION_V1;      \
  TfLiteOperator* registration_external
#define FUSEBOX_TFLITE_REGISTRATION_V3 \
  FUSEBOX_TFLITE_REGISTRATION_V2;      \
  struct TfLiteAsyncKernel* (*async_kernel)(TfLiteContext * context, TfLiteNode * node)

/* Registrations of releases up to 2.10; of 2.11; of 2.12 and 2.13. */
typedef struct TfLiteRegistration_V1 {
  FUSEBOX_TFLITE_REGISTRATION_V1;
} TfLiteRegistration_V1;
typedef struct TfLiteRegistration_V2 {
  FUSEBOX_TFLITE_REGISTRATION_V2;
} TfLiteRegistration_V2;
typedef struct TfLiteRegistration_V3 {
  FUSEBOX_TFLITE_REGISTRATION_V3;
} TfLiteRegistration_V3;
/* The library reads the members of V1 only. */
typedef struct TfLiteRegistration {
  FUSEBOX_TFLITE_REGISTRATION_V3;
  uint64_t inplace_operator;
} TfLiteRegistration;

/* The value that init returns to report a failure. */
TFL_CAPI_EXPORT void* TfLiteKernelInitFailed(void);

/* ---- Delegates. */

typedef enum TfLiteDelegateFlags {
  kTfLiteDelegateFlagsNone = 0,
  kTfLiteDelegateFlagsAllowDynamicTensors = 1,
  kTfLiteDelegateFlagsRequirePropagatedShapes = 2,
  kTfLiteDelegateFlagsPerOperatorProfiling = 4,
  kTfLiteDelegateFlagsHintFullyDelegatedToSingleDelegate = 8
} TfLiteDelegateFlags;

struct TfLiteDelegate {
  void* data_;
  /* Called when the delegate is applied: reads the graph and calls ReplaceNodeSubsetsWithDelegateKernels. */
  TfLiteStatus (*Prepare)(TfLiteContext* context, struct TfLiteDelegate* delegate);
  TfLiteStatus (*CopyFromBufferHandle)(TfLiteContext* context, struct TfLiteDelegate* delegate,
                                       TfLiteBufferHandle buffer_handle, TfLiteTensor* tensor);
  TfLiteStatus (*CopyToBufferHandle)(TfLiteContext* context, struct TfLiteDelegate* delegate,
                                     TfLiteBufferHandle buffer_handle, TfLiteTensor* tensor);
  void (*FreeBufferHandle)(TfLiteContext* context, struct TfLiteDelegate* delegate,
                           TfLiteBufferHandle* handle);
  int64_t flags; /* TfLiteDelegateFlags */
  /* Newer than 2.9: read only if Prepare is NULL. */
  struct TfLiteOpaqueDelegateBuilder* opaque_delegate_builder;
};

/* All members NULL, 0 or none. */
TFL_CAPI_EXPORT TfLiteDelegate TfLiteDelegateCreate(void);

/* The same as TfLiteDelegate, over opaque types. */
typedef struct TfLiteOpaqueDelegateBuilder {
  void* data;
  TfLiteStatus (*Prepare)(TfLiteOpaqueContext* context, TfLiteOpaqueDelegate* delegate, void* data);
  TfLiteStatus (*CopyFromBufferHandle)(TfLiteOpaqueContext* context, TfLiteOpaqueDelegate* delegate,
                                       void* data, TfLiteBufferHandle buffer_handle,
                                       TfLiteOpaqueTensor* tensor);
  TfLiteStatus (*CopyToBufferHandle)(TfLiteOpaqueContext* context, TfLiteOpaqueDelegate* delegate, void* data,
                                     TfLiteBufferHandle buffer_handle, TfLiteOpaqueTensor* tensor);
  void (*FreeBufferHandle)(TfLiteOpaqueContext* context, TfLiteOpaqueDelegate* delegate, void* data,
                           TfLiteBufferHandle* handle);
  int64_t flags;
} TfLiteOpaqueDelegateBuilder;

/* Copies the builder. Freed by TfLiteOpaqueDelegateDelete. */
TFL_CAPI_EXPORT TfLiteOpaqueDelegate* TfLiteOpaqueDelegateCreate(const TfLiteOpaqueDelegateBuilder* builder);
TFL_CAPI_EXPORT void TfLiteOpaqueDelegateDelete(TfLiteOpaqueDelegate* delegate);
TFL_CAPI_EXPORT void* TfLiteOpaqueDelegateGetData(const TfLiteOpaqueDelegate* delegate);

#ifdef __cplusplus
}
#endif

#endif
