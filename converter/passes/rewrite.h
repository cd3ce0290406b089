// SPDX-License-Identifier: Apache-2.0
// The common shape of passes that replace nodes one by one.
#pragma once

#include <functional>

#include "converter/import/tables/translate.h"

namespace fusebox::converter {

// Looks at one node and may emit others in its place, giving every result. True: replaced. False: the node
// stays as it is, and what was emitted meanwhile is taken back.
using Rewrite = std::function<Result<bool>(Translation&)>;

// Offers every node of the function to `rewrite`, in order; operands are already the replaced ones. Returns
// how many went.
Result<int> RewriteNodes(Module&, Function&, Registry&, const Rewrite& rewrite);

// Source ops of one function in TFLite's vocabulary, as far as they go; returns how many were translated.
Result<int> TranslateFunction(Module&, Function&, Registry&);

}  // namespace fusebox::converter
