// SPDX-License-Identifier: Apache-2.0
// A tensor list becomes one dense tensor [length, element...]: RESERVE is FILL with zeros, STACK and FROM_TENSOR are the tensor itself,
// GET_ITEM is GATHER, SET_ITEM is DYNAMIC_UPDATE_SLICE, behind as many zeros as make room where the list may grow. The element's shape comes from what is put in or taken out. Where that is
// known at run time only (an open batch), a loop variable that the same values go through tells it: the state of an RNN.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "converter/passes/lists.h"
#include "converter/passes/pass.h"
#include "converter/passes/rewrite.h"

namespace fusebox::converter {
namespace {

Function& Callee(Module& module, const Node& node, const char* attr) {
  return *module.Find(node.attrs.function(attr)->name);
}

constexpr int kDeepestList = 16;  // functions and lists, one in or behind the other

constexpr const char* kBranches[] = {"then_subgraph_index", "else_subgraph_index"};

// The one list that a node gives; where it gives several, which is which does not show.
ValueId OnlyList(const Function& f, const Node& node) {
  ValueId only = kNoValue;
  for (const ValueId given : node.results) {
    if (f.value(given).type.dtype != DType::kVariant) continue;
    if (only != kNoValue) return kNoValue;
    only = given;
  }
  return only;
}

// The lists of functions that a walk has been at: they may meet again on many ways.
using SeenLists = std::set<std::pair<const Function*, ValueId>>;

// The element type of a list, asked of everything that touches it, through loops. Unranked when nothing tells.
Type Element(Module& module, const Function& f, ValueId list, SeenLists& seen, int depth = 0) {
  if (depth > kDeepestList || !seen.emplace(&f, list).second) return {};
  const Uses uses(f);
  for (const auto& reader : uses.readers(list)) {
    if (!reader.node) continue;
    const Node& node = *reader.node;
    Type type;
    if (node.is(Op::kTensorListSetItem) && reader.index == 0) {
      type = f.value(node.operands[2]).type;
      if (!type.shape.is_static()) type = Element(module, f, node.results[0], seen, depth + 1);
    } else if (node.is(Op::kTensorListGetItem)) {
      type = f.value(node.results[0]).type;
    } else if (node.is(Op::kWhile)) {
      const Function& body = Callee(module, node, "body_subgraph_index");
      type = Element(module, body, body.inputs[static_cast<size_t>(reader.index)], seen, depth + 1);
    } else if (node.is(Op::kIf) && reader.index > 0) {
      for (const char* branch : kBranches) {
        const Function& callee = Callee(module, node, branch);
        type = Element(module, callee, callee.inputs[static_cast<size_t>(reader.index) - 1], seen, depth + 1);
        if (type.shape.is_static()) break;
      }
      if (const ValueId given = OnlyList(f, node); !type.shape.is_static() && given != kNoValue)
        type = Element(module, f, given, seen, depth + 1);
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
  if (!dtype || !shape.is_const() || shape.type.dtype != DType::kI32 || shape.type.shape.rank() != 1)
    return {};
  std::vector<int64_t> dims;
  for (int32_t d : shape.data.As<int32_t>()) dims.push_back(d);
  return {*dtype, Shape(std::move(dims))};
}

// What a list holds: the type of one element or, with the shape of the whole list as a value (`dims`), the type of the list.
struct Elements {
  Type type;
  ValueId dims = kNoValue;
};

// A variable of the loop that a list goes into, whose values the loop also puts into the list.
struct Twin {
  const Node* loop;
  size_t list, variable;  // numbers of the loop's operands
  Type item;
};

// A variable that starts with fewer unknown dimensions than it goes on with is broadcast on the way: its shape tells nothing.
bool Keeps(const Shape& initial, const Shape& item) {
  if (!initial.ranked() || !item.ranked() || initial.rank() != item.rank()) return false;
  for (int i = 0; i < item.rank(); ++i)
    if (initial[i] >= 0 && initial[i] != item[i]) return false;
  return true;
}

std::optional<Twin> FindTwin(Module& module, const Function& f, ValueId list) {
  const Uses uses(f);
  const auto& readers = uses.readers(list);
  if (readers.size() != 1 || !readers[0].node || !readers[0].node->is(Op::kWhile)) return {};
  const Node& loop = *readers[0].node;
  const auto carried = static_cast<size_t>(readers[0].index);
  const Function& body = Callee(module, loop, "body_subgraph_index");
  const Uses inside(body);
  for (const auto& [node, index] : inside.readers(body.inputs[carried])) {
    if (!node || !node->is(Op::kTensorListSetItem) || index != 0) continue;
    const ValueId item = node->operands[2];
    for (const auto& reader : inside.readers(item)) {
      if (reader.node) continue;
      const auto variable = static_cast<size_t>(reader.index);
      const Type &before = f.value(loop.operands[variable]).type, &after = body.value(item).type;
      if (before.dtype == after.dtype && Keeps(before.shape, after.shape))
        return Twin{&loop, carried, variable, after};
    }
  }
  return {};
}

bool MayGrow(const Node& set) { return set.attrs.b("resize_if_index_out_of_bounds", false); }

// Whether what a list goes through may make it longer.
bool Grows(Module& module, const Function& f, ValueId list, SeenLists& seen, int depth = 0) {
  if (depth > kDeepestList) return true;
  if (!seen.emplace(&f, list).second) return false;
  const Uses uses(f);
  for (const auto& [node, index] : uses.readers(list)) {
    if (!node) continue;
    if (node->is(Op::kTensorListSetItem) && index == 0) {
      if (MayGrow(*node) || Grows(module, f, node->results[0], seen, depth + 1)) return true;
    } else if (node->is(Op::kWhile)) {
      const Function& body = Callee(module, *node, "body_subgraph_index");
      if (Grows(module, body, body.inputs[static_cast<size_t>(index)], seen, depth + 1)) return true;
    } else if (node->is(Op::kIf)) {
      for (const char* branch : kBranches) {
        const Function& callee = Callee(module, *node, branch);
        if (index > 0 &&
            Grows(module, callee, callee.inputs[static_cast<size_t>(index) - 1], seen, depth + 1))
          return true;
      }
      for (const ValueId given : node->results)
        if (f.value(given).type.dtype == DType::kVariant && Grows(module, f, given, seen, depth + 1))
          return true;
    }
  }
  return false;
}

size_t IndexOf(const Function& f, const Node& node) {
  size_t index = 0;
  while (f.nodes[index].get() != &node) ++index;
  return index;
}

// The shape of a list is that of `element` behind its length.
ValueId InsertListShape(Function& f, size_t index, ValueId length, ValueId element, int rank) {
  const auto insert = [&](Op op, std::vector<ValueId> operands, int64_t size) {
    return f.InsertNode(index++, op, std::move(operands), {{DType::kI32, {size}}}).results[0];
  };
  const ValueId one = f.AddConst<int32_t>(DType::kI32, {1}, {1});
  const ValueId head = insert(Op::kReshape, {length, one}, 1), tail = insert(Op::kShape, {element}, rank);
  f.nodes[index - 1]->attrs.Set("out_type", DType::kI32);
  return insert(Op::kConcatenation, {head, tail}, rank + 1);
}

// The list is made just before its loop, where all that the loop starts with is defined. What the loop gives back takes the shape
// of what the variable ended as: should the loop have changed that shape, running fails instead of computing something else.
Elements ShapedLike(Function& f, const Twin& twin, const Node& reserve) {
  const auto nodes = f.nodes.begin();
  const auto from = nodes + static_cast<ptrdiff_t>(IndexOf(f, reserve));
  std::rotate(from, from + 1, nodes + static_cast<ptrdiff_t>(IndexOf(f, *twin.loop)));

  const int rank = twin.item.shape.rank();
  const ValueId length = reserve.operands[1];
  const Value& steps = f.value(length);
  const bool known =
      steps.is_const() && steps.type.dtype == DType::kI32 && steps.data.As<int32_t>().size() == 1;
  std::vector<int64_t> dims = twin.item.shape.dims();
  // No item fits a list of none, whose loop never runs: its length stays open.
  dims.insert(dims.begin(),
              known && steps.data.As<int32_t>()[0] > 0 ? steps.data.As<int32_t>()[0] : Shape::kUnknown);
  Elements made{{twin.item.dtype, Shape(std::move(dims))}};
  made.dims = InsertListShape(f, IndexOf(f, reserve), length, twin.loop->operands[twin.variable], rank);

  const size_t next = IndexOf(f, *twin.loop) + 1;
  const ValueId result = twin.loop->results[twin.list];
  const ValueId ended = InsertListShape(f, next, length, twin.loop->results[twin.variable], rank);
  Node& checked = f.InsertNode(next + 3, Op::kReshape, {}, {made.type});
  f.ReplaceUses(result, checked.results[0]);
  checked.operands = {result, ended};
  return made;
}

class ListLowering {
 public:
  ListLowering(Module& module, Registry& registry) : module_(module), registry_(registry) {}

  // One round: lists whose elements are known by now are lowered, others wait for better types.
  Status Run(Function& f) {
    std::vector<const Node*> reserved;
    for (const auto& node : f.nodes)
      if (node->is(Op::kTensorListReserve)) reserved.push_back(node.get());
    std::map<ValueId, Elements> elements;
    for (const Node* node : reserved) elements[node->results[0]] = ElementsOf(f, *node);
    FUSEBOX_TRY(RewriteNodes(module_, f, registry_, [&](Translation& t) { return Lower(t, f, elements); }));
    return {};
  }

 private:
  Elements ElementsOf(Function& f, const Node& reserve) {
    const ValueId list = reserve.results[0];
    SeenLists seen;
    Type type = Element(module_, f, list, seen);
    if (!type.shape.is_static()) type = Declared(f, reserve);
    if (type.shape.is_static()) return {std::move(type)};
    const auto twin = FindTwin(module_, f, list);
    return twin ? ShapedLike(f, *twin, reserve) : Elements();
  }

  Result<bool> Lower(Translation& t, Function& f, const std::map<ValueId, Elements>& elements) {
    const Op op = t.node().op;
    if (op == Op::kTensorListReserve) return Reserve(t, f, elements.at(t.node().results[0]));
    if (op == Op::kWhile) return Loop(t, f);
    if (op == Op::kIf) return Branches(t, f);
    if (!IsListOp(op)) return false;
    if (t.in_type(0).dtype == DType::kVariant) return false;
    switch (op) {
      case Op::kTensorListGetItem: t.Give(0, t.Value(Op::kGather, {t.in(0), t.in(1)})); return true;
      case Op::kTensorListSetItem: return SetItem(t, f);
      case Op::kTensorListLength: return Length(t);
      default: t.Give(0, t.in(0)); return true;  // FROM_TENSOR, STACK
    }
  }

  Result<bool> Reserve(Translation& t, Function& f, const Elements& elements) {
    const Shape& element = elements.type.shape;
    if (!element.is_static() && elements.dims == kNoValue) return false;
    ValueId dims = elements.dims;
    if (dims == kNoValue) {
      dims = t.Value(Op::kReshape, {t.in(1), t.I32({1})});
      if (element.rank() > 0)
        dims = t.Value(Op::kConcatenation, {dims, t.I32({element.dims().begin(), element.dims().end()})});
    }
    const ValueId list = t.Value(Op::kFill, {dims, t.Scalar(elements.type.dtype, 0)});
    Type type = elements.type;
    const Shape& inferred = f.value(list).type.shape;
    if (elements.dims == kNoValue)
      type.shape.dims().insert(type.shape.dims().begin(),
                               inferred.rank() > 0 ? inferred[0] : Shape::kUnknown);
    f.value(list).type = std::move(type);
    t.Give(0, list);
    return true;
  }

  Result<bool> SetItem(Translation& t, Function& f) {
    if (!t.in_type(2).shape.ranked() || !WhyItemDiffers(f, t.node()).empty()) return false;
    const auto rank = static_cast<size_t>(t.in_type(2).shape.rank());
    const ValueId item = t.Value(Op::kExpandDims, {t.in(2), t.I32Scalar(0)});
    const ValueId index = t.Value(Op::kReshape, {t.in(1), t.I32({1})});
    const ValueId list = MayGrow(t.node()) ? Grown(t, f, index) : t.in(0);
    const ValueId start =
        rank == 0 ? index : t.Value(Op::kConcatenation, {index, t.I32(std::vector<int32_t>(rank, 0))});
    t.Give(0, t.Value(Op::kDynamicUpdateSlice, {list, item, start}));
    return true;
  }

  // The list behind which there are zeros up to `index`.
  static ValueId Grown(Translation& t, Function& f, ValueId index) {
    Attrs axis;
    axis.Set("axis", int64_t{0});
    const ValueId shape = t.ShapeOf(t.in(0));
    const ValueId length = t.Value(Op::kSlice, {shape, t.I32({0}), t.I32({1})});
    const ValueId element = t.Value(Op::kSlice, {shape, t.I32({1}), t.I32({-1})});
    const ValueId wanted = t.Value(Op::kAdd, {index, t.I32({1})});
    const ValueId missing = t.Value(Op::kMaximum, {t.Value(Op::kSub, {wanted, length}), t.I32({0})});
    const ValueId dims = t.Value(Op::kConcatenation, {missing, element}, axis);
    const ValueId zeros = t.Value(Op::kFill, {dims, t.Scalar(t.in_type(0).dtype, 0)});
    const ValueId grown = t.Value(Op::kConcatenation, {t.in(0), zeros}, axis);
    Type type = t.in_type(0);  // its elements do not change
    if (type.shape.rank() > 0) type.shape.dims()[0] = Shape::kUnknown;
    f.value(grown).type = type;
    return grown;
  }

  Result<bool> Length(Translation& t) {
    Attrs shrink;
    const ValueId shape = t.ShapeOf(t.in(0));
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
      Type carried = t.in_type(i);
      SeenLists seen;
      if (carried.shape.rank() > 0 && Grows(module_, body, body.inputs[i], seen))
        carried.shape.dims()[0] = Shape::kUnknown;
      cond.value(cond.inputs[i]).type = inside = f.value(node.results[i]).type = carried;
    }
    FUSEBOX_TRY(Run(cond));
    FUSEBOX_TRY(Run(body));
    return false;
  }

  // A list that a branch takes is dense in it, and one that both give is dense behind them.
  Result<bool> Branches(Translation& t, Function& f) {
    const Node& node = t.node();
    for (const char* branch : kBranches) {
      Function& callee = Callee(module_, node, branch);
      for (size_t i = 0; i < callee.inputs.size(); ++i) {
        Type& inside = callee.value(callee.inputs[i]).type;
        if (inside.dtype == DType::kVariant && t.in_type(i + 1).dtype != DType::kVariant)
          inside = t.in_type(i + 1);
      }
      FUSEBOX_TRY(Run(callee));
    }
    const Function &then = Callee(module_, node, kBranches[0]), &other = Callee(module_, node, kBranches[1]);
    for (size_t i = 0; i < node.results.size(); ++i) {
      const Type &a = then.value(then.outputs[i]).type, &b = other.value(other.outputs[i]).type;
      Type& given = f.value(node.results[i]).type;
      if (given.dtype == DType::kVariant && a.dtype == b.dtype && a.dtype != DType::kVariant)
        given = Common(a, b);
    }
    return false;
  }

  static Type Common(const Type& a, const Type& b) {
    if (a.shape.rank() != b.shape.rank()) return {a.dtype, Shape()};
    Type both = a;
    for (size_t i = 0; i < both.shape.dims().size(); ++i)
      if (a.shape[i] != b.shape[i]) both.shape.dims()[i] = Shape::kUnknown;
    return both;
  }

  Module& module_;
  Registry& registry_;
};

}  // namespace

Status LowerLists(Module& module, const std::vector<std::string>& entries, Registry& registry) {
  constexpr int kRounds = 4;  // reading lists first, then, with the types that gives, those that are written
  for (int round = 0; round < kRounds && !WhyListsStay(module).empty(); ++round) {
    for (const std::string& name : entries) {
      FUSEBOX_TRY(ListLowering(module, registry).Run(*module.Find(name)));
      FUSEBOX_TRY(InferTypes(registry, module, *module.Find(name)));
    }
  }
  const std::string left = WhyListsStay(module);
  return left.empty() ? Status() : Unsupported(left);
}

Status LowerTensorLists(Context& context) {
  std::vector<std::string> entries;
  for (const Signature& s : context.module.signatures) entries.push_back(s.function);
  for (const auto& f : context.module.functions)
    for (const auto& node : f->nodes)
      if (!node->body.empty()) entries.push_back(node->body);
  if (Status lowered = LowerLists(context.module, entries, context.registry); !lowered)
    context.Note(lowered.error().message);
  return {};
}

}  // namespace fusebox::converter
