// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share, in the order of the steps; everybody else includes plugin.h.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/plugin/plugin.h"

namespace fusebox {

// Why references within a JSON Schema cannot be followed: one leads nowhere, or back to itself, or they lead
// too deep. Empty: they can.
std::string UnsoundReference(const nlohmann::json& schema);

// A JSON Schema (draft 7, without references to other files). Immutable, any thread. A default one accepts
// everything.
class JsonSchema {
 public:
  // Error: why the text is no schema. `vendor_keys`: a pattern "^x-" in it is honored by RemoveVendorKeys.
  static Result<JsonSchema> Parse(std::string_view text, bool vendor_keys = false);

  struct Violation {
    std::string pointer;  // JSON pointer to the offending value or key
    std::string what;     // "unknown key \"verison\"; did you mean \"version\"?"
  };
  std::optional<Violation> Check(const nlohmann::json& value) const;
  // Takes out the keys x-... where the schema admits them.
  void RemoveVendorKeys(nlohmann::json& value) const;
  // Gives absent properties the default that the schema states, in nested objects too.
  void FillDefaults(nlohmann::json& value) const;
  // Makes relative paths absolute, from `folder` on: strings whose schema says "format": "path". In an
  // "anyOf", the first alternative that says so or has an "enum" with the value decides.
  void ResolvePaths(nlohmann::json& value, const std::string& folder) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// What the condition "when" of a rule asks of a composite's attributes: each that it names is there and meets
// its schema.
Result<JsonSchema> ParseWhen(const std::string& when);

// Files that a person wrote: parsed, checked against one of the schemas of sdk/schema, vendor keys removed.
struct Document {
  std::string name, text;
  nlohmann::json value;
  // An error that names file, line and column of what the pointer leads to.
  std::unexpected<Error> Complain(std::string_view pointer, std::string_view what) const;
};
Result<Document> ReadManifestDocument(const std::string& path);
// The member "rewrite" of a rule, which stands at `at` in the document. The schema has checked the form.
Result<DeclaredRewrite> ReadRewrite(const Document& document, const nlohmann::json& rewrite,
                                    const std::string& at);
Result<Document> ReadConfigDocument(const std::string& path);
std::string EscapePointer(std::string_view token);

// Where relative paths in a configuration file lead from.
std::string FolderOf(const Config& config);

// Options in JSON and as attributes. Lists hold values of one kind; null is refused. Error: "/pointer: why".
struct OptionsError {
  std::string pointer, what;
};
std::expected<Attrs, OptionsError> AttrsFromJson(const nlohmann::json& object);
nlohmann::json JsonFromAttrs(const Attrs& attrs);

// Why this machine cannot run code that needs these CPU features; empty: it can.
std::string MissingCpuFeature(const std::vector<std::string>& features);
std::string_view PlatformKey();  // "linux-x86_64"

// Where plugins are looked for.
struct Found {
  std::string manifest;  // path
  bool named = false;    // by --plugin, on its own
};
struct SearchResult {
  std::vector<Found> found;           // in order of precedence
  std::vector<std::string> searched;  // folders, with a remark where one is missing
};
// Error: a --plugin that is not there, or is no plugin.
Result<SearchResult> Search(const Config& config);

// The user's lists and those of the system, which the user cannot loosen.
class Policy {
 public:
  // `system_file` need not exist; when it does and is wrong, nothing may run.
  static Result<Policy> Create(const Config& config, const std::string& system_file);
  // Why the plugin may not be used; empty: it may. Built-in plugins need no leave, but obey deny.
  std::string Denies(std::string_view id, bool built_in) const;

 private:
  struct Lists {
    std::string source;
    std::vector<std::string> allow, deny;
  };
  std::vector<Lists> lists_;
};

// Whether a plugin's id is one of those that a glob of an allow or deny list stands for.
bool Matches(const std::string& glob, const std::string& id);

// That a library's file is shorter than its headers say, as a sentence: code that is not there ends the
// process; empty: it is not.
std::string CutOff(const std::string& path);
// The machine that a library is for, unless it is this one: dlopen passes over such a file as if it were not
// there.
std::string ForeignMachine(const std::string& path);
// The sanitizer whose runtime a library needs and this program lacks: loading it would end the process.
std::string ForeignSanitizer(const std::string& path);
// The entry of a library, opened if it is not yet open (then it stays so). Errors are dlopen's own words.
Result<const fbx_entry*> OpenLibrary(const std::string& path);
// Magic, versions, sizes, sanitizers: all that is known before code of the plugin runs.
Status CheckEntry(const fbx_entry& entry);
// What load gives; none of it is checked yet.
Result<const fbx_plugin*> CallLoad(const fbx_entry& entry, HostCall& host);
// Sizes, versions, names and functions of every struct that the plugin leads to.
Status CheckPlugin(const fbx_plugin& plugin);
// The manifest's promises against what the library has; the error names the difference.
Status CompareWithManifest(const fbx_plugin& plugin, const Manifest& manifest);
// What a manifest of this plugin would say, for the plugins that are linked in.
Manifest ManifestOf(const fbx_plugin& plugin);

}  // namespace fusebox
