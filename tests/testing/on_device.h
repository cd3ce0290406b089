// SPDX-License-Identifier: Apache-2.0
// A minimal version of TensorFlow's on-device training tutorial: one variable and four signatures, two of
// which (writing and reading checkpoints) contain Flex ops that cannot run here.
#pragma once

#include <flatbuffers/flexbuffers.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/graph/graph.h"

namespace fusebox::fixtures {

// A Flex op's options as written by TensorFlow's converter: [op, its NodeDef].
inline std::string FlexOptions(const std::string& op) {
  const auto field = [](char tag, const std::string& text) {
    return std::string{tag, static_cast<char>(text.size())} + text;
  };
  flexbuffers::Builder builder;
  builder.Vector([&] {
    builder.String(op);
    builder.String(field('\x0a', op) + field('\x12', op));
  });
  builder.Finish();
  return {builder.GetBuffer().begin(), builder.GetBuffer().end()};
}

class OnDevice {
 public:
  // infer: x * w, with variable w = {2, 3}. train: w += x, returns w. save, restore: Flex ops.
  static std::unique_ptr<Module> Make(std::vector<std::string> order = {"infer", "restore", "save",
                                                                        "train"}) {
    auto module = std::make_unique<Module>();
    for (const std::string& key : order) {
      Function& f = module->Add(key + "_function");
      const bool file = key == "save" || key == "restore";
      const ValueId in =
          f.AddInput(file ? Type{DType::kString, Shape(std::vector<int64_t>())} : Vector(), key + "_in");
      f.outputs = {Body(f, key, in)};
      f.value(f.outputs[0]).name = key + "_out";
      module->signatures.push_back({key, f.name, {file ? "checkpoint_path" : "x"}, {"y"}});
    }
    Function& start = module->Add("start");
    const ValueId first = start.AddConst<float>(DType::kF32, {2}, {2, 3});
    start.AddNode(Op::kAssignVariable, {Handle(start), first}, {});
    return module;
  }

 private:
  static Type Vector() { return {DType::kF32, {2}}; }

  static ValueId Body(Function& f, const std::string& key, ValueId in) {
    if (key == "restore") {
      const ValueId read = Flex(f, "RestoreV2", {in}, Vector());
      f.AddNode(Op::kAssignVariable, {Handle(f), read}, {});
      return read;
    }
    Attrs once;
    once.Set("init_subgraph_index", FunctionRef{"start"});
    f.AddNode(Op::kCallOnce, {}, {}, std::move(once));
    const ValueId handle = Handle(f);
    const ValueId w = f.AddNode(Op::kReadVariable, {handle}, {Vector()}).results[0];
    if (key == "save") return Flex(f, "SaveV2", {in, w}, {DType::kString, Shape(std::vector<int64_t>())});
    if (key == "infer") return f.AddNode(Op::kMul, {in, w}, {Vector()}).results[0];
    const ValueId sum = f.AddNode(Op::kAdd, {in, w}, {Vector()}).results[0];
    f.AddNode(Op::kAssignVariable, {handle, sum}, {});
    return sum;
  }

  static ValueId Handle(Function& f) {
    Attrs attrs;
    attrs.Set("shared_name", "w");
    return f
        .AddNode(Op::kVarHandle, {}, {{DType::kResource, Shape(std::vector<int64_t>())}}, std::move(attrs))
        .results[0];
  }

  static ValueId Flex(Function& f, const std::string& op, std::vector<ValueId> operands, Type result) {
    Node& node = f.AddNode(Op::kCustom, std::move(operands), {std::move(result)});
    node.name = "Flex" + op;
    node.raw_options = FlexOptions(op);
    return node.results[0];
  }
};

}  // namespace fusebox::fixtures
