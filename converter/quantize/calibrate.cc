// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "converter/quantize/ops8.h"
#include "converter/quantize/quantize.h"
#include "host/fusion/lower.h"
#include "host/graph/calls.h"
#include "host/graph/npy.h"

namespace fusebox::converter::quantize {
namespace {

namespace fs = std::filesystem;

bool IsFile(const std::string& path) {
  std::error_code none;
  return fs::is_regular_file(path, none);
}

// Number of files path.NUMBER.npy.
size_t CountNumbered(const std::string& path) {
  const std::string stem = fs::path(path).filename().string() + ".";
  const std::string tail = ".npy";
  size_t count = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(fs::path(path).parent_path(), none)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(stem) || !name.ends_with(tail) || name.size() <= stem.size() + tail.size())
      continue;
    count += std::ranges::all_of(name.substr(stem.size(), name.size() - stem.size() - tail.size()),
                                 [](char c) { return c >= '0' && c <= '9'; });
  }
  return count;
}

// Files of one input: numbered (NAME.0.npy..), or NAME.npy.
Result<std::vector<std::string>> FilesOf(const std::string& dir, const std::string& name, size_t index) {
  for (const std::string& stem : {"in" + std::to_string(index), name}) {  // as `run --input-dir` does
    const std::string path = dir + "/" + stem;
    if (IsFile(path + ".npy")) return std::vector{path + ".npy"};
    const size_t count = CountNumbered(path);
    std::vector<std::string> files;
    for (size_t i = 0; i < count; ++i) {
      files.push_back(path + "." + std::to_string(i) + ".npy");
      if (!IsFile(files.back()))
        return NotFound(files.back() + ": missing, although there are " + std::to_string(count) +
                        " numbered files; number them from 0 without gaps");
    }
    if (!files.empty()) return files;
  }
  return std::vector<std::string>();
}

std::unexpected<Error> Misfit(const Tensor& array, const Type& type, const std::string& file) {
  const std::string what = file + ": holds " + ToString(array.type) + ", the input is " + ToString(type);
  if (array.type.dtype != type.dtype)
    return Invalid(what + "; save input values as " + std::string(Name(type.dtype)));
  return Invalid(
      what + "; samples must have the input's shape, stacked along the first or an extra first dimension");
}

// An array as samples of the input's type: one sample, or one per index of its first dimension.
Result<std::vector<Tensor>> Split(const Tensor& array, const Type& type, const std::string& file) {
  if (array.data.size() == 0 && type.shape.element_count() != 0)
    return Invalid(file + ": holds " + ToString(array.type) + ", which is empty; the input is " +
                   ToString(type));
  if (array.type.dtype != type.dtype || !type.shape.ranked()) return Misfit(array, type, file);
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
  if (count < 1 || !Compatible(each, type)) return Misfit(array, type, file);
  const size_t bytes = array.data.size() / static_cast<size_t>(count);
  std::vector<Tensor> out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back({each, array.data.Slice(static_cast<size_t>(i) * bytes, bytes)});
  return out;
}

bool IsFinite(const Tensor& tensor) {
  if (tensor.type.dtype != DType::kF32) return true;
  return std::ranges::all_of(tensor.data.As<float>(), [](float value) { return std::isfinite(value); });
}

// The folder with a signature's samples.
std::string FolderOf(const Signature& signature, const std::string& dir) {
  std::error_code none;
  const std::string own = dir + "/" + signature.key;
  return fs::is_directory(own, none) ? own : dir;
}

// Names of .npy files in a folder except `read`, separated by commas.
std::string Others(const std::string& dir, const std::set<std::string>& read = {}) {
  constexpr size_t kMost = 5;
  std::set<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(dir, none)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".npy") && !read.contains(dir + "/" + name)) names.insert(name);
  }
  std::string text;
  size_t count = 0;
  for (const std::string& name : names)
    if (count++ < kMost) text += (text.empty() ? "" : ", ") + name;
  return count > kMost ? text + " and " + std::to_string(count - kMost) + " more" : text;
}

}  // namespace

std::vector<std::string> UnreadCalibration(const Module& module, const std::string& dir,
                                           const std::set<std::string>& read) {
  std::map<std::string, std::string> inputs;  // that a folder is for
  if (!Others(dir, read).empty()) inputs[dir];
  for (const Signature& signature : module.signatures) {
    std::string& text = inputs[FolderOf(signature, dir)];
    text += "; inputs of " + signature.key + ":";
    for (size_t i = 0; i < signature.input_names.size(); ++i)
      text += (i > 0 ? ", in" : " in") + std::to_string(i) + ".npy or " + signature.input_names[i] +
              ".npy or " + signature.input_names[i] + ".0.npy..";
    if (signature.input_names.empty()) text += " none";
  }
  std::vector<std::string> out;
  for (const auto& [from, text] : inputs) {
    const std::string others = Others(from, read);
    const std::string why = text.empty() ? "; each signature uses its own subfolder" : text;
    if (!others.empty()) out.push_back(from + ": unused files: " + others + why);
  }
  return out;
}

