// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "host/tflite/tflite.h"
#include "tests/bench/net_onnx.h"
#include "tests/bench/net_peers.h"
#include "tests/bench/onnx.h"
#include "tests/testing/peer.h"

namespace fusebox::bench {
namespace {

// The largest and the mean difference of an output, as parts of its range, or the part of integers that
// differ. Nets with 8-bit values round after each op, so that differences of a step add up; they may also
// differ by some steps of the output.
struct Tolerance {
  double largest = 1e-3, mean = 1e-3, steps = 0, unequal = 0;
};
constexpr double kByteLargest = 0.25, kByteMean = 0.04, kSteps = 4, kUnequal = 0.1;
constexpr double kRounding = 1e-3;  // of elements that are equal

// The tensor of one input or output in the order and the type of the model.
class Slot {
 public:
  explicit Slot(OnnxNet::Slot about)
      : about_(std::move(about)),
        size_(BitsOf(about_.type.dtype) / 8),
        bytes_(static_cast<size_t>(about_.type.shape.element_count().value_or(0)) * size_) {}

  const char* name() const { return about_.name.c_str(); }
  void* Tensor(onnx::Session& session) {
    return session.Tensor(bytes_.data(), bytes_.size(), about_.dims, about_.element);
  }
  Status Set(std::span<const std::byte> from) {
    if (from.size() != bytes_.size()) return Internal("an input of another size");
    Move(from.data(), bytes_.data(), true);
    return {};
  }
  std::vector<std::byte> Get() const {
    std::vector<std::byte> to(bytes_.size());
    Move(bytes_.data(), to.data(), false);
    return to;
  }

 private:
  // Copies a tensor and reorders its dims: from the function's order to the model's, or back.
  void Move(const std::byte* from, std::byte* to, bool into_model) const {
    const auto& dims = about_.type.shape.dims();
    const size_t channels = about_.channels_first ? static_cast<size_t>(dims[3]) : 1;
    const size_t area =
        about_.channels_first ? static_cast<size_t>(dims[1] * dims[2]) : bytes_.size() / size_;
    for (size_t i = 0; i < bytes_.size() / size_; ++i) {
      const size_t channel = i % channels, pixel = i / channels % area, image = i / channels / area;
      const size_t other = (image * channels + channel) * area + pixel;
      std::memcpy(to + (into_model ? other : i) * size_, from + (into_model ? i : other) * size_, size_);
    }
    for (size_t i = 0; about_.shifted && i < bytes_.size(); ++i) to[i] ^= std::byte{0x80};
  }

