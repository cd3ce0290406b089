/* SPDX-License-Identifier: Apache-2.0 */
/* Checks for custom ops: each reports an error and returns from the calling function. */
#ifndef FUSEBOX_TFLITE_C_ENSURE_H_
#define FUSEBOX_TFLITE_C_ENSURE_H_

#ifdef TF_LITE_STRIP_ERROR_STRINGS
#define TF_LITE_KERNEL_LOG(context, ...) (void)sizeof(#__VA_ARGS__)
#else
#define TF_LITE_KERNEL_LOG(context, ...) (context)->ReportError((context), __VA_ARGS__)
#endif

#define TF_LITE_MAYBE_KERNEL_LOG(context, ...)                       \
  do {                                                               \
    if ((context) != NULL) TF_LITE_KERNEL_LOG(context, __VA_ARGS__); \
  } while (0)

/* Returns kTfLiteError unless `holds`; the other arguments are the message. */
#define FUSEBOX_TFLITE_ENSURE(context, holds, ...) \
  do {                                             \
    if (!(holds)) {                                \
      TF_LITE_KERNEL_LOG((context), __VA_ARGS__);  \
      return kTfLiteError;                         \
    }                                              \
  } while (0)

#define TF_LITE_ENSURE_MSG(context, value, ...) \
  FUSEBOX_TFLITE_ENSURE(context, value, __FILE__ " " __VA_ARGS__)
#define TF_LITE_ENSURE(context, a) \
  FUSEBOX_TFLITE_ENSURE(context, a, "%s:%d %s was not true.", __FILE__, __LINE__, #a)
#define TF_LITE_ENSURE_EQ(context, a, b)                                                              \
  FUSEBOX_TFLITE_ENSURE(context, (a) == (b), "%s:%d %s != %s (%d != %d)", __FILE__, __LINE__, #a, #b, \
                        (int)(a), (int)(b))
#define TF_LITE_ENSURE_TYPES_EQ(context, a, b)                                                        \
  FUSEBOX_TFLITE_ENSURE(context, (a) == (b), "%s:%d %s != %s (%s != %s)", __FILE__, __LINE__, #a, #b, \
                        TfLiteTypeGetName(a), TfLiteTypeGetName(b))
#define TF_LITE_ENSURE_NEAR(context, a, b, epsilon)                                                 \
  FUSEBOX_TFLITE_ENSURE(context, (a) - (b) <= (epsilon) && (b) - (a) <= (epsilon),                  \
                        "%s:%d %s not near %s (%f != %f)", __FILE__, __LINE__, #a, #b, (double)(a), \
                        (double)(b))

/* Returns a status that is not kTfLiteOk. */
#define TF_LITE_ENSURE_STATUS(a)                  \
  do {                                            \
    const TfLiteStatus fusebox_status_of_a = (a); \
    if (fusebox_status_of_a != kTfLiteOk) {       \
      return fusebox_status_of_a;                 \
    }                                             \
  } while (0)
#define TF_LITE_ENSURE_OK(context, status) TF_LITE_ENSURE_STATUS(status)

#endif
