// SPDX-License-Identifier: Apache-2.0
#include "converter/import/keras/layer_call.h"

namespace fusebox::keras {
std::span<const LayerRow> AttentionLayers() { return {}; }
}  // namespace fusebox::keras
