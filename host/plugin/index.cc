// SPDX-License-Identifier: Apache-2.0
// The index of a folder of plugins: their manifests as they were read and checked once, each beside its text.
// A manifest is taken from the index if its file has the same size and time of change, or the same text, so
// that an index cannot be stale.
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <tuple>
#include <type_traits>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "host/base/log.h"
#include "host/graph/flex.h"
#include "host/plugin/steps.h"

namespace fusebox {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexName = "fusebox-plugins.index";
constexpr int kLayout = 2;  // of the bytes; any change of the tables below needs another

// The members of each struct, in the order in which they are written. Paths and the choice of a library are
// of the machine.
template <class T>
struct IndexedMembers;
template <>
struct IndexedMembers<OpQuantization::Weights> {
  static constexpr auto kList = std::tuple(&OpQuantization::Weights::operand, &OpQuantization::Weights::axis);
};
template <>
struct IndexedMembers<OpQuantization::Bias> {
  using T = OpQuantization::Bias;
  static constexpr auto kList = std::tuple(&T::operand, &T::input, &T::weights);
};
template <>
struct IndexedMembers<OpQuantization::SameScale> {
  using T = OpQuantization::SameScale;
  static constexpr auto kList = std::tuple(&T::operands, &T::results);
};
template <>
struct IndexedMembers<OpQuantization> {
  using T = OpQuantization;
  static constexpr auto kList = std::tuple(&T::weights, &T::biases, &T::same_scale, &T::asymmetric_inputs);
};
template <>
struct IndexedMembers<ManifestOp> {
  using T = ManifestOp;
  static constexpr auto kList =
      std::tuple(&T::kind, &T::name, &T::version, &T::options_schema, &T::quantization);
};
template <>
struct IndexedMembers<fbx_tolerance> {
  static constexpr auto kList = std::tuple(&fbx_tolerance::head, &fbx_tolerance::atol, &fbx_tolerance::rtol);
};
template <>
struct IndexedMembers<DeclaredRewrite::Operand> {
  using T = DeclaredRewrite::Operand;
  static constexpr auto kList = std::tuple(&T::from, &T::permutation, &T::dtype, &T::rank, &T::constant);
};
template <>
struct IndexedMembers<DeclaredRewrite::Attribute> {
  using T = DeclaredRewrite::Attribute;
  static constexpr auto kList = std::tuple(&T::name, &T::from, &T::value);
};
template <>
struct IndexedMembers<DeclaredRewrite> {
  using T = DeclaredRewrite;
  static constexpr auto kList = std::tuple(&T::operands, &T::results, &T::attributes, &T::tolerance);
};
template <>
struct IndexedMembers<ManifestRule> {
  using T = ManifestRule;
  static constexpr auto kList =
      std::tuple(&T::id, &T::implements, &T::min_version, &T::max_version, &T::when, &T::emits, &T::rewrite);
};
template <>
struct IndexedMembers<ManifestDelegate> {
  using T = ManifestDelegate;
  static constexpr auto kList = std::tuple(&T::name, &T::options_schema, &T::is_default, &T::defaults);
};
template <>
struct IndexedMembers<ManifestLibrary> {
  using T = ManifestLibrary;
  static constexpr auto kList = std::tuple(&T::platform, &T::file, &T::requires_cpu, &T::sha256);
};
// All that is needed to find a plugin, and then the rest.
constexpr auto kHead =
    std::tuple(&Manifest::libraries, &Manifest::id, &Manifest::version, &Manifest::abi_major,
               &Manifest::abi_min_minor, &Manifest::provides_extensions, &Manifest::priority);
constexpr auto kDelegateHead = std::tuple(&ManifestDelegate::name, &ManifestDelegate::is_default);
constexpr auto kRest =
    std::tuple(&Manifest::text, &Manifest::name_space, &Manifest::description, &Manifest::license,
               &Manifest::requires_extensions, &Manifest::rules, &Manifest::ops, &Manifest::delegates,
               &Manifest::options_schema, &Manifest::defaults);

template <class T>
constexpr bool kIsPlain = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, fbx_head>;

class IndexWriter {
 public:
  std::string bytes;

  template <class T>
  void Write(const T& value) {
    if constexpr (kIsPlain<T>) {
      bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
    } else {
      Write(value, IndexedMembers<T>::kList);
    }
  }
  template <class T, class... M>
  void Write(const T& value, const std::tuple<M...>& members) {
    std::apply([&](auto... member) { (Write(value.*member), ...); }, members);
  }
  void Write(const std::string& text) {
    Write(text.size());
    bytes += text;
  }
  void Write(const Attrs& attrs) { Write(attrs.empty() ? std::string() : WriteFlexMap(attrs)); }
  void Write(const AttrValue& value) {
    Attrs attrs;
    attrs.Set("value", value);
    Write(attrs);
  }
  template <class T>
  void Write(const std::vector<T>& list) {
    Write(list.size());
    for (const T& value : list) Write(value);
  }
  template <class T>
  void Write(const std::optional<T>& value) {
    Write(value.has_value());
    if (value) Write(*value);
  }
};

// Reads the same. `good` becomes false when bytes are missing; what was read then has no meaning.
class IndexReader {
 public:
  explicit IndexReader(std::string_view bytes) : rest_(bytes) {}

