// SPDX-License-Identifier: Apache-2.0
#include <fusebox/plugin.hpp>

#include "plugins/nn/attention/attention.h"
#include "plugins/nn/cache/update_rows.h"
#include "plugins/nn/norms/group_norm.h"
#include "plugins/nn/norms/l2_norm.h"
#include "plugins/nn/norms/rms_norm.h"
#include "plugins/nn/ops/one_op.h"
#include "plugins/nn/rope/rope.h"

using namespace fusebox::nn;

FUSEBOX_PLUGIN("fusebox.nn", "1.0.0", RmsNormRule, L2NormRule, GroupNormRule, LayerNormRule, RmsNorm, L2Norm,
               GroupNorm, AttentionRule, TransposedAttentionRule, Attention, RopeRule, Rope, OneOpRule,
               ExternalCacheRule, UpdateRows)
