// SPDX-License-Identifier: Apache-2.0
// The result of every import: a graph with one function per signature and all functions they reach, plus the
// signatures that were rejected and notes.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/graph/graph.h"

namespace fusebox::converter {

struct Imported {
  std::unique_ptr<Module> module;
  std::vector<std::pair<std::string, std::string>> refused;  // signature, why
  std::vector<std::string> notes;
  // The source has no signatures: the main graph has a temporary one, removed before writing.
  bool unsigned_file = false;
  bool f16_weights = false;  // the source stores weights as f16
};

}  // namespace fusebox::converter
