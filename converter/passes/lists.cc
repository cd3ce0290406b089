// SPDX-License-Identifier: Apache-2.0
#include "converter/passes/lists.h"

#include <algorithm>
#include <set>

namespace fusebox::converter {
namespace {

constexpr int kDeepest = 16;  // nesting of functions and lists

class Visitor {
 public:
  using Read = std::function<void(const ListReader&)>;
  Visitor(const Module& module, const Function& f, const Read& read) : module_(module), f_(f), read_(read) {}
  bool complete() const { return complete_; }

  // Visits each list once, because ways may join.
  void Visit(const Function& f, ValueId list, ListReader way, int depth) {
    complete_ &= depth <= kDeepest;
    if (!complete_ || !seen_.emplace(&f, list).second) return;
    const Uses uses(f);
    for (const auto& [node, index] : uses.readers(list)) {
      if (!node) continue;
      way.f = &f;
      way.node = node;
      way.index = index;
      read_(way);
      if (node->is(Op::kTensorListSetItem) && index == 0) Visit(f, node->results[0], way, depth + 1);
      if (node->is(Op::kWhile)) {
        ListReader inside = way;
        const ValueId given_back = node->results[static_cast<size_t>(index)];
        if (&f == &f_) {
          inside.loop = node;
          inside.given_back = given_back;
        }
        Enter(Callee(module_, *node, "body_subgraph_index"), index, inside, depth);
        Visit(f, given_back, way, depth + 1);
      }
      if (!node->is(Op::kIf) || index == 0) continue;
      for (const char* branch : kBranches) Enter(Callee(module_, *node, branch), index - 1, way, depth);
      ListReader behind = way;
      const auto is_list = [&](ValueId v) { return f.value(v).type.dtype == DType::kVariant; };
      behind.certain &= std::ranges::count_if(node->results, is_list) == 1;
      for (const ValueId v : node->results)
        if (is_list(v)) Visit(f, v, behind, depth + 1);
    }
  }

 private:
  void Enter(const Function& callee, int input, const ListReader& way, int depth) {
    Visit(callee, callee.inputs[static_cast<size_t>(input)], way, depth + 1);
  }

  const Module& module_;
  const Function& f_;
  const Read& read_;
  std::set<std::pair<const Function*, ValueId>> seen_;
  bool complete_ = true;
};

}  // namespace

bool VisitReaders(const Module& module, const Function& f, ValueId list,
                  const std::function<void(const ListReader&)>& read) {
  Visitor visitor(module, f, read);
  visitor.Visit(
      f, list,
      {.f = &f, .node = nullptr, .index = 0, .loop = nullptr, .given_back = kNoValue, .certain = true}, 0);
  return visitor.complete();
}

Function& Callee(const Module& module, const Node& node, const char* attr) {
  return *module.Find(node.attrs.function(attr)->name);
}

bool MayGrow(const Node& set) { return set.attrs.b("resize_if_index_out_of_bounds", false); }

bool Grows(const Module& module, const Function& f, ValueId list) {
  bool grows = false;
  const bool complete = VisitReaders(module, f, list, [&](const ListReader& r) {
    grows |= r.node->is(Op::kTensorListSetItem) && r.index == 0 && MayGrow(*r.node);
  });
  return grows || !complete;
}

std::string WhyItemDiffers(const Function& f, const Node& node) {
  if (!node.is(Op::kTensorListSetItem) || node.operands.size() != 3) return "";
  const Type& list = f.value(node.operands[0]).type;
  const Type& item = f.value(node.operands[2]).type;
  if (list.dtype == DType::kVariant || list.shape.rank() < 1 || !item.shape.ranked()) return "";
  Type element = list;
  element.shape.dims().erase(element.shape.dims().begin());
  bool differ = element.shape.rank() != item.shape.rank();
  for (int i = 0; !differ && i < item.shape.rank(); ++i)
    differ = element.shape[i] >= 0 && item.shape[i] >= 0 && element.shape[i] != item.shape[i];
  return differ ? "items of different shapes, " + ToString(element) + " and " + ToString(item) : "";
}

// Items of the wrong shape are a better error than the lists that they block.
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
