// SPDX-License-Identifier: Apache-2.0
#include "host/fusion/declared.h"

#include <algorithm>

#include "host/fusion/site.h"

namespace fusebox {
namespace {

using Operand = DeclaredRewrite::Operand;

std::string Subject(int operand) { return "operand " + std::to_string(operand); }

// Finds the first condition of a declared rule that a composite does not meet.
class Conditions {
 public:
  Conditions(const DeclaredRewrite& rewrite, const Function& caller, const Node& composite)
      : rewrite_(rewrite), caller_(caller), composite_(composite) {}

  std::optional<Diag> Unmet() const {
    if (rewrite_.operands) {
      int known = 0;
      for (const Operand& operand : *rewrite_.operands) known = std::max(known, operand.from + 1);
      if (auto why = Arity(composite_.operands.size(), static_cast<size_t>(known), "operands")) return why;
      for (const Operand& operand : *rewrite_.operands) {
        if (auto why = operand.from < 0 ? std::nullopt : Unmet(operand)) return why;
      }
    }
    if (rewrite_.results) {
      if (auto why = Arity(composite_.results.size(), rewrite_.results->size(), "results")) return why;
    }
    for (const auto& attribute : rewrite_.attributes) {
      if (!attribute.value && !composite_.attrs.Find(attribute.from))
        return Diag{FBX_NOTE, "ATTR", "is missing", "attr " + attribute.from};
    }
    return std::nullopt;
  }

 private:
  static std::optional<Diag> Arity(size_t is, size_t expected, const std::string& what) {
    if (is == expected) return std::nullopt;
    return Diag{FBX_NOTE, "ARITY",
                "has " + std::to_string(is) + " " + what + ", expected " + std::to_string(expected), ""};
  }

  std::optional<Diag> Unmet(const Operand& operand) const {
    const auto says = [&](const char* code, const std::string& why) {
      return Diag{FBX_NOTE, code, why, Subject(operand.from)};
    };
    const bool needed = operand.dtype || operand.rank || operand.constant;
    const ValueId v = composite_.operands[static_cast<size_t>(operand.from)];
    if (v == kNoValue) return needed ? std::optional(says("ARITY", "is absent")) : std::nullopt;
    const Value& value = caller_.value(v);
    if (operand.dtype && value.type.dtype != *operand.dtype)
      return says("DTYPE", "is " + std::string(Name(value.type.dtype)) + ", expected " +
                               std::string(Name(*operand.dtype)));
    if (operand.rank && !value.type.shape.ranked()) return says("RANK", "has an unknown rank");
    if (operand.rank && static_cast<int>(value.type.shape.dims().size()) != *operand.rank)
      return says("RANK", "has rank " + std::to_string(value.type.shape.dims().size()) + ", expected " +
                              std::to_string(*operand.rank));
    if (operand.constant && !value.is_const()) return says("NONCONST", "is computed, not constant");
    return std::nullopt;
  }

  const DeclaredRewrite& rewrite_;
  const Function& caller_;
  const Node& composite_;
};

class Replacement {
 public:
  Replacement(const ManifestRule& rule, Registry& registry, const Function& caller, const Node& composite)
      : rule_(rule), registry_(registry), caller_(caller), composite_(composite) {
    function_ = &module_->Add("replacement");
    given_ = AddOperands(*function_, caller, composite);
  }

