// SPDX-License-Identifier: Apache-2.0
// Runs a .tflite file with plugins and prints what runs each op and how long it takes. Uses the installed
// library only.
#include <fusebox/session.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

using fusebox::Code, fusebox::Error, fusebox::Model, fusebox::NodeTime, fusebox::Result, fusebox::Session,
    fusebox::Status;

constexpr const char* kUsage =
    "usage: host_app MODEL [--plugin DIR] [--input NAME=FILE]... [--seed N] [--threads N] [--runs N] "
    "[--json]\n"
    "FILE holds the bytes of a tensor. Other inputs: random f32 in [-1, 1), zeros of other types.";

struct Arguments {
  std::string model, plugin;
  std::map<std::string, std::string> inputs;  // file by name
  int seed = 1;
  int threads = 1;
  int runs = 1;
  bool json = false;
};

Result<Arguments> Parse(std::vector<std::string> words) {
  Arguments out;
  out.json = std::erase(words, "--json") > 0;
  if (words.size() % 2 == 0 || words[0] == "--help") return Error{Code::kInvalid, kUsage};
  out.model = words[0];
  for (size_t i = 1; i < words.size(); i += 2) {
    const std::string& flag = words[i];
    const std::string& value = words[i + 1];
    int* const number = flag == "--seed"      ? &out.seed
                        : flag == "--threads" ? &out.threads
                        : flag == "--runs"    ? &out.runs
                                              : nullptr;
    if (flag == "--plugin") out.plugin = std::filesystem::absolute(value);
    else if (const size_t equals = value.find('='); flag == "--input" && equals != value.npos)
      out.inputs[value.substr(0, equals)] = value.substr(equals + 1);
    else if (number == nullptr || (*number = std::atoi(value.c_str())) < 1)
      return Error{Code::kInvalid, flag + " " + value + ": unknown, or not a number from 1\n" + kUsage};
  }
  return out;
}

Status SetInput(const Arguments& arguments, Session& session, int index) {
  const auto slot = session.Input(index);
  if (!slot) return slot.error();
  std::vector<int64_t> dims(slot->dims().begin(), slot->dims().end());
  if (std::ranges::count(dims, -1) > 0) {
    std::ranges::replace(dims, int64_t{-1}, int64_t{1});
    if (auto resized = session.Resize(index, dims); !resized) return resized;
  }
  if (const auto file = arguments.inputs.find(std::string(slot->name())); file != arguments.inputs.end()) {
    std::ifstream in(file->second, std::ios::binary);
    if (!in) return Error{Code::kNotFound, file->second + ": cannot be opened"};
    const std::vector<char> bytes(std::istreambuf_iterator<char>(in), {});
    return session.SetInput(index, std::as_bytes(std::span(bytes)));
  }
  const auto values = session.input<float>(index);
  if (!values) return {};  // not f32: stays zero
  std::mt19937_64 random(static_cast<uint64_t>(arguments.seed + index));
  for (float& value : *values) value = static_cast<float>(random() >> 40) / (1 << 23) - 1;
  return {};
}

// Returns the median time of a run in microseconds.
Result<double> RunOften(Session& session, int runs) {
  std::vector<double> times(static_cast<size_t>(runs));
  for (double& time : times) {
    const auto start = std::chrono::steady_clock::now();
    if (const Status ran = session.Run(); !ran) return ran.error();
    time = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  }
  std::ranges::nth_element(times, times.begin() + runs / 2);
  return times[static_cast<size_t>(runs) / 2];
}

// Prints a row per op and runner, slowest first, with its share of the time as a bar.
Status PrintOps(Session& session) {
  const auto times = session.Times();
  if (!times) return times.error();
  struct Row {
    int nodes = 0;
    double us = 0;
  };
  std::map<std::pair<std::string, std::string>, Row> rows;
  double total = 0;
  for (const NodeTime& time : *times) {
    if (time.function != times->front().function) continue;  // counted in the loop or call that runs it
    const double us = static_cast<double>(time.total_ns) / 1e3 / static_cast<double>(time.runs);
    Row& row = rows[{time.op, time.runner}];
    row.nodes += time.nodes;
    row.us += us;
    total += us;
  }
  std::multimap<double, std::string> lines;
  for (const auto& [op, row] : rows) {
    char line[120];
    std::snprintf(line, sizeof line, "  %-30.30s %5d  %-24.24s %9.1f  %s", op.first.c_str(), row.nodes,
                  op.second.c_str(), row.us,
                  std::string(static_cast<size_t>(20 * row.us / total + 0.5), '#').c_str());
    lines.emplace(-row.us, line);
  }
  std::printf("  %-30s %5s  %-24s %9s\n", "op", "nodes", "run by", "us");
  for (const auto& [time, line] : lines) std::puts(line.c_str());
  return {};
}

Status PrintOutputs(Session& session) {
  for (int i = 0; i < session.output_count(); ++i) {
    const auto value = session.Output(i);
    if (!value) return value.error();
    std::printf("  output %s %s", std::string(value->name()).c_str(), value->type().c_str());
    if (const auto floats = value->as<float>())
      for (const float element : floats->first(std::min<size_t>(floats->size(), 5)))
        std::printf(" %.5g", element);
    std::puts("");
  }
  return {};
}

Status Main(const Arguments& arguments) {
  const std::string config = arguments.plugin.empty() ? "" : "{\"plugins\": [\"" + arguments.plugin + "\"]}";
  const auto registry = fusebox::Registry::Create({.config = config});
  if (!registry) return registry.error();
  const auto model = Model::Open(arguments.model, {.registry = &*registry});
  if (!model) return model.error();
  auto session = Session::Create(*model, {.threads = arguments.threads, .profile = true});
  if (!session) return session.error();
  for (const auto& [name, file] : arguments.inputs) {
    if (const auto found = session->FindInput(name); !found) return found.error();
  }
  for (int i = 0; i < session->input_count(); ++i) {
    if (Status set = SetInput(arguments, *session, i); !set) return set;
  }
  const auto median = RunOften(*session, arguments.runs);
  if (!median) return median.error();
  if (arguments.json) {
    std::printf("{\"model\": %s, \"session\": %s, \"median_us\": %.1f}\n", model->Report()->c_str(),
                session->Report()->c_str(), *median);
    return {};
  }
  if (Status printed = PrintOps(*session); !printed) return printed;
  if (Status printed = PrintOutputs(*session); !printed) return printed;
  std::printf("  median %.1f us of %d runs\n", *median, arguments.runs);
  return {};
}

int main(int argc, char** argv) {
  const auto arguments = Parse({argv + 1, argv + argc});
  const Status done = arguments ? Main(*arguments) : Status(arguments.error());
  if (done) return 0;
  std::fprintf(stderr, "host_app: %s\n", done.error().message.c_str());
  return done.error().code == Code::kInternal ? 3 : 2;
}
