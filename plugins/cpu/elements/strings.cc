// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/elements/strings.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "plugins/cpu/base/shape.h"

namespace fusebox::cpu {
namespace {

constexpr size_t kMostBytes = std::numeric_limits<int32_t>::max();  // offsets are int32
constexpr int64_t kMostStrings = kMostBytes / 4 - 2;

[[noreturn]] void TooMuchText() { throw Error{FBX_OUT_OF_MEMORY, "strings too large for a string tensor"}; }

}  // namespace

void StoreStrings(const Node& n, uint32_t i, std::span<const int64_t> dims,
                  const std::function<std::string_view(int64_t k)>& at) {
  const int64_t count = Count(dims);
  if (count > kMostStrings) TooMuchText();
  const size_t header = 4 * (static_cast<size_t>(count) + 2);
  size_t all = header;
  for (int64_t k = 0; k < count; ++k) all += at(k).size();
  if (all > kMostBytes) TooMuchText();
  auto* const to = n.resize(i, dims, all).data<char>();
  const auto put = [&](int64_t place, size_t value) {
    const auto number = static_cast<int32_t>(value);
    std::memcpy(to + 4 * place, &number, sizeof(number));
  };
  put(0, static_cast<size_t>(count));
  put(1, header);
  size_t end = header;
  for (int64_t k = 0; k < count; ++k) {
    const std::string_view text = at(k);
    if (!text.empty()) std::memcpy(to + end, text.data(), text.size());
    end += text.size();
    put(k + 2, end);
  }
}

bool HasStrings(const Node& n) {
  for (uint32_t i = 0; i < n.in_count(); ++i)
    if (n.in(i).dtype() == FBX_STRING) return true;
  return false;
}

namespace {

// An fbx_infer that wraps another fbx_infer or a list of shapes.
struct Relay {
  fbx_infer abi;
  const Infer* out = nullptr;
  std::vector<std::vector<int64_t>>* shapes = nullptr;
  mutable std::exception_ptr thrown = nullptr;  // by a callback

  void Call(InferFn infer, const Node& n) const {
    Infer to(&abi);
    infer(n, to);
    if (thrown) std::rethrow_exception(thrown);
  }
};

const Relay& Of(const fbx_infer* infer) { return *reinterpret_cast<const Relay*>(infer); }

void SetUnsized(const fbx_infer* infer, uint32_t result, fbx_dtype dtype, const int64_t* dims,
                int32_t rank) noexcept try {
  Infer out = *Of(infer).out;
  // A scalar has no unknown dims; only an unknown rank marks it as unsized.
  if (rank < 0 || (rank == 0 && dtype == FBX_STRING)) return out.unranked(result, dtype);
  std::vector<int64_t> said(dims, dims + rank);
  if (dtype == FBX_STRING) std::ranges::fill(said, -1);
  out.set(result, dtype, said);
} catch (...) {
  Of(infer).thrown = std::current_exception();
}

void AskForValue(const fbx_infer* infer, uint32_t operand) noexcept {
  Infer out = *Of(infer).out;
  out.needs_value(operand);
}

void TakeShape(const fbx_infer* infer, uint32_t result, fbx_dtype, const int64_t* dims, int32_t rank) noexcept
    try {
  auto& shapes = *Of(infer).shapes;
  if (result < shapes.size() && rank >= 0) shapes[result].assign(dims, dims + rank);
} catch (...) {
  Of(infer).thrown = std::current_exception();
}

// Copies an ABI struct of which an older host may have filled less.
template <class T>
T Copied(const T& from) {
  T to{};
  std::memcpy(&to, &from, std::min<size_t>(from.head.size, sizeof(T)));
  to.head.size = std::min<uint32_t>(from.head.size, sizeof(T));
  return to;
}

}  // namespace

void InferStrings(const Node& n, Infer& out, InferFn infer) {
  Relay{{FBX_HEAD(fbx_infer), SetUnsized, AskForValue}, &out}.Call(infer, n);
}

Numbered::Numbered(const Node& n) : original_(n) {
  const auto copy = [](const fbx_tensor& t) {
    fbx_tensor number = Copied(t);
    if (t.dtype != FBX_STRING) return number;
    number.dtype = FBX_U32;
    number.quant = nullptr;
    return number;
  };
  for (uint32_t i = 0; i < n.in_count(); ++i) operands_.push_back(copy(*n.in(i).abi()));
  for (uint32_t i = 0; i < n.out_count(); ++i) results_.push_back(copy(*n.out(i).abi()));
  for (const fbx_tensor& t : operands_) operand_views_.push_back(&t);
  for (const fbx_tensor& t : results_) result_views_.push_back(&t);
  node_ = Copied(*n.abi());
  node_.operands = operand_views_.data();
  node_.results = result_views_.data();
}

void Numbered::Number(InferFn infer) {
  int64_t count = 0;
  std::vector<size_t> which;
  for (uint32_t i = 0; i < original_.in_count(); ++i) {
    if (original_.in(i).dtype() != FBX_STRING) continue;
    strings_.push_back({count, Strings(original_.in(i))});
    which.push_back(i);
    count += strings_.back().strings.size();
    if (count > std::numeric_limits<uint32_t>::max()) TooMuchText();
  }
  numbers_.resize(static_cast<size_t>(count));
  std::iota(numbers_.begin(), numbers_.end(), 0u);
  for (size_t k = 0; k < which.size(); ++k) operands_[which[k]].data = numbers_.data() + strings_[k].first;

  shapes_.assign(results_.size(), {-1});
  moved_.resize(results_.size());
  Relay{{FBX_HEAD(fbx_infer), TakeShape, [](const fbx_infer*, uint32_t) noexcept {}}, nullptr, &shapes_}.Call(
      infer, original_);
  for (uint32_t i = 0; i < results_.size(); ++i) {
    if (original_.out(i).dtype() != FBX_STRING) continue;
    const int64_t size = Count(shapes_[i]);
    if (size < 0) Fail("the shape of result " + std::to_string(i) + " is not known");
    if (size > kMostStrings) TooMuchText();
    moved_[i].resize(static_cast<size_t>(size));
    results_[i].dims = shapes_[i].data();
    results_[i].rank = static_cast<int32_t>(shapes_[i].size());
    results_[i].data = moved_[i].data();
    results_[i].bytes = moved_[i].size() * sizeof(uint32_t);
  }
}

std::string_view Numbered::At(uint32_t number) const {
  if (number >= numbers_.size()) Fail("an invalid string index");
  const auto after = std::ranges::upper_bound(strings_, int64_t{number}, {}, &Operand::first);
  const Operand& from = *std::prev(after);
  return from.strings[number - from.first];
}

void Numbered::Store() const {
  for (uint32_t i = 0; i < results_.size(); ++i) {
    if (original_.out(i).dtype() != FBX_STRING || !original_.out(i).present()) continue;
    StoreStrings(original_, i, shapes_[i], [&](int64_t k) { return At(moved_[i][static_cast<size_t>(k)]); });
  }
}

}  // namespace fusebox::cpu
