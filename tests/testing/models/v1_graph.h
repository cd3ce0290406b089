// SPDX-License-Identifier: Apache-2.0
// Builds graphs as TensorFlow 1 does: tf.cond and tf.while_loop become Switch, Merge, Enter, Exit,
// NextIteration and LoopCond nodes; values from outside pass a Switch or a constant Enter of each construct
// around; nodes without inputs get a control edge that keeps them inside.
//
//   V1Graph g;
//   const std::string x = g.Placeholder("x", tf::DT_FLOAT, {2});
//   const auto y = g.Cond("cond", g.Op("Less", {x, g.Const(Float(1))}, tf::DT_BOOL),
//                         [&] { return Names{g.Op("Neg", {x})}; }, [&] { return Names{g.Op("Exp", {x})}; });
//   WriteFrozenGraph("frozen.pb", g.graph());
//
// Caller errors abort. One thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "converter/import/saved_model/saved_model.pb.h"
#include "host/base/status.h"
#include "models/saved_model/graph_builder.h"

namespace fusebox::test_models {

using namespace models;

using Names = std::vector<std::string>;  // of values: "node" or "node:1"

class V1Graph {
 public:
  std::string Placeholder(const std::string& name, tf::DataType dtype, const Shape& shape);
  std::string Const(const TensorValue& value, const std::string& name = "Const");
  // Adds a node and returns its first result. Without `dtype`, the result has the dtype of the first input; T
  // is set to the dtype of the first input.
  std::string Op(const std::string& op, const Names& inputs, tf::DataType dtype = tf::DT_INVALID,
                 const std::vector<Attr>& attrs = {}, const std::string& name = {});
  // Further results of a node.
  std::string Output(const std::string& node, int number, tf::DataType dtype);

  using Branch = std::function<Names()>;
  Names Cond(const std::string& scope, const std::string& condition, const Branch& then_branch,
             const Branch& else_branch);
  using Step = std::function<Names(const Names& variables)>;
  Names While(const std::string& scope, const Names& variables,
              const std::function<std::string(const Names&)>& condition, const Step& body);

  // tf.TensorArray: {handle, flow}.
  struct Array {
    std::string handle, flow;
    tf::DataType dtype;
  };
  Array TensorArray(const std::string& size, tf::DataType dtype, const Shape& element, bool dynamic = false);
  std::string Write(const Array&, const std::string& index, const std::string& value);  // the new flow
  std::string Read(const Array&, const std::string& index);
  std::string Unstack(const Array&, const std::string& value);  // the new flow
  std::string Stack(const Array&, const Shape& element);

  tf::DataType TypeOf(const std::string& value) const { return types_.at(value); }
  const tf::GraphDef& graph() const { return graph_; }
  tf::GraphDef& graph() { return graph_; }
  void SetScope(const std::string& scope) { scope_ = scope; }

 private:
  struct Context {
    bool loop = false;
    std::string scope, frame, condition, pivot;
    int side = 0;
    std::map<std::string, std::string> captured;
  };
  tf::NodeDef& Add(const std::string& op, const std::string& name, const std::vector<Attr>& attrs = {});
  std::string Unique(const std::string& name);  // in the current scope
  std::string Number(const std::string& full);  // "name", "name_1", ...
  std::string Define(const std::string& value, tf::DataType dtype, size_t depth);
  // The value inside of the constructs around.
  std::string Use(const std::string& value);
  std::string Enter(const std::string& value, const Context&, bool constant);
  std::string Identity(const std::string& value, const std::string& name);
  Names Branches(const std::string& scope, const std::string& condition, int side, const Branch&);

  tf::GraphDef graph_;
  std::string scope_;
  std::map<std::string, int> names_;
  std::map<std::string, tf::DataType> types_;  // of values
  std::map<std::string, size_t> depths_;
  std::vector<Context> contexts_;
};

Status WriteFrozenGraph(const std::string& path, const tf::GraphDef& graph);
// The graph as a SavedModel of TensorFlow 1 without variables; inputs and outputs by their edges.
Status WriteV1SavedModel(const std::string& dir, const tf::GraphDef& graph, const Names& inputs,
                         const Names& outputs);

}  // namespace fusebox::test_models
