// SPDX-License-Identifier: Apache-2.0
// Builds TensorFlow graphs node by node, in the form that TensorFlow 2 saves.
//
// Op arguments come from op_table.h, so types and edge names ("split:output:2") are correct by construction.
// Caller errors (an unknown op, a wrong number of inputs) are bugs and abort. One thread.
//
//   FunctionBuilder& f = model.AddFunction("__inference_dense");
//   Ref x = f.Arg("x", tf::DT_FLOAT, {-1, 4});
//   Ref y = f.Op("MatMul", {x, f.Read(kernel)}, {-1, 8});
//   f.Return({f.Op("Relu", {f.Op("BiasAdd", {y, f.Read(bias)}, {-1, 8})}, {-1, 8})});
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "converter/import/saved_model/graph.pb.h"
#include "host/graph/types.h"
#include "models/saved_model/tensor_value.h"

namespace fusebox::models {

class FunctionBuilder;
class SavedModelBuilder;

// One value of a graph. Its shape may be unranked.
struct Ref {
  std::string edge;  // as in a node's input
  tf::DataType dtype = tf::DT_INVALID;
  Shape shape;
};

// A variable of the model, by index in the order of AddVariable.
struct VariableRef {
  int index = -1;
};

struct Attr {
  Attr(std::string key, bool value) : key(std::move(key)) { proto.set_b(value); }
  Attr(std::string key, std::integral auto value) : key(std::move(key)) { proto.set_i(value); }
  Attr(std::string key, std::floating_point auto value) : key(std::move(key)) {
    proto.set_f(static_cast<float>(value));
  }
  Attr(std::string key, const char* value) : key(std::move(key)) { proto.set_s(value); }
  Attr(std::string key, const std::string& value) : key(std::move(key)) { proto.set_s(value); }
  Attr(std::string key, tf::DataType value) : key(std::move(key)) { proto.set_type(value); }
  Attr(std::string key, const Shape& value);
  Attr(std::string key, const TensorValue& value);
  Attr(std::string key, const std::vector<int64_t>& value);
  Attr(std::string key, const std::vector<tf::DataType>& value);
  Attr(std::string key, const std::vector<Shape>& value);
  // A name with attributes, or a reference to a function.
  Attr(std::string key, const std::string& name, const std::vector<Attr>& attrs);

  std::string key;
  tf::AttrValue proto;
};

// Nodes of one graph: the main graph, or a function's body.
class GraphBuilder {
 public:
  // A node with one result. shapes set "_output_shapes"; Shape{} omits it. Type attributes are inferred from
  // the inputs; other required attributes (a Cast's DstT, a Split's num_split) are passed. The name is scope
  // + op, made unique.
  Ref Op(std::string_view op, const std::vector<Ref>& inputs, const Shape& shape,
         const std::vector<Attr>& attrs = {});
  // A node with any number of results.
  std::vector<Ref> Ops(std::string_view op, const std::vector<Ref>& inputs, const std::vector<Shape>& shapes,
                       const std::vector<Attr>& attrs = {});
  Ref Const(const TensorValue& value, std::string_view name = "Const");

  // The value of a variable: captures its handle and reads it, at each call.
  Ref Read(VariableRef variable);
  // The handle itself, for a loop that reads it inside.
  Ref Capture(VariableRef variable) { return Handle(variable); }
  // An op that changes a variable: AssignVariableOp, AssignAddVariableOp, AssignSubVariableOp. Later reads
  // return the new value.
  void Assign(std::string_view op, VariableRef variable, const Ref& value);

  // A call; adds the callee's captures. The callee must be complete.
  std::vector<Ref> Call(const FunctionBuilder& callee, const std::vector<Ref>& arguments);
  // While, or StatelessWhile unless stateful. Results have the shapes of the inputs.
  std::vector<Ref> While(const FunctionBuilder& cond, const FunctionBuilder& body,
                         const std::vector<Ref>& inputs, bool stateful = false);
  std::vector<Ref> If(const Ref& condition, const FunctionBuilder& then_branch,
                      const FunctionBuilder& else_branch, const std::vector<Ref>& arguments,
                      const std::vector<Shape>& shapes);

  bool HasName(const std::string& name) const { return names_.contains(name); }

  // Prefix for names of later nodes: "sequential/lstm".
  void SetScope(std::string scope) { scope_ = std::move(scope); }

 protected:
  GraphBuilder(SavedModelBuilder& model, bool is_main) : model_(model), is_main_(is_main) {}
  ~GraphBuilder() = default;
  virtual Ref Handle(VariableRef variable) = 0;

  std::string UniqueName(std::string_view stem);
  tf::NodeDef& AddNode(std::string_view op, const std::string& name);

  SavedModelBuilder& model_;
  bool is_main_;
  std::string scope_;
  std::vector<tf::NodeDef> nodes_;
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, int> last_;  // by name without number: the last number
  std::vector<std::string> effects_;           // nodes that a call must run even if their results are unused
  std::string last_write_;                     // control edges keep reads and writes in order
};

class FunctionBuilder : public GraphBuilder {
 public:
  const std::string& name() const { return name_; }
  const std::vector<Ref>& args() const { return args_; }
  const std::vector<Ref>& results() const { return results_; }
  // Variables used directly or by callees: one trailing argument each.
  const std::vector<VariableRef>& captures() const { return captures_; }
  bool is_stateful() const { return !captures_.empty(); }
  // True if it, or a callee, changes a variable.
  bool writes() const { return !last_write_.empty(); }

  Ref Arg(const std::string& name, tf::DataType dtype, const Shape& shape);
  FunctionBuilder& SetAttr(const Attr& attr);

  // Ends the function: each value passes through an Identity and becomes a result "identity", "identity_1",
  // ...
  void Return(const std::vector<Ref>& values);
  // Ends a loop body: carried values as in Return, then the unchanged arguments.
  void ReturnLoop(const std::vector<Ref>& carried, const std::vector<Ref>& invariant);

  tf::FunctionDef ToProto() const;

 private:
  friend class SavedModelBuilder;
  FunctionBuilder(SavedModelBuilder& model, std::string name)
      : GraphBuilder(model, false), name_(std::move(name)) {}
  Ref Handle(VariableRef variable) override;
  void AddResult(const std::string& name, const Ref& value);

  std::string name_;
  std::vector<Ref> args_, results_, capture_args_;
  std::vector<VariableRef> captures_;
  std::vector<std::string> result_names_;
  std::vector<Attr> attrs_;
};

}  // namespace fusebox::models
