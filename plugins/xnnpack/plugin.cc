// SPDX-License-Identifier: Apache-2.0
#include <fusebox/plugin.hpp>

#include "plugins/xnnpack/cache_table.h"
#include "plugins/xnnpack/delegate.h"
#include "plugins/xnnpack/kept_weights.h"

FUSEBOX_PLUGIN("fusebox.xnnpack", "1.0.0", fusebox::xnnpack::Delegate, fusebox::xnnpack::CacheTable,
               fusebox::xnnpack::KeptWeights)
