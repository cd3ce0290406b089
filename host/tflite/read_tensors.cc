// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "host/tflite/dtypes.h"
#include "host/tflite/reader.h"

namespace fusebox::tflite {
namespace {

// A list of the file, in place.
template <class T>
SharedArray<T> ListOf(const File& file, const flatbuffers::Vector<T>* vector) {
  if (SizeOf(vector) == 0) return {};
  const auto* const data = reinterpret_cast<const std::byte*>(vector->Data());
  const Buffer list =
      file.bytes.Slice(static_cast<size_t>(data - file.bytes.data()), vector->size() * sizeof(T));
  // The verifier does not promise that elements are aligned.
  const bool aligned = reinterpret_cast<uintptr_t>(data) % alignof(T) == 0;
  return SharedArray<T>(aligned ? list : Buffer::Copy(list.bytes()));
}

Shape ReadShape(const File& file, const format::Tensor& tensor, bool is_scalar_at_least) {
  const auto* shape = tensor.shape();
  const auto* signature = tensor.shape_signature();
  if (SizeOf(shape) == 0 && SizeOf(signature) == 0) {
    const bool known = tensor.has_rank() || is_scalar_at_least || !file.states_rank;
    return known ? Shape::Scalar() : Shape();
  }
  const auto* dims =
      SizeOf(signature) > 0 && (SizeOf(shape) == SizeOf(signature) || SizeOf(shape) == 0) ? signature : shape;
  Shape out = Shape::Scalar();
  out.dims().assign(dims->begin(), dims->end());
  return out;
}

// Scales and zero points of a blockwise quantized tensor stand in tensors of their own.
Result<std::vector<double>> ReadNumbers(const File& file, const format::SubGraph& graph, int index) {
  if (index < 0 || static_cast<size_t>(index) >= SizeOf(graph.tensors())) {
    return Invalid("quantization refers to tensor " + std::to_string(index) + ", which does not exist");
  }
  const format::Tensor& tensor = *graph.tensors()->Get(static_cast<unsigned>(index));
  FUSEBOX_ASSIGN(const Buffer data, ReadBuffer(file, tensor.buffer()));
  std::vector<double> numbers;
  const auto collect = [&](auto sample, auto&& convert) {
    using T = decltype(sample);
    for (size_t i = 0; i + sizeof(T) <= data.size(); i += sizeof(T)) {
      T value;
      std::memcpy(&value, data.data() + i, sizeof value);
      numbers.push_back(convert(value));
    }
  };
  const auto plain = [](auto value) { return static_cast<double>(value); };
  switch (DTypeOf(tensor.type())) {
    case DType::kF32: collect(float{}, plain); break;
    case DType::kF16:
      collect(uint16_t{}, [](uint16_t half) {
        _Float16 value;
        std::memcpy(&value, &half, 2);
        return static_cast<double>(value);
      });
      break;
    case DType::kI64: collect(int64_t{}, plain); break;
    case DType::kI32: collect(int32_t{}, plain); break;
    case DType::kI8: collect(int8_t{}, plain); break;
    default:
      return Unsupported("quantization by tensors of type " + std::string(Name(DTypeOf(tensor.type()))));
  }
  return numbers;
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

Status ReadQuant(const File& file, const format::SubGraph& graph,
                 const format::QuantizationParameters& source, Value& value) {
  const bool says_nothing = SizeOf(source.scale()) == 0 && SizeOf(source.zero_point()) == 0 &&
                            SizeOf(source.min()) == 0 && SizeOf(source.max()) == 0 &&
                            source.quantized_dimension() == 0 &&
                            source.details_type() == format::QuantizationDetails_NONE;
  if (says_nothing) return {};  // as with most tensors of a float model
  Quant quant;
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
  value.quant = std::make_shared<const Quant>(std::move(quant));
  return {};
}

bool HasCustomQuant(const format::Tensor& tensor) {
  return tensor.quantization() != nullptr &&
         tensor.quantization()->details_as_CustomQuantization() != nullptr;
}

bool HasExtra(const format::Tensor& tensor) {
  return SizeOf(tensor.variant_tensors()) > 0 || HasCustomQuant(tensor);
}

// The parts of a tensor that the graph does not interpret, as a Tensor table of their own.
std::string ReadExtra(const format::Tensor& tensor) {
  format::TensorT extra;
  if (HasCustomQuant(tensor)) {
    extra.quantization = std::make_unique<format::QuantizationParametersT>();
    const std::unique_ptr<format::CustomQuantizationT> custom(
        tensor.quantization()->details_as_CustomQuantization()->UnPack());
    extra.quantization->details.Set(std::move(*custom));
  }
  for (size_t i = 0; i < SizeOf(tensor.variant_tensors()); ++i) {
    extra.variant_tensors.emplace_back(tensor.variant_tensors()->Get(static_cast<unsigned>(i))->UnPack());
  }
  flatbuffers::FlatBufferBuilder out;
  out.Finish(format::Tensor::Pack(out, &extra));
  return std::string(reinterpret_cast<const char*>(out.GetBufferPointer()), out.GetSize());
}

size_t ElementAlignment(DType type) {
  if (type == DType::kString) return 4;
  if (type == DType::kComplex64) return 4;
  if (type == DType::kComplex128) return 8;
  return std::max<size_t>(1, BitsOf(type) / 8);
}

}  // namespace

Result<Buffer> ReadRange(const File& file, uint64_t offset, uint64_t size) {
  const uint64_t end = file.bytes.size();
  if (offset > end || size > end - offset) {
    return Invalid("bytes " + std::to_string(offset) + " to " + std::to_string(offset) + " + " +
                   std::to_string(size) + " lie outside the file of " + std::to_string(end));
  }
  return file.bytes.Slice(offset, size);
}

Result<Buffer> ReadBuffer(const File& file, uint32_t index) {
  if (index == 0) return Buffer();
  if (index >= SizeOf(file.model.buffers()))
    return Invalid("buffer " + std::to_string(index) + " does not exist");
  const format::Buffer& buffer = *file.model.buffers()->Get(index);
  if (buffer.offset() > 1)
    return ReadRange(file, buffer.offset(), buffer.size()).At("buffer " + std::to_string(index));
  if (buffer.data() == nullptr || buffer.data()->size() == 0) return Buffer();
  const auto* data = reinterpret_cast<const std::byte*>(buffer.data()->data());
  return file.bytes.Slice(static_cast<size_t>(data - file.bytes.data()), buffer.data()->size());
}

Status ReadTensor(const File& file, const format::SubGraph& graph, const format::Tensor& tensor,
                  Value& value) {
  if (tensor.name() != nullptr) value.name = tensor.name()->string_view();
  value.type.dtype = DTypeOf(tensor.type());
  if (value.type.dtype == DType::kNone)
    return Unsupported("element type " + std::to_string(tensor.type()) + " is not known");
  value.is_variable = tensor.is_variable();
  if (tensor.external_buffer() != 0)
    return Unsupported("its weights lie in a file of their own, which is not supported");
  FUSEBOX_ASSIGN(value.data, ReadBuffer(file, tensor.buffer()));
  value.type.shape = ReadShape(file, tensor, value.is_const() || value.is_variable);
  for (const int64_t dim : value.type.shape.dims()) {
    if (dim < Shape::kUnknown) return Invalid("dimension " + std::to_string(dim));
  }
  if (tensor.sparsity() != nullptr && value.is_const()) {
    FUSEBOX_ASSIGN(value.data, Unpack(file, *tensor.sparsity(), value.type, value.data).At("sparsity"));
  }
  const auto address = reinterpret_cast<uintptr_t>(value.data.data());
  if (value.is_const() && address % ElementAlignment(value.type.dtype) != 0)
    value.data = Buffer::Copy(value.data.bytes());
  if (tensor.quantization() != nullptr) FUSEBOX_TRY(ReadQuant(file, graph, *tensor.quantization(), value));
  if (HasExtra(tensor)) value.extra = ReadExtra(tensor);
  return {};
}

}  // namespace fusebox::tflite
