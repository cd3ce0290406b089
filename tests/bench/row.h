// SPDX-License-Identifier: Apache-2.0
// Measurements on standard output, one JSON object per line. report.py makes tables of them and compares them
// with margins.tsv, which uses the same names of benchmarks, jobs, metrics and peers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fusebox::bench {

inline constexpr char kOurs[] = "ours";

struct Metric {
  std::string bench, job, name, unit;
  bool exact = false;  // a count, the same in every run
};
// `runner`: "ours" or a peer. Values of one round were measured alternately and are compared.
void WriteRow(const Metric& metric, std::string_view runner, int round, double value);
// Why one of them did not run the job.
void WriteError(std::string_view bench, std::string_view job, std::string_view runner, std::string_view why);

double Median(std::vector<double> values);  // 0 if empty

}  // namespace fusebox::bench
