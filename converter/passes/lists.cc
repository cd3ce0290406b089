// SPDX-License-Identifier: Apache-2.0
#include "converter/passes/lists.h"

namespace fusebox::converter {
namespace {

bool GrowsBehind(const Module& module, const Function& f, ValueId list, SeenLists& seen, int depth) {
  if (depth > kDeepestList) return true;
  if (!seen.emplace(&f, list).second) return false;
  const Uses uses(f);
  for (const auto& [node, index] : uses.readers(list)) {
    if (!node) continue;
    if (node->is(Op::kTensorListSetItem) && index == 0) {
      if (MayGrow(*node) || GrowsBehind(module, f, node->results[0], seen, depth + 1)) return true;
    } else if (node->is(Op::kWhile)) {
      const Function& body = Callee(module, *node, "body_subgraph_index");
      if (GrowsBehind(module, body, body.inputs[static_cast<size_t>(index)], seen, depth + 1)) return true;
    } else if (node->is(Op::kIf)) {
      for (const char* branch : kBranches) {
        const Function& callee = Callee(module, *node, branch);
        if (index > 0 &&
            GrowsBehind(module, callee, callee.inputs[static_cast<size_t>(index) - 1], seen, depth + 1))
          return true;
      }
      for (const ValueId given : node->results)
        if (f.value(given).type.dtype == DType::kVariant && GrowsBehind(module, f, given, seen, depth + 1))
          return true;
    }
  }
  return false;
}

}  // namespace

Function& Callee(const Module& module, const Node& node, const char* attr) {
  return *module.Find(node.attrs.function(attr)->name);
}

bool MayGrow(const Node& set) { return set.attrs.b("resize_if_index_out_of_bounds", false); }

bool Grows(const Module& module, const Function& f, ValueId list) {
  SeenLists seen;
  return GrowsBehind(module, f, list, seen, 0);
}

std::string WhyItemDiffers(const Function& f, const Node& node) {
  if (!node.is(Op::kTensorListSetItem) || node.operands.size() != 3) return "";
  const Type &list = f.value(node.operands[0]).type, &item = f.value(node.operands[2]).type;
  if (list.dtype == DType::kVariant || list.shape.rank() < 1 || !item.shape.ranked()) return "";
  Type element = list;
  element.shape.dims().erase(element.shape.dims().begin());
  bool differ = element.shape.rank() != item.shape.rank();
  for (int i = 0; !differ && i < item.shape.rank(); ++i)
    differ = element.shape[i] >= 0 && item.shape[i] >= 0 && element.shape[i] != item.shape[i];
  return differ ? "items of different shapes, " + ToString(element) + " and " + ToString(item) : "";
}

// Items that do not fit say more than the lists that they leave behind.
std::string WhyListsStay(const Module& module) {
  std::string first;
  for (const auto& f : module.functions) {
    for (const auto& node : f->nodes) {
      if (!Has(node->op, kList)) continue;
      const std::string where = "function " + f->name + ": " + Describe(*f, *node) + ": ";
      if (const std::string why = WhyItemDiffers(*f, *node); !why.empty()) return where + why;
      if (first.empty()) first = where + "the shape of the list's elements is not known";
    }
  }
  return first;
}

}  // namespace fusebox::converter
