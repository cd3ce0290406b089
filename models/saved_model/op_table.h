// SPDX-License-Identifier: Apache-2.0
// Definitions of the TensorFlow ops in sample models.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "converter/import/saved_model/graph.pb.h"

namespace fusebox::models {

// Aborts for an unknown op: add it to op_table.cc, or call DefineOp.
const tf::OpDef& OpDefOf(std::string_view op);
const tf::OpDef* FindOp(std::string_view op);  // null: unknown
std::vector<std::string> OpNames();

// Adds an op: "Split(split_dim: int32, value: T) -> (output: num_split * T)". A type is a type name, an
// attribute (T), a number of one (N * T), or a list attribute ([Tin]). A trailing "!" marks side effects. Not
// thread-safe.
const tf::OpDef& DefineOp(std::string_view line);

}  // namespace fusebox::models
