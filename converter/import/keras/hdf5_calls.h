// SPDX-License-Identifier: Apache-2.0
// What is asked of the HDF5 library about an object that is open, with limits on what a file may claim.
// Errors have no place: the caller knows it. The library keeps global state, so that whoever calls these
// holds the file's turn (hdf5.cc).
#pragma once

#include <hdf5.h>

#include <string>
#include <utility>
#include <vector>

#include "host/base/buffer.h"
#include "host/base/status.h"
#include "host/graph/types.h"

namespace fusebox::keras {

// An identifier of the library with the call that gives it back.
class Id {
 public:
  Id(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Id(Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Id& operator=(Id&&) = delete;
  ~Id() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }  // NOLINT(google-explicit-constructor)
  bool ok() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// The names of a group's members.
Result<std::vector<std::string>> Names(hid_t group);
// All strings of a text attribute. Fixed lengths may be padded with zeros.
Result<std::vector<std::string>> Strings(hid_t attribute);
// f32, f64, f16 (given as f32) or integers.
Result<Type> TypeOf(hid_t dataset);
// Row-major, of that type. Values that stand in `file` as they are needed are a part of it.
Result<Buffer> Values(hid_t dataset, const Type& type, const Buffer& file);

}  // namespace fusebox::keras
