// SPDX-License-Identifier: Apache-2.0
// Expresses sizes that are known only at run time as functions of other sizes. Each kernel infers at several
// sizes, and the results show which size depends on which.
//
// Integers computed from shapes are followed in the same way, also through loops and branches: if the body of
// a loop returns a size unchanged, it is the size that the loop starts with.
#pragma once

#include <map>
#include <set>

#include "host/eval/sampled_node.h"

namespace fusebox {

struct SizeSymbol {
  ValueId value = kNoValue;  // a dimension of this value of the outermost function
  int64_t axis = 0;
  Sizes joined;  // or the broadcast of these sizes
  // Or a size that a loop changes: before and after it.
  std::optional<Size> start = {};
  std::optional<Size> end = {};
};

class OpenSizes {
 public:
  enum class Depth {
    kAll,      // every node, loops and branches
    kIntegers  // nodes that compute integers from shapes or use them; other dimensions stay
  };
  OpenSizes(Registry&, const Module&, const Function&, Depth);

  // Dims of a value of the function or of a called function; nothing if the rank is unknown.
  std::optional<Sizes> Dims(const Function&, ValueId);
  const SizeSymbol& symbol(const Size& s) const { return symbols_[static_cast<size_t>(s.symbol)]; }
  // The sizes in terms of the function's own dimensions, before or after the loop that changes them. Nothing
  // if one depends on anything else.
  std::optional<Sizes> Outside(const Sizes&, bool after);
  // Appends the values whose dimensions determine the size.
  void CollectValues(const Size&, std::set<ValueId>&) const;

 private:
  using Known = KnownSizes;
  using Frame = std::vector<Known>;

  friend int FoldShapes(Registry&, const Module&, Function&);

  void Walk(const Function&, Frame&);
  // Returns the dims of values that are padded to a size, some of which shrink where others grow: no kernel
  // infers at negative ones. Nothing for other nodes.
  std::optional<Sizes> Padded(const Function&, Frame&, const Node&);
  void Kernel(const Function&, Frame&, const Node&);
  bool FollowDims(const Function&, Frame&, const Node&, SampledNode&, bool shapes);
  bool FollowIntegers(const Function&, Frame&, const Node&, SampledNode&, bool labeled);
  void Loop(const Function&, Frame&, const Node&);
  void Branches(const Function&, Frame&, const Node&);
  const Function* Enter(const Node&, std::string_view attr);
  const Known& In(const Function&, Frame&, ValueId);
  Size Own(const Function&, ValueId, int64_t axis);
  Size Add(SizeSymbol);
  Size Join(const Sizes&);
  Size Of(const Fit&, const Sizes& symbols);

  Registry& registry_;
  const Module& module_;
  const Function& outermost_;
  const Depth depth_;
  SampledForms forms_;
  std::vector<SizeSymbol> symbols_;
  std::map<std::pair<ValueId, int64_t>, Size> own_;
  std::map<Sizes, Size> joins_;
  std::map<const Function*, Frame> frames_;
  std::map<const Function*, const Node*> entries_;
  std::set<const Function*> shared_;  // called from several places: nothing is known inside
  size_t nodes_ = 0;                  // walked, without the function's own
};

// Replaces integers by constants and refines dimensions if partly known shapes determine them. Returns the
// number of changes.
int FoldShapes(Registry&, const Module&, Function&);

}  // namespace fusebox
