// SPDX-License-Identifier: Apache-2.0
// A tensor list becomes one dense tensor [length, element...]: RESERVE is FILL with zeros, STACK and FROM_TENSOR are the tensor itself,
// GET_ITEM is GATHER, SET_ITEM is DYNAMIC_UPDATE_SLICE. The element's shape comes from what is put in or taken out.
#include <map>

#include "converter/passes/pass.h"
#include "converter/passes/rewrite.h"

namespace fusebox::converter {
namespace {

Function& Callee(Module& module, const Node& node, const char* attr) { return *module.Find(node.attrs.function(attr)->name); }

// The element type of a list, asked of everything that touches it, through loops. Unranked when nothing tells.
Type Element(Module& module, const Function& f, ValueId list, int depth = 0) {
  if (depth > 16) return {};
  const Uses uses(f);
  for (const auto& reader : uses.readers(list)) {
    if (!reader.node) continue;
    const Node& node = *reader.node;
    Type type;
    if (node.is(Op::kTensorListSetItem) && reader.index == 0) {
      type = f.value(node.operands[2]).type;
      if (!type.shape.is_static()) type = Element(module, f, node.results[0], depth + 1);
    } else if (node.is(Op::kTensorListGetItem)) {
      type = f.value(node.results[0]).type;
    } else if (node.is(Op::kWhile)) {
      const Function& body = Callee(module, node, "body_subgraph_index");
      type = Element(module, body, body.inputs[static_cast<size_t>(reader.index)], depth + 1);
    } else if (node.is(Op::kTensorListStack)) {
      type = f.value(node.results[0]).type;
      if (type.shape.rank() > 0) type.shape.dims().erase(type.shape.dims().begin());
    }
    if (type.shape.is_static()) return type;
  }
  return {};
}

Type Declared(const Function& f, const Node& node) {
  const AttrValue* attr = node.attrs.Find("element_dtype");
  const auto* dtype = attr ? std::get_if<DType>(attr) : nullptr;
  const Value& shape = f.value(node.operands[0]);
  if (!dtype || !shape.is_const() || shape.type.dtype != DType::kI32 || shape.type.shape.rank() != 1) return {};
  std::vector<int64_t> dims;
  for (int32_t d : shape.data.As<int32_t>()) dims.push_back(d);
  return {*dtype, Shape(std::move(dims))};
}

bool IsListOp(Op op) {
  switch (op) {
    case Op::kTensorListReserve: case Op::kTensorListFromTensor: case Op::kTensorListStack: case Op::kTensorListGetItem:
    case Op::kTensorListSetItem: case Op::kTensorListLength: return true;
    default: return false;
  }
}

class ListLowering {
 public:
  ListLowering(Module& module, Registry& registry) : module_(module), registry_(registry) {}

  // One round: lists whose elements are known by now are lowered, others wait for better types.
  Status Run(Function& f) {
    std::map<ValueId, Type> elements;
    for (const auto& node : f.nodes) {
      if (!node->is(Op::kTensorListReserve)) continue;
      Type element = Element(module_, f, node->results[0]);
      elements[node->results[0]] = element.shape.is_static() ? element : Declared(f, *node);
    }
    FUSEBOX_TRY(RewriteNodes(module_, f, registry_, [&](Translation& t) { return Lower(t, f, elements); }));
    return {};
  }

 private:
  Result<bool> Lower(Translation& t, Function& f, const std::map<ValueId, Type>& elements) {
    const Op op = t.node().op;
    if (op == Op::kTensorListReserve) return Reserve(t, elements.at(t.node().results[0]));
    if (op == Op::kWhile) return Loop(t, f);
    if (!IsListOp(op)) return false;
    if (t.in_type(0).dtype == DType::kVariant) return false;
    switch (op) {
      case Op::kTensorListGetItem: t.Give(0, t.Value(Op::kGather, {t.in(0), t.in(1)})); return true;
      case Op::kTensorListSetItem: return SetItem(t);
      case Op::kTensorListLength: return Length(t);
      default: t.Give(0, t.in(0)); return true;  // FROM_TENSOR, STACK
    }
  }

