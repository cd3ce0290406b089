// SPDX-License-Identifier: Apache-2.0
#include "converter/passes/lists.h"

namespace fusebox::converter {

bool IsListOp(Op op) {
  switch (op) {
    case Op::kTensorListReserve:
    case Op::kTensorListFromTensor:
    case Op::kTensorListStack:
    case Op::kTensorListGetItem:
    case Op::kTensorListSetItem:
    case Op::kTensorListLength: return true;
    default: return false;
  }
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
      if (!IsListOp(node->op)) continue;
      const std::string where = "function " + f->name + ": " + Describe(*f, *node) + ": ";
      if (const std::string why = WhyItemDiffers(*f, *node); !why.empty()) return where + why;
      if (first.empty())
        first = where +
                "the shape of the list's elements is not known: fix the batch size (--batch N) or the "
                "input's shape (--shape)";
    }
  }
  return first;
}

}  // namespace fusebox::converter
