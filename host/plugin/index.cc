// SPDX-License-Identifier: Apache-2.0
// The index of a folder of plugins: their manifests as they were read and checked once, each beside its text.
// A manifest is taken from the index if its text is the same, so that an index cannot be stale.
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
constexpr int kLayout = 1;  // of the bytes; any change of the tables below needs another

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
template <>
struct IndexedMembers<Manifest> {
  using T = Manifest;
  static constexpr auto kList =
      std::tuple(&T::text, &T::libraries, &T::id, &T::version, &T::name_space, &T::description, &T::license,
                 &T::abi_major, &T::abi_min_minor, &T::requires_extensions, &T::provides_extensions,
                 &T::rules, &T::ops, &T::delegates, &T::options_schema, &T::defaults, &T::priority);
};

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
      std::apply([&](auto... member) { (Write(value.*member), ...); }, IndexedMembers<T>::kList);
    }
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
      std::apply([&](auto... member) { (Read(value.*member), ...); }, IndexedMembers<T>::kList);
    }
  }
  void Read(std::string& text) { text = Take(Count()); }
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

// The first line of an index. Another version may check manifests in another way.
std::string IndexHeader(std::string_view body) {
  return "fusebox plugin index " + std::to_string(kLayout) + " " FUSEBOX_VERSION " " +
         std::string(PlatformKey()) + " " + std::to_string(XXH64(body.data(), body.size(), 0)) + "\n";
}

std::vector<Manifest> ReadIndex(const std::string& path, Owners& owners) {
  std::vector<Manifest> manifests;
  std::error_code error;
  if (!fs::exists(path, error)) return manifests;
  const auto ignore = [&](const std::string& why) {
    Log("loader").debug("{} is not used: {}", path, why);
    return std::vector<Manifest>();
  };
  if (const Status owned = owners.Check(path, path, "it"); !owned) return ignore(owned.error().message);
  const auto text = ReadShortFile(path);
  if (!text) return ignore(text.error().message);
  const std::string_view body = std::string_view(*text).substr(std::min(text->find('\n') + 1, text->size()));
  if (!text->starts_with(IndexHeader(body))) return ignore("another version wrote it, or it is damaged");
  IndexReader reader(body);
  reader.Read(manifests);
  if (!reader.good) return ignore("it is damaged");
  return manifests;
}

}  // namespace

Result<Manifest> ManifestReader::Read(const std::string& path) {
  FUSEBOX_ASSIGN(std::string text, ReadShortFile(path));
  if (indexed_) {
    const std::string folder = fs::absolute(path).parent_path().parent_path().string();
    auto at = folders_.find(folder);
    if (at == folders_.end())
      at = folders_.emplace(folder, ReadIndex(folder + "/" + kIndexName, owners)).first;
    const auto known = std::ranges::find(at->second, text, &Manifest::text);
    if (known != at->second.end()) {
      Manifest manifest = std::move(*known);  // has no text from now on, so that it is not found again
      manifest.path = path;
      if (!PlaceLibraries(manifest)) return manifest;
    }
  }
  return ManifestFrom(path, std::move(text));
}

std::string IndexText(const std::vector<Manifest>& manifests) {
  IndexWriter writer;
  writer.Write(manifests);
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
