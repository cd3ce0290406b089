// SPDX-License-Identifier: Apache-2.0
// Composites of decoders as litert-torch writes them, for nn_bench: with heads of 256 features, for one token
// and for a prompt.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/graph/graph.h"

namespace fusebox::bench {

struct CompositeJob {
  std::string title;  // "rotary embedding, 1 token"
  std::string name;   // of the composite
  Attrs attrs;
  std::function<void(Function&)> add_body;  // with inputs and outputs
  int64_t seen = 0;                         // keys that a bool input shows, of those in its last dimension
  bool is_custom_op = false;                // without a body in the model

  // A model that is the composite, or its body.
  std::unique_ptr<Module> Build(bool composite) const;
};

std::vector<CompositeJob> CompositeJobs();

}  // namespace fusebox::bench
