// SPDX-License-Identifier: Apache-2.0
// Functions that were called on a layer's result: how their arguments are found, in the words of Keras 2 and of Keras 3.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "converter/import/keras/layer_call.h"

namespace fusebox::keras {

using Names = std::initializer_list<const char*>;

// An argument of the call by position or by any of its names; null: not given.
const Given* FindArgument(LayerCall&, size_t position, Names);
// The same as plain data, nested lists included; what Keras 3 says when it makes the operation stands in its configuration. Null: not
// given. Fails the call where it is or holds a tensor.
nlohmann::json PlainArgument(LayerCall&, size_t position, Names);
// A whole number or a list of them; nothing where it is not given. Fails the call where it is something else.
std::optional<std::vector<int64_t>> IntsArgument(LayerCall&, size_t position, Names);
bool FlagArgument(LayerCall&, size_t position, Names);
// Of a function's only or first tensor.
ValueId TensorArgument(LayerCall&, size_t position, Names);

struct OperationRow {
  std::string_view op;
  void (*build)(LayerCall&, std::string_view op);
};

// operation_shapes.cc: what moves elements and computes nothing. `op` is of no meaning to them.
void ExpandDims(LayerCall&, std::string_view op);
void Squeeze(LayerCall&, std::string_view op);
void Reshape(LayerCall&, std::string_view op);
void TransposeAxes(LayerCall&, std::string_view op);
void Concat(LayerCall&, std::string_view op);
void CastTo(LayerCall&, std::string_view op);
void GetItem(LayerCall&, std::string_view op);  // x[key]

}  // namespace fusebox::keras
