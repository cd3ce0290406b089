// SPDX-License-Identifier: Apache-2.0
// <fusebox/c_file.h>: a module before fusion.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "fusebox/c_file.h"
#include "host/c/handles.h"
#include "host/c/options.h"
#include "host/c/tensor.h"
#include "host/import.h"
#include "host/source.h"

using namespace fusebox;

struct fusebox_file {
  struct FileFunction {
    const Function* function = nullptr;
    const Signature* signature = nullptr;
    std::vector<const char*> input_names, output_names;
  };
  Buffer bytes;
  std::unique_ptr<const Module> module;
  std::vector<FileFunction> signatures;
  FileFunction main;
  std::vector<std::tuple<int32_t, std::string, int32_t>> ops;  // code, name, version

  void Show();
  const FileFunction* Find(std::string_view key) const;
  bool HasFlexOps() const;
};

namespace {

using FileFunction = fusebox_file::FileFunction;

std::vector<const char*> TextsOf(const std::vector<std::string>& names) {
  std::vector<const char*> texts;
  for (const std::string& name : names) texts.push_back(name.c_str());
  return texts;
}

}  // namespace

void fusebox_file::Show() {
  main.function = module->functions[0].get();
  for (const Signature& signature : module->signatures)
    signatures.push_back({module->Find(signature.function), &signature, TextsOf(signature.input_names),
                          TextsOf(signature.output_names)});
  for (const auto& function : module->functions) {
    for (const auto& node : function->nodes) {
      const bool custom = node->is(Op::kCustom);
      ops.emplace_back(Info(node->op).code, custom ? node->name : std::string(Name(node->op)), node->version);
    }
  }
  std::ranges::sort(ops);
  ops.erase(std::ranges::unique(ops).begin(), ops.end());
}

bool fusebox_file::HasFlexOps() const {
  return std::ranges::any_of(ops, [](const auto& op) { return std::get<1>(op).starts_with(kFlex); });
}

const fusebox_file::FileFunction* fusebox_file::Find(std::string_view key) const {
  const auto has = [&](const FileFunction& f) {
    return key.empty() ? f.function == main.function : f.signature->key == key;
  };
  if (key.empty() && signatures.size() == 1) return &signatures[0];
  const auto found = std::ranges::find_if(signatures, has);
  if (found != signatures.end()) return &*found;
  return key.empty() ? &main : nullptr;
}

namespace {

Status Open(Buffer bytes, const std::string& name, fusebox_file** out) {
  auto file = std::make_unique<fusebox_file>();
  FUSEBOX_ASSIGN(file->module, ReadModule(bytes, name));
  file->bytes = std::move(bytes);
  file->Show();
  *out = file.release();
  return {};
}

Result<const fusebox_file::FileFunction*> FunctionOf(const fusebox_file& file, const char* key) {
  FUSEBOX_C_REQUIRE(key);
  const fusebox_file::FileFunction* found = file.Find(key);
  if (found == nullptr) return NotFound(fmt::format("{}: no signature '{}'", file.module->source, key));
  return found;
}

}  // namespace

fusebox_status fusebox_file_open(const char* path, fusebox_file** out, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(out);
    *out = nullptr;
    FUSEBOX_C_REQUIRE(path);
    FUSEBOX_ASSIGN(Buffer file, MapFile(path));
    return Open(std::move(file), path, out);
  });
}

fusebox_status fusebox_file_from_memory(const void* bytes, size_t size, void (*release)(void* user),
                                        void* user, fusebox_file** out, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    Buffer lent = c::Lent(bytes, bytes != nullptr ? size : 0, release, user);
    FUSEBOX_C_REQUIRE(out);
    *out = nullptr;
    FUSEBOX_C_REQUIRE(bytes);
    return Open(std::move(lent), "<memory>", out);
  });
}

void fusebox_file_free(fusebox_file* file) noexcept { delete file; }

