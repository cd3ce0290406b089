// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

#include "host/tflite/writer.h"

namespace fusebox::tflite {
namespace {

constexpr size_t kDataAlignment = 16;
// A FlatBuffer addresses less than 2 GiB; beyond this, buffers lie behind it, with offsets of 64 bits.
constexpr uint64_t kMaxInside = (uint64_t{1} << 31) - (uint64_t{1} << 20);

uint64_t AlignUp(uint64_t at, uint64_t to) { return (at + to - 1) / to * to; }

using Sink = std::function<Status(std::span<const std::byte>)>;

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<format::TensorMap>>> WriteMap(
    flatbuffers::FlatBufferBuilder& out, const std::vector<std::string>& names,
    const std::vector<int32_t>& tensors) {
  std::vector<std::pair<std::string, int32_t>> sorted;
  for (size_t i = 0; i < names.size(); ++i) sorted.emplace_back(names[i], tensors[i]);
  // A tensor that has several names has them in the order in which the function gives it.
  const bool distinct = std::set(tensors.begin(), tensors.end()).size() == tensors.size();
  if (distinct) std::ranges::sort(sorted);
  std::vector<flatbuffers::Offset<format::TensorMap>> maps;
  for (const auto& [name, tensor] : sorted) {
    maps.push_back(format::CreateTensorMap(out, out.CreateString(name), static_cast<uint32_t>(tensor)));
  }
  return out.CreateVector(maps);
}

// The head of the file, and what has to follow it.
class FileWriter {
 public:
  FileWriter(const Module& module, const WriteOptions& options)
      : module_(module), buffers_(options.deduplicate) {}

  Status Build() {
    Context context{module_, out_, buffers_};
    for (const auto& function : module_.functions) {
      context.function_numbers.emplace(function->name, static_cast<int>(context.function_numbers.size()));
    }
    std::vector<WrittenFunction> functions;
    for (const auto& function : module_.functions) {
      FUSEBOX_ASSIGN(functions.emplace_back(),
                     WriteFunction(context, *function).At("function " + function->name));
    }
    Finish(context, functions);
    return Place();
  }

  uint64_t size() const { return size_; }

  Status Emit(const Sink& sink) const {
    FUSEBOX_TRY(sink(std::as_bytes(std::span(head_))));
    uint64_t at = head_.size();
    static constexpr std::byte kZeros[2 * kDataAlignment] = {};
    for (size_t i = 1; i < buffers_.buffers().size(); ++i) {
      const Buffer& buffer = buffers_.buffers()[i];
      const uint64_t pad = places_[i] - at - (inside_ ? 4 : 0);
      FUSEBOX_TRY(sink(std::span(kZeros, pad)));
      if (inside_) {
        const auto length = static_cast<uint32_t>(buffer.size());
        FUSEBOX_TRY(sink(std::as_bytes(std::span(&length, 1))));
      }
      FUSEBOX_TRY(sink(buffer.bytes()));
      buffer.Release();
      at = places_[i] + buffer.size();
    }
    // Vectors end at a multiple of four, and readers of the last one may look a little beyond its end.
    FUSEBOX_TRY(sink(std::span(kZeros, AlignUp(at, kDataAlignment) - at + kDataAlignment)));
    return sink(module_.appended.bytes());
  }

 private:
  void Finish(Context& context, const std::vector<WrittenFunction>& functions) {
    std::vector<flatbuffers::Offset<format::SubGraph>> graphs;
    for (const WrittenFunction& function : functions) graphs.push_back(function.offset);
    std::vector<flatbuffers::Offset<format::SignatureDef>> signatures;
    for (const Signature& signature : module_.signatures) {
      const int number = context.function_numbers.find(signature.function)->second;
      const WrittenFunction& function = functions[static_cast<size_t>(number)];
      const auto inputs = WriteMap(out_, signature.input_names, function.inputs);
      const auto outputs = WriteMap(out_, signature.output_names, function.outputs);
      const auto key = out_.CreateString(signature.key);
      signatures.push_back(
          format::CreateSignatureDef(out_, inputs, outputs, key, static_cast<uint32_t>(number)));
    }
    std::vector<flatbuffers::Offset<format::Metadata>> metadata;
    for (const Metadata& entry : module_.metadata) {
      metadata.push_back(
          format::CreateMetadata(out_, out_.CreateString(entry.name), buffers_.Add(entry.data, true)));
    }
    std::vector<flatbuffers::Offset<format::OperatorCode>> codes;
    for (const auto& [code, name, version] : context.codes.list) {
      const auto custom = name.empty() ? 0 : out_.CreateString(name);
      codes.push_back(format::CreateOperatorCode(out_, static_cast<int8_t>(std::min(code, 127)), custom,
                                                 version, static_cast<format::BuiltinOperator>(code)));
    }
    const auto buffers = WriteBuffers();
    const auto code_list = out_.CreateVector(codes);
    const auto graph_list = out_.CreateVector(graphs);
    const auto description = out_.CreateString(module_.description);
    const auto metadata_list = metadata.empty() ? 0 : out_.CreateVector(metadata);
    const auto signature_list = signatures.empty() ? 0 : out_.CreateVector(signatures);
    format::FinishModelBuffer(out_, format::CreateModel(out_, 3, code_list, graph_list, description, buffers,
                                                        0, metadata_list, signature_list));
  }

  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<format::Buffer>>> WriteBuffers() {
    uint64_t total = out_.GetSize();
    for (const Buffer& buffer : buffers_.buffers()) total += buffer.size() + 64;
    inside_ = total < kMaxInside;
    std::vector<flatbuffers::Offset<format::Buffer>> list = {format::CreateBuffer(out_)};
    // Stands for the contents until Place() knows where they are.
    const auto placeholder = inside_ ? out_.CreateVector(std::vector<uint8_t>()) : 0;
    for (size_t i = 1; i < buffers_.buffers().size(); ++i) {
      list.push_back(inside_ ? format::CreateBuffer(out_, placeholder) : format::CreateBuffer(out_, 0, 2, 2));
    }
    return out_.CreateVector(list);
  }

