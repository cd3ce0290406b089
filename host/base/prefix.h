// SPDX-License-Identifier: Apache-2.0
// Prefixes of this installation ("/usr/local"), below which plugins and helper programs are searched, first
// to last: the prefix of libfusebox.so, of the running program, and the configured one. The second is left
// out in a privileged process, because another user may have linked the program.
#pragma once

#include <string>
#include <vector>

#include "host/base/status.h"

namespace fusebox {

std::vector<std::string> InstallPrefixes();
// The path of a program in libexec/fusebox. Error: it is missing, with the paths tried.
Result<std::string> FindHelperProgram(const std::string& name);
// Paths of a library of this installation ("libx.so.0"), first to last: beside the library of this code,
// unless the process is privileged, then in the prefixes.
std::vector<std::string> LibraryPaths(const std::string& file);

}  // namespace fusebox
