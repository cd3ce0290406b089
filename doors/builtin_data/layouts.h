// SPDX-License-Identifier: Apache-2.0
// Layouts of TfLiteNode::builtin_data: the C structs in which TensorFlow Lite holds the options of builtin
// ops.
//
// A row of layouts.def lists the members of a struct in order, by the name of the option in the file format.
// Offsets follow from the alignment rules of C. Members that releases after 2.9 appended are not listed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace fusebox::builtin_data {

enum class Kind : char {
  kInt = 'i',         // int, also an enumeration with the format's numbers
  kLong = 'l',        // int64_t
  kFloat = 'f',       // float
  kBool = 'b',        // bool
  kType = 't',        // TfLiteType
  kPadding = 'p',     // an enumeration whose numbers are the format's plus one
  kActivation = 'a',  // int
  kDims = 'd',        // int[8] and their number, an int
};

struct Member {
  std::string_view option;
  Kind kind;
  size_t offset;
  int64_t standard;  // the value in the struct if the file omits the option
};

struct Layout {
  int32_t code = 0;     // of the op
  int max_version = 0;  // of the op; later ones have options that the layout lacks. 0: any
  std::vector<Member> members = {};
  size_t size = 0;
};

// Returns null for an op whose struct is not known.
const Layout* Find(std::string_view op);

// Returns the number of a TfLiteType in the format, -1: none.
int ToFormatType(int tflite_type);

// Numbers of an enumeration in the struct and in the format, for kPadding.
inline constexpr int64_t kPaddingShift = 1;

inline constexpr size_t kMaxDims = 8;

}  // namespace fusebox::builtin_data
