// SPDX-License-Identifier: Apache-2.0
#include "doors/external_delegate/model_writer.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <stdexcept>

#include "doors/builtin_data/layouts.h"
#include "host/graph/ops.h"
#include "host/tflite/options.h"
#include "tflite_generated.h"

namespace fusebox::external_delegate {
namespace {

namespace format = ::tflite;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

constexpr size_t kAlignment = 64;
constexpr size_t kReadable = 16;  // bytes beyond a constant that kernels may read

size_t RoundUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::span<const int> Indices(const TfLiteIntArray* array) {
  if (array == nullptr) return {};
  return {array->data, static_cast<size_t>(array->size)};
}

template <class T>
T ReadAt(const void* base, size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(base) + offset, sizeof value);
  return value;
}

AttrValue ReadMember(const builtin_data::Member& member, const void* data) {
  using builtin_data::Kind;
  switch (member.kind) {
    case Kind::kBool: return ReadAt<bool>(data, member.offset);
    case Kind::kFloat: return static_cast<double>(ReadAt<float>(data, member.offset));
    case Kind::kLong: return ReadAt<int64_t>(data, member.offset);
    case Kind::kType: {
      const int type = builtin_data::ToFormatType(ReadAt<int>(data, member.offset));
      return type < 0 ? AttrValue() : AttrValue(int64_t{type});
    }
    case Kind::kPadding: return ReadAt<int>(data, member.offset) - builtin_data::kPaddingShift;
    case Kind::kDims: {
      const auto* values = reinterpret_cast<const int*>(static_cast<const std::byte*>(data) + member.offset);
      const int count =
          std::clamp(values[builtin_data::kMaxDims], 0, static_cast<int>(builtin_data::kMaxDims));
      return std::vector<int64_t>(values, values + count);
    }
    default: return int64_t{ReadAt<int>(data, member.offset)};
  }
}

// Keeps the parts of a file that is written twice: the first pass measures it, the second has the offsets of
// the constants, which follow the FlatBuffer.
class Writer {
 public:
  Writer(TfLiteContext* context, const Part& part) : context_(context), part_(part) { FindPorts(); }

  WrittenModel Run() {
    size_t constants_at = RoundUp(Build(kAlignment).GetSize());
    FlatBufferBuilder out = Build(constants_at);
    const size_t size = constants_at + constants_bytes_ + kReadable;
    auto* memory = static_cast<std::byte*>(::operator new(size, std::align_val_t{kAlignment}));
    written_.file = {memory, [](const std::byte* p) {
                       ::operator delete(const_cast<std::byte*>(p), std::align_val_t{kAlignment});
                     }};
    written_.size = size;
    std::memset(memory, 0, size);
    std::memcpy(memory, out.GetBufferPointer(), out.GetSize());
    for (const auto& [data, place] : constants_) {
      std::memcpy(memory + constants_at + place.offset, data, place.bytes);
    }
    return std::move(written_);
  }

 private:
  struct Place {
    size_t offset, bytes;
    uint32_t buffer;
  };

  const TfLiteTensor& tensor(int index) const { return context_->tensors[index]; }

  void FindPorts() {
    std::vector<int> states;
    for (const int index : part_.nodes) {
      TfLiteNode* node = nullptr;
      TfLiteRegistration* registration = nullptr;
      if (context_->GetNodeAndRegistration(context_, index, &node, &registration) != kTfLiteOk)
        throw std::runtime_error("node " + std::to_string(index) + " does not exist");
      nodes_.push_back({node, registration});
      const std::vector<int> updated = StatesOf(*node, *registration);
      states.insert(states.end(), updated.begin(), updated.end());
    }
    written_.outputs = part_.outputs;
    for (const int input : part_.inputs) {
      const bool state = std::ranges::find(states, input) != states.end();
      if (IsConstant(tensor(input)) || (tensor(input).is_variable && !state)) continue;
      written_.inputs.push_back(input);
      if (!state) continue;
      written_.outputs.push_back(input);
      ++written_.states;
    }
  }

  FlatBufferBuilder Build(size_t constants_at) {
    numbers_.clear();
    tensors_.clear();
    constants_.clear();
    constants_bytes_ = 0;
    FlatBufferBuilder out;
    buffers_.assign(1, format::CreateBuffer(out));
    constants_at_ = constants_at;
    std::vector<Offset<format::OperatorCode>> codes;
    std::vector<Offset<format::Operator>> operators;
    for (const auto& [node, registration] : nodes_) {
      codes.push_back(Code(out, *registration));
      operators.push_back(Operator(out, static_cast<uint32_t>(operators.size()), *node, *registration));
    }
    const auto inputs = Tensors(out, written_.inputs);
    const auto outputs = Tensors(out, written_.outputs);
    const auto graph = format::CreateSubGraph(out, out.CreateVector(tensors_), inputs, outputs,
                                              out.CreateVector(operators), out.CreateString("main"));
    const auto graphs = out.CreateVector(&graph, 1);
    const auto description = out.CreateString("part of a graph");
    out.Finish(
        format::CreateModel(out, 3, out.CreateVector(codes), graphs, description, out.CreateVector(buffers_)),
        format::ModelIdentifier());
    return out;
  }

