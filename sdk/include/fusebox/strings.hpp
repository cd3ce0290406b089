// SPDX-License-Identifier: Apache-2.0
// Strings reads STRING tensors, StringTensor makes them (layout: abi/tensor.h).
//
//   const fusebox::sdk::Strings words(n.in(0));
//   for (int64_t i = 0; i < words.size(); ++i) use(words[i]);
//
//   const StringTensor units({"m", "s"}, {2});   // in a rule
//   build.constant(units.tensor());
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fusebox/base.hpp"

namespace fusebox::sdk {
inline namespace v1 {

// Borrows the tensor's data, which must be present. Any thread. Invalid data (it may come from a file) throws
// Error, from the constructor or from operator[].
class Strings {
 public:
  explicit Strings(Tensor t) : data_(t.data<const char>()), bytes_(t.bytes()), count_(count_of(t)) {
    const bool whole = data_ && bytes_ >= 8 && count_ >= 0 && int_at(0) == count_ &&
                       bytes_ / 4 >= static_cast<size_t>(count_) + 2;
    if (!whole && !(count_ == 0 && bytes_ < 8))
      throw Error{FBX_INVALID, "the strings are damaged", std::string(t.name())};
  }
  int64_t size() const { return count_; }
  // 0 <= i < size(). Not NUL-terminated.
  std::string_view operator[](int64_t i) const {
    const int64_t begin = int_at(i + 1);
    const int64_t end = int_at(i + 2);
    if (begin < 0 || end < begin || static_cast<size_t>(end) > bytes_)
      throw Error{FBX_INVALID, "string " + std::to_string(i) + " is damaged"};
    return {data_ + begin, static_cast<size_t>(end - begin)};
  }

 private:
  // Returns -1 if it is unknown, or more than a STRING tensor can hold.
  static int64_t count_of(Tensor t) {
    int64_t count = 1;
    for (const int64_t dim : t.dims()) {
      if (dim == 0) return 0;
      count = dim < 0 || count < 0 || count > INT32_MAX / dim ? -1 : count * dim;
    }
    return count;
  }
  int32_t int_at(int64_t place) const {
    int32_t value = 0;
    std::memcpy(&value, data_ + 4 * place, sizeof value);
    return value;
  }

  const char* data_;
  size_t bytes_;
  int64_t count_;
};

// A STRING tensor with the values of a constant or an attribute. `dims` has as many elements as `values`.
class StringTensor {
 public:
  StringTensor(std::span<const std::string_view> values, std::span<const int64_t> dims)
      : dims_(dims.begin(), dims.end()) {
    size_t end = 4 * (values.size() + 2);
    append(values.size());
    append(end);
    for (const std::string_view value : values) append(end += value.size());
    for (const std::string_view value : values) data_ += value;
    tensor_.head = FBX_HEAD(fbx_tensor);
    tensor_.dtype = FBX_STRING;
    tensor_.rank = static_cast<int32_t>(dims_.size());
    tensor_.dims = dims_.data();
    tensor_.flags = FBX_TENSOR_CONST;
    tensor_.data = data_.data();
    tensor_.bytes = data_.size();
  }
  StringTensor(std::initializer_list<std::string_view> values, std::initializer_list<int64_t> dims)
      : StringTensor(std::span(values.begin(), values.size()), std::span(dims.begin(), dims.size())) {}
  StringTensor(const StringTensor&) = delete;
  StringTensor& operator=(const StringTensor&) = delete;
  Tensor tensor() const { return Tensor(&tensor_); }

 private:
  void append(size_t number) {
    if (number > INT32_MAX) throw Error{FBX_INVALID, "the strings exceed 2 GB"};
    const auto value = static_cast<int32_t>(number);
    data_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  std::vector<int64_t> dims_;
  std::string data_;
  fbx_tensor tensor_{};
};

}  // namespace v1
}  // namespace fusebox::sdk
