// SPDX-License-Identifier: Apache-2.0
// A tensor list becomes one dense tensor [length, element...]: RESERVE becomes FILL with zeros, STACK and
// FROM_TENSOR the tensor itself, GET_ITEM becomes GATHER, SET_ITEM becomes DYNAMIC_UPDATE_SLICE, after zero
// padding if the list may grow. list_elements.h finds the element shape.
#include <algorithm>
#include <map>

#include "converter/passes/list_elements.h"
#include "converter/passes/lists.h"
#include "converter/passes/open_inputs.h"
#include "converter/passes/pass.h"
#include "converter/passes/rewrite.h"

namespace fusebox::converter {
namespace {

class ListLowering {
 public:
  ListLowering(Module& module, Registry& registry) : module_(module), registry_(registry) {}

  // One round lowers lists with known elements; the others wait for better types.
  Status Run(Function& f) {
    if (!seen_.insert(&f).second) return {};
    std::vector<const Node*> reserved;
    for (const auto& node : f.nodes)
      if (node->is(Op::kTensorListReserve)) reserved.push_back(node.get());
    std::map<ValueId, Elements> elements;
    ListElements list_elements(registry_, module_, f);
    for (const Node* node : reserved) elements[node->results[0]] = list_elements.Of(*node);
    FUSEBOX_TRY(RewriteNodes(module_, f, registry_, [&](Translation& t) { return Lower(t, f, elements); }));
    return {};
  }

 private:
  Result<bool> Lower(Translation& t, Function& f, const std::map<ValueId, Elements>& elements) {
    const Op op = t.node().op;
    if (op == Op::kTensorListReserve) return Reserve(t, f, elements.at(t.node().results[0]));
    if (op == Op::kWhile) return Loop(t, f);
    if (op == Op::kIf) return Branches(t, f);
    if (!Has(op, kList)) return false;
    if (t.in_type(0).dtype == DType::kVariant) return false;
    if (op == Op::kTensorListSetItem) return SetItem(t, f);
    if (op == Op::kTensorListLength) return Length(t);
    const bool item = op == Op::kTensorListGetItem;  // else FROM_TENSOR, STACK
    t.SetResult(0, item ? t.Value(Op::kGather, {t.in(0), t.in(1)}) : t.in(0));
    return true;
  }

  Result<bool> Reserve(Translation& t, Function& f, const Elements& elements) {
    const Shape& element = elements.type.shape;
    if (!element.is_static() && elements.dims == kNoValue) return false;
    ValueId dims = elements.dims;
    if (dims == kNoValue) {
      dims = t.Reshape(t.in(1), {1});
      if (element.rank() > 0) dims = t.Value(Op::kConcatenation, {dims, t.I32(element.dims())});
    }
    const ValueId list = t.Value(Op::kFill, {dims, t.Scalar(elements.type.dtype, 0)});
    Type type = elements.type;
    const Shape& inferred = f.value(list).type.shape;
    if (elements.dims == kNoValue)
      type.shape.dims().insert(type.shape.dims().begin(),
                               inferred.rank() > 0 ? inferred[0] : Shape::kUnknown);
    f.value(list).type = std::move(type);
    t.SetResult(0, list);
    return true;
  }

  Result<bool> SetItem(Translation& t, Function& f) {
    if (!t.in_type(2).shape.ranked() || !WhyItemDiffers(f, t.node()).empty()) return false;
    const auto rank = static_cast<size_t>(t.in_type(2).shape.rank());
    const ValueId item = t.Value(Op::kExpandDims, {t.in(2), t.I32Scalar(0)});
    const ValueId index = t.Reshape(t.in(1), {1});
    const ValueId list = MayGrow(t.node()) ? Grown(t, f, index) : t.in(0);
    const ValueId start =
        rank == 0 ? index : t.Value(Op::kConcatenation, {index, t.I32(std::vector<int32_t>(rank, 0))});
    t.SetResult(0, t.Value(Op::kDynamicUpdateSlice, {list, item, start}));
    return true;
  }

  // The list, zero-padded up to `index`.
  static ValueId Grown(Translation& t, Function& f, ValueId index) {
    Attrs axis;
    axis.Set("axis", int64_t{0});
    const ValueId shape = t.ShapeOf(t.in(0));
    const ValueId length = t.Slice(shape, {0}, {1});
    const ValueId element = t.Slice(shape, {1}, {-1});
    const ValueId wanted = t.Value(Op::kAdd, {index, t.I32({1})});
    const ValueId missing = t.Value(Op::kMaximum, {t.Value(Op::kSub, {wanted, length}), t.I32({0})});
    const ValueId dims = t.Value(Op::kConcatenation, {missing, element}, axis);
    const ValueId zeros = t.Value(Op::kFill, {dims, t.Scalar(t.in_type(0).dtype, 0)});
    const ValueId grown = t.Value(Op::kConcatenation, {t.in(0), zeros}, axis);
    Type type = t.in_type(0);  // element type is unchanged
    if (type.shape.rank() > 0) type.shape.dims()[0] = Shape::kUnknown;
    f.value(grown).type = type;
    return grown;
  }