  bool good = true;

  template <class T>
  void Read(T& value) {
    if constexpr (kIsPlain<T>) {
      const std::string_view bytes = Take(sizeof(value));
      if (good) std::memcpy(&value, bytes.data(), sizeof(value));
    } else {
      Read(value, IndexedMembers<T>::kList);
    }
  }
  template <class T, class... M>
  void Read(T& value, const std::tuple<M...>& members) {
    std::apply([&](auto... member) { (Read(value.*member), ...); }, members);
  }
  void Read(std::string& text) { text = Take(Count()); }
  void Read(std::string_view& text) { text = Take(Count()); }
  void Read(Attrs& attrs) {
    const std::string_view bytes = Take(Count());
    if (bytes.empty()) return;
    auto read = ReadFlexMap(bytes);
    good = good && read.has_value();
    if (read) attrs = *std::move(read);
  }
  void Read(AttrValue& value) {
    Attrs attrs;
    Read(attrs);
    if (const AttrValue* const found = attrs.Find("value")) value = *found;
    else good = false;
  }
  template <class T>
  void Read(std::vector<T>& list) {
    const size_t count = Count();
    list.clear();
    list.reserve(std::min(count, rest_.size()));
    for (size_t i = 0; i < count && good; ++i) Read(list.emplace_back());
  }
  template <class T>
  void Read(std::optional<T>& value) {
    bool set = false;
    Read(set);
    if (set && good) Read(value.emplace());
  }

 private:
  std::string_view Take(size_t count) {
    good = good && count <= rest_.size();
    if (!good) return {};
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  size_t Count() {
    size_t count = 0;
    Read(count);
    return good ? count : 0;
  }

  std::string_view rest_;
};

// Stands in a list of ops for this one.
std::string OpKey(fbx_op_kind kind, std::string_view op) {
  return (kind == FBX_OP_BUILTIN ? "\nbuiltin " : "\ncustom ") + std::string(op) + "\n";
}

// The first line of an index. Another version may check manifests in another way.
std::string IndexHeader(std::string_view body) {
  return "fusebox plugin index " + std::to_string(kLayout) + " " FUSEBOX_VERSION " " +
         std::string(PlatformKey()) + " " + std::to_string(XXH64(body.data(), body.size(), 0)) + "\n";
}

// "/p/x/fusebox-plugin.json" is of the plugin "x" in "/p".
std::pair<std::string, std::string> FolderAndName(const std::string& path) {
  const std::string own = FolderOfFile(path);
  return {FolderOfFile(own), own.substr(own.rfind('/') + 1)};
}

// The size of a file and the time of its change, in nanoseconds. Nothing: it cannot be read.
struct Stamp {
  int64_t size = -1;
  int64_t changed = 0;

  static Stamp Of(const std::string& path) {
    struct stat status;
    if (stat(path.c_str(), &status) != 0) return {};
    return {status.st_size, int64_t{status.st_mtim.tv_sec} * kSecond + status.st_mtim.tv_nsec};
  }
  // An archive keeps seconds only.
  bool IsOf(const Stamp& file) const {
    const bool whole = file.changed % kSecond == 0;
    return size >= 0 && size == file.size && file.changed == (whole ? changed - changed % kSecond : changed);
  }

