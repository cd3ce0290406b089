// SPDX-License-Identifier: Apache-2.0
// Placement by cost. In the order of execution, each node runs on kernels or on the delegate that claimed it,
// and each change between the two costs a border: the least sum is a shortest path of two states per node.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "fusebox/abi/ext/cost.h"
#include "host/delegate/delegate.h"

namespace fusebox::delegate {
namespace {

const fbx_cost* TableOf(const LoadedPlugin& plugin) {
  return static_cast<const fbx_cost*>(plugin.OwnExtension(FBX_EXT_COST));
}

double Checked(double ns) { return std::isfinite(ns) && ns >= 0 ? ns : FBX_NO_COST; }

// The estimates of one delegate for one graph.
class Estimates {
 public:
  Estimates(const Instance& delegate, HostCalls& calls, const fbx_graph* graph)
      : delegate_(delegate),
        call_(calls.For(delegate.plugin())),
        table_(TableOf(delegate.plugin())),
        graph_(graph) {}

  double Node(size_t node) const {
    if (!FBX_HAS(table_, node)) return FBX_NO_COST;
    const InCall in(call_, "delegate", delegate_.abi().name);
    return Checked(
        table_->node(call_.abi(), &delegate_.abi(), delegate_.self(), graph_, static_cast<uint32_t>(node)));
  }
  double Border(uint64_t bytes) const {
    if (!FBX_HAS(table_, border)) return 0;
    const InCall in(call_, "delegate", delegate_.abi().name);
    return std::max(0.0, Checked(table_->border(call_.abi(), &delegate_.abi(), delegate_.self(), bytes)));
  }

 private:
  const Instance& delegate_;
  HostCall& call_;
  const fbx_cost* table_;
  const fbx_graph* graph_;
};

uint64_t BytesOf(const Function& function, const ValueIds& ids) {
  uint64_t bytes = 0;
  for (auto at = ids.begin(); at != ids.end(); ++at)
    if (*at != kNoValue && !function.value(*at).is_const() && std::find(ids.begin(), at, *at) == at)
      bytes += ByteSize(function.value(*at).type).value_or(0);
  return bytes;
}

std::string Text(double ns) {
  return ns < 1000 ? fmt::format("{:.0f} ns", ns) : fmt::format("{:.1f} us", ns / 1000);
}

class Placer {
 public:
  Placer(Registry& registry, const Module& module, const Function& function, Instances delegates,
         HostCalls& calls, std::span<Answer> answers)
      : registry_(registry),
        function_(function),
        delegates_(delegates),
        calls_(calls),
        view_(module, function),
        answers_(answers),
        costs_(answers.size()) {
    for (const auto& delegate : delegates) estimates_.emplace_back(*delegate, calls, view_.abi());
  }

  void Run() {
    for (size_t i = 0; i < answers_.size(); ++i) {
      if (answers_[i].delegate < 0) continue;
      costs_[i] = CostsOf(i);
      comparable_ = comparable_ || costs_[i].known();
    }
    if (!comparable_) return;
    std::vector<Answer> as_claimed(answers_.begin(), answers_.end());
    for (const Schedule::Run& run : Partition(function_, as_claimed).runs)
      order_.insert(order_.end(), run.nodes.begin(), run.nodes.end());
    Choose();
  }

 private:
  enum State : uint8_t { kKernels, kDelegate };
  struct Costs {
    double kernel = FBX_NO_COST;
    double delegate = FBX_NO_COST;
    bool known() const { return kernel >= 0 && delegate >= 0; }
  };
  struct Path {
    double sum = 0;
    State from = kKernels;
  };
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  Costs CostsOf(size_t node) {
    Costs costs;
    costs.delegate = EstimatesOf(node).Node(node);
    if (costs.delegate < 0) return costs;
    const NodeView view(function_, *function_.nodes[node]);
    if (const auto kernel = ChooseKernel(registry_, function_, *function_.nodes[node], view))
      costs.kernel = CostOf(*kernel, calls_, *view.abi());
    return costs;
  }
  const Estimates& EstimatesOf(size_t node) const {
    return estimates_[static_cast<size_t>(answers_[node].delegate)];
  }

  // Returns the cost of the node there. One that moves data goes with its neighbors.
  double At(State state, size_t node) const {
    const Answer& answer = answers_[node];
    if (answer.delegate < 0) return state == kKernels ? 0 : kNever;
    if (costs_[node].known()) return state == kKernels ? costs_[node].kernel : costs_[node].delegate;
    return state == kKernels && !answer.joins ? kNever : 0;
  }

