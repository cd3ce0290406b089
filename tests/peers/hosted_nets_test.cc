// SPDX-License-Identifier: Apache-2.0
// Public nets on XNNPACK of stock 2.9, hosted by plugins/tflite_delegate, beside stock with the same
// delegate. Each file has a child process: peers may crash.
//
// The delegate of both sides is the same code, so results are equal to the bit where it runs the whole net.
// Where it runs a part, kernels run the rest, and results are within the tolerance of `fusebox compare`.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <map>
#include <random>

#include "fusebox/tflite/c/common.h"
#include "host/graph/values.h"
#include "tests/converter/import/files.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

constexpr uintmax_t kLargestFile = 8'000'000;
constexpr unsigned kSecondsForOneFile = 60;
constexpr int kRuns = 2;

// Stock's XNNPACK delegate with the flags of TfLiteXNNPackDelegateOptions: 1, signed 8-bit ops; 2, unsigned
// ones. Counts the nodes that it replaces.
class CountingXnnpack {
 public:
  explicit CountingXnnpack(uint32_t flags) {
    std::string why;
    void* library = dlopen(PeerFile("libtensorflowlite_c.so", &why).c_str(), RTLD_NOW | RTLD_LOCAL);
    const auto create =
        reinterpret_cast<TfLiteDelegate* (*)(const void*)>(dlsym(library, "TfLiteXNNPackDelegateCreate"));
    const struct {
      int32_t threads;
      uint32_t flags;
      uint64_t later[8];
    } options = {1, flags, {}};
    inner_ = create(&options);
    shown_ = *inner_;
    shown_.data_ = this;
    shown_.Prepare = Prepare;
  }
  CountingXnnpack(const CountingXnnpack&) = delete;
  TfLiteDelegate* get() { return &shown_; }
  int nodes() const { return nodes_; }
  int replaced() const { return replaced_; }

 private:
  static TfLiteStatus Prepare(TfLiteContext* context, TfLiteDelegate* delegate) {
    current_ = static_cast<CountingXnnpack*>(delegate->data_);
    TfLiteIntArray* plan = nullptr;
    if (context->GetExecutionPlan(context, &plan) != kTfLiteOk) return kTfLiteError;
    current_->nodes_ += plan->size;
    current_->replace_ = context->ReplaceNodeSubsetsWithDelegateKernels;
    context->ReplaceNodeSubsetsWithDelegateKernels = Replace;
    const TfLiteStatus status = current_->inner_->Prepare(context, current_->inner_);
    context->ReplaceNodeSubsetsWithDelegateKernels = current_->replace_;
    return status;
  }
  static TfLiteStatus Replace(TfLiteContext* context, TfLiteRegistration kernel, const TfLiteIntArray* nodes,
                              TfLiteDelegate* delegate) {
    current_->replaced_ += nodes->size;
    return current_->replace_(context, kernel, nodes, delegate);
  }

  inline static CountingXnnpack* current_ = nullptr;
  TfLiteDelegate* inner_ = nullptr;  // lives as long as the process
  TfLiteDelegate shown_ = {};
  decltype(TfLiteContext::ReplaceNodeSubsetsWithDelegateKernels) replace_ = nullptr;
  int nodes_ = 0;
  int replaced_ = 0;
};

Config::Delegate Hosted(uint32_t flags) {
  std::string why;
  Config::Delegate out{"tflite"};
  out.options.Set("library", FUSEBOX_XNNPACK_VENDOR);
  auto options = std::make_shared<Attrs>();
  options->Set("library", PeerFile("libtensorflowlite_c.so", &why));
  options->Set("flags", std::to_string(flags));
  out.options.Set("options", std::shared_ptr<const Attrs>(std::move(options)));
  return out;
}

Result<std::unique_ptr<Session>> OpenHosted(const std::string& path, uint32_t flags) {
  FUSEBOX_ASSIGN(const auto registry, Plugins({"fusebox.rnn", "fusebox.tflite_delegate"}));
  FUSEBOX_ASSIGN(const auto model,
                 Model::Open(path, {.registry = registry, .delegates = std::vector{Hosted(flags)}}));
  return Session::Create(model);
}

