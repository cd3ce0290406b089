// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <utility>

#include "host/eval/eval.h"
#include "host/plugin/call.h"

namespace fusebox {
namespace {

// Returns why a kernel declined, or nothing if it accepted.
std::optional<std::string> Declines(const KernelRef& candidate, const fbx_node& node) {
  HostCall call(*candidate.plugin, &SerialServices());
  const InCall in(call, node);
  const fbx_status status = candidate.kernel->supports(call.abi(), candidate.kernel->user, &node);
  if (status == FBX_OK) return std::nullopt;
  std::vector<std::string> reasons;
  for (const Diag& diag : call.TakeDiags()) reasons.push_back(ToString(diag));
  if (reasons.empty()) return call.Check(status).error().message;
  return fmt::format("{}: {}", candidate.plugin->id(), fmt::join(reasons, ", "));
}

std::string OperandTypes(const Function& function, const Node& node) {
  std::vector<std::string> types;
  for (const ValueId id : node.operands)
    types.push_back(id == kNoValue ? "-" : ToString(function.value(id).type));
  return fmt::format("({})", fmt::join(types, ", "));
}

// Custom ops that stand for code of an accelerator, and the accelerator.
constexpr std::pair<std::string_view, std::string_view> kCompiled[] = {
    {"ethos-u", "an Arm Ethos-U"},
    {"edgetpu-custom-op", "a Coral Edge TPU"},
};

std::unexpected<Error> NoKernel(const Registry& registry, const Function& function, const Node& node,
                                fbx_op_kind kind, std::string_view op,
                                const std::vector<std::string>& declined) {
  std::string message = fmt::format("no kernel for {}{}", op, OperandTypes(function, node));
  if (kind == FBX_OP_CUSTOM && op.starts_with("Flex"))
    return Unsupported(
        message +
        "; it is an op of TensorFlow: translate the file with `fusebox convert` first, or set \"import\": "
        "\"auto\"");
  for (const auto& [name, target] : kCompiled) {
    if (kind == FBX_OP_CUSTOM && op == name)
      return Unsupported(fmt::format("{}; the file was compiled for {} and runs there only: open the file "
                                     "that it was compiled from",
                                     message, target));
  }
  if (!declined.empty()) message += fmt::format("; declined by {}", fmt::join(declined, "; "));
  if (const auto who = registry.WhoProvides(kind, op); !who.empty()) {
    message += fmt::format("; listed in the manifest of {}", fmt::join(who, ", "));
  }
  if (node.fused != nullptr && !node.fused->plugin.empty()) {
    message += fmt::format("; fused by plugin {} {} (rule {})", node.fused->plugin,
                           node.fused->plugin_version, node.fused->rule);
  }
  if (declined.empty() && (kind == FBX_OP_CUSTOM || node.fused != nullptr)) {
    const auto places = registry.searched();
    message += places.empty() ? std::string("; no directory was searched for plugins")
                              : fmt::format("; plugins were searched in {}", fmt::join(places, ", "));
  }
  return Unsupported(std::move(message));
}

}  // namespace

Result<KernelRef> ChooseKernel(Registry& registry, const Function& function, const Node& node) {
  return ChooseKernel(registry, function, node, NodeView(function, node));
}

Result<KernelRef> ChooseKernel(Registry& registry, const Function& function, const Node& node,
                               const NodeView& view) {
  const bool custom = node.is(Op::kCustom);
  const fbx_op_kind kind = custom ? FBX_OP_CUSTOM : FBX_OP_BUILTIN;
  const std::string_view op = custom ? std::string_view(node.name) : Name(node.op);
  if (Info(node.op).code < 0) {
    return Unsupported(fmt::format("{}{} is an op of the source model without a TFLite equivalent", op,
                                   node.name.empty() ? "" : " " + node.name));
  }
  const std::vector<KernelRef>& candidates = registry.KernelsOf(kind, op);
  if (custom && !candidates.empty()) FUSEBOX_TRY(registry.CheckOptions(node));
  std::vector<std::string> declined;
  for (const KernelRef& candidate : candidates) {
    if (!candidate.Supports(node.version)) continue;
    if (!FBX_HAS(candidate.kernel, supports)) return candidate;
    auto why = Declines(candidate, *view.abi());
    if (!why) return candidate;
    declined.push_back(*std::move(why));
  }
  return NoKernel(registry, function, node, kind, op, declined);
}

Result<std::vector<std::string>> Callees(const Module& module, const Node& node) {
  std::vector<std::string_view> keys;
  if (node.is(Op::kCall)) keys = {"subgraph"};
  if (node.is(Op::kIf)) keys = {"then_subgraph_index", "else_subgraph_index"};
  if (node.is(Op::kWhile)) keys = {"cond_subgraph_index", "body_subgraph_index"};
  if (node.is(Op::kCallOnce)) keys = {"init_subgraph_index"};
  std::vector<std::string> names;
  for (const std::string_view key : keys) {
    const FunctionRef* ref = node.attrs.function(key);
    if (ref == nullptr) return Invalid(fmt::format("attribute {} is missing", key));
    names.push_back(ref->name);
  }
  if (node.is(Op::kStablehloComposite)) {
    if (node.body.empty()) return Invalid(fmt::format("composite {} has no body", node.name));
    names.push_back(node.body);
  }
  for (const std::string& name : names) {
    if (module.Find(name) == nullptr) return Invalid(fmt::format("function {} does not exist", name));
  }
  return names;
}

size_t ProperResults(const Node& node) {
  const size_t states = StateResultCount(node);
  return node.results.size() > states ? node.results.size() - states : node.results.size();
}

}  // namespace fusebox