Result<std::vector<Sample>> ReadCalibration(const Module& module, const Signature& signature,
                                            const std::string& dir, std::set<std::string>* read) {
  std::error_code none;
  if (!fs::is_directory(dir, none)) return NotFound(dir + ": no such folder of calibration data");
  const std::string from = FolderOf(signature, dir);
  const Function& f = *module.Find(signature.function);
  std::vector<Sample> samples;
  if (f.inputs.empty()) samples.emplace_back();  // it computes the same whenever it is run
  for (size_t i = 0; i < f.inputs.size(); ++i) {
    const std::string& name = signature.input_names[i];
    FUSEBOX_ASSIGN(const auto files, FilesOf(from, name, i));
    if (files.empty()) {
      const std::string others = Others(from);
      return NotFound(from + ": has no " + name + ".npy, in" + std::to_string(i) + ".npy or " + name +
                      ".0.npy" + (others.empty() ? "" : "; it has " + others));
    }
    if (read) read->insert(files.begin(), files.end());
    size_t at = 0;
    for (const std::string& file : files) {
      FUSEBOX_ASSIGN(const Tensor array, ReadNpy(file));
      FUSEBOX_ASSIGN(auto tensors, Split(array, f.value(f.inputs[i]).type, file));
      for (size_t t = 0; t < tensors.size(); ++t) {
        Tensor& tensor = tensors[t];
        if (!IsFinite(tensor))
          return Invalid(file + ": sample " + std::to_string(t) + " has non-finite values; remove it");
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
  if (samples.empty()) return Invalid(from + ": no samples");
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

namespace {

// An in-place updated state cannot be an output: it gets a copy, the value times one.
void DetachStates(Function& f) {
  Rewriter r(f);
  (void)r.Walk([&](Node& node) -> Status {
    for (const int index : StateOperands(node.op)) {
      const auto operand = static_cast<size_t>(index);
      if (operand >= node.operands.size() || node.operands[operand] == kNoValue) continue;
      const ValueId state = node.operands[operand];
      if (!r.is_f32(state) || !r.producer(state)) continue;
      const ValueId copy = r.Copy(state);
      f.value(copy).is_variable = true;
      f.value(state).is_variable = false;
      r.SetOperand(node, operand, copy);
    }
    return {};
  });
}

}  // namespace

Result<Observer> Observer::Create(Context& context, const Module& module, const std::string& function,
                                  std::vector<ValueId> values, int threads) {
  Observer out;
  out.function_ = function;
  out.module_ = Clone(module);
  DetachStates(*out.module_->Find(function));
  LowerBodies(*out.module_);
  out.module_->Find(function)->outputs = std::move(values);
  const std::vector<std::string> entries = {function};
  // The caller's registry outlives this object.
  const std::shared_ptr<Registry> registry(&context.registry, [](Registry*) {});
  FUSEBOX_ASSIGN(out.program_, run::Program::Create(*out.module_, registry, entries));
  FUSEBOX_ASSIGN(out.runner_, run::Runner::Create(*out.program_, threads));
  return out;
}

Result<std::vector<Tensor>> Observer::Run(const Sample& sample) { return runner_->Run(function_, sample); }

std::vector<std::string> Observer::Untaken() const {
  std::vector<std::string> out;
  for (const Function* f : Reachable(*module_, {function_})) {
    if (!runner_->has_run(f->name)) continue;
    for (size_t i = 0; i < f->nodes.size(); ++i) {
      const Node& node = *f->nodes[i];
      if (!node.is(Op::kIf) && !node.is(Op::kWhile)) continue;
      for (const std::string& name : References(node))
        if (!runner_->has_run(name)) out.push_back(name + " of " + DescribeIn(*f, node, i));
    }
  }
  return out;
}

void Range::Widen(const Tensor& tensor) {
  for (const float value : tensor.data.As<float>()) {
    if (!std::isfinite(value)) {
      finite = false;
      continue;
    }
    min = std::min(min, value);
    max = std::max(max, value);
    largest = std::max(largest, std::abs(value));
    seen = true;
  }
}

namespace {

// The observed values of one sample.
class Seen {
 public:
  Seen(const Function& f, const Sample& sample, std::span<const ValueId> values,
       std::span<const Tensor> tensors)
      : f_(f) {
    for (size_t i = 0; i < f.inputs.size(); ++i) tensors_[f.inputs[i]] = sample[i];
    for (size_t i = 0; i < values.size(); ++i) tensors_[values[i]] = tensors[i];
  }
  bool Gave(ValueId v) const { return tensors_.contains(v) || f_.value(v).is_const(); }
  // Returns nullopt for values that were not observed. A state kept by the session starts with zeros.
  std::optional<Tensor> Of(ValueId v) const {
    if (const auto it = tensors_.find(v); it != tensors_.end()) return it->second;
    const Value& value = f_.value(v);
    if (value.is_const()) return Tensor{value.type, value.data};
    if (!value.is_variable || !value.type.shape.is_static()) return std::nullopt;
    return Tensor{
        value.type,
        Buffer::Of<float>(std::vector<float>(static_cast<size_t>(*value.type.shape.element_count())))};
  }

 private:
  const Function& f_;
  std::map<ValueId, Tensor> tensors_;
};

bool HasFloatWeights(const Function& f, const Node& lstm) {
  for (size_t i = kInputWeights; i < lstm.operands.size(); ++i) {
    const ValueId v = lstm.operands[i];
    if (v == kNoValue || i == kLstmOutputState || i == kLstmCellState) continue;
    if (!f.value(v).is_const() || f.value(v).type.dtype != DType::kF32) return false;
  }
  return true;
}

// The LSTM ops of a function, and their step-by-step runners.
class LstmCells {
 public:
  LstmCells(Context& context, const Function& f) : context_(context), f_(f) {
    for (const auto& node : f.nodes)
      if (Role(*node) == Quantizes::kLstm && node->operands.size() > kLstmCellState &&
          HasFloatWeights(f, *node))
        cells_.emplace_back(node.get(), std::nullopt);
  }
  Status Widen(const Seen& seen, std::map<ValueId, LstmRanges>& ranges) {
    for (auto& [node, steps] : cells_) {
      Sample values;
      for (const size_t operand : {size_t{0}, kLstmOutputState, kLstmCellState})
        if (auto value = Begins(seen, node->operands[operand])) values.push_back(*std::move(value));
      if (values.size() < 3) continue;
      if (!steps) {
        FUSEBOX_ASSIGN(steps, LstmSteps::Create(context_, f_, *node, values));
      }
      FUSEBOX_ASSIGN(Sample ended, steps->Widen(values, ranges[node->results[0]]));
      kept_[node->operands[kLstmOutputState]] = std::move(ended[0]);
      kept_[node->operands[kLstmCellState]] = std::move(ended[1]);
    }
    return {};
  }

 private:
  // A state kept by the session continues from the previous sample.
  std::optional<Tensor> Begins(const Seen& seen, ValueId v) const {
    const auto it = kept_.find(v);
    return it != kept_.end() && !seen.Gave(v) ? it->second : seen.Of(v);
  }

  Context& context_;
  const Function& f_;
  std::vector<std::pair<const Node*, std::optional<LstmSteps>>> cells_;
  std::map<ValueId, Tensor> kept_;  // by updated state
};

}  // namespace

Result<Measured> Measure(Context& context, const Module& module, const std::string& function,
                         const std::vector<Sample>& samples) {
  const Function& f = *module.Find(function);
  const std::vector<ValueId> values = Activations(f);
  FUSEBOX_ASSIGN(Observer observer, Observer::Create(context, module, function, values));
  LstmCells cells(context, f);
  Saturation saturation(f);
  Measured out;
  Ranges& ranges = out.values;
  for (size_t s = 0; s < samples.size(); ++s) {
    const std::string place = "calibration sample " + std::to_string(s);
    for (size_t i = 0; i < f.inputs.size(); ++i)
      if (f.value(f.inputs[i]).type.dtype == DType::kF32) ranges[f.inputs[i]].Widen(samples[s][i]);
    FUSEBOX_ASSIGN(const auto tensors, observer.Run(samples[s]).At(place));
    for (size_t i = 0; i < values.size(); ++i) {
      saturation.Widen(values[i], tensors[i], ranges[values[i]]);
      out.magnitudes[values[i]].Add(tensors[i]);
    }
    FUSEBOX_TRY(cells.Widen(Seen(f, samples[s], values, tensors), out.lstms).At(place));
  }
  for (const std::string& place : observer.Untaken())
    context.Note("no calibration sample enters function " + place +
                 ": the ranges lack its values; add samples that enter it");
  saturation.Finish(ranges);
  CutPadding(f, ranges);
  return out;
}

}  // namespace fusebox::converter::quantize
