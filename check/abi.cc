// SPDX-License-Identifier: Apache-2.0
// Group "abi": hosts of other versions, and hosts without optional extensions.
#include <array>

#include "check/workload.h"
#include "host/plugin/steps.h"

namespace fusebox::check {
namespace {

static_assert(FBX_ABI_MINOR <= 1, "Conditions::Abi needs a version between the oldest and that of this host");

// Runs all models under the conditions and compares with the plain runs.
Finding AsInThisHost(const Subject& subject, const Conditions& conditions, double rtol) {
  if (const auto rig = Rig::Create(subject.manifest, subject.options.config, conditions); !rig)
    return Failed(rig.error().message);
  size_t compared = 0;
  for (const std::string& path : subject.models) {
    Subject of_model = subject;
    of_model.model = path;
    for (const bool delegates : {false, true}) {
      if (delegates && subject.manifest.delegates.empty()) continue;
      const RunOptions run{.delegates = delegates, .seed = subject.options.seed};
      // Invokes of the plugin.
      size_t here = 0;
      size_t there = 0;
      const auto plain = RunUnder(of_model, {}, run, &here);
      if (!plain) continue;  // other tests report it
      const auto outputs = RunUnder(of_model, conditions, run, &there);
      if (!outputs) return Failed(path + ": " + outputs.error().message);
      if (here != there)
        return Failed(path + ": the plugin is invoked " + std::to_string(there) + " times, but " +
                      std::to_string(here) + " times in this host");
      if (const std::string where = DifferenceOf(*plain, *outputs, rtol, 1); !where.empty())
        return Failed(path + ": the results differ from those in this host: " + where);
      ++compared;
    }
  }
  return Passed(compared == 0 ? "load only: no model" : "");
}

Finding Oldest(const Subject& subject) { return AsInThisHost(subject, {.abi = Conditions::Abi::kOldest}, 0); }
Finding Newer(const Subject& subject) { return AsInThisHost(subject, {.abi = Conditions::Abi::kNewer}, 0); }
Finding Extensions(const Subject& subject) {
  return AsInThisHost(subject, {.optional_extensions = false}, 1e-3);
}

Finding MinMinor(const Subject& subject) {
  if (subject.manifest.library.empty()) return NotTested("the plugin has no library for this machine");
  const auto entry = OpenLibrary(subject.manifest.library);
  if (!entry) return Failed(entry.error().message);
  const auto stated = static_cast<uint32_t>(subject.manifest.abi_min_minor);
  if ((*entry)->min_host_minor != stated)
    return Failed("the library requires plugin ABI 1." + std::to_string((*entry)->min_host_minor) +
                  ", the manifest states 1." + std::to_string(stated) + "; correct abi.min_minor");
  return Passed();
}

constexpr std::array kAbiTests = {
    Test{"abi.min_minor", "library and manifest state the same oldest ABI", Test::Of::kPlugin, MinMinor},
    Test{"abi.oldest", "works with structs of ABI 1.0", Test::Of::kPlugin, Oldest},
    Test{"abi.newer", "works with longer structs of a newer minor version", Test::Of::kPlugin, Newer},
    Test{"abi.extensions", "works without the extensions that its manifest marks as optional",
         Test::Of::kPlugin, Extensions},
};

}  // namespace

std::span<const Test> AbiTests() { return kAbiTests; }

}  // namespace fusebox::check
