// SPDX-License-Identifier: Apache-2.0
// write_models OUTDIR [--model NAME]... [--seed N]: writes sample SavedModels to OUTDIR/NAME; by default all.
#include <charconv>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "samples/models/models.h"

namespace {

struct Options {
  std::string out_dir;
  std::vector<std::string> models;
  uint64_t seed = 1;
};

int Usage() {
  std::fputs("usage: write_models OUTDIR [--model NAME]... [--seed N]\nmodels:\n", stderr);
  for (const fusebox::samples::SampleModel& model : fusebox::samples::SampleModels()) {
    std::fprintf(stderr, "  %-24s %s\n", std::string(model.name).c_str(),
                 std::string(model.description).c_str());
  }
  return 2;
}

bool ParseOptions(const std::vector<std::string>& args, Options& options) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--model" && i + 1 < args.size()) {
      options.models.push_back(args[++i]);
    } else if (args[i] == "--seed" && i + 1 < args.size()) {
      const std::string& text = args[++i];
      auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), options.seed);
      if (error != std::errc() || end != text.data() + text.size()) return false;
    } else if (options.out_dir.empty() && !args[i].starts_with("-")) {
      options.out_dir = args[i];
    } else {
      return false;
    }
  }
  return !options.out_dir.empty();
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // writing beyond `ulimit -f` then fails with EFBIG
  Options options;
  if (!ParseOptions({argv + 1, argv + argc}, options)) return Usage();
  for (const std::string& name : options.models) {
    if (!fusebox::samples::FindSampleModel(name)) return Usage();
  }
  for (const fusebox::samples::SampleModel& model : fusebox::samples::SampleModels()) {
    bool wanted = options.models.empty();
    for (const std::string& name : options.models) wanted |= name == model.name;
    if (!wanted) continue;
    std::string dir = options.out_dir + "/" + std::string(model.name);
    if (fusebox::Status status = model.write(dir, options.seed); !status) {
      std::fprintf(stderr, "%s\n", status.error().message.c_str());
      return 2;
    }
    std::printf("%s\n", dir.c_str());
  }
  return 0;
}
