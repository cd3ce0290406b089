// SPDX-License-Identifier: Apache-2.0
// The one graph: what importers build, rules and passes rewrite, .tflite stores, and the host plans and runs.
//
// A Module holds functions, variables and signatures. A Function is a list of nodes in execution order over
// numbered values, each defined once: by an input, a constant, a node, or (a plain variable tensor) by
// nobody. A Node is a use of an op.
//
// State: an op that updates operands in place (ops.def says which) has, after its proper results, one result
// per such operand (-1 where the operand is absent): the final state. It shares memory with the operand,
// whose value nobody but the op may read afterwards... so readers of the final state read the result. The
// operand is either defined like any value (the op then starts from that value at every call) or a Value with
// is_variable and no definition, which the session keeps between calls.
//
// Value numbers are stable: removing a node leaves a hole until Compact(). Not thread-safe while edited.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "host/graph/ops.h"
#include "host/graph/types.h"

namespace fusebox {

using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;  // an absent optional operand
using ValueIds = InlineVector<ValueId, 4>;

// Where something came from, for messages and for people: "model/lstm/MatMul", its Keras layer path where
// known.
struct Location {
  std::string name;
  std::string layer;
  bool operator==(const Location&) const = default;
};

struct Value {
  std::string name;
  Type type;
  std::shared_ptr<const Quant> quant;
  Buffer data;               // set: a constant
  bool is_variable = false;  // a variable tensor: session state when nothing defines it
  std::string extra;         // parts of the file's tensor that the graph does not interpret, opaque

  bool is_const() const { return static_cast<bool>(data); }
};

// Which plugin made a fused op, out of what.
struct Provenance {
  std::string plugin, plugin_version, rule, composite;
  bool operator==(const Provenance&) const = default;
};

struct Node {
  Op op = Op::kCustom;
  std::string
      name;  // CUSTOM: the custom code. OPAQUE: the source op. STABLEHLO_COMPOSITE: the composite's name.
  // op version; 0 = the lowest that can say it, chosen by Write. Composite: its own version.
  int32_t version = 0;
  Attrs attrs;  // options. CUSTOM: the FlexBuffer map. STABLEHLO_COMPOSITE: the composite's attributes.
  // STABLEHLO_COMPOSITE, and a fused op whose body is kept: the function that defines it, with the node's
  // operands as inputs and its results as outputs; empty: none.
  std::string body;
  std::shared_ptr<const Provenance> fused;  // null: not made by a rule
  // CUSTOM: the option bytes of the file, where they are not a FlexBuffer map or attrs alone would not
  // reproduce them. They count as long as they say what attrs says: whoever changes attrs need not touch
  // them.
  std::string raw_options;
  ValueIds operands;
  ValueIds results;
  ValueIds intermediates;  // TFLite's Operator.intermediates
  Location location;
  std::string extra;  // what a newer file format says of this operator beyond our schema, opaque

  bool is(Op o) const { return op == o; }
};

// Results are proper ones, then one final state per state operand that the operand list reaches (LSTM in its
// basic form has five operands, and no state).
size_t StateResultCount(const Node&);
size_t ProperResultCount(const Node&);

class Function {
 public:
  explicit Function(std::string name) : name(std::move(name)) {}

  std::string name;
  std::vector<ValueId> inputs, outputs;
  std::vector<std::string> input_names, output_names;  // argument names of the source; may be empty
  std::vector<std::unique_ptr<Node>> nodes;            // execution order
  Attrs attrs;                                         // of the source function (time_major, ...)
  bool placeholder = false;  // a composite's body that ignores its operands: declares types, is never run

  Value& value(ValueId id) { return values_[static_cast<size_t>(id)]; }
  const Value& value(ValueId id) const { return values_[static_cast<size_t>(id)]; }
  ValueId value_count() const { return static_cast<ValueId>(values_.size()); }

  void ReserveValues(size_t count) { values_.reserve(count); }
  void AddValues(size_t count) { values_.resize(values_.size() + count); }  // of no type yet
  ValueId AddValue(Type type, std::string name = {});
  ValueId AddInput(Type type, std::string name = {});
  ValueId AddConst(Type type, Buffer data, std::string name = {});
  ValueId AddConst(const Tensor& tensor, std::string name = {});
  template <class T>
  ValueId AddConst(DType dtype, Shape shape, std::vector<T> values, std::string name = {}) {
    return AddConst(Type{dtype, std::move(shape)}, Buffer::Of<T>(values), std::move(name));
  }
  // Appends a node with `result_types.size()` new results (state results included) and returns it.
  Node& AddNode(Op op, ValueIds operands, std::vector<Type> result_types, Attrs attrs = {});
  // The same, placed before nodes[index].
  Node& InsertNode(size_t index, Op op, ValueIds operands, std::vector<Type> result_types, Attrs attrs = {});

