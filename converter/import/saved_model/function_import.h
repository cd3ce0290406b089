// SPDX-License-Identifier: Apache-2.0
// Imports one GraphDef or FunctionDef as a Function: order, edges, node kinds.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "converter/import/saved_model/import.h"
#include "converter/import/saved_model/lookup_tables.h"
#include "converter/import/saved_model/variables.h"

namespace fusebox::saved_model {

// State shared by all functions of one import.
struct ImportState {
  SavedModel& model;
  const Variables& variables;
  Module& module;
  std::vector<std::string> wanted;            // referenced functions that are not imported yet
  std::map<int, std::string> variable_names;  // Variables index -> Module::variables name
  const LookupTables& tables;
  std::map<std::string, int64_t> table_numbers;  // node of the main graph -> table number

  // The module's variable for a handle node of the main graph.
  Result<std::string> VariableOf(const std::string& node);
  Result<std::string> VariableAt(int number);  // in `variables`
  // Sets the attributes of a lookup table's handle: table_id, keys and values, or the `reason` why they are
  // unknown.
  void FillTable(const std::string& node, Node& handle);
};

// A composite's name and attributes, from the function's annotation.
struct Annotation {
  std::string name;
  Attrs attrs;
};
Result<Annotation> AnnotationOf(const tf::FunctionDef&);  // name empty: none

// Source of a value: "node:1" in the main graph or "node:output:1" in a function.
struct Edge {
  std::string node, output;
  int index = 0;
  bool control = false;
};
Result<Edge> ParseEdge(const std::string& text, bool in_function);

// Outputs of a node in TensorFlow's numbering, with their element types.
struct NodeOutputs {
  std::vector<DType> dtypes;
  std::map<std::string, int, std::less<>> first;  // output argument -> number of its first tensor
  bool guessed = false;                           // neither the file nor a table defines the op
};
Result<NodeOutputs> OutputsOf(const SavedModel&, const tf::NodeDef&);
// Checks that a signature's input feeds an existing node of the same dtype.
Status CheckFed(const SavedModel&, const tf::TensorInfo&, const Edge&);
void DeclaredShapes(const tf::NodeDef&,
                    std::vector<Type>& of_outputs);  // from the file's shape attributes, if any

Status ImportFunction(ImportState&, const tf::FunctionDef&);
// Attributes that do not affect the computation.
bool IsNoise(const std::string& attribute);
Shape ArgShape(const tf::FunctionDef&, int arg);
// Builds a For over these operands (start, limit, delta, carried...) as a While with two new functions around
// `body`. Returns its results.
Result<std::vector<ValueId>> AddForLoop(Module&, Function&, const std::string& body,
                                        const std::vector<ValueId>& operands);
// The condition of an If as a scalar bool: a number is true if nonzero, a tensor if it has elements.
Result<ValueId> ConditionOf(Function&, ValueId condition, const std::string& node);
std::vector<std::string> BranchesOf(const tf::NodeDef& of_case);
// Builds a Case over these operands (index, arguments...) as nested Ifs with new functions. Returns its
// results, of the types `results`.
Result<std::vector<ValueId>> AddCase(Module&, Function&, const std::vector<std::string>& branches,
                                     const std::vector<ValueId>& operands, const std::vector<Type>& results);
// The part of the main graph between a signature's inputs and outputs, as a function with the signature's
// name.
Status ImportSignature(ImportState&, const std::string& key, const tf::SignatureDef&);
// Returns the object graph's function with this author's or library name, or an empty string if there is
// none. An ambiguous name is an error that lists the candidates.
Result<std::string> SavedFunctionOf(const SavedModel&, const std::string& name);
// Imports that function and its captures as a signature with the author's name.
Status ImportSavedFunction(ImportState&, const std::string& name);
std::vector<std::string> FunctionsOfTensors(const SavedModel&);  // functions with only numeric arguments
// The name for SavedFunctionOf: the author's name if it is unique.
std::string NameOfFunction(const SavedModel&, const std::string& function);

}  // namespace fusebox::saved_model
