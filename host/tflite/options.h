// SPDX-License-Identifier: Apache-2.0
// Option tables by reflection: one reader and one writer for all tables of both unions.
//
// A field becomes an attribute of its name: enumerations as names, element types as DType, vectors as lists,
// bytes as strings, numbers of subgraphs as FunctionRef (lists of them: a map "0", "1", ...). Fields at their
// default are left out.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/graph/ops.h"
#include "host/graph/types.h"

namespace fusebox::tflite {

enum class OptionUnion { kFirst, kSecond };  // builtin_options, builtin_options_2

struct OptionTable;
const OptionTable* FindTable(std::string_view name);  // "Conv2DOptions"; null: none
const OptionTable* TableOf(Op);                       // of its options; null: none
// Which union the table is in, and its tag there.
struct OptionTag {
  OptionUnion where;
  uint8_t tag;
};
OptionTag TagOf(const OptionTable&);
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
