// SPDX-License-Identifier: Apache-2.0
// The element's shape comes from what is put in or taken out. Where that is known at run time only (an open batch), a loop variable that the
// same values go through tells it, the state of an RNN, or else what the item is computed from.
#include "converter/passes/list_elements.h"

#include <algorithm>
#include <set>

#include "converter/passes/lists.h"

namespace fusebox::converter {
namespace {

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
  return {*dtype, Shape(dims)};
}

// What is put into a list, and its dimensions in terms of values of the function that makes the list.
struct Put {
  Type type;
  Sizes start, end;               // as a loop starts with them, as it ends with them
  const Node* loop = nullptr;     // that puts it
  ValueId given_back = kNoValue;  // the list as it comes out of that loop
};
using Puts = std::vector<Put>;

// A variable that starts with fewer unknown dimensions than it goes on with is broadcast on the way: its shape tells nothing.
bool Keeps(const Type& initial, const Type& item) {
  if (initial.dtype != item.dtype || !initial.shape.ranked() || initial.shape.rank() != item.shape.rank())
    return false;
  for (size_t i = 0; i < item.shape.dims().size(); ++i)
    if (initial.shape[i] >= 0 && initial.shape[i] != item.shape[i]) return false;
  return true;
}

// All that is put into a list, in this function and behind its loops and branches.
class PutFinder {
 public:
  PutFinder(const Module& module, const Function& f, OpenSizes& open) : module_(module), f_(f), open_(open) {}

  // Nothing where the dimensions of one of them are not known, or are not those of all others.
  Puts Find(ValueId list) {
    Visit(f_, list, {}, 0);
    for (const Put& put : puts_)
      if (put.start != puts_[0].start || put.type.dtype != puts_[0].type.dtype) known_ = false;
    return known_ ? std::move(puts_) : Puts();
  }

 private:
  void Visit(const Function& f, ValueId list, const Put& from, int depth) {
    if (depth > kDeepestList) known_ = false;
    if (!known_ || !seen_.emplace(&f, list).second) return;
    const Uses uses(f);
    for (const auto& [node, index] : uses.readers(list)) {
      if (!node) continue;
      if (node->is(Op::kTensorListSetItem) && index == 0) {
        Add(f, node->operands[2], from);
        Visit(f, node->results[0], from, depth + 1);
      } else if (node->is(Op::kWhile)) {
        const ValueId given_back = node->results[static_cast<size_t>(index)];
        Enter(*node, "body_subgraph_index", index, &f == &f_ ? Put{{}, {}, {}, node, given_back} : from, depth);
        Visit(f, given_back, from, depth + 1);
      } else if (node->is(Op::kIf) && index > 0) {
        for (const char* branch : kBranches) Enter(*node, branch, index - 1, from, depth);
        for (const ValueId given : node->results)
          if (f.value(given).type.dtype == DType::kVariant) Visit(f, given, from, depth + 1);
      }
    }
  }
  void Enter(const Node& node, const char* attr, int index, const Put& from, int depth) {
    const Function& callee = Callee(module_, node, attr);
    Visit(callee, callee.inputs[static_cast<size_t>(index)], from, depth + 1);
  }
  // An item that the loop also carries on has the shape of that variable: it is known before the loop, and checked behind it.
  ValueId Carried(const Function& f, ValueId item, const Put& put) const {
    if (!put.loop || &Callee(module_, *put.loop, "body_subgraph_index") != &f) return item;
    for (size_t i = 0; i < f.outputs.size(); ++i)
      if (f.outputs[i] == item && Keeps(f_.value(put.loop->operands[i]).type, f.value(item).type))
        return f.inputs[i];
    return item;
  }
  void Add(const Function& f, ValueId item, Put put) {
    put.type = f.value(item).type;
    const auto dims = open_.Dims(f, Carried(f, item, put));
    known_ &= dims.has_value();
    for (const Size& dim : dims ? *dims : Sizes()) {
      const auto start = open_.Outside(dim, false), end = open_.Outside(dim, true);
      known_ &= start && end;
      if (!known_) return;
      put.start.push_back(*start);
      put.end.push_back(*end);
    }
    puts_.push_back(std::move(put));
  }

