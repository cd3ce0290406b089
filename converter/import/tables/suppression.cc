// SPDX-License-Identifier: Apache-2.0
// Non-maximum suppression.
#include <algorithm>

#include "converter/import/tables/translate.h"

namespace fusebox::converter {
namespace {

// TFLite returns as many indices as may be selected, and their count. For a variable output size, the rest is
// cut off.
struct Chosen {
  ValueId indices, scores, count;
};

ValueId Counted(Translation& t, ValueId list, ValueId count) {
  return t.Value(Op::kSlice, {list, t.I32({0}), t.Reshape(count, {1})});
}

Chosen Choose(Translation& t, ValueId overlap, ValueId score, bool padded) {
  const Node& made =
      t.Emit(Op::kNonMaxSuppressionV4, {t.in(0), t.in(1), t.ToI32(t.in(2)), overlap, score}, {}, 2);
  // Copied: Emit invalidates references.
  const ValueId indices = made.results[0];
  const ValueId count = made.results[1];
  return {padded ? indices : Counted(t, indices, count), kNoValue, count};
}

ValueId AnyScore(Translation& t) { return t.Scalar(DType::kF32, -3e38); }

Status NonMaxSuppression(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  const ValueId overlap = t.Scalar(DType::kF32, t.attrs().f64("iou_threshold", 0.5));
  return t.Return(Choose(t, overlap, AnyScore(t), false).indices);
}

Status NonMaxSuppressionV4(Translation& t) {
  if (t.count() != 4) FUSEBOX_TRY(t.Arity(5));
  const ValueId score = t.count() == 4 ? AnyScore(t) : t.in(4);
  const Chosen chosen = Choose(t, t.in(3), score, t.attrs().b("pad_to_max_output_size", false));
  t.SetResult(0, chosen.indices);
  t.SetResult(1, chosen.count);
  return {};
}

// With scores; a sigma other than 0 lowers them by the overlap with better boxes.
Status NonMaxSuppressionV5(Translation& t) {
  FUSEBOX_TRY(t.Arity(6));
  const Node& made = t.Emit(Op::kNonMaxSuppressionV5,
                            {t.in(0), t.in(1), t.ToI32(t.in(2)), t.in(3), t.in(4), t.in(5)}, {}, 3);
  Chosen chosen{made.results[0], made.results[1], made.results[2]};
  if (!t.attrs().b("pad_to_max_output_size", false)) {
    chosen.indices = Counted(t, chosen.indices, chosen.count);
    chosen.scores = Counted(t, chosen.scores, chosen.count);
  }
  t.SetResult(0, chosen.indices);
  t.SetResult(1, chosen.scores);
  t.SetResult(2, chosen.count);
  return {};
}

// Parameters of CombinedNonMaxSuppression: boxes [batch, boxes, classes or 1, 4], scores [batch, boxes,
// classes].
struct Combined {
  int64_t images, boxes, classes, parts;  // parts: of the boxes, one per class or one for all
  int64_t per_class, total, given;        // given: output size, zero-padded
  ValueId most, overlap, score;
};

Result<Combined> CombinedOf(Translation& t) {
  // Copied: Emit invalidates references.
  const Shape boxes = t.in_type(0).shape;
  const Shape scores = t.in_type(1).shape;
  if (boxes.rank() != 4 || !boxes.is_static() || scores.rank() != 3 || !scores.is_static())
    return Unsupported("the shapes of its boxes and scores are not known");
  FUSEBOX_ASSIGN(const int64_t per_class, t.Int(2));
  FUSEBOX_ASSIGN(const int64_t total, t.Int(3));
  Combined made{.images = scores[0], .boxes = scores[1], .classes = scores[2], .parts = boxes[2]};
  if (boxes[0] != made.images || boxes[1] != made.boxes || boxes[3] != 4 ||
      (made.parts != 1 && made.parts != made.classes))
    return Invalid("its boxes " + ToString(t.in_type(0)) + " do not match its scores " +
                   ToString(t.in_type(1)));
  constexpr int64_t kMost = 1024;
  if (made.images < 1 || made.boxes < 1 || made.classes < 1 || made.images > kMost / made.classes)
    return Unsupported("the product of images and classes is 0 or more than " + std::to_string(kMost));
  if (per_class < 1 || total < 1 || total > INT32_MAX)
    return Invalid("its limit on selected boxes is not positive");
  made.per_class = std::min(per_class, made.boxes);
  made.total = total;
  made.given = t.attrs().b("pad_per_class", false)
                   ? std::min(total, std::min(per_class, total) * made.classes)
                   : total;
  made.most = t.I32Scalar(static_cast<int32_t>(made.per_class));
  made.overlap = t.in(4);
  made.score = t.in(5);
  return made;
}

Attrs Along(int64_t axis, int64_t batch = 0) {
  Attrs attrs;
  if (axis) attrs.Set("axis", axis);
  if (batch) attrs.Set("batch_dims", batch);
  return attrs;
}

std::vector<ValueId> Parts(Translation& t, ValueId v, int64_t axis, int64_t count) {
  if (count == 1) {
    return {t.Value(Op::kSqueeze, {v}, MakeAttrs("squeeze_dims", std::vector<int64_t>{axis}))};
  }
  Attrs attrs = Along(axis);
  attrs.Set("num", count);
  const Node& made = t.Emit(Op::kUnpack, {v}, std::move(attrs), static_cast<size_t>(count));
  return {made.results.begin(), made.results.end()};
}

ValueId Packed(Translation& t, const std::vector<ValueId>& parts) {
  return t.Value(Op::kPack, parts, MakeAttrs("values_count", static_cast<int64_t>(parts.size())));
}

// Boxes and scores selected per class of an image, as lists of classes * per_class; unused entries have the
// lowest score.
struct Kept {
  ValueId boxes, scores;
};

constexpr double kBelowAll = -3e38;

Kept KeptOf(Translation& t, const Combined& c, ValueId boxes, ValueId scores) {
  const auto of_class = Parts(t, boxes, 1, c.parts);
  const auto score = Parts(t, scores, 1, c.classes);
  std::vector<ValueId> kept_boxes;
  std::vector<ValueId> kept_scores;
  std::vector<ValueId> counts;
  for (size_t k = 0; k < score.size(); ++k) {
    const ValueId box = of_class[of_class.size() == 1 ? 0 : k];
    const Node& made = t.Emit(Op::kNonMaxSuppressionV4, {box, score[k], c.most, c.overlap, c.score}, {}, 2);
    // Copied: Emit invalidates references.
    const ValueId indices = made.results[0];
    const ValueId count = made.results[1];
    kept_boxes.push_back(t.Value(Op::kGather, {box, indices}));
    kept_scores.push_back(t.Value(Op::kGather, {score[k], indices}));
    counts.push_back(count);
  }
  const ValueId numbers = t.Value(Op::kRange, {t.I32Scalar(0), c.most, t.I32Scalar(1)});
  const ValueId found = t.Value(Op::kLess, {numbers, t.Reshape(Packed(t, counts), {-1, 1})});
  const ValueId chosen =
      t.Value(Op::kSelectV2, {found, Packed(t, kept_scores), t.Scalar(DType::kF32, kBelowAll)});
  return {t.Reshape(Packed(t, kept_boxes), {-1, 4}), t.Reshape(chosen, {-1})};
}

// `v`, [images, found, ...], zero-padded to the output size.
ValueId Padded(Translation& t, const Combined& c, ValueId v, int64_t found, int rank) {
  if (found == c.given) return v;
  std::vector<int32_t> pads(2 * static_cast<size_t>(rank), 0);
  pads[3] = static_cast<int32_t>(c.given - found);
  return t.Value(Op::kPad, {v, t.Const({{DType::kI32, {rank, 2}}, Buffer::Of<int32_t>(pads)})});
}

// The best boxes per class that overlap little, then the best of all classes.
Status CombinedNonMaxSuppression(Translation& t) {
  FUSEBOX_TRY(t.Arity(6));
  FUSEBOX_ASSIGN(const Combined c, CombinedOf(t));
  const auto boxes = Parts(t, t.in(0), 0, c.images);
  const auto scores = Parts(t, t.in(1), 0, c.images);
  std::vector<ValueId> kept_boxes;
  std::vector<ValueId> kept_scores;
  for (size_t i = 0; i < boxes.size(); ++i) {
    const Kept kept = KeptOf(t, c, boxes[i], scores[i]);
    kept_boxes.push_back(kept.boxes);
    kept_scores.push_back(kept.scores);
  }
  const int64_t found = std::min(c.given, c.per_class * c.classes);
  const Node& best =
      t.Emit(Op::kTopkV2, {Packed(t, kept_scores), t.I32Scalar(static_cast<int32_t>(found))}, {}, 2);
  // Copied: Emit invalidates references.
  const ValueId score = best.results[0];
  const ValueId which = best.results[1];
  const ValueId zero = t.Scalar(DType::kF32, 0);
  const ValueId is = t.Value(Op::kGreater, {score, t.Scalar(DType::kF32, kBelowAll)});
  const ValueId of_class = t.Cast(t.Value(Op::kFloorDiv, {which, c.most}), DType::kF32);
  ValueId box = t.Value(Op::kGather, {Packed(t, kept_boxes), which}, Along(1, 1));
  if (t.attrs().b("clip_boxes", true))
    box = t.Value(Op::kMinimum, {t.Value(Op::kMaximum, {box, zero}), t.Scalar(DType::kF32, 1)});
  box = t.Value(Op::kSelectV2, {t.Value(Op::kExpandDims, {is, t.I32Scalar(2)}), box, zero});
  t.SetResult(0, Padded(t, c, box, found, 3));
  t.SetResult(1, Padded(t, c, t.Value(Op::kSelectV2, {is, score, zero}), found, 2));
  t.SetResult(2, Padded(t, c, t.Value(Op::kSelectV2, {is, of_class, zero}), found, 2));
  t.SetResult(3, t.Value(Op::kSum, {t.Cast(is, DType::kI32), t.I32({1})}));
  return {};
}

}  // namespace

std::span<const TranslateRow> SuppressionTable() {
  static constexpr TranslateRow kTable[] = {
      {"NonMaxSuppression", NonMaxSuppression},     {"NonMaxSuppressionV2", NonMaxSuppressionV4},
      {"NonMaxSuppressionV3", NonMaxSuppressionV4}, {"NonMaxSuppressionV4", NonMaxSuppressionV4},
      {"NonMaxSuppressionV5", NonMaxSuppressionV5}, {"CombinedNonMaxSuppression", CombinedNonMaxSuppression},
  };
  return kTable;
}

}  // namespace fusebox::converter
