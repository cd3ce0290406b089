// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>

#include "converter/c/options.h"
#include "fusebox/c_convert.h"
#include "host/base/cancel.h"
#include "host/c/border/call.h"
#include "host/eval/budget.h"
#include "host/tflite/tflite.h"

using namespace fusebox;

namespace {

namespace fs = std::filesystem;

// The destination must not be the source or a file of it.
Status CheckApart(const std::string& source, const std::string& destination) {
  std::error_code error;
  const fs::path from = fs::weakly_canonical(source, error);
  const fs::path to = fs::weakly_canonical(destination, error);
  const fs::path inside = to.lexically_relative(from);
  if (inside.empty() || *inside.begin() == "..") return {};
  return Invalid(destination + ": would replace a file of the source " + source + "; write elsewhere");
}

Status RequireFused(const converter::Report& report) {
  for (const SiteReport& site : report.sites) {
    if (!site.fused)
      return Unsupported(report.source + ": not fused: " + site.location + ": " + site.composite + ": " +
                         site.why);
  }
  return {};
}

struct Request {
  const char* options;
  fusebox_convert_progress progress;
  void* user;
  char** report;
};

// Converts, checks, writes with `write`, and returns the report whatever happens.
Status Convert(const Request& request, converter::Conversion conversion, const c::OwnPlugins& own,
               auto&& write) {
  FUSEBOX_ASSIGN(c::ConvertOptions parsed, c::ParseConvertOptions(request.options, own));
  conversion.options = std::move(parsed.options);
  if (request.progress != nullptr)
    conversion.options.progress = [&](const Progress& p) {
      request.progress(request.user, p.what.c_str(), p.done, p.total);
    };
  const auto converted = conversion.Convert();
  Status done;
  if (!converted) {
    done = std::unexpected(converted.error());
  } else if (parsed.require_full_fusion) {
    done = RequireFused(converted->report);
  }
  if (done) done = write(*converted);
  if (request.report != nullptr)
    FUSEBOX_TRY(c::Return(ToJson(converted ? converted->report : conversion.report()), request.report));
  return done;
}

Status CheckReadBack(const converter::Converted& converted, std::span<const std::byte> file) {
  const std::string& name = converted.report.source;
  FUSEBOX_ASSIGN(const auto again, tflite::Read(Buffer::Borrow(file), name));
  FUSEBOX_TRY(AttachFused(*again));
  std::string why;
  if (!Equal(*converted.module, *again, &why)) return Internal(name + ": the file read back differs: " + why);
  return {};
}

struct Destination {
  void** bytes;
  size_t* size;

  Status Check() const {
    FUSEBOX_C_REQUIRE(bytes);
    *bytes = nullptr;
    FUSEBOX_C_REQUIRE(size);
    *size = 0;
    return {};
  }
  // The caller frees the memory. `check` is called with the file.
  Status Write(const converter::Converted& converted, auto&& check) const {
    std::unique_ptr<std::byte, decltype(&std::free)> file(nullptr, std::free);
    size_t count = 0;
    const auto allocate = [&](size_t n) {
      const size_t rounded = (n + kAlignment - 1) / kAlignment * kAlignment;
      file.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded)));
      count = n;
      return file.get();
    };
    FUSEBOX_TRY(tflite::WriteInto(*converted.module, allocate).At(converted.report.source));
    FUSEBOX_TRY(check(std::span<const std::byte>(file.get(), count)));
    *bytes = file.release();
    *size = count;
    return {};
  }
};

// Memory of conversions that a program does not ask for has the default limit of sessions.
MemoryBudget& ImportBudget() {
  static MemoryBudget budget(0);
  return budget;
}

Status CheckSource(const fusebox_convert_source* source) {
  FUSEBOX_C_REQUIRE(source);
  FUSEBOX_TRY(c::CheckSize(*source, "FUSEBOX_CONVERT_SOURCE"));
  FUSEBOX_C_REQUIRE(source->bytes);
  if (source->plugin_count > 0) FUSEBOX_C_REQUIRE(source->plugins);
  return {};
}

Limits LimitsOf(const fusebox_convert_source& source) {
  static_assert(sizeof(std::atomic<bool>) == sizeof(uint8_t));
  return {.flag = reinterpret_cast<const std::atomic<bool>*>(source.cancel),
          .end = Limits::After(std::chrono::milliseconds(source.time_limit_ms))};
}

}  // namespace

const char* fusebox_convert_version(void) noexcept { return FUSEBOX_VERSION; }
uint32_t fusebox_convert_c_version(void) noexcept {
  return FUSEBOX_C_CONVERT_MAJOR * 65536u + FUSEBOX_C_CONVERT_MINOR;
}

void fusebox_convert_free(void* memory) noexcept { std::free(memory); }

fusebox_status fusebox_convert_set_log_sink(fusebox_log_sink sink, void* user, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    c::SetSink(sink, user);
    return {};
  });
}

fusebox_status fusebox_convert(const char* source, const char* destination, const char* options,
                               fusebox_convert_progress progress, void* user, char** report,
                               char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    if (report != nullptr) *report = nullptr;
    FUSEBOX_C_REQUIRE(source);
    FUSEBOX_C_REQUIRE(destination);
    FUSEBOX_TRY(CheckApart(source, destination));
    FUSEBOX_ASSIGN(converter::Conversion conversion, converter::FromPath(source));
    return Convert({.options = options, .progress = progress, .user = user, .report = report},
                   std::move(conversion), {},
                   [&](const converter::Converted& converted) { return converted.Write(destination); });
  });
}

fusebox_status fusebox_convert_to_memory(const char* source, const char* options,
                                         fusebox_convert_progress progress, void* user, void** bytes,
                                         size_t* size, char** report, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    if (report != nullptr) *report = nullptr;
    const Destination destination{bytes, size};
    FUSEBOX_TRY(destination.Check());
    FUSEBOX_C_REQUIRE(source);
    FUSEBOX_ASSIGN(converter::Conversion conversion, converter::FromPath(source));
    return Convert({.options = options, .progress = progress, .user = user, .report = report},
                   std::move(conversion), {}, [&](const converter::Converted& converted) {
                     return destination.Write(converted, [&](std::span<const std::byte> file) {
                       return CheckReadBack(converted, file);
                     });
                   });
  });
}

fusebox_status fusebox_convert_bytes(const fusebox_convert_source* source, const char* options,
                                     fusebox_convert_progress progress, void* user, void** bytes,
                                     size_t* size, char** report, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    if (report != nullptr) *report = nullptr;
    const Destination destination{bytes, size};
    FUSEBOX_TRY(destination.Check());
    FUSEBOX_TRY(CheckSource(source));
    const CancelScope cancel(LimitsOf(*source));
    const MemoryBudget::Scope memory(ImportBudget());
    const std::span file(static_cast<const std::byte*>(source->bytes), source->size);
    return Convert(
        {.options = options, .progress = progress, .user = user, .report = report},
        converter::FromTflite(Buffer::Borrow(file), source->name != nullptr ? source->name : "<memory>"),
        {.config = source->config,
         .linked = {source->plugins, source->plugin_count},
         .number = source->registry},
        // The host that opens the file reads it back.
        [&](const converter::Converted& converted) {
          return destination.Write(converted, [](std::span<const std::byte>) { return Status(); });
        });
  });
}
