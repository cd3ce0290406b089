// SPDX-License-Identifier: Apache-2.0
// Parts of tflite::Read and tflite::Write, by subject. The FlatBuffer holds everything except the contents of
// buffers, which follow it in the file. Their offsets are set when the size of the FlatBuffer is known.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/tflite/tflite.h"
#include "tflite_generated.h"

namespace fusebox::tflite {

namespace format = ::tflite;

template <class T>
using Offset = flatbuffers::Offset<T>;
template <class T>
using ListOffset = Offset<flatbuffers::Vector<T>>;

// ---- reading

struct File {
  const Buffer& bytes;
  const format::Model& model;
  std::vector<std::string> function_names;  // by subgraph
  bool states_rank = false;  // the writer knew has_rank, so that an empty shape without it means "unknown"
  mutable uint64_t unpacked = 0;  // bytes of sparse constants by now
};

// An absent vector is an empty one.
template <class T>
size_t SizeOf(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? 0 : vector->size();
}
inline std::string TextOf(const flatbuffers::String* text) {
  return text == nullptr ? std::string() : text->str();
}

// Runs the FlatBuffer verifier. After it, tables may be read without further checks of bounds.
Status CheckFile(const Buffer&);
// A zip behind the FlatBuffer, with offsets counted from its own start; empty where there is none. Its
// directory ends behind `from`: weights need not be searched for it.
Buffer ReadAppendedZip(const Buffer& file, size_t from);
// The dense form of a sparse constant.
Result<Buffer> Unpack(const File&, const format::SparsityParameters&, const Type&, const Buffer& stored);

// ---- writing

// The distinct buffers of a file, by number. 0 is the empty one.
class BufferTable {
 public:
  explicit BufferTable(bool deduplicate) : deduplicate_(deduplicate) {}
  // Adds a buffer; if not `shared`, a separate buffer that nothing else uses.
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
  ListOffset<T> Add(flatbuffers::FlatBufferBuilder& out, std::span<const T> list) {
    const auto [at, added] = written_.emplace(std::vector<T>(list.begin(), list.end()), ListOffset<T>());
    if (added) at->second = out.CreateVector(list.data(), list.size());
    return at->second;
  }

 private:
  std::map<std::vector<T>, ListOffset<T>> written_;
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

// ---- buffers.cc

// The bytes of buffer `index`, wherever they lie in the file. No Buffer: it holds nothing.
Result<Buffer> ReadBuffer(const File&, uint32_t index);
// A range behind the FlatBuffer, checked.
Result<Buffer> ReadRange(const File&, uint64_t offset, uint64_t size);

// ---- quantization.cc

Status ReadQuant(const File&, const format::SubGraph&, const format::QuantizationParameters&, Value&);
// Tensors beyond the values' tensors: the scales and zero points of blockwise quantization.
struct AddedTensors {
  int32_t next = 0;  // the number of the next one
  std::vector<Offset<format::Tensor>> list = {};
};
// `extra`: the parts of the tensor that the graph does not interpret.
Offset<format::QuantizationParameters> WriteQuant(Context&, const Quant*, const format::TensorT& extra,
                                                  AddedTensors&);

// ---- tensors.cc

Status ReadTensor(const File&, const format::SubGraph&, const format::Tensor&, Value&);
// The number of each value's tensor. A final state shares the tensor of the operand whose state it is.
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

// By number, AddedTensors last.
Result<std::vector<Offset<format::Tensor>>> WriteTensors(Context&, const Function&, const TensorNumbers&);

// ---- nodes.cc

// The op of that code; nothing where there is no such code, or its number is not known.
std::optional<Op> OpOf(const File&, const format::Operator&);
Status ReadNodes(const File&, const format::SubGraph&, Function&);
Result<Offset<format::Operator>> WriteNode(Context&, const Function&, const Node&, const TensorNumbers&);

// ---- functions.cc

// A name for each subgraph: its own if it is unique.
std::vector<std::string> FunctionNames(const format::Model&);
Status ReadFunction(const File&, const format::SubGraph&, Function&);
struct WrittenFunction {
  flatbuffers::Offset<format::SubGraph> offset;
  std::vector<int32_t> inputs, outputs;  // tensor numbers
};
Result<WrittenFunction> WriteFunction(Context&, const Function&);

// ---- signatures.cc

Status ReadSignatures(const File&, Module&);
std::vector<Offset<format::SignatureDef>> WriteSignatures(Context&, std::span<const WrittenFunction>);

}  // namespace fusebox::tflite
