// SPDX-License-Identifier: Apache-2.0
// The one way to edit a function: emits nodes at an insertion point, and keeps the uses of values while it
// edits.
//
// Emitted nodes get the current location and, if the rewriter has an inference hook, inferred result types.
// At the end of the function (the default) they are appended at once. Elsewhere they are kept aside until
// Finish, so that `nodes` does not move meanwhile and insertion costs O(1) per node. References to nodes,
// removed ones included, stay valid until Finish.
//
// Uses are built when they are first queried, and kept up to date from then on. A caller that only emits
// does not pay for them. While they are in use, nodes and outputs change through the rewriter only.
#pragma once

#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "host/graph/constants.h"
#include "host/graph/graph.h"

namespace fusebox {

// MakeAttrs("axis", 1, "keep_dims", true)
inline Attrs MakeAttrs() { return {}; }
template <class V, class... Rest>
Attrs MakeAttrs(const char* name, V value, Rest... rest) {
  Attrs attrs = MakeAttrs(std::move(rest)...);
  attrs.Set(name, std::move(value));
  return attrs;
}

class Rewriter {
 public:
  // Sets the result types of a new node as far as they can be inferred. See host/eval/infer_hook.h.
  using Infer = std::function<void(Function&, Node&)>;

  explicit Rewriter(Function& f, Infer infer = {}) : f_(f), infer_(std::move(infer)) {}
  Rewriter(const Rewriter&) = delete;
  Rewriter& operator=(const Rewriter&) = delete;
  ~Rewriter() noexcept(false) {
    if (std::uncaught_exceptions() == 0) Finish();  // else nobody reads the function
  }

  Function& f() { return f_; }
  const Function& f() const { return f_; }
  const Type& type(ValueId v) const { return f_.value(v).type; }
  const Shape& shape(ValueId v) const { return f_.value(v).type.shape; }
  int rank(ValueId v) const { return shape(v).rank(); }
  bool is_const(ValueId v) const { return v != kNoValue && f_.value(v).is_const(); }
  bool is_f32(ValueId v) const { return v != kNoValue && type(v).dtype == DType::kF32; }

  // Where the next nodes are inserted, and the location that they get.
  void InsertAtEnd() { at_.reset(); }
  void InsertBefore(size_t index) { at_ = index; }  // an index into f().nodes
  void SetLocation(Location location);
  const Location& location() const { return *location_; }

  // A node with inferred result types, or with these.
  Node& Emit(Op op, ValueIds operands, Attrs attrs = {}, size_t results = 1);
  Node& EmitTyped(Op op, ValueIds operands, std::vector<Type> types, Attrs attrs = {});
  // The same with one result, which is returned.
  ValueId Value(Op op, ValueIds operands, Attrs attrs = {}) {
    return Emit(op, std::move(operands), std::move(attrs)).results[0];
  }
  ValueId Typed(Op op, ValueIds operands, Type type, Attrs attrs = {}) {
    return EmitTyped(op, std::move(operands), {std::move(type)}, std::move(attrs)).results[0];
  }

  // Constants.
  ValueId Const(const Tensor& tensor, std::string name = {}) { return f_.AddConst(tensor, std::move(name)); }
  ValueId F32(const Shape& shape, const std::vector<double>& values, std::string name = {});
  template <class Range>
  ValueId I32(const Range& values) {  // 1-D
    return I32Vector({std::begin(values), std::end(values)});
  }
  ValueId I32(std::initializer_list<int64_t> values) { return I32Vector({values.begin(), values.end()}); }
  ValueId I32Scalar(int64_t value) {
    return f_.AddConst(DType::kI32, Shape::Scalar(), std::vector{static_cast<int32_t>(value)});
  }
  // Where constants of the dtype are not supported: a CAST of an f32 constant.
  ValueId Scalar(DType dtype, double value);

