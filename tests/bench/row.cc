// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/row.h"

#include <algorithm>
#include <cstdio>

namespace fusebox::bench {
namespace {

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return quoted + '"';
}

}  // namespace

void WriteRow(const Metric& metric, std::string_view runner, int round, double value) {
  const std::string about = "{\"bench\": " + Quoted(metric.bench) + ", \"job\": " + Quoted(metric.job) +
                            ", \"metric\": " + Quoted(metric.name) + ", \"unit\": " + Quoted(metric.unit) +
                            ", \"exact\": " + (metric.exact ? "true" : "false");
  std::printf("%s, \"runner\": %s, \"round\": %d, \"value\": %.17g}\n", about.c_str(), Quoted(runner).c_str(),
              round, value);
  std::fflush(stdout);
}

void WriteError(std::string_view bench, std::string_view job, std::string_view runner, std::string_view why) {
  std::printf("{\"bench\": %s, \"job\": %s, \"runner\": %s, \"error\": %s}\n", Quoted(bench).c_str(),
              Quoted(job).c_str(), Quoted(runner).c_str(), Quoted(why).c_str());
  std::fflush(stdout);
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace fusebox::bench
