// SPDX-License-Identifier: Apache-2.0
#include "check/shown.h"

#include <fusebox/abi/ext/resize.h>
#include <fusebox/abi/ext/threads.h>

#include "check/invocation.h"
#include "host/graph/view.h"

namespace fusebox::check {
namespace {

constexpr uint32_t kNewerBytes = 64;  // members of a newer version

const void* GetExtension(const fbx_host* host, fbx_str id) noexcept {
  const ShownHost& shown = ShownOf(host);
  const std::string_view name = FromAbi(id);
  if (shown.rig->Hides(name)) return nullptr;
  const void* const real = shown.real->get_extension(shown.real, id);
  if (real == nullptr || shown.invocation == nullptr) return real;
  if (name == FBX_EXT_RESIZE) return &ResizeOfInvocation();
  if (name == FBX_EXT_THREADS) return &ThreadsOfInvocation();
  return real;
}

thread_local const fbx_attrs* shown_attrs = nullptr;
thread_local ViewPages* shown_pages = nullptr;

template <class T>
fbx_status Copied(fbx_status status, const fbx_attrs* attrs, const T*& values, const size_t& count) {
  if (status == FBX_OK && attrs == shown_attrs && count != SIZE_MAX)
    values = shown_pages->Array(values, count);
  return status;
}
fbx_status GetStr(const fbx_attrs* attrs, fbx_str key, fbx_str* out) noexcept {
  return Copied(AttrApi().get_str(attrs, key, out), attrs, out->ptr, out->len);
}
fbx_status GetI64s(const fbx_attrs* attrs, fbx_str key, const int64_t** out, size_t* count) noexcept {
  return Copied(AttrApi().get_i64s(attrs, key, out, count), attrs, *out, *count);
}

const fbx_attr_api* AttrsFor(Conditions::Abi abi) {
  static const auto make = [](Conditions::Abi age) {
    fbx_attr_api api = AttrApi();
    api.get_str = GetStr;
    api.get_i64s = GetI64s;
    FUSEBOX_AGE(api, get_map, age);
    return api;
  };
  using enum Conditions::Abi;
  static const fbx_attr_api tables[] = {make(kOfHost), make(kOldest), make(kNewer)};
  return &tables[static_cast<size_t>(abi)];
}

}  // namespace

ShownTexts::ShownTexts(const fbx_node& node, ViewPages& pages) {
  shown_attrs = node.attrs;
  shown_pages = &pages;
}
ShownTexts::~ShownTexts() { shown_attrs = nullptr; }

void Age(fbx_head& head, size_t size_in_1_0, Conditions::Abi abi) {
  using enum Conditions::Abi;
  if (abi == kOldest) head = {static_cast<uint32_t>(size_in_1_0), FBX_ABI_MAJOR, 0};
  if (abi == kNewer) head = {head.size + kNewerBytes, FBX_ABI_MAJOR, FBX_ABI_MINOR + 1};
}

const fbx_host* Show(const fbx_host* real, Rig& rig, ViewPages& pages, Invocation* invocation) {
  auto* const self = const_cast<HostCall*>(&HostCall::From(real));
  ShownHost* const shown =
      pages.Make(ShownHost{.host = *real, .self = self, .real = real, .rig = &rig, .invocation = invocation});
  shown->host.get_extension = GetExtension;
  shown->host.attrs = AttrsFor(rig.conditions().abi);
  FUSEBOX_AGE(shown->host, cancelled, rig.conditions().abi);
  return &shown->host;
}

std::vector<fbx_tensor*> Show(const fbx_tensor* const* tensors, size_t count, const Rig& rig,
                              ViewPages& pages) {
  std::vector<fbx_tensor*> shown;
  for (size_t i = 0; i < count; ++i) {
    fbx_tensor* const copy = pages.Make(*tensors[i]);
    if (copy->rank > 0) copy->dims = pages.Array(copy->dims, static_cast<size_t>(copy->rank));
    FUSEBOX_AGE(*copy, file, rig.conditions().abi);
    shown.push_back(copy);
  }
  return shown;
}

ShownNode Show(const fbx_node& real, const Rig& rig, ViewPages& pages) {
  ShownNode shown{pages.Make(real), Show(real.operands, real.operand_count, rig, pages),
                  Show(real.results, real.result_count, rig, pages)};
  shown.node->operands = pages.Array<const fbx_tensor*>(shown.operands.data(), shown.operands.size());
  shown.node->results = pages.Array<const fbx_tensor*>(shown.results.data(), shown.results.size());
  FUSEBOX_AGE(*shown.node, intermediate_count, rig.conditions().abi);
  return shown;
}

}  // namespace fusebox::check
