// SPDX-License-Identifier: Apache-2.0
// Checksums keep a fuzzer of whole files out of what lies behind them: here the records are its own, and the
// checksums are right.
#include <algorithm>
#include <cstring>

#include "converter/import/saved_model/crc32c.h"
#include "converter/import/saved_model/slice_key.h"
#include "models/saved_model/bundle_writer.h"
#include "tests/fuzz/targets.h"

namespace fusebox::fuzz {
namespace {

constexpr size_t kRecords = 4;

// A list of strings is `count` lengths, the checksum of these, and the text. Writes that checksum and returns
// that of all, in which each length counts as four bytes.
uint32_t SetStringsChecksum(std::span<std::byte> bytes, int64_t count) {
  uint32_t crc = 0;
  size_t at = 0;
  for (int64_t i = 0; i < count && at < bytes.size(); ++i) {
    uint32_t length = 0;
    for (int shift = 0; at < bytes.size(); shift += 7) {
      const auto byte = std::to_integer<uint32_t>(bytes[at++]);
      if (shift < 32) length |= (byte & 127) << shift;
      if (byte < 128) break;
    }
    crc = saved_model::Crc32c(std::as_bytes(std::span(&length, 1)), crc);
  }
  const uint32_t masked = saved_model::MaskCrc(crc);
  if (bytes.size() - at < sizeof masked) return 0;
  std::memcpy(&bytes[at], &masked, sizeof masked);
  return saved_model::Crc32c(bytes.subspan(at), crc);
}

// The checksum of what the record points at, where it points at something.
void SetChecksum(tf::BundleEntry& entry, std::span<std::byte> data) {
  const auto offset = static_cast<uint64_t>(entry.offset()), size = static_cast<uint64_t>(entry.size());
  if (offset > data.size() || size > data.size() - offset) return;
  const std::span<std::byte> bytes = data.subspan(offset, size);
  int64_t count = 1;
  for (const auto& dim : entry.shape().dim())
    count = dim.size() < 0 || dim.size() > 4096 ? 0 : std::min<int64_t>(4096, count * dim.size());
  const bool strings = entry.dtype() == tf::DT_STRING;
  entry.set_crc32c(
      saved_model::MaskCrc(strings ? SetStringsChecksum(bytes, count) : saved_model::Crc32c(bytes)));
}

}  // namespace

Status RunRecords(std::span<const std::byte> bytes) {
  std::vector<tf::BundleEntry> entries(kRecords);
  for (tf::BundleEntry& entry : entries) {
    if (bytes.empty()) return Invalid("a record is missing");
    const size_t length = std::min(static_cast<size_t>(bytes[0]), bytes.size() - 1);
    if (!entry.ParseFromArray(bytes.data() + 1, static_cast<int>(length))) return Invalid("no record");
    bytes = bytes.subspan(1 + length);
  }
  std::string data(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  models::BundleWriter writer;
  for (size_t i = 0; i < kRecords; ++i) {
    SetChecksum(entries[i], std::as_writable_bytes(std::span(data)));
    writer.AddRecord("tensor" + std::to_string(i), entries[i]);
    // The last record is also what every slice of the others is.
    for (const tf::TensorSlice& slice : entries[i].slices())
      writer.AddRecord(saved_model::SliceKey("tensor" + std::to_string(i), slice), entries.back());
  }
  const std::string index = writer.IndexBytes();
  const auto length = static_cast<uint32_t>(index.size());
  std::string joined(reinterpret_cast<const char*>(&length), sizeof length);
  joined += index;
  joined += data;
  return RunBundle(std::as_bytes(std::span(joined)));
}

std::vector<std::string> RecordSeeds() {
  models::BundleWriter writer;
  writer.Add("0", models::Zeros({6, 2}));
  writer.Add("1", models::Strings({"one", std::string(200, 'y')}));
  writer.AddPartitioned("2", models::Zeros({4, 2}), 2);
  writer.Add("3", models::Zeros({2, 2}));
  std::string seed;
  for (const char* key : {"0", "1", "2", "3"}) {
    const std::string record = writer.entry(key).SerializeAsString();
    FUSEBOX_CHECK(record.size() < 256);
    seed += static_cast<char>(record.size());
    seed += record;
  }
  return {seed + writer.DataBytes(0)};
}

}  // namespace fusebox::fuzz
