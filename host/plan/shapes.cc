// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "host/graph/quant.h"
#include "host/plan/plan.h"

namespace fusebox::plan {
namespace {

// Shape arithmetic has few numbers; larger values are computed by a step.
constexpr size_t kSmall = 4096;
constexpr int kMaxDepth = 64;

bool HasValue(const fbx_tensor& tensor) {
  return (tensor.flags & (FBX_TENSOR_CONST | FBX_TENSOR_KNOWN)) != 0;
}

std::vector<Type> Unknown(const std::vector<Type>& types) {
  std::vector<Type> unknown;
  for (const Type& type : types) unknown.push_back({type.dtype, Shape()});
  return unknown;
}

// Returns whether a value has its declared shape.
bool Fits(const fbx_tensor& tensor, const Shape& declared) {
  if (!declared.ranked() || tensor.rank < 0) return true;
  if (tensor.rank != declared.rank()) return false;
  const auto& dims = declared.dims();
  return std::equal(dims.begin(), dims.end(), tensor.dims,
                    [](int64_t d, int64_t is) { return d < 0 || d == is; });
}

bool IsEmpty(const fbx_tensor& tensor) {
  return std::any_of(tensor.dims, tensor.dims + std::max(tensor.rank, 0), [](int64_t d) { return d == 0; });
}

// Cache of output types, or the error, per function and input types. Nested branches may call one function
// many times, which would take exponential time.
struct Answers {
  struct Answer {
    std::vector<Type> inputs;
    Result<std::vector<Type>> outputs;
  };
  std::map<const Code*, std::vector<Answer>> known;

  const Result<std::vector<Type>>* Find(const Code& callee, const std::vector<Type>& inputs) const {
    const auto found = known.find(&callee);
    if (found == known.end()) return nullptr;
    for (const Answer& answer : found->second)
      if (answer.inputs == inputs) return &answer.outputs;
    return nullptr;
  }
};

class NodeShaper {
 public:
  NodeShaper(const Code& code, size_t index, View& view, Context& context, int depth, Answers& answers,
             NodeShapes& found)
      : code_(code),
        index_(index),
        unit_(code.units[index]),
        node_(*code.function->nodes[index]),
        abi_(view.node(index).abi),
        view_(view),
        context_(context),
        depth_(depth),
        answers_(answers),
        found_(found) {}

  Status Run() {
    Forget();
    if (unit_.only_infers) {
      // Use its infer if it succeeds.
      if (OfKernel()) return {};
      Forget();
      return OfVariable();
    }
    if (unit_.kernel) return OfKernel();
    if (!unit_.callees.empty()) return OfCallees();
    return OfVariable();
  }

 private:
  void Forget() {
    found_.kind = NodeShapes::kStatic;
    found_.types.clear();
    found_.values.clear();
    found_.needed.clear();
    found_.misfit = {};
  }

  Status OfKernel() {
    if (auto known = node_.results.size() == 1 ? ShapeOperand() : std::nullopt) {
      found_.kind = NodeShapes::kKnown;
      found_.values.push_back(*std::move(known));
      return {};
    }
    FUSEBOX_TRY(OperandScales());
    const auto& states = code_.states[index_];
    for (const StateUse& use : states) view_.SetType(use.to, TypeOf(view_.tensor(use.from)));
    HostCall& call = context_.calls.For(*unit_.kernel.plugin);
    Inference inference(ProperResults(node_), found_.types);
    FUSEBOX_TRY(CallInfer(*unit_.kernel.kernel, call, abi_, inference));
    for (const uint32_t operand : inference.needed()) {
      if (!HasValue(*abi_.operands[operand])) found_.needed.push_back(node_.operands[operand]);
    }
    if (!inference.needed().empty()) {
      if (found_.needed.empty()) return Internal("the kernel's infer requires a value that is known");
      found_.kind = NodeShapes::kNeedsValue;
      return {};
    }
    for (const StateUse& use : states) {
      found_.types.resize(node_.results.size());
      const auto result =
          std::find(node_.results.begin(), node_.results.end(), use.to) - node_.results.begin();
      found_.types[static_cast<size_t>(result)] = TypeOf(view_.tensor(use.from));
    }
    FUSEBOX_TRY(AsDeclared());
    FUSEBOX_TRY(Classify());
    return found_.kind == NodeShapes::kStatic && MayEvaluate() ? Evaluate() : Status();
  }

