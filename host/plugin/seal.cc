// SPDX-License-Identifier: Apache-2.0
#include "host/plugin/seal.h"

#include <filesystem>

#include "host/plugin/crypto.h"
#include "host/plugin/steps.h"

namespace fusebox {

std::string_view Name(Seal seal) {
  switch (seal) {
    case Seal::kNone: return "-";
    case Seal::kUnsealed: return "unsealed";
    case Seal::kSealed: return "sealed";
    case Seal::kAltered: return "altered";
  }
  return "unknown";
}

Result<Seal> SealOf(const Manifest& manifest) {
  const ManifestLibrary* const chosen = manifest.Chosen();
  if (chosen == nullptr) return Seal::kNone;
  if (chosen->sha256.empty()) return Seal::kUnsealed;
  FUSEBOX_ASSIGN(std::vector<BundledLibrary> libraries, BundledIn(manifest));
  libraries.push_back({chosen->path, SealedWith(manifest, chosen->sha256)});
  for (const auto& [path, demand] : libraries) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return Seal::kAltered;
    FUSEBOX_ASSIGN(const std::string sha256, HashOfFile(path));
    if (!CheckDemands({demand}, path, sha256)) return Seal::kAltered;
  }
  return Seal::kSealed;
}

Result<std::vector<std::string>> PinOf(const Manifest& manifest) {
  std::vector<std::string> hashes;
  for (const ManifestLibrary& library : manifest.libraries) {
    std::error_code error;
    if (!std::filesystem::exists(library.path, error)) continue;
    FUSEBOX_ASSIGN(hashes.emplace_back(), HashOfFile(library.path));
  }
  if (manifest.libraries.empty()) {
    FUSEBOX_ASSIGN(hashes.emplace_back(), Sha256(std::as_bytes(std::span(manifest.text))));
  }
  return hashes;
}

Result<LibraryFacts> FactsOfLibrary(const std::string& path) {
  FUSEBOX_ASSIGN(const Buffer file, MapFile(path));
  if (const std::string why = CutOff(file); !why.empty()) return Invalid(path + ": " + why);
  LibraryFacts facts;
  FUSEBOX_ASSIGN(facts.sha256, Sha256(file.bytes()));
  facts.build_id = BuildId(file);
  fbx_entry entry;
  if (!ReadEntry(file, entry) || entry.magic != FBX_ENTRY_MAGIC)
    return Invalid(
        path + ": it exports no fusebox_entry_v1: it is not a Fusebox plugin; define it with FUSEBOX_PLUGIN");
  facts.abi_major = entry.major;
  facts.abi_minor = entry.minor;
  facts.min_host_minor = entry.min_host_minor;
  return facts;
}

}  // namespace fusebox
