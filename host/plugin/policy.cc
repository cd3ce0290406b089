// SPDX-License-Identifier: Apache-2.0
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>

#include "host/plugin/crypto.h"
#include "host/plugin/seal.h"
#include "host/plugin/steps.h"

namespace fusebox {
namespace {

const std::string* FirstMatch(const std::vector<std::string>& globs, const std::string& id) {
  for (const std::string& glob : globs) {
    if (Matches(glob, id)) return &glob;
  }
  return nullptr;
}

// A link that leads nowhere is a policy, which cannot be read.
bool IsAbsent(const std::filesystem::path& file) {
  using std::filesystem::file_type;
  std::error_code error;
  std::filesystem::path at;
  for (const std::filesystem::path& part : file) {
    at /= part;
    const file_type type = symlink_status(at, error).type();
    if (type == file_type::not_found) return true;
    if (type == file_type::symlink && status(at, error).type() == file_type::not_found) return false;
  }
  return false;
}

Result<Config> ReadPolicy(const std::string& file) {
  constexpr std::string_view kKeys[] = {"allow", "deny", "pins", "require_signed", "$schema"};
  FUSEBOX_TRY(Owners().Check(file, file, "this policy").At(file));
  auto text = ReadShortFile(file);
  if (!text)
    return IoError(text.error().message + "; no plugin runs under a policy that cannot be read: make it a " +
                   "file that you can read (chmod +r), or remove it" +
                   (file == UserPolicyFile() ? ", or set XDG_CONFIG_HOME to another folder" : ""));
  FUSEBOX_ASSIGN(const Document document, ParseConfigDocument(file, *text));
  for (const auto& [key, value] : document.value.items()) {
    if (std::ranges::find(kKeys, key) == std::end(kKeys))
      return document.Complain("/" + EscapePointer(key),
                               "a policy has only the keys \"allow\", \"deny\", \"pins\" and "
                               "\"require_signed\"");
  }
  return ParseConfig(file, *std::move(text));
}

}  // namespace

bool Matches(const std::string& glob, const std::string& id) {
  return fnmatch(glob.c_str(), id.c_str(), 0) == 0;
}

Result<Policy> Policy::Create(const Config& config, const std::vector<std::string>& files) {
  Policy policy;
  const auto add = [&](const std::string& source, const Config& from) {
    policy.lists_.push_back({.source = source,
                             .allow = from.allow,
                             .deny = from.deny,
                             .pins = from.pins,
                             .keys = from.require_signed});
  };
  add(config.path.empty() ? "the configuration" : config.path, config);
  for (const std::string& file : files) {
    if (IsAbsent(file)) continue;
    FUSEBOX_ASSIGN(const Config stated, ReadPolicy(file));
    add(file, stated);
  }
  return policy;
}

std::vector<Policy::Pin> Policy::PinsOf(const std::string& id) const {
  std::vector<Pin> pins;
  for (const Lists& lists : lists_) {
    if (const auto found = lists.pins.find(id); found != lists.pins.end())
      pins.push_back({lists.source, found->second});
  }
  return pins;
}

bool Policy::RequiresSignatures() const {
  return std::ranges::any_of(lists_, [](const Lists& lists) { return !lists.keys.empty(); });
}

Status Policy::CheckSignature(const Manifest& manifest) const {
  constexpr size_t kSignatureBytes = 64;
  const std::string file = manifest.path + ".sig";
  for (const Lists& lists : lists_) {
    if (lists.keys.empty() || IsInstalledByRoot(manifest)) continue;
    const auto signature = ReadShortFile(file);
    if (!signature)
      return Invalid("it is not signed, which \"require_signed\" of " + lists.source + " demands (" +
                     signature.error().message + "); have it signed with one of these keys");
    bool good = false;
    for (size_t i = 0; i < lists.keys.size() && !good && signature->size() == kSignatureBytes; ++i) {
      FUSEBOX_ASSIGN(good, VerifySignature(lists.keys[i], manifest.text, *signature));
    }
    if (!good)
      return Invalid(file + ": it is not a signature of this manifest by a key of \"require_signed\" of " +
                     lists.source + "; install the plugin again, or have it signed with one of these keys");
    const ManifestLibrary* const chosen = manifest.Chosen();
    if (chosen != nullptr && chosen->sha256.empty())
      return Invalid("its manifest is signed, but not sealed, so " + chosen->path +
                     " may be any library; run fusebox plugin seal " + manifest.path +
                     ", then sign it again");
  }
  return {};
}

std::string Policy::Denies(std::string_view id, bool built_in) const {
  const std::string text(id);
  for (const Lists& lists : lists_) {
    if (const std::string* glob = FirstMatch(lists.deny, text))
      return lists.source + " denies \"" + *glob + "\"";
    if (!built_in && !lists.allow.empty() && !FirstMatch(lists.allow, text))
      return lists.source + ": not in its \"allow\" list";
  }
  return {};
}

}  // namespace fusebox
