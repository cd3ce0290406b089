// SPDX-License-Identifier: Apache-2.0
// The graph IR: importers build it, rules and passes rewrite it, .tflite files store it, the host plans and
// runs it.
//
// A Module holds functions, variables and signatures. A Function is a list of nodes in execution order over
// numbered values. A value is defined once: by an input, a constant or a node; a plain variable tensor has no
// definition. A Node is a use of an op.
//
// State: an op that updates operands in place (ops.def) has, after its proper results, one result per such
// operand
// (-1 if the operand is absent): the final state. It shares memory with the operand, whose value only the op
// may read; later readers use the final state. The operand is either defined like any value (every call
// starts from it) or a Value with is_variable and no definition, which the session keeps between calls.
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

// Source of a node, for messages: "model/lstm/MatMul", and its Keras layer path if known.
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
  bool is_variable = false;  // a variable tensor: session state if undefined
  Buffer initial;            // of session state; empty: zero. Files hold only zero
  std::string extra;         // uninterpreted parts of the file's tensor, opaque

  bool is_const() const { return static_cast<bool>(data); }
};

struct ReplacedNode {
  std::string op, name;
  bool operator==(const ReplacedNode&) const = default;
};

// The plugin, rule and composite of a fused op.
struct Provenance {
  std::string plugin, plugin_version, rule, composite;
  std::vector<ReplacedNode> replaces;  // after an import (AttachReplaced); files do not store it
  bool operator==(const Provenance&) const = default;
};

struct Node {
  Op op = Op::kCustom;
  std::string
      name;  // CUSTOM: the custom code. OPAQUE: the source op. STABLEHLO_COMPOSITE: the composite's name.
  // op version; 0: Write chooses the lowest possible one. Composite: its own version.
  int32_t version = 0;
  Attrs attrs;  // options. CUSTOM: the FlexBuffer map. STABLEHLO_COMPOSITE: the composite's attributes.
  // STABLEHLO_COMPOSITE, and a fused op with kept body: the function that defines it; inputs and outputs
  // match the node's operands and results. Empty: none.
  std::string body;
  std::shared_ptr<const Provenance> fused;  // null: not from a rule
  // CUSTOM: the option bytes of the file, if they are not a FlexBuffer map or attrs do not reproduce them.
  // Used only while they match attrs, so code that changes attrs need not update them.
  std::string raw_options;
  ValueIds operands;
  ValueIds results;
  ValueIds intermediates;  // TFLite's Operator.intermediates
  Location location;
  std::string extra;  // fields of a newer file format, opaque

  bool is(Op o) const { return op == o; }
};

// Results are proper ones, then one final state per state operand within the operand list (basic LSTM has
// five operands and no state).
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
  bool placeholder =
      false;  // a composite's body that ignores its operands: only declares types, is never run

  Value& value(ValueId id) { return values_[static_cast<size_t>(id)]; }
  const Value& value(ValueId id) const { return values_[static_cast<size_t>(id)]; }
  ValueId value_count() const { return static_cast<ValueId>(values_.size()); }

  void ReserveValues(size_t count) { values_.reserve(count); }
  void AddValues(size_t count) { values_.resize(values_.size() + count); }  // without type
  ValueId AddValue(Type type, std::string name = {});
  ValueId AddInput(Type type, std::string name = {});
  ValueId AddConst(Type type, Buffer data, std::string name = {});
  ValueId AddConst(const Tensor& tensor, std::string name = {});
  template <class T>
  ValueId AddConst(DType dtype, Shape shape, std::vector<T> values, std::string name = {}) {
    return AddConst(Type{dtype, std::move(shape)}, Buffer::Of<T>(values), std::move(name));
  }
  // Appends a node with `result_types.size()` new results (state results included).
  Node& AddNode(Op op, ValueIds operands, std::vector<Type> result_types, Attrs attrs = {});
  // Same, before nodes[index].
  Node& InsertNode(size_t index, Op op, ValueIds operands, std::vector<Type> result_types, Attrs attrs = {});

  // Replaces `from` by `to` in all operands and outputs.
  void ReplaceUses(ValueId from, ValueId to);
  // Drops null entries of `nodes` (passes remove a node by resetting its pointer).
  void Sweep();
  // Drops unreferenced values and renumbers the rest.
  void Compact();

 private:
  std::vector<Value> values_;
};

// Definition and readers of each value. A snapshot: rebuild after editing.
struct Uses {
  explicit Uses(const Function&);
  struct Reader {
    Node* node;  // null: an output of the function
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
  std::string why;  // its writer, for --explain
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
  Buffer appended;     // a zip after the FlatBuffer (label files), written back unchanged

  Function* Find(std::string_view name) const;  // null: not found
  Function& Add(std::string name);              // makes the name unique
  std::string UniqueName(std::string_view wish) const;
  Variable* FindVariable(std::string_view name);
};

// Copies of a function under a new name, of a function with everything it refers to, and of a module.
// Constants are shared.
std::unique_ptr<Function> Clone(const Function&, std::string name);
std::unique_ptr<Module> Clone(const Module&);
// Copies `function` and everything it reaches from `from` to `to`, under unused names. Returns the copy's
// name.
std::string CopyInto(const Module& from, const Function& function, Module& to);

// Replaces nodes[index] of `caller` by the nodes of `callee`: the callee's inputs become the node's operands,
// the node's results the callee's outputs. Prefixes names and locations with the node's.
void InlineAt(Function& caller, size_t index, const Function& callee);

// Functions that the node refers to directly, by attributes and body.
std::vector<std::string> References(const Node&);
std::vector<std::string> References(const Function&);
// Removes functions that are unreachable from signatures and main.
void RemoveUnreachable(Module&);

// kLoose allows OPAQUE and TF-only nodes (during import); kWritable requires a graph that .tflite can hold.
enum class Strictness { kLoose, kWritable };
// Checks all invariants of the graph: numbers in range, each value defined once and before use, functions
// exist and are not recursive, arities match ops.def, constants match the size of their type. Errors name
// function, node and operand.
Status Verify(const Module&, Strictness = Strictness::kLoose);

// Text form, for --dump-after and tests. One line per node.
std::string ToText(const Module&);
std::string ToText(const Function&);
// "node 12 CONV_2D (model/conv/Conv2D)".
std::string Describe(const Function&, const Node&);
std::string Describe(const Node&, size_t index);                     // for a known index
std::string DescribeIn(const Function&, const Node&, size_t index);  // "function main: " and the description
// Structural equality, ignoring value numbers and names of internal functions. *why receives the first
// difference.
bool Equal(const Module&, const Module&, std::string* why = nullptr);

}  // namespace fusebox