  const Module& module_;
  const Function& f_;
  OpenSizes& open_;
  SeenLists seen_;
  Puts puts_;
  bool known_ = true;
};

size_t IndexOf(const Function& f, const Node& node) {
  size_t index = 0;
  while (f.nodes[index].get() != &node) ++index;
  return index;
}

// The values whose dimensions a size is made of.
void CollectValues(const OpenSizes& open, const Size& size, std::set<ValueId>& values) {
  if (size.is_number()) return;
  const SizeSymbol& symbol = open.symbol(size);
  if (symbol.value != kNoValue) values.insert(symbol.value);
  for (const Size& part : symbol.joined) CollectValues(open, part, values);
}

// The node that reads a list first, if all that its items' dimensions come from is there by then.
const Node* FirstReader(const Function& f, ValueId list, const OpenSizes& open, const Sizes& dims) {
  const Uses uses(f);
  std::set<ValueId> needed;
  for (const Size& dim : dims) CollectValues(open, dim, needed);
  std::erase_if(needed, [&](ValueId v) { return !uses.producer(v); });
  for (const auto& node : f.nodes) {
    if (std::ranges::find(node->operands, list) != node->operands.end())
      return needed.empty() ? node.get() : nullptr;
    for (const ValueId v : node->results) needed.erase(v);
  }
  return nullptr;
}

// Puts nodes before nodes[at], one behind the other.
class ShapeWriter {
 public:
  ShapeWriter(Function& f, size_t at, const OpenSizes& open) : f_(f), at_(at), open_(open) {}

  // [length, dimensions...]
  ValueId ListShape(ValueId length, const Sizes& dims) {
    ValueIds parts = {Insert(Op::kReshape, {length, Number(1)}, 1)};
    if (const ValueId like = OnlyValue(dims); like != kNoValue) {
      parts.push_back(ShapeOf(like));
    } else {
      for (const Size& dim : dims) parts.push_back(Write(dim));
    }
    return Insert(Op::kConcatenation, parts, static_cast<int64_t>(dims.size()) + 1);
  }
  ValueId LengthOf(ValueId list, int rank) { return Pick(ShapeOf(list, rank), 0); }  // still a list

 private:
  ValueId Insert(Op op, ValueIds operands, int64_t size, DType dtype = DType::kI32) {
    return f_.InsertNode(at_++, op, std::move(operands), {{dtype, {size}}}).results[0];
  }
  ValueId Number(int64_t n) { return f_.AddConst<int32_t>(DType::kI32, {1}, {static_cast<int32_t>(n)}); }
  ValueId ShapeOf(ValueId v) { return ShapeOf(v, f_.value(v).type.shape.rank()); }
  ValueId ShapeOf(ValueId v, int rank) {
    const ValueId shape = Insert(Op::kShape, {v}, rank < 0 ? Shape::kUnknown : rank);
    f_.nodes[at_ - 1]->attrs.Set("out_type", DType::kI32);
    return shape;
  }
  ValueId Pick(ValueId shape, int64_t axis) {
    return Insert(Op::kStridedSlice, {shape, Number(axis), Number(axis + 1), Number(1)}, 1);
  }

  // The value whose dimensions these are, all of them.
  ValueId OnlyValue(const Sizes& dims) const {
    ValueId only = kNoValue;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d].factor != 1 || dims[d].offset != 0) return kNoValue;
      const SizeSymbol& own = open_.symbol(dims[d]);
      if (own.axis != static_cast<int64_t>(d) || (d > 0 && own.value != only)) return kNoValue;
      only = own.value;
    }
    const bool whole = only != kNoValue && f_.value(only).type.shape.rank() == static_cast<int>(dims.size());
    return whole ? only : kNoValue;
  }

  ValueId Write(const Size& size) {
    if (size.is_number()) return Number(size.offset);
    const SizeSymbol& symbol = open_.symbol(size);
    ValueId all = kNoValue;
    if (symbol.value != kNoValue) all = Pick(ShapeOf(symbol.value), symbol.axis);
    for (const Size& part : symbol.joined) all = Broadcast(all, Write(part));
    if (size.factor != 1) all = Insert(Op::kMul, {all, Number(size.factor)}, 1);
    if (size.offset != 0) all = Insert(Op::kAdd, {all, Number(size.offset)}, 1);
    return all;
  }
  // Of sizes that are equal or 1, the one that is not 1.
  ValueId Broadcast(ValueId all, ValueId next) {
    if (all == kNoValue) return next;
    const ValueId one = Insert(Op::kEqual, {all, Number(1)}, 1, DType::kBool);
    return Insert(Op::kSelectV2, {one, next, all}, 1);
  }

  Function& f_;
  size_t at_;
  const OpenSizes& open_;
};

