// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>

#include "host/tflite/file.h"

namespace fusebox::tflite {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the format is little-endian, and so are its constants");

// FlatBuffers reach no further; what lies behind (weights of large files, a zip) is checked range by range.
constexpr size_t kVerified = (size_t{1} << 31) - 2;

// Formats that people try in place of .tflite, by their first bytes.
struct OtherFormat {
  std::string_view begin, what, advice;
};
constexpr OtherFormat kOtherFormats[] = {
    {"\x89HDF\r\n\x1a\n", "an HDF5 file",
     "convert a Keras model (.h5) first: fusebox convert MODEL.h5 -o MODEL.tflite"},
    {"PK\x03\x04", "a zip archive",
     "convert a Keras model (.keras) first: fusebox convert MODEL.keras -o MODEL.tflite; "
     "unpack other archives, such as .task bundles"},
};

// Separate from CheckFile, into which calls are flattened.
[[gnu::noinline]] Status RejectOther(const Buffer& file) {
  if (file.size() == 0) return Invalid("the file is empty");
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  for (const auto& [begin, what, advice] : kOtherFormats)
    if (bytes.starts_with(begin))
      return Invalid("not a .tflite file but " + std::string(what) + "; " + std::string(advice));
  return Invalid("not a .tflite file: bytes 4 to 7 are not \"TFL3\"");
}

}  // namespace

// A check of a few instructions for each field of each table: flattened into one function it takes a third of
// the time.
[[gnu::flatten]] Status CheckFile(const Buffer& file) {
  constexpr std::string_view kIdentifier = "TFL3";
  if (file.size() < 8 || std::memcmp(file.data() + 4, kIdentifier.data(), 4) != 0) {
    return RejectOther(file);
  }
  const size_t size = std::min(file.size(), kVerified);
  constexpr flatbuffers::uoffset_t kMaxDepth = 64;
  // Every table has at least its 4 bytes of vtable offset, but vectors may point to one table any number of
  // times.
  const auto max_tables = static_cast<flatbuffers::uoffset_t>(std::max<size_t>(size / 4, 1000));
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(file.data()), size, kMaxDepth, max_tables);
  if (!format::VerifyModelBuffer(verifier))
    return Invalid("damaged or cut off: its tables do not hold together");
  return {};
}

}  // namespace fusebox::tflite
