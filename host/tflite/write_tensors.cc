// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "host/tflite/dtypes.h"
#include "host/tflite/writer.h"

namespace fusebox::tflite {
namespace {

using TensorOffset = flatbuffers::Offset<format::Tensor>;

template <class T>
flatbuffers::Offset<flatbuffers::Vector<T>> ListOrNone(flatbuffers::FlatBufferBuilder& out,
                                                       std::span<const T> list) {
  return list.empty() ? flatbuffers::Offset<flatbuffers::Vector<T>>()
                      : out.CreateVector(list.data(), list.size());
}

class TensorWriter {
 public:
  TensorWriter(Context& context, const Function& function, const TensorNumbers& numbers)
      : context_(context), out_(context.out), function_(function), numbers_(numbers) {
    outputs_.insert(function.outputs.begin(), function.outputs.end());
  }

  Result<std::vector<TensorOffset>> Run() {
    next_ = static_cast<int32_t>(numbers_.values().size());
    for (const ValueId id : numbers_.values()) {
      const Value& value = function_.value(id);
      Result<TensorOffset> tensor = One(id, value);
      if (!tensor)
        return std::unexpected(
            std::move(tensor.error()).At("%" + std::to_string(id) + " (" + value.name + ")"));
      tensors_.push_back(*tensor);
    }
    tensors_.insert(tensors_.end(), added_.begin(), added_.end());
    return std::move(tensors_);
  }

 private:
  Result<TensorOffset> One(ValueId id, const Value& value) {
    const std::optional<int> type = TensorTypeOf(value.type.dtype);
    if (!type)
      return Unsupported("element type " + std::string(Name(value.type.dtype)) + " is not in the format");
    std::vector<int32_t> shape, signature;
    FUSEBOX_TRY(Dims(value.type.shape, shape, signature));
    // What an output hands out must not be what another tensor reads.
    const uint32_t buffer = value.is_const() ? context_.buffers.Add(value.data, !outputs_.contains(id)) : 0;
    FUSEBOX_ASSIGN(const format::TensorT extra, Extra(value));
    const auto name = out_.CreateString(value.name);
    const auto dims = context_.dims.Add(out_, shape);
    const auto unknown = signature.empty() ? 0 : context_.dims.Add(out_, signature);
    const auto quant = WriteQuant(value.quant.get(), extra);
    std::vector<flatbuffers::Offset<format::VariantSubType>> variants;
    for (const auto& variant : extra.variant_tensors)
      variants.push_back(format::VariantSubType::Pack(out_, variant.get()));
    const auto variant_list = ListOrNone<flatbuffers::Offset<format::VariantSubType>>(out_, variants);
    const bool variable = value.is_variable || numbers_.is_state(id);
    return format::CreateTensor(out_, dims, static_cast<format::TensorType>(*type), buffer, name, quant,
                                variable, 0, unknown, value.type.shape.ranked(), variant_list);
  }

  static Status Dims(const Shape& from, std::vector<int32_t>& shape, std::vector<int32_t>& signature) {
    for (const int64_t dim : from.dims()) {
      if (dim > std::numeric_limits<int32_t>::max())
        return Unsupported("dimension " + std::to_string(dim) + " is too large");
      shape.push_back(dim < 0 ? 1 : static_cast<int32_t>(dim));
      signature.push_back(static_cast<int32_t>(dim));
    }
    if (from.is_static()) signature.clear();
    return {};
  }

  static Result<format::TensorT> Extra(const Value& value) {
    format::TensorT extra;
    if (value.extra.empty()) return extra;
    const Buffer aligned = Buffer::Of(std::span<const char>(value.extra));
    flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(aligned.data()), aligned.size());
    if (!verifier.VerifyBuffer<format::Tensor>(nullptr))
      return Internal("its uninterpreted parts are damaged");
    flatbuffers::GetRoot<format::Tensor>(aligned.data())->UnPackTo(&extra);
    return extra;
  }

