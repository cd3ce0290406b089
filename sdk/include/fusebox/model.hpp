// SPDX-License-Identifier: Apache-2.0
// Registry, Model and the log sink: C++20 over libfusebox's <fusebox/c.h>, which has the rules about threads
// and lifetimes.
//
//   auto registry = fusebox::Registry::Create({.config = R"({"plugins": ["my_op"]})"});
//   auto model = fusebox::Model::Open("model.tflite", {.registry = &*registry});
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "fusebox/detail/c_call.hpp"
#include "fusebox/detail/json.hpp"

namespace fusebox {
inline namespace v1 {

struct RegistryOptions {
  std::string file = {};    // path of a fusebox.json; empty: none
  std::string config = {};  // the same as text; its keys replace keys of the file
};

// The plugins of a process. Any thread.
class Registry {
 public:
  static Result<Registry> Create(const RegistryOptions& options = {}) {
    fusebox_registry* handle = nullptr;
    const Status status = detail::Call([&](char** error) {
      return fusebox_registry_create(detail::OrNull(options.file), detail::OrNull(options.config), &handle,
                                     error);
    });
    if (!status) return status.error();
    return Registry(handle);
  }
  // Adds a plugin that is linked into the program. `manifest`: the text of its fusebox-plugin.json; empty:
  // derived from its tables.
  Status Add(const fbx_entry& entry, const std::string& manifest = {}) {
    return detail::Call([&](char** error) {
      return fusebox_registry_add_plugin(get(), &entry, detail::OrNull(manifest), error);
    });
  }
  // {"plugins": [{"id", "version", "state", ...}], "searched": [...]}
  Result<std::string> Plugins() const {
    return detail::CallForText(
        [&](char** text, char** error) { return fusebox_registry_plugins(get(), text, error); });
  }
  fusebox_registry* get() const { return handle_.get(); }

 private:
  explicit Registry(fusebox_registry* handle) : handle_(handle) {}
  detail::Handle<fusebox_registry, fusebox_registry_free> handle_;
};

struct Delegate {
  std::string name;
  std::string options = "{}";  // JSON
};

struct ModelOptions {
  const Registry* registry = nullptr;  // null: one with the default search path, shared by the process
  bool fuse = true;                    // fuse composites
  // In the order in which nodes are offered; empty: none. Without a value: the
  // configuration's delegates, else the default delegates.
  std::optional<std::vector<Delegate>> delegates = {};
  std::string delegate_options = {};  // JSON, by delegate, over options of the configuration
  std::string name = {};              // of a model from memory, in messages
  // "warn", "body" or "error": if the plugin of a fused op or composite is missing. Empty: "warn".
  std::string missing = {};
  // Opening that takes longer fails with Code::kCancelled. 0: no limit, but ten seconds for an import.
  int64_t time_limit_ms = 0;
  // "never" or "auto": translate a file with ops of TensorFlow (Flex) by libfusebox-convert, which is loaded
  // on demand. Empty: "never".
  std::string import_ops = {};
};

// A .tflite file, read, fused, with kernels and delegates chosen. Immutable, any thread. Sessions keep it.
class Model {
 public:
  static Result<Model> Open(const std::string& path, const ModelOptions& options = {}) {
    return Make([&](fusebox_model** out, char** error) {
      return fusebox_model_open(path.c_str(), Json(options).c_str(), RegistryOf(options), out, error);
    });
  }
  // The bytes of a .tflite file, which are not copied if they are aligned to 8 bytes. `owner` ends when
  // nothing uses them any more, in any thread; null: the bytes outlive the model and its sessions.
  static Result<Model> FromMemory(std::span<const std::byte> bytes, std::shared_ptr<const void> owner = {},
                                  const ModelOptions& options = {}) {
    using Owner = std::shared_ptr<const void>;
    auto* held = owner != nullptr ? new Owner(std::move(owner)) : nullptr;
    const auto release = +[](void* user) { delete static_cast<Owner*>(user); };
    return Make([&](fusebox_model** out, char** error) {
      return fusebox_model_from_memory(bytes.data(), bytes.size(), held != nullptr ? release : nullptr, held,
                                       Json(options).c_str(), RegistryOf(options), out, error);
    });
  }
  static Result<Model> FromCopy(std::span<const std::byte> bytes, const ModelOptions& options = {}) {
    return Make([&](fusebox_model** out, char** error) {
      return fusebox_model_from_copy(bytes.data(), bytes.size(), Json(options).c_str(), RegistryOf(options),
                                     out, error);
    });
  }

  struct Signature {
    std::string key;  // empty: the main function
    std::string why;  // why it cannot run; empty: it can
  };
  std::vector<Signature> signatures() const {
    std::vector<Signature> out;
    for (int32_t i = 0; i < fusebox_model_signature_count(get()); ++i) {
      const char* why = nullptr;
      const char* key = fusebox_model_signature(get(), i, &why);
      out.push_back({key, why != nullptr ? why : ""});
    }
    return out;
  }
  // Returns what was fused and what runs each node, as JSON: fusebox_model_report in c.h.
  Result<std::string> Report() const {
    return detail::CallForText(
        [&](char** text, char** error) { return fusebox_model_report(get(), text, error); });
  }
  fusebox_model* get() const { return handle_.get(); }

 private:
  explicit Model(fusebox_model* handle) : handle_(handle) {}
  template <class F>
  static Result<Model> Make(F&& open) {
    fusebox_model* handle = nullptr;
    const Status status = detail::Call([&](char** error) { return open(&handle, error); });
    if (!status) return status.error();
    return Model(handle);
  }
  static fusebox_registry* RegistryOf(const ModelOptions& options) {
    return options.registry != nullptr ? options.registry->get() : nullptr;
  }
  static std::string Json(const ModelOptions& options) {
    detail::JsonObject json;
    json.Set("fuse", options.fuse);
    if (options.time_limit_ms > 0) json.Set("time_limit_ms", options.time_limit_ms);
    if (!options.name.empty()) json.Set("name", options.name);
    if (!options.missing.empty()) json.Set("missing", options.missing);
    if (!options.import_ops.empty()) json.Set("import", options.import_ops);
    if (!options.delegate_options.empty()) json.SetText("delegate_options", options.delegate_options);
    if (options.delegates) {
      std::string list;
      for (const Delegate& delegate : *options.delegates) {
        detail::JsonObject row;
        row.Set("name", delegate.name).SetText("options", delegate.options);
        (list += list.empty() ? "" : ",") += row.text();
      }
      json.SetText("delegates", "[" + list + "]");
    }
    return json.text();
  }

  detail::Handle<fusebox_model, fusebox_model_free> handle_;
};

enum class LogLevel : int32_t {
  kDebug = FUSEBOX_LOG_DEBUG,
  kInfo = FUSEBOX_LOG_INFO,
  kWarning = FUSEBOX_LOG_WARNING,
  kError = FUSEBOX_LOG_ERROR,
};
using LogSink = std::function<void(LogLevel, std::string_view topic, std::string_view text)>;

// Sends the log lines of libfusebox to `sink` instead of stderr; empty: to stderr again. One line at a time,
// from any thread. The sink must not throw and must not call SetLogSink.
inline Status SetLogSink(LogSink sink) {
  static std::mutex mutex;
  static std::unique_ptr<LogSink> current;
  const std::lock_guard lock(mutex);
  auto next = sink ? std::make_unique<LogSink>(std::move(sink)) : nullptr;
  const auto call = +[](void* user, int32_t level, const char* topic, const char* text) {
    (*static_cast<LogSink*>(user))(static_cast<LogLevel>(level), topic, text);
  };
  Status status = detail::Call([&](char** error) {
    return fusebox_set_log_sink(next != nullptr ? call : nullptr, next.get(), error);
  });
  if (status) current = std::move(next);
  return status;
}

}  // namespace v1
}  // namespace fusebox
