// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>

#include "cli/base/checks.h"
#include "cli/base/print.h"
#include "cli/base/progress.h"
#include "cli/inspect/inspect.h"
#include "cli/page/page.h"
#include "host/base/buffer.h"
#include "host/base/table.h"
#include "host/session.h"

namespace fusebox::cli {
namespace {

using page::Json;

// A model that is opened and planned, but not run.
struct Loaded {
  std::shared_ptr<const Model> model;  // null: it cannot run
  std::vector<Placement> placements;
  std::vector<MemoryPlan> memory;
  std::string why, memory_reason;  // why there is none
};

// Unknown dimensions are 1, as in `fusebox run`.
Status Plan(Session& session) {
  for (size_t i = 0; i < session.inputs().size(); ++i) {
    Shape shape = session.inputs()[i].type.shape;
    if (shape.is_static()) continue;
    if (!shape.ranked()) return Unsupported("input " + session.inputs()[i].name + " has no known rank");
    for (int64_t& dim : shape.dims()) dim = dim < 0 ? 1 : dim;
    FUSEBOX_TRY(session.Resize(static_cast<int>(i), shape));
  }
  return session.Prepare();
}

Loaded LoadedOf(const Module& module, const ModelOptions& options) {
  Loaded out;
  auto model = Model::FromModule(Clone(module), options);
  if (!model) {
    out.why = out.memory_reason = model.error().message;
    return out;
  }
  out.model = *model;
  out.placements = out.model->placements();
  auto session = Session::Create(out.model);
  const Status planned = session ? Plan(**session) : std::unexpected(session.error());
  if (!planned) {
    out.memory_reason = planned.error().message;
    return out;
  }
  out.placements = (*session)->placements();  // with the delegates that declined
  out.memory = (*session)->memory_plans();
  return out;
}

// The data that all outputs show.
struct Data {
  Loaded loaded;
  page::Runs runs;
  Json profile;  // null: none
};

Result<Data> DataOf(const Module& module, const ModelOptions& options, const FileFlags& flags) {
  Data out{.loaded = LoadedOf(module, options), .runs = {}, .profile = {}};
  if (out.loaded.model != nullptr) out.runs = page::RunsOf(module, *out.loaded.model, out.loaded.placements);
  if (!flags.profile.empty()) {
    FUSEBOX_ASSIGN(out.profile, page::ProfileJson(flags.profile, out.loaded.placements, out.runs));
  }
  return out;
}

Json PageOf(const Module& module, const std::vector<Model::Entry>& entries, const Data& data) {
  const Loaded& loaded = data.loaded;
  Json json = {{"version", FUSEBOX_VERSION},
               {"model", InspectJson(module, entries)},
               {"views", page::ViewsJson(module)},
               {"values", page::ValuesJson(module)},
               {"runs", data.runs.rows},
               {"memory", page::MemoryJson(loaded.memory)},
               {"memory_reason", loaded.memory_reason},
               {"reason", loaded.why},
               {"profile", data.profile}};
  if (loaded.model != nullptr) json["notices"] = loaded.model->notices();
  return json;
}

std::string HtmlOf(Json json, const Module& module) {
  return page::PageHtml(std::move(json), std::filesystem::path(module.source).filename());
}

Status Check(const FileFlags& flags, const std::string& model) {
  if (!flags.profile.empty() && flags.html.empty() && flags.model_explorer.empty())
    return Invalid("--profile has no effect without --html or --model-explorer");
  for (const auto& [option, path] :
       {std::pair("--html", flags.html), {"--dot", flags.dot}, {"--model-explorer", flags.model_explorer}})
    for (const std::string& read : {model, flags.profile, flags.report})
      FUSEBOX_TRY(RequireNotRead(option, path, read));
  return {};
}

Status WriteText(const std::string& path, const std::string& text) {
  return WriteFile(path, std::as_bytes(std::span(text)));
}

// Writes the file and prints a line about it; nothing without a path.
Status WriteShown(const std::string& path, const std::string& text, const Module& module, bool silent) {
  if (path.empty()) return {};
  FUSEBOX_TRY(WriteText(path, text));
  if (silent) return {};
  size_t nodes = 0;
  for (const auto& function : module.functions) nodes += function->nodes.size();
  Print(fmt::format("{}: {}, {} nodes\n", Printable(path), BytesText(text.size()), nodes));
  return {};
}

}  // namespace

Status WriteFiles(const Module& module, const std::vector<Model::Entry>& entries, const ModelOptions& options,
                  const FileFlags& flags) {
  FUSEBOX_TRY(Check(flags, module.source));
  std::string html;
  std::string overlay;
  if (!flags.html.empty() || !flags.model_explorer.empty()) {
    FUSEBOX_ASSIGN(const Data data, DataOf(module, options, flags));
    if (!flags.html.empty()) {
      Json json = PageOf(module, entries, data);
      if (!flags.report.empty()) {
        FUSEBOX_ASSIGN(json["report"], page::ReportJson(flags.report));
      }
      html = HtmlOf(std::move(json), module);
    }
    if (!flags.model_explorer.empty())
      overlay = page::ModelExplorerJson(module, data.runs.rows, data.profile)
                    .dump(1, ' ', false, Json::error_handler_t::replace);
  }
  FUSEBOX_TRY(WriteShown(flags.html, html, module, flags.silent));
  FUSEBOX_TRY(WriteShown(flags.model_explorer, overlay + "\n", module, flags.silent));
  return WriteShown(flags.dot, flags.dot.empty() ? "" : page::DotText(module), module, flags.silent);
}

Status WriteLayersPage(const std::string& path, const Model& model, const ModelOptions& options,
                       const std::string& function, Json layers) {
  FUSEBOX_TRY(RequireNotRead("--html", path, model.name()));
  FUSEBOX_ASSIGN(const Source source, ReadSource(model.name(), options));
  const Module& module = *source.module;
  FUSEBOX_ASSIGN(const Data data, DataOf(module, options, {}));
  Json json = PageOf(module, model.entries(), data);
  layers["rows"] = page::LayersJson(std::move(layers["rows"]), function, data.runs);
  json["layers"] = std::move(layers);
  return WriteText(path, HtmlOf(std::move(json), module));
}

}  // namespace fusebox::cli
