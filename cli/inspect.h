// SPDX-License-Identifier: Apache-2.0
// What `fusebox inspect` tells of a file, as text and as JSON. Nothing here needs a plugin.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "host/graph/graph.h"

namespace fusebox::cli {

// "CONV_2D", "CUSTOM:my_op".
std::string OpName(const Node& node);
// How often each op stands in a function, and in the whole file.
std::map<std::string, int> CountOps(const Function& function);
std::map<std::string, int> CountOps(const Module& module);
size_t ConstantBytes(const Function& function);

// Tables: signatures, subgraphs, op counts, metadata, and every node.
std::string InspectText(const Module& module);

// {"file", "description",
//  "signatures": [{"key", "subgraph", "inputs": [NAME], "outputs": [NAME]}],
//  "subgraphs": [{"name", "inputs": [TENSOR], "outputs": [TENSOR], "constant_bytes",
//                 "nodes": [{"op", "version", "options": {}, "inputs": [TENSOR or null], "outputs": [TENSOR or null],
//                            "name" (composite), "body", "fused": {"plugin", "version", "rule", "composite"}}]}],
//  "ops": {NAME: COUNT}, "metadata": [{"name", "bytes"}], "appended_bytes"}
// with TENSOR = {"id", "name", "dtype", "shape" (null: unknown rank), "constant", "variable", "quantized"}; the members
// after "outputs" of a node are there where they say something.
nlohmann::ordered_json InspectJson(const Module& module);

}  // namespace fusebox::cli
