// SPDX-License-Identifier: Apache-2.0
// Memo file (*.fbmm): MemoHeader, MemoRecords, XXH3-128 of all bytes before. One per model file, named after
// device and inode, so that a changed model replaces its old memo.
#include "plugins/xnnpack/cache/model_memo.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "plugins/xnnpack/cache/hooks.h"
#include "plugins/xnnpack/cache/store.h"

namespace fusebox::cache {
namespace {

constexpr char kMemoMagic[8] = {'F', 'B', 'X', 'M', 'E', 'M', 'O', '\n'};
constexpr uint32_t kMemoVersion = 2;
constexpr size_t kMaxMemo = 64 << 20;
constexpr int64_t kSecond = 1'000'000'000;

struct MemoHeader {
  char magic[8];
  uint32_t version;
  uint32_t byte_order;
  ModelFile file;
  Digest secret;  // XXH3-128 of the store's secret: digests depend on it
};

struct MemoRecord {
  uint64_t offset, size;
  Digest content;
};

// Equal for all memos of one file state and store.
std::string HeaderOf(const ModelFile& file, const Digest& secret) {
  MemoHeader header{.version = kMemoVersion,
                    .byte_order = kByteOrder,
                    .file = file,
                    .secret = Hash(std::as_bytes(std::span(&secret, 1)))};
  std::memcpy(header.magic, kMemoMagic, sizeof kMemoMagic);
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

std::string NameOf(const ModelFile& file) {
  const uint64_t id[] = {file.device, file.inode};
  return Hex(Hash(std::as_bytes(std::span(id)))) + ".fbmm";
}

// An edit within one clock tick of the file system does not change the times.
bool Young(const ModelFile& file) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const int64_t latest = std::max(file.modified_ns, file.changed_ns);
  const int64_t tick = file.changed_ns % kSecond == 0 ? 2 * kSecond : kSecond / 10;
  return now.tv_sec * kSecond + now.tv_nsec - latest < tick;
}

}  // namespace

ModelMemo::ModelMemo(Store& store, const ModelFile& file, bool lasting)
    : store_(store), file_(file), lasting_(lasting) {
  if (lasting_ && store_.dirs_ && store_.dirs_->models) Load();
}

void ModelMemo::Load() {
  const StoreDirs& dirs = *store_.dirs_;
  const auto content = ReadSmall(dirs.models.get(), NameOf(file_), kMaxMemo);
  if (!content || !content->starts_with(HeaderOf(file_, dirs.secret))) return;
  auto records = std::as_bytes(std::span(*content)).subspan(sizeof(MemoHeader));
  if (records.size() % sizeof(MemoRecord) != sizeof(Digest)) return;
  Digest self;
  std::memcpy(&self, records.last(sizeof self).data(), sizeof self);
  if (Hash(std::as_bytes(std::span(*content)).first(content->size() - sizeof self)) != self) return;
  for (; records.size() > sizeof self; records = records.subspan(sizeof(MemoRecord))) {
    MemoRecord record;
    std::memcpy(&record, records.data(), sizeof record);
    known_[{record.offset, record.size}] = record.content;
  }
}

bool ModelMemo::Write() const {
  const StoreDirs& dirs = *store_.dirs_;
  std::string content = HeaderOf(file_, dirs.secret);
  for (const auto& [place, digest] : known_) {
    const MemoRecord record{place.first, place.second, digest};
    content.append(reinterpret_cast<const char*>(&record), sizeof record);
  }
  const Digest self = Hash(std::as_bytes(std::span(content)));
  content.append(reinterpret_cast<const char*>(&self), sizeof self);
  Point("memo");
  return ReplaceSmall(dirs.models.get(), NameOf(file_), std::as_bytes(std::span(content)));
}

Digest ModelMemo::Of(uint64_t offset, std::span<const std::byte> bytes) {
  const std::pair<uint64_t, uint64_t> place{offset, bytes.size()};
  {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(place);
    if (known != known_.end()) return known->second;
  }
  const Digest content = store_.HashContent(bytes);
  const std::lock_guard lock(mutex_);
  changed_ = true;
  return known_[place] = content;
}

void ModelMemo::Save(const std::optional<ModelFile>& now) {
  const std::lock_guard lock(mutex_);
  const StoreDirs* const dirs = store_.dirs_.get();
  if (!changed_ || !lasting_ || now != file_ || !dirs || !dirs->writable) return;
  changed_ = !Write();
  if (changed_)
    store_.AddNote(ErrnoNote(errno, dirs->path + ": digests of the model cannot be stored", "cannot-write"),
                   false);
}

std::shared_ptr<ModelMemo> Store::Memo(const ModelFile& file) {
  // A later edit may be undetectable, so digests are valid for this opening only.
  if (Young(file)) return std::make_shared<ModelMemo>(*this, file, false);
  const std::lock_guard lock(memos_mutex_);
  std::shared_ptr<ModelMemo>& memo = memos_[{file.device, file.inode}];
  if (!memo || memo->file() != file) memo = std::make_shared<ModelMemo>(*this, file, true);
  return memo;
}

}  // namespace fusebox::cache
