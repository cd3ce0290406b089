// SPDX-License-Identifier: Apache-2.0
#include "host/c/handles.h"
#include "host/c/options.h"
#include "host/c/report.h"

using namespace fusebox;

Result<ModelOptions> c::OptionsOf(const char* json, fusebox_registry* registry) {
  FUSEBOX_ASSIGN(ModelOptions options, c::ParseModelOptions(json));
  if (registry != nullptr) options.registry = registry->registry;
  return options;
}

fusebox_model* c::HandleOf(std::shared_ptr<const Model> model) {
  auto handle = std::make_unique<fusebox_model>();
  for (const Model::Entry& entry : model->entries())
    handle->entries.push_back(
        {entry.signature, entry.status ? "" : entry.status.error().message, entry.status.has_value()});
  handle->model = std::move(model);
  return handle.release();
}

// The caller's memory: released when the last Buffer of it ends.
Buffer c::Lent(const void* bytes, size_t size, void (*release)(void* user), void* user) {
  const std::span<const std::byte> lent(static_cast<const std::byte*>(bytes), size);
  if (release == nullptr) return Buffer::Borrow(lent);
  return Buffer(std::shared_ptr<const void>(bytes, [release, user](const void*) { release(user); }), lent);
}

namespace {

Status FromBuffer(Buffer bytes, const char* options, fusebox_registry* registry, fusebox_model** out) {
  FUSEBOX_ASSIGN(const ModelOptions parsed, c::OptionsOf(options, registry));
  FUSEBOX_ASSIGN(auto model, Model::FromMemory(std::move(bytes), parsed));
  *out = c::HandleOf(std::move(model));
  return {};
}

}  // namespace

fusebox_status fusebox_model_open(const char* path, const char* options, fusebox_registry* registry,
                                  fusebox_model** out, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(out);
    *out = nullptr;
    FUSEBOX_C_REQUIRE(path);
    FUSEBOX_ASSIGN(const ModelOptions parsed, c::OptionsOf(options, registry));
    FUSEBOX_ASSIGN(auto model, Model::Open(path, parsed));
    *out = c::HandleOf(std::move(model));
    return {};
  });
}

fusebox_status fusebox_model_from_memory(const void* bytes, size_t size, void (*release)(void* user),
                                         void* user, const char* options, fusebox_registry* registry,
                                         fusebox_model** out, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    Buffer lent = c::Lent(bytes, bytes != nullptr ? size : 0, release, user);
    FUSEBOX_C_REQUIRE(out);
    *out = nullptr;
    FUSEBOX_C_REQUIRE(bytes);
    return FromBuffer(std::move(lent), options, registry, out);
  });
}

fusebox_status fusebox_model_from_copy(const void* bytes, size_t size, const char* options,
                                       fusebox_registry* registry, fusebox_model** out,
                                       char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(out);
    *out = nullptr;
    FUSEBOX_C_REQUIRE(bytes);
    return FromBuffer(Buffer::Copy({static_cast<const std::byte*>(bytes), size}), options, registry, out);
  });
}

void fusebox_model_free(fusebox_model* model) noexcept { delete model; }

int32_t fusebox_model_signature_count(const fusebox_model* model) noexcept {
  return model == nullptr ? -1 : static_cast<int32_t>(model->entries.size());
}

const char* fusebox_model_signature(const fusebox_model* model, int32_t index, const char** why) noexcept {
  if (why != nullptr) *why = nullptr;
  if (model == nullptr || index < 0 || static_cast<size_t>(index) >= model->entries.size()) return nullptr;
  const fusebox_model::Entry& entry = model->entries[static_cast<size_t>(index)];
  if (why != nullptr && !entry.can_run) *why = entry.why.c_str();
  return entry.key.c_str();
}

fusebox_status fusebox_model_report(const fusebox_model* model, char** json, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(json);
    *json = nullptr;
    FUSEBOX_C_REQUIRE(model);
    return c::Return(c::ReportOf(*model->model), json);
  });
}
