// SPDX-License-Identifier: Apache-2.0
#include <fusebox/plugin.hpp>

#include "plugins/embedding/lookup_rule.h"

FUSEBOX_PLUGIN("fusebox.embedding", "1.0.0", fusebox::embedding::LookupRule)
