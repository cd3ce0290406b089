// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_set>

#include "host/graph/view.h"
#include "host/plugin/steps.h"

namespace fusebox {
namespace {

// Size up to the last member of version 1.0.
constexpr size_t kPluginSize = offsetof(fbx_plugin, get_extension) + sizeof(fbx_plugin::get_extension);
constexpr size_t kRuleSize = offsetof(fbx_rule, tolerance) + sizeof(fbx_rule::tolerance);
constexpr size_t kToleranceSize = offsetof(fbx_tolerance, rtol) + sizeof(fbx_tolerance::rtol);
constexpr size_t kKernelSize = offsetof(fbx_kernel, free) + sizeof(fbx_kernel::free);
constexpr size_t kDelegateSize =
    offsetof(fbx_delegate, destroy_partition) + sizeof(fbx_delegate::destroy_partition);
constexpr uint32_t kMostEntries = 10000;
constexpr size_t kLongestName = 1000;

std::string Where(std::string_view what, uint32_t index) {
  return std::string(what) + " " + std::to_string(index);
}

Status CheckHead(const fbx_head& head, size_t least, std::string_view type) {
  constexpr std::string_view kRemedy = "; set its head with FBX_HEAD";
  if (head.size < least)
    return Invalid(std::string(type) + " is " + std::to_string(head.size) +
                   " bytes long, expected at least " + std::to_string(least) + std::string(kRemedy));
  if (head.major != FBX_ABI_MAJOR)
    return Unsupported(std::string(type) + " is of ABI " + std::to_string(head.major) + ", this host has " +
                       std::to_string(FBX_ABI_MAJOR) + std::string(kRemedy));
  return {};
}

Status CheckName(fbx_str name, std::string_view what) {
  if (name.ptr == nullptr || name.len == 0 || name.len > kLongestName)
    return Invalid(std::string(what) + " is empty or too long; set a name");
  return {};
}

// Checks an array of pointers to structs with a head. `check` is called only for entries that are long
// enough.
template <class T, class F>
Status CheckTable(const T* const* table, uint32_t count, size_t least, std::string_view type, F&& check) {
  if (count > kMostEntries || (count > 0 && table == nullptr))
    return Invalid("a table of " + std::to_string(count) + " " + std::string(type) +
                   " cannot be right; set the table and its count");
  for (uint32_t i = 0; i < count; ++i) {
    if (table[i] == nullptr) return Invalid(Where(type, i) + " is null; correct the table or its count");
    Status checked = CheckHead(table[i]->head, least, type);
    if (checked) checked = check(*table[i]);
    if (!checked) return std::move(checked).At(Where(type, i));
  }
  return {};
}

Status CheckRule(const fbx_rule& rule) {
  FUSEBOX_TRY(CheckName(rule.id, "id"));
  FUSEBOX_TRY(CheckName(rule.implements, "implements"));
  if (rule.match == nullptr || rule.rewrite == nullptr)
    return Invalid(std::string(FromAbi(rule.id)) + ": match or rewrite is null; set both");
  if (rule.tolerance) return CheckHead(rule.tolerance->head, kToleranceSize, "fbx_tolerance");
  return {};
}

Status CheckKernel(const fbx_kernel& kernel) {
  FUSEBOX_TRY(CheckName(kernel.op, "op"));
  const auto op = [&] { return std::string(FromAbi(kernel.op)); };
  if (kernel.kind != FBX_OP_BUILTIN && kernel.kind != FBX_OP_CUSTOM)
    return Unsupported(op() + ": op kind " + std::to_string(kernel.kind) +
                       " is unknown; use FBX_OP_BUILTIN or FBX_OP_CUSTOM");
  if (kernel.infer == nullptr || kernel.invoke == nullptr)
    return Invalid(op() + ": infer or invoke is null; set both");
  return {};
}

Status CheckDelegate(const fbx_delegate& delegate) {
  FUSEBOX_TRY(CheckName(delegate.name, "name"));
  if (delegate.create == nullptr || delegate.destroy == nullptr || delegate.claim == nullptr ||
      delegate.compile == nullptr || delegate.prepare == nullptr || delegate.invoke == nullptr ||
      delegate.destroy_partition == nullptr)
    return Invalid(std::string(FromAbi(delegate.name)) +
                   ": a function is null; only open_session, finish and " + "close_session may be");
  return {};
}

std::string_view KindName(fbx_op_kind kind) { return kind == FBX_OP_BUILTIN ? "builtin" : "custom"; }

using NameList = std::vector<std::string_view>;

Status SameNames(NameList manifest, NameList library, const std::string& what) {
  std::ranges::sort(manifest);
  std::ranges::sort(library);
  for (const std::string_view name : manifest) {
    if (!std::ranges::binary_search(library, name))
      return Invalid("the manifest lists " + what + " " + std::string(name) +
                     ", but the library has none; add it to the library, or remove it from the manifest");
  }
  for (const std::string_view name : library) {
    if (!std::ranges::binary_search(manifest, name))
      return Invalid("the library has " + what + " " + std::string(name) +
                     ", but the manifest does not list it; add it there");
  }
  return {};
}

Status SameText(std::string_view manifest, std::string_view library, std::string_view what) {
  if (manifest == library) return {};
  return Invalid("the manifest has " + std::string(what) + " " + std::string(manifest) +
                 ", the library has " + std::string(library) + "; make them equal");
}

Status CompareRules(const fbx_plugin& plugin, const Manifest& manifest) {
  NameList promised;
  NameList present;
  for (const ManifestRule& rule : manifest.rules) {
    if (!rule.rewrite) promised.push_back(rule.id);
  }
  for (uint32_t i = 0; i < plugin.rule_count; ++i) {
    const std::string_view id = FromAbi(plugin.rules[i]->id);
    if (std::ranges::find(present, id) != present.end())
      return Invalid("the library has two rules " + std::string(id) + "; remove or rename one");
    present.push_back(id);
  }
  FUSEBOX_TRY(SameNames(std::move(promised), std::move(present), "rule"));
  for (uint32_t i = 0; i < plugin.rule_count; ++i) {
    const fbx_rule& rule = *plugin.rules[i];
    const auto stated = std::find_if(manifest.rules.begin(), manifest.rules.end(),
                                     [&](const ManifestRule& r) { return r.id == FromAbi(rule.id); });
    const std::string implements(FromAbi(rule.implements));
    if (std::find(stated->implements.begin(), stated->implements.end(), implements) ==
        stated->implements.end())
      return Invalid("rule " + stated->id + " implements " + implements +
                     ", which its manifest does not list; add it to \"implements\"");
  }
  return {};
}

Status CompareOps(const fbx_plugin& plugin, const Manifest& manifest) {
  std::vector<const fbx_kernel*> kernels(plugin.kernels, plugin.kernels + plugin.kernel_count);
  std::ranges::sort(kernels);
  if (const auto twice = std::ranges::adjacent_find(kernels); twice != kernels.end())
    return Invalid("the library lists one kernel for " + std::string(KindName((*twice)->kind)) + " " +
                   std::string(FromAbi((*twice)->op)) + " twice; remove one");
  for (const fbx_op_kind kind : {FBX_OP_BUILTIN, FBX_OP_CUSTOM}) {
    NameList promised;
    NameList present;
    for (const ManifestOp& op : manifest.ops)
      if (op.kind == kind) promised.push_back(op.name);
    for (const fbx_kernel* kernel : kernels)
      if (kernel->kind == kind) present.push_back(FromAbi(kernel->op));
    FUSEBOX_TRY(
        SameNames(std::move(promised), std::move(present), "a kernel for " + std::string(KindName(kind))));
  }
  return {};
}

}  // namespace

Result<const fbx_plugin*> CallLoad(const fbx_entry& entry, HostCall& host) {
  const fbx_plugin* plugin = nullptr;
  FUSEBOX_TRY(host.Check(entry.load(host.abi(), &plugin)));
  if (plugin == nullptr) return Invalid("load succeeded, but returned no plugin; set *out");
  return plugin;
}

Status CheckPlugin(const fbx_plugin& plugin) {
  FUSEBOX_TRY(CheckHead(plugin.head, kPluginSize, "fbx_plugin"));
  FUSEBOX_TRY(CheckName(plugin.id, "id"));
  FUSEBOX_TRY(CheckName(plugin.version, "version"));
  FUSEBOX_TRY(CheckTable(plugin.rules, plugin.rule_count, kRuleSize, "fbx_rule", CheckRule));
  FUSEBOX_TRY(CheckTable(plugin.kernels, plugin.kernel_count, kKernelSize, "fbx_kernel", CheckKernel));
  return CheckTable(plugin.delegates, plugin.delegate_count, kDelegateSize, "fbx_delegate", CheckDelegate);
}

Status CompareWithManifest(const fbx_plugin& plugin, const Manifest& manifest) {
  FUSEBOX_TRY(SameText(manifest.id, FromAbi(plugin.id), "id"));
  FUSEBOX_TRY(SameText(manifest.version, FromAbi(plugin.version), "version"));
  FUSEBOX_TRY(CompareRules(plugin, manifest));
  FUSEBOX_TRY(CompareOps(plugin, manifest));
  NameList promised;
  NameList present;
  for (const ManifestDelegate& delegate : manifest.delegates) promised.push_back(delegate.name);
  for (uint32_t i = 0; i < plugin.delegate_count; ++i) present.push_back(FromAbi(plugin.delegates[i]->name));
  FUSEBOX_TRY(SameNames(std::move(promised), std::move(present), "delegate"));
  for (const std::string& id : manifest.provides_extensions) {
    if (plugin.get_extension == nullptr || plugin.get_extension(plugin.user, AsAbi(id)) == nullptr)
      return Invalid("the manifest lists extension " + id + ", but the library has none; return it from " +
                     "get_extension, or remove it from the manifest");
  }
  return {};
}

Manifest ManifestOf(const fbx_plugin& plugin) {
  Manifest manifest;
  manifest.id = FromAbi(plugin.id);
  manifest.version = FromAbi(plugin.version);
  manifest.name_space = manifest.id.substr(0, manifest.id.find('.'));
  for (uint32_t i = 0; i < plugin.rule_count; ++i) {
    const fbx_rule& rule = *plugin.rules[i];
    ManifestRule stated;
    stated.id = FromAbi(rule.id);
    stated.implements = {std::string(FromAbi(rule.implements))};
    manifest.rules.push_back(std::move(stated));
  }
  for (uint32_t i = 0; i < plugin.delegate_count; ++i)
    manifest.delegates.push_back({std::string(FromAbi(plugin.delegates[i]->name)), "", true});
  return manifest;
}

void AddOps(const fbx_plugin& plugin, Manifest& manifest) {
  std::unordered_set<std::string_view> seen[2];
  manifest.ops.reserve(plugin.kernel_count);
  for (uint32_t i = 0; i < plugin.kernel_count; ++i) {
    const fbx_kernel& kernel = *plugin.kernels[i];
    if (!seen[kernel.kind == FBX_OP_BUILTIN].insert(FromAbi(kernel.op)).second) continue;
    ManifestOp& op = manifest.ops.emplace_back();
    op.kind = kernel.kind;
    op.name = FromAbi(kernel.op);
  }
}

}  // namespace fusebox