  // Points the head at the contents behind it.
  Status Place() {
    if (out_.GetSize() >= kMaxInside) return Unsupported("its tables alone take more than 2 GiB");
    head_.assign(out_.GetBufferPointer(), out_.GetBufferPointer() + out_.GetSize());
    const auto& list = *format::GetModel(head_.data())->buffers();
    uint64_t at = head_.size();
    places_.resize(buffers_.buffers().size());
    for (size_t i = 1; i < places_.size(); ++i) {
      places_[i] = AlignUp(at + 4, kDataAlignment);
      const size_t size = buffers_.buffers()[i].size();
      at = places_[i] + size;
      const flatbuffers::Table& table =
          *reinterpret_cast<const flatbuffers::Table*>(list.Get(static_cast<unsigned>(i)));
      if (inside_) {
        // The vector begins with its length; a reference is the distance from itself.
        const uint64_t field = FieldAt(table, format::Buffer::VT_DATA);
        Patch(field, static_cast<uint32_t>(places_[i] - 4 - field));
      } else {
        Patch(FieldAt(table, format::Buffer::VT_OFFSET), places_[i]);
        Patch(FieldAt(table, format::Buffer::VT_SIZE), uint64_t{size});
      }
    }
    size_ = AlignUp(at, kDataAlignment) + kDataAlignment + module_.appended.size();
    return {};
  }

  uint64_t FieldAt(const flatbuffers::Table& table, flatbuffers::voffset_t field) const {
    return static_cast<uint64_t>(table.GetAddressOf(field) - head_.data());
  }
  template <class T>
  void Patch(uint64_t at, T value) {
    std::memcpy(head_.data() + at, &value, sizeof value);
  }

  const Module& module_;
  BufferTable buffers_;
  flatbuffers::FlatBufferBuilder out_;
  std::vector<uint8_t> head_;
  std::vector<uint64_t> places_;  // by buffer: where its contents begin in the file
  bool inside_ = true;
  uint64_t size_ = 0;
};

}  // namespace

uint32_t BufferTable::Add(const Buffer& buffer, bool shared) {
  const auto number = static_cast<uint32_t>(buffers_.size());
  if (!shared || !deduplicate_) {
    buffers_.push_back(buffer);
    return number;
  }
  const auto [known, added] =
      by_address_.emplace(std::pair(static_cast<const void*>(buffer.data()), buffer.size()), number);
  if (!added) return known->second;
  // Only buffers of equal size are looked into: weights that are written once are not read twice.
  const auto [first, last] = by_size_.equal_range(buffer.size());
  for (auto candidate = first; candidate != last; ++candidate) {
    if (buffer.size() > 0 &&
        std::memcmp(buffers_[candidate->second].data(), buffer.data(), buffer.size()) != 0)
      continue;
    return known->second = candidate->second;
  }
  by_size_.emplace(buffer.size(), number);
  buffers_.push_back(buffer);
  return number;
}

Status WriteTo(const Module& module, AtomicFile& file, const WriteOptions& options) {
  FUSEBOX_TRY(Verify(module, Strictness::kWritable));
  FileWriter writer(module, options);
  FUSEBOX_TRY(writer.Build());
  return writer.Emit([&](std::span<const std::byte> bytes) { return file.Append(bytes); });
}

Status WriteFile(const Module& module, const std::string& path, const WriteOptions& options) {
  FUSEBOX_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  FUSEBOX_TRY(WriteTo(module, file, options));
  return file.Commit();
}

Result<std::string> Write(const Module& module, const WriteOptions& options) {
  FUSEBOX_TRY(Verify(module, Strictness::kWritable));
  FileWriter writer(module, options);
  FUSEBOX_TRY(writer.Build());
  std::string out;
  out.reserve(writer.size());
  FUSEBOX_TRY(writer.Emit([&](std::span<const std::byte> bytes) {
    out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return Status();
  }));
  return out;
}

}  // namespace fusebox::tflite