 private:
  static constexpr int64_t kSecond = 1'000'000'000;
};

}  // namespace

// A manifest in the bytes of an index.
struct ManifestReader::Row {
  std::string_view name, head, ops, rest;
  int64_t size;  // as in Stamp
  int64_t changed;
};
struct ManifestReader::Index {
  Buffer file;
  std::string folder;  // without links
  std::vector<Row> rows;
};

ManifestReader::ManifestReader(bool indexed) : indexed_(indexed) {}
ManifestReader::~ManifestReader() = default;

const ManifestReader::Index& ManifestReader::IndexOf(const std::string& folder) {
  const auto [at, added] = folders_.try_emplace(folder);
  if (!added) return at->second;
  const std::string path = folder + "/" + kIndexName;
  std::error_code error;
  if (!fs::exists(path, error)) return at->second;
  const auto ignore = [&](const std::string& why) -> const Index& {
    Log("loader").debug("{} is not used: {}", path, why);
    return at->second;
  };
  if (const Status owned = owners.Check(path, path, "it"); !owned) return ignore(owned.error().message);
  auto file = MapShortFile(path);
  if (!file) return ignore(file.error().message);
  if (file->file() != nullptr) file = Buffer::Copy(file->bytes());  // it must not change any more
  const std::string_view text(reinterpret_cast<const char*>(file->data()), file->size());
  const std::string_view body = text.substr(std::min(text.find('\n') + 1, text.size()));
  if (!text.starts_with(IndexHeader(body))) return ignore("another version wrote it, or it is damaged");
  IndexReader reader(body);
  size_t count = 0;
  reader.Read(count);
  std::vector<Row> rows;
  for (size_t i = 0; i < count && reader.good; ++i) {
    Row& row = rows.emplace_back();
    for (std::string_view* part : {&row.name, &row.head, &row.ops, &row.rest}) reader.Read(*part);
    reader.Read(row.size);
    reader.Read(row.changed);
  }
  if (!reader.good) return ignore("it is damaged");
  at->second = {*file, fs::weakly_canonical(folder, error).string(), std::move(rows)};
  return at->second;
}

Result<Manifest> ManifestReader::Read(const std::string& path, IndexedRest* rest) {
  if (!indexed_) return ReadManifest(path);
  const auto [folder, name] = FolderAndName(path);
  const Index& index = IndexOf(folder);
  const auto row = std::ranges::find(index.rows, name, &Row::name);
  if (row == index.rows.end()) return ReadManifest(path);
  const Stamp now = Stamp::Of(path);
  Manifest manifest;
  IndexReader head(row->head);
  head.Read(manifest, kHead);
  bool has_defaults = false;
  head.Read(has_defaults);
  if (has_defaults) manifest.defaults.emplace();
  size_t delegates = 0;
  head.Read(delegates);
  for (size_t i = 0; i < delegates && head.good; ++i)
    head.Read(manifest.delegates.emplace_back(), kDelegateHead);
  IndexedRest indexed{index.file, row->ops, row->rest};
  if (!Stamp{row->size, row->changed}.IsOf(now)) {
    FUSEBOX_ASSIGN(std::string text, ReadShortFile(path));
    indexed.Complete(manifest);
    if (manifest.text != text) return ManifestFrom(path, std::move(text));
  }
  manifest.path = path;
  std::error_code error;
  std::string own = index.folder + "/" + name;
  if (fs::is_symlink(own, error)) own = fs::weakly_canonical(own, error).string();
  if (!head.good || PlaceLibraries(manifest, own)) return ReadManifest(path);
  if (rest != nullptr) *rest = std::move(indexed);
  else indexed.Complete(manifest);
  return manifest;
}

void IndexedRest::Complete(Manifest& manifest) {
  if (!file) return;
  IndexReader(rest).Read(manifest, kRest);
  *this = {};
}

bool IndexedRest::MayHave(fbx_op_kind kind, std::string_view op) const {
  const std::string key = OpKey(kind, op);
  // The search of std::string_view stops at the first byte of each key, which begins every line.
  return memmem(ops.data(), ops.size(), key.data(), key.size()) != nullptr;
}

std::string IndexText(const std::vector<Manifest>& manifests) {
  IndexWriter writer;
  writer.Write(manifests.size());
  for (const Manifest& manifest : manifests) {
    IndexWriter head;
    head.Write(manifest, kHead);
    head.Write(manifest.defaults.has_value());
    head.Write(manifest.delegates.size());
    for (const ManifestDelegate& delegate : manifest.delegates) head.Write(delegate, kDelegateHead);
    IndexWriter rest;
    rest.Write(manifest, kRest);
    std::string ops;
    const auto list = [&](const ManifestOp& op) { ops += OpKey(op.kind, op.name); };
    std::ranges::for_each(manifest.ops, list);
    for (const ManifestRule& rule : manifest.rules) std::ranges::for_each(rule.emits, list);
    Stamp stamp = Stamp::Of(manifest.path);
    if (ReadShortFile(manifest.path) != manifest.text) stamp = {};  // it changed after it was read
    for (const std::string& part : {FolderAndName(manifest.path).second, head.bytes, ops, rest.bytes})
      writer.Write(part);
    writer.Write(stamp.size);
    writer.Write(stamp.changed);
  }
  return IndexHeader(writer.bytes) + writer.bytes;
}

Result<IndexWritten> WriteIndex(const std::string& folder) {
  FUSEBOX_ASSIGN(const std::vector<std::string> paths, ManifestsOf(folder));
  IndexWritten written{.path = (fs::path(folder) / kIndexName).string()};
  std::vector<Manifest> manifests;
  for (const std::string& path : paths) {
    auto manifest = ReadManifest(path);
    if (manifest) manifests.push_back(*std::move(manifest));
    else written.left_out.push_back(manifest.error().message);
  }
  written.plugins = manifests.size();
  const std::string text = IndexText(manifests);
  FUSEBOX_TRY(WriteFile(written.path, std::as_bytes(std::span(text))));
  return written;
}

}  // namespace fusebox
