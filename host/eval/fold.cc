// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "host/base/cancel.h"
#include "host/base/log.h"
#include "host/eval/eval.h"
#include "host/eval/moved.h"
#include "host/graph/cost.h"

namespace fusebox {
namespace {

// Number of readers of each value, updated as nodes are removed.
std::vector<int> CountReads(const Function& function) {
  std::vector<int> reads(static_cast<size_t>(function.value_count()));
  for (const auto& node : function.nodes) {
    for (const ValueId id : node->operands) {
      if (id != kNoValue) ++reads[static_cast<size_t>(id)];
    }
  }
  for (const ValueId id : function.outputs) ++reads[static_cast<size_t>(id)];
  return reads;
}

class Folder {
 public:
  Folder(Registry& registry, const Module& module, Function& function, const FoldOptions& options)
      : registry_(registry),
        module_(module),
        function_(function),
        options_(options),
        reads_(CountReads(function)),
        calls_(options.services ? *options.services : SerialServices()) {}

  int Run() {
    int folded = 0;
    for (auto& node : function_.nodes) {
      if (!CheckCancelled()) break;
      if (!FoldNode(*node)) continue;
      ReleaseOperands(*node);
      node.reset();
      ++folded;
    }
    function_.Sweep();
    return folded;
  }

  // Makes the results of the node constant; false: it stays.
  bool FoldNode(const Node& node) {
    if (Info(node.op).effects != Effects::kPure || Has(node.op, kHost) || node.results.empty()) return false;
    auto values = Value(node);
    if (!values || !Affordable(node, *values)) return false;
    Replace(node, *std::move(values));
    return true;
  }

 private:
  std::optional<std::vector<Tensor>> Value(const Node& node) {
    if (node.is(Op::kShape) || node.is(Op::kRank)) {
      auto value = ShapeValue(node, function_.value(node.operands[0]).type.shape,
                              function_.value(node.results[0]).type.dtype);
      if (!value) return std::nullopt;
      return std::vector<Tensor>{*std::move(value)};
    }
    std::vector<Tensor> operands;
    for (const ValueId id : node.operands) {
      if (id == kNoValue) {
        operands.emplace_back();
        continue;
      }
      const fusebox::Value& value = function_.value(id);
      if (!value.is_const()) return std::nullopt;
      operands.push_back({value.type, value.data});
    }
    if (!MayFit(node)) return std::nullopt;
    auto values = Compute(node, operands);
    calls_.DropDiags();
    if (values) return *std::move(values);
    Log("fold").debug("{}: {}", Describe(function_, node), values.error().message);
    return std::nullopt;
  }

  Result<std::vector<Tensor>> Compute(const Node& node, std::span<const Tensor> operands) {
    if (MovesUnscaled(function_, node)) return EvaluateUnscaled(registry_, calls_, function_, node, operands);
    FUSEBOX_ASSIGN(const KernelRef kernel, ChooseKernel(registry_, function_, node));
    return Evaluate(kernel, calls_, function_, node, operands);
  }

  // Limit of the results' bytes.
  int64_t Budget(const Node& node) const {
    int64_t budget = options_.max_growth;
    for (const ValueId id : node.operands) {
      if (id != kNoValue) budget += static_cast<int64_t>(function_.value(id).data.size());
    }
    return budget;
  }

  bool Affordable(const Node& node, const std::vector<Tensor>& values) const {
    int64_t size = 0;
    for (const Tensor& value : values) size += static_cast<int64_t>(value.data.size());
    return size <= Budget(node);
  }

  // Checked before computing: a few bytes of a file may request terabytes, and some megabytes hours.
  bool MayFit(const Node& node) {
    bool known = true;
    for (const ValueId id : node.results)
      known = known && (id == kNoValue || function_.value(id).type.shape.is_static());
    if (!known && !InferNode(registry_, module_, function_, node)) return false;
    constexpr uint64_t kMostWork = uint64_t{1} << 34;  // seconds
    if (ArithmeticOps(function_, node).value_or(0) > kMostWork) return false;
    const int64_t budget = Budget(node);
    int64_t size = 0;
    for (const ValueId id : node.results) {
      if (id == kNoValue) continue;
      const Type& type = function_.value(id).type;
      if (type.dtype == DType::kString) return false;  // the shape does not determine the bytes
      if (!type.shape.is_static()) continue;
      const auto bytes = ByteSize(type);
      if (!bytes || static_cast<int64_t>(*bytes) > budget - size) return false;
      size += static_cast<int64_t>(*bytes);
    }
    return true;
  }

  void Replace(const Node& node, std::vector<Tensor> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (node.results[i] == kNoValue) continue;
      fusebox::Value& value = function_.value(node.results[i]);
      value.type = std::move(values[i].type);
      value.data = std::move(values[i].data);
    }
  }

  void ReleaseOperands(const Node& node) {
    for (const ValueId id : node.operands) {
      // No readers left: frees the memory now, not in Compact().
      if (id == kNoValue || --reads_[static_cast<size_t>(id)] > 0) continue;
      function_.value(id).data.Release();
      function_.value(id).data = Buffer();
    }
  }

  Registry& registry_;
  const Module& module_;
  Function& function_;
  const FoldOptions options_;
  std::vector<int> reads_;
  HostCalls calls_;
};

}  // namespace

Result<int> Fold(Registry& registry, Module& module, Function& function, const FoldOptions& options) {
  function.Sweep();
  const int dead = RemoveDead(function);
  return dead + Folder(registry, module, function, options).Run();
}

void FoldLast(Registry& registry, Module& module, Function& function) {
  if (Folder(registry, module, function, {}).FoldNode(*function.nodes.back())) function.nodes.pop_back();
}

int RemoveDead(Function& function) {
  function.Sweep();
  std::vector<bool> live(static_cast<size_t>(function.value_count()));
  for (const ValueId id : function.outputs) live[static_cast<size_t>(id)] = true;
  int removed = 0;
  for (auto node = function.nodes.rbegin(); node != function.nodes.rend(); ++node) {
    const Effects effects = Info((*node)->op).effects;
    bool needed = effects == Effects::kStateful || effects == Effects::kControl;
    for (const ValueId id : (*node)->results)
      needed = needed || (id != kNoValue && live[static_cast<size_t>(id)]);
    if (!needed) {
      node->reset();
      ++removed;
      continue;
    }
    for (const ValueId id : (*node)->operands) {
      if (id != kNoValue) live[static_cast<size_t>(id)] = true;
    }
  }
  function.Sweep();
  return removed;
}

}  // namespace fusebox
