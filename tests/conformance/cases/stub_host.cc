// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/cases/stub_host.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

struct fbx_attrs {
  std::vector<fusebox::conformance::Attr> entries;
};

namespace fusebox::conformance {
namespace {

constexpr uint8_t kCanary = 0xC7;

const Attr* Find(const fbx_attrs* attrs, fbx_str key) {
  for (const Attr& a : attrs->entries)
    if (a.key == to_string_view(key)) return &a;
  return nullptr;
}

// The getters of the ABI: the kind as it is, an int also as f64 and (0 or 1) as bool.
template <class T, class Out, class Convert>
fbx_status Get(const fbx_attrs* attrs, fbx_str key, Out* out, Convert convert) {
  const Attr* a = Find(attrs, key);
  if (!a) return FBX_NOT_APPLICABLE;
  const T* value = std::get_if<T>(&a->value);
  if (!value) return FBX_INVALID;
  *out = convert(*value);
  return FBX_OK;
}

fbx_attr_kind KindOf(const fbx_attrs* attrs, fbx_str key) noexcept {
  static constexpr fbx_attr_kind kKinds[] = {FBX_ATTR_BOOL, FBX_ATTR_I64,   FBX_ATTR_F64,
                                             FBX_ATTR_STR,  FBX_ATTR_DTYPE, FBX_ATTR_I64S};
  const Attr* a = Find(attrs, key);
  return a ? kKinds[a->value.index()] : FBX_ATTR_NONE;
}

fbx_status GetI64(const fbx_attrs* a, fbx_str k, int64_t* out) noexcept {
  return Get<int64_t>(a, k, out, [](int64_t v) { return v; });
}

fbx_status GetBool(const fbx_attrs* a, fbx_str k, int32_t* out) noexcept {
  int64_t number = 0;
  if (GetI64(a, k, &number) == FBX_OK && (number == 0 || number == 1))
    return *out = static_cast<int32_t>(number), FBX_OK;
  return Get<bool>(a, k, out, [](bool v) { return v ? 1 : 0; });
}

fbx_status GetF64(const fbx_attrs* a, fbx_str k, double* out) noexcept {
  int64_t number = 0;
  if (GetI64(a, k, &number) == FBX_OK) return *out = static_cast<double>(number), FBX_OK;
  return Get<double>(a, k, out, [](double v) { return v; });
}

fbx_status GetStr(const fbx_attrs* a, fbx_str k, fbx_str* out) noexcept {
  return Get<std::string>(a, k, out, [](const std::string& v) { return to_fbx_str(v); });
}

fbx_status GetDtype(const fbx_attrs* a, fbx_str k, fbx_dtype* out) noexcept {
  return Get<Dtype>(a, k, out, [](Dtype v) { return v.value; });
}

template <class T>
fbx_status GetList(const fbx_attrs* a, fbx_str k, const T** out, size_t* count) noexcept {
  std::span<const T> values;
  const fbx_status status = Get<std::vector<T>>(a, k, &values, [](const auto& v) { return std::span(v); });
  if (status == FBX_OK) *out = values.data(), *count = values.size();
  return status;
}

const fbx_attr_api& AttrApi() {
  static const fbx_attr_api api = [] {
    fbx_attr_api a{};
    a.head = FBX_HEAD(fbx_attr_api);
    a.count = [](const fbx_attrs* attrs) noexcept { return attrs->entries.size(); };
    a.key_at = [](const fbx_attrs* attrs, size_t i) noexcept { return to_fbx_str(attrs->entries[i].key); };
    a.kind = KindOf;
    a.get_bool = GetBool, a.get_i64 = GetI64, a.get_f64 = GetF64, a.get_str = GetStr, a.get_dtype = GetDtype;
    a.get_i64s = GetList<int64_t>, a.get_f64s = GetList<double>;
    return a;
  }();
  return api;
}

constexpr uint32_t kThreads = 3;

// Serial, but in small chunks from the back to the front on changing workers: what depends on order shows.
void ParallelFor(const fbx_host*, size_t n, size_t grain,
                 void (*task)(void*, size_t, size_t, uint32_t) noexcept, void* context) noexcept {
  grain = std::max<size_t>(1, grain);
  const size_t chunks = (n + grain - 1) / grain;
  for (size_t i = chunks; i-- > 0;)
    task(context, i * grain, std::min(n, (i + 1) * grain), static_cast<uint32_t>(i % kThreads));
}

const fbx_attrs& NoOptions() {
  static const fbx_attrs none;
  return none;
}

// Attributes outlive every node of the process: cases are built once.
const fbx_attrs* AttrsOf(const Case& c) {
  static std::vector<std::unique_ptr<fbx_attrs>> kept;
  kept.push_back(std::make_unique<fbx_attrs>(fbx_attrs{c.attrs}));
  std::sort(kept.back()->entries.begin(), kept.back()->entries.end(),
            [](const Attr& a, const Attr& b) { return a.key < b.key; });
  return kept.back().get();
}

}  // namespace

Guarded::Guarded(size_t bytes, Place place, uint8_t fill) : bytes_(bytes) {
  static const auto page = static_cast<size_t>(getpagesize());
  const size_t size = (bytes + 3 * kGuard + page - 1) / page * page;
  void* const pages = mmap(nullptr, size + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || mprotect(pages, size, PROT_READ | PROT_WRITE) != 0) std::abort();
  storage_ = {static_cast<uint8_t*>(pages), size};
  std::ranges::fill(storage_, kCanary);
  uint8_t* const end = storage_.data() + size;
  start_ = place == Place::kAtEnd ? end - bytes : end - kGuard - (bytes + 63) / 64 * 64;
  Fill(fill);
}

Guarded::~Guarded() { munmap(storage_.data(), storage_.size() + static_cast<size_t>(getpagesize())); }

void Guarded::Fill(uint8_t value) {
  if (bytes_ > 0) std::memset(start_, value, bytes_);
}

bool Guarded::intact() const {
  const auto is_canary = [](uint8_t b) { return b == kCanary; };
  const auto before = static_cast<size_t>(start_ - storage_.data());
  return std::ranges::all_of(storage_.first(before), is_canary) &&
         std::ranges::all_of(storage_.subspan(before + bytes_), is_canary);
}

StubTensor::StubTensor(fbx_dtype dtype) {
  tensor_.head = FBX_HEAD(fbx_tensor);
  tensor_.dtype = dtype;
  tensor_.flags = dtype == FBX_DTYPE_NONE ? FBX_TENSOR_ABSENT : 0;
  tensor_.rank = dtype == FBX_DTYPE_NONE ? 0 : -1;
}

StubTensor::StubTensor(const Data& type) : StubTensor(type.dtype) {
  SetDims(type.dims);
  if (type.quant.scales.empty()) return;
  quant_values_ = type.quant;
  quant_.head = FBX_HEAD(fbx_quant);
  quant_.kind = quant_values_.scales.size() == 1 ? FBX_QUANT_PER_TENSOR : FBX_QUANT_PER_AXIS;
  quant_.axis = quant_values_.axis;
  quant_.count = static_cast<uint32_t>(quant_values_.scales.size());
  quant_.scales = quant_values_.scales.data();
  quant_.zero_points = quant_values_.zero_points.data();
  tensor_.quant = &quant_;
}

void StubTensor::SetDims(std::vector<int64_t> dims) {
  dims_ = std::move(dims);
  tensor_.dims = dims_.data();
  tensor_.rank = static_cast<int32_t>(dims_.size());
}

void StubTensor::SetUnranked() {
  dims_.clear();
  tensor_.dims = nullptr;
  tensor_.rank = -1;
}

void StubTensor::Allocate(size_t bytes, Guarded::Place place, uint8_t fill) {
  memory_ = std::make_unique<Guarded>(bytes, place, fill);
  tensor_.data = memory_->data();
  tensor_.bytes = bytes;
}

void StubTensor::Share(StubTensor& other) {
  tensor_.data = other.tensor_.data;
  tensor_.bytes = other.tensor_.bytes;
}

void StubTensor::Drop() {
  memory_.reset();
  tensor_.data = nullptr;
  tensor_.bytes = 0;
}

bool StubNode::Inferred::is_static() const {
  return set && rank >= 0 && std::all_of(dims.begin(), dims.end(), [](int64_t d) { return d >= 0; });
}

StubNode::StubNode(const Case& c, bool threads) : case_(c), threads_(threads) {
  for (const Data& d : c.operands) {
    operands_.push_back(std::make_unique<StubTensor>(d));
    operand_views_.push_back(operands_.back()->abi());
  }
  for (const Data& d : c.results) {
    results_.push_back(std::make_unique<StubTensor>(d));
    if (!c.shaped) results_.back()->SetUnranked();
    result_views_.push_back(results_.back()->abi());
  }
  inferred.resize(c.results.size());
  wanted.resize(c.operands.size());
  slots_.reserve(64);
  host_ = {
      {FBX_HEAD(fbx_host), Emit, Extension, &AttrApi(), &NoOptions(), to_fbx_str("stub"), to_fbx_str("1")},
      this};
  infer_ = {{FBX_HEAD(fbx_infer), Set, NeedsValue}, this};
  plan_ = {{FBX_HEAD(fbx_plan), Scratch, Persistent, threads ? kThreads : 1}, this};
  node_.head = FBX_HEAD(fbx_node);
  node_.kind = FBX_OP_BUILTIN;
  node_.op = to_fbx_str(c.op);
  node_.version = 1;
  node_.attrs = AttrsOf(c);
  node_.operand_count = static_cast<uint32_t>(operand_views_.size());
  node_.result_count = static_cast<uint32_t>(result_views_.size());
  node_.operands = operand_views_.data();
  node_.results = result_views_.data();
  node_.location = to_fbx_str(c.name);
  node_.scratch = slots_.data();
}

void StubNode::Give(size_t i, Guarded::Place place) {
  const Data& d = case_.operands[i];
  if (d.dtype == FBX_DTYPE_NONE) return;
  operand(i).Allocate(d.bytes.size(), place, 0);
  if (!d.bytes.empty()) std::memcpy(operand(i).memory()->data(), d.bytes.data(), d.bytes.size());
}

void StubNode::PoisonScratch(uint8_t value) {
  for (size_t i = 0; i < scratch.size(); ++i)
    if (!slot_is_persistent_[i]) scratch[i]->Fill(value);
}

void StubNode::ForgetInferred() {
  inferred.assign(inferred.size(), {});
  wanted.assign(wanted.size(), false);
}

void StubNode::Emit(const fbx_host* h, const fbx_diag* d) noexcept {
  Of(h).messages += std::string(to_string_view(d->code)) + ": " + std::string(to_string_view(d->subject)) +
                    ": " + std::string(to_string_view(d->message)) + "\n";
}

const void* StubNode::Extension(const fbx_host* h, fbx_str id) noexcept {
  static const fbx_threads threads{FBX_HEAD(fbx_threads), [](const fbx_host*) noexcept { return kThreads; },
                                   ParallelFor};
  static const fbx_resize resize{FBX_HEAD(fbx_resize), Resize};
  if (to_string_view(id) == FBX_EXT_THREADS && Of(h).threads_) return &threads;
  if (to_string_view(id) == FBX_EXT_RESIZE) return &resize;
  return nullptr;
}

fbx_status StubNode::Resize(const fbx_host* h, const fbx_node*, uint32_t result, const int64_t* dims,
                            int32_t rank, size_t bytes) noexcept {
  StubNode& self = Of(h);
  if (result >= self.results_.size() || self.inferred[result].is_static() || self.result(result).abi()->data)
    return FBX_INVALID;
  StubTensor& t = self.result(result);
  t.SetDims({dims, dims + rank});
  const Data& expected = self.case_.results[result];
  const int64_t wanted_count = expected.count();
  const size_t element = wanted_count > 0 ? expected.bytes.size() / static_cast<size_t>(wanted_count) : 1;
  size_t size = element;
  for (const int64_t d : t.dims()) size *= static_cast<size_t>(d);
  t.Allocate(expected.dtype == FBX_STRING ? bytes : size, Guarded::Place::kAligned, 0xA5);
  return FBX_OK;
}

void StubNode::Set(const fbx_infer* i, uint32_t result, fbx_dtype dtype, const int64_t* dims,
                   int32_t rank) noexcept {
  auto& inferred = reinterpret_cast<const Scoped<fbx_infer>*>(i)->self->inferred;
  if (result >= inferred.size()) return;
  inferred[result] = {true, dtype, rank,
                      rank > 0 ? std::vector<int64_t>(dims, dims + rank) : std::vector<int64_t>()};
}

void StubNode::NeedsValue(const fbx_infer* i, uint32_t operand) noexcept {
  auto& wanted = reinterpret_cast<const Scoped<fbx_infer>*>(i)->self->wanted;
  if (operand < wanted.size()) wanted[operand] = true;
}

void StubNode::AddSlot(size_t bytes, bool persistent, uint32_t* slot) {
  if (slots_.size() == slots_.capacity()) std::abort();  // node_.scratch must stay where it is
  *slot = static_cast<uint32_t>(slots_.size());
  scratch.push_back(std::make_unique<Guarded>(bytes, Guarded::Place::kAligned, persistent ? 0 : 0xFF));
  slots_.push_back(scratch.back()->data());
  slot_is_persistent_.push_back(persistent);
}

fbx_status StubNode::Scratch(const fbx_plan* p, size_t bytes, uint32_t* slot) noexcept {
  return reinterpret_cast<const Scoped<fbx_plan>*>(p)->self->AddSlot(bytes, false, slot), FBX_OK;
}

fbx_status StubNode::Persistent(const fbx_plan* p, size_t bytes, uint32_t* slot) noexcept {
  return reinterpret_cast<const Scoped<fbx_plan>*>(p)->self->AddSlot(bytes, true, slot), FBX_OK;
}

}  // namespace fusebox::conformance
