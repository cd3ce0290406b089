// SPDX-License-Identifier: Apache-2.0
// Advice on inputs whose sizes are open: which option fixes what.
#pragma once

#include <string>

#include "converter/passes/pass.h"

namespace fusebox::converter {

// "fix the batch size (--batch N) or the input's shape (--shape x=N,28)", as far as options are left that do
// it: --batch is not named where it was given, nor an input that is fixed. Empty: none is open.
std::string HowToFix(const Context&, const Signature&);
// That of the first signature that has any.
std::string HowToFix(const Context&);

}  // namespace fusebox::converter
