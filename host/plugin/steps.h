// SPDX-License-Identifier: Apache-2.0
// Functions shared by the files of this folder, in calling order. Other code includes plugin.h, except
// readers of other JSON options.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "host/plugin/registry.h"

namespace fusebox {

// Returns why references within a JSON Schema cannot be resolved (unknown target, cycle, or too deep), or an
// empty string if they can.
std::string UnsoundReference(const nlohmann::json& schema);

// A JSON Schema (draft 7, without references to other files). Immutable, any thread. A default-constructed
// one accepts everything.
class JsonSchema {
 public:
  // Error: an invalid schema. `vendor_keys`: RemoveVendorKeys applies to a pattern "^x-" in it.
  static Result<JsonSchema> Parse(std::string_view text, bool vendor_keys = false);

  struct Violation {
    std::string pointer;  // JSON pointer to the invalid value or key
    std::string what;     // "unknown key \"verison\"; did you mean \"version\"?"
  };
  std::optional<Violation> Check(const nlohmann::json& value) const;
  // Removes keys x-... where the schema allows them.
  void RemoveVendorKeys(nlohmann::json& value) const;
  // Sets absent properties to the schema's defaults, in nested objects too.
  void FillDefaults(nlohmann::json& value) const;
  // Resolves relative paths against `folder`: strings whose schema has "format": "path". In an "anyOf", the
  // first alternative with this format, or with an "enum" that contains the value, applies.
  void ResolvePaths(nlohmann::json& value, const std::string& folder) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// The first unknown keyword or invalid regular expression of a JSON Schema, and its pointer below `pointer`.
// Keys x-... are allowed.
std::optional<JsonSchema::Violation> SchemaMistake(const nlohmann::json& schema,
                                                   const std::string& pointer = {});

// The condition "when" of a rule: each listed attribute must match its schema, and exist unless the schema
// has a default.
Result<JsonSchema> ParseWhen(const std::string& when);

// User-written files: parsed, validated by a schema of sdk/schema, vendor keys removed.
struct Document {
  std::string name, text;
  nlohmann::json value;
  // An error with file, line and column of the pointer's target.
  std::unexpected<Error> Complain(std::string_view pointer, std::string_view what) const;
};
// A document of any schema; `name` stands in messages.
Result<Document> ParseDocument(std::string name, std::string text, const JsonSchema&);
Result<Document> ParseManifestDocument(std::string name, std::string text);
// The manifest of a file that was read.
Result<Manifest> ManifestFrom(const std::string& path, std::string text);
// The absolute path of a file's folder.
std::string FolderOfFile(const std::string& path);
// Who can replace files. Each component of several paths is looked at once.
class Owners {
 public:
  explicit Owners(uid_t user = geteuid()) : user_(user) {}

  // Error: a component of the path is writable for all, or one within `folder` belongs to neither root nor
  // this user, so that others can replace `what`.
  Status Check(const std::string& path, const std::string& folder, const char* what = "its code");
  Status Check(const std::string& manifest);  // within the manifest's folder; before it is read

 private:
  std::string WhoReplaces(const std::string& path, const struct stat& status, bool own,
                          const char* what) const;
  size_t KnownSafe(const std::string& path, const std::string& own) const;
  std::string WhoReplacesAny(const std::string& path, const std::string& own, const char* what, int links);

  uid_t user_;
  std::unordered_set<std::string> safe_[2];  // paths; in the second those within a folder
};
// The part of a manifest that stays in an index until its plugin is chosen. Empty: nothing is missing.
struct IndexedRest {
  Buffer file;
  std::string_view ops, rest;  // in the file
  void Complete(Manifest& manifest);
  // False: the complete manifest does not list the op, and no rule in it emits the op.
  bool MayHave(fbx_op_kind kind, std::string_view op) const;
};
// The manifest at a path; by the index of its folder of plugins where that was made of this file.
class ManifestReader {
 public:
  // Without indexes, each manifest is parsed: a signature covers its text, and nothing else.
  explicit ManifestReader(bool indexed);
  ~ManifestReader();
  // With `rest`, the manifest may lack its text, rules, ops, and schemas.
  Result<Manifest> Read(const std::string& path, IndexedRest* rest = nullptr);

