// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "host/fusion/lower.h"
#include "host/graph/branches.h"
#include "host/tflite/tflite.h"

namespace fusebox {
namespace {

// Returns the op's name in the options of REDUCE_WINDOW, which are mostly op names, or nothing if it has
// none.
std::optional<std::string> ReductionOf(Op op) {
  std::string_view name = Name(op);
  for (const std::string_view prefix : {"STABLEHLO_", "LOGICAL_"})
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  if (name == "MULTIPLY") name = "MUL";
  if (name == "AND") name = "ALL";
  if (name == "OR") name = "ANY";
  const bool known = tflite::CheckOptions(Op::kReduceWindow, MakeAttrs("reduce_function", name)).has_value();
  return known ? std::optional(std::string(name)) : std::nullopt;
}

constexpr std::string_view kOtherBody =
    "its body is not one of add, multiply, minimum, maximum, and, or of its two inputs";

// Returns the function that a body of two inputs computes; "UPDATE" is its second input.
std::optional<std::string> FunctionOf(const Function& body) {
  if (body.inputs.size() != 2 || body.outputs.size() != 1) return std::nullopt;
  if (body.outputs[0] == body.inputs[1]) return "UPDATE";
  if (body.nodes.size() != 1) return std::nullopt;
  const Node& node = *body.nodes[0];
  if (node.results.size() != 1 || node.results[0] != body.outputs[0] || node.operands.size() != 2 ||
      node.attrs.str("fused_activation_function", "NONE") != "NONE")
    return std::nullopt;
  return std::ranges::is_permutation(node.operands, body.inputs) ? ReductionOf(node.op) : std::nullopt;
}

class Lowering {
 public:
  explicit Lowering(Module& module) : module_(module) {}

  std::vector<std::string> Run() {
    const size_t count = module_.functions.size();  // those that are added need no lowering
    for (size_t i = 0; i < count; ++i) {
      Function& f = *module_.functions[i];
      if (std::ranges::none_of(f.nodes, [](const auto& node) { return MayLower(node->op); })) continue;
      Rewriter r(f);
      static_cast<void>(r.Walk([&](Node& node) {
        if (const Status done = Lower(r, node); !done)
          stay_.push_back(
              fmt::format("function {}: {}: {}", f.name, Describe(f, node), done.error().message));
        return Status();
      }));
    }
    return std::move(stay_);
  }

 private:
  static bool MayLower(Op op) {
    return op == Op::kStablehloCase || op == Op::kStablehloReduceWindow || op == Op::kStablehloScatter;
  }

  Status Lower(Rewriter& r, Node& node) {
    switch (node.op) {
      case Op::kStablehloCase: return LowerCase(r, node);
      case Op::kStablehloReduceWindow: return LowerReduceWindow(r, node);
      case Op::kStablehloScatter: return NameComputation(node);
      default: return {};
    }
  }

  Status LowerCase(Rewriter& r, Node& node) {
    FUSEBOX_ASSIGN(const std::vector<std::string> branches, BranchesOf(r.f(), node));
    std::vector<ValueId> operands(node.operands.begin(), node.operands.end());
    const Type index = r.type(operands[0]);
    const auto count = index.shape.element_count();
    if (index.dtype != DType::kI32 || (count && *count != 1))
      return Invalid("its index is " + ToString(index) + ", expected one i32");
    if (index.shape.rank() != 0)
      operands[0] =
          r.Typed(Op::kReshape, {operands[0], r.I32(std::vector<int64_t>())}, {DType::kI32, Shape::Scalar()});
    std::vector<Type> results;
    for (const ValueId v : node.results) results.push_back({r.type(v).dtype, Shape()});
    FUSEBOX_ASSIGN(Choice choice, ChooseBranch(module_, r, branches, operands, results));
    node.op = choice.op;
    node.operands = std::move(choice.operands);
    node.attrs = std::move(choice.attrs);
    return {};
  }

  // The functions, whose inputs and outputs fit the node.
  Result<std::vector<std::string>> BranchesOf(const Function& f, const Node& node) const {
    if (node.operands.empty() || Absent(node.operands) || Absent(node.results))
      return Invalid("it has absent values");
    const AttrValue* const list = node.attrs.Find("branch_subgraph_indices");
    const auto* const refs = list ? std::get_if<std::shared_ptr<const Attrs>>(list) : nullptr;
    std::vector<std::string> names;
    for (size_t i = 0; refs != nullptr; ++i) {
      const FunctionRef* const ref = (*refs)->function(std::to_string(i));
      if (ref == nullptr) break;
      const Function* const branch = module_.Find(ref->name);
      if (branch == nullptr || !Fits(f, node, *branch))
        return Invalid("the inputs or outputs of branch " + ref->name + " do not fit");
      names.push_back(ref->name);
    }
    return names;
  }

