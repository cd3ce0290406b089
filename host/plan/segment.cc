// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "host/eval/callback.h"
#include "host/plan/plan.h"
#include "host/plan/variables.h"
#include "host/plugin/call.h"

namespace fusebox::plan {
namespace {

// Nodes that unpack compressed weights for kernels. The result is kept, to not compute it in every run.
bool UnpacksConstant(const Function& function, const Node& node) {
  return node.is(Op::kDequantize) && node.results.size() == 1 && node.operands[0] != kNoValue &&
         function.value(node.operands[0]).is_const();
}

// Hides data of activations from kernels while planning: a plan must not depend on values that change between
// runs.
class HiddenActivations {
 public:
  explicit HiddenActivations(View& view) : view_(view) {
    saved_.reserve(static_cast<size_t>(view.value_count()));
    for (ValueId id = 0; id < view.value_count(); ++id) {
      fbx_tensor& tensor = view.tensor(id);
      const bool known = (tensor.flags & (FBX_TENSOR_CONST | FBX_TENSOR_KNOWN)) != 0;
      saved_.push_back(known ? nullptr : tensor.data);
      if (!known) tensor.data = nullptr;
    }
  }
  ~HiddenActivations() {
    for (ValueId id = 0; id < view_.value_count(); ++id) {
      if (void* data = saved_[static_cast<size_t>(id)]) view_.tensor(id).data = data;
    }
  }
  HiddenActivations(const HiddenActivations&) = delete;

 private:
  View& view_;
  std::vector<void*> saved_;
};

class SegmentPlanner {
 public:
  SegmentPlanner(const Code& code, View& view, Context& context)
      : code_(code),
        function_(*code.function),
        view_(view),
        context_(context),
        request_of_(static_cast<size_t>(view.value_count()), kNone),
        variables_(view.variables()) {}

