// SPDX-License-Identifier: Apache-2.0
#include "host/fusion/transaction.h"

#include "host/eval/eval.h"
#include "host/fusion/site.h"

namespace fusebox {

Transaction::Transaction(Registry& registry, const Function& caller, const Node& composite)
    : registry_(registry), module_(std::make_unique<Module>()) {
  function_ = &module_->Add("replacement");
  for (ValueId v : composite.operands) {
    if (v == kNoValue) {
      function_->AddInput(Type{});
      continue;
    }
    const Value& value = caller.value(v);
    function_->value(function_->AddInput(value.type, value.name)).quant = value.quant;
  }
  for (ValueId v : composite.results) result_types_.push_back(v == kNoValue ? Type{} : caller.value(v).type);
  results_.assign(composite.results.size(), kNoValue);
  table_.self = this;
  FillBuilder(table_.builder);
}

Transaction::~Transaction() = default;

void Transaction::Refuse(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
}

Node* Transaction::Last() {
  if (!pending_) Refuse("attributes were set without a node");
  return pending_;
}

Status Transaction::Flush() {
  if (!pending_) return {};
  Node& node = *pending_;
  pending_ = nullptr;
  Status sound = CheckEmitted(registry_, node);
  if (sound) sound = InferNode(registry_, *module_, *function_, node);
  if (!sound) Refuse(sound.error().message);
  return sound;
}

fbx_value Transaction::Add(ValueId id) {
  return failure_.empty() ? static_cast<fbx_value>(id) : FBX_NO_VALUE;
}

std::string Transaction::Refused() {
  (void)Flush();
  return failure_;
}

Status Transaction::Finish() {
  (void)Flush();
  if (!failure_.empty()) return Invalid(failure_);
  for (auto& [value, index] : constant_of_) {
    Value& v = function_->value(value);
    const size_t bytes = *ByteSize(v.type);
    v.data = Buffer::Copy({constants_[index].get(), bytes});
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    if (results_[i] == kNoValue) return Invalid("result " + std::to_string(i) + " was not set");
    const Type& is = function_->value(results_[i]).type;
    if (!Compatible(is, result_types_[i])) {
      return Invalid("result " + std::to_string(i) + " is " + ToString(is) + ", the composite gives " +
                     ToString(result_types_[i]));
    }
  }
  function_->outputs = results_;
  return Verify(*module_);
}

}  // namespace fusebox
