// SPDX-License-Identifier: Apache-2.0
// Convert: a SavedModel, a frozen graph, a Keras file or a .tflite file in, a .tflite file out. C++20 over
// libfusebox-convert's <fusebox/c_convert.h>, which has the rules in full.
//
//   std::string report;
//   auto done = fusebox::Convert("saved_model", "model.tflite", {.batch = 1}, &report);
//   if (!done) return fail(done.error().message);
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "fusebox/c_convert.h"
#include "fusebox/detail/c_call.hpp"
#include "fusebox/detail/json.hpp"

namespace fusebox {
inline namespace v1 {

// The flags of `fusebox convert`; an empty string is the default.
struct ConvertOptions {
  std::vector<std::string> signatures = {};                 // empty: all that can be converted
  std::vector<std::string> inputs = {};                     // of a frozen graph
  std::vector<std::string> outputs = {};                    // of a frozen graph
  int64_t batch = 0;                                        // 0: unknown first dimensions stay unknown
  std::map<std::string, std::vector<int64_t>> shapes = {};  // by input name
  std::vector<std::string> plugins = {};
  std::string config = {};       // path of a fusebox.json
  std::string composites = {};   // fuse, keep, inline
  std::string keep_bodies = {};  // none, custom, all
  std::string verify = {};       // off, sample, strict
  uint64_t verify_seed = 1;
  std::string placeholders = {};  // fuse, error
  std::string quantize = {};      // none, float16, dynamic, int8
  std::string calibration = {};   // folder of .npy files, for int8
  bool require_full_fusion = false;
  // Called before each pass, in the thread of the conversion. Must not throw.
  std::function<void(std::string_view pass, uint64_t done, uint64_t total)> progress = {};
};

// A .tflite file in memory, aligned for Model::FromMemory.
class ConvertedBytes {
 public:
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(memory_.get()), size_}; }
  std::shared_ptr<const void> owner() const { return memory_; }

 private:
  friend Result<ConvertedBytes> ConvertToMemory(const std::string&, const ConvertOptions&, std::string*);
  std::shared_ptr<const void> memory_;
  size_t size_ = 0;
};

namespace detail {

inline std::string Json(const ConvertOptions& options) {
  JsonObject json;
  JsonObject shapes;
  const auto text = [&](const char* key, const std::string& value) {
    if (!value.empty()) json.Set(key, value);
  };
  if (!options.signatures.empty()) json.Set("signature", options.signatures);
  if (!options.inputs.empty()) json.Set("inputs", options.inputs);
  if (!options.outputs.empty()) json.Set("outputs", options.outputs);
  if (options.batch != 0) json.Set("batch", options.batch);
  for (const auto& [name, dims] : options.shapes) shapes.Set(name, dims);
  json.SetText("shape", shapes.text());
  json.Set("plugin", options.plugins);
  text("config", options.config);
  text("composites", options.composites);
  text("keep_bodies", options.keep_bodies);
  text("verify", options.verify);
  json.Set("verify_seed", options.verify_seed);
  text("placeholders", options.placeholders);
  text("quantize", options.quantize);
  text("calibration", options.calibration);
  json.Set("require_full_fusion", options.require_full_fusion);
  return json.text();
}

// Calls `convert(options, progress, user, report, error)`.
template <class F>
Status RunConversion(const ConvertOptions& options, std::string* report, F&& convert) {
  const auto progress = +[](void* user, const char* pass, uint64_t done, uint64_t total) {
    static_cast<const ConvertOptions*>(user)->progress(pass, done, total);
  };
  char* text = nullptr;
  Status status = CallWith<fusebox_convert_free>([&](char** error) {
    return convert(Json(options).c_str(), options.progress ? progress : nullptr,
                   const_cast<ConvertOptions*>(&options), report != nullptr ? &text : nullptr, error);
  });
  if (report != nullptr) *report = text != nullptr ? text : "";
  fusebox_convert_free(text);
  return status;
}

}  // namespace detail

// `report`, if not null, receives JSON, also after a failure.
inline Status Convert(const std::string& source, const std::string& destination,
                      const ConvertOptions& options = {}, std::string* report = nullptr) {
  return detail::RunConversion(
      options, report, [&](const char* json, auto progress, void* user, char** text, char** error) {
        return fusebox_convert(source.c_str(), destination.c_str(), json, progress, user, text, error);
      });
}

inline Result<ConvertedBytes> ConvertToMemory(const std::string& source, const ConvertOptions& options = {},
                                              std::string* report = nullptr) {
  void* bytes = nullptr;
  ConvertedBytes out;
  const Status status = detail::RunConversion(
      options, report, [&](const char* json, auto progress, void* user, char** text, char** error) {
        return fusebox_convert_to_memory(source.c_str(), json, progress, user, &bytes, &out.size_, text,
                                         error);
      });
  if (!status) return status.error();
  out.memory_ =
      std::shared_ptr<const void>(bytes, [](const void* p) { fusebox_convert_free(const_cast<void*>(p)); });
  return out;
}

}  // namespace v1
}  // namespace fusebox