fusebox_status fusebox_file_model(const fusebox_file* file, const char* options, fusebox_registry* registry,
                                  fusebox_model** out, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(out);
    *out = nullptr;
    FUSEBOX_C_REQUIRE(file);
    FUSEBOX_ASSIGN(ModelOptions parsed, c::OptionsOf(options, registry));
    parsed.name = file->module->source;
    const bool imports = parsed.import_ops == ImportOps::kAuto && file->HasFlexOps();
    FUSEBOX_ASSIGN(auto model, imports ? Model::FromMemory(file->bytes, parsed)
                                       : Model::FromModule(Clone(*file->module), parsed));
    *out = c::HandleOf(std::move(model));
    return {};
  });
}

int32_t fusebox_file_signature_count(const fusebox_file* file) noexcept {
  return file == nullptr ? -1 : static_cast<int32_t>(file->signatures.size());
}

const char* fusebox_file_signature(const fusebox_file* file, int32_t index) noexcept {
  if (file == nullptr || index < 0 || static_cast<size_t>(index) >= file->signatures.size()) return nullptr;
  return file->signatures[static_cast<size_t>(index)].signature->key.c_str();
}

fusebox_status fusebox_file_function(const fusebox_file* file, const char* key, fusebox_function* out,
                                     char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(file);
    FUSEBOX_C_REQUIRE(out);
    FUSEBOX_TRY(c::CheckSize(*out, "FUSEBOX_FUNCTION"));
    FUSEBOX_ASSIGN(const fusebox_file::FileFunction* found, FunctionOf(*file, key));
    const Function& function = *found->function;
    const bool named = found->signature != nullptr;
    *out = {.struct_size = out->struct_size,
            .tensor_count = function.value_count(),
            .name = function.name.c_str(),
            .signature = named ? found->signature->key.c_str() : "",
            .inputs = function.inputs.data(),
            .outputs = function.outputs.data(),
            .input_count = static_cast<int32_t>(function.inputs.size()),
            .output_count = static_cast<int32_t>(function.outputs.size()),
            .input_names = named ? found->input_names.data() : nullptr,
            .output_names = named ? found->output_names.data() : nullptr};
    return {};
  });
}

fusebox_status fusebox_file_tensor(const fusebox_file* file, const char* key, int32_t number,
                                   fusebox_tensor* out, uint32_t* flags, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(file);
    FUSEBOX_C_REQUIRE(out);
    FUSEBOX_TRY(c::CheckSize(*out, "FUSEBOX_TENSOR"));
    FUSEBOX_ASSIGN(const fusebox_file::FileFunction* found, FunctionOf(*file, key));
    const Function& function = *found->function;
    if (number < 0 || number >= function.value_count())
      return Invalid(fmt::format("{}: no tensor {}; there are {}", file->module->source, number,
                                 function.value_count()));
    const Value& value = function.value(number);
    c::Fill(*out, value.type, value.data.bytes(), value.name, value.quant.get());
    if (flags != nullptr)
      *flags = value.is_const() ? FBX_TENSOR_CONST : value.is_variable ? FBX_TENSOR_VARIABLE : 0;
    return {};
  });
}

int32_t fusebox_file_op_count(const fusebox_file* file) noexcept {
  return file == nullptr ? -1 : static_cast<int32_t>(file->ops.size());
}

fusebox_status fusebox_file_op(const fusebox_file* file, int32_t index, fusebox_opcode* out,
                               char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(file);
    FUSEBOX_C_REQUIRE(out);
    FUSEBOX_TRY(c::CheckSize(*out, "FUSEBOX_OPCODE"));
    if (index < 0 || static_cast<size_t>(index) >= file->ops.size())
      return Invalid(fmt::format("no op {}; there are {}", index, file->ops.size()));
    const auto& [code, name, version] = file->ops[static_cast<size_t>(index)];
    out->builtin_code = code;
    out->version = version;
    out->name = name.c_str();
    return {};
  });
}

fusebox_status fusebox_file_metadata(const fusebox_file* file, const char* name, const void** data,
                                     size_t* bytes, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(file);
    FUSEBOX_C_REQUIRE(name);
    FUSEBOX_C_REQUIRE(data);
    FUSEBOX_C_REQUIRE(bytes);
    const auto found = std::ranges::find(file->module->metadata, name, &Metadata::name);
    if (found == file->module->metadata.end())
      return NotFound(fmt::format("{}: no metadata '{}'", file->module->source, name));
    *data = found->data.data();
    *bytes = found->data.size();
    return {};
  });
}
