// SPDX-License-Identifier: Apache-2.0
// Post-training quantization (converter/quantize).
#include <fmt/format.h>

#include <optional>
#include <set>

#include "converter/quantize/quantize.h"

namespace fusebox::converter {
namespace {

using quantize::Sample;

// Bodies of fused ops share their weights and stay unchanged.
std::set<std::string> Definitions(const Module& module) {
  std::set<std::string> out;
  for (const auto& f : module.functions)
    for (const auto& node : f->nodes)
      if (!node->body.empty()) out.insert(node->body);
  return out;
}

// Weights in all functions, including loops and branches, except functions whose activations will be
// quantized.
void QuantizeConstants(Context& context) {
  const auto definitions = Definitions(context.module);
  std::set<std::string> later;
  if (HasIntegerActivations(context.options.quantization))
    for (const Signature& signature : context.module.signatures) later.insert(signature.function);
  for (const auto& f : context.module.functions) {
    if (definitions.contains(f->name) || later.contains(f->name)) continue;
    if (context.options.quantization == Quantization::kFloat16) quantize::ToFloat16(context, *f);
    else quantize::ToDynamic(context, *f);
  }
}

// Constants that were f16 in the source and are still exact in f16 are stored as f16 again, so files do not
// grow.
void KeepFloat16(Context& context) {
  const auto definitions = Definitions(context.module);
  for (const auto& f : context.module.functions)
    if (!definitions.contains(f->name)) quantize::ToFloat16(context, *f, true);
}

// Functions of signatures only. Activations in loops and branches stay float.
Result<quantize::QuantizedValues> QuantizeActivations(Context& context, const Module& before,
                                                      const Signature& signature,
                                                      const std::vector<Sample>& samples) {
  FUSEBOX_ASSIGN(const auto measured, quantize::Measure(context, before, signature.function, samples));
  Function& f = *context.module.Find(signature.function);
  const bool words = context.options.quantization == Quantization::kInt16x8;
  auto quantized = quantize::ToInt8(
      context, f, measured,
      {.activations = words ? DType::kI16 : DType::kI8, .rows = context.options.per_channel_fc});
  quantize::ToDynamic(context, f, true);
  return quantized;
}

// The value of all of an f32 input's data, if it is only one.
std::optional<float> OnlyValue(const std::vector<Sample>& samples, size_t input) {
  std::optional<float> only;
  for (const Sample& sample : samples) {
    if (sample[input].type.dtype != DType::kF32) return std::nullopt;
    for (const float value : sample[input].data.As<float>())
      if (only.value_or(value) != value) return std::nullopt;
      else only = value;
  }
  return only;
}

void NoteSingleValues(Context& context, const Signature& signature, const std::vector<Sample>& samples) {
  for (size_t i = 0; i < signature.input_names.size(); ++i) {
    if (const auto only = OnlyValue(samples, i))
      context.Note(
          fmt::format("signature {}: input {}: all calibration data is {}; the ranges fit no other data",
                      signature.key, signature.input_names[i], *only));
  }
}

Status CheckOptions(const Options& options) {
  const bool eight = options.quantization == Quantization::kInt8;
  const bool words = options.quantization == Quantization::kInt16x8;
  for (const DType end : {options.input_type, options.output_type}) {
    if ((end == DType::kI8 || end == DType::kU8) && !eight)
      return Invalid("8-bit inputs and outputs require 8-bit activations (--quantize int8)");
    if (end == DType::kI16 && !words)
      return Invalid("16-bit inputs and outputs require 16-bit activations (--quantize int16x8)");
  }
  if (options.per_channel_fc && !eight && !words)
    return Invalid("a scale per row of FULLY_CONNECTED requires integer activations (--quantize int8)");
  if ((eight || words) && options.calibration.empty())
    return Invalid(std::string(eight ? "8" : "16") +
                   "-bit activations require a folder of calibration data (--calibration DIR)");
  return {};
}

}  // namespace

Status QuantizeWeights(Context& context) {
  const Options& options = context.options;
  const bool integers = HasIntegerActivations(options.quantization);
  FUSEBOX_TRY(CheckOptions(options));
  if (options.quantization == Quantization::kNone) {
    if (!options.calibration.empty())
      return Invalid("calibration data requires a quantized model (--quantize)");
    if (context.f16_weights) KeepFloat16(context);
    return {};
  }
  if (options.quantization == Quantization::kInt8) {
    for (const Signature& signature : context.module.signatures)
      quantize::SplitBidirectional(context, *context.module.Find(signature.function));
  }
  const auto before = options.calibration.empty() ? nullptr : Clone(context.module);
  QuantizeConstants(context);
  if (!before) {
    quantize::AdaptBodies(context.module);
    return {};
  }
  std::set<std::string> done;
  std::set<std::string> read;
  for (const Signature& signature : before->signatures) {
    if (!done.insert(signature.function).second) continue;
    const std::string place = "signature " + signature.key;
    FUSEBOX_ASSIGN(const auto samples,
                   quantize::ReadCalibration(*before, signature, options.calibration, &read).At(place));
    quantize::QuantizedValues quantized;
    if (integers) {
      NoteSingleValues(context, signature, samples);
      FUSEBOX_ASSIGN(quantized, QuantizeActivations(context, *before, signature, samples).At(place));
    }
    FUSEBOX_TRY(
        quantize::CompareLayers(context, *before, context.module, signature.function, quantized, samples)
            .At(place));
    FUSEBOX_TRY(
        quantize::SetEnds(*context.module.Find(signature.function), options.input_type, options.output_type)
            .At(place));
  }
  quantize::AdaptBodies(context.module);
  for (const std::string& unread : quantize::UnreadCalibration(*before, options.calibration, read))
    context.Note(unread);
  return {};
}

}  // namespace fusebox::converter
