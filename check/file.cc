// SPDX-License-Identifier: Apache-2.0
// Group "file": facts of the library that make it unfit for a process that others share.
#include <algorithm>
#include <array>

#include "check/elf.h"
#include "check/tests.h"
#include "host/plugin/steps.h"

namespace fusebox::check {
namespace {

constexpr std::string_view kEntry = "fusebox_entry_v1";

// Set by the linker or the start files, not by the plugin's code.
bool IsLinkers(std::string_view name) {
  static constexpr std::string_view kNames[] = {"_init", "_fini", "_edata", "_end", "__bss_start"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

template <class Check>
Finding WithFacts(const Subject& subject, const Check& check) {
  if (subject.manifest.library.empty()) return NotTested("the plugin has no library for this machine");
  const auto facts = ReadElf(subject.manifest.library);
  return facts ? check(*facts) : Failed(facts.error().message);
}

std::string List(const std::vector<std::string>& names) {
  constexpr size_t kMost = 4;
  std::string text;
  for (size_t i = 0; i < std::min(kMost, names.size()); ++i) text += (i > 0 ? ", " : "") + names[i];
  if (names.size() > kMost) text += " and " + std::to_string(names.size() - kMost) + " more";
  return text;
}

Finding Exports(const Subject& subject) {
  return WithFacts(subject, [](const ElfFacts& facts) {
    std::vector<std::string> others;
    size_t weak = 0;
    size_t unique = 0;
    bool entry = false;
    for (const ElfFacts::Symbol& symbol : facts.exports) {
      if (symbol.name == kEntry) entry = true;
      else if (symbol.unique) ++unique;
      else if (symbol.weak) ++weak;
      else if (!IsLinkers(symbol.name)) others.push_back(symbol.name);
    }
    if (!entry)
      return Failed("it does not export " + std::string(kEntry) + "; define it with FUSEBOX_PLUGIN");
    if (!others.empty())
      return Failed("it also exports " + List(others) +
                    ", which another library may replace; compile with -fvisibility=hidden, or link with a "
                    "version script");
    if (weak + unique == 0) return Passed();
    return Passed("also " + std::to_string(weak) + " weak and " + std::to_string(unique) +
                  " unique symbols of templates; a version script hides them");
  });
}

Finding Needed(const Subject& subject) {
  return WithFacts(subject, [](const ElfFacts& facts) {
    for (const std::string& name : facts.needed) {
      if (name.starts_with("libfusebox"))
        return Failed("it needs " + name + "; a plugin links nothing of Fusebox, only headers");
      if (name.find('/') != std::string::npos)
        return Failed("it needs " + name + ", a path of the machine that built it; link by name");
      if (name.starts_with("libasan.") || name.starts_with("libtsan.") || name.starts_with("libubsan."))
        return Failed("it needs " + name + ", a sanitizer; build it without");
    }
    return Passed(facts.needed.empty() ? "none" : List(facts.needed));
  });
}

Finding Stack(const Subject& subject) {
  return WithFacts(subject, [](const ElfFacts& facts) {
    if (!facts.executable_stack) return Passed();
    return Failed("it makes the stacks of the process executable; link with -z noexecstack");
  });
}

Finding TextRelocations(const Subject& subject) {
  return WithFacts(subject, [](const ElfFacts& facts) {
    if (!facts.text_relocations) return Passed();
    return Failed("its code is changed when it is loaded (DT_TEXTREL); compile with -fPIC");
  });
}

Finding RunPath(const Subject& subject) {
  return WithFacts(subject, [](const ElfFacts& facts) {
    for (const std::string& path : facts.run_paths)
      if (!path.starts_with("$ORIGIN") && !path.starts_with("${ORIGIN}"))
        return Failed("its run path has \"" + path +
                      "\", a folder of the machine that built it; use $ORIGIN, or none");
    return Passed();
  });
}

constexpr std::array kFileTests = {
    Test{"file.exports", "exports fusebox_entry_v1 and nothing else", Test::Of::kFile, Exports},
    Test{"file.needed", "needs no library of Fusebox, of a sanitizer, or by its path", Test::Of::kFile,
         Needed},
    Test{"file.stack", "requires no executable stack", Test::Of::kFile, Stack},
    Test{"file.text", "has no text relocations", Test::Of::kFile, TextRelocations},
    Test{"file.runpath", "has no run path outside of its folder", Test::Of::kFile, RunPath},
};

}  // namespace

std::span<const Test> FileTests() { return kFileTests; }

}  // namespace fusebox::check
