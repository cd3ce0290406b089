// SPDX-License-Identifier: Apache-2.0
// Times of each node of a model: tables in the form of TFLite's benchmark_model with added columns, and JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/base/opened.h"
#include "cli/bench/peak.h"
#include "cli/bench/turns.h"

namespace fusebox::cli {

struct ProfileRow {
  std::string type, name, runner;
  std::string function;  // of the model; of a span: empty
  size_t node = 0;       // as in NodeTime
  size_t nodes = 1;      // as in NodeTime
  bool inside = false;   // of the row above that is not inside: a node of a called function, or a span
  bool span = false;     // measured by the kernel or delegate of the row above that is no span
  double first = 0;      // ms of one run of the model
  double average = 0;    // ms of one run of the model
  double calls = 0;      // per run
  double bytes = 0;      // per call; 0: unknown
  double flops = 0;      // per call; 0: unknown
  double estimate = 0;   // ms per call, by the plugin (fusebox.cost/1); 0: none
  double of_peak = 0;    // the least time that the machine permits, to the time taken; 0: unknown
};

struct ModelProfile {
  std::vector<ProfileRow> rows;  // in the order of the model
  double total = 0;              // ms: the sum of the rows that are not inside
  double run = 0;                // ms: the mean of the profiled runs
  size_t runs = 0;
  Peak peak;  // of the threads together
};

// Runs a new session of the model of `opened` with these inputs.
Result<ModelProfile> ProfileModel(const Opened& opened, const SessionOptions& options,
                                  std::vector<Tensor> inputs, const Limits& limits);

std::string ToText(const ModelProfile&);
nlohmann::ordered_json ToJson(const ModelProfile&);

}  // namespace fusebox::cli