  Result<std::unique_ptr<Module>> Build() {
    FUSEBOX_ASSIGN(std::vector<ValueId> operands, Operands());
    const DeclaredRewrite& rewrite = *rule_.rewrite;
    std::vector<int> results;
    for (size_t i = 0; i < composite_.results.size(); ++i)
      results.push_back(rewrite.results ? (*rewrite.results)[i] : static_cast<int>(i));
    const int most = results.empty() ? -1 : *std::max_element(results.begin(), results.end());
    std::vector<Type> types(static_cast<size_t>(most + 1));
    for (size_t i = 0; i < results.size(); ++i) types[static_cast<size_t>(results[i])] = ResultType(i);

    const ManifestOp& op = rule_.emits[0];
    Node& node = function_->AddNode(op.kind == FBX_OP_CUSTOM ? Op::kCustom : *FindOp(op.name),
                                    std::move(operands), std::move(types), Attributes());
    if (op.kind == FBX_OP_CUSTOM) node.name = op.name;
    node.version = op.version;
    FUSEBOX_TRY(CompleteOptions(registry_, node));
    for (size_t i = 0; i < results.size(); ++i)
      function_->value(node.results[static_cast<size_t>(results[i])]).quant = ResultQuant(i);
    if (op.kind == FBX_OP_BUILTIN || !registry_.KernelsFor(op.kind, op.name, op.version).empty())
      FUSEBOX_TRY(InferNode(registry_, *module_, *function_, node));
    for (size_t i = 0; i < results.size(); ++i) {
      const ValueId v = node.results[static_cast<size_t>(results[i])];
      const Type& is = function_->value(v).type;
      if (!Compatible(is, ResultType(i)))
        return Invalid("result " + std::to_string(i) + " is " + ToString(is) + ", the composite declares " +
                       ToString(ResultType(i)));
      function_->outputs.push_back(v);
    }
    FUSEBOX_TRY(Verify(*module_));
    return std::move(module_);
  }

 private:
  Type ResultType(size_t i) const {
    const ValueId v = composite_.results[i];
    return v == kNoValue ? Type{} : caller_.value(v).type;
  }

  std::shared_ptr<const Quant> ResultQuant(size_t i) const {
    const ValueId v = composite_.results[i];
    return v == kNoValue ? nullptr : caller_.value(v).quant;
  }

  Result<std::vector<ValueId>> Operands() {
    if (!rule_.rewrite->operands) return given_;
    std::vector<ValueId> operands;
    for (const Operand& operand : *rule_.rewrite->operands) {
      operands.push_back(operand.from < 0 ? kNoValue : given_[static_cast<size_t>(operand.from)]);
      if (operand.permutation.empty()) continue;
      const std::vector<int32_t> order(operand.permutation.begin(), operand.permutation.end());
      const ValueId permutation = function_->AddConst<int32_t>(
          DType::kI32, {static_cast<int64_t>(order.size())}, order, "permutation");
      operands.back() =
          function_->AddNode(Op::kTranspose, {operands.back(), permutation}, {Type{}}).results[0];
      FUSEBOX_TRY(InferAndFold(registry_, *module_, *function_));
    }
    return operands;
  }

  Attrs Attributes() const {
    Attrs attrs;
    for (const auto& attribute : rule_.rewrite->attributes) {
      const AttrValue* const own = attribute.from.empty() ? nullptr : composite_.attrs.Find(attribute.from);
      attrs.Set(attribute.name, own ? *own : *attribute.value);
    }
    return attrs;
  }

  const ManifestRule& rule_;
  Registry& registry_;
  const Function& caller_;
  const Node& composite_;
  std::unique_ptr<Module> module_ = std::make_unique<Module>();
  Function* function_;
  std::vector<ValueId> given_;  // the composite's operands
};

}  // namespace

std::unique_ptr<Module> RewriteAsDeclared(const ManifestRule& rule, Registry& registry,
                                          const Function& caller, const Node& composite, RuleReport& report) {
  using enum RuleReport::Outcome;
  if (const auto why = Conditions(*rule.rewrite, caller, composite).Unmet()) {
    report.outcome = kNotApplicable;
    report.reasons.push_back(ToString(*why));
    return nullptr;
  }
  auto built = Replacement(rule, registry, caller, composite).Build();
  report.outcome = built ? kFused : kError;
  if (built) return *std::move(built);
  report.reasons.push_back("the replacement is invalid: " + built.error().message);
  return nullptr;
}

}  // namespace fusebox
