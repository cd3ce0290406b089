// SPDX-License-Identifier: Apache-2.0
#include "converter/recognize/rnn/scan.h"

#include <algorithm>
#include <set>

#include "converter/recognize/rnn/mask.h"
#include "converter/recognize/rnn/row_write.h"
#include "host/base/status.h"

namespace fusebox::converter::recognize {
namespace {

std::string Variable(size_t i) { return "loop variable " + std::to_string(i); }

bool IsNumber(const View& in, ValueId v, int64_t wanted) {
  const auto values = in.Ints(v);
  return values && values->size() == 1 && (*values)[0] == wanted;
}

// i + 1 for an i that starts at nought.
bool IsCounter(const View& caller, const View& body, const Scan& loop, size_t i) {
  const Node* add = body.Producer(loop.output(i), Op::kAdd);
  if (!add || !IsNumber(caller, loop.node->operands[i], 0)) return false;
  const ValueId self = loop.input(i);
  return (add->operands[0] == self && IsNumber(body, add->operands[1], 1)) ||
         (add->operands[1] == self && IsNumber(body, add->operands[0], 1));
}

// Returns the number of rows of a tensor, which FILL makes where it is known at run time only.
std::optional<Extent> RowsOf(const View& caller, ValueId tensor) {
  const Extent rows = ExtentOf(caller, tensor, 0);
  const Node* const fill = rows.size < 0 ? caller.Producer(tensor) : nullptr;
  const Node* const dims = fill && fill->is(Op::kFill) ? caller.Producer(fill->operands[0]) : nullptr;
  if (!dims || (!dims->is(Op::kConcatenation) && !dims->is(Op::kPack))) return rows;
  const Node* const vector = dims->is(Op::kPack) ? nullptr : caller.Producer(dims->operands[0]);
  const bool wraps = vector && (vector->is(Op::kReshape) || vector->is(Op::kExpandDims));
  return ExtentOf(caller, wraps ? vector->operands[0] : dims->operands[0]);
}

class Reader {
 public:
  Reader(const View& caller, const View& body, const Node& loop) : caller_(caller), body_(body) {
    loop_.node = &loop;
    loop_.body = &body.function();
    cond_ = &caller.Callee(loop, "cond_subgraph_index");
  }

  Result<Scan> Read() {
    for (size_t i = 0; i < loop_.node->operands.size(); ++i) {
      if (loop_.output(i) == loop_.input(i)) continue;
      if (IsCounter(caller_, body_, loop_, i)) counters_.insert(loop_.input(i));
      else if (body_.Producer(loop_.output(i), Op::kTensorListSetItem)) FUSEBOX_TRY(AddWritten(i));
      else if (!AddRows(i)) FUSEBOX_TRY(AddState(i));
    }
    FUSEBOX_TRY(ReadCondition());
    if (loop_.mask != kNoValue && loop_.unmasked.size() != loop_.states.size())
      return Unsupported("its mask is for some of its states only");
    for (Scan::Written& list : loop_.written) {
      FUSEBOX_TRY(Unmask(list));
      FUSEBOX_TRY(CheckWritten(list));
    }
    return std::move(loop_);
  }

 private:
  Status AddState(size_t i) {
    const Type& type = loop_.body->value(loop_.input(i)).type;
    if (type.dtype != DType::kF32 || (type.shape.rank() < 2 || type.shape.rank() > 5))
      return Unsupported(Variable(i) + " (" + body_.Text(loop_.output(i)) +
                         ") is no counter, no list and no state [batch, units]");
    const auto masked = ReadMasked(body_, loop_.output(i));
    if (masked && masked->old == loop_.input(i)) {
      FUSEBOX_TRY(AddMask(*masked));
      if (IsLastOutput(i)) {
        last_outputs_[loop_.input(i)] = masked->fresh;
        return {};
      }
      loop_.unmasked[i] = masked->fresh;
    }
    loop_.states.push_back(i);
    return {};
  }

  Status AddMask(const MaskedValue& masked) {
    if (loop_.mask != kNoValue && loop_.mask != masked.counts) return Unsupported("it has two masks");
    loop_.mask = masked.counts;
    return {};
  }

  // Returns whether variable i is the previous output: zeros at first, and read only to be written again.
  bool IsLastOutput(size_t i) const {
    for (const auto& reader : body_.readers(loop_.input(i)))
      if (reader.node && !(ReadMasked(body_, reader.node->results[0]) && reader.index == 2)) return false;
    return IsZeros(caller_, loop_.node->operands[i]);
  }

