// SPDX-License-Identifier: Apache-2.0
// Import: a SavedModel's signatures as a graph.
//
// Every TensorFlow node becomes an OPAQUE node (source op name, attributes, location). Constants, calls,
// loops, branches, variable handles, and calls of functions with `_implements` or `api_implements`
// (composites) are converted at once. A later pass translates opaque nodes, when types are known.
#pragma once

#include <string>
#include <vector>

#include "converter/import/imported.h"
#include "converter/import/saved_model/frozen_graph.h"
#include "converter/import/saved_model/reader.h"

namespace fusebox::saved_model {

using converter::Imported;

// Imports the named signatures (any failure is an error) or, if none is named, all that can be imported. A
// name may also name a function of the object graph, which then becomes a signature. Endpoints replace the
// signatures by one.
Result<Imported> Import(const std::string& dir, const std::vector<std::string>& signatures,
                        const Endpoints& = {});
// The same for a frozen graph, a file without signatures.
Result<Imported> ImportFrozenGraph(const std::string& path, const Endpoints&);

// TensorFlow's types as graph types. Errors name the unsupported type.
DType ToDType(tf::DataType);
Shape ToShape(const tf::TensorShape&);
Result<Tensor> ToTensor(const tf::Tensor&);
// monostate for kinds that the graph cannot store (lists of shapes and tensors).
Result<AttrValue> ToAttr(const tf::AttrValue&);
// String tensor data in the graph's packed form.
Buffer PackStrings(const std::vector<std::string>&);

}  // namespace fusebox::saved_model
