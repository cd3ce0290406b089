// SPDX-License-Identifier: Apache-2.0
#include "converter/convert.h"

#include <algorithm>
#include <set>

#include "converter/import/keras/import.h"
#include "converter/import/saved_model/import.h"
#include "converter/import/tables/composites.h"
#include "converter/import/tflite/import.h"
#include "converter/passes/pass.h"
#include "host/base/trace.h"
#include "host/run/run.h"
#include "host/tflite/tflite.h"

namespace fusebox::converter {
namespace {

std::vector<std::pair<std::string, int>> CountOps(const Module& module) {
  std::map<std::string, int> counts;
  for (const auto& f : module.functions) {
    for (const auto& node : f->nodes) {
      if (IsInternal(*node)) continue;  // its body counts
      const bool named = node->is(Op::kOpaque) || node->is(Op::kCustom) || node->is(Op::kStablehloComposite);
      ++counts[named ? node->name : std::string(Name(node->op))];
    }
  }
  return {counts.begin(), counts.end()};
}

std::vector<std::string> OpsThatLitertRejects(const Module& module) {
  std::set<std::string> ops;
  for (const auto& f : module.functions) {
    for (const auto& node : f->nodes) {
      if (node->is(Op::kCustom)) ops.insert(node->name);
      if (!StateOperands(node->op).empty()) ops.emplace(Name(node->op));
    }
  }
  return {ops.begin(), ops.end()};
}

Result<Imported> ImportTflite(const std::string& source, Buffer bytes, const Options& options) {
  if (!bytes) {
    FUSEBOX_ASSIGN(bytes, MapFile(source));
  }
  return tflite_import::Import(std::move(bytes), source, options.signatures, *options.registry);
}

Result<Imported> ImportFrom(const std::string& source, Buffer bytes, const Options& options, auto format) {
  using Format = decltype(format);
  TraceSpan span("read");
  span.Arg("file", source);
  const bool cuts = !options.inputs.empty() || !options.outputs.empty();
  if (cuts && (format == Format::kTflite || format == Format::kKeras))
    return Invalid(source + ": inputs and outputs select tensors of a TensorFlow graph, which this is not");
  switch (format) {
    case Format::kFrozenGraph:
      if (!options.signatures.empty()) return NotFound(source + ": a frozen graph has no signatures");
      return saved_model::ImportFrozenGraph(source, {options.inputs, options.outputs});
    case Format::kTflite: return ImportTflite(source, std::move(bytes), options);
    case Format::kKeras: return keras::Import(source, options.signatures, *options.registry);
    case Format::kSavedModel: break;
  }
  return saved_model::Import(source, options.signatures, {options.inputs, options.outputs});
}

}  // namespace

Conversion FromSavedModel(std::string dir) { return {Conversion::Format::kSavedModel, std::move(dir)}; }
Conversion FromFrozenGraph(std::string file) { return {Conversion::Format::kFrozenGraph, std::move(file)}; }
Conversion FromKeras(std::string file) { return {Conversion::Format::kKeras, std::move(file)}; }
Conversion FromTflite(std::string file) { return {Conversion::Format::kTflite, std::move(file)}; }
Conversion FromTflite(Buffer file, std::string name) {
  Conversion out = FromTflite(std::move(name));
  out.bytes_ = std::move(file);
  return out;
}

Result<Converted> Conversion::Convert() {
  report_ = {};
  report_.source = source_;
  auto converted = CatchNoMemory([&] { return source_; }, [&] { return Run(); });
  if (!converted) report_.error = converted.error().message;
  return converted;
}

Result<Converted> Conversion::Run() {
  if (!options.registry) {
    FUSEBOX_ASSIGN(options.registry, Registry::Create({}));
  }
  FUSEBOX_ASSIGN(Imported imported, ImportFrom(source_, bytes_, options, format_));
  report_.refused = std::move(imported.refused);
  report_.notes = std::move(imported.notes);
  report_.ops_before = CountOps(*imported.module);
  run::Threads threads(0);
  const run::ThreadedServices services(threads);
  Context context{.module = *imported.module,
                  .registry = *options.registry,
                  .options = options,
                  .report = report_,
                  .services = &services,
                  .f16_weights = imported.f16_weights};
  FUSEBOX_TRY(RunPasses(context).At(source_));
  report_.ops_after = CountOps(*imported.module);
  report_.rejected_by_litert = OpsThatLitertRejects(*imported.module);
  for (const Signature& s : imported.module->signatures) report_.signatures.push_back(s.key);
  if (imported.unsigned_file) imported.module->signatures.clear();
  return Converted{std::move(imported.module), report_};
}

Status Converted::Write(const std::string& path) const {
  TraceSpan span("write");
  span.Arg("file", path);
  FUSEBOX_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  FUSEBOX_TRY(tflite::WriteTo(*module, file).At(report.source));
  const TraceSpan check("read back and compare");
  FUSEBOX_ASSIGN(Buffer written, MapFile(file.temporary()));
  FUSEBOX_ASSIGN(const auto again, tflite::Read(std::move(written), path));
  FUSEBOX_TRY(AttachFused(*again));
  std::string why;
  if (!Equal(*module, *again, &why)) return Internal(path + ": the file read back differs: " + why);
  return file.Commit();
}

}  // namespace fusebox::converter
