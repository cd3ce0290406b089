// SPDX-License-Identifier: Apache-2.0
// Output of `fusebox inspect`, as text and as JSON.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "host/model.h"

namespace fusebox::cli {

// "CONV_2D", "CUSTOM:my_op".
std::string OpName(const Node& node);
// Number of nodes per op, in a function and in the file.
std::map<std::string, int> CountOps(const Function& function);
std::map<std::string, int> CountOps(const Module& module);
size_t ConstantBytes(const Function& function);

// Tables of signatures, subgraphs, op counts, metadata, and nodes. `entries`: what can run here.
std::string InspectText(const Module& module, const std::vector<Model::Entry>& entries);

// {"file", "description",
//  "signatures": [{"key", "subgraph", "inputs": [NAME], "outputs": [NAME], "can_run", "reason" (if it cannot)}],
//  "main_reason" (why the main subgraph, if no signature runs it, cannot run),
//  "subgraphs": [{"name", "inputs": [TENSOR], "outputs": [TENSOR], "constant_bytes",
//                 "nodes": [{"op", "version", "options": {}, "inputs": [TENSOR or null], "outputs": [TENSOR or null],
//                            "name" (composite), "body", "fused": {"plugin", "version", "rule", "composite"}}]}],
//  "ops": {NAME: COUNT}, "metadata": [{"name", "bytes"}], "appended_bytes"}
// with TENSOR = {"id", "name", "dtype", "shape" (null: unknown rank), "constant", "variable", "quantized"};
// members after "outputs" of a node are omitted if empty.
nlohmann::ordered_json InspectJson(const Module& module, const std::vector<Model::Entry>& entries);

// Files besides what is printed; empty paths: none.
struct FileFlags {
  bool silent = false;                    // no line for each file that is written
  std::string html, dot, model_explorer;  // written
  std::string profile, report;            // read, for these
};
// The model is opened and planned as `run` does it, but not run; if that fails, the page has the reason. Each
// file is written as a whole or not at all.
Status WriteFiles(const Module& module, const std::vector<Model::Entry>& entries, const ModelOptions& options,
                  const FileFlags& flags);

// The page of a compared model. layers: {"with", "atol", "rtol", "rows": as `compare --layers --json` prints
// them}, of this function of the model.
Status WriteLayersPage(const std::string& path, const Model& model, const ModelOptions& options,
                       const std::string& function, nlohmann::ordered_json layers);

}  // namespace fusebox::cli
