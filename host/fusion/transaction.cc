// SPDX-License-Identifier: Apache-2.0
#include "host/fusion/transaction.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "host/eval/eval.h"
#include "host/eval/moved.h"
#include "host/eval/zero.h"
#include "host/fusion/site.h"

namespace fusebox {
namespace {

// Returns whether kernels may decline a node because the scales of its results are not set yet.
bool LacksScales(const Function& f, const Node& node) {
  if (MovesElements(node.op)) return false;
  const auto quantized = [&](ValueId v) {
    return v != kNoValue && (f.value(v).quant || f.value(v).type.dtype == DType::kNone);
  };
  return std::ranges::any_of(node.operands, quantized);
}

// The zero points of a file may be fewer than its scales.
int64_t ZeroPoint(const Quant& quant, size_t i) {
  const size_t at = quant.zero_points.size() == 1 ? 0 : i;
  return at < quant.zero_points.size() ? quant.zero_points[at] : 0;
}

bool SameScales(const Quant& a, const Quant& b) {
  if (a.scales != b.scales || a.block_size != b.block_size) return false;
  for (size_t i = 0; i < a.scales.size(); ++i)
    if (ZeroPoint(a, i) != ZeroPoint(b, i)) return false;
  return a.scales.size() < 2 || a.axis == b.axis;
}

}  // namespace

Transaction::Transaction(Registry& registry, const Function& caller, const Node& composite)
    : registry_(registry), module_(std::make_unique<Module>()) {
  function_ = &module_->Add("replacement");
  operands_ = AddOperands(*function_, caller, composite);
  for (ValueId v : composite.results) {
    result_types_.push_back(v == kNoValue ? Type{} : caller.value(v).type);
    result_quants_.push_back(v == kNoValue ? nullptr : caller.value(v).quant);
  }
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

Attrs* Transaction::OpenAttrs() {
  Node* const node = Last();
  if (!node) return nullptr;
  return maps_.empty() ? &node->attrs : &maps_.back().second;
}

Status Transaction::Flush() {
  if (!pending_) return {};
  if (!maps_.empty()) {
    Refuse("the map " + maps_.back().first + " does not end");
    maps_.clear();
  }
  Node& node = *pending_;
  pending_ = nullptr;
  Status sound = CompleteOptions(registry_, node);
  if (sound) {
    sound = InferLast();
    if (!sound && LacksScales(*function_, node)) {
      unscaled_.push_back(&node);
      return {};
    }
  }
  if (!sound) Refuse(sound.error().message);
  return sound;
}

Status Transaction::Infer(const Node& node) {
  FUSEBOX_TRY(InferNode(registry_, *module_, *function_, node));
  return MoveQuant(registry_, *function_, node).At([&] { return Describe(*function_, node); });
}

size_t Transaction::Filled::Hash() const {
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(memory.get()), bytes});
}

Status Transaction::InferLast() {
  const ValueIds operands = function_->nodes.back()->operands;
  const size_t nodes = function_->nodes.size();
  FUSEBOX_TRY(InferAndFold(registry_, *module_, *function_));
  if (function_->nodes.size() == nodes) return {};
  for (Filled& constant : filled_)
    if (std::ranges::find(operands, constant.value) != operands.end()) constant.read = constant.Hash();
  return {};
}

Status Transaction::FinishConstants() {
  for (const Filled& constant : filled_) {
    if (constant.read && *constant.read != constant.Hash())
      return Invalid("a constant changed after an op of constants had read it; fill it before");
    function_->value(constant.value).data = Buffer::Copy({constant.memory.get(), constant.bytes});
  }
  return {};
}

fbx_value Transaction::Add(ValueId id) {
  return failure_.empty() ? static_cast<fbx_value>(id) : FBX_NO_VALUE;
}

// Runs in Finish, when variables have their scales: the bytes of zero depend on them.
Status Transaction::CheckVariables() {
  for (ValueId v = 0; v < function_->value_count(); ++v) {
    Value& value = function_->value(v);
    if (!value.is_variable) continue;
    if (std::ranges::find(results_, v) != results_.end())
      return Invalid("a variable is a result of the composite");
    if (!value.initial) continue;
    const Buffer zero = Buffer::Make(value.initial.size(), [&](std::span<std::byte> bytes) {
      TensorView view(value);
      view.edit().data = bytes.data();
      view.edit().bytes = bytes.size();
      FillZero(*view.abi());
    });
    if (std::ranges::equal(zero.bytes(), value.initial.bytes())) value.initial = {};
  }
  return {};
}

std::string Transaction::Refused() {
  if (no_memory_) throw std::bad_alloc();
  (void)Flush();
  return failure_;
}

Status Transaction::Finish() {
  if (const std::string refused = Refused(); !refused.empty()) return Invalid(refused);
  FUSEBOX_TRY(CheckVariables());
  FUSEBOX_TRY(FinishConstants());
  for (size_t i = 0; i < results_.size(); ++i) {
    if (results_[i] == kNoValue) return Invalid("result " + std::to_string(i) + " was not set");
    Value& result = function_->value(results_[i]);
    if (!result.quant) result.quant = result_quants_[i];
    else if (result_quants_[i] && !SameScales(*result.quant, *result_quants_[i]))
      return Invalid("result " + std::to_string(i) + " has other scales than the composite");
    if (result.type.dtype == DType::kNone) result.type.dtype = result_types_[i].dtype;
  }
  for (const Node* node : unscaled_) FUSEBOX_TRY(Infer(*node));
  for (size_t i = 0; i < results_.size(); ++i) {
    const Type& is = function_->value(results_[i]).type;
    if (!Compatible(is, result_types_[i])) {
      return Invalid("result " + std::to_string(i) + " is " + ToString(is) + ", the composite declares " +
                     ToString(result_types_[i]));
    }
  }
  function_->outputs = results_;
  return Verify(*module_);
}

}  // namespace fusebox