  Owners owners;  // of all that is read

 private:
  struct Row;
  struct Index;
  const Index& IndexOf(const std::string& folder);

  bool indexed_;
  std::map<std::string, Index> folders_;
};
// The file fusebox-plugins.index for these manifests.
std::string IndexText(const std::vector<Manifest>& manifests);
// Sets the paths of the libraries, and chooses one for this machine. `folder`: of the manifest, without
// links. Returns a library that has no path, and why.
struct Misplaced {
  size_t library;
  std::string why;
};
std::optional<Misplaced> PlaceLibraries(Manifest& manifest, const std::string& folder);
// The defaults of a schema of options (empty: no options). Nothing: they do not meet it.
std::optional<Attrs> DefaultsOf(const std::string& schema);
// The manifest of a linked-in plugin from its text: libraries are not read.
Result<Manifest> ParseManifest(std::string_view text);
// The manifest of a plugin that is named by its folder, because its own was not read.
Manifest UnreadManifest(const std::string& path);
// The same with the parts of an invalid manifest that can be read: the plugin's id and version, and the names
// of its ops and rules, so that messages about them name the plugin.
Manifest Salvage(const std::string& path);
// Parses the member "rewrite" of a rule, at `at` in the document. The schema has already validated it.
Result<DeclaredRewrite> ReadRewrite(const Document& document, const nlohmann::json& rewrite,
                                    const std::string& at);
// Same for the member "quantization" of an op.
Result<OpQuantization> ReadQuantization(const Document& document, const nlohmann::json& quantization,
                                        const std::string& at);
Result<Document> ParseConfigDocument(std::string name, std::string text);
// The member "delegates" of a configuration.
Result<std::vector<Config::Delegate>> ReadDelegates(const Document& document);
std::string EscapePointer(std::string_view token);

// The base of relative paths in a configuration file.
std::string FolderOf(const Config& config);

// Converts options between JSON and attributes. Lists hold values of one kind; null is an error: "/pointer:
// why".
struct OptionsError {
  std::string pointer, what;
};
std::expected<Attrs, OptionsError> AttrsFromJson(const nlohmann::json& object);
nlohmann::json JsonFromAttrs(const Attrs& attrs);

// Returns why this machine lacks the CPU features, or an empty string if it has all of them.
std::string MissingCpuFeature(const std::vector<std::string>& features);
std::string_view PlatformKey();  // "linux-x86_64"

// Plugin search.
struct Found {
  std::string manifest;  // path
  bool named = false;    // named by --plugin itself
};
struct SearchResult {
  std::vector<Found> found;           // in order of precedence
  std::vector<std::string> searched;  // folders; missing ones are marked
};
// Error: a --plugin that does not exist or is not a plugin.
Result<SearchResult> Search(const Config& config);
// The manifests in a folder of plugins, sorted. Error: there are none.
Result<std::vector<std::string>> ManifestsOf(const std::string& folder);

// The folder of plugins of this installation; several if its prefix is not certain.
std::vector<std::string> InstalledPlugins();

// The demands of the configuration, the user and the system. All of them hold: none relaxes another.
class Policy {
 public:
  // `files` need not exist. If one exists and is invalid, no plugin may run.
  static Result<Policy> Create(const Config& config, const std::vector<std::string>& files);
  // Returns why the plugin is denied, or an empty string. Built-in plugins need no allow entry, but obey
  // deny.
  std::string Denies(std::string_view id, bool built_in) const;
  struct Pin {
    std::string source;
    std::vector<std::string> hashes;
  };
  std::vector<Pin> PinsOf(const std::string& id) const;
  // Error: a key is required, and the manifest has no signature by it, or its library has no hash there.
  Status CheckSignature(const Manifest& manifest) const;
  bool RequiresSignatures() const;

