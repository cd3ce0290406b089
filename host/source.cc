// SPDX-License-Identifier: Apache-2.0
#include "host/source.h"

#include <fmt/format.h>

#include <chrono>

#include "host/base/trace.h"
#include "host/fusion/fusion.h"
#include "host/fusion/site_json.h"
#include "host/import.h"
#include "host/model.h"
#include "host/opening.h"
#include "host/tflite/tflite.h"

namespace fusebox {
namespace {

constexpr int64_t kImportLimitMs = 10'000;

Result<Source> ImportSource(const Buffer& file, const std::string& name, const ModelOptions& options) {
  TraceSpan span("import");
  const auto start = std::chrono::steady_clock::now();
  const Opening opening(options.cancel.get(), options.time_limit_ms > 0 ? 0 : kImportLimitMs);
  const ImportOptions how{.fuse = options.fuse, .keep_bodies = options.keep_bodies};
  FUSEBOX_ASSIGN(Imported imported,
                 opening.Explain(ImportFile(file, name, *options.registry, how),
                                 "; convert the file with `fusebox convert`, or set another time limit"));
  Source out{.module = nullptr, .report = std::move(imported.report)};
  FUSEBOX_ASSIGN(out.module, ReadModule(std::move(imported.file), name));
  if (options.keep_bodies) AttachReplaced(*out.module, SitesOf(out.report));
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  out.notices.push_back(fmt::format(
      "ops of TensorFlow were translated in {:.2f} s; to do it once: fusebox convert {} -o OUT.tflite",
      time.count(), name == ModelOptions().name ? "MODEL" : name));
  return out;
}

}  // namespace

// Both stages verify their result.
Result<std::unique_ptr<Module>> ReadModule(Buffer file, const std::string& name) {
  const TraceSpan span("read");
  FUSEBOX_ASSIGN(std::unique_ptr<Module> module, tflite::Read(std::move(file), name));
  FUSEBOX_TRY(AttachFused(*module).At(name));
  return module;
}

Result<Source> ReadSource(const std::string& path, const ModelOptions& options) {
  FUSEBOX_ASSIGN(Buffer file, MapFile(path));
  return ReadSource(std::move(file), path, options);
}

Result<Source> ReadSource(Buffer file, const std::string& name, const ModelOptions& options) {
  FUSEBOX_ASSIGN(std::unique_ptr<Module> module, ReadModule(file, name));
  if (options.import_ops == ImportOps::kAuto && NeedsImport(*module, *options.registry))
    return ImportSource(file, name, options);
  return Source{.module = std::move(module)};
}

}  // namespace fusebox
