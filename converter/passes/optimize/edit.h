// SPDX-License-Identifier: Apache-2.0
// Rules that make a function smaller or faster, and what they edit it with.
//
// A rule looks at one node, the last of the form that it matches. It either changes nothing and returns
// false, or replaces the form by a better one and returns true. Every rule leaves fewer nodes, or the same
// number nearer to where they vanish (a transpose further down, an addition next to a product), so that
// sweeps come to an end.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "converter/passes/pass.h"
#include "host/graph/rewriter.h"

namespace fusebox::converter::optimize {

class Edit : public Rewriter {
 public:
  Edit(Context& context, Function& function);

  // f32 constants; nothing for other values.
  std::optional<std::vector<double>> Floats(ValueId v) const;
  std::optional<std::vector<int64_t>> Ints(ValueId v) const { return ConstInts(f(), v); }
  std::optional<double> Scalar(ValueId v) const;  // one element of any rank

  // Replaces as Rewriter does, but the declared type of the result refines the type of `by`.
  void Replace(Node& node, ValueId by);
  // The same, after the producer of `by` was changed to compute the result. `by` gets the result's name, so
  // that comparisons by name do not find the value that it was.
  void Absorb(Node& node, ValueId by);
  // Records once why a node was left as it is, for --explain.
  void Note(const Node& node, const std::string& text);

 private:
  Context& context_;
  std::set<std::string> noted_;
};

// Applies the rules once to every node, in order; true if one fired.
bool Sweep(Context&, Function&);

using Rewrite = bool (*)(Edit&, Node&);
// A rewrite and the nodes that it is offered: nodes of one op, of two ops, or of all ops with a trait.
struct Rule {
  constexpr Rule(Op op, Rewrite rewrite) : Rule(op, op, rewrite) {}
  constexpr Rule(Op first, Op second, Rewrite rewrite) : first(first), second(second), rewrite(rewrite) {}
  constexpr Rule(Trait trait, Rewrite rewrite) : trait(trait), rewrite(rewrite) {}
  bool IsFor(Op op) const {
    return trait != 0 ? Has(op, static_cast<Trait>(trait)) : op == first || op == second;
  }

  Op first{};
  Op second{};
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
