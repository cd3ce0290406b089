// SPDX-License-Identifier: Apache-2.0
// Executes nodes in waves: all ready nodes without a delegate, then all ready nodes of one delegate, and so
// on. A delegate's wave is a partition. It is convex: its inputs ran before, its readers run later. It is
// maximal for one delegate: a node in a later wave depends on an outside node that depends on this wave.
#include <algorithm>
#include <numeric>
#include <queue>

#include "host/delegate/delegate.h"

namespace fusebox::delegate {
namespace {

using Numbers = std::priority_queue<size_t, std::vector<size_t>, std::greater<>>;

bool HasEffects(const Function& function, const Node& node) {
  if (Info(node.op).effects != Effects::kPure) return true;
  return std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId id) {
    return id != kNoValue && function.value(id).is_variable && !function.value(id).is_const();
  });
}

class Scheduler {
 public:
  Scheduler(const Function& function, std::span<Answer> answers)
      : function_(function),
        answers_(answers),
        next_(function.nodes.size()),
        waits_for_(function.nodes.size()),
        defined_(static_cast<size_t>(function.value_count()), kNoNode),
        read_(defined_.size()) {
    int delegates = 0;
    for (const Answer& answer : answers) delegates = std::max(delegates, answer.delegate + 1);
    ready_.resize(static_cast<size_t>(delegates) + 1);
    Connect();
    DelayUnpacking();
  }

  Schedule Run() {
    for (size_t i = 0; i < next_.size(); ++i) {
      if (waits_for_[i] == 0) Queue(i).push(i);
    }
    for (;;) {
      while (!ready_[0].empty()) {
        const size_t node = Take(ready_[0]);
        schedule_.runs.push_back({-1, {node}});
      }
      // The delegate with the earliest ready node comes first.
      Numbers* first = nullptr;
      for (Numbers& queue : ready_) {
        if (!queue.empty() && (first == nullptr || queue.top() < first->top())) first = &queue;
      }
      if (first == nullptr) break;
      std::vector<size_t> wave;
      while (!first->empty()) wave.push_back(Take(*first));
      std::sort(wave.begin(), wave.end());
      AddWave(std::move(wave), static_cast<int>(first - ready_.data()) - 1);
    }
    return std::move(schedule_);
  }

 private:
  Numbers& Queue(size_t node) { return ready_[static_cast<size_t>(answers_[node].delegate) + 1]; }

  void Connect() {
    size_t last_effect = kNoNode;
    for (size_t i = 0; i < function_.nodes.size(); ++i) {
      const Node& node = *function_.nodes[i];
      for (const ValueId id : node.operands) {
        if (id == kNoValue) continue;
        After(defined_[static_cast<size_t>(id)], i);
        read_[static_cast<size_t>(id)] = true;
      }
      if (HasEffects(function_, node)) {
        After(last_effect, i);
        last_effect = i;
      }
      for (const ValueId id : node.results) {
        if (id != kNoValue) defined_[static_cast<size_t>(id)] = i;
      }
    }
    for (const ValueId id : function_.outputs) read_[static_cast<size_t>(id)] = true;
  }

  // Nodes that only unpack constants (weights stored as f16) are ready at once. They go into the partition of
  // their reader, so that the delegate sees the constants.
  void DelayUnpacking() {
    std::vector<bool> unpacks(next_.size());
    for (size_t i = 0; i < next_.size(); ++i) {
      const auto& operands = function_.nodes[i]->operands;
      unpacks[i] = answers_[i].delegate >= 0 && answers_[i].joins && waits_for_[i] == 0 &&
                   !next_[i].empty() && std::all_of(operands.begin(), operands.end(), [&](ValueId id) {
                     return id == kNoValue || function_.value(id).is_const();
                   });
    }
    for (size_t i = 0; i < next_.size(); ++i) {
      if (!unpacks[i]) continue;
      // The dependencies of the first reader cannot depend on this node.
      const size_t reader = *std::min_element(next_[i].begin(), next_[i].end());
      if (answers_[reader].delegate != answers_[i].delegate) continue;
      for (const ValueId id : function_.nodes[reader]->operands) {
        const size_t before = id == kNoValue ? kNoNode : defined_[static_cast<size_t>(id)];
        if (before != kNoNode && !unpacks[before]) After(before, i);
      }
    }
  }

  void After(size_t before, size_t node) {
    if (before == kNoNode) return;
    next_[before].push_back(node);
    ++waits_for_[node];
  }

  size_t Take(Numbers& queue) {
    const size_t node = queue.top();
    queue.pop();
    for (const size_t next : next_[node]) {
      if (--waits_for_[next] == 0) Queue(next).push(next);
    }
    return node;
  }

  // Kernels run connected components that hold only nodes accepted with kJoin, before the rest.
  void AddWave(std::vector<size_t> wave, int delegate) {
    std::vector<size_t> root(wave.size());
    std::iota(root.begin(), root.end(), size_t{0});
    const auto find = [&](size_t i) {
      while (root[i] != i) i = root[i] = root[root[i]];
      return i;
    };
    for (size_t i = 0; i < wave.size(); ++i) {
      for (const ValueId id : function_.nodes[wave[i]]->operands) {
        if (id == kNoValue) continue;
        const auto at = std::lower_bound(wave.begin(), wave.end(), defined_[static_cast<size_t>(id)]);
        if (at != wave.end() && *at == defined_[static_cast<size_t>(id)])
          root[find(i)] = find(static_cast<size_t>(at - wave.begin()));
      }
    }
    std::vector<bool> worth(wave.size());
    for (size_t i = 0; i < wave.size(); ++i) {
      if (!answers_[wave[i]].joins) worth[find(i)] = true;
    }
    Schedule::Run run{delegate, {}};
    std::vector<size_t> dead;
    for (size_t i = 0; i < wave.size(); ++i) {
      if (Dead(wave[i])) {
        dead.push_back(wave[i]);
        Leave(wave[i], "its results are not read");
      } else if (worth[find(i)]) {
        run.nodes.push_back(wave[i]);
      } else {
        Leave(wave[i], "alone it is not worth a partition");
        schedule_.runs.push_back({-1, {wave[i]}});
      }
    }
    if (!run.nodes.empty()) schedule_.runs.push_back(std::move(run));
    for (const size_t node : dead) schedule_.runs.push_back({-1, {node}});
  }

  void Leave(size_t node, std::string_view why) {
    Answer& answer = answers_[node];
    answer.delegate = -1;
    if (!answer.why.empty()) answer.why += "; ";
    answer.why += why;
  }

  bool Dead(size_t node) const {
    const auto& results = function_.nodes[node]->results;
    return std::none_of(results.begin(), results.end(),
                        [&](ValueId id) { return id != kNoValue && read_[static_cast<size_t>(id)]; });
  }

  const Function& function_;
  std::span<Answer> answers_;
  std::vector<std::vector<size_t>> next_;
  std::vector<size_t> waits_for_;
  std::vector<size_t> defined_;  // by value: index of its node
  std::vector<bool> read_;       // by value: by a node, or as an output
  std::vector<Numbers> ready_;   // without delegate, of delegate 0, ...
  Schedule schedule_;
};

}  // namespace

Schedule Partition(const Function& function, std::span<Answer> answers) {
  return Scheduler(function, answers).Run();
}

}  // namespace fusebox::delegate
