// SPDX-License-Identifier: Apache-2.0
#include "host/import.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fusebox/c_convert.h"
#include "host/base/cancel.h"
#include "host/convert_library.h"
#include "host/graph/calls.h"

namespace fusebox {
namespace {

bool LacksKernel(const Node& node, Registry& registry) {
  return node.is(Op::kCustom) && node.name.starts_with(kFlex) && node.name.size() > kFlex.size() &&
         node.body.empty() && registry.KernelsOf(FBX_OP_CUSTOM, node.name).empty();
}

std::string OptionsOf(const Registry& registry, const ImportOptions& options) {
  nlohmann::json json = {{"composites", options.fuse ? "fuse" : "inline"}, {"verify", "off"}};
  if (options.keep_bodies && options.fuse) json["keep_bodies"] = "all";
  if (!registry.config().path.empty()) json["config"] = registry.config().path;
  return json.dump();
}

Code CodeOf(fusebox_status status) {
  switch (status) {
    case FUSEBOX_INVALID: return Code::kInvalid;
    case FUSEBOX_UNSUPPORTED: return Code::kUnsupported;
    case FUSEBOX_NOT_FOUND: return Code::kNotFound;
    case FUSEBOX_IO: return Code::kIo;
    case FUSEBOX_OUT_OF_MEMORY: return Code::kOutOfMemory;
    case FUSEBOX_CANCELLED: return Code::kCancelled;
    default: return Code::kInternal;
  }
}

// At least 1; 0: no limit.
int64_t RemainingMs(const Limits& limits) {
  if (limits.end == Limits::kNever) return 0;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(limits.end - Limits::Clock::now());
  return std::max<int64_t>(left.count(), 1);
}

// Memory of the library; null: empty.
class Text {
 public:
  explicit Text(const ConvertLibrary& library) : library_(library) {}
  Text(const Text&) = delete;
  ~Text() { library_.free(text_); }
  char** out() { return &text_; }
  std::string_view view() const { return text_ != nullptr ? text_ : std::string_view(); }

 private:
  const ConvertLibrary& library_;
  char* text_ = nullptr;
};

}  // namespace

bool NeedsImport(const Module& module, Registry& registry) {
  std::vector<std::string> entries;
  if (!module.functions.empty()) entries.push_back(module.functions.front()->name);
  for (const Signature& signature : module.signatures) entries.push_back(signature.function);
  const auto needs = [&](const std::string& entry) {
    return std::ranges::any_of(Reachable(module, {entry}), [&](const Function* function) {
      return std::ranges::any_of(function->nodes,
                                 [&](const auto& node) { return LacksKernel(*node, registry); });
    });
  };
  return !entries.empty() && std::ranges::all_of(entries, needs);
}

Result<Imported> ImportFile(const Buffer& file, const std::string& name, const Registry& registry,
                            const ImportOptions& options) {
  FUSEBOX_ASSIGN(const ConvertLibrary* const library, LoadConvertLibrary().At(name));
  const std::string config = TextOf(registry.config());
  const std::vector<fbx_static_plugin> linked = registry.linked();
  std::vector<const fbx_static_plugin*> plugins;
  for (const fbx_static_plugin& plugin : linked) plugins.push_back(&plugin);
  fusebox_convert_source source = FUSEBOX_CONVERT_SOURCE;
  source.bytes = file.data();
  source.size = file.size();
  source.name = name.c_str();
  source.config = config.c_str();
  source.plugins = plugins.data();
  source.plugin_count = static_cast<uint32_t>(plugins.size());
  const Limits& limits = CancelScope::Current();
  source.cancel = reinterpret_cast<const uint8_t*>(limits.flag);
  source.time_limit_ms = RemainingMs(limits);
  source.registry = registry.number();
  void* bytes = nullptr;
  size_t size = 0;
  Text report(*library);
  Text error(*library);
  const fusebox_status status = library->convert_bytes(&source, OptionsOf(registry, options).c_str(), nullptr,
                                                       nullptr, &bytes, &size, report.out(), error.out());
  if (status != FUSEBOX_OK)
    return Fail(CodeOf(status), error.view().empty() ? name + ": out of memory" : std::string(error.view()));
  const std::shared_ptr<const void> owner(
      bytes, [library](const void* memory) { library->free(const_cast<void*>(memory)); });
  return Imported{Buffer(owner, {static_cast<const std::byte*>(bytes), size}), std::string(report.view())};
}

}  // namespace fusebox
