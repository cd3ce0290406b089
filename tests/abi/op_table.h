/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin of op_table.c, and what its functions have counted. */
#ifndef FUSEBOX_TESTS_ABI_OP_TABLE_H_
#define FUSEBOX_TESTS_ABI_OP_TABLE_H_

#include <fusebox/abi/plugin.h>

FBX_EXTERN_C_BEGIN

enum { TABLE_OPS = 20 };

typedef struct table_count {
  int live;    /* instances, states, delegates, sessions and partitions that were not given back */
  int strange; /* calls with the user of another object */
  int invoked, delegated, reset, finished;
} table_count;

extern table_count table_counts;
extern const fbx_entry table_entry;

FBX_EXTERN_C_END

#endif /* FUSEBOX_TESTS_ABI_OP_TABLE_H_ */
