// SPDX-License-Identifier: Apache-2.0
// What every import gives: the graph with one function per signature and what they reach, and what became of
// the rest.
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
  // the source knows no signatures: one stands for its main graph until it is written
  bool unsigned_file = false;
  bool halves = false;  // the source stores weights as f16
};

}  // namespace fusebox::converter
