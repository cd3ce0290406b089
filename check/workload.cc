// SPDX-License-Identifier: Apache-2.0
#include "check/workload.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "host/graph/npy.h"
#include "host/graph/values.h"
#include "host/tflite/tflite.h"
#include "host/verify/cases.h"

namespace fusebox::check {
namespace {

namespace fs = std::filesystem;

// Returns where two outputs of one type differ, with both values, or an empty string.
std::string DifferenceOf(const Tensor& a, const Tensor& b, double rtol, double steps) {
  double atol = 0;
  if (rtol != 0 && !IsFloat(a.type.dtype)) atol = steps;
  if (rtol != 0 && IsFloat(a.type.dtype)) {
    double largest = 1;
    for (const double value : ToDoubles(a))
      if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
    atol = rtol * largest;
  }
  const auto difference = Compare(a, b, {.atol = atol, .rtol = 0});
  if (!difference) return difference.error().message;
  return difference->within ? "" : difference->where;
}

Tensor WithSpecial(Tensor t, double special) {
  if (special == 0 || t.type.dtype != DType::kF32) return t;
  std::vector<float> values(t.data.As<float>().begin(), t.data.As<float>().end());
  for (size_t i = 1; i < values.size(); i += 3) values[i] = static_cast<float>(special);
  return {t.type, Buffer::Of<float>(values)};
}

Tensor Owned(const Tensor& t) { return {t.type, Buffer::Copy(t.data.bytes())}; }

const Quant* QuantOf(const Model& model, const std::string& function, size_t input) {
  const Function* const f = model.module().Find(function);
  if (f == nullptr || input >= f->inputs.size()) return nullptr;
  return f->value(f->inputs[input]).quant.get();
}

Status CopyOutputs(const Session& session, std::vector<Tensor>& outputs) {
  for (size_t i = 0; i < session.outputs().size(); ++i) {
    FUSEBOX_ASSIGN(const Tensor output, session.output(static_cast<int>(i)));
    outputs.push_back(Owned(output));
  }
  return {};
}

}  // namespace

std::vector<std::string> ModelsOf(const Manifest& manifest, const Options& options) {
  std::vector<std::string> models = options.models;
  const fs::path folder = fs::path(manifest.path).parent_path();
  std::error_code error;
  for (const char* name : {"models", "tests"}) {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder / name, error))
      if (entry.path().extension() == ".tflite") found.push_back(entry.path().string());
    std::ranges::sort(found);
    models.insert(models.end(), found.begin(), found.end());
  }
  return models;
}

Result<Tensor> MakeInput(const Type& declared, const Quant* quant, uint64_t seed, size_t index,
                         int64_t unknown_dim) {
  if (!declared.shape.ranked()) return Invalid("the rank of input " + std::to_string(index) + " is unknown");
  Type type = declared;
  for (int64_t& dim : type.shape.dims()) dim = dim < 0 ? unknown_dim : dim;
  if (type.dtype == DType::kString) {
    std::vector<std::string> texts;
    for (int64_t i = 0; i < type.shape.element_count().value_or(0); ++i)
      texts.push_back("text " + std::to_string(seed + index + static_cast<uint64_t>(i)) + " of a test");
    return Tensor{type, PackStrings(texts)};
  }
  Tensor value = verify::MakeOperand(type, verify::ValueClass::kNormal, seed, index, quant);
  if (!value.data)
    return Invalid("there are no values of type " + ToString(type) + " for input " + std::to_string(index));
  return value;
}

Result<std::shared_ptr<const Model>> OpenModel(Rig& rig, const std::string& path, bool delegates) {
  ModelOptions options;
  options.registry = rig.registry();
  options.delegates.emplace();
  if (delegates) {
    for (const PluginInfo& info : rig.registry()->plugins())
      if (info.manifest.id == rig.manifest().id && info.state == PluginInfo::State::kOk)
        for (const ManifestDelegate& d : info.manifest.delegates) options.delegates->push_back({d.name, {}});
    const auto given = rig.registry()->config().delegates.value_or(std::vector<Config::Delegate>());
    for (Config::Delegate& used : *options.delegates)
      for (const Config::Delegate& of_config : given)
        if (of_config.name == used.name) used.options = of_config.options;
  }
  return Model::Open(path, options);
}

