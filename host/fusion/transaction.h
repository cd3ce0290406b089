// SPDX-License-Identifier: Apache-2.0
// A rewrite in progress: the fbx_builder that a rule talks to, and the replacement function it builds.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fusebox/abi/rule.h"
#include "host/graph/view.h"
#include "host/plugin/plugin.h"

namespace fusebox {

void FillBuilder(fbx_builder&);

class Transaction {
 public:
  Transaction(Registry& registry, const Function& caller, const Node& composite);
  ~Transaction();
  const fbx_builder* abi() const { return &table_.builder; }

  // What of the steps so far could not be done; empty: they all were.
  std::string Refused();
  // After the rule returned OK: every result set, types as the composite's, all ops known, the graph sound.
  // What is wrong is said as the rule's fault.
  Status Finish();
  // The module whose first function is the replacement.
  std::unique_ptr<Module> Take() { return std::move(module_); }

 private:
  struct Table {
    fbx_builder builder;
    Transaction* self;
  };
  friend struct BuilderFunctions;

  Status Flush();  // infers the node added last, now that its attributes are complete
  Status Infer(const Node&);
  fbx_value Add(ValueId id);
  void Refuse(std::string why);
  bool KnownValue(fbx_value v) const { return v < static_cast<fbx_value>(function_->value_count()); }
  Node* Last();

  Registry& registry_;
  std::unique_ptr<Module> module_;
  Function* function_;
  std::vector<Type> result_types_;
  std::vector<std::shared_ptr<const Quant>> result_quants_;
  std::vector<ValueId> results_;
  Node* pending_ = nullptr;
  std::vector<Node*>
      unscaled_;         // inferred by Finish: their results may be the composite's, whose scales they need
  std::string failure_;  // the first one
  std::vector<std::unique_ptr<TensorView>> shown_;
  std::vector<std::unique_ptr<std::byte[]>> constants_;
  std::vector<std::pair<ValueId, size_t>> constant_of_;  // value, index into constants_
  Table table_;
};

}  // namespace fusebox
