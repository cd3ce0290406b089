// SPDX-License-Identifier: Apache-2.0
// Resources: the variables and hash tables of a session. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "host/plan/plan.h"

namespace fusebox::run {

// Resource variables and hash tables of a session. Handles are small numbers, equal for equal names.
class Resources {
 public:
  explicit Resources(const Module& module);
  int64_t Handle(std::string_view container, std::string_view name);
  Status Assign(int64_t handle, const fbx_tensor& value);
  Result<const fbx_tensor*> Read(int64_t handle) const;  // valid until the next Assign
  void Reset();                                          // to the initial values of the module

  int64_t TableHandle(int64_t table_id, DType key, DType value);
  Status Import(int64_t handle, const fbx_tensor& keys, const fbx_tensor& values);
  // results[i] = the value of keys[i], or the default. `packed` receives the packed strings, or the numbers
  // as i64.
  Status Lookup(int64_t handle, const fbx_tensor& keys, const fbx_tensor& otherwise,
                std::string& packed) const;
  Result<int64_t> TableSize(int64_t handle) const;

 private:
  struct Slot {
    std::string name;
    fbx_tensor tensor{};
    Growable memory;
    bool assigned = false;
  };
  struct Table {
    int64_t id;
    DType key, value;
    bool imported = false;
    std::unordered_map<std::string, int64_t> numbers;
    std::unordered_map<int64_t, std::string> strings;
  };
  void Initialize(Slot& slot);
  const Module& module_;
  std::map<std::string, int64_t, std::less<>> handles_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Table> tables_;
};

}  // namespace fusebox::run
