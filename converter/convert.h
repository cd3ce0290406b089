// SPDX-License-Identifier: Apache-2.0
// The converter: reads a SavedModel, a frozen graph, a Keras file or a .tflite and writes a .tflite.
//
//   auto conversion = fusebox::converter::FromSavedModel("dir");
//   conversion.options.batch = 1;
//   auto converted = conversion.Convert();          // Result<Converted>
//   converted->Write("model.tflite");
//
// Import builds the graph, the passes of passes/passes.def rewrite it in order, and Write stores the result,
// reads it back and compares. The graph is verified after each pass; errors name the pass.
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
#include "host/plugin/registry.h"

namespace fusebox::converter {

enum class Composites { kFuse, kKeep, kInline };
// See converter/quantize/quantize.h.
enum class Quantization { kNone, kFloat16, kDynamic, kInt8, kInt16x8 };
// Returns whether activations are integers.
constexpr bool HasIntegerActivations(Quantization q) {
  return q == Quantization::kInt8 || q == Quantization::kInt16x8;
}
// Comparison of each fused op with its body, on seeded inputs (host/verify/verify.h). A composite whose fused
// op differs keeps its body.
enum class Verification {
  kOff,
  kSample,  // few inputs, in bounded time: a second per composite, ten per model. What cannot be verified is
            // fused
  kStrict,  // all inputs. What cannot be verified keeps its body, except for a placeholder
};
// Selects the treatment of a composite whose body is a placeholder, so that it cannot be verified.
enum class Placeholders { kFuse, kError };

struct Options {
  std::vector<std::string> signatures;  // empty: all that can be converted
  // Tensors of a frozen graph, or of the main graph of a SavedModel in place of its signatures: "node" or
  // "node:1". Empty inputs: the placeholders; empty outputs: the nodes that nobody reads.
  std::vector<std::string> inputs, outputs;
  std::optional<int64_t> batch;         // size of every unknown leading input dimension
  std::map<std::string, Shape> shapes;  // by input name
  Composites composites = Composites::kFuse;
  FusionOptions::KeepBodies keep_bodies = FusionOptions::KeepBodies::kCustom;
  Verification verify = Verification::kSample;
  uint64_t verify_seed = 1;
  Placeholders placeholders = Placeholders::kFuse;  // kError: no effect with kOff
  Quantization quantization = Quantization::kNone;
  std::string calibration;             // folder of .npy files: required for integer activations;
                                       // kFloat16 and kDynamic only measure layer errors on it
  DType input_type = DType::kF32;      // of f32 inputs: kF32; with kInt8 kI8 or kU8; with kInt16x8 kI16
  DType output_type = DType::kF32;     // of f32 outputs, the same
  bool per_channel_fc = false;         // one scale per row of the weights of FULLY_CONNECTED, with
                                       // integer activations; LiteRT of 2025 and newer runs it
  std::shared_ptr<Registry> registry;  // null: Convert creates one with the default search path
  // Called after each pass with its name and the graph (--dump-after).
  std::function<void(std::string_view pass, const Module&)> after_pass;
  ProgressListener progress;  // called per pass
};

// A group of equal ops that cannot be converted.
struct UnsupportedOps {
  std::string op, reason, first;  // source op; why; location of the first one
  int count = 0;
};

// Error of one quantized layer against the float model, over the calibration data.
struct LayerError {
  std::string op, location;
  bool quantized = false;            // computed in 8 bits
  double peak, largest, rms, ratio;  // max |value|, max |error|, rms error, rms error / rms value
};

struct Report {
  std::string source;
  std::vector<std::string> signatures;                       // converted
  std::vector<std::pair<std::string, std::string>> refused;  // signature, why
  std::vector<SiteReport> sites;
  std::vector<Variable> variables;                                 // name, type, mutability, why (no data)
  std::vector<std::pair<std::string, int>> ops_before, ops_after;  // name, count; sorted by name
  // Ops of the result that LiteRT 2.5 rejects, sorted: those with state in variable tensors, and custom ops,
  // for which it needs kernels of their names.
  std::vector<std::string> rejected_by_litert;
  std::vector<UnsupportedOps> unsupported;
  std::vector<LayerError> layers;  // of a quantized model with calibration data, in execution order
  std::vector<std::string> notes;  // one line each, in pass order
  // A fused op differs from its body. With kStrict also: the body's own error hides whether it does, or a
  // rule failed.
  bool verification_failed = false;
  std::string error;  // empty: success
};
std::string ToText(const Report&);  // the tables of --explain
std::string ToJson(const Report&);

struct Converted {
  std::unique_ptr<Module> module;
  Report report;
  // Writes a temporary file next to `path`, reads it back, compares it with the module, and renames it.
  // Weights are written straight from their buffers, so memory use stays near the size of the module itself.
  Status Write(const std::string& path) const;
};

class Conversion {
 public:
  Options options;
  // After a failure, `report()` holds what was collected until then (unsupported ops, fusion sites).
  Result<Converted> Convert();
  const Report& report() const { return report_; }

 private:
  enum class Format { kSavedModel, kFrozenGraph, kKeras, kTflite };
  friend Conversion FromSavedModel(std::string dir);
  friend Conversion FromFrozenGraph(std::string file);
  friend Conversion FromKeras(std::string file);
  friend Conversion FromTflite(std::string file);
  friend Conversion FromTflite(Buffer file, std::string name);
  Result<Converted> Run();
  Conversion(Format format, std::string source) : format_(format), source_(std::move(source)) {}

  Format format_;
  std::string source_;
  Buffer bytes_;  // of a .tflite in memory
  Report report_;
};

Conversion FromSavedModel(std::string dir);
// A GraphDef of TensorFlow 1, binary or text, whose weights are constants. One signature, serving_default;
// its inputs and outputs are named after the tensors.
Conversion FromFrozenGraph(std::string file);
// A whole model saved by Keras: .h5, .hdf5 (Keras 1 to 3) or .keras. One signature, serving_default; its
// inputs and outputs are named after the layers.
Conversion FromKeras(std::string file);
// A .tflite file: Flex ops become TensorFlow ops again and are translated; composites are fused. Signatures,
// names, metadata and an appended zip are preserved.
Conversion FromTflite(std::string file);
// Same, for the bytes of a file. `name` stands in messages.
Conversion FromTflite(Buffer file, std::string name);

}  // namespace fusebox::converter
