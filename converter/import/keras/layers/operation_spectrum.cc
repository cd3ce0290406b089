// SPDX-License-Identifier: Apache-2.0
// Frames and Fourier transforms. Keras 3 passes complex numbers as two tensors, TensorFlow as one.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "converter/import/keras/layers/operation.h"

namespace fusebox::keras {
namespace {

using nlohmann::json;

// A node that a pass lowers, with the type of its result.
ValueId Typed(LayerCall& c, std::string_view op, std::vector<ValueId> operands, DType type,
              const std::vector<int64_t>& dims) {
  const ValueId v = c.emit().Op(op, std::move(operands));
  if (c.emit().ok()) c.emit().function().value(v).type = {type, Shape(dims)};
  return v;
}

std::vector<int64_t> DimsOf(LayerCall& c, ValueId v) {
  std::vector<int64_t> dims;
  for (int i = 0; i < c.emit().rank(v); ++i) dims.push_back(c.emit().dim(v, i));
  return dims;
}

// Size of the last dimension, which must be known.
int64_t LengthOf(LayerCall& c, ValueId x) {
  const int64_t size = c.emit().dim(x, -1);
  if (c.emit().ok() && (size < 1 || size > (1 << 24)))
    c.emit().Refuse("an input " + ToString(c.emit().type(x)) + ", whose last size must be known");
  return size;
}

// One complex value, or its parts in Keras 3.
void AddComplex(LayerCall& c, ValueId v) {
  if (c.keras() < 3) return c.AddOutput(v);
  const std::vector<int64_t> dims = DimsOf(c, v);
  for (const char* part : {"Real", "Imag"}) c.AddOutput(Typed(c, part, {v}, DType::kF32, dims));
}

ValueId ComplexArgument(LayerCall& c) {
  if (c.keras() < 3) return TensorArgument(c, 0, {"input"});
  const auto parts = c.inputs();
  if (parts.size() != 2) {
    c.emit().Refuse("an input that is not a real and an imaginary part");
    return kNoValue;
  }
  return Typed(c, "Complex", {c.in(0), c.in(1)}, DType::kComplex64, DimsOf(c, c.in(0)));
}

ValueId RealTransform(LayerCall& c, ValueId x, int64_t length) {
  std::vector<int64_t> dims = DimsOf(c, x);
  if (c.emit().ok()) dims.back() = length / 2 + 1;
  return Typed(c, "RFFT", {x, c.emit().I32s({length})}, DType::kComplex64, dims);
}

int64_t FftLength(LayerCall& c, int64_t otherwise) {
  const auto said = IntsArgument(c, kKeywordOnly, {"fft_length"});
  const int64_t length = said && !said->empty() ? said->back() : otherwise;
  if (length < 1 && c.emit().ok()) c.emit().Refuse("its fft_length");
  return length;
}

void Rfft(LayerCall& c, std::string_view) {
  const ValueId x = FloatArgument(c, 0, {"x", "input_tensor"});
  const int64_t size = LengthOf(c, x);
  AddComplex(c, RealTransform(c, x, FftLength(c, size)));
}

void Irfft(LayerCall& c, std::string_view op) {
  const ValueId x = ComplexArgument(c);
  const int64_t length = FftLength(c, 2 * (LengthOf(c, x) - 1));
  std::vector<int64_t> dims = DimsOf(c, x);
  if (!c.emit().ok()) return;
  dims.back() = length;
  c.AddOutput(Typed(c, op, {x, c.emit().I32s({length})}, DType::kF32, dims));
}

void Fft(LayerCall& c, std::string_view op) {
  const ValueId x = ComplexArgument(c);
  AddComplex(c, Typed(c, op, {x}, DType::kComplex64, DimsOf(c, x)));
}

// [..., samples] as [..., frames, length]
ValueId Framed(LayerCall& c, ValueId x, int64_t length, int64_t step) {
  const int64_t size = LengthOf(c, x);
  if (c.emit().ok() && (length < 1 || step < 1 || length > size || (size - length) / step >= (1 << 20)))
    c.emit().Refuse("frames of " + std::to_string(length) + " by " + std::to_string(step) + " from " +
                    ToString(c.emit().type(x)));
  if (!c.emit().ok()) return kNoValue;
  const int64_t count = (size - length) / step + 1;
  std::vector<int32_t> places;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t k = 0; k < length; ++k) places.push_back(static_cast<int32_t>(i * step + k));
  const ValueId at = c.emit().Const({{DType::kI32, {count, length}}, Buffer::Of<int32_t>(places)});
  return c.emit().Op("GatherV2", {x, at, c.emit().I32(c.emit().rank(x) - 1)});
}

void Frames(LayerCall& c, std::string_view) {
  const int64_t length = IntArgument(c, 1, {"sequence_length", "frame_length"}, 0);
  const int64_t step = IntArgument(c, 2, {"sequence_stride", "frame_step"}, 0);
  const int64_t axis = IntArgument(c, kKeywordOnly, {"axis"}, -1);
  if (FlagArgument(c, kKeywordOnly, {"pad_end"})) return c.emit().Refuse("pad_end");
  if (axis != -1) return c.emit().Refuse("an axis other than the last");
  c.AddOutput(Framed(c, TensorArgument(c, 0, {"x", "signal"}), length, step));
}

// A periodic window in the middle of `size` samples.
ValueId Taper(LayerCall& c, const std::string& kind, int64_t length, int64_t size) {
  if (kind != "hann" && kind != "hamming") c.emit().Refuse("its window " + kind);
  const double least = kind == "hann" ? 0.5 : 0.54;
  std::vector<float> values(static_cast<size_t>(size), 0);
  for (int64_t i = 0; i < length; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(length);
    values[static_cast<size_t>(i + (size - length) / 2)] =
        static_cast<float>(least - (1 - least) * std::cos(angle));
  }
  return c.emit().Const({{DType::kF32, {size}}, Buffer::Of<float>(values)});
}

// Keras 3 pads the window to the length of the transform, TensorFlow pads the frames at the end.
void Stft(LayerCall& c, std::string_view) {
  const bool three = c.keras() >= 3;
  ValueId x = FloatArgument(c, 0, {"x", "signals"});
  const int64_t length = IntArgument(c, kKeywordOnly, {"sequence_length", "frame_length"}, 0);
  const int64_t step = IntArgument(c, kKeywordOnly, {"sequence_stride", "frame_step"}, 0);
  if (length < 1 || length > (1 << 20)) return c.emit().Refuse("frames of unknown length");
  const int64_t fft = FftLength(c, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length))));
  if (fft < length) return c.emit().Refuse("an fft_length below the length of a frame");
  if (FlagArgument(c, kKeywordOnly, {"pad_end"})) return c.emit().Refuse("pad_end");
  const json said = PlainArgument(c, kKeywordOnly, {"window"});
  if (three && !said.is_string()) return c.emit().Refuse("its window " + said.dump().substr(0, 80));
  const bool centered = three && FlagArgument(c, kKeywordOnly, {"center"});
  if (centered) {
    std::vector<int32_t> table(static_cast<size_t>(c.emit().rank(x)) * 2, 0);
    if (!c.emit().ok() || table.empty()) return;
    table[table.size() - 2] = table[table.size() - 1] = static_cast<int32_t>(fft / 2);
    x = c.emit().Op("MirrorPad",
                    {x, c.emit().Const({{DType::kI32, {c.emit().rank(x), 2}}, Buffer::Of<int32_t>(table)})},
                    MakeAttrs("mode", "REFLECT"));
  }
  const int64_t size = three ? fft : length;
  const ValueId frames = Framed(c, x, size, step);
  const ValueId shaped =
      c.emit().Op("Mul", {frames, Taper(c, three ? said.get<std::string>() : "hann", length, size)});
  AddComplex(c, RealTransform(c, shaped, fft));
}

// Real, Imag, Angle or ComplexAbs, of a complex tensor.
void Part(LayerCall& c, std::string_view op) {
  const ValueId x = c.in();
  if (!c.emit().ok()) return;
  if (c.emit().dtype(x) == DType::kComplex64)
    return c.AddOutput(Typed(c, op, {x}, DType::kF32, DimsOf(c, x)));
  if (op == "Real") return c.AddOutput(x);
  if (op == "ComplexAbs") return Unary(c, "Abs");
  c.emit().Refuse("an input that is not complex");
}

}  // namespace

std::span<const NamedOperation> SpectrumOperations() {
  static constexpr NamedOperation kTable[] = {
      {"rfft", {"", Rfft}},       {"irfft", {"IRFFT", Irfft}},   {"fft", {"FFT", Fft}},
      {"ifft", {"IFFT", Fft}},    {"stft", {"", Stft}},          {"extractsequences", {"", Frames}},
      {"frame", {"", Frames}},    {"real", {"Real", Part}},      {"imag", {"Imag", Part}},
      {"angle", {"Angle", Part}}, {"abs", {"ComplexAbs", Part}}, {"absolute", {"ComplexAbs", Part}},
  };
  return kTable;
}

}  // namespace fusebox::keras
