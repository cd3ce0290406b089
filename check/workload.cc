// SPDX-License-Identifier: Apache-2.0
#include "check/workload.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "host/graph/half.h"
#include "host/graph/npy.h"
#include "host/tflite/tflite.h"
#include "host/verify/cases.h"

namespace fusebox::check {
namespace {

namespace fs = std::filesystem;

std::string IndexText(const Shape& shape, size_t element) {
  std::string text;
  for (size_t i = shape.dims().size(); i-- > 0;) {
    const auto dim = static_cast<size_t>(std::max<int64_t>(shape[i], 1));
    text = std::to_string(element % dim) + (text.empty() ? "" : ",") + text;
    element /= dim;
  }
  return "[" + text + "]";
}

std::string NumberText(double value) {
  char text[32];
  snprintf(text, sizeof(text), "%.7g", value);
  return text;
}

// Returns the elements as doubles, also for f16, or nothing if they are no numbers.
std::vector<double> NumbersOf(const Tensor& t) {
  if (t.type.dtype != DType::kF16) return verify::ToDoubles(t);
  const auto values = t.data.As<Half>();
  return {values.begin(), values.end()};
}

// Returns the first difference of two outputs of one type, as its place and both values, or an empty string.
std::string FirstDifference(const Tensor& a, const Tensor& b, double rtol, double steps) {
  const auto x = NumbersOf(a);
  const auto y = NumbersOf(b);
  if (rtol == 0 || x.empty()) {
    if (a.data.size() == b.data.size() && std::memcmp(a.data.data(), b.data.data(), a.data.size()) == 0)
      return {};
    if (x.empty()) return "the bytes differ";
  }
  double largest = 0;
  for (const double v : x)
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
  const double bound = rtol == 0 ? 0 : IsFloat(a.type.dtype) ? rtol * std::max(largest, 1.0) : steps;
  for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
    const bool same = x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]));
    if (!same && !(std::fabs(x[i] - y[i]) <= bound))
      return IndexText(a.type.shape, i) + ": " + NumberText(x[i]) + " and " + NumberText(y[i]);
  }
  return {};
}

Tensor AsHalf(const Tensor& t) {
  std::vector<Half> halves;
  for (const float value : t.data.As<float>()) halves.push_back(static_cast<Half>(value));
  return {{DType::kF16, t.type.shape}, Buffer::Of<Half>(halves)};
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
  const bool half = type.dtype == DType::kF16;
  const Type drawn{half ? DType::kF32 : type.dtype, type.shape};
  Tensor value = verify::MakeOperand(drawn, verify::ValueClass::kNormal, seed, index, quant);
  if (half) value = AsHalf(value);
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
    if (const std::string where = FirstDifference(a[i], b[i], rtol, steps); !where.empty())
      return place + where;
  }
  return {};
}

Finding DoesNotRun(const Error& error) {
  // INVALID: the values do not suit the model.
  const std::string text = "the model does not run on values of the check: " + error.message;
  return error.code == Code::kInvalid ? NotTested(text) : Failed(text);
}

}  // namespace fusebox::check
