// SPDX-License-Identifier: Apache-2.0
#include "converter/import/tables/translate.h"

namespace fusebox::converter {
namespace {

Attrs With(const char* name, AttrValue value) {
  Attrs attrs;
  attrs.Set(name, std::move(value));
  return attrs;
}

// Operand 1 is a shape, an axis, a permutation or paddings, which TFLite requires as i32.
template <Op op>
Status WithIndex(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  return t.Return(t.Value(op, {t.in(0), t.ToI32(t.in(1))}));
}

template <Op op>
Status WithTwoIndices(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  return t.Return(t.Value(op, {t.in(0), t.ToI32(t.in(1)), t.ToI32(t.in(2))}));
}

template <Op op>
Status Plain(Translation& t) {
  return t.Return(t.Value(op, t.node().operands));
}

Status Squeeze(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  Attrs attrs;
  if (const auto dims = t.attrs().i64s("squeeze_dims"); !dims.empty()) attrs.Set("squeeze_dims", dims);
  return t.Return(t.Value(Op::kSqueeze, {t.in(0)}, std::move(attrs)));
}

Status Concat(Translation& t) {
  if (t.count() < 2) return Invalid("it has no operands");
  FUSEBOX_ASSIGN(const int64_t axis, t.Int(t.count() - 1));
  const std::vector<ValueId> parts(t.node().operands.begin(), t.node().operands.end() - 1);
  return t.Return(parts.size() == 1 ? parts[0] : t.Value(Op::kConcatenation, parts, With("axis", axis)));
}

Status SetResults(Translation& t, const Node& made) {
  for (size_t i = 0; i < made.results.size(); ++i) t.SetResult(i, made.results[i]);
  return {};
}

Status Split(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  const size_t n = t.results().size();
  return SetResults(
      t, t.Emit(Op::kSplit, {t.ToI32(t.in(0)), t.in(1)}, With("num_splits", static_cast<int64_t>(n)), n));
}

Status SplitV(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  const size_t n = t.results().size();
  return SetResults(t, t.Emit(Op::kSplitV, {t.in(0), t.ToI32(t.in(1)), t.ToI32(t.in(2))},
                              With("num_splits", static_cast<int64_t>(n)), n));
}

Status Pack(Translation& t) {
  Attrs attrs = With("values_count", static_cast<int64_t>(t.count()));
  if (const int64_t axis = t.attrs().i64("axis", 0)) attrs.Set("axis", axis);
  return t.Return(t.Value(Op::kPack, t.node().operands, std::move(attrs)));
}

Status Unpack(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  const size_t n = t.results().size();
  Attrs attrs = With("num", static_cast<int64_t>(n));
  if (const int64_t axis = t.attrs().i64("axis", 0)) attrs.Set("axis", axis);
  return SetResults(t, t.Emit(Op::kUnpack, {t.in(0)}, std::move(attrs), n));
}

Status StridedSlice(Translation& t) {
  FUSEBOX_TRY(t.Arity(4));
  Attrs attrs;
  for (const char* mask : {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"})
    if (const int64_t value = t.attrs().i64(mask, 0)) attrs.Set(mask, value);
  return t.Return(t.Value(Op::kStridedSlice, {t.in(0), t.ToI32(t.in(1)), t.ToI32(t.in(2)), t.ToI32(t.in(3))},
                          std::move(attrs)));
}

Status Gather(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  return t.Return(t.Value(Op::kGather, {t.in(0), t.in(1)}));
}

Status GatherV2(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  FUSEBOX_ASSIGN(const int64_t axis, t.Int(2));
  Attrs attrs;
  if (axis) attrs.Set("axis", axis);
  if (const int64_t batch = t.attrs().i64("batch_dims", 0)) attrs.Set("batch_dims", batch);
  return t.Return(t.Value(Op::kGather, {t.in(0), t.in(1)}, std::move(attrs)));
}

Status ShapeOf(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  const auto* type = std::get_if<DType>(t.attrs().Find("out_type"));
  return t.Return(t.Value(Op::kShape, {t.in(0)}, With("out_type", type ? *type : DType::kI32)));
}

Status Size(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  FUSEBOX_TRY(t.Rank(t.in(0)));
  const auto* type = std::get_if<DType>(t.attrs().Find("out_type"));
  const ValueId shape = t.Value(Op::kShape, {t.in(0)}, With("out_type", type ? *type : DType::kI32));
  return t.Return(t.Value(Op::kReduceProd, {shape, t.I32({0})}));
}

Status OneHot(Translation& t) {
  FUSEBOX_TRY(t.Arity(4));
  const DType dtype = t.in_type(0).dtype;
  const bool narrow = dtype == DType::kU8 || dtype == DType::kI8 || dtype == DType::kI16;
  return t.Return(t.Value(
      Op::kOneHot, {narrow ? t.Cast(t.in(0), DType::kI32) : t.in(0), t.ToI32(t.in(1)), t.in(2), t.in(3)},
      With("axis", t.attrs().i64("axis", -1))));
}

Status MirrorPad(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  return t.Return(
      t.Value(Op::kMirrorPad, {t.in(0), t.ToI32(t.in(1))}, With("mode", t.attrs().str("mode", "REFLECT"))));
}

Status ReverseSequence(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  Attrs attrs = With("seq_dim", t.attrs().i64("seq_dim", 0));
  attrs.Set("batch_dim", t.attrs().i64("batch_dim", 0));
  return t.Return(t.Value(Op::kReverseSequence, {t.in(0), t.in(1)}, std::move(attrs)));
}

// ResizeBilinear returns f32 for every image type.
template <Op op>
Status Resize(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  if (t.in_type(0).dtype == DType::kNone) return Unsupported("the element type of its operand is not known");
  const ValueId x = op == Op::kResizeBilinear ? t.Cast(t.in(0), DType::kF32) : t.in(0);
  return t.Return(t.Value(op, {x, t.ToI32(t.in(1))}, t.Flags({"align_corners", "half_pixel_centers"})));
}

Status ScatterNd(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  return t.Return(t.Value(Op::kScatterNd, {t.ToI32(t.in(0)), t.in(1), t.ToI32(t.in(2))}));
}

template <Op op>
Status Blocks(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  const std::string format = t.attrs().str("data_format", "NHWC");
  if (format != "NHWC" && format != "NCHW") return Unsupported("data_format " + format);
  const bool nchw = format == "NCHW";
  const ValueId x = nchw ? t.Transpose(t.in(0), {0, 2, 3, 1}) : t.in(0);
  const ValueId y = t.Value(op, {x}, With("block_size", t.attrs().i64("block_size", 1)));
  return t.Return(nchw ? t.Transpose(y, {0, 3, 1, 2}) : y);
}

Status TopK(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  const auto* type = std::get_if<DType>(t.attrs().Find("index_type"));
  const bool as_they_are = !type || *type == DType::kI32;
  if (!as_they_are && t.in_type(0).dtype == DType::kNone)
    return Unsupported("the element type of its operand is not known");
  const Node& made = t.Emit(Op::kTopkV2, {t.in(0), t.ToI32(t.in(1))}, {}, 2);
  // Copied: Emit invalidates references.
  const ValueId values = made.results[0];
  const ValueId indices = made.results[1];
  t.SetResult(0, values);
  t.SetResult(1, as_they_are ? indices : t.Cast(indices, *type));
  return {};
}

template <Op op>
Status Reduce(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  return t.Return(t.Value(op, {t.in(0), t.ToI32(t.in(1))}, t.Flags({"keep_dims"})));
}

template <Op op>
Status Arg(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  const auto* type = std::get_if<DType>(t.attrs().Find("output_type"));
  return t.Return(t.Value(op, {t.in(0), t.ToI32(t.in(1))}, With("output_type", type ? *type : DType::kI64)));
}

Status Cumsum(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  return t.Return(t.Value(Op::kCumsum, {t.in(0), t.ToI32(t.in(1))}, t.Flags({"exclusive", "reverse"})));
}

Status Fill(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  return t.Return(t.Value(Op::kFill, {t.ToI32(t.in(0)), t.in(1)}));
}

}  // namespace

std::span<const TranslateRow> ShapeTable() {
  static constexpr TranslateRow kTable[] = {
      {"Reshape", WithIndex<Op::kReshape>},
      {"ExpandDims", WithIndex<Op::kExpandDims>},
      {"Squeeze", Squeeze},
      {"Transpose", WithIndex<Op::kTranspose>},
      {"ConcatV2", Concat},
      {"Split", Split},
      {"SplitV", SplitV},
      {"Pack", Pack},
      {"Unpack", Unpack},
      {"Slice", WithTwoIndices<Op::kSlice>},
      {"StridedSlice", StridedSlice},
      {"Gather", Gather},
      {"GatherV2", GatherV2},
      {"GatherNd", Plain<Op::kGatherNd>},
      {"ScatterNd", ScatterNd},
      {"Shape", ShapeOf},
      {"Rank", Plain<Op::kRank>},
      {"Size", Size},
      {"OneHot", OneHot},
      {"Pad", WithIndex<Op::kPad>},
      {"MirrorPad", MirrorPad},
      {"Tile", WithIndex<Op::kTile>},
      {"BroadcastTo", WithIndex<Op::kBroadcastTo>},
      {"BroadcastArgs", Plain<Op::kBroadcastArgs>},
      {"Fill", Fill},
      {"Range", Plain<Op::kRange>},
      {"ReverseV2", WithIndex<Op::kReverseV2>},
      {"ReverseSequence", ReverseSequence},
      {"Where", Plain<Op::kWhere>},
      {"TopKV2", TopK},
      {"PadV2",
       [](Translation& t) -> Status {
         FUSEBOX_TRY(t.Arity(3));
         return t.Return(t.Value(Op::kPadV2, {t.in(0), t.ToI32(t.in(1)), t.in(2)}));
       }},
      {"ResizeBilinear", Resize<Op::kResizeBilinear>},
      {"ResizeNearestNeighbor", Resize<Op::kResizeNearestNeighbor>},
      {"SpaceToDepth", Blocks<Op::kSpaceToDepth>},
      {"DepthToSpace", Blocks<Op::kDepthToSpace>},
      {"SpaceToBatchND", WithTwoIndices<Op::kSpaceToBatchNd>},
      {"BatchToSpaceND", WithTwoIndices<Op::kBatchToSpaceNd>},
      {"Mean", Reduce<Op::kMean>},
      {"Sum", Reduce<Op::kSum>},
      {"Max", Reduce<Op::kReduceMax>},
      {"Min", Reduce<Op::kReduceMin>},
      {"Prod", Reduce<Op::kReduceProd>},
      {"Any", Reduce<Op::kReduceAny>},
      {"All", Reduce<Op::kReduceAll>},
      {"ArgMax", Arg<Op::kArgMax>},
      {"ArgMin", Arg<Op::kArgMin>},
      {"Cumsum", Cumsum},
  };
  return kTable;
}

}  // namespace fusebox::converter
