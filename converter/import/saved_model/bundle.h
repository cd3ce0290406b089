// SPDX-License-Identifier: Apache-2.0
// Bundle: the tensors of a SavedModel's variables/ folder (TensorFlow's "tensor bundle").
//
// PREFIX.index is a sorted table from key to {dtype, shape, position}; the files PREFIX.data-00000-of-0000N
// hold the bytes. Open reads and checks every index record; a shard is mapped when it is first needed, and a
// tensor's checksum is verified at its first read. A tensor is a span of the mapped shard; it is copied only
// if it is misaligned or partitioned. Not thread-safe. Errors name the file, the key and the cause.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "converter/import/saved_model/checkpoint.pb.h"
#include "converter/import/saved_model/tensor_data.h"
#include "host/base/buffer.h"
#include "host/base/status.h"

namespace fusebox::saved_model {

struct BundleTensor {
  tf::DataType dtype = tf::DT_INVALID;
  std::vector<int64_t> shape;  // all dimensions known
};

class Bundle {
 public:
  // prefix: DIR/variables/variables. Errors: the index is missing, malformed, or written by a newer or a
  // big-endian writer; no shard can be read. Single missing shards are reported by Read.
  static Result<Bundle> Open(const std::string& prefix);

  const std::string& index_path() const { return index_path_; }
  // All tensors by key, without the slices of partitioned tensors.
  const std::map<std::string, BundleTensor, std::less<>>& tensors() const { return tensors_; }
  const BundleTensor* Find(std::string_view key) const;

  // The elements, row-major, little-endian, aligned to their size. Reading a key again returns the same bytes
  // at the same address. A partitioned tensor is assembled on the heap, and strings are packed (PackStrings).
  Result<Buffer> Read(std::string_view key) const;
  // The elements of a DT_STRING tensor.
  Result<std::vector<std::string>> ReadStrings(std::string_view key) const;

 private:
  explicit Bundle(const std::string& prefix) : prefix_(prefix), index_path_(prefix + ".index") {}
  Status AddRecord(std::string_view key, std::string_view value);
  Status CheckTensors();
  Status CheckShards() const;
  std::string ShardPath(int shard) const;
  Result<Buffer> Shard(int shard) const;
  Result<Buffer> Span(const tf::BundleEntry& entry) const;
  Result<Buffer> ReadWhole(const tf::BundleEntry& entry) const;
  Result<Buffer> ReadParts(std::string_view key, const tf::BundleEntry& entry) const;

  std::string prefix_, index_path_;
  bool has_header_ = false;
  int shard_count_ = 0;
  std::map<std::string, tf::BundleEntry, std::less<>> entries_;
  std::map<std::string, BundleTensor, std::less<>> tensors_;
  mutable std::map<int, Buffer> shards_;
  mutable std::map<std::string, Buffer, std::less<>> read_;
};

}  // namespace fusebox::saved_model