  Result<std::unique_ptr<Segment>> Run(size_t begin) {
    const HiddenActivations hidden(view_);
    segment_->begin = begin;
    const size_t nodes = function_.nodes.size() - begin;
    segment_->steps.reserve(nodes);
    segment_->places.reserve(nodes);
    requests_.reserve(nodes);
    FUSEBOX_TRY(AddNodes());
    ToOutputs();
    for (Request& request : requests_) request.last = std::min(request.last, static_cast<int>(segment_->end));
    for (Step& step : segment_->steps) {
      if (step.kernel != nullptr) FUSEBOX_TRY(Prepare(step).At([&] { return code_.Describe(step.node); }));
      if (step.part >= 0) PrepareDelegate(step);
    }
    segment_->arena_bytes = Arrange(requests_);
    TakeOffsets();
    return std::move(segment_);
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  size_t& RequestOf(ValueId id) { return request_of_[static_cast<size_t>(id)]; }
  size_t RequestOf(ValueId id) const { return request_of_[static_cast<size_t>(id)]; }

  Status AddNodes() {
    size_t i = segment_->begin;
    NodeShapes shapes;
    for (; i < function_.nodes.size(); ++i) {
      const Node& node = *function_.nodes[i];
      if (Status found = FindShapes(code_, i, view_, context_, shapes); !found)
        return std::move(found).At(code_.Describe(i));
      if (shapes.kind == NodeShapes::kNeedsValue) {
        segment_->needs_values = true;
        segment_->pending = std::move(shapes.needed);
        break;
      }
      if (shapes.kind == NodeShapes::kKnown) {
        AddKnown(node, shapes);
        continue;
      }
      AddStep(i, shapes);
      if (shapes.kind == NodeShapes::kDynamic) {
        ++i;
        break;
      }
    }
    segment_->end = i;
    return {};
  }

  void AddKnown(const Node& node, NodeShapes& shapes) {
    for (size_t r = 0; r < node.results.size(); ++r) {
      const ValueId id = node.results[r];
      if (id == kNoValue) continue;
      Tensor& value = shapes.values[r];
      view_.SetType(id, value.type);
      fbx_tensor& tensor = view_.tensor(id);
      tensor.data = const_cast<std::byte*>(value.data.data());
      tensor.bytes = value.data.size();
      tensor.flags |= FBX_TENSOR_KNOWN;
      segment_->places.push_back({.kind = Place::kKnown,
                                  .value = id,
                                  .type = value.type,
                                  .bytes = value.data.size(),
                                  .at = 0,
                                  .known = value.data});
    }
  }

  void AddStep(size_t index, const NodeShapes& shapes) {
    const Node& node = *function_.nodes[index];
    const Unit& unit = code_.units[index];
    Step& step = segment_->steps.emplace_back();
    step.node = index;
    if (unit.kernel) {
      step.kernel = unit.kernel.kernel;
      step.call = &context_.calls.For(*unit.kernel.plugin);
      step.invoke = KernelCall(*step.call, view_.node(index).abi);
      step.instance = unit.instance;
    }
    step.dynamic = shapes.kind == NodeShapes::kDynamic;
    step.once = !step.dynamic && unit.kernel && UnpacksConstant(function_, node);
    for (size_t r = 0; r < node.results.size(); ++r) {
      const ValueId id = node.results[r];
      if (id == kNoValue) continue;
      const Type& type = shapes.types[r];
      view_.SetType(id, type);
      fbx_tensor& tensor = view_.tensor(id);
      tensor.data = nullptr;
      tensor.flags &= ~uint32_t{FBX_TENSOR_KNOWN};  // of another plan
      const auto size = StorageSize(type);
      tensor.bytes = size.value_or(0);
      if (!size) {
        step.dynamic = true;
        segment_->places.push_back({.kind = Place::kDynamic, .value = id, .type = type, .bytes = 0, .at = 0});
        if (!type.shape.is_static()) segment_->pending.push_back(id);
        continue;
      }
      PlaceResult(step, index, r, type, *size);
    }
    if (ComputesNothing(index, step)) {
      segment_->steps.pop_back();
      return;
    }
    step.once = step.once && !step.dynamic;
    // A delegate needs to know sizes.
    if (step.dynamic || context_.delegates == nullptr || unit.part < 0) return;
    // Kernels handle empty tensors; the delegate handles later runs without them.
    const auto& abi = view_.node(index).abi;
    const auto empty = [](const fbx_tensor* tensor) {
      return tensor->rank > 0 &&
             std::find(tensor->dims, tensor->dims + tensor->rank, 0) != tensor->dims + tensor->rank;
    };
    if (std::any_of(abi.operands, abi.operands + abi.operand_count, empty) ||
        std::any_of(abi.results, abi.results + abi.result_count, empty))
      return;
    step.part = unit.part;
    step.misfit = shapes.misfit;
  }

  // Returns true if all results are empty. A kernel could loop over billions of pixels without channels.
  bool ComputesNothing(size_t index, const Step& step) const {
    const Node& node = *function_.nodes[index];
    return step.kernel != nullptr && !step.dynamic && code_.states[index].empty() && !node.results.empty() &&
           Info(node.op).effects == Effects::kPure && std::ranges::all_of(node.results, [&](ValueId id) {
             return id != kNoValue && view_.tensor(id).bytes == 0;
           });
  }

  // State uses the memory of its operand; the first result of an in-place kernel may; all others get their
  // own.
  void PlaceResult(Step& step, size_t index, size_t result, const Type& type, size_t bytes) {
    const ValueId id = function_.nodes[index]->results[result];
    if (step.once) {
      segment_->places.push_back({.kind = Place::kKept, .value = id, .type = type, .bytes = bytes, .at = 0});
      return;
    }
    for (const StateUse& use : code_.states[index]) {
      if (use.to != id) continue;
      if (use.kept || (!use.copy && RequestOf(use.from) != kNone)) return Share(id, use.from, type, bytes);
      step.copies.push_back(&use);
    }
    if (function_.nodes[index]->is(Op::kReadVariable) && !context_.keep_values && variables_.MayShow(index)) {
      step.in_variable = {id};
      segment_->places.push_back(
          {.kind = Place::kVariable, .value = id, .type = type, .bytes = bytes, .at = 0});
      return;
    }
    if (result == 0 && UpdatesVariable(index, type, bytes)) return;
    const ValueId operand = result == 0 ? InPlaceOperand(index, type, bytes) : kNoValue;
    if (operand != kNoValue) return Share(id, operand, type, bytes);
    RequestOf(id) = requests_.size();
    const int last_use = context_.keep_values ? ValueUse::kAlways : code_.use(id).last_use;
    requests_.push_back({bytes, static_cast<int>(index), std::max(static_cast<int>(index), last_use)});
    segment_->places.push_back(
        {.kind = Place::kArena, .value = id, .type = type, .bytes = bytes, .at = requests_.size() - 1});
  }

  // Places the result in the memory of a variable if its kernel may write it over an operand there.
  bool UpdatesVariable(size_t index, const Type& type, size_t bytes) {
    const auto [read, operand] = variables_.UpdatedBy(index);
    if (operand == kNoValue) return false;
    const fbx_tensor& tensor = view_.tensor(operand);
    const auto step = std::ranges::find(segment_->steps, read, &Step::node);
    if (step == segment_->steps.end() ||
        std::ranges::find(step->in_variable, operand) == step->in_variable.end() ||
        tensor.dtype != static_cast<fbx_dtype>(type.dtype) || tensor.bytes != bytes)
      return false;
    const ValueId id = function_.nodes[index]->results[0];
    step->in_variable.push_back(id);
    segment_->places.push_back({.kind = Place::kAlias,
                                .value = id,
                                .type = type,
                                .bytes = bytes,
                                .at = static_cast<size_t>(operand)});
    return true;
  }

  // An operand of equal size that lives in the arena of this segment and is not needed afterwards.
  ValueId InPlaceOperand(size_t index, const Type& type, size_t bytes) const {
    if (!IsInPlace(code_, index)) return kNoValue;
    for (const ValueId id : function_.nodes[index]->operands) {
      if (id == kNoValue || RequestOf(id) == kNone) continue;
      const fbx_tensor& tensor = view_.tensor(id);
      const Request& request = requests_[RequestOf(id)];
      // All values that share the memory must be unused after this node.
      if (request.last == static_cast<int>(index) && tensor.dtype == static_cast<fbx_dtype>(type.dtype) &&
          tensor.bytes == bytes) {
        return id;
      }
    }
    return kNoValue;
  }

  void Share(ValueId id, ValueId with, const Type& type, size_t bytes) {
    segment_->places.push_back(
        {.kind = Place::kAlias, .value = id, .type = type, .bytes = bytes, .at = static_cast<size_t>(with)});
    const size_t request = RequestOf(with);
    if (request == kNone) return;
    RequestOf(id) = request;
    int& last = requests_[request].last;
    last = std::max(last, code_.use(id).last_use);
  }

  // Values that end as an output are in the caller's memory, not in the arena.
  void ToOutputs() {
    std::vector<int> output_of(requests_.size(), -1);
    for (const Place& place : segment_->places) {
      const int output = code_.use(place.value).output;
      const size_t request = RequestOf(place.value);
      if (output >= 0 && request != kNone && output_of[request] < 0) output_of[request] = output;
    }
    for (Place& place : segment_->places) {
      if (place.kind != Place::kArena || output_of[place.at] < 0) continue;
      requests_[place.at].bytes = 0;
      place.kind = Place::kOutput;
      place.at = static_cast<size_t>(output_of[place.at]);
    }
  }

  struct PlanCall {
    fbx_plan plan;  // first: callbacks cast from it
    SegmentPlanner* planner;
    Step* step;
  };
  static fbx_status RequestScratch(const fbx_plan* plan, size_t bytes, uint32_t* slot) noexcept {
    return RequestSlot(plan, bytes, slot, false);
  }
  static fbx_status RequestPersistent(const fbx_plan* plan, size_t bytes, uint32_t* slot) noexcept {
    return RequestSlot(plan, bytes, slot, true);
  }
  static fbx_status RequestSlot(const fbx_plan* plan, size_t bytes, uint32_t* slot,
                                bool persistent) noexcept {
    auto& call = *const_cast<PlanCall*>(reinterpret_cast<const PlanCall*>(plan));
    return CallFromPlugin(call.step->call != nullptr ? call.step->call->abi() : nullptr, [&] {
      *slot = static_cast<uint32_t>(call.step->slots.size());
      return call.planner->AddSlot(*call.step, bytes, persistent) ? FBX_OK : FBX_OUT_OF_MEMORY;
    });
  }

  bool AddSlot(Step& step, size_t bytes, bool persistent) {
    if (bytes > SIZE_MAX / 4) return false;
    if (step.slots.empty()) step.slots.reserve(4);
    if (persistent) {
      segment_->persistent.push_back(std::make_unique<Block>());
      segment_->persistent.back()->Reserve(bytes, true);
      step.slots.push_back({true, bytes, segment_->persistent.size() - 1});
    } else {
      step.slots.push_back({false, bytes, requests_.size()});
      requests_.push_back({bytes, static_cast<int>(step.node), static_cast<int>(step.node)});
    }
    return true;
  }

  Status Prepare(Step& step) {
    if (!FBX_HAS(step.kernel, prepare)) return {};
    PlanCall call{{FBX_HEAD(fbx_plan), RequestScratch, RequestPersistent, context_.threads}, this, &step};
    const Recorded in(step.invoke);
    const fbx_status status = step.kernel->prepare(step.call->abi(), step.kernel->user, step.instance,
                                                   &view_.node(step.node).abi, &call.plan, &step.state);
    return status == FBX_OK ? Status() : step.call->Check(status);
  }

  // If the delegate declines, its memory requests are dropped, and the body runs.
  void PrepareDelegate(Step& step) {
    const size_t requests = requests_.size();
    const size_t persistent = segment_->persistent.size();
    const fbx_node& node = view_.node(step.node).abi;
    step.delegated = {.head = FBX_HEAD(fbx_call),
                      .input_count = node.operand_count,
                      .output_count = node.result_count,
                      .inputs = node.operands,
                      .outputs = node.results,
                      .scratch = nullptr};
    PlanCall call{{FBX_HEAD(fbx_plan), RequestScratch, RequestPersistent, context_.threads}, this, &step};
    step.prepared =
        context_.delegates->Prepare(static_cast<size_t>(step.part), step.delegated, call.plan, step.misfit);
    if (step.prepared != 0) return;
    step.part = -1;
    step.slots.clear();
    requests_.erase(requests_.begin() + static_cast<ptrdiff_t>(requests), requests_.end());
    segment_->persistent.resize(persistent);
  }

  void TakeOffsets() {
    for (Place& place : segment_->places) {
      if (place.kind == Place::kArena) place.at = requests_[place.at].offset;
    }
    for (Step& step : segment_->steps) {
      for (Step::Slot& slot : step.slots) {
        if (!slot.persistent) slot.at = requests_[slot.at].offset;
      }
      step.scratch.resize(step.slots.size());
    }
  }

  const Code& code_;
  const Function& function_;
  View& view_;
  Context& context_;
  std::unique_ptr<Segment> segment_ = std::make_unique<Segment>();
  std::vector<Request> requests_;
  std::vector<size_t> request_of_;  // by value: its request in this segment's arena
  const VariableUses& variables_;
};

}  // namespace

Segment::~Segment() {
  for (const Step& step : steps) {
    if (step.state != nullptr && FBX_HAS(step.kernel, free_state))
      step.kernel->free_state(step.kernel->user, step.state);
  }
}

void Segment::Reset() {
  for (const Step& step : steps) {
    for (const Step::Slot& slot : step.slots) {
      if (slot.persistent) std::fill_n(persistent[slot.at]->data(), slot.bytes, std::byte{0});
    }
    if (!FBX_HAS(step.kernel, reset)) continue;
    const InCall in(*step.call, "kernel", step.kernel->op);
    step.kernel->reset(step.kernel->user, step.instance, step.state);
  }
}

Result<std::unique_ptr<Segment>> PlanSegment(const Code& code, View& view, size_t begin, Context& context) {
  return SegmentPlanner(code, view, context).Run(begin).At([&] { return "function " + code.name(); });
}

}  // namespace fusebox::plan
