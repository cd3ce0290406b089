// SPDX-License-Identifier: Apache-2.0
// What `fusebox inspect` tells of a file, as text and as JSON.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "host/model.h"

namespace fusebox::cli {

// "CONV_2D", "CUSTOM:my_op".
std::string OpName(const Node& node);
// How often each op stands in a function, and in the whole file.
std::map<std::string, int> CountOps(const Function& function);
std::map<std::string, int> CountOps(const Module& module);
size_t ConstantBytes(const Function& function);

// Tables: signatures, subgraphs, op counts, metadata, and every node.
// `entries`: what of it can run here.
std::string InspectText(const Module& module, const std::vector<Model::Entry>& entries);

// {"file", "description",
//  "signatures": [{"key", "subgraph", "inputs": [NAME], "outputs": [NAME], "can_run", "why" (it cannot)}],
//  "main_why" (the main subgraph, which no signature runs, cannot run),
//  "subgraphs": [{"name", "inputs": [TENSOR], "outputs": [TENSOR], "constant_bytes",
//                 "nodes": [{"op", "version", "options": {}, "inputs": [TENSOR or null], "outputs": [TENSOR or null],
//                            "name" (composite), "body", "fused": {"plugin", "version", "rule", "composite"}}]}],
//  "ops": {NAME: COUNT}, "metadata": [{"name", "bytes"}], "appended_bytes"}
// with TENSOR = {"id", "name", "dtype", "shape" (null: unknown rank), "constant", "variable", "quantized"};
// the members after "outputs" of a node are there where they say something.
nlohmann::ordered_json InspectJson(const Module& module, const std::vector<Model::Entry>& entries);

}  // namespace fusebox::cli
