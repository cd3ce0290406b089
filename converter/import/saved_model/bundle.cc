// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/bundle.h"

#include <bit>
#include <cstdio>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "converter/import/saved_model/byte_reader.h"
#include "converter/import/saved_model/crc32c.h"
#include "converter/import/saved_model/parse_message.h"
#include "converter/import/saved_model/partition.h"
#include "converter/import/saved_model/slice_key.h"
#include "converter/import/saved_model/table.h"
#include "host/graph/npy.h"

static_assert(std::endian::native == std::endian::little, "tensor bytes are used as they are stored");

namespace fusebox::saved_model {
namespace {

constexpr int kBundleVersion = 1;
constexpr int kMaxShards = 100000;  // the file name has five digits

std::string Quoted(std::string_view key) { return "tensor '" + std::string(key) + "'"; }

Result<BundleTensor> Describe(const tf::BundleEntry& entry) {
  if (entry.shape().unknown_rank()) return Invalid("its rank is unknown");
  BundleTensor tensor{entry.dtype(), {}};
  for (const tf::TensorShape::Dim& dim : entry.shape().dim()) tensor.shape.push_back(dim.size());
  FUSEBOX_TRY(ElementCount(tensor.shape));
  return tensor;
}

Status CheckSize(const BundleTensor& tensor, int64_t size) {
  size_t element = ElementSize(tensor.dtype);
  if (element == 0) return {};
  FUSEBOX_ASSIGN(int64_t count, ElementCount(tensor.shape));
  int64_t expected;
  if (__builtin_mul_overflow(count, static_cast<int64_t>(element), &expected) || expected != size) {
    return Invalid("it holds " + std::to_string(size) + " bytes, which is not " + DataTypeName(tensor.dtype) +
                   ShapeText(tensor.shape));
  }
  return {};
}

bool IsAligned(const Buffer& buffer, size_t element) {
  return reinterpret_cast<uintptr_t>(buffer.data()) % (element > 8 ? 8 : element) == 0;
}

}  // namespace

Result<Bundle> Bundle::Open(const std::string& prefix) {
  Bundle bundle(prefix);
  FUSEBOX_ASSIGN(Buffer index, MapFile(bundle.index_path_));
  FUSEBOX_TRY(ReadTable(index.bytes(), [&](std::string_view key, std::string_view value) {
                return bundle.AddRecord(key, value);
              }).At(bundle.index_path_));
  FUSEBOX_TRY(bundle.CheckTensors().At(bundle.index_path_));
  FUSEBOX_TRY(bundle.CheckShards());
  return bundle;
}

// Reports unreadable data files first if none can be read, before errors that follow from it.
Status Bundle::CheckShards() const {
  Status first;
  std::set<int> seen;
  for (const auto& [key, entry] : entries_) {
    if (!entry.slices().empty() || entry.size() == 0 || !seen.insert(entry.shard_id()).second) continue;
    const Result<Buffer> shard = Shard(entry.shard_id());
    if (shard) return {};
    if (first) first = std::unexpected(shard.error());
  }
  return first;
}

Status Bundle::AddRecord(std::string_view key, std::string_view value) {
  if (!key.empty()) {
    tf::BundleEntry entry;
    if (!ParseMessage(std::as_bytes(std::span(value)), entry))
      return Invalid(Quoted(key) + ": damaged record");
    entries_.emplace(key, std::move(entry));
    return {};
  }
  tf::BundleHeader header;
  if (!ParseMessage(std::as_bytes(std::span(value)), header)) return Invalid("damaged header");
  if (header.endianness() != tf::BundleHeader::LITTLE) return Unsupported("written on a big-endian machine");
  if (header.version().min_consumer() > kBundleVersion) {
    return Unsupported("needs a reader of version " + std::to_string(header.version().min_consumer()) +
                       ", this one has " + std::to_string(kBundleVersion));
  }
  if (header.num_shards() < 0 || header.num_shards() > kMaxShards) {
    return Invalid("header names " + std::to_string(header.num_shards()) + " data files");
  }
  shard_count_ = header.num_shards();
  has_header_ = true;
  return {};
}

Status Bundle::CheckTensors() {
  if (!has_header_) return Invalid("it has no header record");
  for (const auto& [key, entry] : entries_) {
    FUSEBOX_ASSIGN(BundleTensor tensor, Describe(entry).At(Quoted(key)));
    if (entry.slices().empty()) {
      if (entry.shard_id() < 0 || entry.shard_id() >= shard_count_ || entry.offset() < 0 ||
          entry.size() < 0) {
        return Invalid(Quoted(key) + ": shard " + std::to_string(entry.shard_id()) + " of " +
                       std::to_string(shard_count_) + ", offset " + std::to_string(entry.offset()) +
                       ", size " + std::to_string(entry.size()) + ": no such place");
      }
      FUSEBOX_TRY(CheckSize(tensor, entry.size()).At(Quoted(key)));
    }
    if (key.front() != '\0') tensors_.emplace(key, std::move(tensor));
  }
  return {};
}

const BundleTensor* Bundle::Find(std::string_view key) const {
  auto found = tensors_.find(key);
  return found == tensors_.end() ? nullptr : &found->second;
}

std::string Bundle::ShardPath(int shard) const {
  char suffix[32];
  std::snprintf(suffix, sizeof(suffix), ".data-%05d-of-%05d", shard, shard_count_);
  return prefix_ + suffix;
}

Result<Buffer> Bundle::Shard(int shard) const {
  auto found = shards_.find(shard);
  if (found == shards_.end()) {
    const std::string path = ShardPath(shard);
    std::error_code error;
    if (!std::filesystem::exists(path, error) && !error)
      return NotFound(
          path + ": missing, although " + index_path_ +
          " refers to it; copy the whole variables folder (an interrupted download or a checkout without "
          "Git LFS leaves such files out)");
    FUSEBOX_ASSIGN(Buffer mapped, MapFile(path));
    found = shards_.emplace(shard, std::move(mapped)).first;
  }
  return found->second;
}

Result<Buffer> Bundle::Span(const tf::BundleEntry& entry) const {
  FUSEBOX_ASSIGN(Buffer shard, Shard(entry.shard_id()));
  auto offset = static_cast<uint64_t>(entry.offset());
  auto size = static_cast<uint64_t>(entry.size());
  if (offset > shard.size() || size > shard.size() - offset) {
    return Invalid(ShardPath(entry.shard_id()) + ": truncated: bytes " + std::to_string(offset) + " to " +
                   std::to_string(offset + size) + " are needed, the file has " +
                   std::to_string(shard.size()));
  }
  return shard.Slice(offset, size);
}

Result<Buffer> Bundle::ReadWhole(const tf::BundleEntry& entry) const {
  FUSEBOX_ASSIGN(Buffer bytes, Span(entry));
  if (MaskCrc(Crc32c(bytes.bytes())) != entry.crc32c()) {
    return Invalid(ShardPath(entry.shard_id()) + ": checksum of " + std::to_string(entry.size()) +
                   " bytes at " + std::to_string(entry.offset()) + " does not match");
  }
  bytes.Release();  // else gigabytes stay resident until a pass needs them
  // A string tensor before this one may leave it misaligned.
  return IsAligned(bytes, ElementSize(entry.dtype())) ? bytes : Buffer::Copy(bytes.bytes());
}

Result<Buffer> Bundle::ReadParts(std::string_view key, const tf::BundleEntry& entry) const {
  FUSEBOX_ASSIGN(Partition partition, Partition::Plan(tensors_.find(key)->second.shape, entry));
  uint64_t stored = 0;
  for (int i = 0; i < shard_count_; ++i) {
    FUSEBOX_ASSIGN(Buffer shard, Shard(i));
    stored += shard.size();
  }
  FUSEBOX_ASSIGN(int64_t elements, ElementCount(tensors_.find(key)->second.shape));
  size_t element_size = ElementSize(entry.dtype());
  if (static_cast<uint64_t>(elements) > stored / element_size)
    return Invalid("its data files are too short for its shape");

  std::vector<Buffer> parts;
  for (int i = 0; i < entry.slices_size(); ++i) {
    std::string place = "part " + std::to_string(i);
    auto part = entries_.find(SliceKey(key, entry.slices(i)));
    if (part == entries_.end()) return Invalid(place + " is missing");
    if (part->second.dtype() != entry.dtype() || !part->second.slices().empty())
      return Invalid(place + " has a different type than its tensor");
    FUSEBOX_ASSIGN(BundleTensor described, Describe(part->second));
    if (described.shape != partition.part_shape(i))
      return Invalid(place + " has a different shape than its slice");
    FUSEBOX_ASSIGN(Buffer bytes, ReadWhole(part->second).At(place));
    parts.push_back(std::move(bytes));
  }
  return Buffer::Make(elements * element_size,
                      [&](std::span<std::byte> out) { partition.Join(parts, element_size, out); });
}

Result<Buffer> Bundle::Read(std::string_view key) const {
  if (auto found = read_.find(key); found != read_.end()) return found->second;
  auto entry = key.starts_with('\0') ? entries_.end() : entries_.find(key);
  if (entry == entries_.end()) return NotFound(index_path_ + ": " + Quoted(key) + " is not in it");
  if (entry->second.dtype() == tf::DT_STRING) {
    FUSEBOX_ASSIGN(const std::vector<std::string> strings, ReadStrings(key));
    return read_.emplace(key, PackStrings(strings)).first->second;
  }
  if (ElementSize(entry->second.dtype()) == 0) {
    return Unsupported(index_path_ + ": " + Quoted(key) + ": elements of type " +
                       DataTypeName(entry->second.dtype()) + " have no fixed size");
  }
  Result<Buffer> bytes =
      entry->second.slices().empty() ? ReadWhole(entry->second) : ReadParts(key, entry->second);
  if (!bytes) return std::move(bytes).At(index_path_ + ": " + Quoted(key));
  read_.emplace(key, *bytes);
  return bytes;
}

Result<std::vector<std::string>> Bundle::ReadStrings(std::string_view key) const {
  std::string place = index_path_ + ": " + Quoted(key);
  const BundleTensor* tensor = Find(key);
  if (!tensor) return NotFound(place + " is not in it");
  const tf::BundleEntry& entry = entries_.find(key)->second;
  if (tensor->dtype != tf::DT_STRING)
    return Invalid(place + ": it holds " + DataTypeName(tensor->dtype) + ", not strings");
  if (!entry.slices().empty()) return Unsupported(place + ": a partitioned tensor of strings");
  FUSEBOX_ASSIGN(Buffer bytes, Span(entry).At(place));
  FUSEBOX_ASSIGN(int64_t count, ElementCount(tensor->shape));
  return DecodeStrings(bytes.bytes(), count, entry.crc32c()).At(place);
}

}  // namespace fusebox::saved_model
