// SPDX-License-Identifier: Apache-2.0
// Measures what work costs (plugins/math/cost/rates.h) and prints plugins/math/cost/rates.def.
//
//   rates_bench --plugin FOLDER [--seconds S] [--verbose]
//
// Small nets of one or a few equal nodes run on kernels and on XNNPACK, in turns, one thread, S ms each. The
// rates are those for which the estimates' relative errors have the least sum of squares, none below zero.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "host/session.h"
#include "tests/bench/rates_probes.h"

namespace fusebox::bench {
namespace {

constexpr const char* kNames[] = {
#define RATE(item, of_kernels, of_xnnpack) #item,
#include "plugins/math/cost/rates.def"
#undef RATE
    "run"};
static_assert(std::size(kNames) == kUnknowns);

constexpr const char* kIsas[] = {"kSse4",       "kAvx2", "kAvx2Vnni", "kAvx512",
                                 "kAvx512Vnni", "kNeon", "kNeonDot"};

double Least(Session& session, double seconds) {
  using Clock = std::chrono::steady_clock;
  double least = 1e18;
  const auto start = Clock::now();
  for (int i = 0; i < 3 || std::chrono::duration<double>(Clock::now() - start).count() < seconds; ++i) {
    const auto begin = Clock::now();
    if (!session.Run()) std::abort();
    least = std::min(least, std::chrono::duration<double, std::nano>(Clock::now() - begin).count());
  }
  return least;
}

Status Measure(Probe& probe, const std::shared_ptr<Registry>& registry, double seconds) {
  const auto open = [&](bool delegated) -> Result<std::unique_ptr<Session>> {
    std::vector<Config::Delegate> delegates;
    if (delegated) delegates.push_back({"xnnpack"}), delegates[0].options.Set("placement", "all");
    FUSEBOX_ASSIGN(const auto model,
                   Model::FromModule(Clone(*probe.module), {.registry = registry, .delegates = delegates}));
    for (const Placement& row : model->placements())
      if (delegated && !row.runner.starts_with("xnnpack")) return Internal(probe.name + ": " + row.why);
    return Session::Create(model, {.threads = 1});
  };
  FUSEBOX_ASSIGN(const auto kernels, open(false));
  FUSEBOX_ASSIGN(const auto xnnpack, open(true));
  probe.kernels_ns = probe.xnnpack_ns = 1e18;
  for (int turn = 0; turn < 4; ++turn) {
    probe.kernels_ns = std::min(probe.kernels_ns, Least(*kernels, seconds / 8));
    probe.xnnpack_ns = std::min(probe.xnnpack_ns, Least(*xnnpack, seconds / 8));
  }
  return {};
}

// Entering or leaving a partition: nodes of XNNPACK and of kernels that alternate, beside the same nodes in
// one partition.
Result<double> BorderTime(const std::shared_ptr<Registry>& registry, double seconds) {
  constexpr int kPartitions = 8;
  const auto open = [&](bool alternate) -> Result<std::unique_ptr<Session>> {
    std::vector<Config::Delegate> delegates = {{"xnnpack"}};
    delegates[0].options.Set("placement", "all");
    FUSEBOX_ASSIGN(const auto model, Model::FromModule(MixedNet(alternate, kPartitions),
                                                       {.registry = registry, .delegates = delegates}));
    return Session::Create(model, {.threads = 1});
  };
  FUSEBOX_ASSIGN(const auto one, open(false));
  FUSEBOX_ASSIGN(const auto many, open(true));
  double least_one = 1e18, least_many = 1e18;
  for (int turn = 0; turn < 8; ++turn) {
    least_one = std::min(least_one, Least(*one, seconds));
    least_many = std::min(least_many, Least(*many, seconds));
  }
  return std::max(0.0, least_many - least_one) / (2 * (kPartitions - 1));
}

// Least squares of the relative errors without negative solutions, one unknown after the other.
struct Equation {
  std::array<double, kUnknowns> of;
  double ns;
};
std::array<double, kUnknowns> Solve(const std::vector<Equation>& equations,
                                    std::array<double, kUnknowns> known) {
  std::array<double, kUnknowns> x = known;
  for (double& value : x) value = std::max(0.0, value);
  constexpr int kRounds = 20'000;
  for (int round = 0; round < kRounds; ++round) {
    for (int j = 0; j < kUnknowns; ++j) {
      if (known[static_cast<size_t>(j)] >= 0) continue;
      double up = 0, down = 0;
      for (const Equation& e : equations) {
        const double a = e.of[static_cast<size_t>(j)] / e.ns;
        if (a == 0) continue;
        double rest = 1;
        for (int k = 0; k < kUnknowns; ++k)
          if (k != j) rest -= e.of[static_cast<size_t>(k)] / e.ns * x[static_cast<size_t>(k)];
        up += a * rest, down += a * a;
      }
      if (down > 0) x[static_cast<size_t>(j)] = std::max(0.0, up / down);
    }
  }
  return x;
}

double Estimate(const std::array<double, kUnknowns>& of, const std::array<double, kUnknowns>& rates) {
  double sum = 0;
  for (size_t i = 0; i < of.size(); ++i) sum += of[i] * rates[i];
  return sum;
}

int Main(int argc, char** argv) {
  std::string plugin;
  double seconds = 0.1;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--plugin" && i + 1 < argc) plugin = argv[++i];
    else if (word == "--seconds" && i + 1 < argc) seconds = std::atof(argv[++i]);
    else if (word == "--verbose") verbose = true;
  }
  Config config;
  config.search_default_path = false;
  config.plugins = {plugin};
  const auto registry = Registry::Create(config);
  if (!registry) return std::fprintf(stderr, "%s\n", registry.error().message.c_str()), 1;
  std::vector<Probe> probes = Probes();
  std::vector<Equation> kernels, xnnpack;
  std::vector<Probe*> measured;
  for (Probe& probe : probes) {
    if (const Status ok = Measure(probe, *registry, seconds); !ok) {
      std::fprintf(stderr, "%s\n", ok.error().message.c_str());
      continue;
    }
    measured.push_back(&probe);
    kernels.push_back({probe.kernels, probe.kernels_ns});
    xnnpack.push_back({probe.xnnpack, probe.xnnpack_ns});
  }
  std::array<double, kUnknowns> unknown;
  unknown.fill(-1);
  const auto of_kernels = Solve(kernels, unknown);
  for (Equation& e : xnnpack) e.of[kRun] = 1;
  unknown[kRun] = of_kernels[kRun];
  const auto border = BorderTime(*registry, seconds);
  if (!border) return std::fprintf(stderr, "%s\n", border.error().message.c_str()), 1;
  unknown[math::kBorder] = *border;
  const auto of_xnnpack = Solve(xnnpack, unknown);
  double lost = 0;
  for (const Probe* p : measured) {
    const double k = Estimate(p->kernels, of_kernels);
    const double x = Estimate(p->xnnpack, of_xnnpack) + of_xnnpack[kRun];
    const double chosen = k < x ? p->kernels_ns : p->xnnpack_ns,
                 best = std::min(p->kernels_ns, p->xnnpack_ns);
    lost += std::log(chosen / best);
    if (verbose)
      std::printf("// %-34s kernels %9.1f (%4.2f) xnnpack %9.1f (%4.2f) regret %.2f\n", p->name.c_str(),
                  p->kernels_ns / 1e3, k / p->kernels_ns, p->xnnpack_ns / 1e3, x / p->xnnpack_ns,
                  chosen / best);
  }
  std::printf("// chosen / best: %.4f on average\n", std::exp(lost / static_cast<double>(measured.size())));
  std::printf("// Isa::%s\n", kIsas[static_cast<size_t>(math::BestIsa())]);
  for (size_t i = 0; i < math::kItems; ++i)
    std::printf("RATE(%s, %.4g, %.4g)\n", kNames[i], of_kernels[i], of_xnnpack[i]);
  return 0;
}

}  // namespace
}  // namespace fusebox::bench

int main(int argc, char** argv) { return fusebox::bench::Main(argc, argv); }
