// SPDX-License-Identifier: Apache-2.0
// Recognition: regions of plain ops become composites with a name, which rules of plugins then fuse. The body
// of each composite is the region, so that a verification runs what the model contains.
#pragma once

#include <string>
#include <vector>

#include "host/graph/graph.h"
#include "host/plugin/registry.h"

namespace fusebox::converter::recognize {

struct Options {
  bool fuses = true;  // false (--composites inline): only ops that nothing else can run are replaced
};
// Runs all recognizers (recognizers.def) in order. `notes` receives why a region that nearly matches stays as
// it is.
Status Run(Module&, Registry&, const Options&, std::vector<std::string>& notes);

// Items of lists that a loop writes: `item` is the last one, and equals the loop's final `state`.
struct LastItem {
  ValueId item, state;
};
std::vector<LastItem> FindLastItems(const Module&, const Function&);

}  // namespace fusebox::converter::recognize
