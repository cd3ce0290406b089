// SPDX-License-Identifier: Apache-2.0
// If only the last item of a list is read (the last output of a layer), the item is replaced by the loop
// state with the same value. Then the list has no reader left and is removed from the loop.
#include "converter/passes/pass.h"
#include "converter/recognize/recognize.h"

namespace fusebox::converter {

Status ReadLastItems(Context& context) {
  std::vector<Function*> changed;
  for (const auto& f : context.module.functions) {
    const auto found = recognize::FindLastItems(context.module, *f);
    for (const auto& last : found) f->ReplaceUses(last.item, last.state);
    if (!found.empty()) changed.push_back(f.get());
  }
  if (changed.empty()) return {};
  for (Function* f : changed) RemoveDead(*f);
  FUSEBOX_TRY(SimplifyLoops(context));
  for (Function* f : changed) RemoveDead(*f);  // lists that no loop uses any more
  return {};
}

}  // namespace fusebox::converter