  // Returns the bytes that cross a border before the node; kNoNode: after the last one.
  uint64_t BytesInto(size_t node) const {
    return node == kNoNode ? BytesOf(function_, function_.outputs)
                           : BytesOf(function_, function_.nodes[node]->operands);
  }

  // Returns the cost of a change between two states. kNoNode: before the first node or after the last one.
  double Change(size_t before, State from, size_t node, State to, uint64_t bytes) const {
    const int left = from == kDelegate ? answers_[before].delegate : -1;
    const int entered = to == kDelegate ? answers_[node].delegate : -1;
    if (left == entered) return 0;
    double sum = 0;
    for (const int delegate : {left, entered})
      if (delegate >= 0) sum += estimates_[static_cast<size_t>(delegate)].Border(bytes);
    return sum;
  }

  Path Best(const std::array<Path, 2>& to_before, size_t before, size_t node, State to,
            uint64_t bytes) const {
    Path best{kNever};
    for (const State from : {kDelegate, kKernels}) {
      if (to_before[from].sum == kNever) continue;
      const double sum = to_before[from].sum + Change(before, from, node, to, bytes);
      if (sum < best.sum) best = {sum, from};
    }
    return best;
  }

  void Choose() {
    std::vector<std::array<Path, 2>> paths;
    std::array<Path, 2> last{Path{0}, Path{kNever}};
    size_t before = kNoNode;
    for (const size_t node : order_) {
      std::array<Path, 2> next;
      const uint64_t bytes = BytesInto(node);
      for (const State to : {kKernels, kDelegate}) {
        const double cost = At(to, node);
        next[to] = cost == kNever ? Path{kNever} : Best(last, before, node, to, bytes);
        next[to].sum += cost;
      }
      paths.push_back(last = next);
      before = node;
    }
    State state = Best(last, before, kNoNode, kKernels, BytesInto(kNoNode)).from;
    for (size_t i = order_.size(); i-- > 0;) {
      Settle(order_[i], state);
      state = paths[i][state].from;
    }
  }

  void Settle(size_t node, State state) {
    const Costs& costs = costs_[node];
    if (!costs.known()) return;
    Answer& answer = answers_[node];
    answer.estimated = {.delegate = delegates_[static_cast<size_t>(answer.delegate)]->name(),
                        .on_delegate = costs.delegate,
                        .on_kernels = costs.kernel,
                        .stays = state == kKernels};
    if (state == kKernels) answer.delegate = -1;
  }

  Registry& registry_;
  const Function& function_;
  const Instances delegates_;
  HostCalls& calls_;
  const GraphView view_;
  std::span<Answer> answers_;
  std::vector<Estimates> estimates_;  // by delegate
  std::vector<Costs> costs_;          // by node
  std::vector<size_t> order_;         // of execution, if all claims hold
  bool comparable_ = false;
};

}  // namespace

std::string ToString(const Answer& answer) {
  if (!answer.estimated) return answer.why;
  const Answer::Estimated& e = *answer.estimated;
  return answer.why + (answer.why.empty() ? "" : "; ") +
         fmt::format("{}: {}estimates {}, on kernels {}", e.delegate, e.stays ? "COST: " : "",
                     Text(e.on_delegate), Text(e.on_kernels));
}

double CostOf(const KernelRef& kernel, HostCalls& calls, const fbx_node& node) {
  const fbx_cost* const table = TableOf(*kernel.plugin);
  if (!FBX_HAS(table, kernel)) return FBX_NO_COST;
  HostCall& call = calls.For(*kernel.plugin);
  const InCall in(call, node);
  return Checked(table->kernel(call.abi(), kernel.kernel, &node));
}

double CostOf(const Module& module, const Part& part, HostCalls& calls) {
  const GraphView view(module, *part.function);
  const Estimates estimates(*part.delegate, calls, view.abi());
  double sum = estimates.Border(BytesOf(*part.function, part.function->inputs)) +
               estimates.Border(BytesOf(*part.function, part.function->outputs));
  for (size_t i = 0; i < part.function->nodes.size(); ++i) {
    const double cost = estimates.Node(i);
    if (cost < 0) return FBX_NO_COST;
    sum += cost;
  }
  return sum;
}

void Place(Registry& registry, const Module& module, const Function& function, Instances delegates,
           HostCalls& calls, std::span<Answer> answers) {
  const auto estimates = [](const auto& delegate) { return TableOf(delegate->plugin()) != nullptr; };
  if (std::ranges::none_of(delegates, estimates)) return;
  Placer(registry, module, function, delegates, calls, answers).Run();
}

}  // namespace fusebox::delegate