  Result<bool> Reserve(Translation& t, const Type& element) {
    if (!element.shape.is_static()) return false;
    std::vector<int32_t> tail;
    for (int64_t d : element.shape.dims()) tail.push_back(static_cast<int32_t>(d));
    const ValueId head = t.Value(Op::kReshape, {t.in(1), t.I32({1})});
    const ValueId dims = tail.empty() ? head : t.Value(Op::kConcatenation, {head, t.I32(std::move(tail))});
    t.Give(0, t.Value(Op::kFill, {dims, t.Scalar(element.dtype, 0)}));
    return true;
  }

  Result<bool> SetItem(Translation& t) {
    if (!t.in_type(2).shape.ranked()) return false;
    const auto rank = static_cast<size_t>(t.in_type(2).shape.rank());
    const ValueId item = t.Value(Op::kExpandDims, {t.in(2), t.I32Scalar(0)});
    const ValueId index = t.Value(Op::kReshape, {t.in(1), t.I32({1})});
    const ValueId start = rank == 0 ? index : t.Value(Op::kConcatenation, {index, t.I32(std::vector<int32_t>(rank, 0))});
    t.Give(0, t.Value(Op::kDynamicUpdateSlice, {t.in(0), item, start}));
    return true;
  }

  Result<bool> Length(Translation& t) {
    const ValueId shape = t.Value(Op::kShape, {t.in(0)});
    Attrs shrink;
    shrink.Set("shrink_axis_mask", 1);
    t.Give(0, t.Value(Op::kStridedSlice, {shape, t.I32({0}), t.I32({1}), t.I32({1})}, std::move(shrink)));
    return true;
  }

  // A list that a loop carries is dense in the loop's functions and results too.
  Result<bool> Loop(Translation& t, Function& f) {
    const Node& node = t.node();
    Function& cond = Callee(module_, node, "cond_subgraph_index");
    Function& body = Callee(module_, node, "body_subgraph_index");
    for (size_t i = 0; i < node.operands.size(); ++i) {
      Type& inside = body.value(body.inputs[i]).type;
      if (inside.dtype != DType::kVariant || t.in_type(i).dtype == DType::kVariant) continue;
      cond.value(cond.inputs[i]).type = inside = f.value(node.results[i]).type = t.in_type(i);
    }
    FUSEBOX_TRY(Run(cond));
    FUSEBOX_TRY(Run(body));
    return false;
  }

  Module& module_;
  Registry& registry_;
};

std::string FirstList(const Module& module) {
  for (const auto& f : module.functions)
    for (const auto& node : f->nodes)
      if (IsListOp(node->op)) return "function " + f->name + ": " + Describe(*f, *node);
  return "";
}

}  // namespace

Status LowerLists(Module& module, const std::vector<std::string>& entries, Registry& registry) {
  constexpr int kRounds = 4;  // reading lists first, then, with the types that gives, those that are written
  for (int round = 0; round < kRounds && !FirstList(module).empty(); ++round) {
    for (const std::string& name : entries) {
      FUSEBOX_TRY(ListLowering(module, registry).Run(*module.Find(name)));
      FUSEBOX_TRY(InferTypes(registry, module, *module.Find(name)));
    }
  }
  const std::string left = FirstList(module);
  if (left.empty()) return {};
  return Unsupported(left + ": the shape of the list's elements is not known: fix the batch size (--batch N) or the input's shape (--shape)");
}

Status LowerTensorLists(Context& context) {
  std::vector<std::string> entries;
  for (const Signature& s : context.module.signatures) entries.push_back(s.function);
  for (const auto& f : context.module.functions)
    for (const auto& node : f->nodes)
      if (!node->body.empty()) entries.push_back(node->body);
  if (Status lowered = LowerLists(context.module, entries, context.registry); !lowered) context.Note(lowered.error().message);
  return {};
}

}  // namespace fusebox::converter
