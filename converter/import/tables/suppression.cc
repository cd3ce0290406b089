// SPDX-License-Identifier: Apache-2.0
// The choice of boxes that overlap little.
#include "converter/import/tables/translate.h"

namespace fusebox::converter {
namespace {

// TFLite's give as many indices as may be selected, and how many are.
Status NonMaxSuppression(Translation& t, bool padded) {
  if (t.count() != 4) FUSEBOX_TRY(t.Arity(5));
  const ValueId score = t.count() == 4 ? t.Scalar(DType::kF32, -3e38) : t.in(4);
  const Node& made =
      t.Emit(Op::kNonMaxSuppressionV4, {t.in(0), t.in(1), t.ToI32(t.in(2)), t.in(3), score}, {}, 2);
  const ValueId indices = made.results[0], count = made.results[1];
  t.Give(1, count);
  if (padded) {
    t.Give(0, indices);
    return {};
  }
  const ValueId list = t.Value(Op::kReshape, {count, t.I32({1})});
  t.Give(0, t.Value(Op::kSlice, {indices, t.I32({0}), list}));
  return {};
}

Status NonMaxSuppressionV3(Translation& t) { return NonMaxSuppression(t, false); }
Status NonMaxSuppressionV4(Translation& t) {
  return NonMaxSuppression(t, t.attrs().b("pad_to_max_output_size", false));
}

}  // namespace

std::span<const TranslateRow> SuppressionTable() {
  static constexpr TranslateRow kTable[] = {
      {"NonMaxSuppressionV2", NonMaxSuppressionV3},
      {"NonMaxSuppressionV3", NonMaxSuppressionV3},
      {"NonMaxSuppressionV4", NonMaxSuppressionV4},
  };
  return kTable;
}

}  // namespace fusebox::converter
