// SPDX-License-Identifier: Apache-2.0
// Two threads beside one, alone and beside 1 and 2 busy processes: an LSTM layer (128 steps, inputs = units,
// batch 1, f32), and a parallel loop that does nothing.
//
//   [FUSEBOX_PEER_DIR=DIR] threads_bench --rnn FOLDER [--seconds S] [UNITS...]
//
// Times of runs are means, because what another process costs are a few runs that take long. "99th of 100
// runs" is beside the median of the same runs. `--seconds` is for one size beside one number of processes.
// The peer is ONNX Runtime with two threads.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "host/run/run.h"
#include "host/session.h"
#include "tests/bench/lstm_engine.h"
#include "tests/bench/row.h"

namespace fusebox::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSteps = 128, kRounds = 8;
constexpr int kThreads = 2;

// A process that never waits.
class BusyProcess {
 public:
  BusyProcess() : child_(fork()) {
    if (child_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) asm volatile("");
  }
  ~BusyProcess() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  BusyProcess(const BusyProcess&) = delete;

 private:
  pid_t child_;
};

template <class T>
T Must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

void Must(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

std::unique_ptr<Module> ModuleOf(const LstmProblem& p) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const Type state{DType::kF32, Shape({1, p.units})};
  std::vector<ValueId> operands(24, kNoValue);
  operands[0] = f.AddInput({DType::kF32, Shape({1, p.steps, p.inputs})});
  for (size_t k = 0; k < 4; ++k) {
    operands[1 + k] = f.AddConst<float>(DType::kF32, Shape({p.units, p.inputs}), p.kernel[k]);
    operands[5 + k] = f.AddConst<float>(DType::kF32, Shape({p.units, p.units}), p.recurrent[k]);
    operands[12 + k] = f.AddConst<float>(DType::kF32, Shape({p.units}), p.bias[k]);
  }
  for (const size_t variable : {18, 19}) {
    operands[variable] = f.AddValue(state);
    f.value(operands[variable]).is_variable = true;
  }
  Attrs attrs;
  attrs.Set("fused_activation_function", "TANH");
  const Type output{DType::kF32, Shape({1, p.steps, p.units})};
  const Node& node = f.AddNode(Op::kUnidirectionalSequenceLstm, operands, {output, state, state}, attrs);
  f.outputs = {node.results[0]};
  return module;
}

class OurLstm : public LstmEngine {
 public:
  OurLstm(const LstmProblem& problem, const std::shared_ptr<Registry>& registry) {
    const auto model = Must(Model::FromModule(ModuleOf(problem), {.registry = registry}));
    session_ = Must(Session::Create(model, {.threads = problem.threads}));
    Must(session_->SetInput(0, {session_->inputs()[0].type, Buffer::Of<float>(problem.x)}));
  }
  void Run() override { Must(session_->Run()); }
  std::vector<float> output() const override { return {}; }

 private:
  std::unique_ptr<Session> session_;
};

// The times in ms of the calls in at least `least` seconds, after one call.
std::vector<double> Times(const std::function<void()>& call, double least) {
  call();
  std::vector<double> times;
  for (double spent = 0; spent < 1e3 * least; spent += times.back()) {
    const auto start = Clock::now();
    call();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  return times;
}

double Mean(const std::vector<double>& times) {
  return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
}

double Percentile(std::vector<double> times, double percent) {
  const auto at =
      times.begin() + static_cast<ptrdiff_t>(percent / 100 * static_cast<double>(times.size() - 1));
  std::nth_element(times.begin(), at, times.end());
  return *at;
}

std::string Beside(int processes) {
  return processes == 1 ? "1 busy process" : std::to_string(processes) + " busy processes";
}

struct Contestant {
  std::string name;
  std::unique_ptr<LstmEngine> engine;
  std::vector<double> times = {};
};

void MeasureLstm(int units, int processes, double seconds, const std::shared_ptr<Registry>& registry) {
  LstmProblem problem = RandomProblem(kSteps, units);
  std::vector<Contestant> all;
  all.push_back({"1 thread", std::make_unique<OurLstm>(problem, registry)});
  problem.threads = kThreads;
  all.push_back({kOurs, std::make_unique<OurLstm>(problem, registry)});
  if (const char* const peers = std::getenv("FUSEBOX_PEER_DIR"))
    all.push_back({"ONNX Runtime", OnnxEngine(problem, std::string(peers) + "/libonnxruntime.so")});
  const std::string job = "LSTM of " + std::to_string(units) + " units, " + Beside(processes);
  for (int round = 0; round < kRounds; ++round) {
    for (Contestant& c : all) {
      std::this_thread::sleep_for(std::chrono::milliseconds(8));  // until the other's threads stop spinning
      const double turn = seconds / kRounds / static_cast<double>(all.size());
      const std::vector<double> times = Times([&] { c.engine->Run(); }, turn);
      WriteRow({"threads", job, "run", "ms"}, c.name, round, Mean(times));
      c.times.insert(c.times.end(), times.begin(), times.end());
    }
  }
  const Metric slow{"threads", job, "99th of 100 runs", "ms"};
  WriteRow(slow, kOurs, 0, Percentile(all[1].times, 99));
  WriteRow(slow, "median run", 0, Percentile(all[1].times, 50));
}

void MeasureEmptyLoop(int processes, double seconds) {
  run::Threads threads(kThreads);
  const auto nothing = [](void*, size_t, size_t, uint32_t) noexcept {};
  const auto thousand = [&] {
    for (int i = 0; i < 1000; ++i) threads.ParallelFor(kThreads, 1, nothing, nullptr);
  };
  WriteRow({"threads", "empty loop, " + Beside(processes), "loop", "us"}, kOurs, 0,
           Mean(Times(thousand, seconds / kRounds)));
}

int Main(int argc, char** argv) {
  Config config;
  config.search_default_path = false;
  double seconds = 2;
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--rnn") && i + 1 < argc) config.plugins = {argv[++i]};
    else if (!std::strcmp(argv[i], "--seconds") && i + 1 < argc) seconds = std::atof(argv[++i]);
    else sizes.push_back(std::atoi(argv[i]));
  }
  if (config.plugins.empty() || seconds <= 0 || (!sizes.empty() && sizes.back() < 1)) {
    std::fprintf(stderr, "usage: threads_bench --rnn FOLDER [--seconds S] [UNITS...]\n");
    return 2;
  }
  if (sizes.empty()) sizes = {64, 128, 256, 512};
  const auto registry = Must(Registry::Create(config));
  for (const int processes : {0, 1, 2}) {
    std::vector<std::unique_ptr<BusyProcess>> busy;
    for (int i = 0; i < processes; ++i) busy.push_back(std::make_unique<BusyProcess>());
    MeasureEmptyLoop(processes, seconds);
    for (const int units : sizes) MeasureLstm(units, processes, seconds, registry);
  }
  return 0;
}

}  // namespace
}  // namespace fusebox::bench

int main(int argc, char** argv) {
  try {
    return fusebox::bench::Main(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "threads_bench: %s\n", e.what());
    return 3;
  }
}