 private:
  struct Lists {
    std::string source;
    std::vector<std::string> allow, deny;
    std::map<std::string, std::vector<std::string>> pins;
    std::vector<std::string> keys;
  };
  std::vector<Lists> lists_;
};
// Returns the system's file, and the user's if the environment is trusted and names one.
std::vector<std::string> PolicyFiles();

// Returns whether a plugin is in the folder of this installation and only root can replace it. A build makes
// no signatures, since these would differ between builds.
bool IsInstalledByRoot(const Manifest& manifest);
// The text of a manifest, signature, policy or configuration. Error: it is no regular file, or larger than
// 1 MB. Waits for nobody, and reads nothing else.
Result<std::string> ReadShortFile(const std::string& path);
Result<Buffer> MapShortFile(const std::string& path);
// All that holds for a plugin whose manifest was read, before its library is opened: owners of the library,
// signature, pins of a plugin without code.
Status CheckManifest(const Manifest& manifest, const Policy& policy, Owners& owners);
// The SHA-256 of a library must be one of these.
struct LibraryDemand {
  std::vector<std::string> hashes;
  std::string otherwise;  // the error text
};
// The libraries of a sealed plugin's own folder that its library needs, in the order of opening.
struct BundledLibrary {
  std::string path;
  LibraryDemand demand;
};
Result<std::vector<BundledLibrary>> BundledIn(const Manifest& manifest);
LibraryDemand SealedWith(const Manifest& manifest, const std::string& sha256);
std::vector<LibraryDemand> DemandsOf(const Manifest& manifest, const Policy& policy);
Status CheckDemands(const std::vector<LibraryDemand>& demands, const std::string& path,
                    const std::string& sha256);
Result<std::string> HashOfFile(const std::string& path);

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Descriptor();
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};
// A copy of a file in memory, which nobody can change.
struct PrivateCopy {
  Descriptor file;
  std::string path, sha256;  // the path is valid while the file is open
};
Result<PrivateCopy> CopyPrivately(const std::string& path);

// Returns whether a glob of an allow or deny list matches a plugin id.
bool Matches(const std::string& glob, const std::string& id);

// Returns the error text if a library file is shorter than its headers state (loading it could crash); else
// empty.
std::string CutOff(const Buffer& library);
// Reads the entry that a library of any machine exports; its pointers are meaningless. Returns false if it
// exports none.
bool ReadEntry(const Buffer& library, fbx_entry& entry);
std::string BuildId(const Buffer& library);  // in hexadecimal; empty: none
// Returns the machine of a library for another machine, else an empty string: dlopen ignores such a file as
// if it did not exist.
std::string ForeignMachine(const std::string& path);
// Returns the sanitizer that a library requires and this program lacks: loading it would end the process.
std::string ForeignSanitizer(const Buffer& library);
// The entry of a library, which is opened and stays open. Errors come from dlopen. With demands, a copy of
// the file is checked and opened, so that a file replaced meanwhile has no effect. The bundled libraries that
// it needs are treated alike.
Result<const fbx_entry*> OpenLibrary(const std::string& path, const std::vector<LibraryDemand>& demands = {},
                                     const std::vector<BundledLibrary>& bundled = {});
// Checks magic, versions, sizes, sanitizers, before code of the plugin runs.
Status CheckEntry(const fbx_entry& entry);
// The result of load, unchecked.
Result<const fbx_plugin*> CallLoad(const fbx_entry& entry, HostCall& host);
// Checks sizes, versions, names and functions of all structs of the plugin.
Status CheckPlugin(const fbx_plugin& plugin);
// Compares the manifest with the library; the error names the difference.
Status CompareWithManifest(const fbx_plugin& plugin, const Manifest& manifest);
// The manifest of a linked-in plugin, derived from its tables; without its ops, which AddOps adds.
Manifest ManifestOf(const fbx_plugin& plugin);
void AddOps(const fbx_plugin& plugin, Manifest& manifest);

}  // namespace fusebox
