// SPDX-License-Identifier: Apache-2.0
// Calls of the HDF5 library on open objects, with limits on sizes that a file declares. Errors have no place;
// the caller adds it. The caller holds the lock of hdf5.cc, because the library has global state.
#pragma once

#include <hdf5.h>

#include <string>
#include <utility>
#include <vector>

#include "host/base/buffer.h"
#include "host/base/status.h"
#include "host/graph/types.h"

namespace fusebox::keras {

// Owns an HDF5 identifier; `close` releases it.
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
// All strings of a text attribute. Fixed-length strings may be zero-padded.
Result<std::vector<std::string>> Strings(hid_t attribute);
// f32, f64, f16 (reported as f32), bf16 or integers.
Result<Type> TypeOf(hid_t dataset);
// Row-major, of that type. Values stored in `file` in a usable form are not copied: the result refers to
// `file`.
Result<Buffer> Values(hid_t dataset, const Type& type, const Buffer& file);

}  // namespace fusebox::keras