  // The readers of a result were chosen by its declared type.
  Status AsDeclared() const {
    for (size_t i = 0; i < found_.types.size() && i < node_.results.size(); ++i) {
      if (node_.results[i] == kNoValue) continue;
      if (const Quant* const quant = ScalesOf(node_.results[i]))
        FUSEBOX_TRY(VerifyAxis(*quant, found_.types[i]).At("result " + std::to_string(i)));
      const DType found = found_.types[i].dtype;
      const DType declared = code_.function->value(node_.results[i]).type.dtype;
      if (found == declared || found == DType::kNone || declared == DType::kNone) continue;
      return Invalid(
          fmt::format("result {} is declared {}, but infer returns {}", i, Name(declared), Name(found)));
    }
    return {};
  }

  // Scales were checked against the shapes that the file declares.
  const Quant* ScalesOf(ValueId id) const {
    if (id == kNoValue || code_.function->value(id).is_const()) return nullptr;
    const Quant* const quant = code_.function->value(id).quant.get();
    return quant != nullptr && quant->scales.size() > 1 ? quant : nullptr;
  }

  Status OperandScales() const {
    for (size_t i = 0; i < node_.operands.size(); ++i)
      if (const Quant* const quant = ScalesOf(node_.operands[i]))
        FUSEBOX_TRY(VerifyAxis(*quant, TypeOf(*abi_.operands[i])).At("operand " + std::to_string(i)));
    return {};
  }

  // SHAPE and RANK need no value of their operand.
  std::optional<Tensor> ShapeOperand() const {
    if (!node_.is(Op::kShape) && !node_.is(Op::kRank)) return std::nullopt;
    if (node_.operands.empty() || node_.results.empty() || node_.results[0] == kNoValue) return std::nullopt;
    return ShapeValue(node_, TypeOf(*abi_.operands[0]).shape,
                      code_.function->value(node_.results[0]).type.dtype);
  }

  bool MayEvaluate() const {
    if (Info(node_.op).effects != Effects::kPure || node_.operands.empty() || unit_.only_infers) return false;
    size_t bytes = 0;
    for (uint32_t i = 0; i < abi_.operand_count; ++i) {
      const fbx_tensor& tensor = *abi_.operands[i];
      if (tensor.flags & FBX_TENSOR_ABSENT) continue;
      if (!HasValue(tensor)) return false;
      bytes += tensor.bytes;
    }
    for (const Type& type : found_.types) bytes += StorageSize(type).value_or(kSmall + 1);
    return bytes <= kSmall;
  }

  Status Evaluate() {
    std::vector<Tensor> operands;
    for (uint32_t i = 0; i < abi_.operand_count; ++i) {
      const fbx_tensor& tensor = *abi_.operands[i];
      if (tensor.flags & FBX_TENSOR_ABSENT) {
        operands.emplace_back();
        continue;
      }
      operands.push_back(
          {TypeOf(tensor), Buffer::Copy({static_cast<const std::byte*>(tensor.data), tensor.bytes})});
    }
    FUSEBOX_ASSIGN(found_.values,
                   fusebox::Evaluate(unit_.kernel, context_.calls, *code_.function, node_, operands));
    found_.kind = NodeShapes::kKnown;
    return {};
  }

  // Separates steps of known size from those that size their results. Rejects types that cannot be stored.
  Status Classify() {
    const MemoryBudget* const budget = MemoryBudget::Current();
    for (size_t i = 0; i < found_.types.size() && i < node_.results.size(); ++i) {
      const Type& type = found_.types[i];
      if (node_.results[i] == kNoValue) continue;
      if (!type.shape.is_static()) {
        found_.kind = NodeShapes::kDynamic;
      } else if (const auto size = StorageSize(type)) {
        // Before kernels and delegates prepare for what the session cannot allocate.
        if (budget != nullptr)
          FUSEBOX_TRY(budget->Allows(*size).At(
              [&] { return "result " + code_.DescribeValue(node_.results[i], type); }));
      } else if (type.dtype != DType::kString) {
        return Unsupported(fmt::format("result {} is {}, which cannot be stored", i, ToString(type)));
      }
    }
    return {};
  }

