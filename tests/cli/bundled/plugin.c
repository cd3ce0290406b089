/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that finds a library by $ORIGIN. */
#include <fusebox/abi/plugin.h>

int bundled_answer(void);

static const fbx_plugin plugin = {
    .head = FBX_HEAD(fbx_plugin), .id = {"t.bundled", 9}, .version = {"1.0.0", 5}};

static fbx_status load(const fbx_host* host, const fbx_plugin** out) {
  (void)host;
  *out = &plugin;
  return bundled_answer() == 42 ? FBX_OK : FBX_INTERNAL;
}

FBX_ENTRY(load, NULL, 0);
