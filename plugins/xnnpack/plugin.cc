// SPDX-License-Identifier: Apache-2.0
#include <fusebox/plugin.hpp>

#include "plugins/xnnpack/delegate.h"
#include "plugins/xnnpack/packing/kept_weights.h"
#include "plugins/xnnpack/report/cache_table.h"

FUSEBOX_PLUGIN("fusebox.xnnpack", "1.0.0", fusebox::xnnpack::Delegate, fusebox::xnnpack::CacheTable,
               fusebox::xnnpack::KeptWeights)
