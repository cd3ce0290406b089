// SPDX-License-Identifier: Apache-2.0
#include "converter/import/keras/zip.h"

#include <zip.h>

namespace fusebox::keras {
namespace {

// Deflate's maximum expansion; larger claims are rejected.
constexpr uint64_t kMaxZipExpansion = 1100;

}  // namespace

struct ZipFile::Impl {
  Buffer bytes;
  zip_t* archive = nullptr;
  ~Impl() {
    if (archive) zip_discard(archive);
  }
};

ZipFile::ZipFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ZipFile::ZipFile(ZipFile&&) noexcept = default;
ZipFile& ZipFile::operator=(ZipFile&&) noexcept = default;
ZipFile::~ZipFile() = default;

Result<ZipFile> ZipFile::Open(Buffer bytes) {
  auto impl = std::make_unique<Impl>();
  impl->bytes = std::move(bytes);
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(impl->bytes.data(), impl->bytes.size(), 0, &error);
  if (source) impl->archive = zip_open_from_source(source, ZIP_RDONLY, &error);
  std::string why;
  if (!impl->archive) {
    why = zip_error_strerror(&error);
    if (source) zip_source_free(source);
  }
  zip_error_fini(&error);
  if (!impl->archive) return Invalid("a broken zip archive: " + why);
  return ZipFile(std::move(impl));
}

bool ZipFile::Has(const std::string& member) const {
  return zip_name_locate(impl_->archive, member.c_str(), ZIP_FL_ENC_RAW) >= 0;
}

Result<Buffer> ZipFile::Read(const std::string& member, size_t limit) const {
  const std::string& place = member;
  zip_stat_t stat;
  if (zip_stat(impl_->archive, member.c_str(), ZIP_FL_ENC_RAW, &stat) != 0)
    return NotFound(place + ": the archive has no such member");
  if (!(stat.valid & ZIP_STAT_SIZE) || !(stat.valid & ZIP_STAT_COMP_SIZE))
    return Invalid(place + ": its size is unknown");
  if (stat.size > limit)
    return Invalid(place + ": " + std::to_string(stat.size) + " bytes, more than the limit of " +
                   std::to_string(limit));
  if (stat.size / kMaxZipExpansion > stat.comp_size || stat.comp_size > impl_->bytes.size())
    return Invalid(place + ": " + std::to_string(stat.comp_size) + " bytes cannot unpack to " +
                   std::to_string(stat.size));
  zip_file_t* file = zip_fopen(impl_->archive, member.c_str(), ZIP_FL_ENC_RAW);
  if (!file) return Invalid(place + ": " + zip_strerror(impl_->archive));
  bool whole = false;
  std::string why = "truncated";
  Buffer out = Buffer::Make(stat.size, [&](std::span<std::byte> to) {
    size_t done = 0;
    while (done < to.size()) {
      const zip_int64_t n = zip_fread(file, to.data() + done, to.size() - done);
      if (n <= 0) break;
      done += static_cast<size_t>(n);
    }
    char more;
    // The checksum is verified when reading reaches the end.
    whole = done == to.size() && zip_fread(file, &more, 1) == 0;
    if (const int code = zip_error_code_zip(zip_file_get_error(file)); code != 0)
      why = zip_file_strerror(file);
  });
  zip_fclose(file);
  if (!whole) return Invalid(place + ": corrupt: " + why);
  return out;
}

}  // namespace fusebox::keras
