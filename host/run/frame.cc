// SPDX-License-Identifier: Apache-2.0
#include "host/run/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "host/eval/zero.h"

namespace fusebox::run {
namespace {

std::string DescribeArena(const plan::Code& code, const plan::Segment& segment) {
  const plan::Place* largest = nullptr;
  for (const plan::Place& place : segment.places)
    if (place.kind == plan::Place::kArena && (largest == nullptr || place.bytes > largest->bytes))
      largest = &place;
  if (largest == nullptr) return "scratch memory of kernels";
  return "intermediate values, the largest of which is " + code.DescribeValue(largest->value, largest->type);
}

void FillInitial(const fbx_tensor& tensor, const Value& value) {
  if (!value.initial) return FillZero(tensor);
  std::memcpy(tensor.data, value.initial.data(), std::min(tensor.bytes, value.initial.size()));
}

void AppendDims(std::string& key, const fbx_tensor& tensor) {
  const int64_t rank = tensor.rank;
  key.append(reinterpret_cast<const char*>(&rank), sizeof(rank));
  if (rank > 0)
    key.append(reinterpret_cast<const char*>(tensor.dims), static_cast<size_t>(rank) * sizeof(int64_t));
}

}  // namespace

void BindTensor(fbx_tensor& to, const fbx_tensor& from) {
  to.dims = from.dims;
  to.rank = from.rank;
  to.bytes = from.bytes;
  to.data = from.data;
}

Frame::Frame(const plan::Code& code, Runner& runner)
    : code_(code),
      function_(*code.function),
      runner_(runner),
      view_(code),
      host_nodes_(code.units.size()),
      growables_(static_cast<size_t>(function_.value_count())),
      dynamic_(growables_.size()),
      returned_(function_.outputs.size()),
      has_parts_(std::ranges::any_of(code.units, [](const plan::Unit& unit) { return unit.part >= 0; })),
      records_(runner.profile_ != nullptr ? code.units.size() : 0) {
  for (size_t i = 0; i < code.units.size(); ++i) {
    view_.node(i).resizer = this;
    if (!code.units[i].kernel) MakeHostNode(i, host_nodes_[i]);
  }
  MakeVariables();
}

void Frame::MakeVariables() {
  for (const ValueId id : code_.variables) {
    auto& block = *variable_memory_.emplace_back(std::make_unique<Block>());
    const Value& value = function_.value(id);
    const auto size = StorageSize(value.type);
    if (!size) continue;
    AllocateFor([&] { return "variable " + code_.DescribeValue(id, value.type); },
                [&] { block.Reserve(*size, true); });
    view_.tensor(id).data = block.data();
    view_.tensor(id).bytes = *size;
    if (value.initial || value.quant) FillInitial(view_.tensor(id), value);
  }
}

Status Frame::Usable() const {
  for (const ValueId id : code_.variables) {
    const Value& value = function_.value(id);
    if (!StorageSize(value.type)) {
      return Unsupported(fmt::format("function {}: variable tensor {} is {}, a size that no session can keep",
                                     code_.name(), value.name, ToString(value.type)));
    }
  }
  return {};
}

void Frame::Reset() {
  for (const ValueId id : code_.variables) {
    if (view_.tensor(id).data != nullptr) FillInitial(view_.tensor(id), function_.value(id));
  }
  const auto reset = [](const auto& self, std::vector<std::unique_ptr<Plan>>& plans) -> void {
    for (const auto& plan : plans) {
      plan->segment->Reset();
      self(self, plan->next);
    }
  };
  reset(reset, plans_);
}

Status Frame::BindInputs(std::span<const fbx_tensor* const> inputs) {
  if (inputs.size() != function_.inputs.size()) {
    return Invalid(fmt::format("function {} has {} inputs, not {}", code_.name(), function_.inputs.size(),
                               inputs.size()));
  }
  key_.clear();
  key_.reserve(inputs.size() * 4 * sizeof(int64_t));
  for (size_t i = 0; i < inputs.size(); ++i) {
    fbx_tensor& tensor = view_.tensor(function_.inputs[i]);
    if (inputs[i]->dtype != tensor.dtype) {
      return Invalid(fmt::format("function {}: input {} is {}, expected {}", code_.name(), i,
                                 Name(static_cast<DType>(inputs[i]->dtype)),
                                 Name(static_cast<DType>(tensor.dtype))));
    }
    BindTensor(tensor, *inputs[i]);
    AppendDims(key_, tensor);
  }
  if (has_parts_ && runner_.context_.delegates == nullptr) key_ += "kernels";  // a plan without delegates
  return {};
}

// The key of the next segment: shapes found at run time, or values.
void Frame::MakeKey(const plan::Segment& before) {
  key_.clear();
  for (const ValueId id : before.pending) {
    const fbx_tensor& tensor = view_.tensor(id);
    AppendDims(key_, tensor);
    if (before.needs_values) key_.append(static_cast<const char*>(tensor.data), tensor.bytes);
  }
}

Result<Frame::Plan*> Frame::FindPlan(std::vector<std::unique_ptr<Plan>>& plans, size_t begin) {
  const auto found =
      std::find_if(plans.begin(), plans.end(), [&](const auto& plan) { return plan->key == key_; });
  if (found != plans.end()) {
    std::rotate(found, found + 1, plans.end());
    return plans.back().get();
  }
  if (plans.size() >= kPlansKept) plans.erase(plans.begin());
  Unbind();
  TraceSpan span("plan");
  span.Arg("function", code_.name());
  FUSEBOX_TRY(runner_.program_.EnsureInitialized(code_));
  std::vector<ValueId> marked;
  for (const Plan* plan : path_) {
    if (!plan->segment->needs_values) continue;
    for (const ValueId id : plan->segment->pending) {
      fbx_tensor& tensor = view_.tensor(id);
      if (tensor.flags & (FBX_TENSOR_CONST | FBX_TENSOR_KNOWN)) continue;
      tensor.flags |= FBX_TENSOR_KNOWN;
      marked.push_back(id);
    }
  }
  auto segment = [&] {
    const CallerServices::Phase phase(runner_.services_);
    return plan::PlanSegment(code_, view_, begin, runner_.context_);
  }();
  for (const ValueId id : marked) view_.tensor(id).flags &= ~uint32_t{FBX_TENSOR_KNOWN};
  runner_.calls_.DropDiags();
  FUSEBOX_TRY(segment);
  if (runner_.cancelled()) return Runner::Cancelled();  // kernels and delegates may have stopped early
  for (const plan::Place& place : (*segment)->places) {
    auto& growable = growables_[static_cast<size_t>(place.value)];
    if (place.kind == plan::Place::kDynamic && growable == nullptr) growable = std::make_unique<Growable>();
    if (place.kind != plan::Place::kKept) continue;
    Kept& kept = kept_[place.value];
    AllocateFor([&] { return "unpacked weights " + code_.DescribeValue(place.value, place.type); },
                [&] {
                  if (kept.memory.Reserve(place.bytes)) kept.done = false;
                });
  }
  plans.push_back(std::make_unique<Plan>(Plan{key_, *std::move(segment), {}}));
  return plans.back().get();
}

// After changes of types in the view, by planning or for another plan.
void Frame::Unbind() {
  for (const auto& level : levels_) level->bound = nullptr;
}

Result<Frame::Plan*> Frame::FirstPlan(std::span<const fbx_tensor* const> inputs) {
  FUSEBOX_TRY(Usable());
  FUSEBOX_TRY(BindInputs(inputs));
  path_.clear();
  return FindPlan(plans_, 0);
}

Result<std::vector<Type>> Frame::PlanOnce(std::span<const fbx_tensor* const> inputs) {
  FUSEBOX_ASSIGN(Plan * plan, FirstPlan(inputs));
  Unbind();
  BindTypes(*plan->segment);
  std::vector<Type> types;
  types.reserve(function_.outputs.size());
  for (const ValueId id : function_.outputs) {
    Type& type = types.emplace_back(TypeOf(view_.tensor(id)));
    const bool later = code_.use(id).defined >= static_cast<int>(plan->segment->end);
    if (later || !type.shape.is_static()) type.shape = Shape();
  }
  return types;
}

Status Frame::Prepare(std::span<const fbx_tensor* const> inputs, std::set<const void*>& done) {
  FUSEBOX_ASSIGN(Plan * plan, FirstPlan(inputs));
  if (levels_.empty()) levels_.push_back(std::make_unique<Level>());
  Reserve(*levels_[0], *plan->segment);
  if (!done.insert(plan).second) return {};
  Unbind();
  BindTypes(*plan->segment);
  for (const plan::Step& step : plan->segment->steps) {
    HostNode& host = host_nodes_[step.node];
    const Node& node = *function_.nodes[step.node];
    if (code_.units[step.node].part >= 0 && step.part < 0) BodyOf(step.node);
    if (host.callees.empty() || node.is(Op::kCallOnce)) continue;
    const fbx_node& abi = view_.node(step.node).abi;
    const plan::Unit& unit = code_.units[step.node];
    const size_t first = node.is(Op::kIf) && !unit.runs_body ? 1 : 0;
    const size_t always = unit.part < 0 ? unit.always_called(node).size() : 1;
    for (size_t i = 0; i < host.callees.size(); ++i) {
      Status prepared = host.callees[i]->Prepare({abi.operands + first, abi.operand_count - first}, done);
      if (!prepared && i < always) return std::move(prepared).At([&] { return code_.Describe(step.node); });
    }
  }
  return {};
}

Status Frame::Call(std::span<const fbx_tensor* const> inputs, std::span<const Out> outputs) {
  returned_.assign(returned_.size(), false);
  last_call_ = runner_.calls_made_;
  FUSEBOX_ASSIGN(Plan * plan, FirstPlan(inputs));
  for (size_t level = 0;; ++level) {
    plan::Segment& segment = *plan->segment;
    FUSEBOX_TRY(Bind(level, segment, outputs));
    FUSEBOX_TRY(RunSteps(segment));
    if (segment.end >= function_.nodes.size()) break;
    path_.push_back(plan);
    MakeKey(segment);
    FUSEBOX_ASSIGN(plan, FindPlan(plan->next, segment.end));
  }
  return ReturnOutputs(outputs);
}

void Frame::BindTypes(plan::Segment& segment) {
  for (const plan::Place& place : segment.places) {
    view_.SetType(place.value, place.type);
    fbx_tensor& tensor = view_.tensor(place.value);
    tensor.bytes = place.bytes;
    if (place.kind == plan::Place::kKnown) {
      tensor.flags |= FBX_TENSOR_KNOWN;
    } else {
      tensor.flags &= ~uint32_t{FBX_TENSOR_KNOWN};
    }
    dynamic_[static_cast<size_t>(place.value)] = place.kind == plan::Place::kDynamic;
  }
}

bool Frame::Reserve(Level& level, const plan::Segment& segment) const {
  return AllocateFor([&] { return DescribeArena(code_, segment); },
                     [&] { return level.arena.Reserve(segment.arena_bytes); });
}

Status Frame::Bind(size_t level, plan::Segment& segment, std::span<const Out> outputs) {
  while (levels_.size() <= level) levels_.push_back(std::make_unique<Level>());
  Level& memory = *levels_[level];
  const bool moved = Reserve(memory, segment);
  const bool rebind = moved || memory.bound != &segment;
  if (rebind) BindTypes(segment);
  for (const plan::Place& place : segment.places) {
    fbx_tensor& tensor = view_.tensor(place.value);
    switch (place.kind) {
      case plan::Place::kArena: tensor.data = memory.arena.data() + place.at; break;
      case plan::Place::kAlias: tensor.data = view_.tensor(static_cast<ValueId>(place.at)).data; break;
      case plan::Place::kKnown: tensor.data = const_cast<std::byte*>(place.known.data()); break;
      case plan::Place::kKept: tensor.data = kept_.at(place.value).memory.data(); break;
      case plan::Place::kDynamic:
      case plan::Place::kVariable: tensor.data = nullptr; break;
      case plan::Place::kOutput: FUSEBOX_TRY(BindOutput(place, outputs)); break;
    }
  }
  if (!rebind) return {};
  for (plan::Step& step : segment.steps) {
    for (size_t i = 0; i < step.slots.size(); ++i) {
      const plan::Step::Slot& slot = step.slots[i];
      step.scratch[i] = slot.persistent ? segment.persistent[slot.at]->data() : memory.arena.data() + slot.at;
    }
    view_.node(step.node).abi.scratch = step.scratch.data();
    step.delegated.scratch = step.scratch.data();
  }
  memory.bound = &segment;
  return {};
}

Status Frame::BindOutput(const plan::Place& place, std::span<const Out> outputs) {
  fbx_tensor& tensor = view_.tensor(place.value);
  const Out& out = outputs[place.at];
  if (out.memory != nullptr) {
    // Values of other dims may share the memory; the caller gets the dims of the output.
    const fbx_tensor& type = view_.tensor(function_.outputs[place.at]);
    out.tensor->dtype = type.dtype;
    AllocateFor([&] { return "output " + code_.DescribeValue(function_.outputs[place.at], TypeOf(type)); },
                [&] { out.memory->Resize(*out.tensor, type.dims, type.rank, place.bytes); });
  } else if (out.tensor->bytes != place.bytes) {
    return Internal(fmt::format("function {}: output {} has {} bytes, planned {}", code_.name(), place.at,
                                place.bytes, out.tensor->bytes));
  }
  if (out.input >= 0) FUSEBOX_TRY(CheckShared(place.at, out.input, place.value));
  tensor.data = out.tensor->data;
  returned_[place.at] = true;
  return {};
}

Status Frame::CheckShared(size_t output, int input, ValueId first) const {
  const ValueId from = function_.inputs[static_cast<size_t>(input)];
  return plan::CheckShared(code_, from, first).At([&] {
    return fmt::format("output {} '{}' has the memory of input {} '{}'", output,
                       function_.value(function_.outputs[output]).name, input, function_.value(from).name);
  });
}

// The segments of the latest plan, in order.
void Frame::ForEachSegment(const std::function<void(const plan::Segment&)>& visit) const {
  const auto each = [&](const auto& self, const std::vector<std::unique_ptr<Plan>>& plans) -> void {
    for (const auto& plan : plans) {
      visit(*plan->segment);
      self(self, plan->next);
    }
  };
  if (plans_.empty()) return;
  visit(*plans_.back()->segment);
  each(each, plans_.back()->next);
}

std::string Frame::Explain() const {
  std::string text;
  ForEachSegment([&](const plan::Segment& segment) {
    text += fmt::format("function {}, nodes {} to {}, arena {} bytes\n{}", code_.name(), segment.begin,
                        segment.end, segment.arena_bytes, plan::ToText(code_, segment, &runner_.delegates_));
  });
  return text;
}

void Frame::AddMemory(std::vector<MemoryPlan>& plans) const {
  ForEachSegment([&](const plan::Segment& segment) { plans.push_back(plan::PlanOf(code_, segment)); });
}

size_t Frame::arena_bytes() const {
  size_t bytes = 0;
  for (const auto& level : levels_) bytes += level->arena.capacity();
  return bytes;
}

}  // namespace fusebox::run