  // Returns whether v is zeros of the body, or zeros of the caller that the loop carries unchanged.
  bool AreZeros(ValueId v) const {
    for (size_t i = 0; i < loop_.body->inputs.size(); ++i)
      if (v == loop_.input(i) && v == loop_.output(i)) return IsZeros(caller_, loop_.node->operands[i]);
    return IsZeros(body_, v);
  }

  Status Unmask(Scan::Written& list) {
    const auto masked = ReadMasked(body_, list.value);
    if (!masked) {
      if (loop_.mask == kNoValue) return {};
      return Unsupported("its states have a mask, and what it writes has none");
    }
    FUSEBOX_TRY(AddMask(*masked));
    const auto last = last_outputs_.find(masked->old);
    loop_.zero_output = AreZeros(masked->old);
    if (!loop_.zero_output && (last == last_outputs_.end() || last->second != masked->fresh))
      return Unsupported("where its mask leaves a step out, it writes " + body_.Text(masked->old) +
                         ", not what it wrote before, nor zeros");
    list.value = masked->fresh;
    return {};
  }

  Status AddWritten(size_t i) {
    const Node& set = *body_.Producer(loop_.output(i));
    if (set.operands[0] != loop_.input(i))
      return Unsupported(Variable(i) + " is a list that takes another one's place");
    for (const auto& reader : body_.readers(loop_.input(i)))
      if (reader.node != &set) return Unsupported("the list that it writes is read by its steps");
    loop_.written.push_back({i, set.operands[2], set.operands[1]});
    return {};
  }

  // Reads the caller's uses of a list: all of it once, and its last item.
  Status ReadResult(Scan::Written& list) {
    for (const auto& [node, index] : caller_.readers(loop_.node->results[list.variable])) {
      if (node && node->is(Op::kTensorListStack) && list.steps == kNoValue) list.steps = node->results[0];
      else if (node && node->is(Op::kTensorListGetItem) && IsLastIndex(node->operands[1]))
        list.last.push_back(node->results[0]);
      else
        return Unsupported(
            "the list that it writes is read by others than one TENSOR_LIST_STACK, at other "
            "places than its end");
    }
    return {};
  }

  // Returns whether v is a counter after the loop, less one.
  bool IsLastIndex(ValueId v) {
    const Node* const sub = caller_.Producer(v, Op::kSub);
    if (!sub || caller_.Producer(sub->operands[0]) != loop_.node || !IsNumber(caller_, sub->operands[1], 1))
      return false;
    const auto counter = static_cast<size_t>(caller_.result_index(sub->operands[0]));
    const auto reads_item = [](const auto& reader) {
      return reader.node && reader.node->is(Op::kTensorListGetItem);
    };
    if (!counters_.contains(loop_.input(counter)) || !std::ranges::all_of(caller_.readers(v), reads_item))
      return false;
    loop_.last_indices.insert(sub);
    return true;
  }

  // Returns whether variable i is a tensor that stands for a list, and reads it.
  bool AddRows(size_t i) {
    const auto write = ReadRowWrite(body_, loop_.output(i));
    const bool own = write && (write->tensor == kNoValue || write->tensor == loop_.input(i));
    if (!own || body_.readers(loop_.input(i)).size() != write->readers) return false;
    const ValueId result = loop_.node->results[i];
    loop_.written.push_back(
        {i, write->row, write->index, caller_.readers(result).empty() ? kNoValue : result});
    return true;
  }

  // i < limit, and maybe j < another.
  Status ReadCondition() {
    const View cond(caller_.module(), *cond_);
    if (cond_->outputs.size() != 1) return Unsupported("its condition has more than one result");
    std::vector<ValueId> parts = {cond_->outputs[0]};
    constexpr size_t kMostParts = 8;
    for (size_t k = 0; k < parts.size(); ++k) {
      if (parts.size() > kMostParts) return Unsupported("its condition has too many parts");
      const Node* node = cond.Producer(parts[k]);
      if (node && node->is(Op::kLogicalAnd)) {
        parts.insert(parts.end(), {node->operands[0], node->operands[1]});
        continue;
      }
      FUSEBOX_TRY(AddLimit(cond, node, parts[k]));
    }
    return {};
  }

