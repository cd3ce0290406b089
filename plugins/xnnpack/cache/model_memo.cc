// SPDX-License-Identifier: Apache-2.0
// The file of a memo (*.fbmm): MemoHeader, then MemoRecord[count]. One per model file, named after device and inode, so
// that a changed model replaces what was known of it.
#include "plugins/xnnpack/cache/model_memo.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "plugins/xnnpack/cache/hooks.h"
#include "plugins/xnnpack/cache/store_impl.h"

namespace fusebox::cache {
namespace {

constexpr char kMemoMagic[8] = {'F', 'B', 'X', 'M', 'E', 'M', 'O', '\n'};
constexpr size_t kMaxMemo = 64 << 20;
constexpr int64_t kSecond = 1'000'000'000;

struct MemoHeader {
  char magic[8];
  uint32_t version;
  uint32_t byte_order;
  ModelFile file;
  Digest secret;  // XXH3-128 of the store's secret: another store's digests are of no use
  uint64_t count;
  Digest self;  // XXH3-128 of the header before it, seeded with the low half of records' own XXH3-128
};

struct MemoRecord {
  uint64_t offset, size;
  Content content;
};

Digest SelfOf(const MemoHeader& header, std::span<const std::byte> records) {
  return Hash(std::as_bytes(std::span(&header, 1)).first(offsetof(MemoHeader, self)), Hash(records).low);
}

std::string NameOf(const ModelFile& file) {
  const uint64_t id[] = {file.device, file.inode};
  return Hex(Hash(std::as_bytes(std::span(id)))) + ".fbmm";
}

// An edit within one tick of the file system's clock leaves the times as they are.
bool Young(const ModelFile& file) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const int64_t latest = std::max(file.modified_ns, file.changed_ns);
  const int64_t tick = file.changed_ns % kSecond == 0 ? 2 * kSecond : kSecond / 10;
  return now.tv_sec * kSecond + now.tv_nsec - latest < tick;
}

}  // namespace

// What is known of one state of a file, shared by its memos.
struct MemoTable {
  ModelFile file;
  std::mutex mutex;  // of the rest
  std::map<std::pair<uint64_t, uint64_t>, Content> known;
  bool changed = false;
};

namespace {

void Load(const Home& home, MemoTable& table) {
  const auto content = ReadSmall(home.models.get(), NameOf(table.file), kMaxMemo);
  MemoHeader header;
  if (!content || content->size() < sizeof header) return;
  std::memcpy(&header, content->data(), sizeof header);
  const auto records = std::as_bytes(std::span(*content)).subspan(sizeof header);
  if (std::memcmp(header.magic, kMemoMagic, sizeof kMemoMagic) != 0 || header.version != kFormatVersion ||
      header.byte_order != kByteOrder || header.file != table.file ||
      header.secret != Hash(std::as_bytes(std::span(&home.secret, 1))) ||
      records.size() % sizeof(MemoRecord) != 0 || header.count != records.size() / sizeof(MemoRecord) ||
      header.self != SelfOf(header, records))
    return;
  for (size_t at = 0; at < records.size(); at += sizeof(MemoRecord)) {
    MemoRecord record;
    std::memcpy(&record, records.data() + at, sizeof record);
    table.known[{record.offset, record.size}] = record.content;
  }
}

bool Write(const Home& home, const MemoTable& table) {
  std::vector<MemoRecord> records;
  for (const auto& [place, content] : table.known) records.push_back({place.first, place.second, content});
  MemoHeader header{{},
                    kFormatVersion,
                    kByteOrder,
                    table.file,
                    Hash(std::as_bytes(std::span(&home.secret, 1))),
                    records.size(),
                    {}};
  std::memcpy(header.magic, kMemoMagic, sizeof kMemoMagic);
  const auto bytes = std::as_bytes(std::span(records));
  header.self = SelfOf(header, bytes);
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Point("memo");
  return ReplaceSmall(home.models.get(), NameOf(table.file), std::as_bytes(std::span(file)));
}

class MemoImpl final : public ModelMemo {
 public:
  MemoImpl(std::shared_ptr<StoreImpl> store, std::shared_ptr<MemoTable> table, bool lasting)
      : store_(std::move(store)), table_(std::move(table)), lasting_(lasting) {}

  Content Of(uint64_t offset, std::span<const std::byte> bytes) override {
    const std::pair<uint64_t, uint64_t> place{offset, bytes.size()};
    {
      const std::lock_guard lock(table_->mutex);
      const auto known = table_->known.find(place);
      if (known != table_->known.end() && (!store_->has_system() || !known->second.plain.zero()))
        return known->second;
    }
    const Content content = store_->HashContent(bytes);
    const std::lock_guard lock(table_->mutex);
    table_->known[place] = content;
    table_->changed = true;
    return content;
  }

  void Save(const std::optional<ModelFile>& now) override {
    const std::lock_guard lock(table_->mutex);
    const Home* const home = store_->home();
    if (!table_->changed || !lasting_ || now != table_->file || !home || !home->writable) return;
    if (Write(*home, *table_)) {
      table_->changed = false;
    } else {
      store_->AddNote(
          ErrnoNote(errno, home->path + ": what is known of the model cannot be kept", "cannot-write"),
          false);
    }
  }

 private:
  const std::shared_ptr<StoreImpl> store_;
  const std::shared_ptr<MemoTable> table_;
  const bool lasting_;
};

}  // namespace

std::optional<ModelFile> ModelFile::Of(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return StateOf(status);
}

std::optional<ModelFile> ModelFile::Of(const char* path) {
  struct stat status;
  if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return StateOf(status);
}

std::shared_ptr<ModelMemo> StoreImpl::Memo(const ModelFile& file) {
  auto self = std::static_pointer_cast<StoreImpl>(shared_from_this());
  // Another edit may still go unseen: what is found out now holds for this opening alone.
  const bool lasting = options_.trust_memo && !Young(file);
  auto fresh = std::make_shared<MemoTable>();
  fresh->file = file;
  if (!lasting) return std::make_shared<MemoImpl>(std::move(self), std::move(fresh), false);
  {
    const std::shared_lock lock(mutex_);
    const auto known = memos_.find({file.device, file.inode});
    if (known != memos_.end() && known->second->file == file)
      return std::make_shared<MemoImpl>(std::move(self), known->second, true);
  }
  if (home_ && home_->models) Load(*home_, *fresh);
  const std::unique_lock lock(mutex_);
  auto& table = memos_[{file.device, file.inode}];
  if (!table || table->file != file) table = fresh;
  return std::make_shared<MemoImpl>(std::move(self), table, true);
}

}  // namespace fusebox::cache
