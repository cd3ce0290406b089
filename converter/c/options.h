// SPDX-License-Identifier: Apache-2.0
// JSON options of a conversion, checked by sdk/schema/convert-options-1.json.
#pragma once

#include "converter/words.h"

namespace fusebox::c {

struct ConvertOptions {
  converter::Options options;
  bool require_full_fusion = false;
};
// Plugins of the program: the text of a configuration, or null, and those that are linked into it.
struct OwnPlugins {
  const char* config = nullptr;
  std::span<const fbx_static_plugin* const> linked = {};
  uint64_t number = 0;  // of fusebox_convert_source
};
// Null: all defaults. Opens the plugins. Errors: "conversion options:1:2: unknown key \"bach\"; did you mean
// \"batch\"?"
Result<ConvertOptions> ParseConvertOptions(const char* json, const OwnPlugins& = {});

}  // namespace fusebox::c
