// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "host/graph/npy.h"
#include "host/run/run.h"

namespace fusebox::run {
namespace {

// Separate number ranges distinguish tables from variables.
constexpr int64_t kFirstTable = int64_t{1} << 32;

Result<std::vector<std::string>> Unpack(const fbx_tensor& tensor) {
  return UnpackStrings(Buffer::Copy({static_cast<const std::byte*>(tensor.data), tensor.bytes}));
}

std::span<const int64_t> Numbers(const fbx_tensor& tensor) {
  return {static_cast<const int64_t*>(tensor.data), tensor.bytes / sizeof(int64_t)};
}

}  // namespace

Resources::Resources(const Module& module) : module_(module) {}

int64_t Resources::Handle(std::string_view container, std::string_view name) {
  const std::string key = fmt::format("{}/{}", container, name);
  if (const auto found = handles_.find(key); found != handles_.end()) return found->second;
  const auto handle = static_cast<int64_t>(slots_.size());
  slots_.push_back(std::make_unique<Slot>());
  slots_.back()->name = std::string(name);
  slots_.back()->tensor.head = FBX_HEAD(fbx_tensor);
  handles_.emplace(key, handle);
  Initialize(*slots_.back());
  return handle;
}

void Resources::Initialize(Slot& slot) {
  slot.assigned = false;
  for (const Variable& variable : module_.variables) {
    if (variable.name != slot.name || !variable.initial) continue;
    const TensorView view(variable.type, variable.initial.data(), variable.initial.size(), 0);
    slot.memory.Assign(slot.tensor, *view.abi());
    slot.assigned = true;
  }
}

Status Resources::Assign(int64_t handle, const fbx_tensor& value) {
  if (handle < 0 || static_cast<size_t>(handle) >= slots_.size())
    return Invalid("operand 0 is not the handle of a variable");
  Slot& slot = *slots_[static_cast<size_t>(handle)];
  slot.memory.Assign(slot.tensor, value);
  slot.assigned = true;
  return {};
}

Result<const fbx_tensor*> Resources::Read(int64_t handle) const {
  if (handle < 0 || static_cast<size_t>(handle) >= slots_.size())
    return Invalid("operand 0 is not the handle of a variable");
  const Slot& slot = *slots_[static_cast<size_t>(handle)];
  if (!slot.assigned)
    return Invalid(fmt::format("variable {} is read before anything was assigned to it", slot.name));
  return &slot.tensor;
}

void Resources::Reset() {
  for (const auto& slot : slots_) Initialize(*slot);
  for (Table& table : tables_) {
    table.numbers.clear();
    table.strings.clear();
    table.imported = false;
  }
}

int64_t Resources::TableHandle(int64_t table_id, DType key, DType value) {
  for (size_t i = 0; i < tables_.size(); ++i) {
    if (tables_[i].id == table_id) return kFirstTable + static_cast<int64_t>(i);
  }
  tables_.push_back({.id = table_id, .key = key, .value = value, .imported = false});
  return kFirstTable + static_cast<int64_t>(tables_.size()) - 1;
}

Status Resources::Import(int64_t handle, const fbx_tensor& keys, const fbx_tensor& values) {
  if (handle < kFirstTable || handle - kFirstTable >= static_cast<int64_t>(tables_.size()))
    return Invalid("operand 0 is not a hash table");
  Table& table = tables_[static_cast<size_t>(handle - kFirstTable)];
  const bool by_string = table.key == DType::kString;
  if (by_string == (table.value == DType::kString))
    return Unsupported("hash tables map i64 to string or string to i64");
  if (static_cast<DType>(keys.dtype) != table.key || static_cast<DType>(values.dtype) != table.value) {
    return Invalid("keys or values are not of the table's types");
  }
  if (table.imported) return {};
  FUSEBOX_ASSIGN(const auto strings, Unpack(by_string ? keys : values));
  const auto numbers = Numbers(by_string ? values : keys);
  if (strings.size() != numbers.size())
    return Invalid(fmt::format("{} strings for {} numbers", strings.size(), numbers.size()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (by_string) {
      table.numbers.emplace(strings[i], numbers[i]);
    } else {
      table.strings.emplace(numbers[i], strings[i]);
    }
  }
  table.imported = true;
  return {};
}

Status Resources::Lookup(int64_t handle, const fbx_tensor& keys, const fbx_tensor& otherwise,
                         std::string& packed) const {
  if (handle < kFirstTable || handle - kFirstTable >= static_cast<int64_t>(tables_.size()))
    return Invalid("operand 0 is not a hash table");
  const Table& table = tables_[static_cast<size_t>(handle - kFirstTable)];
  if (static_cast<DType>(keys.dtype) != table.key || static_cast<DType>(otherwise.dtype) != table.value) {
    return Invalid("keys or default are not of the table's types");
  }
  if (table.key == DType::kString) {
    if (otherwise.bytes < sizeof(int64_t)) return Invalid("the default is empty");
    FUSEBOX_ASSIGN(const auto names, Unpack(keys));
    for (const std::string& name : names) {
      const auto found = table.numbers.find(name);
      const int64_t value = found != table.numbers.end() ? found->second : Numbers(otherwise)[0];
      packed.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
    return {};
  }
  FUSEBOX_ASSIGN(const auto defaults, Unpack(otherwise));
  if (defaults.size() != 1) return Invalid("the default is not one string");
  std::vector<std::string> values;
  for (const int64_t key : Numbers(keys)) {
    const auto found = table.strings.find(key);
    values.push_back(found != table.strings.end() ? found->second : defaults[0]);
  }
  const Buffer buffer = PackStrings(values);
  packed.assign(reinterpret_cast<const char*>(buffer.data()), buffer.size());
  return {};
}

Result<int64_t> Resources::TableSize(int64_t handle) const {
  if (handle < kFirstTable || handle - kFirstTable >= static_cast<int64_t>(tables_.size()))
    return Invalid("operand 0 is not a hash table");
  const Table& table = tables_[static_cast<size_t>(handle - kFirstTable)];
  return static_cast<int64_t>(table.numbers.size() + table.strings.size());
}

}  // namespace fusebox::run
