/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules that <fusebox/c.h>, <fusebox/c_convert.h> and <fusebox/c_models.h> share. C11 and C++11.
 *
 *  - A function that can fail returns a status: 0 is success. Its last parameter receives the error text:
 *    NULL after success, otherwise text that the caller frees. Pass NULL if the text is not needed. The text
 *    is also NULL if memory for it is exhausted.
 *  - All text is UTF-8 and ends in NUL. Text returned through `char**` belongs to the caller, who frees it
 *    with the function of the same library: fusebox_text_free, fusebox_convert_free or fusebox_models_free.
 *    Text returned as `const char*` is borrowed.
 *  - A NULL handle or a NULL result pointer is an error (FUSEBOX_INVALID), not a crash.
 *  - Options are JSON objects. NULL: all defaults. An unknown key or a wrong value is an error with line,
 *    column and the closest known key.
 *  - No function throws. Callbacks must not throw either.
 *  - Functions keep their meaning and structs grow at their end only, so a program built with an older header
 *    runs with a newer library. A struct that can grow begins with its size, which the caller sets.
 */
#ifndef FUSEBOX_C_BASE_H_
#define FUSEBOX_C_BASE_H_

#include <stddef.h>
#include <stdint.h>

#include "fusebox/abi/base.h"

#define FUSEBOX_API FBX_EXPORT

/* Status codes; a newer library may return others. */
typedef int32_t fusebox_status;
enum {
  FUSEBOX_OK = 0,
  FUSEBOX_INVALID = 1,       /* a malformed file, option or argument */
  FUSEBOX_UNSUPPORTED = 2,   /* well-formed, but no plugin or this build cannot do it */
  FUSEBOX_NOT_FOUND = 3,     /* a missing file, plugin, signature or name */
  FUSEBOX_IO = 4,            /* a system call failed */
  FUSEBOX_OUT_OF_MEMORY = 5, /* also: above memory_limit */
  FUSEBOX_INTERNAL = 6,      /* a bug of Fusebox or of a plugin */
  FUSEBOX_CANCELLED = 7      /* by fusebox_session_cancel, or after time_limit_ms */
};

/* Levels of log lines. */
enum { FUSEBOX_LOG_DEBUG = 0, FUSEBOX_LOG_INFO = 1, FUSEBOX_LOG_WARNING = 2, FUSEBOX_LOG_ERROR = 3 };
/* Receives one line at a time, from any thread. The texts live until it returns. It may call the library. */
typedef void (*fusebox_log_sink)(void* user, int32_t level, const char* topic, const char* text);

#endif
