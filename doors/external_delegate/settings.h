// SPDX-License-Identifier: Apache-2.0
// The options of the delegate, as its user passes them.
#pragma once

#include <fusebox/model.hpp>

#include <set>
#include <string>

namespace fusebox::external_delegate {

struct Settings {
  std::optional<Registry> registry = {};  // nothing: the one with the default search path
  std::string delegate_options = {};      // JSON, as ModelOptions has them
  std::set<std::string> claim = {};       // ops, by name; empty: those that `all` selects
  bool all = false;                       // everything that Fusebox runs; false: custom ops and recurrent ops
  int threads = 0;                        // 0: as many as the runtime recommends
  bool explain = false;                   // print to stderr which nodes are claimed, and why others are not

  ModelOptions model_options() const {
    return {.registry = registry ? &*registry : nullptr,
            .delegate_options = delegate_options,
            .name = "partition",
            .missing = "body"};
  }
};

// Throws std::runtime_error for an unknown option, a wrong value, or a configuration that is not valid.
Settings ReadSettings(char** keys, char** values, size_t count);

}  // namespace fusebox::external_delegate