  Status AddLimit(const View& cond, const Node* node, ValueId v) {
    const auto variable = [&](ValueId of) -> std::optional<size_t> {
      const auto it = std::find(cond_->inputs.begin(), cond_->inputs.end(), of);
      if (it == cond_->inputs.end()) return std::nullopt;
      return static_cast<size_t>(it - cond_->inputs.begin());
    };
    const auto counter = node && node->is(Op::kLess) ? variable(node->operands[0]) : std::nullopt;
    if (!counter || !counters_.contains(loop_.input(*counter)))
      return Unsupported("its condition is " + cond.Text(v) +
                         ", not a counter from 0 in steps of 1 below a limit");
    std::optional<Extent> limit;
    if (const auto number = cond.Ints(node->operands[1]); number && number->size() == 1) {
      limit = Extent{kNoValue, 0, (*number)[0]};
    } else if (const auto i = variable(node->operands[1]); i && loop_.output(*i) == loop_.input(*i)) {
      limit = ExtentOf(caller_, loop_.node->operands[*i]);
    }
    if (!limit) return Unsupported("how often it runs is not the length of a tensor");
    loop_.limits.push_back(*limit);
    return {};
  }

  Status CheckWritten(Scan::Written& list) {
    const ValueId first = loop_.node->operands[list.variable];
    std::optional<Extent> length = RowsOf(caller_, first);
    if (caller_.type(first).dtype == DType::kVariant) {
      const Node* reserve = caller_.Producer(first);
      if (!reserve || !reserve->is(Op::kTensorListReserve))
        return Unsupported("the list that it writes is not empty at first");
      length = ExtentOf(caller_, reserve->operands[1]);
      FUSEBOX_TRY(ReadResult(list));
    }
    list.whole = counters_.contains(list.index);
    if (!list.whole && list.index != kNoValue && !IsNumber(body_, list.index, 0))
      return Unsupported("it writes its list at " + body_.Text(list.index) + ", not at its counter");
    const Extent one{kNoValue, 0, 1};
    const bool fits = length && (list.whole ? loop_.limits[0] == *length : *length == one);
    if (!fits) return Unsupported("the list that it writes has another length than it has steps");
    return {};
  }