  static bool Absent(std::span<const ValueId> values) {
    return std::ranges::find(values, kNoValue) != values.end();
  }

  static bool Fits(const Function& f, const Node& node, const Function& branch) {
    const auto same = [&](ValueId a, ValueId b) {
      return b != kNoValue && f.value(a).type.dtype == branch.value(b).type.dtype;
    };
    const std::span<const ValueId> operands = std::span<const ValueId>(node.operands).subspan(1);
    const std::span<const ValueId> results = node.results;
    return std::ranges::equal(operands, branch.inputs, same) &&
           std::ranges::equal(results, branch.outputs, same);
  }

  Status LowerReduceWindow(Rewriter& r, Node& node) {
    if (node.operands.size() != 2 || node.results.size() != 1 || Absent(node.operands))
      return Unsupported("more than one tensor is unsupported");
    FUSEBOX_ASSIGN(const std::string function, Computation(node, "body_subgraph_index"));
    if (function == "UPDATE") return Unsupported(std::string(kOtherBody));
    const std::vector<int64_t> sizes = node.attrs.i64s("window_dimensions");
    const auto list = [&](const char* name, int64_t otherwise) {
      std::vector<int64_t> values = node.attrs.i64s(name);
      if (values.empty()) values.assign(sizes.size() * (otherwise == 0 ? 2 : 1), otherwise);
      return values;
    };
    const auto strides = list("window_strides", 1);
    const auto inner = list("window_dilations", 1);
    const auto base = list("base_dilations", 1);
    const auto padding = list("padding", 0);
    if (sizes.empty() || strides.size() != sizes.size() || inner.size() != sizes.size() ||
        base.size() != sizes.size() || padding.size() != 2 * sizes.size())
      return Invalid("its options have different lengths");
    for (const int64_t d : base)
      if (d < 1) return Invalid(fmt::format("a base dilation is {}", d));
    ValueId in = node.operands[0];
    const bool pads = std::ranges::any_of(padding, [](int64_t p) { return p != 0; }) ||
                      std::ranges::any_of(base, [](int64_t d) { return d != 1; });
    if (pads) in = Pad(r, in, node.operands[1], base, padding);
    const auto constant = [&](const std::vector<int64_t>& values) {
      return r.Const({{DType::kI64, {static_cast<int64_t>(values.size())}}, Buffer::Of<int64_t>(values)});
    };
    node.op = Op::kReduceWindow;
    node.operands = {in, node.operands[1], constant(sizes), constant(strides), constant(inner)};
    node.attrs = MakeAttrs("reduce_function", function);
    return {};
  }

  static ValueId Pad(Rewriter& r, ValueId in, ValueId init, const std::vector<int64_t>& base,
                     const std::vector<int64_t>& padding) {
    std::vector<int64_t> low;
    std::vector<int64_t> high;
    std::vector<int64_t> between;
    for (size_t i = 0; i < base.size(); ++i) {
      low.push_back(padding[2 * i]);
      high.push_back(padding[2 * i + 1]);
      between.push_back(base[i] - 1);
    }
    return r.Typed(Op::kStablehloPad, {in, init}, {r.type(in).dtype, Shape()},
                   MakeAttrs("edge_padding_low", std::move(low), "edge_padding_high", std::move(high),
                             "interior_padding", std::move(between)));
  }

  Status NameComputation(Node& node) {
    FUSEBOX_ASSIGN(const std::string function, Computation(node, "update_computation_subgraph_index"));
    node.attrs.Set("computation", function);
    return {};
  }

  Result<std::string> Computation(const Node& node, std::string_view attr) const {
    const FunctionRef* const ref = node.attrs.function(attr);
    const Function* const body = ref ? module_.Find(ref->name) : nullptr;
    const auto function = body ? FunctionOf(*body) : std::nullopt;
    if (!function) return Unsupported(std::string(kOtherBody));
    return *function;
  }

  Module& module_;
  std::vector<std::string> stay_;
};

}  // namespace

std::vector<std::string> LowerBodies(Module& module) { return Lowering(module).Run(); }

}  // namespace fusebox
