// SPDX-License-Identifier: Apache-2.0
// The interface of recognizers. A recognizer is a function in a separate file and a row of recognizers.def.
// It reads a View and returns plain data in terms of the function's value numbers; recognize.cc edits the
// graph. So a recognizer of four plain ops names them, and nothing else.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converter/recognize/view.h"

namespace fusebox::converter::recognize {

struct Region {
  std::string composite;          // its name
  Attrs attrs;                    // and its attributes
  std::vector<ValueId> operands;  // values that the region reads; other constants belong to it
  std::vector<ValueId> results;   // values that it computes; no others of it may be read outside
  // Null: one composite with these operands and results, whose body are the nodes between them. Else the
  // first function replaces the region, with `operands` as inputs and `results` as outputs; the others are
  // what it refers to (Replacement builds it).
  std::unique_ptr<Module> replacement = nullptr;
};

// The region whose last (or only characteristic) node is `root`. No value: `root` is something else. Error:
// why a region that nearly matches does not; the reason becomes a note.
using Find = Result<std::optional<Region>> (*)(const View&, const Node& root);

struct Recognizer {
  enum When {
    kAlways,         // nothing else can run the op
    kForFusion,      // unless all composites are inlined
    kIfImplemented,  // as kForFusion, where a plugin has a rule for the composite
  };
  enum Where { kOutsideBodies, kEverywhere };  // bodies of composites
  std::string_view name;
  Op root;
  Find find;
  When when;
  Where where;
  std::string_view what;
};

#define FUSEBOX_RECOGNIZER(name, root, find, when, where, what) \
  Result<std::optional<Region>> find(const View&, const Node& root_node);
#include "converter/recognize/recognizers.def"
#undef FUSEBOX_RECOGNIZER

// Copies the nodes that compute `wanted` to the end of `body`, down to what is bound there; returns what
// `wanted` is there. Error: what else the region depends on.
struct Bindings {
  std::map<ValueId, ValueId> values;                           // grows by what is copied
  std::map<std::pair<const Node*, size_t>, ValueId> operands;  // of one node
};
Result<std::vector<ValueId>> CopyRegion(const View&, const std::vector<ValueId>& wanted, Bindings&,
                                        Function& body);

// Builds a region that is more than one composite over the region's own values.
class Replacement {
 public:
  explicit Replacement(const View&);
  const View& view() const { return view_; }
  Function& f() { return *region_.replacement->functions[0]; }
  ValueId Input(ValueId v);                        // a value of the viewed function
  void SetResult(ValueId result, ValueId by);      // of the viewed function; `by` is a value of f()
  Function& AddFunction(const std::string& name);  // the name is made unique
  Region Take() { return std::move(region_); }

 private:
  const View& view_;
  Region region_;
  std::map<ValueId, ValueId> inputs_;
};

// Puts the region's replacement in its place, which must be of the viewed function; returns the index of its
// last composite. Error: the region cannot be cut out; nothing is changed.
Result<size_t> ReplaceRegion(Module&, Function&, const View&, Region);

// Sets zero_output_for_mask of the function's composites that have a mask and no such attribute (functions of
// TensorFlow), from the loops in their bodies.
void CompleteMaskedComposites(const Module&, Function&, std::vector<std::string>& notes);

}  // namespace fusebox::converter::recognize
