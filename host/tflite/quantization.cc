// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "host/graph/half.h"
#include "host/graph/values.h"
#include "host/tflite/dtypes.h"
#include "host/tflite/file.h"

namespace fusebox::tflite {
namespace {

// A list of the file, in place.
template <class T>
SharedArray<T> ListOf(const File& file, const flatbuffers::Vector<T>* vector) {
  if (SizeOf(vector) == 0) return {};
  const auto* const data = reinterpret_cast<const std::byte*>(vector->Data());
  const size_t size = vector->size() * sizeof(T);
  if (reinterpret_cast<uintptr_t>(data) % alignof(T) == 0)
    return SharedArray<T>(file.bytes.Slice(static_cast<size_t>(data - file.bytes.data()), size));
  // The verifier does not promise that elements are aligned.
  auto copy = std::make_shared_for_overwrite<T[]>(vector->size());
  std::memcpy(copy.get(), data, size);
  const std::span bytes = std::as_bytes(std::span(copy.get(), vector->size()));
  return SharedArray<T>(Buffer(std::move(copy), bytes));
}

// Scales and zero points of a blockwise quantized tensor are separate tensors.
Result<std::vector<double>> ReadNumbers(const File& file, const format::SubGraph& graph, int index) {
  if (index < 0 || static_cast<size_t>(index) >= SizeOf(graph.tensors())) {
    return Invalid("quantization refers to tensor " + std::to_string(index) + ", which does not exist");
  }
  const format::Tensor& tensor = *graph.tensors()->Get(static_cast<unsigned>(index));
  FUSEBOX_ASSIGN(const Buffer data, ReadBuffer(file, tensor.buffer()));
  const DType dtype = DTypeOf(tensor.type());
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kI64:
    case DType::kI32:
    case DType::kI8: break;
    default: return Unsupported("quantization by tensors of type " + std::string(Name(dtype)));
  }
  return ToDoubles({{dtype, {static_cast<int64_t>(data.size() * 8 / BitsOf(dtype))}}, data});
}

Status ReadBlockwise(const File& file, const format::SubGraph& graph,
                     const format::BlockwiseQuantization& blocks, Quant& quant) {
  quant = {};
  if (blocks.block_size() <= 0) return Invalid("blockwise quantization without a block size");
  quant.block_size = blocks.block_size();
  FUSEBOX_ASSIGN(const std::vector<double> scales, ReadNumbers(file, graph, blocks.scales()));
  quant.scales = std::vector<float>(scales.begin(), scales.end());
  if (blocks.zero_points() < 0) return {};
  FUSEBOX_ASSIGN(const std::vector<double> zero_points, ReadNumbers(file, graph, blocks.zero_points()));
  quant.zero_points = std::vector<int64_t>(zero_points.begin(), zero_points.end());
  return {};
}

template <class T>
ListOffset<T> ListOrNone(flatbuffers::FlatBufferBuilder& out, std::span<const T> list) {
  return list.empty() ? ListOffset<T>() : out.CreateVector(list.data(), list.size());
}

int32_t AddList(Context& context, format::TensorType type, const Buffer& data, size_t count,
                AddedTensors& added) {
  const auto dims = context.dims.Add(context.out, std::vector{static_cast<int32_t>(count)});
  added.list.push_back(format::CreateTensor(context.out, dims, type, context.buffers.Add(data, true), 0, 0,
                                            false, 0, 0, true));
  return added.next++;
}

// As f16, which kernels expect, if that is exact.
int32_t AddScales(Context& context, const SharedArray<float>& scales, AddedTensors& added) {
  std::vector<uint16_t> f16;
  for (const float scale : scales) {
    const auto half = static_cast<Half>(scale);
    if (static_cast<float>(half) != scale)
      return AddList(context, format::TensorType_FLOAT32, scales.buffer(), scales.size(), added);
    std::memcpy(&f16.emplace_back(), &half, 2);
  }
  return AddList(context, format::TensorType_FLOAT16, Buffer::Of(std::span<const uint16_t>(f16)), f16.size(),
                 added);
}

Offset<format::QuantizationParameters> WriteBlockwise(Context& context, const Quant& quant,
                                                      AddedTensors& added) {
  const int32_t scales = AddScales(context, quant.scales, added);
  const SharedArray<int64_t>& zeros = quant.zero_points;
  const int32_t zero_points =
      zeros.empty() ? -1 : AddList(context, format::TensorType_INT64, zeros.buffer(), zeros.size(), added);
  const auto details =
      format::CreateBlockwiseQuantization(context.out, scales, zero_points, quant.block_size);
  return format::CreateQuantizationParameters(
      context.out, 0, 0, 0, 0, format::QuantizationDetails_BlockwiseQuantization, details.Union());
}

}  // namespace

Status ReadQuant(const File& file, const format::SubGraph& graph,
                 const format::QuantizationParameters& source, Value& value) {
  const bool says_nothing = SizeOf(source.scale()) == 0 && SizeOf(source.zero_point()) == 0 &&
                            SizeOf(source.min()) == 0 && SizeOf(source.max()) == 0 &&
                            source.quantized_dimension() == 0 &&
                            source.details_type() == format::QuantizationDetails_NONE;
  if (says_nothing) return {};  // as with most tensors of a float model
  auto shared = std::make_shared<Quant>();
  Quant& quant = *shared;
  quant.scales = ListOf(file, source.scale());
  quant.min = ListOf(file, source.min());
  quant.max = ListOf(file, source.max());
  quant.zero_points = ListOf(file, source.zero_point());
  quant.axis = source.quantized_dimension();
  if (const auto* blocks = source.details_as_BlockwiseQuantization()) {
    FUSEBOX_TRY(ReadBlockwise(file, graph, *blocks, quant));
  } else if (source.details_type() != format::QuantizationDetails_NONE &&
             source.details_type() != format::QuantizationDetails_CustomQuantization) {
    return Unsupported(std::string("quantization of the kind ") +
                       format::EnumNameQuantizationDetails(source.details_type()));
  }
  if (quant == Quant()) return {};  // a CustomQuantization alone
  value.quant = std::move(shared);
  return {};
}

Offset<format::QuantizationParameters> WriteQuant(Context& context, const Quant* quant,
                                                  const format::TensorT& extra, AddedTensors& added) {
  flatbuffers::FlatBufferBuilder& out = context.out;
  const auto* custom =
      extra.quantization == nullptr ? nullptr : extra.quantization->details.AsCustomQuantization();
  if (quant == nullptr && custom == nullptr) return {};
  if (quant != nullptr && quant->block_size > 0) return WriteBlockwise(context, *quant, added);
  Offset<void> details;
  if (custom != nullptr) details = format::CustomQuantization::Pack(out, custom).Union();
  const Quant none;
  const Quant& q = quant == nullptr ? none : *quant;
  const auto min = ListOrNone<float>(out, q.min);
  const auto max = ListOrNone<float>(out, q.max);
  const auto scale = ListOrNone<float>(out, q.scales);
  const auto zero_points = q.zero_points.empty() ? 0 : context.zero_points.Add(out, q.zero_points);
  const auto kind =
      custom == nullptr ? format::QuantizationDetails_NONE : format::QuantizationDetails_CustomQuantization;
  return format::CreateQuantizationParameters(out, min, max, scale, zero_points, kind, details, q.axis);
}

}  // namespace fusebox::tflite
