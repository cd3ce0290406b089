// SPDX-License-Identifier: Apache-2.0
// TensorFlow ops as TFLite ops: one function per op, in tables by family.
//
// A translation reads one OPAQUE node and emits the nodes that replace it. It may run several times: if an
// operand is not constant yet (an axis before constant folding), it declines with a reason, and the node
// stays opaque until the next round.
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

  // The operand's value as integers; declines if it is not constant (yet).
  Result<std::vector<int64_t>> Ints(size_t i) const;
  Result<int64_t> Int(size_t i) const;
  Result<double> Float(size_t i) const;  // the same for one f32 or f64
  Result<int> Rank(ValueId v) const;     // declines if unknown

  // Appends a node, infers its result types as far as possible, and returns it (Value: its first result).
  Node& Emit(Op op, std::vector<ValueId> operands, Attrs attrs = {}, size_t results = 1);
  ValueId Value(Op op, std::vector<ValueId> operands, Attrs attrs = {}) {
    return Emit(op, std::move(operands), std::move(attrs)).results[0];
  }
  // For an op whose result type is that of the tensor, and whose kernel may be missing here.
  ValueId Typed(Op op, std::vector<ValueId> operands, Type type, Attrs attrs = {});
  // The node before this one that produces a value; null: an input or a constant.
  const Node* Producer(ValueId v) const;
  bool is_const(ValueId v) const { return f_.value(v).is_const(); }
  std::span<const float> Floats(ValueId v) const { return f_.value(v).data.As<float>(); }  // of a constant
  ValueId Const(const Tensor& tensor) { return f_.AddConst(tensor); }
  ValueId I32(std::vector<int32_t> values);  // 1-D
  ValueId I32Scalar(int32_t value);
  ValueId Scalar(DType dtype, double value);
  ValueId ShapeOf(ValueId v);         // its dims as 1-D i32, computed at run time if unknown
  ValueId ToI32(ValueId v);           // an index or shape operand: i64 becomes i32
  ValueId Cast(ValueId v, DType to);  // v itself if it has that type
  ValueId Transpose(ValueId v, std::vector<int32_t> perm) {
    return Value(Op::kTranspose, {v, I32(std::move(perm))});
  }

  // Sets a result; ignored if the source node does not have it.
  void Give(size_t result, ValueId v) {
    if (result < results_.size()) results_[result] = v;
  }
  const std::vector<ValueId>& results() const { return results_; }
  // For another node in the same place, which must outlive the copy.
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
// All tables. No op is in two.
std::span<const std::span<const TranslateRow>> TranslationTables();
Translate FindTranslation(std::string_view op);  // null: unknown
// Runs `translate` in a wider dtype if the TFLite op behaves differently for the operands' dtype.
Status TranslateWidened(Translate translate, Translation&);
// For an op without a translation: the reason, and advice if there is any.
std::string WhyUntranslatable(std::string_view op);

}  // namespace fusebox::converter
