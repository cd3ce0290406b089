// SPDX-License-Identifier: Apache-2.0
#include "tests/peers/lstm_int8.h"

#include <algorithm>
#include <filesystem>

#include "host/graph/npy.h"
#include "host/tflite/tflite.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {

namespace {

const Node& LstmOf(const Module& module) {
  return **std::ranges::find_if(module.functions[0]->nodes, [](const auto& node) {
    return node->is(Op::kLstm) || node->is(Op::kUnidirectionalSequenceLstm);
  });
}

template <class T>
void Restore(const Value& stored, std::vector<float>& values) {
  for (const T v : stored.data.As<T>()) values.push_back(static_cast<float>(v) * stored.quant->scales[0]);
}

}  // namespace

const Node& IntegerForm::lstm() const { return LstmOf(*module); }

std::string IntegerForm::TypeOf(size_t operand) const {
  const ValueId v = operand < lstm().operands.size() ? lstm().operands[operand] : kNoValue;
  return v == kNoValue ? "none" : std::string(Name(function().value(v).type.dtype));
}

Result<IntegerForm> ToIntegers(const Module& plain, const std::string& name,
                               const std::vector<Tensor>& samples) {
  IntegerForm out;
  out.plain = TestDir() + "/" + name + "-f32.tflite";
  out.path = TestDir() + "/" + name + "-int8.tflite";
  FUSEBOX_TRY(tflite::WriteFile(plain, out.plain));
  auto conversion = converter::FromTflite(out.plain);
  FUSEBOX_ASSIGN(conversion.options.registry, Plugins());
  conversion.options.quantization = converter::Quantization::kInt8;
  conversion.options.calibration = TestDir() + "/" + name + "-calibration";
  std::filesystem::create_directories(conversion.options.calibration);
  for (size_t i = 0; i < samples.size(); ++i)
    FUSEBOX_TRY(WriteNpy(conversion.options.calibration + "/in" + std::to_string(i) + ".npy", samples[i]));
  FUSEBOX_ASSIGN(const auto converted, conversion.Convert());
  FUSEBOX_TRY(converted.Write(out.path));
  for (const std::string& note : converted.report.notes) out.notes += note + "\n";
  FUSEBOX_ASSIGN(out.module, tflite::ReadFile(out.path));
  return out;
}

std::unique_ptr<Module> WithStoredWeights(const Module& plain, const IntegerForm& form) {
  auto out = Clone(plain);
  Function& f = *out->functions[0];
  const std::vector<ValueId> operands(LstmOf(*out).operands.begin(), LstmOf(*out).operands.end());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] == kNoValue || !f.value(operands[i]).is_const()) continue;
    const Value& stored = form.function().value(form.lstm().operands[i]);
    std::vector<float> values;
    if (stored.type.dtype == DType::kI8) Restore<int8_t>(stored, values);
    if (stored.type.dtype == DType::kI16) Restore<int16_t>(stored, values);
    if (stored.type.dtype == DType::kI32) Restore<int32_t>(stored, values);
    f.value(operands[i]).data = Buffer::Of<float>(values);
  }
  return out;
}

std::vector<Tensor> NoiseSamples(const Module& module, int64_t count) {
  const Function& f = *module.functions[0];
  std::vector<Tensor> out;
  for (const ValueId v : f.inputs) {
    Type many = f.value(v).type;
    many.shape.dims().insert(many.shape.dims().begin(), count);
    out.push_back(Random(many, 7 + out.size()));
  }
  return out;
}

}  // namespace fusebox::testing