  // Common nodes.
  ValueId ShapeOf(ValueId v);         // SHAPE, 1-D i32
  ValueId ToI32(ValueId v);           // an index or shape operand: i64 becomes i32, constants are clamped
  ValueId Cast(ValueId v, DType to);  // v itself if it has the dtype
  ValueId Copy(ValueId v);            // an f32 value times one, which keeps every bit
  template <class Range = std::initializer_list<int64_t>>
  ValueId Reshape(ValueId v, const Range& dims) {
    return Value(Op::kReshape, {v, I32(dims)});
  }
  template <class Begin = std::initializer_list<int64_t>, class Size = std::initializer_list<int64_t>>
  ValueId Slice(ValueId v, const Begin& begin, const Size& size) {
    return Value(Op::kSlice, {v, I32(begin), I32(size)});
  }
  template <class Range = std::initializer_list<int64_t>>
  ValueId Transpose(ValueId v, const Range& perm) {
    return Value(Op::kTranspose, {v, I32(perm)});
  }

  // Trial: what was emitted since a mark can be inspected and taken back. The insertion point must not have
  // changed.
  size_t mark() const { return sink().size(); }
  std::span<const std::unique_ptr<Node>> EmittedSince(size_t mark) const {
    return std::span(sink()).subspan(mark);
  }
  void Rollback(size_t mark);

  // Uses.
  Node* producer(ValueId v) const;         // null: an input, a constant, or absent
  Node* producer(ValueId v, Op op) const;  // null also if it is another op
  // Operands that read the value, one entry each; function outputs are not among them.
  std::span<Node* const> readers(ValueId v) const;
  bool is_output(ValueId v) const;
  size_t reads(ValueId v) const;
  bool read_once(ValueId v) const { return reads(v) == 1; }

  // Edits that keep the uses up to date. Pure nodes that lose their last reader are removed, and constants
  // that lose it release their memory.
  void SetOperand(Node& node, size_t index, ValueId v);
  void SetOperands(Node& node, ValueIds operands);
  void ReplaceUses(ValueId from, ValueId by);  // removes nothing
  void Replace(Node& node, ValueId by);        // its first result by another value; the node is removed
  void Remove(Node& node);
  bool is_removed(const Node& node) const { return removed_.contains(&node); }

  // Visits the nodes in order, emitted ones excepted, then finishes. The insertion point is before the
  // visited node, the location is the node's. A failure ends the visits and is returned.
  Status Walk(const std::function<Status(Node&)>& visit);
  // In a walk: later nodes and the outputs read `to` instead of `from`. Needs no uses, removes nothing.
  void Forward(ValueId from, ValueId to);
  // In a walk: removes the node, and nothing else. Nobody may read its results.
  void Drop(Node& node);

  // Puts inserted nodes in their places and deletes removed ones. The insertion point is the end again.
  void Finish();

 private:
  struct Uses {
    std::vector<Node*> producers;
    std::vector<std::vector<Node*>> readers;
    std::vector<size_t> outputs;
  };
  using Nodes = std::vector<std::unique_ptr<Node>>;

  const Nodes& sink() const { return at_ ? inserted_ : f_.nodes; }
  ValueId I32Vector(std::vector<int32_t> values);
  Uses& uses() const;
  void AddUses(Uses& uses, Node& node) const;
  void DropUses(const Node& node);
  void DropReader(ValueId v, const Node& node);
  ValueId Forwarded(ValueId v) const;
  void ApplyForwards(Node& node) const;
  void Splice();

  Function& f_;
  Infer infer_;
  std::optional<size_t> at_;  // nothing: at the end
  Location own_location_;
  const Location* location_ = &own_location_;
  Nodes inserted_, dropped_;
  std::vector<size_t> places_;  // of inserted nodes
  std::unordered_set<const Node*> removed_;
  std::vector<ValueId> forwards_;  // by value; kNoValue: itself
  size_t walked_ = 0;              // nodes whose operands are forwarded
  mutable std::optional<Uses> uses_;
};

}  // namespace fusebox
