// SPDX-License-Identifier: Apache-2.0
// The parts of Write. The FlatBuffer's head holds everything but the contents of buffers; those follow it in
// the file, and the head is pointed at them once its size is known.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "host/tflite/tflite.h"
#include "tflite_generated.h"

namespace fusebox::tflite {

namespace format = ::tflite;

// The distinct buffers of a file, by number. 0 is the empty one.
class BufferTable {
 public:
  explicit BufferTable(bool deduplicate) : deduplicate_(deduplicate) {}
  // `shared` false: a buffer of its own, which nothing else uses.
  uint32_t Add(const Buffer&, bool shared);
  // Buffers that hold the same bytes as an earlier one fall together with it. To be called once, before
  // buffers().
  const std::vector<Buffer>& buffers() const { return buffers_; }

 private:
  bool deduplicate_;
  std::vector<Buffer> buffers_ = {Buffer()};
  std::map<std::pair<const void*, size_t>, uint32_t> by_address_;
  std::multimap<size_t, uint32_t> by_size_;
};

struct Codes {
  using Key = std::tuple<int32_t, std::string, int32_t>;  // builtin code, custom name, version
  std::map<Key, uint32_t> numbers;
  std::vector<Key> list;
  uint32_t Add(Key key);
};

// Vectors in the head; one that equals an earlier one falls together with it.
template <class T>
class Lists {
 public:
  using Offset = flatbuffers::Offset<flatbuffers::Vector<T>>;
  Offset Add(flatbuffers::FlatBufferBuilder& out, std::span<const T> list) {
    const auto [at, added] = written_.emplace(std::vector<T>(list.begin(), list.end()), Offset());
    if (added) at->second = out.CreateVector(list.data(), list.size());
    return at->second;
  }

 private:
  std::map<std::vector<T>, Offset> written_;
};

struct Context {
  const Module& module;
  flatbuffers::FlatBufferBuilder& out;
  BufferTable& buffers;
  Codes codes = {};
  std::map<std::string, int, std::less<>> function_numbers = {};
  Lists<int32_t> dims = {};
  Lists<int64_t> zero_points = {};
};

struct WrittenFunction {
  flatbuffers::Offset<format::SubGraph> offset;
  std::vector<int32_t> inputs, outputs;  // tensor numbers
};
Result<WrittenFunction> WriteFunction(Context&, const Function&);

// The number of each value's tensor; final states share that of the operand that they are the state of.
class TensorNumbers {
 public:
  explicit TensorNumbers(const Function&);
  int32_t of(ValueId id) const { return id == kNoValue ? -1 : numbers_[static_cast<size_t>(id)]; }
  std::vector<int32_t> of(std::span<const ValueId> ids) const;
  const std::vector<ValueId>& values() const { return values_; }  // by tensor
  bool is_state(ValueId id) const { return state_[static_cast<size_t>(id)] != 0; }

 private:
  void Add(ValueId id);
  std::vector<int32_t> numbers_;
  std::vector<ValueId> values_;
  std::vector<char> state_;
};

// Tensors beyond those of values (the scales of blockwise quantization) are appended to the list.
Result<std::vector<flatbuffers::Offset<format::Tensor>>> WriteTensors(Context&, const Function&,
                                                                      const TensorNumbers&);
Result<flatbuffers::Offset<format::Operator>> WriteNode(Context&, const Function&, const Node&,
                                                        const TensorNumbers&);

}  // namespace fusebox::tflite