  static Offset<format::OperatorCode> Code(FlatBufferBuilder& out, const TfLiteRegistration& registration) {
    const auto code = registration.builtin_code;
    const bool custom = code == format::BuiltinOperator_CUSTOM;
    const auto name = custom ? out.CreateString(registration.custom_name) : Offset<flatbuffers::String>();
    return format::CreateOperatorCode(out, static_cast<int8_t>(std::min(code, 127)), name,
                                      registration.version, static_cast<format::BuiltinOperator>(code));
  }

  Offset<format::Operator> Operator(FlatBufferBuilder& out, uint32_t code, const TfLiteNode& node,
                                    const TfLiteRegistration& registration) {
    const auto inputs = Tensors(out, Indices(node.inputs));
    const auto outputs = Tensors(out, Indices(node.outputs));
    const auto inner = Indices(node.intermediates);
    const auto intermediates = inner.empty() ? 0 : Tensors(out, inner);
    if (registration.builtin_code == format::BuiltinOperator_CUSTOM) {
      const auto size = static_cast<size_t>(std::max(node.custom_initial_data_size, 0));
      out.ForceVectorAlignment(size, 1, 16);
      const auto options = out.CreateVector(static_cast<const uint8_t*>(node.custom_initial_data), size);
      return format::CreateOperator(out, code, inputs, outputs, format::BuiltinOptions_NONE, 0, options,
                                    format::CustomOptionsFormat_FLEXBUFFERS, 0, intermediates);
    }
    const auto [tag, options] = Options(out, node, registration);
    if (tag.where == tflite::OptionUnion::kFirst)
      return format::CreateOperator(out, code, inputs, outputs, static_cast<format::BuiltinOptions>(tag.tag),
                                    options, 0, format::CustomOptionsFormat_FLEXBUFFERS, 0, intermediates);
    return format::CreateOperator(out, code, inputs, outputs, format::BuiltinOptions_NONE, 0, 0,
                                  format::CustomOptionsFormat_FLEXBUFFERS, 0, intermediates, 0, 0,
                                  static_cast<format::BuiltinOptions2>(tag.tag), options);
  }

  static std::pair<tflite::OptionTag, Offset<void>> Options(FlatBufferBuilder& out, const TfLiteNode& node,
                                                            const TfLiteRegistration& registration) {
    const std::string op = OpName(registration);
    const builtin_data::Layout* layout = builtin_data::Find(op);
    if (layout == nullptr) throw std::runtime_error("the options of " + op + " cannot be read");
    if (layout->max_version > 0 && registration.version > layout->max_version)
      throw std::runtime_error(op + " of version " + std::to_string(registration.version) + " is too new");
    const tflite::OptionTable* table = tflite::TableOf(*FindOp(registration.builtin_code));
    if (table == nullptr || (node.builtin_data == nullptr && !layout->members.empty()))
      return {{tflite::OptionUnion::kFirst, 0}, 0};
    Attrs attrs;
    for (const auto& member : layout->members) {
      AttrValue value = ReadMember(member, node.builtin_data);
      // A list without elements means that an operand has them.
      const auto* list = std::get_if<std::vector<int64_t>>(&value);
      if (list != nullptr && list->empty() && node.inputs->size > 1)
        return {{tflite::OptionUnion::kFirst, 0}, 0};
      if (!std::holds_alternative<std::monostate>(value))
        attrs.Set(std::string(member.option), std::move(value));
    }
    const auto written =
        tflite::WriteOptionTable(out, *table, attrs, [](std::string_view) { return std::nullopt; });
    if (!written) throw std::runtime_error(op + ": " + written.error().message);
    return {table->tag, *written};
  }

  Offset<flatbuffers::Vector<int32_t>> Tensors(FlatBufferBuilder& out, std::span<const int> indices) {
    std::vector<int32_t> numbers;
    for (const int index : indices) numbers.push_back(index < 0 ? -1 : Number(out, index));
    return out.CreateVector(numbers);
  }

