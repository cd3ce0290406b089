// SPDX-License-Identifier: Apache-2.0
#include "host/fusion/composite.h"

#include <cctype>

#include "host/fusion/fusion.h"

namespace fusebox {
namespace {

// A value read from a mutable resource variable: never constant.
bool IsVariableRead(const Function& f, const Uses& uses, ValueId v) {
  const Node* producer = uses.producer(v);
  return (producer && producer->is(Op::kReadVariable)) || (!producer && f.value(v).is_variable);
}

}  // namespace

CompositeView::CompositeView(const Module& module, const Function& caller, const Node& node,
                             const Uses& uses) {
  for (ValueId v : node.operands) {
    operands_.push_back(v == kNoValue ? std::make_unique<TensorView>()
                                      : std::make_unique<TensorView>(caller.value(v)));
    if (v != kNoValue && IsVariableRead(caller, uses, v))
      operands_.back()->edit().flags |= FBX_TENSOR_VARIABLE;
    operand_ptrs_.push_back(operands_.back()->abi());
  }
  for (ValueId v : node.results) {
    results_.push_back(v == kNoValue ? std::make_unique<TensorView>()
                                     : std::make_unique<TensorView>(caller.value(v)));
    if (v != kNoValue) results_.back()->edit().uses = static_cast<uint32_t>(uses.readers(v).size());
    result_ptrs_.push_back(results_.back()->abi());
  }
  const Function* body = node.body.empty() ? nullptr : module.Find(node.body);
  if (body && !IsPlaceholder(module, *body)) body_ = std::make_unique<GraphView>(module, *body);
  location_ = "function " + caller.name + ": " + Describe(caller, node);
  composite_ = {.head = FBX_HEAD(fbx_composite),
                .name = AsAbi(node.name),
                .version = node.version,
                .attrs = AsAbi(node.attrs),
                .operand_count = static_cast<uint32_t>(operand_ptrs_.size()),
                .result_count = static_cast<uint32_t>(result_ptrs_.size()),
                .operands = operand_ptrs_.data(),
                .results = result_ptrs_.data(),
                .body = body_ ? body_->abi() : nullptr,
                .location = AsAbi(location_)};
}

bool IsPlaceholder(const Module&, const Function& body) {
  if (body.placeholder) return true;
  const Uses uses(body);
  for (ValueId v : body.inputs)
    if (!uses.readers(v).empty()) return false;
  return !body.inputs.empty();
}

std::string_view WithoutUuid(std::string_view composite) {
  constexpr std::string_view kForm = "_xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  if (composite.size() <= kForm.size()) return composite;
  const std::string_view end = composite.substr(composite.size() - kForm.size());
  for (size_t i = 0; i < kForm.size(); ++i) {
    const bool fits =
        kForm[i] == 'x' ? std::isxdigit(static_cast<unsigned char>(end[i])) != 0 : end[i] == kForm[i];
    if (!fits) return composite;
  }
  return composite.substr(0, composite.size() - kForm.size());
}

std::string SiteText(const SiteReport& site) {
  std::string_view place = site.location.empty() ? site.function : site.location;
  for (const std::string_view call : {"/StatefulPartitionedCall", "/PartitionedCall"}) {
    if (place.ends_with(call)) place.remove_suffix(call.size());
  }
  return std::string(place) + ": " + std::string(WithoutUuid(site.composite));
}

}  // namespace fusebox
