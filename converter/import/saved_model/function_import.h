// SPDX-License-Identifier: Apache-2.0
// One GraphDef or FunctionDef as a Function: ordering, edges, node kinds.
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

// What all functions of one import share.
struct ImportState {
  const SavedModel& model;
  const Variables& variables;
  Module& module;
  std::vector<std::string> wanted;            // functions that were referred to and are not imported yet
  std::map<int, std::string> variable_names;  // Variables index -> Module::variables name
  const LookupTables& tables;
  std::map<std::string, int64_t> table_numbers;  // node of the main graph -> a number of its own

  // The module's variable for a handle node of the main graph.
  Result<std::string> VariableOf(const std::string& node);
  Result<std::string> VariableAt(int number);  // in `variables`
  // Gives the handle of a lookup table its number and what the table holds: attributes table_id, keys and
  // values, or `why` not.
  void FillTable(const std::string& node, Node& handle);
};

// A composite's name and attributes, where the function carries an annotation.
struct Annotation {
  std::string name;
  Attrs attrs;
};
Result<Annotation> AnnotationOf(const tf::FunctionDef&);  // name empty: none

// "node:1" of the main graph or "node:output:1" of a function: where a value comes from.
struct Edge {
  std::string node, output;
  int index = 0;
  bool control = false;
};
Result<Edge> ParseEdge(const std::string& text, bool in_function);

// Outputs of a node as TensorFlow counts them, with their element types.
struct NodeOutputs {
  std::vector<DType> dtypes;
  std::map<std::string, int, std::less<>> first;  // output argument -> number of its first tensor
  bool guessed = false;                           // nothing says what the op gives
};
Result<NodeOutputs> OutputsOf(const SavedModel&, const tf::NodeDef&);
// Whether a signature's input is fed to a node that exists and takes its type.
Status CheckFed(const SavedModel&, const tf::TensorInfo&, const Edge&);
void DeclaredShapes(const tf::NodeDef&,
                    std::vector<Type>& of_outputs);  // as the file states them, where it does

Status ImportFunction(ImportState&, const tf::FunctionDef&);
// Attributes that say nothing about what a node computes.
bool IsNoise(const std::string& attribute);
Shape ArgShape(const tf::FunctionDef&, int arg);
// A For over these operands (start, limit, delta, what is carried) as a While of two new functions around
// `body`; what it gives.
Result<std::vector<ValueId>> AddForLoop(Module&, Function&, const std::string& body,
                                        const std::vector<ValueId>& operands);
// What an If asks as one bool: a number for whether it is not zero, a tensor for whether it has elements.
Result<ValueId> ConditionOf(Function&, ValueId condition, const std::string& node);
std::vector<std::string> BranchesOf(const tf::NodeDef& of_case);
// A Case of these operands (index, arguments...) as Ifs over new functions; what it gives, of the types
// `results`.
Result<std::vector<ValueId>> AddCase(Module&, Function&, const std::vector<std::string>& branches,
                                     const std::vector<ValueId>& operands, const std::vector<Type>& results);
// The part of the main graph between a signature's inputs and outputs, as a function named like the
// signature.
Status ImportSignature(ImportState&, const std::string& key, const tf::SignatureDef&);
// The function of the model's object graph that is called so, by its author or in the library; empty: none.
// An error names all where there are several.
Result<std::string> SavedFunctionOf(const SavedModel&, const std::string& name);
// That function with what it captured, as a signature that is named as its author named it.
Status ImportSavedFunction(ImportState&, const std::string& name);
std::vector<std::string> FunctionsOfTensors(const SavedModel&);  // those whose arguments are numbers
// What SavedFunctionOf finds it by: its author's name where that is one of its own.
std::string NameOfFunction(const SavedModel&, const std::string& function);

}  // namespace fusebox::saved_model
