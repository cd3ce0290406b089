// SPDX-License-Identifier: Apache-2.0
// Variables, in-place updates and tensor lists.
#include "converter/import/tables/translate.h"

namespace fusebox::converter {
namespace {

Status Read(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  return t.Return(t.Value(Op::kReadVariable, {t.in(0)}));
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
  return t.Return(t.Value(Op::kGather, {t.Value(Op::kReadVariable, {t.in(0)}), t.in(1)}, std::move(attrs)));
}

Status VariableShape(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  Attrs attrs;
  const auto* type = std::get_if<DType>(t.attrs().Find("out_type"));
  attrs.Set("out_type", type ? *type : DType::kI32);
  return t.Return(t.Value(Op::kShape, {t.Value(Op::kReadVariable, {t.in(0)})}, std::move(attrs)));
}

// List ops keep their operands; the element type becomes an attribute for lower-lists.
template <Op op>
Status List(Translation& t) {
  if (t.results().size() != 1)
    return Invalid("it has " + std::to_string(t.results().size()) + " results, expected 1");
  Attrs attrs;
  if (const auto* type = std::get_if<DType>(t.attrs().Find("element_dtype")))
    attrs.Set("element_dtype", *type);
  if (t.attrs().b("resize_if_index_out_of_bounds", false)) attrs.Set("resize_if_index_out_of_bounds", true);
  Node& made = t.Emit(op, t.node().operands, std::move(attrs), t.results().size());
  for (size_t i = 0; i < made.results.size(); ++i) t.SetResult(i, made.results[i]);
  return {};
}

// An empty list that grows.
Status EmptyList(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  const auto* const type = std::get_if<DType>(t.attrs().Find("element_dtype"));
  Attrs attrs;
  if (type) attrs.Set("element_dtype", *type);
  return t.Return(t.Typed(Op::kTensorListReserve, {t.in(0), t.I32Scalar(0)},
                          {DType::kVariant, Shape::Scalar()}, std::move(attrs)));
}

Status PushBack(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  const ValueId length = t.Typed(Op::kTensorListLength, {t.in(0)}, {DType::kI32, Shape::Scalar()});
  return t.Return(t.Typed(Op::kTensorListSetItem, {t.in(0), length, t.in(1)},
                          {DType::kVariant, Shape::Scalar()},
                          MakeAttrs("resize_if_index_out_of_bounds", true)));
}

ValueId Stacked(Translation& t, ValueId element_shape) {
  Attrs attrs;
  const auto* const type = std::get_if<DType>(t.attrs().Find("element_dtype"));
  if (type) attrs.Set("element_dtype", *type);
  return t.Typed(Op::kTensorListStack, {t.in(0), element_shape}, {type ? *type : DType::kNone, Shape()},
                 std::move(attrs));
}

// The concatenated items and the number of rows of each.
Status ConcatList(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  const ValueId stacked = Stacked(t, t.in(1));
  const ValueId shape = t.ShapeOf(stacked);
  const ValueId rows = t.Slice(shape, {1}, {1});
  const ValueId rest = t.Slice(shape, {2}, {-1});
  t.SetResult(0, t.Value(Op::kReshape, {stacked, t.Value(Op::kConcatenation, {t.I32({-1}), rest})}));
  const ValueId count = t.Slice(shape, {0}, {1});
  t.SetResult(1, t.Cast(t.Value(Op::kFill, {count, t.Reshape(rows, {})}), DType::kI64));
  return {};
}

Status GatherList(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  return t.Return(t.Value(Op::kGather, {Stacked(t, t.in(2)), t.in(1)}));
}

Status Empty(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  const auto* type = std::get_if<DType>(t.attrs().Find("dtype"));
  if (!type) return Invalid("it does not say of what type it is");
  return t.Return(t.Value(Op::kFill, {t.ToI32(t.in(0)), t.Scalar(*type, 0)}));
}

// Replaces row `number` (negative: from the end) of the dense tensor `x` by `row`, which has the rank of x
// and one row.
ValueId WithRow(Translation& t, ValueId x, ValueId number, ValueId row, int rank) {
  const ValueId shape = t.ShapeOf(x);
  const ValueId rows = t.Slice(shape, {0}, {1});
  ValueId start = t.Value(Op::kFloorMod, {number, rows});
  if (rank > 1)
    start =
        t.Value(Op::kConcatenation, {start, t.I32(std::vector<int32_t>(static_cast<size_t>(rank) - 1, 0))});
  return t.Value(Op::kDynamicUpdateSlice, {x, row, start});
}

// x with rows v[k] at indices i[k]. In TensorFlow the update in place only saves a copy.
Status InplaceUpdate(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  FUSEBOX_ASSIGN(const int rank,
                 t.Rank(t.in(2)));  // same rank as x, which may not be known yet for a loop variable
  FUSEBOX_ASSIGN(const int indices, t.Rank(t.in(1)));
  constexpr int64_t kMost = 64;
  const int64_t count = indices == 1 ? t.in_type(1).shape[0] : -1;
  if (rank < 1 || indices != 1) return Invalid("its row numbers are not a list");
  if (count < 0) return Unsupported("the number of rows it writes is not known");
  if (count > kMost) return Unsupported("it writes more than " + std::to_string(kMost) + " rows");
  ValueId x = t.in(0);
  const ValueId numbers = t.ToI32(t.in(1));
  for (int32_t k = 0; k < count; ++k) {
    if (count == 1) {
      x = WithRow(t, x, numbers, t.in(2), rank);
      continue;
    }
    std::vector<int32_t> begin(static_cast<size_t>(rank), 0);
    std::vector<int32_t> size(static_cast<size_t>(rank), -1);
    begin[0] = k;
    size[0] = 1;
    const ValueId row = t.Slice(t.in(2), begin, size);
    x = WithRow(t, x, t.Slice(numbers, {k}, {1}), row, rank);
  }
  return t.Return(x);
}

Status DeepCopy(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  return t.Return(t.in(0));
}

}  // namespace

std::span<const TranslateRow> StateTable() {
  static constexpr TranslateRow kTable[] = {
      {"ReadVariableOp", Read},
      {"AssignVariableOp", Assign},
      {"AssignAddVariableOp", Update<Op::kAdd>},
      {"AssignSubVariableOp", Update<Op::kSub>},
      {"ResourceGather", ResourceGather},
      {"VariableShape", VariableShape},
      {"Empty", Empty},
      {"InplaceUpdate", InplaceUpdate},
      {"DeepCopy", DeepCopy},
      {"EmptyTensorList", EmptyList},
      {"TensorListPushBack", PushBack},
      {"TensorListConcatV2", ConcatList},
      {"TensorListGather", GatherList},
      {"TensorListReserve", List<Op::kTensorListReserve>},
      {"TensorListFromTensor", List<Op::kTensorListFromTensor>},
      {"TensorListStack", List<Op::kTensorListStack>},
      {"TensorListGetItem", List<Op::kTensorListGetItem>},
      {"TensorListSetItem", List<Op::kTensorListSetItem>},
      {"TensorListLength", List<Op::kTensorListLength>},
  };
  return kTable;
}

}  // namespace fusebox::converter
