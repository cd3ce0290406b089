// SPDX-License-Identifier: Apache-2.0
// The option tables of tflite.fbs as plain data, from the binary schema that flatc embeds.
#pragma once

#include <flatbuffers/reflection.h>

#include <map>
#include <string>
#include <vector>

#include "host/graph/types.h"
#include "host/tflite/options.h"

namespace fusebox::tflite {

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

}  // namespace fusebox::tflite
