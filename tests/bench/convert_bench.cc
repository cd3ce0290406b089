// SPDX-License-Identifier: Apache-2.0
// Converting a large SavedModel: its memory and its time beside copying the file that comes out.
//
//   convert_bench [--dir DIR] [--layers N] [--units N] [--rounds N]
//
// The model is N Dense layers of as many inputs as units (16 of 4096: 1 GB). Every conversion is a process of
// its own; "peak" is the most that was resident in it, pages of mapped files included. The copy reads the
// written file in pieces of 1 MB, writes them and ends with fsync; it takes turns with the conversion, which
// does not sync.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <vector>

#include "converter/convert.h"
#include "samples/models/models.h"
#include "tests/bench/row.h"

namespace fusebox::bench {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  fs::path dir = fs::temp_directory_path() / "fusebox_convert_bench";
  int layers = 16, rounds = 3;
  int64_t units = 4096;
};

struct Cost {
  double seconds = 0, peak_mb = 0;
};

// Runs `work` in a separate process, and returns its cost.
Cost InChild(const std::function<Status()>& work) {
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    const Status done = work();
    if (!done) std::fprintf(stderr, "%s\n", done.error().message.c_str());
    _exit(done ? 0 : 1);
  }
  int status = 0;
  rusage usage = {};
  if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0) std::exit(2);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return {took.count(), static_cast<double>(usage.ru_maxrss) / 1024};
}

Status Convert(const fs::path& model, const fs::path& output) {
  Config config;
  config.search_default_path = false;
  auto conversion = converter::FromSavedModel(model);
  FUSEBOX_ASSIGN(conversion.options.registry, Registry::Create(config));
  FUSEBOX_ASSIGN(const auto converted, conversion.Convert());
  return converted.Write(output);
}

// To a new file that takes the place of the old one, as the converter does: pages that are free again are
// quicker to fill.
Status Copy(const fs::path& from, const fs::path& to) {
  const fs::path fresh = to.string() + ".tmp";
  const int in = open(from.c_str(), O_RDONLY), out = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  std::vector<char> chunk(size_t{1} << 20);
  bool good = in >= 0 && out >= 0;
  while (good) {
    const ssize_t n = read(in, chunk.data(), chunk.size());
    if (n == 0) break;
    good = n > 0 && write(out, chunk.data(), static_cast<size_t>(n)) == n;
  }
  good = good && fsync(out) == 0;
  close(in);
  close(out);
  good = good && std::rename(fresh.c_str(), to.c_str()) == 0;
  return good ? Status() : IoError(to.string() + ": cannot be written");
}

int Run(const Arguments& args) {
  const fs::path model = args.dir / "model", output = args.dir / "model.tflite", copy = args.dir / "copy";
  InChild([&] { return samples::WriteDenseStack(model, 1, args.layers, args.units); });
  const std::string job = std::to_string(args.layers) + " layers of " + std::to_string(args.units) + " units";
  const Metric time{"convert", job, "convert", "s"}, memory{"convert", job, "peak memory", "MB"};
  for (int round = 0; round < args.rounds; ++round) {
    const Cost cost = InChild([&] { return Convert(model, output); });
    WriteRow(time, kOurs, round, cost.seconds);
    WriteRow(time, "copy with fsync", round, InChild([&] { return Copy(output, copy); }).seconds);
    WriteRow(memory, kOurs, round, cost.peak_mb);
    WriteRow(memory, "output file", round, static_cast<double>(fs::file_size(output)) / (1 << 20));
  }
  fs::remove_all(args.dir);
  return 0;
}

}  // namespace
}  // namespace fusebox::bench

int main(int argc, char** argv) {
  fusebox::bench::Arguments args;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--dir") args.dir = argv[i + 1];
    else if (flag == "--layers") args.layers = std::atoi(argv[i + 1]);
    else if (flag == "--units") args.units = std::atoll(argv[i + 1]);
    else if (flag == "--rounds") args.rounds = std::atoi(argv[i + 1]);
    else return std::fprintf(stderr, "unknown: %s\n", flag.c_str()), 2;
  }
  return fusebox::bench::Run(args);
}
