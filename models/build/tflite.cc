// SPDX-License-Identifier: Apache-2.0
// A .tflite file: builtin and custom ops; a composite is a STABLEHLO_COMPOSITE node with its body.
#include "host/tflite/tflite.h"

#include "host/eval/eval.h"
#include "models/build/formats.h"

namespace fusebox::models {
namespace {

class Tflite : public Builder {
  void DoAddFunction(const std::string& name) override {
    functions_.push_back({&module_.Add(name), {}, {}, {}});
  }

  Status DoImplements(int function, const std::string& composite, const Attrs& attrs) override {
    at(function).composite = composite;
    at(function).attrs = attrs;
    return {};
  }

  Status DoAddInput(int function, const std::string& name, const Type& type) override {
    at(function).values.push_back(graph(function).AddInput(type, name));
    return {};
  }

  Status DoAddConstant(int function, const Tensor& tensor) override {
    at(function).values.push_back(graph(function).AddConst(tensor));
    return {};
  }

  Status DoAddVariable(const std::string& name, const Tensor&) override {
    return Unsupported("variable " + name + ": a .tflite model has none here; use a constant");
  }
  Status DoReadVariable(int, int) override { return Unsupported("a .tflite model has no variables here"); }

  Status DoAddOp(int function, const std::string& op, const Attrs& attrs, const Ids& inputs,
                 size_t result_count, std::span<const Type> types) override {
    const auto found = fusebox::FindOp(op);
    const bool builtin = found && Info(*found).code >= 0 && *found != Op::kCustom;
    if (!builtin && types.empty())
      return Invalid("a custom op needs the types of its results; a builtin op of this name is unknown");
    if (builtin) FUSEBOX_TRY(CheckBuiltin(*found, attrs, inputs.size()));
    std::vector<Type> results(types.begin(), types.end());
    results.resize(result_count);
    Node& node =
        graph(function).AddNode(builtin ? *found : Op::kCustom, Values(function, inputs), results, attrs);
    if (!builtin) node.name = op;
    if (const Status inferred = builtin ? Infer(function, node) : Status(); !inferred) {
      graph(function).nodes.pop_back();
      return inferred;
    }
    for (const ValueId id : node.results) at(function).values.push_back(id);
    return {};
  }

  Status DoCall(int function, int callee, const Ids& inputs) override {
    const Content& called = at(callee);
    if (called.composite.empty())
      return Unsupported("in a .tflite model, only functions that implement a composite can be called");
    const ValueIds operands = Values(function, inputs);
    for (size_t i = 0; i < operands.size(); ++i) {
      const Type& is = graph(function).value(operands[i]).type;
      const Type& wanted = graph(callee).value(graph(callee).inputs[i]).type;
      if (!Compatible(is, wanted))
        return Invalid("value " + std::to_string(i) + " is " + ToString(is) + ", expected " +
                       ToString(wanted));
    }
    std::vector<Type> results;
    for (const ValueId id : graph(callee).outputs) results.push_back(graph(callee).value(id).type);
    Node& node = graph(function).AddNode(Op::kStablehloComposite, operands, results, called.attrs);
    node.name = called.composite;
    node.version = 1;
    node.body = graph(callee).name;
    for (const ValueId id : node.results) at(function).values.push_back(id);
    return {};
  }

  void DoReturn(int function, const Ids& values) override {
    for (const int value : values)
      graph(function).outputs.push_back(at(function).values[static_cast<size_t>(value)]);
  }

  void DoAddSignature(const std::string& key, int function, const Names& inputs,
                      const Names& outputs) override {
    module_.signatures.push_back({key, graph(function).name, inputs, outputs});
  }

  // The function of the first signature is the main one.
  Status DoWrite(const std::string& path) override {
    auto& all = module_.functions;
    const auto main = std::find_if(all.begin(), all.end(), [&](const auto& function) {
      return function->name == module_.signatures[0].function;
    });
    std::rotate(all.begin(), main, main + 1);
    for (const Signature& signature : module_.signatures) NameOutputs(signature);
    FUSEBOX_TRY(Verify(module_, Strictness::kWritable).At(path));
    return tflite::WriteFile(module_, path);
  }

  struct Content {
    fusebox::Function* graph;
    std::vector<ValueId> values;
    std::string composite;
    Attrs attrs;
  };
  Content& at(int function) { return functions_[static_cast<size_t>(function)]; }
  fusebox::Function& graph(int function) { return *at(function).graph; }

  ValueIds Values(int function, const Ids& ids) {
    ValueIds out;
    for (const int id : ids) out.push_back(at(function).values[static_cast<size_t>(id)]);
    return out;
  }

  static Status CheckBuiltin(Op op, const Attrs& attrs, size_t inputs) {
    const OperandList& list = Info(op).operands;
    if (inputs < static_cast<size_t>(list.min) || (list.max >= 0 && inputs > static_cast<size_t>(list.max)))
      return Invalid("has " + std::to_string(inputs) + " inputs, expected " + std::to_string(list.min) +
                     " to " + std::to_string(list.max));
    if (Info(op).effects != Effects::kPure) return Unsupported("an op with state or control flow");
    return tflite::CheckOptions(op, attrs);
  }

  Status Infer(int function, const Node& node) {
    if (!registry_) {
      Config config;
      config.search_default_path = false;
      FUSEBOX_ASSIGN(registry_, Registry::Create(config));
    }
    return InferNode(*registry_, module_, graph(function), node);
  }

  void NameOutputs(const Signature& signature) {
    fusebox::Function& function = *module_.Find(signature.function);
    for (size_t i = 0; i < function.outputs.size(); ++i) {
      std::string& name = function.value(function.outputs[i]).name;
      if (name.empty()) name = signature.output_names[i];
    }
  }

  Module module_;
  std::vector<Content> functions_;
  std::shared_ptr<Registry> registry_;
};

}  // namespace

std::unique_ptr<Builder> NewTfliteBuilder() { return std::make_unique<Tflite>(); }

}  // namespace fusebox::models