  int32_t Number(FlatBufferBuilder& out, int index) {
    const auto [at, added] = numbers_.emplace(index, static_cast<int32_t>(tensors_.size()));
    if (!added) return at->second;
    const TfLiteTensor& tensor = this->tensor(index);
    CheckTensor(tensor);
    const auto name = out.CreateString(tensor.name != nullptr ? tensor.name : "");
    const auto shape = out.CreateVector(tensor.dims->data, static_cast<size_t>(tensor.dims->size));
    const auto* signature = tensor.dims_signature;
    const bool open = signature != nullptr && signature->size == tensor.dims->size && signature->size > 0;
    const auto dims = open ? out.CreateVector(signature->data, static_cast<size_t>(signature->size)) : 0;
    const auto quantization = Quantization(out, tensor);
    const uint32_t buffer = IsConstant(tensor) ? Constant(out, tensor) : 0;
    tensors_.push_back(format::CreateTensor(
        out, shape, static_cast<format::TensorType>(builtin_data::ToFormatType(tensor.type)), buffer, name,
        quantization, tensor.is_variable, 0, dims));
    return at->second;
  }

  uint32_t Constant(FlatBufferBuilder& out, const TfLiteTensor& tensor) {
    const auto [at, added] = constants_.emplace(
        tensor.data.raw_const, Place{constants_bytes_, tensor.bytes, static_cast<uint32_t>(buffers_.size())});
    if (!added && at->second.bytes == tensor.bytes) return at->second.buffer;
    if (!added) throw std::runtime_error("constants overlap");
    buffers_.push_back(format::CreateBuffer(out, 0, constants_at_ + constants_bytes_, tensor.bytes));
    constants_bytes_ += RoundUp(tensor.bytes);
    return at->second.buffer;
  }

  static Offset<format::QuantizationParameters> Quantization(FlatBufferBuilder& out,
                                                             const TfLiteTensor& tensor) {
    if (tensor.quantization.type != kTfLiteAffineQuantization) return {};
    const auto& affine = *static_cast<const TfLiteAffineQuantization*>(tensor.quantization.params);
    if (affine.scale == nullptr || affine.scale->size == 0) return {};
    const auto scales = out.CreateVector(affine.scale->data, static_cast<size_t>(affine.scale->size));
    std::vector<int64_t> zero_points(static_cast<size_t>(affine.scale->size));
    for (size_t i = 0; affine.zero_point != nullptr && affine.zero_point->size > 0 && i < zero_points.size();
         ++i) {
      zero_points[i] = affine.zero_point->data[std::min(static_cast<int>(i), affine.zero_point->size - 1)];
    }
    return format::CreateQuantizationParameters(out, 0, 0, scales, out.CreateVector(zero_points),
                                                format::QuantizationDetails_NONE, 0,
                                                affine.quantized_dimension);
  }

  TfLiteContext* context_;
  const Part& part_;
  std::vector<std::pair<TfLiteNode*, TfLiteRegistration*>> nodes_;
  WrittenModel written_;
  std::map<int, int32_t> numbers_;
  std::vector<Offset<format::Tensor>> tensors_;
  std::vector<Offset<format::Buffer>> buffers_;
  std::map<const char*, Place> constants_;
  size_t constants_at_ = 0;
  size_t constants_bytes_ = 0;
};

}  // namespace

WrittenModel WriteModel(TfLiteContext* context, const Part& part) { return Writer(context, part).Run(); }

bool IsConstant(const TfLiteTensor& tensor) {
  return tensor.allocation_type == kTfLiteMmapRo && tensor.data.raw != nullptr && tensor.bytes > 0;
}

std::string OpName(const TfLiteRegistration& registration) {
  if (registration.builtin_code == format::BuiltinOperator_CUSTOM)
    return registration.custom_name != nullptr ? registration.custom_name : "";
  const std::optional<Op> op = FindOp(registration.builtin_code);
  return op ? std::string(Name(*op)) : std::string();
}

bool IsRecurrent(const TfLiteRegistration& registration) {
  const std::optional<Op> op = FindOp(registration.builtin_code);
  return op && !StateOperands(*op).empty();
}

std::vector<int> StatesOf(const TfLiteNode& node, const TfLiteRegistration& registration) {
  std::vector<int> out;
  const std::optional<Op> op = FindOp(registration.builtin_code);
  if (!op) return out;
  for (const int operand : StateOperands(*op)) {
    if (operand < node.inputs->size && node.inputs->data[operand] >= 0)
      out.push_back(node.inputs->data[operand]);
  }
  return out;
}

void CheckTensor(const TfLiteTensor& tensor) {
  const std::string name = tensor.name != nullptr ? tensor.name : "";
  const auto refuse = [&](const char* why) { throw std::runtime_error("tensor '" + name + "' " + why); };
  const int type = builtin_data::ToFormatType(tensor.type);
  if (type < 0 || type == format::TensorType_STRING || type == format::TensorType_RESOURCE ||
      type == format::TensorType_VARIANT)
    refuse("holds strings, a resource or elements of an unknown type");
  if (tensor.sparsity != nullptr) refuse("is sparse");
  if (tensor.dims == nullptr) refuse("has no dims");
  if (tensor.quantization.type != kTfLiteNoQuantization &&
      tensor.quantization.type != kTfLiteAffineQuantization)
    refuse("has a kind of quantization that is not known");
}

}  // namespace fusebox::external_delegate
