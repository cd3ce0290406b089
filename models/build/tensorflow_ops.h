// SPDX-License-Identifier: Apache-2.0
// Values and nodes for a SavedModel that is built from a user's description: errors instead of the checks of
// models/saved_model/graph_builder.h.
#pragma once

#include <string>
#include <vector>

#include "host/base/status.h"
#include "host/graph/types.h"
#include "models/saved_model/graph_builder.h"

namespace fusebox::models {

// DT_INVALID: TensorFlow has no such type.
tf::DataType ToTensorFlow(DType);
// Error: an element type that a SavedModel cannot store.
Result<models::TensorValue> ToTensorFlow(const Tensor&);
// A map with the one key "type" or "shape" is a data type or a shape.
Result<std::vector<models::Attr>> ToTensorFlow(const Attrs&);

// Appends a node. Types that follow from the inputs are set. Errors: an unknown op, a wrong number or type of
// inputs, an attribute that is missing.
Result<std::vector<models::Ref>> AddOp(models::FunctionBuilder&, const std::string& op,
                                       const std::vector<models::Ref>& inputs, const Attrs& attrs);

}  // namespace fusebox::models
