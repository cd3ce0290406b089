// SPDX-License-Identifier: Apache-2.0
#include "models/saved_model/bundle_writer.h"

#include <leveldb/options.h>
#include <leveldb/table_builder.h>

#include <leveldb/env.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "converter/import/saved_model/crc32c.h"
#include "converter/import/saved_model/slice_key.h"
#include "converter/import/saved_model/tensor_data.h"
#include "host/base/buffer.h"

namespace fusebox::models {
namespace {

std::span<const std::byte> BytesOf(const std::string& text) { return std::as_bytes(std::span(text)); }

class MemoryFile : public leveldb::WritableFile {
 public:
  explicit MemoryFile(std::string& out) : out_(out) {}
  leveldb::Status Append(const leveldb::Slice& data) override {
    out_.append(data.data(), data.size());
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }

 private:
  std::string& out_;
};

// Lengths, their masked checksum, the strings; *crc covers everything, with each length as four bytes.
std::string PackStrings(const std::vector<std::string>& strings, uint32_t* crc) {
  std::string packed;
  *crc = 0;
  for (const std::string& text : strings) {
    auto length = static_cast<uint32_t>(text.size());
    *crc = saved_model::Crc32c(std::as_bytes(std::span(&length, 1)), *crc);
    for (; length >= 0x80; length >>= 7) packed += static_cast<char>(length | 0x80);
    packed += static_cast<char>(length);
  }
  uint32_t masked = saved_model::MaskCrc(*crc);
  std::string tail(reinterpret_cast<const char*>(&masked), sizeof(masked));
  for (const std::string& text : strings) tail += text;
  *crc = saved_model::Crc32c(BytesOf(tail), *crc);
  return packed + tail;
}

}  // namespace

BundleWriter::BundleWriter(int shards) : data_(shards) {
  header_.set_num_shards(shards);
  header_.mutable_version()->set_producer(1);
}

void BundleWriter::Add(const std::string& key, const TensorValue& value) {
  uint32_t crc = 0;
  std::string bytes = value.dtype == tf::DT_STRING ? PackStrings(value.strings, &crc) : value.bytes;
  if (value.dtype != tf::DT_STRING) crc = saved_model::Crc32c(BytesOf(bytes));
  std::string& data = data_[next_shard_];
  tf::BundleEntry& entry = entries_[key];
  entry.set_dtype(value.dtype);
  *entry.mutable_shape() = ShapeProto(value.shape);
  entry.set_shard_id(next_shard_);
  entry.set_offset(static_cast<int64_t>(data.size()));
  entry.set_size(static_cast<int64_t>(bytes.size()));
  entry.set_crc32c(saved_model::MaskCrc(crc));
  data += bytes;
  next_shard_ = (next_shard_ + 1) % static_cast<int>(data_.size());
}

void BundleWriter::AddPartitioned(const std::string& key, const TensorValue& value, int64_t rows_per_part) {
  tf::BundleEntry whole;
  whole.set_dtype(value.dtype);
  *whole.mutable_shape() = ShapeProto(value.shape);
  int64_t rows = value.shape[0];
  size_t row_size = rows == 0 ? 0 : value.bytes.size() / rows;
  for (int64_t row = 0; row < rows; row += rows_per_part) {
    int64_t count = std::min(rows_per_part, rows - row);
    tf::TensorSlice& slice = *whole.add_slices();
    for (int d = 0; d < value.shape.rank(); ++d) slice.add_extent();
    slice.mutable_extent(0)->set_start(row);
    slice.mutable_extent(0)->set_length(count);
    TensorValue part = value;
    part.shape.dims()[0] = count;
    part.bytes = value.bytes.substr(row * row_size, count * row_size);
    Add(saved_model::SliceKey(key, slice), part);
  }
  entries_[key] = whole;
}

std::string BundleWriter::IndexBytes() const {
  std::string bytes;
  MemoryFile file(bytes);
  leveldb::Options options;
  options.compression = leveldb::kNoCompression;
  leveldb::TableBuilder table(options, &file);
  table.Add("", header_.SerializeAsString());
  for (const auto& [key, entry] : entries_) table.Add(key, entry.SerializeAsString());
  FUSEBOX_CHECK(table.Finish().ok());
  return bytes;
}

Status BundleWriter::Write(const std::string& prefix) const {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(prefix).parent_path(), error);
  if (error) return IoError(prefix + ": " + error.message());
  for (size_t shard = 0; shard < data_.size(); ++shard) {
    char suffix[32];
    std::snprintf(suffix, sizeof(suffix), ".data-%05d-of-%05d", static_cast<int>(shard),
                  static_cast<int>(data_.size()));
    FUSEBOX_TRY(WriteFile(prefix + suffix, BytesOf(data_[shard])));
  }
  return WriteFile(prefix + ".index", BytesOf(IndexBytes()));
}

}  // namespace fusebox::models
