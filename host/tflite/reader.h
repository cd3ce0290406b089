// SPDX-License-Identifier: Apache-2.0
// The parts of Read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/tflite/tflite.h"
#include "tflite_generated.h"

namespace fusebox::tflite {

namespace format = ::tflite;

// What all parts look at.
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

// That the tables hold together, as far as FlatBuffers reach: they may be read without further checks of
// bounds.
Status CheckFile(const Buffer&);
// The bytes of buffer `index`, wherever they lie in the file. No Buffer: it holds nothing.
Result<Buffer> ReadBuffer(const File&, uint32_t index);
// A range behind the FlatBuffer, checked.
Result<Buffer> ReadRange(const File&, uint64_t offset, uint64_t size);

// What a constant stored without most of its zeros is when it is dense.
Result<Buffer> Unpack(const File&, const format::SparsityParameters&, const Type&, const Buffer& stored);

// Tensor `index` as value `index` of the function.
Status ReadTensor(const File&, const format::SubGraph&, const format::Tensor&, Value&);
// The op of that code; nothing where there is no such code, or its number is not known.
std::optional<Op> OpOf(const File&, const format::Operator&);
Status ReadNodes(const File&, const format::SubGraph&, Function&);
// A zip behind the FlatBuffer, with offsets counted from its own start; empty where there is none. Its
// directory ends behind `from`: weights need not be searched for it.
Buffer ReadAppendedZip(const Buffer& file, size_t from);

}  // namespace fusebox::tflite