  Result<bool> Length(Translation& t) {
    Attrs shrink;
    const ValueId shape = t.ShapeOf(t.in(0));
    shrink.Set("shrink_axis_mask", 1);
    t.SetResult(0,
                t.Value(Op::kStridedSlice, {shape, t.I32({0}), t.I32({1}), t.I32({1})}, std::move(shrink)));
    return true;
  }

  // A list carried by a loop becomes dense in the loop's functions and results.
  Result<bool> Loop(Translation& t, Function& f) {
    const Node& node = t.node();
    Function& cond = Callee(module_, node, "cond_subgraph_index");
    Function& body = Callee(module_, node, "body_subgraph_index");
    for (size_t i = 0; i < node.operands.size(); ++i) {
      Value& inside = body.value(body.inputs[i]);
      if (inside.type.dtype != DType::kVariant || t.in_type(i).dtype == DType::kVariant) continue;
      Type carried = t.in_type(i);
      if (carried.shape.rank() > 0 && Grows(module_, body, body.inputs[i]))
        carried.shape.dims()[0] = Shape::kUnknown;
      for (Value* const value : {&cond.value(cond.inputs[i]), &inside, &f.value(node.results[i])})
        MakeDense(*value, carried);
    }
    FUSEBOX_TRY(Run(cond));
    FUSEBOX_TRY(Run(body));
    return false;
  }

  // A list passed to a branch becomes dense in it; one returned by both branches becomes dense after them.
  Result<bool> Branches(Translation& t, Function& f) {
    const Node& node = t.node();
    for (const char* branch : kBranches) {
      Function& callee = Callee(module_, node, branch);
      for (size_t i = 0; i < callee.inputs.size(); ++i) {
        Value& inside = callee.value(callee.inputs[i]);
        if (inside.type.dtype == DType::kVariant && t.in_type(i + 1).dtype != DType::kVariant)
          MakeDense(inside, t.in_type(i + 1));
      }
      FUSEBOX_TRY(Run(callee));
    }
    const Function& then = Callee(module_, node, kBranches[0]);
    const Function& other = Callee(module_, node, kBranches[1]);
    for (size_t i = 0; i < node.results.size(); ++i) {
      const Type& a = then.value(then.outputs[i]).type;
      const Type& b = other.value(other.outputs[i]).type;
      Value& given = f.value(node.results[i]);
      if (given.type.dtype == DType::kVariant && a.dtype == b.dtype && a.dtype != DType::kVariant)
        MakeDense(given, Common(a, b));
    }
    return false;
  }

  // A file stores the types of a list's items with the list. LiteRT rejects them on other tensors.
  static void MakeDense(Value& list, Type type) {
    list.type = std::move(type);
    list.extra.clear();
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
  std::set<const Function*> seen_;
};

Status LowerLists(Module& module, const std::vector<std::string>& entries, Registry& registry) {
  constexpr int kRounds = 4;  // lists that are read first; their types then resolve written lists
  Status first;
  for (int round = 0; round < kRounds && !WhyListsStay(module).empty(); ++round) {
    for (const std::string& name : entries) {
      Status status = ListLowering(module, registry).Run(*module.Find(name));
      if (status) status = InferTypes(registry, module, *module.Find(name));
      if (first && !status) first = std::move(status);
    }
  }
  FUSEBOX_TRY(first);
  const std::string left = WhyListsStay(module);
  return left.empty() ? Status() : Unsupported(left);
}

// Results of opaque ops may define the elements: these ops are reported first.
bool AnyOpaque(const Module& module) {
  return std::ranges::any_of(module.functions, [](const auto& f) {
    return std::ranges::any_of(f->nodes, [](const auto& node) { return node->is(Op::kOpaque); });
  });
}

}  // namespace

Status LowerTensorLists(Context& context) {
  std::vector<std::string> entries;
  for (const Signature& s : context.module.signatures) entries.push_back(s.function);
  for (const auto& f : context.module.functions)
    for (const auto& node : f->nodes)
      if (!node->body.empty()) entries.push_back(node->body);
  const Status lowered = LowerLists(context.module, entries, context.registry);
  if (!lowered && !AnyOpaque(context.module)) {
    const std::string fix = HowToFix(context);
    context.Note(lowered.error().message + (fix.empty() ? "" : ": " + fix));
  }
  // Lists that are dense in one function and lists in another are no graph for later passes.
  if (!lowered && !Verify(context.module)) return lowered;
  return {};
}

}  // namespace fusebox::converter
