// SPDX-License-Identifier: Apache-2.0
// Every real .tflite file: it opens or is refused with a reason, runs as stock TFLite does, and never
// crashes. Each file has a child process and half a minute.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <set>
#include <sstream>
#include <string_view>

#include "tests/converter/import/files.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

constexpr size_t kChildren = 2;
#if defined(__aarch64__)
constexpr unsigned kSeconds = 240;  // under emulation
#else
constexpr unsigned kSeconds = 30;
#endif
constexpr double kNear = 8 / 255.0;

// Quantized files that are known to end further from stock: their FULLY_CONNECTED weights have a scale per
// channel, of which that version of TFLite seems to take one.
constexpr std::string_view kKnownFar[] = {
    "conv_fc_mnist_srq_a8w8",
    "partly_quantized_mnist",
#if defined(__aarch64__)
    // Ours have the same bits as on x86-64, where they are stock's; stock's NEON kernels round otherwise.
    "model_profiler/config/tflite/image_classification",
    "style_transfer_quantized_384",
#endif
};

// Nets whose activations are quantized as they run magnify the last bit of a float sum, and a build without
// contraction to fused multiply-adds rounds otherwise than the one that the list above was made with.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kRoundsAsMeasured = false;
#else
constexpr bool kRoundsAsMeasured = true;
#endif

bool IsKnownFar(std::string_view file) {
  return std::ranges::any_of(kKnownFar,
                             [&](std::string_view known) { return file.find(known) != file.npos; });
}

// Of quantized outputs: the largest difference in steps, of all that the type has.
template <class T>
double Steps(const Tensor& a, const Tensor& b) {
  const auto x = a.data.As<T>(), y = b.data.As<T>();
  int worst = 0;
  for (size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(int{x[i]} - int{y[i]}));
  return worst / double{std::numeric_limits<std::make_unsigned_t<T>>::max()};
}

// Largest difference over the largest value of the output; infinite where one is no number, or other bytes
// differ.
double Relative(const Tensor& a, const Tensor& b) {
  constexpr double kApart = std::numeric_limits<double>::infinity();
  if (a.data.size() != b.data.size()) return kApart;
  if (a.type.dtype == DType::kI8) return Steps<int8_t>(a, b);
  if (a.type.dtype == DType::kU8) return Steps<uint8_t>(a, b);
  if (a.type.dtype == DType::kI16) return Steps<int16_t>(a, b);
  if (a.type.dtype != DType::kF32) return std::ranges::equal(a.data.bytes(), b.data.bytes()) ? 0 : kApart;
  double scale = 1e-6, worst = 0;
  const auto x = a.data.As<float>(), y = b.data.As<float>();
  for (const float v : y) {
    if (std::isfinite(v)) scale = std::max(scale, std::abs(double{v}));
  }
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    const double difference = std::abs(double{x[i]} - y[i]);
    worst = std::max(worst, std::isfinite(difference) ? difference / scale : kApart);
  }
  return worst;
}

bool IsQuantized(const std::string& path) {
  const auto model = Model::Open(path);
  if (!model) return false;
  for (const auto& function : (*model)->module().functions) {
    for (ValueId id = 0; id < function->value_count(); ++id) {
      const Value& value = function->value(id);
      if (value.quant != nullptr && !value.quant->scales.empty() && value.type.dtype != DType::kF32)
        return true;
    }
  }
  return false;
}

// One line: "refused REASON", "cannot run REASON", "no peer REASON", "equal E", "near E" or "far E" (a
// quantized file, where differences of one step in rounding add up from layer to layer), "differs E".
std::string Examine(const std::string& path, bool stock_runs_it) {
  auto ours = Open(path, *Plugins());
  if (!ours) return "refused " + ours.error().message;
  const Tensors inputs = RandomInputs(**ours, 1);
  const auto outputs = Invoke(**ours, inputs);
  if (!outputs) return "cannot run " + outputs.error().message;
  if (!stock_runs_it) return "no peer";
  auto stock = Stock::Open(path);
  if (!stock) return "no peer " + stock.error().message;
  const auto expected = (*stock)->Invoke(inputs);
  if (!expected) return "no peer " + expected.error().message;
  if (outputs->size() != expected->size()) return "differs in the number of outputs";
  double worst = 0;
  for (size_t i = 0; i < outputs->size(); ++i)
    worst = std::max(worst, Relative((*outputs)[i], (*expected)[i]));
  std::ostringstream line;
  if (worst <= 1e-4) line << "equal ";
  else line << (!IsQuantized(path) ? "differs " : worst <= kNear ? "near " : "far ");
  line << worst;
  return line.str();
}

