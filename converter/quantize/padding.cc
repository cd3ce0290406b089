// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ranges>
#include <set>

#include "converter/quantize/ops8.h"
#include "converter/quantize/quantize.h"

namespace fusebox::converter::quantize {
namespace {

// Padding that makes the range this much wider is cut off. A smaller part stays, because samples other than
// the calibration data may use it.
constexpr double kMuch = 4;

class PaddingCut {
 public:
  PaddingCut(const Function& f, Ranges& ranges) : f_(f), uses_(f), ranges_(ranges) {}

  void Run() {
    for (const auto& node : f_.nodes | std::views::reverse) {
      if (ProperResultCount(*node) != 1) continue;
      const ValueId result = node->results[0];
      const auto range = ranges_.find(result);
      if (range == ranges_.end()) continue;
      if (node->is(Op::kMaxPool2D)) From(*node, range->second.min);
      else if (KeepsValues(*node) && cut_.contains(result)) From(*node, range->second.min);
    }
  }

 private:
  static bool KeepsValues(const Node& node) {
    return node.is(Op::kPadV2) || (Role(node) == Quantizes::kSame && Has(node.op, kMovesData));
  }

  // Values of the node's operand below `low` do not count.
  void From(const Node& node, float low) {
    const ValueId v = node.operands[DataOperand(node)];
    const auto found = ranges_.find(v);
    const auto others = [&](const Uses::Reader& use) { return use.node != &node; };
    if (found == ranges_.end() || std::ranges::any_of(uses_.readers(v), others)) return;
    Range& range = found->second;
    const double all = static_cast<double>(range.max) - range.min;
    if (!(all > kMuch * (static_cast<double>(range.max) - low))) return;
    range.min = low;
    // Kernels that compute the value in integers require all of it to fit.
    const Node* const from = uses_.producer(v);
    if (from && (Role(*from) == Quantizes::kNone || KeepsValues(*from)))
      range.largest = std::max(-low, range.max);
    cut_.insert(v);
  }

  const Function& f_;
  const Uses uses_;
  Ranges& ranges_;
  std::set<ValueId> cut_;
};

}  // namespace

void CutPadding(const Function& f, Ranges& ranges) { PaddingCut(f, ranges).Run(); }

}  // namespace fusebox::converter::quantize
