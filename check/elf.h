// SPDX-License-Identifier: Apache-2.0
// Facts of an ELF shared library, read from the file without loading it. The file is untrusted.
#pragma once

#include <string>
#include <vector>

#include "host/base/status.h"

namespace fusebox::check {

struct ElfFacts {
  struct Symbol {
    std::string name;
    bool weak = false;    // such as instances of templates
    bool unique = false;  // STB_GNU_UNIQUE: the library stays mapped after dlclose
  };
  std::vector<Symbol> exports;
  std::string soname;                  // DT_SONAME
  std::vector<std::string> needed;     // DT_NEEDED
  std::vector<std::string> run_paths;  // parts of DT_RUNPATH and DT_RPATH
  bool executable_stack = false;
  bool text_relocations = false;
};

// Error: no ELF file for 64 bits, or a part that the headers refer to is outside of the file.
Result<ElfFacts> ReadElf(const std::string& path);

}  // namespace fusebox::check