struct Child {
  std::string file, answer;
  pid_t pid = 0;
};

void Start(Child& child, const std::string& path, bool stock_runs_it) {
  child.pid = fork();
  if (child.pid != 0) return;
  alarm(kSeconds);
  const rlimit none = {0, 0}, memory = {6ull << 30, 6ull << 30};
  setrlimit(RLIMIT_CORE, &none);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  setrlimit(RLIMIT_AS, &memory);
#else
  (void)memory;
#endif
  WriteAll(child.answer, Examine(path, stock_runs_it));
  _exit(0);
}

// The op that a refusal is about: the first word in capitals of the message, or what stands in place of it.
std::string Subject(const std::string& message) {
  const size_t at = message.find("no kernel for ");
  if (at == std::string::npos) return "(other) " + message.substr(0, 160);
  const std::string rest = message.substr(at + 14);
  return rest.substr(0, rest.find_first_of("(; "));
}

// Of the files to run, in bytes: FUSEBOX_SWEEP_LARGEST.
uintmax_t Largest() {
  const char* const largest = std::getenv("FUSEBOX_SWEEP_LARGEST");
  return largest != nullptr ? std::strtoull(largest, nullptr, 10) : UINTMAX_MAX;
}

TEST(Sweep, EveryRealFileRunsLikeStockOrIsRefused) {
  FUSEBOX_NEEDS_STOCK();
  FUSEBOX_NEEDS_MODEL(root, "tflite");
  FUSEBOX_NEEDS_MODEL(table, "STOCK.tsv");
  std::set<std::string> stock_ok;
  std::ifstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    const size_t tab = line.find('\t');
    if (tab != std::string::npos && line.substr(tab + 1).starts_with("ok"))
      stock_ok.insert(line.substr(0, tab));
  }
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string ext = entry.path().extension();
    if (entry.is_regular_file() && (ext == ".tflite" || ext == ".lite") && entry.file_size() <= Largest())
      files.push_back(std::filesystem::relative(entry.path(), root));
  }
  std::ranges::sort(files);

  std::map<std::string, int> outcomes, refused;
  std::vector<std::string> told, wrong;
  std::vector<Child> running;
  const auto reap = [&] {
    int status = 0;
    const pid_t pid = wait(&status);
    const auto child = std::ranges::find(running, pid, &Child::pid);
    ASSERT_NE(child, running.end());
    const std::string answer = ReadAll(child->answer);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || answer.empty()) {
      const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      ++outcomes[signal == SIGALRM ? "too slow" : "crashed"];
      (signal == SIGALRM ? told : wrong).push_back("signal " + std::to_string(signal) + ": " + child->file);
    } else {
      const std::string word = answer.substr(0, answer.find(' '));
      ++outcomes[word];
      if (word == "refused" || word == "cannot") ++refused[word + " " + Subject(answer)];
      if (word == "near" || word == "far") told.push_back(child->file + ": " + answer);
      if (word == "far" && kRoundsAsMeasured && !IsKnownFar(child->file))
        wrong.push_back(child->file + ": " + answer);
      if (word == "cannot") told.push_back(child->file + ": " + answer);
      if (word == "differs") wrong.push_back(child->file + ": " + answer);
    }
    running.erase(child);
  };
  for (const std::string& file : files) {
    if (running.size() == kChildren) reap();
    running.push_back({file, TestDir() + "/answer" + std::to_string(&file - files.data())});
    Start(running.back(), root + "/" + file, stock_ok.contains(file));
  }
  while (!running.empty()) reap();

  for (const auto& [word, count] : outcomes) std::cout << count << " " << word << "\n";
  std::vector<std::pair<int, std::string>> by_count;
  for (const auto& [op, count] : refused) by_count.emplace_back(-count, op);
  std::ranges::sort(by_count);
  for (const auto& [count, op] : by_count) std::cout << "  " << -count << " " << op << "\n";
  for (const std::string& line : told) std::cout << line << "\n";
  for (const std::string& line : wrong) ADD_FAILURE() << line;
  EXPECT_GT(files.size(), 100u);
  EXPECT_GT(outcomes["equal"], 20);
#if defined(__aarch64__)
  constexpr int kMostNear = 6;  // of the same bits as on x86-64; stock's sums of floats differ there
#else
  constexpr int kMostNear = 5;
#endif
  const int most_near = kRoundsAsMeasured ? kMostNear : 1000;
  EXPECT_LE(outcomes["near"], most_near)
      << "quantized nets are equal to stock but for float sums, which each CPU rounds in its own way";
}

}  // namespace
}  // namespace fusebox::testing