  const View& caller_;
  const View& body_;
  const Function* cond_;
  Scan loop_;
  std::set<ValueId> counters_;  // of the body
  // Variables of the body that hold what was written before, and what is written next.
  std::map<ValueId, ValueId> last_outputs_;
};

}  // namespace

Extent ExtentOf(const View& caller, ValueId tensor, int64_t axis) {
  constexpr int kMostHops = 64;
  for (int hop = 0; hop < kMostHops; ++hop) {
    const Shape& shape = caller.function().value(tensor).type.shape;
    const auto at = static_cast<size_t>(axis);
    if (axis < shape.rank() && shape[at] >= 0) return {kNoValue, 0, shape[at]};
    const Node* node = caller.Producer(tensor);
    if (!node || (!node->is(Op::kTranspose) && !node->is(Op::kReverseV2))) break;
    if (node->is(Op::kTranspose)) {
      const auto order = caller.Ints(node->operands[1]);
      if (!order || at >= order->size() || (*order)[at] < 0) break;
      axis = (*order)[at];
    }
    tensor = node->operands[0];
  }
  return {tensor, axis, -1};
}

namespace {

// min(n, max(1, n)), which TensorFlow 1 computes for sequences without lengths, is n.
std::optional<Extent> ExtentOfMinimum(const View& caller, const Node& minimum) {
  for (const auto& [n, other] : {std::pair(0, 1), std::pair(1, 0)}) {
    const Node* const maximum = caller.Producer(minimum.operands[static_cast<size_t>(other)], Op::kMaximum);
    if (!maximum) continue;
    const ValueId same = minimum.operands[static_cast<size_t>(n)];
    if (maximum->operands[0] == same || maximum->operands[1] == same) return ExtentOf(caller, same);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Extent> ExtentOf(const View& caller, ValueId scalar) {
  if (const auto number = caller.Ints(scalar)) {
    if (number->size() != 1) return std::nullopt;
    return Extent{kNoValue, 0, (*number)[0]};
  }
  const Node* node = caller.Producer(scalar);
  if (!node) return std::nullopt;
  if (node->is(Op::kMinimum)) return ExtentOfMinimum(caller, *node);
  if (node->is(Op::kTensorListLength)) {
    const Node* list = caller.Producer(node->operands[0]);
    if (!list || !list->is(Op::kTensorListFromTensor)) return std::nullopt;
    return ExtentOf(caller, list->operands[0], 0);
  }
  const Node* shape = node->is(Op::kStridedSlice) ? caller.Producer(node->operands[0]) : nullptr;
  const auto begin = shape ? caller.Ints(node->operands[1]) : std::nullopt;
  if (!shape || !shape->is(Op::kShape) || !begin || begin->size() != 1 || (*begin)[0] < 0 ||
      node->attrs.i64("shrink_axis_mask", 0) != 1)
    return std::nullopt;
  return ExtentOf(caller, shape->operands[0], (*begin)[0]);
}

bool WritesLists(const View& caller, const Node& loop) {
  const View body(caller.module(), caller.Callee(loop, "body_subgraph_index"));
  for (const auto& node : body.function().nodes)
    if (node->is(Op::kTensorListSetItem) || node->is(Op::kTensorListGetItem)) return true;
  return std::ranges::any_of(body.function().outputs, [&](ValueId v) {
    const auto write = ReadRowWrite(body, v);
    return write && write->tensor != kNoValue;
  });
}

bool MatchesLast(const View& in, const Node& node, size_t axis, bool one_step) {
  if (!node.is(Op::kStridedSlice) || node.attrs.i64("shrink_axis_mask", 0) != int64_t{1} << axis ||
      node.attrs.i64("new_axis_mask", 0) || node.attrs.i64("ellipsis_mask", 0))
    return false;
  const auto begin = in.Ints(node.operands[1]);
  const auto step = in.Ints(node.operands[3]);
  if (!begin || !step || begin->size() <= axis || begin->size() > 31 || step->size() != begin->size())
    return false;
  const Shape& shape = in.shape(node.operands[0]);
  const int64_t steps = static_cast<int>(axis) < shape.rank() ? shape[axis] : -1;
  const int64_t at = (*begin)[axis];
  if (node.attrs.i64("begin_mask", 0) >> axis & 1) return false;
  if (at != -1 && !(at == 0 && one_step) && !(steps > 0 && at == steps - 1)) return false;
  for (size_t d = 0; d < begin->size(); ++d) {
    const int64_t bit = int64_t{1} << d;
    const bool whole =
        node.attrs.i64("begin_mask", 0) & bit && node.attrs.i64("end_mask", 0) & bit && (*step)[d] == 1;
    if (d != axis && !whole) return false;
  }
  return true;
}

Result<Scan> ReadScan(const View& caller, const View& body, const Node& loop) {
  return Reader(caller, body, loop).Read();
}

Result<ValueId> SequenceOf(const Scan& loop, const View& caller, const View& body, ValueId value) {
  const Node* pick = body.Producer(value);
  const bool item = pick && pick->is(Op::kTensorListGetItem);
  const bool row =
      pick && pick->is(Op::kGather) && pick->attrs.i64("axis", 0) == 0 && !pick->attrs.i64("batch_dims", 0);
  if (!item && !row) return Unsupported("its input is " + body.Text(value) + ", not a step of a sequence");
  const auto variable = [&](ValueId v) -> std::optional<size_t> {
    const auto it = std::find(loop.body->inputs.begin(), loop.body->inputs.end(), v);
    if (it == loop.body->inputs.end()) return std::nullopt;
    return static_cast<size_t>(it - loop.body->inputs.begin());
  };
  const auto list = variable(pick->operands[0]);
  const auto counter = variable(pick->operands[1]);
  if (!list || loop.output(*list) != loop.input(*list))
    return Unsupported("its input is a sequence that changes in the loop");
  if (!counter || !IsCounter(caller, body, loop, *counter))
    return Unsupported("it reads its input at " + body.Text(pick->operands[1]) + ", not at its counter");
  ValueId whole = loop.node->operands[*list];
  if (item) {
    const Node* from = caller.Producer(whole);
    if (!from || !from->is(Op::kTensorListFromTensor))
      return Unsupported("the list of its input is not made of a tensor");
    whole = from->operands[0];
  }
  return whole;
}

Status CheckLength(const Scan& loop, const View& caller, ValueId sequence) {
  const Extent steps = ExtentOf(caller, sequence, 0);
  for (const Extent& limit : loop.limits)
    if (limit != steps) return Unsupported("it does not run over the whole length of its input");
  return {};
}

Status CheckMaskLength(const Scan& loop, const View& caller, ValueId mask) {
  const int64_t steps = ExtentOf(caller, mask, 0).size;
  for (const Extent& limit : loop.limits)
    if (steps >= 0 && limit.size >= 0 && limit.size != steps)
      return Unsupported("its mask has another length than its input");
  return {};
}

}  // namespace fusebox::converter::recognize
