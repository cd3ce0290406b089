// SPDX-License-Identifier: Apache-2.0
#include "check/invocation.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "check/child.h"
#include "host/graph/view.h"

namespace fusebox::check {
namespace {

constexpr size_t kMostChunksAlone = 32;  // each one copies all memory that the kernel may write

thread_local bool inside_chunk = false;

bool HasBytes(const fbx_tensor& t) {
  return t.data != nullptr && t.dtype != FBX_RESOURCE && t.dtype != FBX_VARIANT &&
         !(t.flags & FBX_TENSOR_ABSENT);
}

bool IsSized(const fbx_tensor& t) {
  return t.rank >= 0 && std::all_of(t.dims, t.dims + t.rank, [](int64_t d) { return d >= 0; });
}

}  // namespace

Invocation::Invocation(const KernelProxy& kernel, const fbx_host* host, const fbx_node& node,
                       InstanceProxy& instance, StateProxy& state)
    : kernel_(kernel),
      rig_(*kernel.rig),
      real_host_(host),
      real_(node),
      instance_(instance),
      state_(state),
      shown_(Show(node, rig_, pages_)) {
  if (!guarded()) return;
  TakeOperands();
  TakeResults();
  TakeScratch();
}

Region Invocation::NewRegion(size_t bytes, const std::string& name) const {
  const bool start = rig_.conditions().memory == Conditions::Memory::kGuardedStart;
  return Region(bytes, kAlignment, start ? Region::Side::kStart : Region::Side::kEnd, rig_.conditions().fill,
                name);
}

void Invocation::AddBlock(const std::string& name, size_t bytes, fbx_tensor* shown, const fbx_tensor* real) {
  written_.push_back({.name = name,
                      .memory = NewRegion(bytes, name),
                      .shown = shown,
                      .real = real,
                      .is_scratch = real == nullptr});
}

void Invocation::TakeOperands() {
  instance_.constants.resize(real_.operand_count);
  for (size_t i = 0; i < real_.operand_count; ++i) {
    const fbx_tensor& real = *real_.operands[i];
    fbx_tensor& shown = *shown_.operands[i];
    if (!HasBytes(real)) continue;
    if (real.flags & FBX_TENSOR_CONST) {
      if (instance_.constants[i]) shown.data = instance_.constants[i]->data();
      continue;
    }
    const std::string name = "operand " + std::to_string(i);
    Region memory = NewRegion(real.bytes, name);
    std::memcpy(memory.data(), real.data, real.bytes);
    shown.data = memory.data();
    if (real.flags & FBX_TENSOR_VARIABLE) {
      written_.push_back({name, std::move(memory), &shown, &real});
    } else {
      memory.Protect();
      inputs_.push_back(std::move(memory));
    }
  }
}

void Invocation::TakeResults() {
  for (size_t i = 0; i < real_.result_count; ++i) {
    const fbx_tensor& real = *real_.results[i];
    fbx_tensor& shown = *shown_.results[i];
    if (!HasBytes(real)) continue;
    if (!IsSized(real)) {  // resize follows
      shown.data = nullptr;
      shown.bytes = 0;
      continue;
    }
    const auto state = std::ranges::find_if(
        written_, [&](const Block& b) { return b.real != nullptr && b.real->data == real.data; });
    if (state != written_.end()) {
      shown.data = state->memory.data();
      continue;
    }
    AddBlock("result " + std::to_string(i), real.bytes, &shown, &real);
    shown.data = written_.back().memory.data();
  }
}

void Invocation::TakeScratch() {
  std::vector<void*> pointers;
  for (StateProxy::Slot& slot : state_.slots) {
    if (slot.kept) {
      pointers.push_back(slot.kept->data());
      continue;
    }
    AddBlock("scratch slot " + std::to_string(pointers.size()), slot.bytes, nullptr, nullptr);
    pointers.push_back(written_.back().memory.data());
  }
  shown_.node->scratch = pages_.Array(pointers.data(), pointers.size());
}

fbx_status Invocation::Run() {
  rig_.CountInvoke(*kernel_.real);
  SetPlace("invoke", FromAbi(kernel_.real->op));
  const fbx_host* const host = Show(real_host_, rig_, pages_, this);
  const ShownTexts texts(real_, pages_);
  const fbx_status status =
      kernel_.real->invoke(host, kernel_.real->user, instance_.real, state_.real, shown_.node);
  SetPlace("code after invoke", FromAbi(kernel_.real->op));
  if (status == FBX_OK) CopyBack();
  return status;
}

void Invocation::CopyBack() {
  const std::string op(FromAbi(kernel_.real->op));
  for (const Block& block : written_) {
    if (const std::string where = block.memory.Overwritten(); !where.empty())
      rig_.Report("invoke of " + op + " writes outside of " + block.name + ", " + where);
    if (block.real != nullptr) std::memcpy(block.real->data, block.memory.data(), block.real->bytes);
  }
  for (const StateProxy::Slot& slot : state_.slots) {
    if (slot.kept && !slot.kept->Overwritten().empty())
      rig_.Report("invoke of " + op + " writes outside of its persistent memory, " +
                  slot.kept->Overwritten());
  }
}

fbx_status Invocation::Resize(uint32_t result, const int64_t* dims, int32_t rank, size_t bytes) {
  const auto* const api =
      static_cast<const fbx_resize*>(real_host_->get_extension(real_host_, AsAbi(FBX_EXT_RESIZE)));
  const fbx_status status = api->resize(real_host_, &real_, result, dims, rank, bytes);
  if (status != FBX_OK || result >= real_.result_count) return status;
  const fbx_tensor& real = *real_.results[result];
  fbx_tensor& shown = *shown_.results[result];
  const fbx_head head = shown.head;
  shown = real;
  shown.head = head;
  if (real.rank > 0) shown.dims = pages_.Array(real.dims, static_cast<size_t>(real.rank));
  if (!guarded() || !HasBytes(real)) return status;
  AddBlock("result " + std::to_string(result), real.bytes, &shown, &real);
  shown.data = written_.back().memory.data();
  return status;
}

uint32_t Invocation::ThreadCount() const {
  if (rig_.conditions().chunks != Conditions::Chunks::kOfHost) return rig_.conditions().workers;
  const auto* const api =
      static_cast<const fbx_threads*>(real_host_->get_extension(real_host_, AsAbi(FBX_EXT_THREADS)));
  return api->thread_count(real_host_);
}

// Before any code of a plugin runs: a task may have changed the mode of this thread in an earlier call.
static const auto mode_at_start = FloatMode();

void Invocation::RunTask(Task task, void* context, size_t begin, size_t end, uint32_t worker) {
  task(context, begin, end, worker);
  if (FloatMode() != mode_at_start)
    rig_.Report("a task of parallel_for in " + std::string(FromAbi(kernel_.real->op)) +
                " changes the mode of floating-point arithmetic of its thread: rounding, traps or denormals");
}

void Invocation::RunChunk(size_t chunk, size_t n, size_t grain, Task task, void* context) {
  inside_chunk = true;
  rig_.CountChunk();
  const size_t begin = chunk * grain;
  RunTask(task, context, begin, std::min(n, begin + grain),
          static_cast<uint32_t>(chunk % rig_.conditions().workers));
  inside_chunk = false;
}

// Each chunk starts from the memory as it was before parallel_for. No two may write the same byte, except in
// the scratch memory of one worker.
void Invocation::RunAlone(size_t chunks, size_t n, size_t grain, Task task, void* context) {
  struct Area {
    Block& block;
    std::vector<std::byte> before, after;
    std::vector<uint32_t> writer;  // 1 + chunk; 0: none
  };
  std::vector<Area> areas;
  for (Block& block : written_) {
    const std::byte* const data = block.memory.data();
    std::vector<std::byte> now(data, data + block.memory.bytes());
    areas.push_back({block, now, now, std::vector<uint32_t>(now.size())});
  }
  const uint32_t workers = rig_.conditions().workers;
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    for (Area& area : areas) std::ranges::copy(area.before, area.block.memory.data());
    RunChunk(chunk, n, grain, task, context);
    for (Area& area : areas) {
      const std::byte* const data = area.block.memory.data();
      for (size_t i = 0; i < area.before.size(); ++i) {
        if (data[i] == area.before[i]) continue;
        uint32_t& writer = area.writer[i];
        if (writer != 0 && !(area.block.is_scratch && (writer - 1) % workers == chunk % workers))
          rig_.Report("chunks " + std::to_string(writer - 1) + " and " + std::to_string(chunk) +
                      " of parallel_for in " + std::string(FromAbi(kernel_.real->op)) + " both write byte " +
                      std::to_string(i) + " of " + area.block.name + ", which is a data race");
        writer = static_cast<uint32_t>(chunk + 1);
        area.after[i] = data[i];
      }
    }
  }
  for (Area& area : areas) std::ranges::copy(area.after, area.block.memory.data());
}

