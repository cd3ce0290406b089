// SPDX-License-Identifier: Apache-2.0
#include "doors/tflite/delegate.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "doors/tflite/settings.h"
#include "doors/tflite/xnnpack.h"

namespace fusebox::tflite {
namespace {

using Json = nlohmann::json;

Json XnnpackOptions(const XnnpackDelegate& delegate) {
  Json options = Json::object();
  if (!delegate.cache_path.empty()) options["weight_cache_path"] = delegate.cache_path;
  if ((delegate.options.flags & TFLITE_XNNPACK_DELEGATE_FLAG_FORCE_FP16) != 0) options["precision"] = "f16";
  return options;
}

}  // namespace

std::optional<Settings> DelegateSettings(const std::vector<TfLiteDelegate*>& delegates, int threads,
                                         const Reporter& reporter) {
  Json list = Json::array();
  for (const TfLiteDelegate* delegate : delegates) {
    const XnnpackDelegate* xnnpack = AsXnnpack(delegate);
    if (xnnpack == nullptr) {
      reporter.Report(
          "A delegate of another library was added. Delegates run in the plugin tflite_delegate, which "
          "fusebox.json configures (FUSEBOX_CONFIG).");
      return std::nullopt;
    }
    // The last one added decides: a program may add one with a cache to a default one.
    list = Json::array({{{"name", "xnnpack"}, {"options", XnnpackOptions(*xnnpack)}}});
    threads = std::max(threads, static_cast<int>(xnnpack->options.num_threads));
  }
  Json model = {{"import", "auto"}};
  if (!list.empty() || ConfigPath() == nullptr) model["delegates"] = std::move(list);
  return Settings{model.dump(), Json{{"threads", threads}}.dump()};
}

}  // namespace fusebox::tflite