// 8-bit values over their whole range, others as everywhere.
Tensors InputsOf(const Session& session, uint64_t seed) {
  Tensors inputs = RandomInputs(session, seed);
  std::mt19937 random(static_cast<unsigned>(seed));
  for (Tensor& input : inputs) {
    if (input.type.dtype != DType::kI8 && input.type.dtype != DType::kU8) continue;
    input.data = Buffer::Make(input.data.size(), [&](std::span<std::byte> bytes) {
      for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    });
  }
  return inputs;
}

enum Closeness { kEqual, kClose, kFar };

Result<Closeness> ClosenessOf(const Tensors& ours, const Tensors& theirs, std::string& where) {
  if (ours.size() != theirs.size()) return kFar;
  Closeness out = kEqual;
  for (size_t i = 0; i < ours.size(); ++i) {
    if (ours[i].type == theirs[i].type && std::ranges::equal(ours[i].data.bytes(), theirs[i].data.bytes()))
      continue;
    FUSEBOX_ASSIGN(const auto difference, fusebox::Compare(ours[i], theirs[i], {}));
    where = "output " + std::to_string(i) + " " + difference.where;
    if (!difference.within) return kFar;
    out = kClose;
  }
  return out;
}

// Runs the file on both sides without a delegate. Returns whether the results differ: some files compute
// outside of the domain of an op, or have scales that overflow.
Result<bool> KernelsDiffer(const std::string& path, const Tensors& inputs) {
  FUSEBOX_ASSIGN(const auto registry, Plugins({"fusebox.rnn"}));
  FUSEBOX_ASSIGN(const auto session, Open(path, registry));
  FUSEBOX_ASSIGN(const Tensors ours, Invoke(*session, inputs));
  FUSEBOX_ASSIGN(const auto stock, Stock::Open(path));
  FUSEBOX_ASSIGN(const Tensors theirs, stock->Invoke(inputs));
  std::string where;
  FUSEBOX_ASSIGN(const Closeness close, ClosenessOf(ours, theirs, where));
  return close == kFar;
}

struct Share {
  int nodes = 0;
  int delegated = 0;
  std::string why = {};  // of the last one that is not delegated

  explicit Share(const std::vector<Placement>& rows) {
    for (const Placement& row : rows) {
      ++nodes;
      if (row.runner.starts_with("tflite (")) ++delegated;
      else why = row.op + ": " + row.why;
    }
  }
};

// Returns "KIND: details" of one file; KIND is "wrong" or what is counted. `answer` is a file that says what
// a crash means.
Result<std::string> Run(const std::string& path, uint32_t flags, const std::string& answer) {
  CountingXnnpack xnnpack(flags);
  WriteAll(answer, "stock crashes");
  auto stock = Stock::WithDelegate(path, xnnpack.get());
  if (!stock) return "stock refuses the file: " + stock.error().message;
  if (!(*stock)->Run() || !(*stock)->ResetVariables()) return std::string("stock does not run the file");
  WriteAll(answer, "wrong: it crashed");
  if (xnnpack.replaced() == 0) return std::string("no node is delegated");
  FUSEBOX_ASSIGN(const auto session, OpenHosted(path, flags));
  Closeness worst = kEqual;
  std::string where;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    const Tensors inputs = InputsOf(*session, seed);
    const auto theirs = (*stock)->Invoke(inputs);
    if (!theirs) return "stock does not run the file: " + theirs.error().message;
    FUSEBOX_ASSIGN(const Tensors ours, Invoke(*session, inputs));
    FUSEBOX_ASSIGN(const Closeness now, ClosenessOf(ours, *theirs, where));
    worst = std::max(worst, now);
  }
  const Share share(session->placements());
  const auto details = [&](const std::string& kind) {
    std::string line = kind + ": " + std::to_string(share.delegated) + " of " + std::to_string(share.nodes) +
                       " nodes, stock " + std::to_string(xnnpack.replaced()) + " of " +
                       std::to_string(xnnpack.nodes());
    if (!where.empty()) line += "; " + where;
    for (const std::string& notice : session->notices()) line += "; " + notice;
    if (share.delegated < xnnpack.replaced() && !share.why.empty()) line += "; " + share.why;
    return line;
  };
  const bool whole = xnnpack.replaced() == xnnpack.nodes();
  if (whole && !session->notices().empty()) return details("wrong: declined");
  if (whole && share.delegated != share.nodes) return details("wrong: only a part is delegated");
  if (whole) return details(worst == kEqual ? "whole net, equal" : "wrong: whole net, different");
  if (worst == kFar) {
    FUSEBOX_ASSIGN(const bool kernels, KernelsDiffer(path, InputsOf(*session, 1)));
    return details(kernels ? "part of a net, whose kernels differ without a delegate too"
                           : "wrong: part of a net, different");
  }
  if (!session->notices().empty()) return details("part of a net, of which some is declined");
  return details(worst == kEqual ? "part of a net, equal" : "part of a net, within the tolerance");
}