  flatbuffers::Offset<format::QuantizationParameters> WriteQuant(const Quant* quant,
                                                                 const format::TensorT& extra) {
    const auto* custom =
        extra.quantization == nullptr ? nullptr : extra.quantization->details.AsCustomQuantization();
    if (quant == nullptr && custom == nullptr) return {};
    if (quant != nullptr && quant->block_size > 0) return WriteBlockwise(*quant);
    flatbuffers::Offset<void> details;
    if (custom != nullptr) details = format::CustomQuantization::Pack(out_, custom).Union();
    const Quant none;
    const Quant& q = quant == nullptr ? none : *quant;
    const auto min = ListOrNone<float>(out_, q.min), max = ListOrNone<float>(out_, q.max),
               scale = ListOrNone<float>(out_, q.scales);
    const auto zero_points = q.zero_points.empty() ? 0 : context_.zero_points.Add(out_, q.zero_points);
    const auto kind =
        custom == nullptr ? format::QuantizationDetails_NONE : format::QuantizationDetails_CustomQuantization;
    return format::CreateQuantizationParameters(out_, min, max, scale, zero_points, kind, details, q.axis);
  }

  flatbuffers::Offset<format::QuantizationParameters> WriteBlockwise(const Quant& quant) {
    const int32_t scales = AddScales(quant.scales);
    const int32_t zero_points =
        quant.zero_points.empty()
            ? -1
            : AddList(format::TensorType_INT64, quant.zero_points.buffer(), quant.zero_points.size());
    const auto details = format::CreateBlockwiseQuantization(out_, scales, zero_points, quant.block_size);
    return format::CreateQuantizationParameters(
        out_, 0, 0, 0, 0, format::QuantizationDetails_BlockwiseQuantization, details.Union());
  }

  // As halves, which is what kernels expect, where halves can say them.
  int32_t AddScales(const SharedArray<float>& scales) {
    std::vector<uint16_t> halves;
    for (const float scale : scales) {
      const auto half = static_cast<_Float16>(scale);
      if (static_cast<float>(half) != scale)
        return AddList(format::TensorType_FLOAT32, scales.buffer(), scales.size());
      std::memcpy(&halves.emplace_back(), &half, 2);
    }
    return AddList(format::TensorType_FLOAT16, Buffer::Of(std::span<const uint16_t>(halves)), halves.size());
  }

  int32_t AddList(format::TensorType type, const Buffer& data, size_t count) {
    const auto dims = context_.dims.Add(out_, std::vector{static_cast<int32_t>(count)});
    added_.push_back(
        format::CreateTensor(out_, dims, type, context_.buffers.Add(data, true), 0, 0, false, 0, 0, true));
    return next_++;
  }

  Context& context_;
  flatbuffers::FlatBufferBuilder& out_;
  const Function& function_;
  const TensorNumbers& numbers_;
  std::set<ValueId> outputs_;
  std::vector<TensorOffset> tensors_, added_;
  int32_t next_ = 0;
};

}  // namespace

TensorNumbers::TensorNumbers(const Function& function)
    : numbers_(static_cast<size_t>(function.value_count()), -1), state_(numbers_.size()) {
  for (const ValueId id : function.inputs) Add(id);
  for (const auto& node : function.nodes) {
    for (const ValueId id : node->operands) Add(id);
    const size_t proper = ProperResultCount(*node);
    for (size_t i = 0; i < proper; ++i) Add(node->results[i]);
    size_t result = proper;
    for (const int i : StateOperands(node->op)) {
      if (static_cast<size_t>(i) >= node->operands.size()) continue;
      const ValueId operand = node->operands[static_cast<size_t>(i)], state = node->results[result++];
      if (operand == kNoValue || state == kNoValue) continue;
      const int32_t number = of(operand);
      numbers_[static_cast<size_t>(state)] = number;
      state_[static_cast<size_t>(values_[static_cast<size_t>(number)])] = 1;
    }
    for (const ValueId id : node->intermediates) Add(id);
  }
  for (const ValueId id : function.outputs) Add(id);
}

void TensorNumbers::Add(ValueId id) {
  if (id == kNoValue || of(id) >= 0) return;
  numbers_[static_cast<size_t>(id)] = static_cast<int32_t>(values_.size());
  values_.push_back(id);
}

std::vector<int32_t> TensorNumbers::of(std::span<const ValueId> ids) const {
  std::vector<int32_t> numbers;
  for (const ValueId id : ids) numbers.push_back(of(id));
  return numbers;
}

Result<std::vector<TensorOffset>> WriteTensors(Context& context, const Function& function,
                                               const TensorNumbers& numbers) {
  return TensorWriter(context, function, numbers).Run();
}

}  // namespace fusebox::tflite
