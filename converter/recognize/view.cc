// SPDX-License-Identifier: Apache-2.0
#include "converter/recognize/view.h"

#include <algorithm>

namespace fusebox::converter::recognize {

std::string FusedActivation(const Node& node) { return node.attrs.str("fused_activation_function", "NONE"); }

const Node* View::Producer(ValueId v, Op op) const {
  const Node* node = Producer(v);
  return node && node->is(op) && FusedActivation(*node) == "NONE" ? node : nullptr;
}

bool View::IsFull(ValueId v, float wanted) const {
  if (v == kNoValue || !f_.value(v).is_const() || type(v).dtype != DType::kF32) return false;
  const auto values = f_.value(v).data.As<float>();
  return !values.empty() && std::all_of(values.begin(), values.end(), [&](float x) { return x == wanted; });
}

std::string View::Text(ValueId v) const {
  if (v == kNoValue) return "nothing";
  const Node* node = Producer(v);
  if (!node) return f_.value(v).is_const() ? "a constant" : "a variable of the loop";
  const std::string op =
      node->is(Op::kOpaque) || node->is(Op::kCustom) ? node->name : std::string(Name(node->op));
  return node->location.name.empty() ? op : op + " (" + node->location.name + ")";
}

}  // namespace fusebox::converter::recognize
