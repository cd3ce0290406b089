// SPDX-License-Identifier: Apache-2.0
// Names of jobs that are files.
#pragma once

#include <string>
#include <vector>

namespace fusebox::bench {

// Returns the files without folders and endings; files of the same name keep as many folders as tell them
// apart.
std::vector<std::string> NamesOf(const std::vector<std::string>& files);

}  // namespace fusebox::bench