  OnnxNet::Slot about_;
  size_t size_;
  std::vector<std::byte> bytes_;
};

double NumberAt(DType dtype, const std::byte* data, size_t i) {
  const auto read = [&]<class T>(T value) {
    std::memcpy(&value, data + i * sizeof value, sizeof value);
    return static_cast<double>(value);
  };
  switch (dtype) {
    case DType::kF32: return read(float{});
    case DType::kI8: return read(int8_t{});
    case DType::kI32: return read(int32_t{});
    case DType::kI64: return read(int64_t{});
    default: return read(uint8_t{});
  }
}

Status CompareOutput(const Tensor& ours, const std::vector<std::byte>& theirs, const Tolerance& tolerance) {
  if (ours.data.size() != theirs.size()) return Invalid("an output has another size");
  const size_t count = theirs.size() / (BitsOf(ours.type.dtype) / 8);
  double least = std::numeric_limits<double>::max();
  double most = std::numeric_limits<double>::lowest();
  double sum = 0;
  double largest = 0;
  size_t unequal = 0;
  for (size_t i = 0; i < count; ++i) {
    const double a = NumberAt(ours.type.dtype, ours.data.data(), i),
                 b = NumberAt(ours.type.dtype, theirs.data(), i);
    least = std::min(least, a);
    most = std::max(most, a);
    sum += std::abs(a - b);
    unequal += a != b;
    if (!(std::abs(a - b) <= largest)) largest = std::abs(a - b);
  }
  if (ours.type.dtype == DType::kI32 || ours.type.dtype == DType::kI64) {
    if (static_cast<double>(unequal) <= tolerance.unequal * static_cast<double>(count)) return {};
    return Invalid(std::to_string(unequal) + " of " + std::to_string(count) + " integers differ");
  }
  const double range = std::max(most - least, kRounding * std::max(std::abs(least), std::abs(most)));
  const double mean = count == 0 ? 0 : sum / static_cast<double>(count);
  if (largest <= range * tolerance.largest + tolerance.steps &&
      mean <= range * tolerance.mean + tolerance.steps)
    return {};
  return Invalid("outputs differ by up to " + std::to_string(largest) + ", by " + std::to_string(mean) +
                 " on average, in a range of " + std::to_string(range));
}

bool HasBytes(const Function& f) {
  for (ValueId v = 0; v < f.value_count(); ++v) {
    const Value& value = f.value(v);
    if (BitsOf(value.type.dtype) == 8 && value.quant && value.quant->scales.size() > 0) return true;
  }
  return false;
}

// One for each output.
std::vector<Tolerance> Tolerances(const Function& f) {
  std::vector<Tolerance> all(f.outputs.size());
  if (!HasBytes(f)) return all;
  const Uses uses(f);
  for (size_t i = 0; i < all.size(); ++i) {
    const Node* const last = uses.producer(f.outputs[i]);
    const bool real = last && last->is(Op::kDequantize);
    const auto& quant = f.value(real ? last->operands[0] : f.outputs[i]).quant;
    const double step = real && quant && quant->scales.size() > 0 ? quant->scales[0] : quant ? 1 : 0;
    all[i] = {kByteLargest, kByteMean, kSteps * step, kUnequal};
  }
  return all;
}

class OnnxPeer : public Peer {
 public:
  OnnxPeer(const OnnxNet& net, std::vector<Tolerance> tolerances, const std::string& library, int threads,
           const std::string& optimized)
      : tolerances_(std::move(tolerances)), session_(library, net.model, threads, optimized) {
    for (const auto& slot : net.inputs) inputs_.emplace_back(slot);
    for (const auto& slot : net.outputs) outputs_.emplace_back(slot);
    for (Slot& slot : inputs_) {
      input_names_.push_back(slot.name());
      input_tensors_.push_back(slot.Tensor(session_));
    }
    for (Slot& slot : outputs_) {
      output_names_.push_back(slot.name());
      output_tensors_.push_back(slot.Tensor(session_));
    }
  }

  Status Feed(Session& session) override {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      FUSEBOX_ASSIGN(const auto bytes, session.InputData(static_cast<int>(i)));
      FUSEBOX_TRY(inputs_[i].Set(bytes));
    }
    return {};
  }

  Status Run() override try {
    session_.Run(input_names_, input_tensors_, output_names_, output_tensors_);
    return {};
  } catch (const std::exception& what) {
    return Unsupported(what.what());
  }

  Status Compare(const Session& session) override {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      FUSEBOX_ASSIGN(const Tensor ours, session.output(static_cast<int>(i)));
      FUSEBOX_TRY(CompareOutput(ours, outputs_[i].Get(), tolerances_[i]).At("output " + std::to_string(i)));
    }
    return {};
  }

 private:
  const std::vector<Tolerance> tolerances_;
  onnx::Session session_;
  std::vector<Slot> inputs_, outputs_;
  std::vector<const char*> input_names_, output_names_;
  std::vector<void*> input_tensors_, output_tensors_;
};

}  // namespace

Result<std::unique_ptr<Peer>> OpenOnnxPeer(const std::string& path, int threads,
                                           const std::string& optimized) {
  std::string why;
  const std::string library = testing::PeerFile("libonnxruntime.so", &why);
  if (library.empty()) return NotFound(why);
  FUSEBOX_ASSIGN(const auto module, tflite::ReadFile(path));
  const Function* f = module->signatures.size() == 1 ? module->Find(module->signatures[0].function) : nullptr;
  if (!f) f = module->functions[0].get();
  FUSEBOX_ASSIGN(const OnnxNet net, ToOnnx(*f));
  try {
    return std::make_unique<OnnxPeer>(net, Tolerances(*f), library, threads, optimized);
  } catch (const std::exception& what) {
    return Unsupported(what.what());
  }
}

}  // namespace fusebox::bench
