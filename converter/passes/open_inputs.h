// SPDX-License-Identifier: Apache-2.0
// Advice on inputs of unknown size: which option fixes it.
#pragma once

#include <string>

#include "converter/passes/pass.h"

namespace fusebox::converter {

// Returns "fix the batch size (--batch N) or the input's shape (--shape x=N,28)", without options and inputs
// that are already set, or an empty string if all sizes are known.
std::string HowToFix(const Context&, const Signature&);
// Advice for the first signature with unknown sizes.
std::string HowToFix(const Context&);

}  // namespace fusebox::converter
