// SPDX-License-Identifier: Apache-2.0
// Editing one function while who defines and who reads each value stays known, and the rules that do so.
//
// A rule looks at one node, the last of the form that it knows, and either changes nothing and says false, or
// puts what is better in its place and says true. Every rule leaves fewer nodes, or the same number nearer to
// where they vanish (a transpose further down, an addition next to a product), so that asking until none
// fires comes to an end.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "converter/passes/pass.h"
#include "host/eval/eval.h"

namespace fusebox::converter::optimize {

class Edit {
 public:
  Edit(Context& context, Function& function);

  Function& f() { return f_; }
  const Type& type(ValueId v) const { return f_.value(v).type; }
  const Shape& shape(ValueId v) const { return f_.value(v).type.shape; }
  int rank(ValueId v) const { return shape(v).rank(); }
  bool is_const(ValueId v) const { return v != kNoValue && f_.value(v).is_const(); }
  bool is_f32(ValueId v) const { return v != kNoValue && type(v).dtype == DType::kF32; }

  Node* producer(ValueId v) const;         // null: an input, a constant, or absent
  Node* producer(ValueId v, Op op) const;  // null also when it is another op
  // Operands that read it, one entry each, function outputs not among them.
  std::span<Node* const> readers(ValueId v) const { return readers_[static_cast<size_t>(v)]; }
  bool is_output(ValueId v) const { return outputs_[static_cast<size_t>(v)] > 0; }
  size_t reads(ValueId v) const { return readers(v).size() + outputs_[static_cast<size_t>(v)]; }
  bool read_once(ValueId v) const { return reads(v) == 1; }

  // Constants. Nothing when the value is not one of that kind.
  std::optional<std::vector<double>> Floats(ValueId v) const;  // f32
  std::optional<std::vector<int64_t>> Ints(ValueId v) const;   // i32, i64
  std::optional<double> Scalar(ValueId v) const;               // f32, one element of any rank
  bool IsNear(ValueId v, double wanted, double rtol = 1e-6) const;
  ValueId F32(const Shape& shape, const std::vector<double>& values, const std::string& name = {});
  ValueId I32(const std::vector<int64_t>& values);

  // A node before `place`, with its location; result types as far as they can be told. The first result.
  ValueId Emit(const Node& place, Op op, std::vector<ValueId> operands, Attrs attrs = {});
  void SetOperand(Node& node, size_t index, ValueId v);
  void SetOperands(Node& node, std::vector<ValueId> operands);
  // Readers of the node's one result read `by`, and the node goes, with what only it read.
  void Replace(Node& node, ValueId by);
  void Remove(Node& node);

  // Why something was left as it is, once per place: for --explain.
  void Say(const Node& node, const std::string& text);

  // Offers every node to the rules of its op, in order; true when one fired.
  bool Sweep();

 private:
  bool IsQuantized(const Node& node) const;
  void Grow();
  void AddReader(ValueId v, Node* node);
  void DropReader(ValueId v, const Node* node);

  Context& context_;
  Function& f_;
  size_t cursor_ = 0;
  std::vector<Node*> producers_;
  std::vector<std::vector<Node*>> readers_;
  std::vector<size_t> outputs_;
  std::unordered_set<const Node*> removed_;
  std::set<std::string> said_;
};

using Rewrite = bool (*)(Edit&, Node&);
// A rewrite and the nodes that it is offered: those of one op, of two, or of all ops with a trait.
struct Rule {
  constexpr Rule(Op op, Rewrite rewrite) : Rule(op, op, rewrite) {}
  constexpr Rule(Op first, Op second, Rewrite rewrite) : first(first), second(second), rewrite(rewrite) {}
  constexpr Rule(Trait trait, Rewrite rewrite) : trait(trait), rewrite(rewrite) {}
  bool IsFor(Op op) const {
    return trait != 0 ? Has(op, static_cast<Trait>(trait)) : op == first || op == second;
  }

  Op first{}, second{};
  uint32_t trait = 0;
  Rewrite rewrite;
};

// One table per subject, each in its own file, in the order in which they are asked.
std::span<const Rule> NeutralRules();  // ops that change nothing
std::span<const Rule> PatternRules();  // GELU, HARD_SWISH, L2_NORMALIZATION
std::span<const Rule> PreluRules();    // PRELU, LEAKY_RELU
std::span<const Rule> AffineRules();   // products and sums by channel into the op before, and with each other
std::span<const Rule> ActivationRules();  // clamps as activations, activations into the op before
std::span<const Rule> DenseRules();       // FULLY_CONNECTED
std::span<const Rule> ConvRules();        // padding and dilation of convolutions
std::span<const Rule> ReshapeRules();     // reshapes
std::span<const Rule> NarrowRules();      // sizes in 64 bits
std::span<const Rule> LayoutRules();      // transposes sink and cancel

// Makes equal constants one, and equal pure nodes; true when something went.
bool Share(Function&);

// Names of attributes and what they mean when they are absent.
bool HasActivation(const Node&);
// SAME's padding before and after, for one dimension.
struct Padding {
  int64_t before, after;
  bool operator==(const Padding&) const = default;
};
Padding SamePadding(int64_t in, int64_t stride, int64_t filter, int64_t dilation);

}  // namespace fusebox::converter::optimize
