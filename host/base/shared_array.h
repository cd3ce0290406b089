// SPDX-License-Identifier: Apache-2.0
// SharedArray: an immutable array in a Buffer: scales and zero points of a tensor, which may stay in the
// file.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "host/base/buffer.h"

namespace fusebox {

template <class T>
class SharedArray {
  static_assert(std::is_arithmetic_v<T>);

 public:
  using value_type = T;
  using const_reference = const T&;
  using const_iterator = const T*;

  SharedArray() = default;
  // Copies the values. An empty array allocates nothing.
  SharedArray(std::span<const T> values)  // NOLINT(google-explicit-constructor)
      : data_(values.empty() ? Buffer() : Buffer::Of(values)) {}
  SharedArray(const std::vector<T>& values)  // NOLINT(google-explicit-constructor)
      : SharedArray(std::span<const T>(values)) {}
  SharedArray(std::initializer_list<T> values)
      : SharedArray(std::span<const T>(values.begin(), values.size())) {}
  // The elements in the buffer, not copied. They must be aligned.
  explicit SharedArray(Buffer data) : data_(std::move(data)) {}

  operator std::span<const T>() const { return data_.As<T>(); }  // NOLINT(google-explicit-constructor)
  const T* data() const { return data_.As<T>().data(); }
  size_t size() const { return data_.As<T>().size(); }
  bool empty() const { return size() == 0; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  const T& operator[](size_t i) const { return data_.As<T>()[i]; }
  const Buffer& buffer() const { return data_; }

  bool operator==(const SharedArray& other) const {
    return size() == other.size() && (data() == other.data() || std::equal(begin(), end(), other.begin()));
  }

 private:
  Buffer data_;
};

}  // namespace fusebox