  std::vector<Type> OperandTypes(size_t first) const {
    std::vector<Type> types;
    for (uint32_t i = static_cast<uint32_t>(first); i < abi_.operand_count; ++i)
      types.push_back(TypeOf(*abi_.operands[i]));
    return types;
  }

  Status OfCallees() {
    if (node_.is(Op::kCallOnce)) return {};
    std::vector<Type>& types = found_.types;
    if (node_.is(Op::kIf) && !unit_.runs_body) {
      // A branch that does not accept these shapes may never run. If it runs, it reports the error.
      const Result<std::vector<Type>> then = Outputs(*unit_.callees[0], OperandTypes(1));
      const Result<std::vector<Type>> otherwise = Outputs(*unit_.callees[1], OperandTypes(1));
      if (!then && !otherwise) return std::unexpected(then.error());
      types = then ? *then : *otherwise;
      if (then && otherwise && *then != *otherwise) types = Unknown(types);
    } else if (node_.is(Op::kWhile) && !unit_.runs_body) {
      const std::vector<Type> carried = OperandTypes(0);
      // A body that does not accept these shapes may never run. If it runs, it reports the error.
      const Result<std::vector<Type>> once = AfterOnce(*unit_.callees[1], carried);
      types = once && *once == carried ? carried : Unknown(carried);
    } else {
      FUSEBOX_ASSIGN(types, Outputs(*unit_.callees[0], OperandTypes(0)));
    }
    return Classify();
  }

  // Output types of a loop body for these inputs. The first iteration uses the same plan.
  Result<std::vector<Type>> AfterOnce(const Code& body, const std::vector<Type>& carried) {
    if (context_.loops == nullptr || depth_ > 0) return Outputs(body, carried);
    return context_.loops->Plan(body, {abi_.operands, abi_.operand_count});
  }

  // Output types of a function for these input types; unranked if they depend on data.
  Result<std::vector<Type>> Outputs(const Code& callee, const std::vector<Type>& inputs) {
    if (unit_.part >= 0) return Find(callee, inputs);  // also finds misfits
    if (const auto* known = answers_.Find(callee, inputs)) return *known;
    Result<std::vector<Type>> outputs = Find(callee, inputs);
    answers_.known[&callee].push_back({inputs, outputs});
    return outputs;
  }

  Result<std::vector<Type>> Find(const Code& callee, const std::vector<Type>& inputs) {
    const Function& function = *callee.function;
    if (depth_ >= kMaxDepth) return Invalid(fmt::format("function {}: calls nest too deeply", function.name));
    if (inputs.size() != function.inputs.size()) {
      return Invalid(fmt::format("function {} has {} inputs, not {}", function.name, function.inputs.size(),
                                 inputs.size()));
    }
    View view(callee);
    for (size_t i = 0; i < inputs.size(); ++i) view.SetType(function.inputs[i], inputs[i]);
    CheckDeclared(function, function.inputs, view);
    const bool has_empty_input =
        std::ranges::any_of(function.inputs, [&](ValueId id) { return IsEmpty(view.tensor(id)); });
    NodeShapes shapes;
    for (size_t i = 0; i < function.nodes.size(); ++i) {
      FUSEBOX_TRY(NodeShaper(callee, i, view, context_, depth_ + 1, answers_, shapes)
                      .Run()
                      .At([&] { return callee.Describe(i); })
                      .At([&] { return "function " + callee.name(); }));
      if (shapes.kind == NodeShapes::kDynamic || shapes.kind == NodeShapes::kNeedsValue)
        return AfterUnknown(callee, view, i);
      Note(*function.nodes[i], shapes, view);
      CheckDeclared(function, function.nodes[i]->results, view, !has_empty_input);
    }
    if (unit_.part >= 0) ReserveInside(callee, view);
    for (ValueId id = 0; found_.misfit && id < function.value_count(); ++id)
      found_.misfit.shapes.push_back(TypeOf(view.tensor(id)).shape);
    std::vector<Type> types;
    for (const ValueId id : function.outputs) types.push_back(TypeOf(view.tensor(id)));
    return types;
  }