void Invocation::ParallelFor(size_t n, size_t grain, Task task, void* context) {
  const Conditions& conditions = rig_.conditions();
  if (conditions.chunks == Conditions::Chunks::kOfHost) {
    const auto* const api =
        static_cast<const fbx_threads*>(real_host_->get_extension(real_host_, AsAbi(FBX_EXT_THREADS)));
    return api->parallel_for(real_host_, n, grain, task, context);
  }
  if (n == 0) return;
  if (inside_chunk) return task(context, 0, n, 0);
  grain = std::max<size_t>(grain, 1);
  if (conditions.chunks == Conditions::Chunks::kAlone) {
    grain = std::max(grain, (n + kMostChunksAlone - 1) / kMostChunksAlone);
    return RunAlone((n + grain - 1) / grain, n, grain, task, context);
  }
  std::vector<size_t> order((n + grain - 1) / grain);
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937_64 random(conditions.seed);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  for (const size_t chunk : order) RunChunk(chunk, n, grain, task, context);
}

namespace {

uint32_t ThreadCountOf(const fbx_host* host) noexcept { return ShownOf(host).invocation->ThreadCount(); }
void ParallelForOf(const fbx_host* host, size_t n, size_t grain, Invocation::Task task,
                   void* context) noexcept {
  ShownOf(host).invocation->ParallelFor(n, grain, task, context);
}
fbx_status ResizeOf(const fbx_host* host, const fbx_node*, uint32_t result, const int64_t* dims, int32_t rank,
                    size_t bytes) noexcept {
  return ShownOf(host).invocation->Resize(result, dims, rank, bytes);
}

}  // namespace

const fbx_resize& ResizeOfInvocation() {
  static constexpr fbx_resize kTable = {FBX_HEAD(fbx_resize), ResizeOf};
  return kTable;
}

const fbx_threads& ThreadsOfInvocation() {
  static constexpr fbx_threads kTable = {FBX_HEAD(fbx_threads), ThreadCountOf, ParallelForOf};
  return kTable;
}

}  // namespace fusebox::check
