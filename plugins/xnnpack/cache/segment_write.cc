// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/cache/segment_write.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <map>
#include <tuple>

#include "plugins/xnnpack/cache/hooks.h"

namespace fusebox::cache {
namespace {

bool Failed(const char* what, Note& why) {
  why = ErrnoNote(errno, std::string("the cache file cannot be ") + what, "cannot-write");
  return false;
}

bool WriteBlob(Build& build, std::span<const std::byte> bytes, uint64_t& offset, Note& why) {
  offset = AlignUp(build.used, AlignmentOf(bytes.size()));
  struct statvfs disk;
  if (fstatvfs(build.temp.fd.get(), &disk) == 0 &&
      disk.f_bavail * disk.f_frsize < bytes.size() + tuning.min_free_bytes) {
    errno = ENOSPC;
    return Failed("written", why);
  }
  if (!WriteAt(build.temp.fd.get(), bytes, offset)) return Failed("written", why);
  Point("blob");
  build.used = offset + AlignUp(bytes.size(), kBlobAlignment);
  return true;
}

// Digest of the contents, independent of the layout.
Digest IdOf(const std::vector<Entry>& entries) {
  std::vector<Record> named;
  for (const Entry& e : entries) {
    named.push_back(e.record);
    named.back().offset = 0;
  }
  return Hash(std::as_bytes(std::span(named)));
}

std::vector<std::byte> IndexOf(const std::vector<Entry>& entries) {
  std::string index;
  std::string notes;
  std::vector<uint32_t> begin{0};
  for (const Entry& e : entries) {
    index.append(reinterpret_cast<const char*>(&e.record), sizeof e.record);
    notes += e.note;
    begin.push_back(static_cast<uint32_t>(notes.size()));
  }
  index.append(reinterpret_cast<const char*>(begin.data()), begin.size() * sizeof(uint32_t));
  index += notes;
  index.resize(AlignUp(index.size(), 8));
  const auto bytes = std::as_bytes(std::span(index));
  return {bytes.begin(), bytes.end()};
}

Superblock MakeSuperblock(const Build& build, const Stamp& stamp, std::span<const std::byte> index,
                          const Digest& id) {
  Superblock super{};
  std::memcpy(super.magic, kMagic, sizeof kMagic);
  super.version = kFormatVersion;
  super.byte_order = kByteOrder;
  super.index_offset = AlignUp(build.used, kBlobAlignment);
  super.file_size = super.index_offset + index.size() + sizeof(Footer);
  super.entry_count = build.entries.size();
  for (const Entry& e : build.entries) super.notes_size += e.note.size();
  super.index_digest = Hash(index);
  super.secret = stamp.secret;
  super.id = id;
  super.created_s = static_cast<uint64_t>(std::time(nullptr));
  super.generation = stamp.generation;
  stamp.writer.copy(super.writer, sizeof super.writer - 1);
  super.self = Hash(std::as_bytes(std::span(&super, 1)).first(offsetof(Superblock, self)));
  return super;
}

}  // namespace

bool WriteStaged(Build& build, Note& why) {
  std::map<const std::byte*, uint64_t> written;
  for (Entry& e : build.entries) {
    const auto known = written.find(e.bytes.data());
    if (known != written.end()) {
      e.record.offset = known->second;
      continue;
    }
    if (!WriteBlob(build, e.bytes, e.record.offset, why)) return false;
    written[e.bytes.data()] = e.record.offset;
  }
  build.staged = false;
  return true;
}

bool AppendOld(Build& build, const Segment& old, const std::function<bool(const Record&)>& keep, Note& why) {
  std::map<uint64_t, uint64_t> copied;  // old offset -> new offset
  for (const Record& record : old.records()) {
    if (!keep(record)) continue;
    Entry entry{record, std::string(old.RecipeOf(record)), {}};
    const auto known = copied.find(record.offset);
    if (known != copied.end()) {
      entry.record.offset = known->second;
    } else {
      const auto bytes = old.Bytes(record);
      if (Hash(bytes) != record.packed) continue;
      if (!WriteBlob(build, bytes, entry.record.offset, why)) return false;
      copied[record.offset] = entry.record.offset;
    }
    build.entries.push_back(std::move(entry));
  }
  return true;
}

bool Finish(Build& build, const Stamp& stamp, Digest& id, Note& why) {
  const auto key = [](const Entry& e) { return std::tie(e.record.identity, e.record.fingerprint); };
  std::stable_sort(build.entries.begin(), build.entries.end(),
                   [&](const Entry& a, const Entry& b) { return key(a) < key(b); });
  build.entries.erase(std::unique(build.entries.begin(), build.entries.end(),
                                  [&](const Entry& a, const Entry& b) { return key(a) == key(b); }),
                      build.entries.end());
  id = IdOf(build.entries);
  const int fd = build.temp.fd.get();
  const std::vector<std::byte> index = IndexOf(build.entries);
  const Superblock super = MakeSuperblock(build, stamp, index, id);
  Footer footer{{}, super.file_size, super.self};
  std::memcpy(footer.magic, kMagic, sizeof kMagic);
  if (!WriteAt(fd, index, super.index_offset)) return Failed("written", why);
  Point("index");
  if (!WriteAt(fd, std::as_bytes(std::span(&footer, 1)), super.file_size - sizeof footer) ||
      !WriteAt(fd, std::as_bytes(std::span(&super, 1)), 0))
    return Failed("written", why);
  Point("superblock");
  if (ftruncate(fd, static_cast<off_t>(super.file_size)) != 0) return Failed("truncated", why);
  Point("cut");
  if (tuning.durable && (Fails("fsync") || fdatasync(fd) != 0)) return Failed("synced", why);
  Point("synced");
  return true;
}

}  // namespace fusebox::cache
