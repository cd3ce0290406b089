// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

#include "host/tflite/file.h"

namespace fusebox::tflite {
namespace {

bool StatesRank(const format::Model& model) {
  for (const format::SubGraph* graph : *model.subgraphs()) {
    if (graph->tensors() == nullptr) continue;
    for (const format::Tensor* tensor : *graph->tensors()) {
      if (tensor->has_rank()) return true;
    }
  }
  return false;
}

Status ReadMetadata(const File& file, Module& module) {
  for (size_t i = 0; i < SizeOf(file.model.metadata()); ++i) {
    const format::Metadata& source = *file.model.metadata()->Get(static_cast<unsigned>(i));
    Metadata& metadata = module.metadata.emplace_back();
    metadata.name = TextOf(source.name());
    FUSEBOX_ASSIGN(metadata.data, ReadBuffer(file, source.buffer()).At("metadata " + metadata.name));
  }
  return {};
}

std::set<ValueId> ReadBySomebody(const Function& function) {
  std::set<ValueId> read(function.outputs.begin(), function.outputs.end());
  for (const auto& node : function.nodes) read.insert(node->operands.begin(), node->operands.end());
  return read;
}

// A composite's body that reads none of its inputs only declares types.
void MarkPlaceholders(Module& module) {
  for (const auto& function : module.functions) {
    for (const auto& node : function->nodes) {
      Function* body =
          node->is(Op::kStablehloComposite) && !node->body.empty() ? module.Find(node->body) : nullptr;
      if (body == nullptr || body->inputs.empty()) continue;
      const std::set<ValueId> read = ReadBySomebody(*body);
      body->placeholder = std::ranges::none_of(body->inputs, [&](ValueId id) { return read.contains(id); });
    }
  }
}

void ListVariables(Module& module) {
  for (const auto& function : module.functions) {
    if (std::ranges::none_of(function->nodes, [](const auto& node) { return node->is(Op::kVarHandle); }))
      continue;
    const Uses uses(*function);
    for (const auto& node : function->nodes) {
      if (!node->is(Op::kVarHandle) || node->results.empty()) continue;
      const std::string name = node->attrs.str("shared_name", "");
      Variable* variable = module.FindVariable(name);
      if (variable == nullptr) {
        variable = &module.variables.emplace_back();
        variable->name = name;
        variable->container = node->attrs.str("container", "");
      }
      for (const Uses::Reader& reader : uses.readers(node->results[0])) {
        if (reader.node == nullptr || reader.index != 0) continue;
        const bool assigns = reader.node->is(Op::kAssignVariable) && reader.node->operands[1] != kNoValue;
        if (assigns) variable->type = function->value(reader.node->operands[1]).type;
      }
    }
  }
}

// Where the last bytes begin that no constant holds: what is appended to the file lies there.
size_t EndOfConstants(const File& file) {
  const std::byte* end = file.bytes.data();
  for (size_t i = 0; i < SizeOf(file.model.buffers()); ++i) {
    const auto* data = file.model.buffers()->Get(static_cast<unsigned>(i))->data();
    if (data != nullptr) end = std::max(end, reinterpret_cast<const std::byte*>(data->data()) + data->size());
  }
  return static_cast<size_t>(end - file.bytes.data());
}

Status ReadModel(const Buffer& bytes, Module& module) {
  FUSEBOX_TRY(CheckFile(bytes));
  const format::Model& model = *format::GetModel(bytes.data());
  if (model.version() != 3)
    return Unsupported("format version " + std::to_string(model.version()) + ", expected 3");
  if (SizeOf(model.subgraphs()) == 0) return Invalid("there is no subgraph");
  const File file = {bytes, model, FunctionNames(model), StatesRank(model)};
  module.functions.reserve(file.function_names.size());
  for (const std::string& name : file.function_names)
    module.functions.push_back(std::make_unique<Function>(name));
  for (size_t i = 0; i < module.functions.size(); ++i) {
    Status status =
        ReadFunction(file, *model.subgraphs()->Get(static_cast<unsigned>(i)), *module.functions[i]);
    if (!status) return std::move(status).At("subgraph " + std::to_string(i));
  }
  FUSEBOX_TRY(ReadSignatures(file, module));
  FUSEBOX_TRY(ReadMetadata(file, module));
  module.description = TextOf(model.description());
  module.appended = ReadAppendedZip(bytes, EndOfConstants(file));
  // Before anything that relies on it: from here on the graph is as sound as one that was built.
  FUSEBOX_TRY(Verify(module, Strictness::kLoose));
  MarkPlaceholders(module);
  ListVariables(module);
  return {};
}

constexpr size_t kDataAlignment = 16;
// A FlatBuffer addresses less than 2 GiB; beyond this, buffers lie behind it, with offsets of 64 bits.
constexpr uint64_t kMaxInside = (uint64_t{1} << 31) - (uint64_t{1} << 20);

uint64_t AlignUp(uint64_t at, uint64_t to) { return (at + to - 1) / to * to; }

using Sink = std::function<Status(std::span<const std::byte>)>;

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
    std::vector<Offset<format::SubGraph>> graphs;
    for (const WrittenFunction& function : functions) graphs.push_back(function.offset);
    const auto signatures = WriteSignatures(context, functions);
    std::vector<Offset<format::Metadata>> metadata;
    for (const Metadata& entry : module_.metadata) {
      metadata.push_back(
          format::CreateMetadata(out_, out_.CreateString(entry.name), buffers_.Add(entry.data, true)));
    }
    std::vector<Offset<format::OperatorCode>> codes;
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

  ListOffset<Offset<format::Buffer>> WriteBuffers() {
    uint64_t total = out_.GetSize();
    for (const Buffer& buffer : buffers_.buffers()) total += buffer.size() + 64;
    inside_ = total < kMaxInside;
    std::vector<Offset<format::Buffer>> list = {format::CreateBuffer(out_)};
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

Result<std::unique_ptr<Module>> Read(Buffer file, const std::string& name) {
  // Scalars of a FlatBuffer are aligned as far as its start is.
  if (reinterpret_cast<uintptr_t>(file.data()) % 8 != 0) file = Buffer::Copy(file.bytes());
  auto module = std::make_unique<Module>();
  module->source = name;
  Status status = ReadModel(file, *module);
  if (!status) return std::unexpected(std::move(status.error()).At(name));
  return module;
}

Result<std::unique_ptr<Module>> ReadFile(const std::string& path) {
  FUSEBOX_ASSIGN(Buffer file, MapFile(path));
  return Read(std::move(file), path);
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
  std::string out;
  const auto allocate = [&](size_t size) {
    out.resize(size);
    return reinterpret_cast<std::byte*>(out.data());
  };
  FUSEBOX_TRY(WriteInto(module, allocate, options));
  return out;
}

Status WriteInto(const Module& module, const std::function<std::byte*(size_t)>& allocate,
                 const WriteOptions& options) {
  FUSEBOX_TRY(Verify(module, Strictness::kWritable));
  FileWriter writer(module, options);
  FUSEBOX_TRY(writer.Build());
  std::byte* next = allocate(writer.size());
  if (next == nullptr) return Fail(Code::kOutOfMemory, "no memory for the file");
  return writer.Emit([&](std::span<const std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(next, bytes.data(), bytes.size());
    next += bytes.size();
    return Status();
  });
}

}  // namespace fusebox::tflite
