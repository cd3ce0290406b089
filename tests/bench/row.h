// SPDX-License-Identifier: Apache-2.0
// Measurements on standard output, a line of JSON each. report.py makes tables of them and compares them with
// margins.tsv, which names benchmarks, jobs, metrics and peers as they are written here.
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
// Of "ours" or of a peer. Values of one round were measured in turn, and are compared with each other.
void WriteRow(const Metric& metric, std::string_view who, int round, double value);
// Why one of them did not run the job.
void WriteError(std::string_view bench, std::string_view job, std::string_view who, std::string_view why);

double Median(std::vector<double> values);  // 0 of none

}  // namespace fusebox::bench
