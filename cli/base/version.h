// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace fusebox::cli {

// The text of --version: Fusebox, plugin ABI, file format, compiler, and the libraries of the build.
std::string VersionText();

}  // namespace fusebox::cli
