// SPDX-License-Identifier: Apache-2.0
// Variables and tensor lists.
#include "converter/import/tables/translate.h"

namespace fusebox::converter {
namespace {

Status Read(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  t.Give(0, t.Value(Op::kReadVariable, {t.in(0)}));
  return {};
}

Status Assign(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  t.Emit(Op::kAssignVariable, {t.in(0), t.in(1)}, {}, 0);
  return {};
}

template <Op op>
Status Update(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  const ValueId old = t.Value(Op::kReadVariable, {t.in(0)});
  t.Emit(Op::kAssignVariable, {t.in(0), t.Value(op, {old, t.in(1)})}, {}, 0);
  return {};
}

Status ResourceGather(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  Attrs attrs;
  if (const int64_t batch = t.attrs().i64("batch_dims", 0)) {
    attrs.Set("axis", batch);
    attrs.Set("batch_dims", batch);
  }
  t.Give(0, t.Value(Op::kGather, {t.Value(Op::kReadVariable, {t.in(0)}), t.in(1)}, std::move(attrs)));
  return {};
}

Status VariableShape(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  Attrs attrs;
  const auto* type = std::get_if<DType>(t.attrs().Find("out_type"));
  attrs.Set("out_type", type ? *type : DType::kI32);
  t.Give(0, t.Value(Op::kShape, {t.Value(Op::kReadVariable, {t.in(0)})}, std::move(attrs)));
  return {};
}

// The list ops keep their operands; the element type travels as an attribute for the lowering.
template <Op op>
Status List(Translation& t) {
  Attrs attrs;
  if (const auto* type = std::get_if<DType>(t.attrs().Find("element_dtype")))
    attrs.Set("element_dtype", *type);
  Node& made = t.Emit(op, t.node().operands, std::move(attrs), t.results().size());
  for (size_t i = 0; i < made.results.size(); ++i) t.Give(i, made.results[i]);
  return {};
}

constexpr TranslateRow kTable[] = {
    {"ReadVariableOp", Read},
    {"AssignVariableOp", Assign},
    {"AssignAddVariableOp", Update<Op::kAdd>},
    {"AssignSubVariableOp", Update<Op::kSub>},
    {"ResourceGather", ResourceGather},
    {"VariableShape", VariableShape},
    {"TensorListReserve", List<Op::kTensorListReserve>},
    {"TensorListFromTensor", List<Op::kTensorListFromTensor>},
    {"TensorListStack", List<Op::kTensorListStack>},
    {"TensorListGetItem", List<Op::kTensorListGetItem>},
    {"TensorListSetItem", List<Op::kTensorListSetItem>},
    {"TensorListLength", List<Op::kTensorListLength>},
};

}  // namespace

std::span<const TranslateRow> StateTable() { return kTable; }

}  // namespace fusebox::converter
