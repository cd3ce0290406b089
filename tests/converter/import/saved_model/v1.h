// SPDX-License-Identifier: Apache-2.0
// Converts graphs of TensorFlow 1 and runs the result on the host.
#pragma once

#include <algorithm>

#include "tests/converter/import/files.h"
#include "tests/converter/passes/bench.h"
#include "tests/testing/models/v1_graph.h"

namespace fusebox::converter {

inline Result<Converted> ConvertFrozen(const tf::GraphDef& graph, const test_models::Names& inputs,
                                       const test_models::Names& outputs) {
  const std::string path = testing::FreshDir() + "/frozen.pb";
  FUSEBOX_TRY(test_models::WriteFrozenGraph(path, graph));
  Conversion conversion = FromFrozenGraph(path);
  conversion.options.registry = BuiltIn();
  conversion.options.inputs = inputs;
  conversion.options.outputs = outputs;
  return conversion.Convert();
}

// Outputs in the order of names.
inline Result<std::vector<Tensor>> Compute(const Converted& converted, const std::vector<Tensor>& inputs) {
  FUSEBOX_ASSIGN(const auto program, run::Program::Create(*converted.module, BuiltIn()));
  FUSEBOX_ASSIGN(const auto runner, run::Runner::Create(*program, 1));
  return runner->Run(converted.module->signatures[0].function, inputs);
}

inline int Count(const Converted& converted, Op op) {
  int count = 0;
  for (const auto& f : converted.module->functions)
    count += static_cast<int>(std::ranges::count_if(f->nodes, [&](const auto& n) { return n->is(op); }));
  return count;
}

}  // namespace fusebox::converter
