// SPDX-License-Identifier: Apache-2.0
// Hashes of a plugin's files: `fusebox plugin seal` and `pin` write them, `list` shows them.
// SECURITY.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/plugin/registry.h"

namespace fusebox {

// Facts that `seal` states of a library file of any machine; no code of it runs. Error: it is no plugin.
struct LibraryFacts {
  std::string sha256, build_id;  // in hexadecimal; no build id: empty
  uint32_t abi_major = 0;
  uint32_t abi_minor = 0;
  uint32_t min_host_minor = 0;
};
Result<LibraryFacts> FactsOfLibrary(const std::string& path);

// The library for this machine beside the hash in its manifest. kNone: the plugin has no library for it.
enum class Seal { kNone, kUnsealed, kSealed, kAltered };
std::string_view Name(Seal);
Result<Seal> SealOf(const Manifest& manifest);

// Returns the hashes that pin a plugin: of its libraries that exist; without code, of its manifest.
Result<std::vector<std::string>> PinOf(const Manifest& manifest);
// Returns $XDG_CONFIG_HOME/fusebox/policy.json, or an empty string if no trusted environment names it.
std::string UserPolicyFile();

}  // namespace fusebox
