// SPDX-License-Identifier: Apache-2.0
// TensorFlow ops in TFLite's vocabulary: one function per op, gathered in tables by family.
//
// A translation looks at one OPAQUE node and emits nodes in its place. It may be asked several times: what it
// cannot say yet (an axis that is constant only after folding) it refuses with a reason, and the node stays
// opaque until the next round.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/eval/eval.h"
#include "host/graph/graph.h"

namespace fusebox::converter {

class Translation {
 public:
  Translation(Module& module, Function& function, Registry& registry, const Node& node)
      : module_(module),
        f_(function),
        registry_(registry),
        node_(node),
        results_(node.results.size(), kNoValue) {}

  const Node& node() const { return node_; }
  const Attrs& attrs() const { return node_.attrs; }
  size_t count() const { return node_.operands.size(); }
  ValueId in(size_t i) const { return node_.operands[i]; }
  const Type& type(ValueId v) const { return f_.value(v).type; }
  const Type& in_type(size_t i) const { return type(in(i)); }
  Status Arity(size_t n) const;

  // The operand's value as integers; a refusal when it is not constant (yet).
  Result<std::vector<int64_t>> Ints(size_t i) const;
  Result<int64_t> Int(size_t i) const;
  Result<double> Float(size_t i) const;  // the same of one f32 or f64
  Result<int> Rank(ValueId v) const;     // a refusal when unknown

  // Appends a node, infers its result types as far as they are known, and returns it (first result, for
  // Value).
  Node& Emit(Op op, std::vector<ValueId> operands, Attrs attrs = {}, size_t results = 1);
  ValueId Value(Op op, std::vector<ValueId> operands, Attrs attrs = {}) {
    return Emit(op, std::move(operands), std::move(attrs)).results[0];
  }
  // Of an op that takes the type of its result from the tensor, and whose kernel may be missing here.
  ValueId Typed(Op op, std::vector<ValueId> operands, Type type, Attrs attrs = {});
  // What gives a value, among the nodes before this one; null: an input or a constant.
  const Node* Producer(ValueId v) const;
  bool is_const(ValueId v) const { return f_.value(v).is_const(); }
  std::span<const float> Floats(ValueId v) const { return f_.value(v).data.As<float>(); }  // of a constant
  ValueId Const(const Tensor& tensor) { return f_.AddConst(tensor); }
  ValueId I32(std::vector<int32_t> values);  // 1-D
  ValueId I32Scalar(int32_t value);
  ValueId Scalar(DType dtype, double value);
  ValueId ShapeOf(ValueId v);         // its dims as 1-D i32, found when it runs where they are not known
  ValueId ToI32(ValueId v);           // an index or shape operand: i64 becomes i32
  ValueId Cast(ValueId v, DType to);  // v itself when it is of that type
  ValueId Transpose(ValueId v, std::vector<int32_t> perm) {
    return Value(Op::kTranspose, {v, I32(std::move(perm))});
  }

  // A result that the source node does not have is dropped.
  void Give(size_t result, ValueId v) {
    if (result < results_.size()) results_[result] = v;
  }
  const std::vector<ValueId>& results() const { return results_; }
  // Of another node in the same place, which outlives it.
  Translation Of(const Node& node) const { return {module_, f_, registry_, node}; }

 private:
  Module& module_;
  Function& f_;
  Registry& registry_;
  const Node& node_;
  std::vector<ValueId> results_;
};

using Translate = Status (*)(Translation&);
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
// All of them. No op is in two.
std::span<const std::span<const TranslateRow>> TranslationTables();
Translate FindTranslation(std::string_view op);  // null: unknown
// What `translate` does, in wider numbers where TFLite's op means something else by the operands' type.
Status TranslateWidened(Translate translate, Translation&);
// Of an op without a translation: why, and what its owner can do where that is known.
std::string WhyUntranslatable(std::string_view op);

}  // namespace fusebox::converter
