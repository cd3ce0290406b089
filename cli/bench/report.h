// SPDX-License-Identifier: Apache-2.0
// Results of `fusebox bench` and their forms: the lines of TFLite's benchmark_model, CSV, JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/statistics.h"
#include "cli/bench/turns.h"

namespace fusebox::cli {

// A model with its delegates. Times are in us.
struct Contestant {
  std::string model, delegates;  // the path, "xnnpack" or "none"
  std::string signature;
  int threads = 1;
  size_t file_bytes = 0;
  double init = 0;  // plugins, model, session and plan
  Summary warmup, runs;
  std::optional<Summary> cold_init, cold_first;  // of child processes
  std::vector<double> ratios;                    // to the first contestant, by process
  std::optional<Ratio> ratio;                    // estimated from these

  std::string Name() const { return model + ", " + delegates; }
};

// Bytes of the process.
struct Memory {
  size_t start = 0;
  size_t init = 0;
  size_t peak = 0;
  size_t cache = 0;
};

// Returns "slower" or "faster" where the interval permits it, or why nothing can be told.
std::string Verdict(const Ratio&);

// The lines of a single contestant: before the runs, of its warm-up or runs, and the summary.
std::string Head(const Contestant&);
std::string RunLines(const Limits&, const Summary&);
std::string ToText(const Contestant&, const Memory&);
// The table of several contestants.
std::string ToTable(const std::vector<Contestant>&, const Memory&);
std::string ToCsv(const std::vector<Contestant>&, const Memory&);
nlohmann::ordered_json ToJson(const Contestant&);
nlohmann::ordered_json ToJson(const Memory&);

}  // namespace fusebox::cli
