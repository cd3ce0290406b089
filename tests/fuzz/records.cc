// SPDX-License-Identifier: Apache-2.0
// Checksums keep a fuzzer of whole files out of what lies behind them: here the records are its own, and the checksums are right.
#include <algorithm>

#include "converter/import/saved_model/crc32c.h"
#include "converter/import/saved_model/slice_key.h"
#include "samples/models/bundle_writer.h"
#include "tests/fuzz/targets.h"

namespace fusebox::fuzz {
namespace {

constexpr size_t kRecords = 4;

// The checksum of what the record points at, where it points at something.
void SetChecksum(tf::BundleEntry& entry, std::span<const std::byte> data) {
  const auto offset = static_cast<uint64_t>(entry.offset()), size = static_cast<uint64_t>(entry.size());
  if (offset > data.size() || size > data.size() - offset) return;
  entry.set_crc32c(saved_model::MaskCrc(saved_model::Crc32c(data.subspan(offset, size))));
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
  samples::BundleWriter writer;
  for (size_t i = 0; i < kRecords; ++i) {
    SetChecksum(entries[i], bytes);
    writer.AddRecord("tensor" + std::to_string(i), entries[i]);
    // The last record is also what every slice of the others is.
    for (const tf::TensorSlice& slice : entries[i].slices())
      writer.AddRecord(saved_model::SliceKey("tensor" + std::to_string(i), slice), entries.back());
  }
  const std::string index = writer.IndexBytes();
  const auto length = static_cast<uint32_t>(index.size());
  std::string joined(reinterpret_cast<const char*>(&length), sizeof length);
  joined += index;
  joined.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return RunBundle(std::as_bytes(std::span(joined)));
}

std::vector<std::string> RecordSeeds() {
  samples::BundleWriter writer;
  writer.Add("0", samples::Zeros({6, 2}));
  writer.Add("1", samples::Strings({"one", std::string(200, 'y')}));
  writer.AddPartitioned("2", samples::Zeros({4, 2}), 2);
  writer.Add("3", samples::Zeros({2, 2}));
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
