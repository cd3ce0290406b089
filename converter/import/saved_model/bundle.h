// SPDX-License-Identifier: Apache-2.0
// Bundle: the tensors of a SavedModel's variables/ folder (TensorFlow's "tensor
// bundle").
//
// PREFIX.index is a sorted table from key to {dtype, shape, place};
// PREFIX.data-00000-of-0000N hold the bytes. Open reads the index and checks
// every record of it; a shard is mapped when a tensor in it is first read, and
// a tensor's checksum is checked at its first read. Nothing is copied that need
// not be: a read tensor is a span of the mapped shard. One thread at a time.
// Errors name the file, the key and the reason.
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
  std::vector<int64_t> shape;  // every dimension known
};

class Bundle {
 public:
  // prefix: DIR/variables/variables. Fails when the index is missing,
  // malformed, from a newer or a big-endian writer; not when a shard is
  // missing.
  static Result<Bundle> Open(const std::string& prefix);

  const std::string& index_path() const { return index_path_; }
  // All tensors by key, without the parts of partitioned ones.
  const std::map<std::string, BundleTensor, std::less<>>& tensors() const { return tensors_; }
  const BundleTensor* Find(std::string_view key) const;

  // The elements, row-major and little-endian, aligned to their size. Reading a
  // key again gives the same bytes at the same address. A partitioned tensor is
  // put together on the heap.
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
