// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/peer.h"

#include <cstdlib>
#include <filesystem>

namespace fusebox::testing {
namespace {

std::string Below(const char* variable, const std::string& name, std::string* why) {
  const char* const root = std::getenv(variable);
  if (!root || !*root) {
    *why = std::string(variable) + " is not set";
    return {};
  }
  const std::string path = std::string(root) + "/" + name;
  if (std::filesystem::exists(path)) return path;
  *why = std::string(variable) + " has no " + name;
  return {};
}

}  // namespace

std::string PeerFile(const std::string& name, std::string* why) {
  return Below("FUSEBOX_PEER_DIR", name, why);
}
std::string ModelFile(const std::string& name, std::string* why) {
  return Below("FUSEBOX_MODELS", name, why);
}
bool PeersRequired() {
  const char* const wanted = std::getenv("FUSEBOX_PEERS");
  return wanted && std::string_view(wanted) == "required";
}

}  // namespace fusebox::testing
