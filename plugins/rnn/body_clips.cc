// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/body_clips.h"

#include <map>
#include <set>
#include <string>

namespace fusebox::rnn {
namespace {

constexpr const char* kCode = "CLIP";

// A minimum or maximum with a constant: value -> clipped.
struct Bound {
  bool upper = false;
  double at = 0;
  fbx_value value = FBX_NO_VALUE, clipped = FBX_NO_VALUE;
};

bool IsScalar(const fbx_tensor* t) {
  const Tensor tensor(t);
  return tensor.is_const() && tensor.has_value() && tensor.dtype() == FBX_F32 && tensor.is_static() &&
         tensor.count() == 1;
}

class Body {
 public:
  explicit Body(const fbx_graph* graph) : graph_(graph) {
    for (uint32_t i = 0; i < graph->node_count; ++i) {
      const fbx_value* ids = nullptr;
      const fbx_node* const node = graph->node(graph, i, &ids);
      const std::string_view op = view(node->op);
      if (node->operand_count == 2 && (op == "MINIMUM" || op == "MAXIMUM")) AddBound(*node, ids);
      if (op == "RESHAPE" && node->operand_count > 0) moved_[ids[node->operand_count]] = ids[0];
    }
  }

  BodyClips Clips() const {
    BodyClips clips;
    std::set<fbx_value> paired;
    for (const auto& [clipped, outer] : bounds_) {
      const auto inner = bounds_.find(outer.value);
      if (inner == bounds_.end() || inner->second.upper == outer.upper) continue;
      paired.insert(clipped);
      paired.insert(inner->first);
      Add(clips, outer.upper ? outer.at : inner->second.at, outer.upper ? inner->second.at : outer.at,
          clipped == Output());
    }
    if (paired.size() != bounds_.size()) throw Reject{kCode, "the body clips a value on one side only"};
    return clips;
  }

 private:
  void AddBound(const fbx_node& node, const fbx_value* ids) {
    for (const uint32_t constant : {0u, 1u}) {
      const fbx_tensor* const t = node.operands[constant];
      if (!IsScalar(t)) continue;
      bounds_[ids[2]] = {view(node.op) == "MINIMUM", static_cast<double>(Tensor(t).data<const float>()[0]),
                         ids[1 - constant], ids[2]};
    }
  }

  static void Add(BodyClips& clips, double high, double low, bool of_output) {
    if (!(high > 0) || low != -high)
      throw Reject{kCode, "the body clips a value to [" + std::to_string(low) + ", " + std::to_string(high) +
                              "], which is not symmetric"};
    double& clip = of_output ? clips.output : clips.inner;
    if (clip != 0 && clip != high) throw Reject{kCode, "the body clips by different bounds"};
    clip = high;
  }

  fbx_value Output() const {
    if (graph_->output_count == 0) return FBX_NO_VALUE;
    fbx_value value = graph_->outputs[0];
    for (auto from = moved_.find(value); from != moved_.end(); from = moved_.find(value))
      value = from->second;
    return value;
  }

  const fbx_graph* graph_;
  std::map<fbx_value, Bound> bounds_;     // by clipped
  std::map<fbx_value, fbx_value> moved_;  // result of a reshape -> what it reshapes
};

}  // namespace

BodyClips ClipsOf(const Site& site) { return Body(site.body()).Clips(); }

}  // namespace fusebox::rnn