  // Every reader of `from` (operands of nodes and outputs) reads `to`.
  void ReplaceUses(ValueId from, ValueId to);
  // Drops null entries of `nodes` (a pass removes a node by resetting its pointer).
  void Sweep();
  // Drops values that nothing refers to and renumbers the rest.
  void Compact();

 private:
  std::vector<Value> values_;
};

// Who defines and who reads each value. A snapshot: rebuild after editing.
struct Uses {
  explicit Uses(const Function&);
  struct Reader {
    Node* node;  // null: the function's outputs
    int index;   // operand number, or output number
  };
  Node* producer(ValueId v) const { return producers_[static_cast<size_t>(v)]; }
  int result_index(ValueId v) const { return result_index_[static_cast<size_t>(v)]; }
  std::span<const Reader> readers(ValueId v) const {
    const auto i = static_cast<size_t>(v);
    return std::span(readers_).subspan(first_reader_[i], first_reader_[i + 1] - first_reader_[i]);
  }

 private:
  std::vector<Node*> producers_;
  std::vector<int> result_index_;
  std::vector<Reader> readers_;  // of value 0, of value 1, ...
  std::vector<size_t> first_reader_;
};

// A resource variable: shared by functions, kept by a session.
struct Variable {
  enum class Mutability { kUnknown, kReadOnly, kMutable, kUnused };
  std::string name;  // shared_name of VAR_HANDLE
  std::string container;
  Type type;
  Buffer initial;  // value at load; empty for a .tflite (its CALL_ONCE assigns it)
  Mutability mutability = Mutability::kUnknown;
  std::string why;  // who writes it, for --explain
};

struct Signature {
  std::string key;
  std::string function;
  std::vector<std::string> input_names, output_names;  // in the order of the function's inputs and outputs
};

struct Metadata {
  std::string name;
  Buffer data;
};

class Module {
 public:
  std::vector<std::unique_ptr<Function>> functions;  // [0] is main
  std::vector<Variable> variables;
  std::vector<Signature> signatures;
  std::vector<Metadata> metadata;
  std::string description;
  std::string source;  // the file or folder it came from, for messages
  Buffer appended;     // a zip after the FlatBuffer (label files): written back as it was

  Function* Find(std::string_view name) const;  // null when there is none
  Function& Add(std::string name);              // the name is made unique
  std::string UniqueName(std::string_view wish) const;
  Variable* FindVariable(std::string_view name);
};

// Copies of a function under a new name, of a function with all that it refers to, and of a whole module.
// Constants are shared.
std::unique_ptr<Function> Clone(const Function&, std::string name);
std::unique_ptr<Module> Clone(const Module&);
// Copies `function` and everything it reaches from `from` to `to` under names that are free there; returns
// the copy's name.
std::string CopyInto(const Module& from, const Function& function, Module& to);

// Puts the nodes of `callee` in place of nodes[index] of `caller`: callee inputs become the node's operands,
// its results become callee's outputs. The node is gone afterwards; names and locations are prefixed with the
// node's.
void InlineAt(Function& caller, size_t index, const Function& callee);

// Functions that `function` refers to by attributes and bodies, directly.
std::vector<std::string> References(const Node&);
std::vector<std::string> References(const Function&);
// Removes functions that no signature, nor main, nor any kept function reaches.
void RemoveUnreachable(Module&);

// What Verify demands: kLoose allows OPAQUE and TF-only nodes (while importing); kWritable is what .tflite
// can hold.
enum class Strictness { kLoose, kWritable };
// Every invariant of the graph: numbers in range, each value defined once and before use, functions exist and
// are not recursive, arities as ops.def has them, constants as large as their type. Errors name function,
// node and operand.
Status Verify(const Module&, Strictness = Strictness::kLoose);

// The text form, for --dump-after, for golden tests and for people. One line per node.
std::string ToText(const Module&);
std::string ToText(const Function&);
// "node 12 CONV_2D (model/conv/Conv2D)".
std::string Describe(const Function&, const Node&);
std::string Describe(const Node&, size_t index);                     // where the number is known
std::string DescribeIn(const Function&, const Node&, size_t index);  // "function main: " and the description
// Structural equality up to value numbering and names of internal functions; the first difference is told in
// *why.
bool Equal(const Module&, const Module&, std::string* why = nullptr);

}  // namespace fusebox
