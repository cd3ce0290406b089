// SPDX-License-Identifier: Apache-2.0
// The converter: a model in, a .tflite out.
//
//   auto conversion = fusebox::converter::FromSavedModel("dir");
//   conversion.options.batch = 1;
//   auto converted = conversion.Convert();          // Result<Converted>
//   converted->Write("model.tflite");
//
// Import builds the graph, the passes of passes/passes.def rewrite it in order, and the result is written,
// read back and checked. Each pass leaves a sound graph; errors name the pass.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/base/progress.h"
#include "host/fusion/fusion.h"
#include "host/graph/graph.h"
#include "host/plugin/plugin.h"

namespace fusebox::converter {

enum class Composites { kFuse, kKeep, kInline };
enum class Quantization { kNone, kFloat16, kDynamic, kInt8 };  // what each is: converter/quantize/quantize.h
enum class Verification { kOff, kSample, kStrict };

struct Options {
  std::vector<std::string> signatures;  // empty: all that convert
  std::optional<int64_t> batch;         // the size of every unknown leading dimension of the inputs
  std::map<std::string, Shape> shapes;  // by input name
  Composites composites = Composites::kFuse;
  FusionOptions::KeepBodies keep_bodies = FusionOptions::KeepBodies::kCustom;
  Verification verify = Verification::kOff;
  uint64_t verify_seed = 1;
  Quantization quantization = Quantization::kNone;
  std::string calibration;  // folder of .npy files: needed for kInt8, else what the error of each layer is
                            // measured on
  std::shared_ptr<Registry> registry;  // null: one with the default search path
  // Called after each pass with its name and the graph (--dump-after).
  std::function<void(std::string_view pass, const Module&)> after_pass;
  ProgressListener progress;  // pass by pass
};

// What became of an op that could not be converted.
struct UnsupportedOps {
  std::string op, reason, first;  // source op; why; where it first stands
  int count = 0;
};

// How far a quantized model's value is from the float model's, over the calibration data.
struct LayerError {
  std::string op, location;
  bool stored = false;               // computed in 8 bits
  double peak, largest, rms, ratio;  // of the float value; of the error; rms error; rms error over rms value
};

struct Report {
  std::string source;
  std::vector<std::string> signatures;                       // converted
  std::vector<std::pair<std::string, std::string>> refused;  // signature, why
  std::vector<SiteReport> sites;
  std::vector<Variable> variables;                                 // name, type, mutability, why (no data)
  std::vector<std::pair<std::string, int>> ops_before, ops_after;  // name, count; sorted by name
  std::vector<UnsupportedOps> unsupported;
  std::vector<LayerError> layers;  // of a quantized model with calibration data, in execution order
  std::vector<std::string> notes;  // one line each, in pass order
  bool disproved = false;          // a rule was refused by the proof
  std::string error;               // why nothing came of it; empty: it did
};
std::string ToText(const Report&);  // the tables of --explain
std::string ToJson(const Report&);

struct Converted {
  std::unique_ptr<Module> module;
  Report report;
  // Writes a temporary beside `path`, reads it back, holds it against the module, and renames it. Weights go
  // from where they lie to the file, so that memory stays near what the module itself takes.
  Status Write(const std::string& path) const;
};

class Conversion {
 public:
  Options options;
  // On failure `report()` holds what is known by then (unsupported ops, fusion sites).
  Result<Converted> Convert();
  const Report& report() const { return report_; }

 private:
  enum class Format { kSavedModel, kKeras, kTflite };
  friend Conversion FromSavedModel(std::string dir);
  friend Conversion FromKeras(std::string file);
  friend Conversion FromTflite(std::string file);
  Result<Converted> Run();
  Format format_ = Format::kSavedModel;
  std::string source_;
  Report report_;
};

Conversion FromSavedModel(std::string dir);
// A whole model as Keras saves it: .h5, .hdf5 (Keras 1 and 2) or .keras. One signature, serving_default,
// named as the layers are.
Conversion FromKeras(std::string file);
// A finished file: Flex ops become TensorFlow's again and are translated, what can be fused is fused.
// Signatures, names, metadata and an appended zip stay.
Conversion FromTflite(std::string file);

}  // namespace fusebox::converter
