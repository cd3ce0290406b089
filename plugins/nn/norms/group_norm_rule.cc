// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "plugins/nn/body/body.h"
#include "plugins/nn/norms/group_norm.h"
#include "plugins/nn/norms/rows.h"

namespace fusebox::nn {
namespace {

constexpr uint32_t kX = 0;
constexpr uint32_t kScale = 1;
constexpr uint32_t kBias = 2;

// The facts that a rule emits the op from.
struct Form {
  int64_t groups = 1;
  int64_t channel_axis = -1;
  double epsilon = 0;
  const char* statistics = "position";
};

double EpsilonOf(const Site& s) {
  if (const auto epsilon = s.attrs().find_f64("eps")) return *epsilon;
  s.attr("epsilon");
  return s.attrs().f64("epsilon");
}

// Elements that share one value of `statistic`. Unknown sizes cancel out.
int64_t SharedBy(Tensor x, Tensor statistic) {
  int64_t elements = 1;
  int64_t statistics = 1;
  int unknown = 0;
  for (const int64_t d : x.dims()) d < 0 ? static_cast<void>(++unknown) : static_cast<void>(elements *= d);
  for (const int64_t d : statistic.dims())
    d < 0 ? static_cast<void>(--unknown) : static_cast<void>(statistics *= d);
  if (unknown != 0 || statistics == 0 || elements % statistics != 0)
    DeclineBody("the sizes of its values are not known");
  return elements / statistics;
}

// The variance of the body, of which it takes the root.
Tensor VarianceOf(const Graph& body) {
  for (uint32_t i = 0; i < body.node_count(); ++i) {
    const GraphNode node = body.node(i);
    if (node.op() == "RSQRT" || node.op() == "SQRT") return node.in(0);
  }
  DeclineBody("it takes no square root");
}

bool SubtractsItself(const Graph& body) {
  for (uint32_t i = 0; i < body.node_count(); ++i) {
    const GraphNode node = body.node(i);
    if (node.op() == "SUB" && node.in_id(0) == node.in_id(1)) return true;
  }
  return false;
}

// The dimension of x that the scale belongs to, counted from the end: -1 if it is broadcast as it is, another
// one if it is reshaped to [C,1,1].
int64_t AxisOf(const Graph& body, uint32_t scale) {
  for (uint32_t i = 0; i < body.node_count(); ++i) {
    const GraphNode node = body.node(i);
    for (uint32_t o = 0; o < node.in_count(); ++o) {
      if (node.in_id(o) != body.inputs()[scale]) continue;
      if (node.op() != "RESHAPE") return -1;
      const auto dims = node.out(0).dims();
      for (size_t d = 0; d < dims.size(); ++d)
        if (dims[d] != 1) return static_cast<int64_t>(d) - static_cast<int64_t>(dims.size());
      return -1;
    }
  }
  DeclineBody("it does not use the scale");
}

void RequireOperands(const Site& s) {
  s.require(s.in_count() >= 1 && s.in_count() <= 3 && s.out_count() == 1, "ARITY",
            "needs 1 to 3 operands and 1 result");
  RequireRows(s);
}

Form FormOf(const Site& s, const Graph& body) {
  Form form{.groups = s.attrs().i64("num_groups", 1), .epsilon = EpsilonOf(s)};
  const Tensor x = s.in(kX);
  form.channel_axis = s.in_count() > kScale ? AxisOf(body, kScale) : s.attrs().i64("channel_axis", -1);
  if (form.channel_axis >= 0) form.channel_axis -= x.rank();
  s.require(form.channel_axis >= -x.rank() && form.channel_axis < 0, "AXIS", "is no dimension of operand 0",
            "attr channel_axis");
  const int64_t channels = x.dim(static_cast<int>(form.channel_axis));
  s.require(form.groups >= 1 && channels > 0 && channels % form.groups == 0, "SHAPE",
            std::to_string(channels) + " channels are not divisible by it", "attr num_groups");
  if (SubtractsItself(body)) {
    form.statistics = "element";
    return form;
  }
  const int64_t shared = SharedBy(x, VarianceOf(body));
  if (shared == channels / form.groups) return form;
  int64_t item = 1;
  for (const int64_t d : x.dims().subspan(1)) item *= d;
  if (shared * form.groups != item)
    DeclineBody("one variance is of " + std::to_string(shared) + " elements, neither of the " +
                std::to_string(channels / form.groups) + " channels of a group nor of all its " +
                std::to_string(item / form.groups) + " elements");
  form.statistics = "group";
  return form;
}

void Emit(const Site& s, Build& b, const Form& form) {
  std::vector<Value> operands;
  for (uint32_t i = 0; i < s.in_count(); ++i) operands.push_back(b.in(i));
  b.result(0, b.custom(GroupNorm::custom, operands)
                  .attr("epsilon", form.epsilon)
                  .attr("num_groups", form.groups)
                  .attr("channel_axis", form.channel_axis)
                  .attr("statistics", form.statistics)[0]);
}

}  // namespace

void GroupNormRule::match(const Site& s) {
  RequireOperands(s);
  for (uint32_t i = kScale; i < s.in_count(); ++i) s.operand(i, FBX_F32, 1);
  const auto body = s.body();
  if (!body) DeclineBody("it is a placeholder, which does not show over which elements it normalizes");
  const Form form = FormOf(s, *body);
  for (uint32_t i = kScale; i < s.in_count(); ++i)
    s.require(s.in(i).dim(0) == s.in(kX).dim(static_cast<int>(form.channel_axis)), "SHAPE",
              "does not have one element per channel", "operand " + std::to_string(i));
  RequireNoOwnWeights(s);
}

void GroupNormRule::rewrite(const Site& s, Build& b) { Emit(s, b, FormOf(s, *s.body())); }

void LayerNormRule::match(const Site& s) {
  RequireOperands(s);
  EpsilonOf(s);
  for (uint32_t i = kScale; i < s.in_count(); ++i) {
    const std::string subject = "operand " + std::to_string(i);
    s.operand(i, FBX_F32);
    const int rank = s.in(i).rank();
    s.require(rank >= 1 && rank == s.in(kScale).rank() && rank <= s.in(kX).rank(), "RANK",
              "is not that of the last dimensions of operand 0", subject);
    for (int d = -rank; d < 0; ++d)
      s.require(s.in(i).dim(d) == s.in(kX).dim(d) && s.in(i).dim(d) >= 0, "SHAPE",
                "is not that of the last dimensions of operand 0", subject);
  }
  RequireNoOwnWeights(s);
}

void LayerNormRule::rewrite(const Site& s, Build& b) {
  const int64_t rank = s.in_count() > kScale ? s.in(kScale).rank() : 1;
  Emit(s, b, {.channel_axis = -rank, .epsilon = EpsilonOf(s)});
}

}  // namespace fusebox::nn
