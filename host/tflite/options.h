// SPDX-License-Identifier: Apache-2.0
// Option tables of tflite.fbs as plain data, from the binary schema that flatc embeds, and one reader and one
// writer for all tables of both unions.
//
// A field becomes an attribute of the same name: enumerations as names, element types as DType, vectors as
// lists, bytes as strings, subgraph indices as FunctionRef (lists of them: a map "0", "1", ...). Fields with
// their default value are omitted.
#pragma once

#include <flatbuffers/flatbuffers.h>
#include <flatbuffers/reflection.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/graph/ops.h"
#include "host/graph/types.h"

namespace fusebox::tflite {

enum class OptionUnion { kFirst, kSecond };  // builtin_options, builtin_options_2

struct OptionTag {
  OptionUnion where;
  uint8_t tag;
};

struct OptionField {
  std::string name;
  uint16_t offset = 0;  // in the vtable
  reflection::BaseType type = reflection::None;
  reflection::BaseType element = reflection::None;  // of a vector
  const reflection::Enum* names = nullptr;          // an enumeration's
  bool is_dtype = false;
  bool is_function = false;
  int64_t default_integer = 0;
  double default_real = 0;
};

struct OptionTable {
  std::string name;
  OptionTag tag;
  std::vector<OptionField> fields;
  uint16_t end = 4;  // the first vtable offset that our schema does not know
};

inline bool IsReal(reflection::BaseType type) {
  return type == reflection::Float || type == reflection::Double;
}
std::optional<std::string> EnumName(const reflection::Enum&, int64_t value);
std::optional<int64_t> EnumValue(const reflection::Enum&, std::string_view name);
AttrValue DefaultOf(const OptionField&);

const OptionTable* FindTable(std::string_view name);  // "Conv2DOptions"; null: none
const OptionTable* TableOf(Op);                       // of its options; null: none
bool IsKnownTag(OptionUnion, uint8_t tag);

// True when the table holds fields that our schema does not know.
bool HasNewerFields(const flatbuffers::Table&, const OptionTable&);
// `function_names` by subgraph number. Errors: a subgraph that does not exist.
Result<Attrs> ReadOptionTable(const flatbuffers::Table&, const OptionTable&,
                              const std::vector<std::string>& function_names);

using FunctionNumber = std::function<std::optional<int>(std::string_view name)>;
// Errors: an attribute that the table has no field for, or whose value does not fit it.
Result<flatbuffers::Offset<void>> WriteOptionTable(flatbuffers::FlatBufferBuilder&, const OptionTable&,
                                                   const Attrs&, const FunctionNumber&);

}  // namespace fusebox::tflite