Status RunSession(Session& session, const Model& model, const Model::Entry& entry, const RunOptions& options,
                  std::vector<Tensor>& outputs) {
  for (size_t i = 0; i < session.inputs().size(); ++i) {
    FUSEBOX_ASSIGN(const Tensor input, MakeInput(session.inputs()[i].type, QuantOf(model, entry.function, i),
                                                 options.seed, i, options.unknown_dim));
    FUSEBOX_TRY(session.SetInput(static_cast<int>(i), WithSpecial(input, options.special)));
  }
  FUSEBOX_TRY(session.Run());
  return CopyOutputs(session, outputs);
}

Result<std::vector<Tensor>> RunShapes(Session& session, const std::vector<Shape>& shapes, uint64_t seed,
                                      double special) {
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Type type{session.inputs()[i].type.dtype, shapes[i]};
    FUSEBOX_ASSIGN(const Tensor input, MakeInput(type, nullptr, seed, i, 1));
    FUSEBOX_TRY(session.Resize(static_cast<int>(i), shapes[i]));
    FUSEBOX_TRY(session.SetInput(static_cast<int>(i), WithSpecial(input, special)));
  }
  FUSEBOX_TRY(session.Run());
  std::vector<Tensor> outputs;
  FUSEBOX_TRY(CopyOutputs(session, outputs));
  return outputs;
}

Result<std::vector<Tensor>> RunModel(const std::shared_ptr<const Model>& model, const RunOptions& options) {
  std::vector<Tensor> outputs;
  for (const Model::Entry& entry : model->entries()) {
    if (!entry.status) return std::unexpected(entry.status.error());
    SessionOptions session_options;
    session_options.signature = entry.signature;
    session_options.threads = options.threads;
    FUSEBOX_ASSIGN(const auto session, Session::Create(model, session_options));
    for (int run = 0; run < options.runs; ++run) {
      RunOptions of_run = options;
      of_run.seed += static_cast<uint64_t>(run);
      FUSEBOX_TRY(RunSession(*session, *model, entry, of_run, outputs));
    }
  }
  return outputs;
}

Result<std::vector<Tensor>> RunUnder(const Subject& subject, const Conditions& conditions,
                                     const RunOptions& options, size_t* invokes, std::string* failure) {
  FUSEBOX_ASSIGN(const auto rig, Rig::Create(subject.manifest, subject.options.config, conditions));
  FUSEBOX_ASSIGN(auto model, OpenModel(*rig, subject.model, options.delegates));
  FUSEBOX_ASSIGN(std::vector<Tensor> outputs, RunModel(model, options));
  model.reset();
  if (failure != nullptr) *failure = rig->failure();
  if (invokes != nullptr) *invokes = options.delegates ? rig->partitions() : rig->invokes();
  if (const std::string fault = rig->fault(); !fault.empty()) return Internal(fault);
  return outputs;
}

std::string DifferenceOf(const std::vector<Tensor>& a, const std::vector<Tensor>& b, double rtol,
                         double steps) {
  if (a.size() != b.size()) return "the number of outputs differs";
  for (size_t i = 0; i < a.size(); ++i) {
    const std::string place = "output " + std::to_string(i) + " ";
    if (a[i].type != b[i].type) return place + "is " + ToString(a[i].type) + " and " + ToString(b[i].type);
    if (const std::string where = DifferenceOf(a[i], b[i], rtol, steps); !where.empty()) return place + where;
  }
  return {};
}

Finding DoesNotRun(const Error& error) {
  // INVALID: the values do not suit the model.
  const std::string text = "the model does not run on values of the check: " + error.message;
  return error.code == Code::kInvalid ? NotTested(text) : Failed(text);
}

}  // namespace fusebox::check
