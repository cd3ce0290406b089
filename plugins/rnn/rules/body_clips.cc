// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/rules/body_clips.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace fusebox::rnn {
namespace {

constexpr const char* kCode = "CLIP";

// A minimum or maximum with a constant: value -> clipped.
struct Bound {
  bool upper = false;
  double at = 0;
  fbx_value value = FBX_NO_VALUE;
  fbx_value clipped = FBX_NO_VALUE;
};

// The node that produces a value.
struct Producer {
  std::string_view op;
  std::vector<fbx_value> from;
};

bool IsScalar(Tensor t) {
  return t.is_const() && t.has_value() && t.dtype() == FBX_F32 && t.is_static() && t.count() == 1;
}

class Body {
 public:
  explicit Body(const Graph& graph) : outputs_(graph.outputs()) {
    for (uint32_t i = 0; i < graph.node_count(); ++i) {
      const GraphNode node = graph.node(i);
      if (node.in_count() == 2 && (node.op() == "MINIMUM" || node.op() == "MAXIMUM")) AddBound(node);
      Producer by{node.op(), {}};
      for (uint32_t o = 0; o < node.in_count(); ++o) by.from.push_back(node.in_id(o));
      for (uint32_t r = 0; r < node.out_count(); ++r) producers_[node.out_id(r)] = by;
    }
  }

  BodyClips Clips() const {
    BodyClips clips;
    std::set<fbx_value> paired;
    const fbx_value output = Result(0);
    const fbx_value cell = Cell();
    for (const auto& [clipped, outer] : bounds_) {
      const auto inner = bounds_.find(outer.value);
      if (inner == bounds_.end() || inner->second.upper == outer.upper) continue;
      paired.insert(clipped);
      paired.insert(inner->first);
      if (clipped != output && clipped != cell)
        throw Reject{kCode, "the body clips something that is neither the cell state nor the output"};
      (clipped == output ? clips.output : clips.inner) =
          Symmetric(outer.upper ? outer.at : inner->second.at, outer.upper ? inner->second.at : outer.at);
    }
    if (paired.size() != bounds_.size()) throw Reject{kCode, "the body clips a value on one side only"};
    return clips;
  }

 private:
  void AddBound(const GraphNode& node) {
    for (const uint32_t constant : {0u, 1u}) {
      const Tensor t = node.in(constant);
      if (!IsScalar(t)) continue;
      bounds_[node.out_id(0)] = {node.op() == "MINIMUM", static_cast<double>(t.data<const float>()[0]),
                                 node.in_id(1 - constant), node.out_id(0)};
    }
  }

  static double Symmetric(double high, double low) {
    if (!(high > 0) || low != -high)
      throw Reject{kCode, "the body clips a value to [" + std::to_string(low) + ", " + std::to_string(high) +
                              "], which is not symmetric"};
    return high;
  }

  const Producer* ProducerOf(fbx_value value) const {
    const auto found = producers_.find(value);
    return found == producers_.end() ? nullptr : &found->second;
  }

  fbx_value SkipReshapes(fbx_value value) const {
    for (const Producer* by = ProducerOf(value); by != nullptr && by->op == "RESHAPE"; by = ProducerOf(value))
      value = by->from[0];
    return value;
  }

  fbx_value Result(uint32_t i) const {
    return i < outputs_.size() ? SkipReshapes(outputs_[i]) : FBX_NO_VALUE;
  }

  // The product of output gate and tanh. Projection and clip may follow it before the output.
  const Producer* GatedOutput() const {
    static constexpr std::string_view kBetween[] = {"RESHAPE", "TRANSPOSE", "FULLY_CONNECTED",
                                                    "BATCH_MATMUL"};
    const Producer* by = ProducerOf(Result(0));
    for (fbx_value value = Result(0); by != nullptr && by->op != "MUL"; by = ProducerOf(value)) {
      if (const auto bound = bounds_.find(value); bound != bounds_.end()) {
        value = bound->second.value;
      } else if (std::ranges::find(kBetween, by->op) != std::end(kBetween)) {
        value = by->from[0];
      } else {
        return nullptr;
      }
    }
    return by;
  }

  // The new cell state: the operand of the tanh before the output and, if the cell has states, the second
  // result. Ops clip it before both.
  fbx_value Cell() const {
    const Producer* const product = GatedOutput();
    if (product == nullptr) return FBX_NO_VALUE;
    for (const fbx_value factor : product->from) {
      const Producer* const by = ProducerOf(SkipReshapes(factor));
      if (by == nullptr || by->op != "TANH") continue;
      const fbx_value cell = SkipReshapes(by->from[0]);
      if (outputs_.size() < 2 || cell == Result(1)) return cell;
    }
    return FBX_NO_VALUE;
  }

  std::span<const fbx_value> outputs_;
  std::map<fbx_value, Bound> bounds_;        // by clipped
  std::map<fbx_value, Producer> producers_;  // by result
};

}  // namespace

BodyClips ClipsOf(const Graph& body) { return Body(body).Clips(); }

}  // namespace fusebox::rnn
