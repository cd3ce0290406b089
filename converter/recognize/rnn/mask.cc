// SPDX-License-Identifier: Apache-2.0
#include "converter/recognize/rnn/mask.h"

namespace fusebox::converter::recognize {

std::optional<MaskedValue> ReadMasked(const View& in, ValueId v) {
  const Node* select = in.Producer(v);
  if (!select || !(select->is(Op::kSelectV2) || select->is(Op::kSelect))) return std::nullopt;
  MaskedValue out{select->operands[0], select->operands[1], select->operands[2]};
  const Node* from = in.Producer(out.counts);
  if (from && (from->is(Op::kTile) || from->is(Op::kBroadcastTo))) {  // one element per unit
    out.counts = from->operands[0];
    from = in.Producer(out.counts);
  }
  const Type& type = in.function().value(out.counts).type;
  const bool one_per_row = type.dtype == DType::kBool && type.shape.rank() == 2 && type.shape[1] == 1;
  const bool step = from && (from->is(Op::kTensorListGetItem) || from->is(Op::kGather));
  if (!one_per_row || !step) return std::nullopt;
  return out;
}

bool IsZeros(const View& in, ValueId v) {
  if (in.IsFull(v, 0)) return true;
  const Node* node = in.Producer(v);
  return node && (node->is(Op::kZerosLike) || (node->is(Op::kFill) && in.IsFull(node->operands[1], 0)));
}

}  // namespace fusebox::converter::recognize
