// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/table.h"

#include <optional>
#include <string>

#include "converter/import/saved_model/byte_reader.h"
#include "converter/import/saved_model/crc32c.h"
#include "converter/import/saved_model/snappy.h"

namespace fusebox::saved_model {
namespace {

using Bytes = std::span<const std::byte>;
using Visit = std::function<Status(std::string_view key, std::string_view value)>;

constexpr size_t kFooterSize = 48;
constexpr size_t kBlockTrailerSize = 5;  // compression, masked checksum
constexpr int kNoCompression = 0;
constexpr int kSnappy = 1;
constexpr uint64_t kMagic = 0xdb4775248b80fb57ull;

struct Handle {
  uint64_t offset, size;
};

std::optional<Handle> ReadHandle(ByteReader& reader) {
  std::optional<uint64_t> offset = reader.Varint64();
  std::optional<uint64_t> size = reader.Varint64();
  if (!offset || !size) return std::nullopt;
  return Handle{*offset, *size};
}

// The payload of a block; `decoded` holds it if it was compressed.
Result<Bytes> ReadBlock(Bytes file, Handle handle, std::string& decoded) {
  if (handle.offset > file.size() || file.size() - handle.offset < kBlockTrailerSize ||
      handle.size > file.size() - handle.offset - kBlockTrailerSize) {
    return Invalid(std::to_string(handle.size) + " bytes reach beyond the end of the file");
  }
  Bytes payload = file.subspan(handle.offset, handle.size);
  ByteReader trailer(file.subspan(handle.offset + handle.size, kBlockTrailerSize));
  auto compression = std::to_integer<int>((*trailer.Take(1))[0]);
  if (MaskCrc(Crc32c(file.subspan(handle.offset, handle.size + 1))) != *trailer.Fixed32()) {
    return Invalid("checksum does not match");
  }
  if (compression == kNoCompression) return payload;
  if (compression != kSnappy) return Unsupported("unknown compression " + std::to_string(compression));
  FUSEBOX_ASSIGN(decoded, DecodeSnappy(payload));
  return std::as_bytes(std::span(decoded));
}

Status WalkBlock(Bytes block, const Visit& visit) {
  if (block.size() < sizeof(uint32_t)) return Invalid("block has no room for its restart points");
  ByteReader tail(block.last(sizeof(uint32_t)));
  uint64_t restarts = *tail.Fixed32();
  uint64_t room = (block.size() - sizeof(uint32_t)) / sizeof(uint32_t);
  if (restarts > room)
    return Invalid("block has " + std::to_string(restarts) + " restart points and no room for them");
  ByteReader entries(block.first(block.size() - sizeof(uint32_t) * (restarts + 1)));
  std::string key;
  while (!entries.done()) {
    std::optional<uint64_t> shared = entries.Varint64();
    std::optional<uint64_t> unshared = entries.Varint64();
    std::optional<uint64_t> value_size = entries.Varint64();
    if (!shared || !unshared || !value_size || *shared > key.size())
      return Invalid("damaged record after key '" + key + "'");
    std::optional<std::string_view> suffix = entries.TakeText(*unshared);
    std::optional<std::string_view> value = entries.TakeText(*value_size);
    if (!suffix || !value) return Invalid("record after key '" + key + "' reaches beyond its block");
    key.resize(*shared);
    key.append(*suffix);
    FUSEBOX_TRY(visit(key, *value));
  }
  return {};
}

}  // namespace

Status ReadTable(Bytes file, const Visit& visit) {
  if (file.size() < kFooterSize)
    return Invalid("too short (" + std::to_string(file.size()) + " bytes) to be a table");
  ByteReader footer(file.last(kFooterSize));
  std::optional<Handle> meta = ReadHandle(footer);
  std::optional<Handle> index = ReadHandle(footer);
  ByteReader magic(file.last(sizeof(kMagic)));
  if (*magic.Fixed64() != kMagic) return Invalid("not a table (wrong magic number), or truncated");
  if (!meta || !index) return Invalid("damaged footer");

  std::string decoded_index;
  FUSEBOX_ASSIGN(Bytes index_block, ReadBlock(file, *index, decoded_index).At("index block"));
  std::optional<std::string> previous;
  auto visit_in_order = [&](std::string_view key, std::string_view value) -> Status {
    if (previous && key <= *previous) return Invalid("key '" + std::string(key) + "' is out of order");
    previous = key;
    return visit(key, value);
  };
  return WalkBlock(index_block, [&](std::string_view, std::string_view value) -> Status {
    ByteReader reader(std::as_bytes(std::span(value)));
    std::optional<Handle> handle = ReadHandle(reader);
    if (!handle) return Invalid("damaged handle of a block");
    std::string place = "block at " + std::to_string(handle->offset);
    std::string decoded;
    FUSEBOX_ASSIGN(Bytes block, ReadBlock(file, *handle, decoded).At(place));
    return WalkBlock(block, visit_in_order).At(place);
  });
}

}  // namespace fusebox::saved_model
