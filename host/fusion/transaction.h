// SPDX-License-Identifier: Apache-2.0
// Transaction: a rewrite in progress. Implements the fbx_builder and holds the replacement function.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fusebox/abi/rule.h"
#include "host/graph/view.h"
#include "host/plugin/registry.h"

namespace fusebox {

void FillBuilder(fbx_builder&);

class Transaction {
 public:
  Transaction(Registry& registry, const Function& caller, const Node& composite);
  ~Transaction();
  const fbx_builder* abi() const { return &table_.builder; }

  // The first failed step; empty: none. Throws what a function of the builder threw.
  std::string Refused();
  // After the rule returned OK: requires every result set, the types of the composite, known ops, a valid
  // graph. Errors are errors of the rule.
  Status Finish();
  // The module; its first function is the replacement.
  std::unique_ptr<Module> Take() { return std::move(module_); }

 private:
  struct Table {
    fbx_builder builder;
    Transaction* self;
  };
  friend struct BuilderFunctions;

  Status Flush();  // infers the last node; its attributes are complete
  Status Infer(const Node&);
  fbx_value Add(ValueId id);
  void Refuse(std::string why);
  Status InferLast();
  Status FinishConstants();
  Status CheckVariables();  // drops initial values that are zero
  bool KnownValue(fbx_value v) const { return v < static_cast<fbx_value>(function_->value_count()); }
  Node* Last();
  Attrs* OpenAttrs();  // of the innermost open map, else of the last node

  Registry& registry_;
  std::unique_ptr<Module> module_;
  Function* function_;
  std::vector<ValueId> operands_;
  std::vector<Type> result_types_;
  std::vector<std::shared_ptr<const Quant>> result_quants_;
  std::vector<ValueId> results_;
  Node* pending_ = nullptr;
  std::vector<std::pair<std::string, Attrs>> maps_;  // of the last node, open, outermost first
  std::vector<Node*>
      unscaled_;         // inferred by Finish: their results may be the composite's, whose scales they need
  std::string failure_;  // the first one
  bool no_memory_ = false;
  std::vector<std::unique_ptr<TensorView>> shown_;
  // A constant that the rule fills.
  struct Filled {
    ValueId value;
    std::unique_ptr<std::byte[]> memory;
    size_t bytes;
    std::optional<size_t> read = {};  // hash of the contents that folding has read
    size_t Hash() const;
  };
  std::vector<Filled> filled_;
  Table table_;
};

}  // namespace fusebox
