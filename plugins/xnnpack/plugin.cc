// SPDX-License-Identifier: Apache-2.0
#include <fusebox/plugin.hpp>

#include "plugins/xnnpack/delegate.h"

FUSEBOX_PLUGIN("fusebox.xnnpack", "1.0.0", fusebox::xnnpack::Delegate)
