// SPDX-License-Identifier: Apache-2.0
// Writes a SavedModel like TensorFlow 2, without TensorFlow: signatures as calls of wrapper functions,
// variables as captured handles, a restore function, the object graph, and a tensor bundle.
//
//   SavedModelBuilder model;
//   VariableRef kernel = model.AddVariable("dense/kernel", random.Weights({4, 8}),
//   "layer_with_weights-0/kernel"); FunctionBuilder& f = model.AddFunction("__inference__wrapped_model");
//   ...                                                          (graph_builder.h)
//   model.AddSignature("serving_default", f, {"x"}, {"dense"});
//   FUSEBOX_TRY(model.Write("out/dense"));
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "converter/import/saved_model/saved_model.pb.h"
#include "host/base/status.h"
#include "models/saved_model/bundle_writer.h"
#include "models/saved_model/graph_builder.h"
#include "models/saved_model/tensor_value.h"

namespace fusebox::models {

class SavedModelBuilder {
 public:
  // The emulated exporter: `tf.saved_model.save`, or `model.export()` of Keras 3. The latter saves each
  // variable twice with equal bytes: as the Keras variable (key "variables/N"), which functions list as their
  // capture, and as its tf.Variable ("_all_variables/N"), whose handle the main graph passes to them.
  enum class Exporter { kTensorFlow, kKeras3 };

  explicit SavedModelBuilder(Exporter exporter = Exporter::kTensorFlow);
  ~SavedModelBuilder();
  SavedModelBuilder(const SavedModelBuilder&) = delete;
  SavedModelBuilder& operator=(const SavedModelBuilder&) = delete;

  // path: of the variable in the object graph, determines its checkpoint key:
  // "layer_with_weights-0/cell/kernel" +
  // "/.ATTRIBUTES/VARIABLE_VALUE". Unused for Keras 3.
  VariableRef AddVariable(const std::string& name, TensorValue value, const std::string& path,
                          bool trainable = true);

  // Appends a number to the name, like TensorFlow. The reference lives as long as the builder.
  FunctionBuilder& AddFunction(const std::string& name);

  // A signature that calls the function. inputs and outputs name its arguments and results in order; the
  // wrapper has them in alphabetic order, like TensorFlow.
  void AddSignature(const std::string& key, const FunctionBuilder& function,
                    const std::vector<std::string>& inputs, const std::vector<std::string>& outputs);

  // The contents of Write, for tests to modify. Afterwards, add no variable, function or signature.
  tf::SavedModel ToProto();
  BundleWriter Checkpoint() const;

  // Creates dir if needed. Writes saved_model.pb, variables/variables.index,
  // variables/variables.data-00000-of-00001.
  Status Write(const std::string& dir);

 private:
  friend class GraphBuilder;
  friend class FunctionBuilder;
  class MainGraph;
  struct Variable;
  struct Object;

  std::string NumberedName(const std::string& stem) { return stem + "_" + std::to_string(next_number_++); }
  const std::string& NameOf(VariableRef variable) const;
  std::pair<tf::DataType, Shape> TypeOf(VariableRef variable) const;
  void AddRestore();
  void AddObjects(tf::MetaGraphDef& meta_graph) const;
  std::vector<Object> MakeObjects(bool of_checkpoint) const;

  const Exporter exporter_;
  int next_number_ = 10;
  std::vector<Variable> variables_;
  std::vector<std::unique_ptr<FunctionBuilder>> functions_;
  std::map<std::string, tf::SignatureDef> signatures_;
  std::map<std::string, const FunctionBuilder*> wrappers_;  // by signature
  std::unique_ptr<MainGraph> main_;
  std::string restore_node_;
};

Status WriteSavedModel(const std::string& dir, const tf::SavedModel& model, const BundleWriter& checkpoint);

}  // namespace fusebox::models
