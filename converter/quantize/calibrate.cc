// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "converter/quantize/quantize.h"
#include "host/graph/npy.h"

namespace fusebox::converter::quantize {
namespace {

namespace fs = std::filesystem;

bool IsFile(const std::string& path) {
  std::error_code none;
  return fs::is_regular_file(path, none);
}

// The files of one input: NAME.npy, NAME.0.npy.., or by number.
std::vector<std::string> FilesOf(const std::string& dir, const std::string& name, size_t index) {
  for (const std::string& stem : {name, "in" + std::to_string(index)}) {
    const std::string path = dir + "/" + stem;
    if (IsFile(path + ".npy")) return {path + ".npy"};
    std::vector<std::string> files;
    while (IsFile(path + "." + std::to_string(files.size()) + ".npy"))
      files.push_back(path + "." + std::to_string(files.size()) + ".npy");
    if (!files.empty()) return files;
  }
  return {};
}

// An array as samples of the input's type: it is one, or its first dimension counts them.
Result<std::vector<Tensor>> Split(const Tensor& array, const Type& type, const std::string& file) {
  if (array.type.dtype != type.dtype || !type.shape.ranked())
    return Invalid(file + ": holds " + ToString(array.type) + ", the input is " + ToString(type));
  std::vector<int64_t> dims = array.type.shape.dims();
  if (static_cast<int>(dims.size()) == type.shape.rank() && Compatible(array.type, type))
    return std::vector{array};
  const bool extra = static_cast<int>(dims.size()) == type.shape.rank() + 1;
  int64_t count = 0;
  if (extra) {
    count = dims[0];
    dims.erase(dims.begin());
  } else if (static_cast<int>(dims.size()) == type.shape.rank() && !dims.empty() && type.shape[0] > 0) {
    count = dims[0] % type.shape[0] == 0 ? dims[0] / type.shape[0] : 0;
    dims[0] = type.shape[0];
  }
  const Type each{type.dtype, Shape(dims)};
  if (count < 1 || !Compatible(each, type))
    return Invalid(file + ": holds " + ToString(array.type) + ", the input is " + ToString(type));
  const size_t bytes = array.data.size() / static_cast<size_t>(count);
  std::vector<Tensor> out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back({each, array.data.Slice(static_cast<size_t>(i) * bytes, bytes)});
  return out;
}

}  // namespace

Result<std::vector<Sample>> ReadCalibration(const Module& module, const Signature& signature,
                                            const std::string& dir) {
  std::error_code none;
  std::string from = dir;
  if (!fs::is_directory(from, none)) return NotFound(dir + ": no such folder of calibration data");
  if (fs::is_directory(dir + "/" + signature.key, none)) from = dir + "/" + signature.key;
  const Function& f = *module.Find(signature.function);
  std::vector<Sample> samples;
  for (size_t i = 0; i < f.inputs.size(); ++i) {
    const std::string& name = signature.input_names[i];
    const auto files = FilesOf(from, name, i);
    if (files.empty())
      return NotFound(from + ": has no " + name + ".npy, in" + std::to_string(i) + ".npy or " + name +
                      ".0.npy");
    size_t at = 0;
    for (const std::string& file : files) {
      FUSEBOX_ASSIGN(const Tensor array, ReadNpy(file));
      FUSEBOX_ASSIGN(auto tensors, Split(array, f.value(f.inputs[i]).type, file));
      for (Tensor& tensor : tensors) {
        if (i == 0) samples.emplace_back();
        if (at >= samples.size())
          return Invalid(file + ": has more samples than input " + signature.input_names[0]);
        samples[at++].push_back(std::move(tensor));
      }
    }
    if (at != samples.size())
      return Invalid(from + ": input " + name + " has " + std::to_string(at) + " samples, " +
                     signature.input_names[0] + " has " + std::to_string(samples.size()));
  }
  if (samples.empty()) return Invalid(from + ": holds no samples");
  return samples;
}

std::vector<ValueId> Activations(const Function& f) {
  std::vector<ValueId> out;
  for (const auto& node : f.nodes)
    for (size_t i = 0; i < ProperResultCount(*node); ++i)
      if (const ValueId v = node->results[i]; v != kNoValue && f.value(v).type.dtype == DType::kF32)
        out.push_back(v);
  return out;
}

Result<Observer> Observer::Create(Context& context, const Module& module, const std::string& function,
                                  std::vector<ValueId> values) {
  Observer out;
  out.function_ = function;
  out.module_ = Clone(module);
  out.module_->Find(function)->outputs = std::move(values);
  const std::vector<std::string> entries = {function};
  // The context keeps the registry for longer than this.
  const std::shared_ptr<Registry> registry(&context.registry, [](Registry*) {});
  FUSEBOX_ASSIGN(out.program_, run::Program::Create(*out.module_, registry, entries));
  FUSEBOX_ASSIGN(out.runner_, run::Runner::Create(*out.program_, 0));
  return out;
}

Result<std::vector<Tensor>> Observer::Run(const Sample& sample) {
  runner_->Reset();
  return runner_->Run(function_, sample);
}

namespace {

void Widen(Range& range, const Tensor& tensor) {
  for (const float value : tensor.data.As<float>()) {
    if (!std::isfinite(value)) continue;
    range.min = std::min(range.min, value);
    range.max = std::max(range.max, value);
  }
  range.seen = true;
}

}  // namespace

Result<Ranges> Measure(Context& context, const Module& module, const std::string& function,
                       const std::vector<Sample>& samples) {
  const Function& f = *module.Find(function);
  const std::vector<ValueId> values = Activations(f);
  FUSEBOX_ASSIGN(Observer observer, Observer::Create(context, module, function, values));
  Ranges ranges;
  for (size_t s = 0; s < samples.size(); ++s) {
    for (size_t i = 0; i < f.inputs.size(); ++i)
      if (f.value(f.inputs[i]).type.dtype == DType::kF32) Widen(ranges[f.inputs[i]], samples[s][i]);
    auto seen = observer.Run(samples[s]);
    if (!seen) return std::unexpected(std::move(seen.error()).At("calibration sample " + std::to_string(s)));
    for (size_t i = 0; i < values.size(); ++i) Widen(ranges[values[i]], (*seen)[i]);
  }
  return ranges;
}

}  // namespace fusebox::converter::quantize
