// SPDX-License-Identifier: Apache-2.0
// A graph with control flow of TensorFlow 1, as the steps of rebuild.h edit it: nodes by number, edges as
// pairs of node and output.
#pragma once

#include <compare>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "converter/import/saved_model/function_import.h"

namespace fusebox::saved_model::v1 {

struct Port {
  int node = -1;
  int output = 0;
  auto operator<=>(const Port&) const = default;
};

enum class Kind { kOther, kSwitch, kMerge, kEnter, kExit, kNextIteration, kLoopCond };
Kind KindOf(const std::string& op);  // Ref forms included

struct Vertex {
  const tf::NodeDef* def = nullptr;  // null: an argument
  Kind kind = Kind::kOther;
  int argument = -1;  // its number
  std::vector<Port> inputs;
  std::vector<int> controls;
  // It, or a node that it needs, writes state. Control edges to other nodes only matter for the side of a
  // condition and the loop that a node is in.
  bool effect = false;
};

struct Graph {
  std::vector<Vertex> nodes;
  std::vector<Port> results;
  std::vector<int> effects;         // nodes that must run, and have no result that is read
  std::vector<DType> arguments;     // their types
  std::vector<std::string> labels;  // the arguments in the form of an edge

  const Vertex& operator[](int node) const { return nodes[static_cast<size_t>(node)]; }
  Vertex& operator[](int node) { return nodes[static_cast<size_t>(node)]; }
  bool Is(int node, std::string_view op) const { return (*this)[node].def && (*this)[node].def->op() == op; }
  std::string NameOf(int node) const;
  // As an input of a node.
  std::string Text(Port) const;
  int Add(const tf::NodeDef&, std::vector<Port> inputs);
};

// The same value before Identity nodes.
Port Origin(const Graph&, Port);
// Returns the tensor of a Const behind identities, or null if there is none.
const tf::Tensor* ConstantOf(const Graph&, Port);

// Producers before readers; only the back edges of loops may form cycles.
Result<std::vector<int>> Order(const Graph&);
// Redirects all readers.
void Replace(Graph&, const std::map<Port, Port>& by);
// Redirects control edges.
void Redirect(Graph&, const std::map<int, int>& by);
// Removes what no result needs. `states`: follow all control edges, not only those to effects.
void Prune(Graph&, bool states);

// State that all steps of one import share.
struct Context {
  SavedModel& model;
  std::deque<tf::NodeDef> made = {};  // new nodes
  std::set<std::string> names = {};   // of nodes
  size_t copied = 0;                  // nodes, into functions
  int depth = 0;                      // loops and branches around

  tf::NodeDef& Make(const std::string& op, const std::string& name);  // the name is made unique
  DType TypeOf(const Graph&, Port) const;
};
tf::DataType ToDataType(DType);
// A new Const: an i32 scalar.
const tf::NodeDef& MakeIndex(Context&, const std::string& name, int value);

// Which values of a graph are arguments of the functions that replace a part of it.
struct Arguments {
  std::vector<Port> values;     // in the graph
  std::map<Port, int> numbers;  // by the value that stands for it inside of the part
  int Of(Port inside, Port value);
};
// Extracts a part of a graph as a separate graph: the nodes that `results` and `effects` need, down to the
// values that `outside` maps to arguments.
using Outside = std::function<Result<std::optional<Port>>(Port)>;  // its key in Arguments; nullopt: copied
Result<Graph> Extract(Context&, const Graph&, const std::vector<Port>& results,
                      const std::vector<int>& effects, const Outside&, Arguments&);
// Rebuilds the graph and adds it to the model's library; returns the function's name.
Result<std::string> AddFunction(Context&, Graph part, const std::vector<DType>& arguments,
                                const std::string& name);
// The graph's nodes with its edges; unchanged nodes are not copied.
std::vector<const tf::NodeDef*> Store(Context&, const Graph&);

// The steps, in order.
Status LowerArrays(Context&, Graph&);
Status CutDeadBranches(Context&, Graph&);
Status ExtractLoops(Context&, Graph&);
Status ExtractBranches(Context&, Graph&);
// All but the first, also in new functions.
Status RebuildGraph(Context&, Graph&);

}  // namespace fusebox::saved_model::v1
