// SPDX-License-Identifier: Apache-2.0
// The common shape of passes that replace nodes one by one.
#pragma once

#include <functional>

#include "converter/import/tables/translate.h"

namespace fusebox::converter {

// Looks at one node and may emit others in its place and set every result. Returns true if it replaced the
// node. Otherwise the node stays as it is, and emitted nodes are taken back.
using Rewrite = std::function<Result<bool>(Translation&)>;

// Calls `rewrite` with every node of the function, in order; operands are already the replaced ones. Returns
// the number of replaced nodes.
Result<int> RewriteNodes(Module&, Function&, Registry&, const Rewrite& rewrite);

// Translates source ops of one function, as far as possible. Returns the number of translated nodes.
Result<int> TranslateFunction(Module&, Function&, Registry&);

}  // namespace fusebox::converter