// What a loop gives back takes the shape that the loop's results tell: should the loop have changed that shape, running fails instead
// of computing something else.
void CheckBehind(const Module& module, Function& f, const OpenSizes& open, const Put& put, ValueId length, Type type) {
  const auto i =
      static_cast<size_t>(std::ranges::find(put.loop->results, put.given_back) - put.loop->results.begin());
  const Function& body = Callee(module, *put.loop, "body_subgraph_index");
  const bool grows = Grows(module, body, body.inputs[i]);
  if (grows) type.shape.dims()[0] = Shape::kUnknown;
  Node& checked = f.InsertNode(IndexOf(f, *put.loop) + 1, Op::kReshape, {}, {std::move(type)});
  f.ReplaceUses(put.given_back, checked.results[0]);
  ShapeWriter behind(f, IndexOf(f, checked), open);
  const ValueId shape =
      behind.ListShape(grows ? behind.LengthOf(put.given_back, put.type.shape.rank() + 1) : length, put.end);
  checked.operands = {put.given_back, shape};
}

// The list is made just before it is read first.
Elements ListOf(const Module& module, Function& f, const OpenSizes& open, const Puts& puts, const Node& first,
                const Node& reserve) {
  const auto nodes = f.nodes.begin();
  const auto from = nodes + static_cast<ptrdiff_t>(IndexOf(f, reserve));
  std::rotate(from, from + 1, nodes + static_cast<ptrdiff_t>(IndexOf(f, first)));

  const Put& put = puts[0];
  const ValueId length = reserve.operands[1];
  const Value& steps = f.value(length);
  const bool known =
      steps.is_const() && steps.type.dtype == DType::kI32 && steps.data.As<int32_t>().size() == 1;
  std::vector<int64_t> dims;
  // No item fits a list of none, whose loop never runs: its length stays open.
  dims.push_back(known && steps.data.As<int32_t>()[0] > 0 ? steps.data.As<int32_t>()[0] : Shape::kUnknown);
  for (size_t d = 0; d < put.start.size(); ++d)
    dims.push_back(put.start[d].is_number() ? put.start[d].offset : Shape::kUnknown);
  Elements made{{put.type.dtype, Shape(dims)}};
  made.dims = ShapeWriter(f, IndexOf(f, reserve), open).ListShape(length, put.start);
  std::set<std::pair<const Node*, Sizes>> checked;
  for (const Put& each : puts)
    if (each.start != each.end && checked.emplace(each.loop, each.end).second)
      CheckBehind(module, f, open, each, length, made.type);
  return made;
}

}  // namespace

Elements ListElements::Of(const Node& reserve) {
  const ValueId list = reserve.results[0];
  SeenLists seen;
  Type type = Element(module_, f_, list, seen);
  if (!type.shape.is_static()) type = Declared(f_, reserve);
  if (type.shape.is_static()) return {std::move(type)};
  if (!open_) open_.emplace(registry_, module_, f_, OpenSizes::Depth::kAll);
  const Puts puts = PutFinder(module_, f_, *open_).Find(list);
  if (puts.empty()) return {};
  const Node* first = FirstReader(f_, list, *open_, puts[0].start);
  return first ? ListOf(module_, f_, *open_, puts, *first, reserve) : Elements();
}

}  // namespace fusebox::converter
