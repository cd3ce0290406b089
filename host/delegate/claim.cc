// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "host/delegate/delegate.h"

namespace fusebox::delegate {
namespace {

constexpr size_t kLongestReason = 500;

std::string Copy(fbx_str text) {
  return text.ptr == nullptr ? std::string() : std::string(text.ptr, std::min(text.len, kLongestReason));
}

void Add(std::string& why, std::string_view reason) {
  if (!why.empty()) why += "; ";
  why += reason;
}

bool TouchesVariable(const Function& function, const Node& node) {
  const auto variable = [&](ValueId id) {
    if (id == kNoValue) return false;
    const Value& value = function.value(id);
    return (value.is_variable && !value.is_const()) || value.type.dtype == DType::kResource ||
           value.type.dtype == DType::kVariant;
  };
  return std::any_of(node.operands.begin(), node.operands.end(), variable) ||
         std::any_of(node.results.begin(), node.results.end(), variable);
}

// Returns why the host never offers a node, or null if it does. `shape` marks the values that planning
// computes.
const char* WhyKept(const Function& function, const Node& node, std::vector<bool>& shape) {
  const OpInfo& info = Info(node.op);
  if (Has(node.op, kHost) || info.effects == Effects::kControl) return "control flow runs on the host";
  if (info.code < 0) return "an op of the source model";
  if (info.effects == Effects::kRandom) return "random";
  if (!StateOperands(node.op).empty() || (info.effects == Effects::kStateful && !node.is(Op::kCustom)))
    return "it keeps state";
  if (TouchesVariable(function, node)) return "it works on a variable";
  if (!node.intermediates.empty()) return "it has intermediate tensors";
  bool derived = node.is(Op::kShape) || node.is(Op::kRank);
  bool all = true;
  for (const ValueId id : node.operands) {
    if (id == kNoValue || function.value(id).is_const()) continue;
    const bool known = shape[static_cast<size_t>(id)];
    derived = derived || known;
    all = all && (known || node.is(Op::kShape) || node.is(Op::kRank));
  }
  if (!derived || !all || info.effects != Effects::kPure) return nullptr;
  for (const ValueId id : node.results) {
    if (id != kNoValue) shape[static_cast<size_t>(id)] = true;
  }
  return "shape arithmetic, done while planning";
}

// The claim of one delegate for one function.
class Ballot {
 public:
  explicit Ballot(std::vector<bool> offered)
      : abi_{.head = FBX_HEAD(fbx_claim),
             .accept = Accept,
             .reject = Reject,
             .accept_join = AcceptJoin,
             .offered = Offered},
        offered_(std::move(offered)),
        votes_(offered_.size()) {}

  enum Vote : uint8_t { kNone, kAccepted, kJoin, kRejected };
  const fbx_claim* abi() const { return &abi_; }
  bool offered(size_t node) const { return offered_[node]; }
  Vote vote(size_t node) const { return votes_[node].vote; }
  const std::string& reason(size_t node) const { return votes_[node].reason; }
  int strays() const { return strays_; }

 private:
  struct Entry {
    Vote vote = kNone;
    std::string reason;
  };
  static Ballot& Of(const fbx_claim* claim) {
    return *const_cast<Ballot*>(reinterpret_cast<const Ballot*>(claim));
  }
  static void Accept(const fbx_claim* claim, uint32_t node) noexcept { Of(claim).Record(node, kAccepted); }
  static void AcceptJoin(const fbx_claim* claim, uint32_t node) noexcept { Of(claim).Record(node, kJoin); }
  static void Reject(const fbx_claim* claim, uint32_t node, fbx_str code, fbx_str why) noexcept {
    Entry* entry = Of(claim).Record(node, kRejected);
    if (entry == nullptr) return;
    try {
      entry->reason = fmt::format("{}: {}", Copy(code), Copy(why));
    } catch (...) {
      return;  // the rejection holds without its reason
    }
  }
  static int32_t Offered(const fbx_claim* claim, uint32_t node) noexcept {
    const Ballot& self = Of(claim);
    return node < self.offered_.size() && self.offered_[node];
  }
  Entry* Record(uint32_t node, Vote vote) {
    if (node >= votes_.size()) {
      ++strays_;
      return nullptr;
    }
    Entry& entry = votes_[node];
    if (!offered_[node]) return nullptr;
    if (entry.vote != kRejected) entry.vote = vote;
    return &entry;
  }

  fbx_claim abi_;  // first: callbacks cast from it
  std::vector<bool> offered_;
  std::vector<Entry> votes_;
  int strays_ = 0;
};
static_assert(std::is_standard_layout_v<Ballot>);

void Count(const Ballot& ballot, int number, std::string_view name, std::vector<Answer>& answers) {
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!ballot.offered(i)) continue;
    switch (ballot.vote(i)) {
      case Ballot::kAccepted:
      case Ballot::kJoin:
        answers[i].delegate = number;
        answers[i].joins = ballot.vote(i) == Ballot::kJoin;
        break;
      case Ballot::kRejected: Add(answers[i].why, fmt::format("{}: {}", name, ballot.reason(i))); break;
      case Ballot::kNone: Add(answers[i].why, fmt::format("{}: neither accepted nor rejected", name)); break;
    }
  }
}

}  // namespace

std::vector<Answer> Claim(const Module& module, const Function& function,
                          std::span<const std::string> refused, Instances delegates, HostCalls& calls,
                          std::vector<std::string>& notices) {
  std::vector<Answer> answers(function.nodes.size());
  std::vector<bool> shape(static_cast<size_t>(function.value_count()));
  std::vector<bool> free(function.nodes.size());
  for (size_t i = 0; i < function.nodes.size(); ++i) {
    const char* kept = WhyKept(function, *function.nodes[i], shape);
    free[i] = kept == nullptr;
    if (kept != nullptr) answers[i].why = fmt::format("not offered to delegates: {}", kept);
    if (kept != nullptr || refused[i].empty()) continue;
    free[i] = false;
    answers[i].why =
        fmt::format("not offered to delegates: its kernel rejects what the file declares: {}", refused[i]);
  }
  if (std::find(free.begin(), free.end(), true) == free.end()) return answers;
  const GraphView view(module, function);
  for (size_t d = 0; d < delegates.size(); ++d) {
    const Instance& delegate = *delegates[d];
    Ballot ballot(free);
    HostCall& call = calls.For(delegate.plugin());
    const InCall in(call, "delegate", delegate.abi().name);
    const Status status = call.Check(
        delegate.abi().claim(call.abi(), delegate.abi().user, delegate.self(), view.abi(), ballot.abi()));
    if (!status) {
      notices.push_back(fmt::format("delegate {} claims no node of function {}: {}", delegate.name(),
                                    function.name, status.error().message));
      for (size_t i = 0; i < answers.size(); ++i)
        if (free[i]) Add(answers[i].why, fmt::format("{}: its claim failed", delegate.name()));
      continue;
    }
    if (ballot.strays() > 0) {
      notices.push_back(fmt::format("delegate {} claimed or rejected {} nodes that function {} does not have",
                                    delegate.name(), ballot.strays(), function.name));
    }
    Count(ballot, static_cast<int>(d), delegate.name(), answers);
    for (size_t i = 0; i < answers.size(); ++i) free[i] = free[i] && answers[i].delegate < 0;
  }
  return answers;
}

}  // namespace fusebox::delegate