  // Counts the values inside of a partition, for which its delegate allocates memory.
  void ReserveInside(const Code& callee, View& view) {
    if (context_.inside == nullptr || context_.delegates == nullptr) return;
    std::vector<Request> requests;
    for (ValueId id = 0; id < view.value_count(); ++id) {
      const ValueUse& use = callee.use(id);
      if (use.defined >= 0 && use.output < 0)
        requests.push_back({StorageSize(TypeOf(view.tensor(id))).value_or(0), use.defined,
                            std::max(use.defined, use.last_use)});
    }
    AllocateFor([&] { return "values inside of " + code_.Describe(index_); },
                [&] { context_.inside->Reserve(Arrange(requests)); });
  }

  // `unexpected_if_empty`: a delegate cannot see that a value inside of its partition is empty.
  void CheckDeclared(const Function& function, std::span<const ValueId> ids, View& view,
                     bool unexpected_if_empty = false) {
    if (unit_.part < 0) return;
    const bool needs_dims =
        context_.delegates != nullptr && context_.delegates->needs_dims(static_cast<size_t>(unit_.part));
    for (const ValueId id : ids) {
      if (id == kNoValue || found_.misfit) continue;
      const fbx_tensor& tensor = view.tensor(id);
      const Shape& declared = function.value(id).type.shape;
      if (Fits(tensor, declared) && (!needs_dims || declared.is_static()) &&
          !(unexpected_if_empty && IsEmpty(tensor) && declared.element_count() != 0))
        continue;
      found_.misfit.what = fmt::format("value '{}' is declared {}, but is {}", function.value(id).name,
                                       ToString(function.value(id).type), ToString(TypeOf(view.tensor(id))));
    }
  }

  // Types from node `index` on are unknown.
  static std::vector<Type> AfterUnknown(const Code& callee, View& view, size_t index) {
    std::vector<Type> types;
    for (const ValueId id : callee.function->outputs) {
      Type type = TypeOf(view.tensor(id));
      if (callee.use(id).defined >= static_cast<int>(index)) type.shape = Shape();
      types.push_back(std::move(type));
    }
    return types;
  }

  void Note(const Node& node, const NodeShapes& shapes, View& view) {
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (node.results[i] == kNoValue) continue;
      if (shapes.kind != NodeShapes::kKnown) {
        view.SetType(node.results[i], shapes.types[i]);
        continue;
      }
      view.SetType(node.results[i], shapes.values[i].type);
      fbx_tensor& tensor = view.tensor(node.results[i]);
      tensor.data = const_cast<std::byte*>(shapes.values[i].data.data());
      tensor.bytes = shapes.values[i].data.size();
      tensor.flags |= FBX_TENSOR_KNOWN;
      kept_.push_back(shapes.values[i]);
    }
  }

  // Variables and hash tables have their declared types.
  Status OfVariable() {
    for (const ValueId id : node_.results)
      found_.types.push_back(id == kNoValue ? Type() : code_.function->value(id).type);
    if (node_.is(Op::kVarHandle) || node_.is(Op::kHashtable)) found_.types[0].shape = Shape::Scalar();
    if (node_.is(Op::kHashtableFind)) found_.types[0].shape = TypeOf(*abi_.operands[1]).shape;
    return Classify();
  }

  const Code& code_;
  const size_t index_;
  const Unit& unit_;
  const Node& node_;
  const fbx_node& abi_;
  View& view_;
  Context& context_;
  int depth_;
  Answers& answers_;
  NodeShapes& found_;
  std::vector<Tensor> kept_;  // known values that views of callees point to
};

}  // namespace

Status FindShapes(const Code& code, size_t node, View& view, Context& context, NodeShapes& found) {
  Answers answers;
  return NodeShaper(code, node, view, context, 0, answers, found).Run();
}

}  // namespace fusebox::plan
