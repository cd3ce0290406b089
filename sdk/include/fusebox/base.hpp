// SPDX-License-Identifier: Apache-2.0
// The C++ layer over the ABI: views of attributes and tensors, and how code declines or fails.
//
// Header-only and hidden: nothing here crosses the plugin boundary. Plugin code may throw. call_guarded()
// maps
//   Reject   to FBX_NOT_APPLICABLE with its reason,   Error   to its status and message (FBX_OK: FBX_INTERNAL),
//   std::bad_alloc to FBX_OUT_OF_MEMORY,              anything else to FBX_INTERNAL with what().
#pragma once

#if !defined(__cpp_exceptions)
#error \
    "The C++ layer of the Fusebox SDK needs exceptions; without them, include the C headers <fusebox/abi/...>"
#endif

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "fusebox/abi/attrs.h"
#include "fusebox/abi/ext/threads.h"
#include "fusebox/abi/host.h"

namespace fusebox::sdk {
inline namespace v1 {

inline std::string_view to_string_view(fbx_str s) { return {s.ptr, s.len}; }
inline fbx_str to_fbx_str(std::string_view s) { return {s.data(), s.size()}; }

// Thrown to decline, with a reason. Not an error: the next candidate is tried.
struct Reject {
  std::string code;
  std::string why;
  std::string subject = {};
};

// Thrown on failure: of the model (FBX_INVALID), or of the plugin (FBX_INTERNAL).
struct Error {
  fbx_status status = FBX_INVALID;
  std::string message;
  std::string subject = {};
};

inline void emit_diag(const fbx_host* host, int32_t severity, std::string_view code, std::string_view message,
                      std::string_view subject = {}) noexcept {
  const fbx_diag diag{.head = FBX_HEAD(fbx_diag),
                      .severity = severity,
                      .code = to_fbx_str(code),
                      .message = to_fbx_str(message),
                      .subject = to_fbx_str(subject)};
  host->emit(host, &diag);
}

namespace detail {

// Handlers of call_guarded, compiled once instead of in each callback. null: an exception of unknown type.
[[gnu::noinline, gnu::cold]] inline fbx_status status_of(const fbx_host* host, const Reject& r) noexcept {
  emit_diag(host, FBX_REASON, r.code, r.why, r.subject);
  return FBX_NOT_APPLICABLE;
}
[[gnu::noinline, gnu::cold]] inline fbx_status status_of(const fbx_host* host, const Error& e) noexcept {
  emit_diag(host, FBX_ERROR, {}, e.message, e.subject);
  return e.status == FBX_OK ? FBX_INTERNAL : e.status;
}
[[gnu::noinline, gnu::cold]] inline fbx_status status_of(const fbx_host* host,
                                                         const std::exception* e) noexcept {
  if (dynamic_cast<const std::bad_alloc*>(e)) return FBX_OUT_OF_MEMORY;
  emit_diag(host, FBX_ERROR, "EXCEPTION", e ? e->what() : "an exception of unknown type");
  return FBX_INTERNAL;
}

}  // namespace detail

// Runs f(). An exception becomes a status and a diagnostic.
template <class F>
fbx_status call_guarded(const fbx_host* host, F&& f) noexcept {
  try {
    f();
    return FBX_OK;
  } catch (const Reject& r) {
    return detail::status_of(host, r);
  } catch (const Error& e) {
    return detail::status_of(host, e);
  } catch (const std::exception& e) {
    return detail::status_of(host, &e);
  } catch (...) {
    return detail::status_of(host, nullptr);
  }
}

// Returns whether to stop early, with Error{FBX_CANCELLED}. Cheap. Any thread.
inline bool is_cancelled(const fbx_host* host) noexcept {
  return FBX_HAS(host, cancelled) && host->cancelled(host) != 0;
}

class Tensor;

// Attributes by name.
//   i64(key)             throws Error if the key is missing
//   i64(key, otherwise)  returns `otherwise` if it is
//   find_i64(key)        returns nothing if it is
//   i64s(key), ...       lists: empty if it is missing
// All throw Error if the value has another kind. An int is also readable as f64, and 0 and 1 as bool.
class Attrs {
 public:
  Attrs(const fbx_host* host, const fbx_attrs* attrs) : host_(host), attrs_(attrs) {}

  bool has(std::string_view key) const { return kind(key) != FBX_ATTR_NONE; }
  fbx_attr_kind kind(std::string_view key) const { return host_->attrs->kind(attrs_, to_fbx_str(key)); }

  std::optional<bool> find_b(std::string_view key) const {
    const auto v = get<int32_t>(key, host_->attrs->get_bool);
    return v ? std::optional(*v != 0) : std::nullopt;
  }
  std::optional<int64_t> find_i64(std::string_view key) const {
    return get<int64_t>(key, host_->attrs->get_i64);
  }
  std::optional<double> find_f64(std::string_view key) const {
    return get<double>(key, host_->attrs->get_f64);
  }
  // Also the name of a function (FBX_ATTR_FUNC).
  std::optional<std::string_view> find_s(std::string_view key) const {
    const auto v = get<fbx_str>(key, host_->attrs->get_str);
    return v ? std::optional(to_string_view(*v)) : std::nullopt;
  }
  std::optional<fbx_dtype> find_dtype(std::string_view key) const {
    return get<fbx_dtype>(key, host_->attrs->get_dtype);
  }
  inline std::optional<Tensor> find_tensor(std::string_view key) const;
  std::optional<Attrs> find_map(std::string_view key) const {
    const auto v = get<const fbx_attrs*>(key, host_->attrs->get_map);
    return v ? std::optional(Attrs(host_, *v)) : std::nullopt;
  }

  bool b(std::string_view key) const { return need(key, find_b(key)); }
  bool b(std::string_view key, bool otherwise) const { return find_b(key).value_or(otherwise); }
  int64_t i64(std::string_view key) const { return need(key, find_i64(key)); }
  int64_t i64(std::string_view key, int64_t otherwise) const { return find_i64(key).value_or(otherwise); }
  double f64(std::string_view key) const { return need(key, find_f64(key)); }
  double f64(std::string_view key, double otherwise) const { return find_f64(key).value_or(otherwise); }
  std::string_view s(std::string_view key) const { return need(key, find_s(key)); }
  std::string_view s(std::string_view key, std::string_view otherwise) const {
    return find_s(key).value_or(otherwise);
  }
  fbx_dtype dtype(std::string_view key) const { return need(key, find_dtype(key)); }
  fbx_dtype dtype(std::string_view key, fbx_dtype otherwise) const {
    return find_dtype(key).value_or(otherwise);
  }
  inline Tensor tensor(std::string_view key) const;
  Attrs map(std::string_view key) const { return need(key, find_map(key)); }
  // Returns nothing for an unknown rank. A scalar has no dims.
  std::optional<std::span<const int64_t>> shape(std::string_view key) const {
    if (!has(key)) need(key, std::optional<int>());
    const auto [dims, rank] = list<int64_t>(key, host_->attrs->get_i64s);
    if (rank == SIZE_MAX) return std::nullopt;
    return std::span(dims, rank);
  }

  std::span<const int64_t> i64s(std::string_view key) const {
    const auto [values, n] = list<int64_t>(key, host_->attrs->get_i64s);
    if (n == SIZE_MAX) throw Error{FBX_INVALID, "attribute has an unknown rank", "attr " + std::string(key)};
    return {values, n};
  }
  std::span<const double> f64s(std::string_view key) const {
    const auto [values, n] = list<double>(key, host_->attrs->get_f64s);
    return {values, n};
  }
  std::vector<std::string_view> strs(std::string_view key) const {
    const auto [values, n] = list<fbx_str>(key, host_->attrs->get_strs);
    std::vector<std::string_view> out;
    for (size_t i = 0; i < n; ++i) out.push_back(to_string_view(values[i]));
    return out;
  }

  // Iteration over the keys, sorted by name: for (const std::string_view key : attrs) ... attrs.kind(key)
  size_t size() const { return host_->attrs->count(attrs_); }
  std::string_view key(size_t index) const { return to_string_view(host_->attrs->key_at(attrs_, index)); }
  class Iterator {
   public:
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const Attrs* attrs, size_t index) : attrs_(attrs), index_(index) {}
    std::string_view operator*() const { return attrs_->key(index_); }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    Iterator operator++(int) { return {attrs_, index_++}; }
    bool operator==(const Iterator& other) const { return index_ == other.index_; }

   private:
    const Attrs* attrs_ = nullptr;
    size_t index_ = 0;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

  const fbx_attrs* abi() const { return attrs_; }

 private:
  template <class T, class F>
  std::optional<T> get(std::string_view key, F getter) const {
    T value{};
    const fbx_status status = getter(attrs_, to_fbx_str(key), &value);
    if (status == FBX_NOT_APPLICABLE) return std::nullopt;
    check(key, status);
    return value;
  }
  template <class T, class F>
  std::pair<const T*, size_t> list(std::string_view key, F getter) const {
    const T* values = nullptr;
    size_t n = 0;
    const fbx_status status = getter(attrs_, to_fbx_str(key), &values, &n);
    if (status == FBX_NOT_APPLICABLE) return {};
    check(key, status);
    return {values, n};
  }
  static void check(std::string_view key, fbx_status status) {
    if (status != FBX_OK)
      throw Error{FBX_INVALID, "attribute has an unexpected type", "attr " + std::string(key)};
  }
  template <class T>
  static T need(std::string_view key, const std::optional<T>& value) {
    if (!value) throw Error{FBX_INVALID, "attribute is missing", "attr " + std::string(key)};
    return *value;
  }
  const fbx_host* host_;
  const fbx_attrs* attrs_;
};

template <class T>
inline constexpr fbx_dtype dtype_of = FBX_DTYPE_NONE;
template <>
inline constexpr fbx_dtype dtype_of<float> = FBX_F32;
template <>
inline constexpr fbx_dtype dtype_of<double> = FBX_F64;
template <>
inline constexpr fbx_dtype dtype_of<int8_t> = FBX_I8;
template <>
inline constexpr fbx_dtype dtype_of<int16_t> = FBX_I16;
template <>
inline constexpr fbx_dtype dtype_of<int32_t> = FBX_I32;
template <>
inline constexpr fbx_dtype dtype_of<int64_t> = FBX_I64;
template <>
inline constexpr fbx_dtype dtype_of<uint8_t> = FBX_U8;
template <>
inline constexpr fbx_dtype dtype_of<uint16_t> = FBX_U16;
template <>
inline constexpr fbx_dtype dtype_of<uint32_t> = FBX_U32;
template <>
inline constexpr fbx_dtype dtype_of<uint64_t> = FBX_U64;
template <>
inline constexpr fbx_dtype dtype_of<bool> = FBX_BOOL;

inline const char* dtype_name(fbx_dtype t) {
  static constexpr const char* kNames[] = {"none", "f32",  "f16",      "bf16",      "f64",        "i8",
                                           "i16",  "i32",  "i64",      "u8",        "u16",        "u32",
                                           "u64",  "bool", "string",   "complex64", "complex128", "i4",
                                           "u4",   "i2",   "f8e4m3fn", "f8e5m2",    "resource",   "variant"};
  return t >= 0 && t < static_cast<fbx_dtype>(std::size(kNames)) ? kNames[t] : "unknown";
}

// Borrows both numbers.
inline fbx_quant per_tensor(const float& scale, const int64_t& zero_point) {
  return {.head = FBX_HEAD(fbx_quant),
          .kind = FBX_QUANT_PER_TENSOR,
          .axis = 0,
          .block_size = 0,
          .count = 1,
          .scales = &scale,
          .zero_points = &zero_point};
}

// A borrowed, copyable view of a tensor. [any]
class Tensor {
 public:
  explicit Tensor(const fbx_tensor* t) : t_(t) {}
  bool present() const { return !(t_->flags & FBX_TENSOR_ABSENT); }
  bool is_const() const { return t_->flags & FBX_TENSOR_CONST; }
  bool is_variable() const { return t_->flags & FBX_TENSOR_VARIABLE; }
  bool has_value() const { return t_->data != nullptr; }  // constant, or known for this plan
  fbx_dtype dtype() const { return t_->dtype; }
  int rank() const { return t_->rank; }  // -1: unknown
  // Throws Error if the rank is unknown. A scalar has no dims.
  std::span<const int64_t> dims() const {
    if (t_->rank < 0) throw Error{FBX_INVALID, "the rank of " + std::string(name()) + " is not known"};
    return {t_->dims, static_cast<size_t>(t_->rank)};
  }
  // Returns nothing for an unknown rank.
  std::optional<std::span<const int64_t>> shape() const {
    return t_->rank < 0 ? std::nullopt : std::optional(dims());
  }
  int64_t dim(int i) const { return t_->dims[i < 0 ? i + t_->rank : i]; }
  int64_t count() const {  // all dims known
    int64_t n = 1;
    for (int64_t d : dims()) n *= d;
    return n;
  }
  bool is_static() const {
    if (rank() < 0) return false;
    for (int64_t d : dims())
      if (d < 0) return false;
    return true;
  }
  size_t bytes() const { return t_->bytes; }
  uint32_t uses() const { return t_->uses; }
  template <class T>
  T* data() const {
    return static_cast<T*>(t_->data);
  }
  template <class T>
  std::span<T> values() const {
    return {static_cast<T*>(t_->data), static_cast<size_t>(count())};
  }
  const fbx_quant* quant() const { return t_->quant; }
  std::string_view name() const { return to_string_view(t_->name); }
  const fbx_tensor* abi() const { return t_; }

 private:
  const fbx_tensor* t_;
};

inline std::optional<Tensor> Attrs::find_tensor(std::string_view key) const {
  const auto v = get<const fbx_tensor*>(key, host_->attrs->get_tensor);
  return v ? std::optional(Tensor(*v)) : std::nullopt;
}
inline Tensor Attrs::tensor(std::string_view key) const { return need(key, find_tensor(key)); }

// Runs f(begin, end, worker) over parts of [0, n), none of them empty, on the host's threads; serially if the
// host has none. Rethrows the first exception of f on the calling thread, after all chunks are done. Throws
// Error{FBX_CANCELLED} if the run was cancelled: chunks may be missing.
template <class F>
void parallel_for(const fbx_host* host, size_t n, size_t grain, const F& f) {
  if (n == 0) return;
  const auto* threads =
      static_cast<const fbx_threads*>(host->get_extension(host, to_fbx_str(FBX_EXT_THREADS)));
  if (!FBX_HAS(threads, parallel_for) || n <= grain) return f(size_t{0}, n, uint32_t{0});
  struct Loop {
    const F& f;
    std::atomic<bool> failed = false;
    std::exception_ptr error = nullptr;
  } loop{f};
  threads->parallel_for(
      host, n, grain,
      [](void* context, size_t begin, size_t end, uint32_t worker) noexcept {
        Loop& loop = *static_cast<Loop*>(context);
        try {
          loop.f(begin, end, worker);
        } catch (...) {
          if (!loop.failed.exchange(true)) loop.error = std::current_exception();
        }
      },
      &loop);
  if (loop.error) std::rethrow_exception(loop.error);
  if (is_cancelled(host)) throw Error{FBX_CANCELLED, "the run was cancelled"};
}

inline uint32_t thread_count(const fbx_host* host) {
  const auto* threads =
      static_cast<const fbx_threads*>(host->get_extension(host, to_fbx_str(FBX_EXT_THREADS)));
  return FBX_HAS(threads, thread_count) ? threads->thread_count(host) : 1;
}

}  // namespace v1
}  // namespace fusebox::sdk
