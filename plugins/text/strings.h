// SPDX-License-Identifier: Apache-2.0
// String tensors (abi/tensor.h: a count, offsets, bytes): reading one, and writing one whose size is known when it is written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fusebox/kernel.hpp>

namespace fusebox::text {

// Throws Error for data that is no string tensor of the tensor's shape.
class Strings {
 public:
  explicit Strings(Tensor t);
  int64_t size() const { return count_; }
  std::string_view operator[](int64_t i) const;

 private:
  const char* data_;
  size_t bytes_;
  int64_t count_;
};

// A result in the making: many short strings, one after the other.
class StringList {
 public:
  void Add(std::string_view text);
  // Appends to the string added last.
  void Append(std::string_view text);
  int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  // Gives result i these strings, as a list or in a shape of as many.
  void Store(const Node& n, uint32_t i) const { Store(n, i, std::vector<int64_t>{size()}); }
  void Store(const Node& n, uint32_t i, const std::vector<int64_t>& dims) const;

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

// Row splits: [0, ..., count], ascending. Throws Error for others.
std::vector<int64_t> Splits(const Node& n, uint32_t operand, int64_t count);
void StoreSplits(const Node& n, uint32_t result, const std::vector<int64_t>& splits);

}  // namespace fusebox::text
