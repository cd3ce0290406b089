// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <set>

#include "host/tflite/dtypes.h"
#include "host/tflite/file.h"

namespace fusebox::tflite {
namespace {

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

bool HasCustomQuant(const format::Tensor& tensor) {
  return tensor.quantization() != nullptr &&
         tensor.quantization()->details_as_CustomQuantization() != nullptr;
}

bool HasExtra(const format::Tensor& tensor) {
  return SizeOf(tensor.variant_tensors()) > 0 || HasCustomQuant(tensor);
}

// The parts of a tensor that the graph does not interpret, as a separate Tensor table.
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

using TensorOffset = Offset<format::Tensor>;

class TensorWriter {
 public:
  TensorWriter(Context& context, const Function& function, const TensorNumbers& numbers)
      : context_(context), out_(context.out), function_(function), numbers_(numbers) {
    outputs_.insert(function.outputs.begin(), function.outputs.end());
  }

  Result<std::vector<TensorOffset>> Run() {
    added_.next = static_cast<int32_t>(numbers_.values().size());
    for (const ValueId id : numbers_.values()) {
      const Value& value = function_.value(id);
      Result<TensorOffset> tensor = One(id, value);
      if (!tensor)
        return std::unexpected(
            std::move(tensor.error()).At("%" + std::to_string(id) + " (" + value.name + ")"));
      tensors_.push_back(*tensor);
    }
    tensors_.insert(tensors_.end(), added_.list.begin(), added_.list.end());
    return std::move(tensors_);
  }

 private:
  Result<TensorOffset> One(ValueId id, const Value& value) {
    const std::optional<int> type = TensorTypeOf(value.type.dtype);
    if (!type)
      return Unsupported("element type " + std::string(Name(value.type.dtype)) + " is not in the format");
    std::vector<int32_t> shape;
    std::vector<int32_t> signature;
    FUSEBOX_TRY(Dims(value.type.shape, shape, signature));
    // An output's buffer is handed out, so no other tensor may read it.
    const uint32_t buffer = value.is_const() ? context_.buffers.Add(value.data, !outputs_.contains(id)) : 0;
    FUSEBOX_ASSIGN(const format::TensorT extra, Extra(value));
    const auto name = out_.CreateString(value.name);
    const auto dims = context_.dims.Add(out_, shape);
    const auto unknown = signature.empty() ? 0 : context_.dims.Add(out_, signature);
    const auto quant = WriteQuant(context_, value.quant.get(), extra, added_);
    std::vector<Offset<format::VariantSubType>> variants;
    for (const auto& variant : extra.variant_tensors)
      variants.push_back(format::VariantSubType::Pack(out_, variant.get()));
    const auto variant_list = variants.empty() ? 0 : out_.CreateVector(variants);
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

  Context& context_;
  flatbuffers::FlatBufferBuilder& out_;
  const Function& function_;
  const TensorNumbers& numbers_;
  std::set<ValueId> outputs_;
  std::vector<TensorOffset> tensors_;
  AddedTensors added_;
};

}  // namespace

Status ReadTensor(const File& file, const format::SubGraph& graph, const format::Tensor& tensor,
                  Value& value) {
  if (tensor.name() != nullptr) value.name = tensor.name()->str();
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
      const ValueId operand = node->operands[static_cast<size_t>(i)];
      const ValueId state = node->results[result++];
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
