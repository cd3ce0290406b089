// SPDX-License-Identifier: Apache-2.0
// InlineVector: a vector of numbers that stores the first few elements inline. For dims and operands: a model
// has thousands of them, and few have more than four elements.
//
// Converts from and to std::vector by copying. One thread at a time; growing moves the elements.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace fusebox {

template <class T, size_t kFew>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  using size_type = size_t;
  using difference_type = std::ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using iterator = T*;
  using const_iterator = const T*;

  InlineVector() = default;
  InlineVector(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
  InlineVector(const std::vector<T>& values) {  // NOLINT(google-explicit-constructor)
    assign(values.begin(), values.end());
  }
  template <std::input_iterator It>
  InlineVector(It first, It last) {
    assign(first, last);
  }
  InlineVector(const InlineVector& other) { Copy(other); }
  InlineVector(InlineVector&& other) noexcept { Take(other); }
  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) Copy(other);
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this != &other) {
      delete[] many_;
      Take(other);
    }
    return *this;
  }
// GCC 12 warns about the destructor of temporaries that a condition did not construct.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
  ~InlineVector() { delete[] many_; }
#pragma GCC diagnostic pop
  operator std::vector<T>() const { return {begin(), end()}; }  // NOLINT(google-explicit-constructor)

  T* data() { return many_ != nullptr ? many_ : few_; }
  const T* data() const { return many_ != nullptr ? many_ : few_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  auto rbegin() const { return std::reverse_iterator(end()); }
  auto rend() const { return std::reverse_iterator(begin()); }
  T& operator[](size_t i) {
    assert(i < size_);
    return data()[i];
  }
  const T& operator[](size_t i) const {
    assert(i < size_);
    return data()[i];
  }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }

  void reserve(size_t count) {
    if (count <= capacity_) return;
    const size_t capacity = std::max(count, 2 * capacity_);
    T* const larger = new T[capacity];
    std::copy(begin(), end(), larger);
    delete[] many_;
    many_ = larger;
    capacity_ = capacity;
  }
  void resize(size_t count, T value = T()) {
    reserve(count);
    if (count > size_) std::fill(end(), begin() + count, value);
    size_ = count;
  }
  void clear() { size_ = 0; }
  void push_back(T value) {
    reserve(size_ + 1);
    data()[size_++] = value;
  }
  T& emplace_back(T value) {
    push_back(value);
    return back();
  }
  void pop_back() { --size_; }
  // The values must not be elements of this vector.
  template <std::input_iterator It>
  void assign(It first, It last) {
    const auto count = static_cast<size_t>(std::distance(first, last));
    clear();
    reserve(count);
    std::copy(first, last, begin());
    size_ = count;
  }
  void assign(size_t count, T value) {
    clear();
    resize(count, value);
  }
  T* insert(const T* at, T value) { return insert(at, &value, &value + 1); }
  template <std::input_iterator It>
  T* insert(const T* at, It first, It last) {
    const auto index = static_cast<size_t>(at - begin());
    const auto count = static_cast<size_t>(std::distance(first, last));
    reserve(size_ + count);
    std::copy_backward(begin() + index, end(), end() + count);
    std::copy(first, last, begin() + index);
    size_ += count;
    return begin() + index;
  }
  T* erase(const T* at) { return erase(at, at + 1); }
  T* erase(const T* first, const T* last) {
    T* const to = begin() + (first - begin());
    std::copy(last, static_cast<const T*>(end()), to);
    size_ -= static_cast<size_t>(last - first);
    return to;
  }

  friend bool operator==(const InlineVector& a, const InlineVector& b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  void Take(InlineVector& other) {
    many_ = std::exchange(other.many_, nullptr);
    capacity_ = std::exchange(other.capacity_, kFew);
    size_ = std::exchange(other.size_, 0);
    if (many_ == nullptr) CopyFew(other);
  }
  void Copy(const InlineVector& other) {
    if (other.many_ != nullptr || many_ != nullptr) return assign(other.begin(), other.end());
    CopyFew(other);
    size_ = other.size_;
  }
  // Copies all inline elements: a fixed size compiles to a few moves, a variable one to a call.
  void CopyFew(const InlineVector& other) { std::copy_n(other.few_, kFew, few_); }

  T* many_ = nullptr;  // on the heap; null: elements are inline
  size_t size_ = 0;
  size_t capacity_ = kFew;
  T few_[kFew] = {};
};

}  // namespace fusebox