Status RunHosted(const std::string& path, uint32_t flags) {
  FUSEBOX_ASSIGN(const auto session, OpenHosted(path, flags));
  for (uint64_t seed = 1; seed <= kRuns; ++seed) FUSEBOX_TRY(Invoke(*session, InputsOf(*session, seed)));
  return {};
}

// Returns whether the work ends in a child process.
template <class F>
bool EndsInChild(F&& work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSecondsForOneFile);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(1);
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status);
}

std::string Compared(const std::string& path, uint32_t flags) {
  const std::string answer = TestDir() + "/answer";
  WriteAll(answer, "wrong: it crashed");
  const bool ends = EndsInChild([&] {
    const auto said = Run(path, flags, answer);
    WriteAll(answer, said ? *said : "wrong: " + said.error().message);
  });
  if (ends || ReadAll(answer) == "stock crashes") return ReadAll(answer);
  // Stock may have damaged the heap before.
  return EndsInChild([&] { (void)RunHosted(path, flags); }) ? "stock crashes" : "wrong: it crashed";
}

// One file of each content.
std::vector<std::string> Files(const std::string& root) {
  std::map<std::string, std::string> by_content;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".tflite" || entry.file_size() > kLargestFile)
      continue;
    std::string& kept = by_content[ReadAll(entry.path())];
    const std::string name = std::filesystem::relative(entry.path(), root);
    if (kept.empty() || name < kept) kept = name;
  }
  std::vector<std::string> files;
  for (const auto& [content, name] : by_content) files.push_back(name);
  std::ranges::sort(files);
  return files;
}

struct Flags {
  uint32_t flags;
  const char* name;
  int whole_nets;  // at least
};
void PrintTo(const Flags& flags, std::ostream* out) { *out << flags.name; }
class HostedNets : public ::testing::TestWithParam<Flags> {};

TEST_P(HostedNets, GiveWhatStockGivesWithTheSameDelegate) {
  FUSEBOX_NEEDS_STOCK();
  FUSEBOX_NEEDS_MODEL(root, "tflite");
  std::map<std::string, int> counts;
  for (const std::string& file : Files(root)) {
    const std::string said = Compared(root + "/" + file, GetParam().flags);
    const std::string kind = said.substr(0, said.find(':'));
    ++counts[kind];
    std::cout << file << ": " << said.substr(0, 400) << "\n";
    EXPECT_NE(kind, "wrong") << file << ": " << said;
  }
  for (const auto& [kind, count] : counts) std::cout << count << " " << kind << "\n";
  EXPECT_GE(counts["whole net, equal"], GetParam().whole_nets);
}

INSTANTIATE_TEST_SUITE_P(Xnnpack, HostedNets,
                         ::testing::Values(Flags{0, "Floats", 70}, Flags{3, "FloatsAndBytes", 75}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fusebox::testing
