// SPDX-License-Identifier: Apache-2.0
#include "host/eval/open_sizes.h"

#include <algorithm>
#include <cstdlib>

namespace fusebox {
namespace {

constexpr size_t kMostNodes = 1'000'000;  // of loops and branches, per walk
constexpr int kRounds = 4;                // of a loop; what still changes then is taken as changing always

// Nothing if it overflows, now or at the sampled sizes.
std::optional<Size> Scaled(Size size, int64_t factor, int64_t offset) {
  if (__builtin_mul_overflow(size.factor, factor, &size.factor) ||
      __builtin_mul_overflow(size.offset, factor, &size.offset) ||
      __builtin_add_overflow(size.offset, offset, &size.offset))
    return std::nullopt;
  if (size.is_number()) return Size::Number(size.offset);
  const bool fits = std::abs(size.factor) <= INT32_MAX && std::abs(size.offset) <= INT32_MAX;
  return fits ? std::optional(size) : std::nullopt;
}

// Nothing if no symbol is in both and neither is a number.
std::optional<Size> Sum(const Size& a, const Size& b) {
  if (b.is_number()) return Scaled(a, 1, b.offset);
  if (a.is_number()) return Scaled(b, 1, a.offset);
  if (a.symbol != b.symbol) return std::nullopt;
  return Scaled({a.symbol, a.factor + b.factor, a.offset}, 1, b.offset);
}

bool AllNumbers(const Sizes& sizes) { return std::ranges::all_of(sizes, &Size::is_number); }

}  // namespace

OpenSizes::OpenSizes(Registry& registry, const Module& module, const Function& f, Depth depth)
    : registry_(registry), module_(module), outermost_(f), depth_(depth) {
  Frame& frame = frames_[&f];
  frame.resize(static_cast<size_t>(f.value_count()));
  Walk(f, frame);
}

std::optional<Sizes> OpenSizes::Dims(const Function& f, ValueId v) {
  const auto it = frames_.find(&f);
  if (it == frames_.end() || shared_.contains(&f)) return std::nullopt;
  if (&f != &outermost_ && nodes_ > kMostNodes) return std::nullopt;  // a walk that was cut short
  it->second.resize(static_cast<size_t>(f.value_count()));
  return In(f, it->second, v).dims;
}

std::optional<Sizes> OpenSizes::Outside(const Sizes& sizes, bool after) {
  Sizes all;
  for (const Size& size : sizes) {
    const SizeSymbol found = size.is_number() ? SizeSymbol() : symbol(size);
    const bool own = size.is_number() || found.value != kNoValue;
    std::optional<Sizes> parts;
    if (!found.joined.empty()) parts = Outside(found.joined, after);
    else if (found.start) parts = Outside({after ? *found.end : *found.start}, after);
    const auto outside = parts ? Scaled(Join(*parts), size.factor, size.offset) : std::nullopt;
    if (!own && !outside) return std::nullopt;
    all.push_back(own ? size : *outside);
  }
  return all;
}

void OpenSizes::CollectValues(const Size& size, std::set<ValueId>& values) const {
  if (size.is_number()) return;
  if (symbol(size).value != kNoValue) values.insert(symbol(size).value);
  for (const Size& part : symbol(size).joined) CollectValues(part, values);
}

Size OpenSizes::Add(SizeSymbol symbol) {
  symbols_.push_back(std::move(symbol));
  return {static_cast<int32_t>(symbols_.size()) - 1, 1, 0};
}

Size OpenSizes::Own(const Function& f, ValueId v, int64_t axis) {
  const Shape& shape = f.value(v).type.shape;
  if (shape.rank() > axis && shape[static_cast<size_t>(axis)] >= 0)
    return Size::Number(shape[static_cast<size_t>(axis)]);
  if (&f != &outermost_) return Add({});
  const auto [it, fresh] = own_.try_emplace({v, axis});
  if (fresh) it->second = Add({v, axis, {}});
  return it->second;
}

// Joins sizes by broadcasting: 1 is dropped, and a larger number is the result.
Size OpenSizes::Join(const Sizes& sizes) {
  std::set<Size> open;
  for (const Size& size : sizes) {
    if (size.is_number() && size.offset != 1) return size;
    if (size.is_number()) continue;
    const Sizes& parts = symbol(size).joined;
    if (parts.empty() || size.factor != 1 || size.offset != 0) open.insert(size);
    else open.insert(parts.begin(), parts.end());
  }
  if (open.empty()) return Size::Number(1);
  if (open.size() == 1) return *open.begin();
  const Sizes key(open.begin(), open.end());
  const auto [it, fresh] = joins_.try_emplace(key);
  if (fresh) it->second = Add({kNoValue, 0, key});
  return it->second;
}

Size OpenSizes::Of(const Fit& fit, const Sizes& symbols) {
  if (fit.symbols.empty()) return Size::Number(fit.offset);
  Sizes parts;
  for (const size_t i : fit.symbols) parts.push_back(symbols[i]);
  const auto size = Scaled(Join(parts), fit.factor, fit.offset);
  return size ? *size : Add({});
}

const OpenSizes::Known& OpenSizes::In(const Function& f, Frame& frame, ValueId v) {
  static const Known nothing;
  if (v == kNoValue) return nothing;
  const Value& value = f.value(v);
  auto& [dims, ints] = frame[static_cast<size_t>(v)];
  if (!dims && value.type.shape.ranked()) {
    dims.emplace();
    for (int64_t d = 0; d < value.type.shape.rank(); ++d) dims->push_back(Own(f, v, d));
  }
  if (!ints && value.is_const() && IsFewIntegers(value.type)) {
    ints.emplace();
    for (const int64_t n : IntegersIn(value.type, value.data)) ints->push_back(Size::Number(n));
  }
  return frame[static_cast<size_t>(v)];
}

void OpenSizes::Walk(const Function& f, Frame& frame) {
  for (const auto& node : f.nodes) {
    const ValueId first = node->operands.empty() ? kNoValue : node->operands[0];
    const bool control = node->is(Op::kWhile) || node->is(Op::kIf);
    if (depth_ == Depth::kAll && control)
      node->is(Op::kWhile) ? Loop(f, frame, *node) : Branches(f, frame, *node);
    if (control || node->results.empty() || node->results[0] == kNoValue) continue;
    Known* result = &frame[static_cast<size_t>(node->results[0])];
    if (node->is(Op::kShape) && IsFewIntegers(f.value(node->results[0]).type))
      result->ints = In(f, frame, first).dims;
    else if (auto dims = Padded(f, frame, *node); dims) result->dims = std::move(dims);
    else if (!Has(node->op, kHost) && Info(node->op).code >= 0) Kernel(f, frame, *node);
    if (depth_ == Depth::kIntegers) continue;
    // A list of a tensor's rows has the dimensions of the tensor.
    if (node->is(Op::kTensorListFromTensor)) result->dims = In(f, frame, first).dims;
    const auto& list = node->is(Op::kTensorListGetItem) ? In(f, frame, first).dims : std::nullopt;
    if (list && !list->empty()) result->dims = Sizes(list->begin() + 1, list->end());
  }
}

std::optional<Sizes> OpenSizes::Padded(const Function& f, Frame& frame, const Node& node) {
  if (depth_ != Depth::kAll || f.value(node.results[0]).type.shape.is_static()) return std::nullopt;
  if (node.is(Op::kFill)) return In(f, frame, node.operands[0]).ints;
  if (!node.is(Op::kConcatenation) || node.operands.size() != 2) return std::nullopt;
  std::optional<Sizes> dims = In(f, frame, node.operands[0]).dims;
  const std::optional<Sizes>& more = In(f, frame, node.operands[1]).dims;
  if (!dims || !more || dims->size() != more->size()) return std::nullopt;
  const int64_t axis = node.attrs.i64("axis", 0);
  for (size_t d = 0; d < dims->size(); ++d) {
    const bool joined =
        axis == static_cast<int64_t>(d) || axis + std::ssize(*dims) == static_cast<int64_t>(d);
    const auto sum = joined ? Sum((*dims)[d], (*more)[d]) : std::nullopt;
    if (joined ? !sum : (*dims)[d] != (*more)[d]) return std::nullopt;
    if (joined) (*dims)[d] = *sum;
  }
  return dims;
}

void OpenSizes::Kernel(const Function& f, Frame& frame, const Node& node) {
  bool followed = false;
  bool known = true;
  bool open = false;
  bool few = Info(node.op).effects == Effects::kPure;
  for (const ValueId v : node.operands) {
    if (v == kNoValue) continue;
    const bool constant = f.value(v).is_const();
    const bool has_integers = frame[static_cast<size_t>(v)].ints.has_value();
    followed |= has_integers && !constant;
    known &= has_integers || constant;
    if (f.value(v).type.dtype == DType::kNone) return;
  }
  for (const ValueId v : node.results) {
    open |= v != kNoValue && !f.value(v).type.shape.is_static();
    few &= v != kNoValue && IsFewIntegers(f.value(v).type);
  }
  const bool integers = followed && known && few;
  const bool dims = open && (followed || depth_ == Depth::kAll);
  if (!integers && !dims) return;
  const auto sampled = SampledNode::Create(registry_, forms_, f, node);
  if (!sampled) return;
  if (dims && !FollowDims(f, frame, node, **sampled, depth_ == Depth::kAll))
    FollowDims(f, frame, node, **sampled, true);
  // An op that selects data needs its constants as they are; otherwise they may be labeled too.
  if (integers && !FollowIntegers(f, frame, node, **sampled, false))
    FollowIntegers(f, frame, node, **sampled, true);
}

// The values of the operands may determine the result dims, whatever the operand shapes.
bool OpenSizes::FollowDims(const Function& f, Frame& frame, const Node& node, SampledNode& sampled,
                           bool shapes) {
  std::vector<Known> operands;
  for (const ValueId v : node.operands) {
    operands.push_back(v == kNoValue || f.value(v).is_const() ? Known() : In(f, frame, v));
    if (!shapes) operands.back().dims.reset();
  }
  sampled.Show(std::move(operands));
  const Fits fits = sampled.Shapes();
  size_t at = 0;
  bool all = true;
  for (const ValueId v : node.results) {
    if (at >= fits.size() || !fits[at] || !fits[at]->symbols.empty() || fits[at]->offset < 0) return false;
    const auto rank = static_cast<size_t>(fits[at]->offset);
    const Shape declared = v == kNoValue ? Shape() : f.value(v).type.shape;
    Sizes dims;
    for (size_t d = 0; v != kNoValue && d < rank; ++d) {
      const auto& fit = fits[at + 1 + d];
      const bool open = declared.rank() <= static_cast<int>(d) || declared[d] < 0;
      all &= fit || !open;
      dims.push_back(fit && open ? Of(*fit, sampled.symbols()) : Own(f, v, static_cast<int64_t>(d)));
    }
    at += 1 + rank;
    if (v != kNoValue) frame[static_cast<size_t>(v)].dims = std::move(dims);
  }
  return all;
}

// Labels instead of numbers show which numbers reach the result. An op that needs the values of its constants
// runs with those (`labeled` is false). A value that never changes is ignored: it may come from a comparison.
bool OpenSizes::FollowIntegers(const Function& f, Frame& frame, const Node& node, SampledNode& sampled,
                               bool labeled) {
  Sizes labels;
  std::vector<Known> operands;
  for (const ValueId v : node.operands) {
    const bool shown = v == kNoValue || (f.value(v).is_const() && !labeled);
    operands.push_back(shown ? Known() : In(f, frame, v));
    if (shown) continue;
    if (!operands.back().ints) return false;
    for (Size& size : *operands.back().ints) {
      if (!size.is_number()) continue;
      labels.push_back(size);
      size = {-static_cast<int32_t>(labels.size()), 1, 0};
    }
  }
  sampled.Show(std::move(operands));
  Sizes symbols = sampled.symbols();
  for (Size& each : symbols)
    if (each.symbol < 0) each = labels[static_cast<size_t>(-each.symbol - 1)];
  const Fits fits = sampled.Integers();
  const auto is_certain = [](const auto& fit) { return fit && !fit->symbols.empty(); };
  const auto certain = std::ranges::count_if(fits, is_certain);
  if (certain == 0 || (!labeled && certain < std::ssize(fits))) return false;
  size_t at = 0;
  for (const ValueId v : node.results) {
    Sizes ints;
    for (int64_t n = *f.value(v).type.shape.element_count(); n > 0; --n, ++at)
      ints.push_back(is_certain(fits[at]) ? Of(*fits[at], symbols) : Add({}));
    frame[static_cast<size_t>(v)].ints = std::move(ints);
  }
  return true;
}

const Function* OpenSizes::Enter(const Node& node, std::string_view attr) {
  const FunctionRef* ref = node.attrs.function(attr);
  const Function* callee = ref ? module_.Find(ref->name) : nullptr;
  if (callee) nodes_ += callee->nodes.size() + 1;
  if (!callee || nodes_ > kMostNodes) return nullptr;
  if (entries_.emplace(callee, &node).first->second != &node) shared_.insert(callee);
  return callee;
}

void OpenSizes::Loop(const Function& f, Frame& frame, const Node& node) {
  std::vector<Known> start;
  for (const ValueId v : node.operands) start.push_back(In(f, frame, v));
  std::vector<Known> given = start;
  std::set<std::pair<size_t, size_t>> changed;
  bool stable = false;
  for (int round = 0; !stable; ++round) {
    const Function* body = Enter(node, "body_subgraph_index");
    if (!body || body->inputs.size() != start.size() || body->outputs.size() != start.size() ||
        node.results.size() != start.size() ||
        std::ranges::find(node.results, kNoValue) != node.results.end())
      return;
    Frame inside(static_cast<size_t>(body->value_count()));
    for (size_t i = 0; i < start.size(); ++i) inside[static_cast<size_t>(body->inputs[i])] = given[i];
    Walk(*body, inside);
    stable = true;
    for (size_t i = 0; i < start.size(); ++i) {
      if (body->outputs[i] == body->inputs[i]) continue;
      const Known out = In(*body, inside, body->outputs[i]);
      if (given[i].ints && (round >= kRounds || out.ints != given[i].ints)) {
        given[i].ints.reset();
        stable = false;
      }
      if (given[i].dims && (!out.dims || out.dims->size() != given[i].dims->size())) {
        given[i].dims.reset();
        stable = false;
      }
      for (size_t d = 0; given[i].dims && d < given[i].dims->size(); ++d) {
        Size& size = (*given[i].dims)[d];
        const bool same = round < kRounds && (*out.dims)[d] == size;
        if (same || !changed.emplace(i, d).second) continue;
        const auto axis = static_cast<int64_t>(d);
        size = &f == &outermost_ ? Add({.value = kNoValue,
                                        .axis = 0,
                                        .start = (*start[i].dims)[d],
                                        .end = Own(f, node.results[i], axis)})
                                 : Add({});
        stable = false;
      }
    }
    frames_[body] = std::move(inside);
  }
  for (size_t i = 0; i < given.size(); ++i) {
    for (size_t d = 0; given[i].dims && d < given[i].dims->size(); ++d)
      if (changed.contains({i, d})) (*given[i].dims)[d] = Own(f, node.results[i], static_cast<int64_t>(d));
    frame[static_cast<size_t>(node.results[i])] = std::move(given[i]);
  }
}

void OpenSizes::Branches(const Function& f, Frame& frame, const Node& node) {
  std::vector<Known> results;
  for (const char* attr : {"then_subgraph_index", "else_subgraph_index"}) {
    const Function* branch = Enter(node, attr);
    if (!branch || branch->outputs.size() != node.results.size()) return;
    Frame inside(static_cast<size_t>(branch->value_count()));
    for (size_t i = 0; i < branch->inputs.size() && i + 1 < node.operands.size(); ++i)
      inside[static_cast<size_t>(branch->inputs[i])] = In(f, frame, node.operands[i + 1]);
    Walk(*branch, inside);
    for (const ValueId v : branch->outputs) results.push_back(In(*branch, inside, v));
    frames_[branch] = std::move(inside);
  }
  for (size_t i = 0; i < node.results.size(); ++i) {
    const Known& a = results[i];
    const Known& b = results[i + node.results.size()];
    if (node.results[i] == kNoValue || !a.dims || !b.dims || a.dims->size() != b.dims->size()) continue;
    Sizes dims;
    for (size_t d = 0; d < a.dims->size(); ++d)
      dims.push_back((*a.dims)[d] == (*b.dims)[d] ? (*a.dims)[d]
                                                  : Own(f, node.results[i], static_cast<int64_t>(d)));
    frame[static_cast<size_t>(node.results[i])] = {dims, a.ints == b.ints ? a.ints : std::nullopt};
  }
}

int FoldShapes(Registry& registry, const Module& module, Function& f) {
  const OpenSizes open(registry, module, f, OpenSizes::Depth::kIntegers);
  const OpenSizes::Frame& frame = open.frames_.at(&f);
  int found = 0;
  for (auto& node : f.nodes) {
    bool constant = !node->results.empty();
    for (const ValueId v : node->results) {
      if (v == kNoValue) continue;
      const auto& [dims, ints] = frame[static_cast<size_t>(v)];
      Shape& shape = f.value(v).type.shape;
      if (dims && !shape.ranked()) {
        shape = Shape(std::vector<int64_t>(dims->size(), Shape::kUnknown));
        ++found;
      }
      for (size_t d = 0; dims && shape.rank() == std::ssize(*dims) && d < dims->size(); ++d) {
        if (shape[d] >= 0 || !(*dims)[d].is_number() || (*dims)[d].offset < 0) continue;
        shape.dims()[d] = (*dims)[d].offset;
        ++found;
      }
      constant &= ints && AllNumbers(*ints) && IsFewIntegers(f.value(v).type);
    }
    if (!constant || !frame[static_cast<size_t>(node->results[0])].ints) continue;
    for (const ValueId v : node->results) {
      std::vector<int64_t> values;
      for (const Size& size : *frame[static_cast<size_t>(v)].ints) values.push_back(size.offset);
      f.value(v).data = IntegerBuffer(f.value(v).type.dtype, values);
    }
    node.reset();
    ++found;
  }
  f.Sweep();
  return found;
}

}  // namespace fusebox
