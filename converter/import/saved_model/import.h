// SPDX-License-Identifier: Apache-2.0
// Import: a SavedModel's signatures as a graph.
//
// Every TensorFlow node becomes an OPAQUE node (source op name, attributes, location); what has a direct form
// does so at once: constants, calls, loops, branches, variable handles, and calls of functions that carry
// `_implements` or `api_implements`, which become composites. The pass that translates opaque nodes comes
// later, when types are known.
#pragma once

#include <string>
#include <vector>

#include "converter/import/imported.h"
#include "converter/import/saved_model/reader.h"

namespace fusebox::saved_model {

using converter::Imported;

// The named signatures (an error if one does not import), or, when none is named, all that do. A name that is
// no signature's may be that of a function which the model's object graph knows: it becomes a signature.
Result<Imported> Import(const std::string& dir, const std::vector<std::string>& signatures);

// TensorFlow's types as the graph's. Errors name what cannot be said.
DType ToDType(tf::DataType);
Shape ToShape(const tf::TensorShape&);
Result<Tensor> ToTensor(const tf::Tensor&);
// monostate for kinds that the graph does not carry (lists of shapes and tensors).
Result<AttrValue> ToAttr(const tf::AttrValue&);
// A string tensor's data in the graph's packed form.
Buffer PackStrings(const std::vector<std::string>&);

}  // namespace fusebox::saved_model
