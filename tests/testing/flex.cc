// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/flex.h"

#include <flatbuffers/flexbuffers.h>

#include <algorithm>
#include <cmath>

#include "converter/passes/pass.h"
#include "host/graph/ops.h"
#include "host/graph/quant.h"
#include "host/tflite/tflite.h"

namespace fusebox::testing {
namespace {

std::string Field(char tag, const std::string& text) {
  return std::string{tag, static_cast<char>(text.size())} + text;
}

// An entry of the map of attributes: a name and a DataType.
std::string TypeAttr(const std::string& name, char type) {
  return Field('\x2a', Field('\x0a', name) + Field('\x12', std::string{'\x30', type}));
}

std::string TensorFlowName(Op op) {
  switch (op) {
    case Op::kTensorListReserve: return "TensorListReserve";
    case Op::kTensorListFromTensor: return "TensorListFromTensor";
    case Op::kTensorListStack: return "TensorListStack";
    case Op::kTensorListGetItem: return "TensorListGetItem";
    case Op::kTensorListSetItem: return "TensorListSetItem";
    case Op::kTensorListLength: return "TensorListLength";
    default: return {};
  }
}

int MakeFlex(Module& module) {
  int count = 0;
  for (const auto& function : module.functions) {
    for (const auto& node : function->nodes) {
      const std::string name = TensorFlowName(node->op);
      if (name.empty()) continue;
      node->op = Op::kCustom;
      node->name = "Flex" + name;
      node->attrs = {};
      node->raw_options = FlexListOptions(name);
      node->version = 1;
      ++count;
    }
  }
  return count;
}

// `rows`: of how many rows each has a scale.
void Quantize(Value& weights, size_t rows) {
  const auto values = weights.data.As<float>();
  const size_t part = values.size() / rows;
  std::vector<int8_t> bytes;
  std::vector<float> scales;
  for (size_t at = 0; at < values.size(); at += part) {
    float largest = 1e-6F;
    for (const float value : values.subspan(at, part)) largest = std::max(largest, std::abs(value));
    const float scale = largest / 127;
    scales.push_back(scale);
    for (const float value : values.subspan(at, part))
      bytes.push_back(static_cast<int8_t>(std::lround(value / scale)));
  }
  weights.type.dtype = DType::kI8;
  weights.data = Buffer::Of<int8_t>(bytes);
  weights.quant = std::make_shared<Quant>(
      Quant{.scales = std::move(scales), .zero_points = std::vector<int64_t>(rows)});
}

int QuantizeProducts(Module& module, FlexWeights form) {
  int count = 0;
  const bool by_rows = form == FlexWeights::kRowsOfEightBits;
  for (const auto& function : module.functions) {
    std::vector<Value*> found;
    size_t largest = 0;
    for (const auto& node : function->nodes) {
      if (!node->is(Op::kFullyConnected)) continue;
      Value& weights = function->value(node->operands[1]);
      if (!weights.is_const() || weights.type.dtype != DType::kF32) continue;
      found.push_back(&weights);
      largest = std::max(largest, weights.data.size());
    }
    for (Value* const weights : found) {
      if (by_rows && weights->data.size() < largest) continue;
      Quantize(*weights, by_rows ? static_cast<size_t>(weights->type.shape[0]) : 1);
      ++count;
    }
  }
  return count;
}

}  // namespace

std::string FlexListOptions(const std::string& op) {
  flexbuffers::Builder builder;
  builder.Vector([&] {
    builder.String(op);
    builder.String(Field('\x0a', "lists/" + op) + Field('\x12', op) + TypeAttr("element_dtype", 1) +
                   TypeAttr("shape_type", 3));
  });
  builder.Finish();
  return {builder.GetBuffer().begin(), builder.GetBuffer().end()};
}

Status WriteFlex(converter::Conversion conversion, const std::string& path, FlexWeights weights) {
  using converter::Context;
  std::unique_ptr<Module> flex;
  conversion.options.composites = converter::Composites::kInline;
  conversion.options.after_pass = [&](std::string_view pass, const Module& module) {
    if (pass == "fold") flex = Clone(module);
  };
  if (!conversion.options.registry) {
    FUSEBOX_ASSIGN(conversion.options.registry, Registry::Create(Config{.search_default_path = false}));
  }
  FUSEBOX_TRY(conversion.Convert());
  converter::Report report;
  Context context{*flex, *conversion.options.registry, conversion.options, report};
  FUSEBOX_TRY(converter::SimplifyLoops(context));
  FUSEBOX_TRY(converter::FoldToFixpoint(context));
  if (weights != FlexWeights::kFloat && QuantizeProducts(*flex, weights) == 0)
    return Unsupported("the model has no products");
  if (MakeFlex(*flex) == 0) return Unsupported("the model has no lists");
  FUSEBOX_TRY(converter::Finish(context));
  return tflite::WriteFile(*flex, path);
}

}  // namespace fusebox::testing
