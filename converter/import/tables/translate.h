// SPDX-License-Identifier: Apache-2.0
// TensorFlow ops in TFLite's vocabulary: one function per op, gathered in tables by family.
//
// A translation looks at one OPAQUE node and emits nodes in its place. It may be tried several times: if
// something is missing yet (an axis that is constant only after folding), it fails with a reason, and the
// node stays opaque until the next round.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/graph/rewriter.h"
#include "host/plugin/registry.h"

namespace fusebox::converter {

class Translation;
using Translate = Status (*)(Translation&);

// One source node, its operands and results, and the rewriter that emits in its place.
class Translation : public Rewriter {
 public:
  // Translates the nodes that Each visits or SetSource sets.
  Translation(Module& module, Function& function, Registry& registry);
  // Translates one node, at the end of the function.
  Translation(Module& module, Function& function, Registry& registry, const Node& source);
  void SetSource(const Node& source);

  const Node& node() const { return *node_; }
  const Attrs& attrs() const { return node_->attrs; }
  Attrs Flags(std::initializer_list<const char*> names) const;  // the named attributes that are true
  size_t count() const { return node_->operands.size(); }
  ValueId in(size_t i) const { return node_->operands[i]; }
  const Type& in_type(size_t i) const { return type(in(i)); }
  Status Arity(size_t n) const;

  // The operand's value; an error if it is not constant (yet).
  Result<std::vector<int64_t>> Ints(size_t i) const;
  Result<int64_t> Int(size_t i) const;
  Result<double> Float(size_t i) const;  // f32 or f64
  Result<int> Rank(ValueId v) const;     // an error if unknown

  // A result that the source node does not have is dropped.
  void SetResult(size_t result, ValueId v) {
    if (result < results_.size()) results_[result] = v;
  }
  // The same of result 0, for the end of a translation.
  Status Return(ValueId v) {
    SetResult(0, v);
    return {};
  }
  const std::vector<ValueId>& results() const { return results_; }
  // The results of `translate` on another node in this one's place.
  Result<std::vector<ValueId>> Of(const Node& node, Translate translate);

  // An internal composite of these operands. `define` translates its body.
  ValueId Composite(std::string_view name, std::vector<ValueId> operands, Translate define);

  // The source as a custom op of the same name and attributes, by a plugin's kernel. An error: no kernel.
  Status AsCustomOp();

  // Visits each node as the source. A failure names the function and the node.
  Status Each(const std::function<Status(Node&)>& visit);

 private:
  Status Constant(size_t i) const;

  Module& module_;
  Registry& registry_;
  const Node* node_ = nullptr;
  std::vector<ValueId> results_;
};

struct TranslateRow {
  std::string_view op;
  Translate translate;
};

// One table per family, each in its own file.
std::span<const TranslateRow> ElementwiseTable();
std::span<const TranslateRow> ShapeTable();
std::span<const TranslateRow> MatrixTable();
std::span<const TranslateRow> VolumeTable();
std::span<const TranslateRow> StateTable();
std::span<const TranslateRow> BuiltinTable();
std::span<const TranslateRow> SuppressionTable();
std::span<const TranslateRow> ComposedTable();
std::span<const TranslateRow> EinsumTable();
std::span<const TranslateRow> FunctionTable();
std::span<const TranslateRow> BitTable();
std::span<const TranslateRow> SegmentTable();
std::span<const TranslateRow> FormTable();
std::span<const TranslateRow> RandomTable();
std::span<const TranslateRow> LookupRows();
std::span<const TranslateRow> ImageTable();
std::span<const TranslateRow> PatchTable();
std::span<const TranslateRow> CellTable();
// All of them. No op is in two.
std::span<const std::span<const TranslateRow>> TranslationTables();
Translate FindTranslation(std::string_view op);  // null: unknown
// Runs `translate`, in wider numbers where TFLite's op has another meaning for the operands' type.
Status TranslateWidened(Translate translate, Translation&);
// Translates the source by its row. Without a row, it becomes a custom op if a plugin has one of its name.
Status TranslateSource(Translation&);
bool HasTranslation(Registry&, std::string_view op);
// An attribute that the importer sets on a node without a translation whose outputs it cannot tell apart. It
// holds the reason. Files cannot set it, because the importer drops their attributes with an underscore.
constexpr const char* kUndefined = "_undefined";
// Returns why an op has no translation, and what its owner can do where that is known.
std::string WhyUntranslatable(std::string_view op);
// True for ops that compute gradients or apply them to variables.
bool IsTraining(std::string_view op);

}  // namespace fusebox::converter
