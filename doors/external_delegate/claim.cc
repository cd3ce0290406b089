// SPDX-License-Identifier: Apache-2.0
#include "doors/external_delegate/claim.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "doors/builtin_data/int_arrays.h"
#include "doors/builtin_data/layouts.h"

namespace fusebox::external_delegate {

using builtin_data::NewIntArray;
using builtin_data::ToVector;
namespace {

constexpr int kCustomCode = 32;

struct GraphNode {
  int index;
  TfLiteNode* node;
  TfLiteRegistration* registration;
};

std::vector<GraphNode> NodesOf(TfLiteContext* context) {
  TfLiteIntArray* plan = nullptr;
  if (context->GetExecutionPlan(context, &plan) != kTfLiteOk) return {};
  const std::vector<int> order = ToVector(plan);
  std::vector<GraphNode> out;
  for (const int index : order) {
    GraphNode node{index, nullptr, nullptr};
    if (context->GetNodeAndRegistration(context, index, &node.node, &node.registration) == kTfLiteOk)
      out.push_back(node);
  }
  return out;
}

bool Holds(const TfLiteIntArray* array, int value) {
  return array != nullptr &&
         std::find(array->data, array->data + array->size, value) != array->data + array->size;
}

class Chooser {
 public:
  Chooser(TfLiteContext* context, const Settings& settings)
      : context_(context), settings_(settings), graph_(NodesOf(context)) {}

  Claim Run() {
    for (const GraphNode& node : graph_) {
      const std::string why = Refusal(node);
      if (why.empty()) claim_.nodes.push_back(node.index);
      else Explain(node.index, why);
    }
    while (!claim_.nodes.empty() && !OpenAll()) {
    }
    for (const int node : claim_.nodes) Explain(node, "");
    return std::move(claim_);
  }

 private:
  // Returns why a node is left to the runtime before anything is tried; empty: it is not.
  std::string Refusal(const GraphNode& at) const {
    if (at.node->delegate != nullptr) return "another delegate runs it";
    const std::string op = OpName(*at.registration);
    const bool custom = at.registration->builtin_code == kCustomCode;
    const bool recurrent = IsRecurrent(*at.registration);
    const bool selected =
        settings_.claim.empty() ? settings_.all || custom || recurrent : settings_.claim.contains(op);
    if (op.empty() || !selected) return "the options do not select it";
    if (!custom && builtin_data::Find(op) == nullptr) return "its options cannot be read";
    const std::string state = StateRefusal(at);
    if (!state.empty()) return state;
    return custom ? Trial(at.index) : "";
  }

  // The runtime orders nodes by the tensors that they read. It does not see that one reads a state after
  // another has updated it.
  std::string StateRefusal(const GraphNode& at) const {
    for (const int state : StatesOf(*at.node, *at.registration)) {
      for (const GraphNode& other : graph_) {
        if (other.index != at.index && Holds(other.node->inputs, state))
          return "another node reads its state";
      }
    }
    return "";
  }

  std::unique_ptr<Partition> Open(const Part& part) const {
    auto partition = std::make_unique<Partition>(context_, part, settings_);
    partition->Plan(context_);
    return partition;
  }

  // Returns why a node alone cannot be run; empty: it can.
  std::string Trial(int index) const {
    TfLiteNode* node = nullptr;
    TfLiteRegistration* registration = nullptr;
    context_->GetNodeAndRegistration(context_, index, &node, &registration);
    Part part{{index}, {}, ToVector(node->outputs)};
    for (const int input : ToVector(node->inputs)) {
      if (input >= 0 && std::ranges::find(part.inputs, input) == part.inputs.end())
        part.inputs.push_back(input);
    }
    try {
      Open(part);
      return "";
    } catch (const std::exception& e) {
      return e.what();
    }
  }

  std::vector<Part> Preview() const {
    TfLiteIntArray* nodes = NewIntArray(claim_.nodes);
    TfLiteDelegateParams* parts = nullptr;
    int count = 0;
    const TfLiteStatus status = context_->PreviewDelegatePartitioning(context_, nodes, &parts, &count);
    std::free(nodes);
    if (status != kTfLiteOk) throw std::runtime_error("the runtime cannot partition the graph");
    std::vector<Part> out;
    for (int i = 0; i < count; ++i) {
      out.push_back({ToVector(parts[i].nodes_to_replace), ToVector(parts[i].input_tensors),
                     ToVector(parts[i].output_tensors)});
    }
    return out;
  }

  // Returns false if nodes were dropped, which changes the partitions.
  bool OpenAll() {
    std::map<std::vector<int>, std::unique_ptr<Partition>> partitions;
    bool complete = true;
    for (Part& part : Preview()) {
      auto& partition = partitions[part.nodes];
      if (const auto known = claim_.partitions.find(part.nodes); known != claim_.partitions.end()) {
        partition = std::move(known->second);
        continue;
      }
      try {
        partition = Open(part);
      } catch (const std::exception& e) {
        partitions.erase(part.nodes);
        Drop(part.nodes, e.what());
        complete = false;
      }
    }
    claim_.partitions = std::move(partitions);
    return complete;
  }

  // Drops the nodes that cannot run alone; all if each can.
  void Drop(const std::vector<int>& nodes, const std::string& why) {
    std::map<int, std::string> dropped;
    for (const int node : nodes) {
      std::string reason = nodes.size() > 1 ? Trial(node) : why;
      if (!reason.empty()) dropped.emplace(node, std::move(reason));
    }
    if (dropped.empty()) {
      for (const int node : nodes) dropped.emplace(node, why);
    }
    for (const auto& [node, reason] : dropped) {
      Explain(node, reason);
      std::erase(claim_.nodes, node);
    }
  }

  void Explain(int index, const std::string& why) const {
    if (!settings_.explain) return;
    TfLiteNode* node = nullptr;
    TfLiteRegistration* registration = nullptr;
    context_->GetNodeAndRegistration(context_, index, &node, &registration);
    std::fprintf(stderr, "fusebox: node %d %s: %s\n", index, OpName(*registration).c_str(),
                 why.empty() ? "claimed" : why.c_str());
  }

  TfLiteContext* context_;
  const Settings& settings_;
  const std::vector<GraphNode> graph_;
  Claim claim_;
};

}  // namespace

Claim ChooseNodes(TfLiteContext* context, const Settings& settings) {
  return Chooser(context, settings).Run();
}

}  // namespace fusebox::external_delegate
