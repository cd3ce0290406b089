// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/function_import.h"

#include <algorithm>
#include <queue>

#include "converter/import/saved_model/v1/rebuild.h"
#include "converter/import/tables/lookup.h"
#include "converter/import/tables/translate.h"

namespace fusebox::saved_model {
namespace {

bool IsCall(const std::string& op) { return op == "PartitionedCall" || op == "StatefulPartitionedCall"; }

class Importer {
 public:
  Importer(ImportState& state, Function& function, bool in_function)
      : state_(state), f_(function), in_function_(in_function) {}

  void AddNode(const tf::NodeDef& node) {
    index_[node.name()] = static_cast<int>(nodes_.size());
    nodes_.push_back(&node);
  }
  // Binds a value to one output of a node, or to an argument of a function.
  void Bind(const std::string& node, int output, ValueId value) { values_[{node, output}] = value; }
  void AddRoot(const std::string& edge) { roots_.push_back(edge); }

  // Imports all nodes that the roots need, ordered by data and control edges, else by file order.
  Status Run() {
    FUSEBOX_TRY(Reach());
    std::vector<int> waiting(nodes_.size(), 0);
    std::vector<std::vector<int>> followers(nodes_.size());
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (int n : reached_) {
      std::set<int> before;
      for (const std::string& input : nodes_[static_cast<size_t>(n)]->input()) {
        FUSEBOX_ASSIGN(const Edge edge, ParseEdge(input, in_function_));
        if (const auto it = index_.find(edge.node); it != index_.end()) before.insert(it->second);
      }
      waiting[static_cast<size_t>(n)] = static_cast<int>(before.size());
      for (int b : before) followers[static_cast<size_t>(b)].push_back(n);
      if (before.empty()) ready.push(n);
    }
    size_t done = 0;
    while (!ready.empty()) {
      const int n = ready.top();
      ready.pop();
      ++done;
      const tf::NodeDef& node = *nodes_[static_cast<size_t>(n)];
      FUSEBOX_TRY(ImportNode(node).At("node " + node.name() + " (" + node.op() + ")"));
      for (int next : followers[static_cast<size_t>(n)])
        if (--waiting[static_cast<size_t>(next)] == 0) ready.push(next);
    }
    if (done == reached_.size()) return {};
    return Invalid("its nodes form a cycle");
  }

  Result<ValueId> Resolve(const std::string& text) {
    FUSEBOX_ASSIGN(const Edge edge, ParseEdge(text, in_function_));
    if (const auto it = values_.find({edge.node, edge.index}); it != values_.end() && edge.output.empty())
      return it->second;
    const auto it = outputs_.find(edge.node);
    if (it == outputs_.end()) return Invalid("refers to " + text + ", which does not exist");
    const auto& [ids, first] = it->second;
    int64_t number = edge.index;
    const auto guessed = guessed_.find(edge.node);
    if (!edge.output.empty() && guessed != guessed_.end()) {
      Undefined(*guessed->second, edge.output);
    } else if (!edge.output.empty()) {
      const auto at = first.find(edge.output);
      if (at != first.end()) number += at->second;
      else if (first.size() > 1) return Invalid("refers to " + text + ": no output " + edge.output);
    }
    if (number >= static_cast<int64_t>(ids.size())) {
      if (guessed != guessed_.end())
        return Unsupported("refers to " + text + ": op " + guessed->second->name + ": " +
                           converter::WhyUntranslatable(guessed->second->name));
      return Invalid("refers to " + text + ": no such output");
    }
    return ids[static_cast<size_t>(number)];
  }

 private:
  Status Reach() {
    std::vector<std::string> pending = roots_;
    std::set<int> seen;
    while (!pending.empty()) {
      FUSEBOX_ASSIGN(const Edge edge, ParseEdge(pending.back(), in_function_));
      pending.pop_back();
      if (IsBound(edge)) continue;
      const auto it = index_.find(edge.node);
      if (it == index_.end()) {
        if (!edge.control) return Invalid("refers to " + edge.node + ", which does not exist");
        continue;
      }
      if (!seen.insert(it->second).second) continue;
      for (const std::string& input : nodes_[static_cast<size_t>(it->second)]->input())
        pending.push_back(input);
    }
    for (auto it = index_.begin(); it != index_.end();) {
      it = seen.contains(it->second) ? std::next(it) : index_.erase(it);
    }
    reached_.assign(seen.begin(), seen.end());
    return {};
  }

  // A control edge to a node that a signature's inputs replace has no effect.
  bool IsBound(const Edge& edge) const {
    if (!edge.control) return values_.contains({edge.node, edge.index});
    const auto it = values_.lower_bound({edge.node, 0});
    return it != values_.end() && it->first.first == edge.node;
  }

  Status ImportNode(const tf::NodeDef& node) {
    if (node.op() == "NoOp") return {};
    if (node.op() == "Const") return ImportConst(node);
    FUSEBOX_ASSIGN(NodeOutputs outputs, OutputsOf(state_.model, node));
    std::vector<ValueId> operands;
    for (const std::string& input : node.input()) {
      if (input.starts_with('^')) continue;
      FUSEBOX_ASSIGN(const ValueId v, Resolve(input));
      operands.push_back(v);
    }
    if (node.op() == "Identity" && operands.size() == 1 &&
        f_.value(operands[0]).type.dtype == DType::kResource) {
      outputs_[node.name()] = {std::move(operands), std::move(outputs.first)};  // forward the handle itself
      return {};
    }
    if ((node.op() == "If" || node.op() == "StatelessIf") && !operands.empty()) {
      FUSEBOX_ASSIGN(operands[0], ConditionOf(f_, operands[0], node.name()));
    }
    if (node.op() == "Case" || node.op() == "StatelessCase")
      return ImportCase(node, operands, std::move(outputs));
    if (node.op() == "For") return ImportFor(node, std::move(operands), std::move(outputs));
    std::vector<Type> types;
    for (DType dtype : outputs.dtypes) types.push_back({dtype, Shape()});
    DeclaredShapes(node, types);
    Node& made = f_.AddNode(Op::kOpaque, std::move(operands), std::move(types));
    made.name = node.op();
    made.location.name = node.name();
    for (size_t i = 0; i < made.results.size(); ++i)
      f_.value(made.results[i]).name = node.name() + (i ? ":" + std::to_string(i) : "");
    outputs_[node.name()] = {made.results, std::move(outputs.first)};
    if (outputs.guessed) guessed_.emplace(node.name(), &made);
    return Recognize(node, made);
  }

  // The position of a named output is unknown if its op has no definition. The op is rejected if it would be
  // converted.
  void Undefined(Node& node, const std::string& output) {
    node.attrs.Set(converter::kUndefined,
                   "function " + f_.name + " reads its output \"" + output +
                       "\", but the file does not define this op (the position of the output is unknown); " +
                       "convert a SavedModel that keeps its op definitions (stripped_op_list), as "
                       "tf.saved_model.save writes it");
  }

  // Converts ops with a direct form: calls, loops, branches, handles. All others keep their attributes and
  // stay opaque.
  Status Recognize(const tf::NodeDef& node, Node& made) {
    const bool direct_call = state_.model.FindFunction(node.op()) != nullptr;
    if (IsCall(node.op()) || direct_call)
      return ImportCall(direct_call ? node.op() : FunctionAttr(node, "f"), made);
    if (node.op() == "While" || node.op() == "StatelessWhile") {
      made.op = Op::kWhile;
      made.name.clear();
      FUSEBOX_TRY(Refer(node, "cond", "cond_subgraph_index", made));
      return Refer(node, "body", "body_subgraph_index", made);
    }
    if (node.op() == "If" || node.op() == "StatelessIf") {
      made.op = Op::kIf;
      made.name.clear();
      FUSEBOX_TRY(Refer(node, "then_branch", "then_subgraph_index", made));
      return Refer(node, "else_branch", "else_subgraph_index", made);
    }
    if (converter::IsLookupTable(node.op())) {
      f_.value(made.results[0]).type = {DType::kResource, Shape::Scalar()};
      if (!in_function_) state_.FillTable(node.name(), made);
      return {};
    }
    if (node.op() == "VarHandleOp") {
      f_.value(made.results[0]).type = {DType::kResource, Shape::Scalar()};
      return ToHandle(node, made);
    }
    if (node.op() == "VariableV2" || node.op() == "Variable") {
      FUSEBOX_TRY(ToHandle(node, made));
      return ReadHere(node, made.results[0]);
    }
    for (const auto& [name, value] : node.attr()) {
      if (IsNoise(name)) continue;
      FUSEBOX_ASSIGN(AttrValue converted, ToAttr(value).At("attribute " + name));
      if (const auto* ref = std::get_if<FunctionRef>(&converted)) {
        if (!state_.model.FindFunction(ref->name))
          return Invalid("attribute " + name + ": function \"" + ref->name + "\" is not in the library");
        state_.wanted.push_back(ref->name);
      }
      if (!std::holds_alternative<std::monostate>(converted)) made.attrs.Set(name, std::move(converted));
    }
    return {};
  }

  Status Want(const std::string& function) {
    if (!state_.model.FindFunction(function))
      return Invalid("function \"" + function + "\" is not in the library");
    state_.wanted.push_back(function);
    return {};
  }

  Status ImportFor(const tf::NodeDef& node, std::vector<ValueId> operands, NodeOutputs outputs) {
    const std::string body = FunctionAttr(node, "body");
    FUSEBOX_TRY(Want(body));
    const size_t first = f_.nodes.size();
    FUSEBOX_ASSIGN(std::vector<ValueId> results, AddForLoop(state_.module, f_, body, operands));
    for (size_t i = first; i < f_.nodes.size(); ++i) f_.nodes[i]->location.name = node.name();
    outputs_[node.name()] = {std::move(results), std::move(outputs.first)};
    return {};
  }

  Status ImportCase(const tf::NodeDef& node, const std::vector<ValueId>& operands, NodeOutputs outputs) {
    const std::vector<std::string> branches = BranchesOf(node);
    for (const std::string& branch : branches) FUSEBOX_TRY(Want(branch));
    std::vector<Type> types;
    for (const DType dtype : outputs.dtypes) types.push_back({dtype, Shape()});
    const size_t first = f_.nodes.size();
    FUSEBOX_ASSIGN(std::vector<ValueId> results, AddCase(state_.module, f_, branches, operands, types));
    for (size_t i = first; i < f_.nodes.size(); ++i) f_.nodes[i]->location.name = node.name();
    outputs_[node.name()] = {std::move(results), std::move(outputs.first)};
    return {};
  }

  Status ToHandle(const tf::NodeDef& node, Node& made) {
    FUSEBOX_ASSIGN(std::string variable, state_.VariableOf(node.name()));
    made.op = Op::kVarHandle;
    made.name.clear();
    made.attrs.Set("shared_name", std::move(variable));
    return {};
  }

  // A TensorFlow 1 variable node returns its value. Ops that write to it find no handle and stay
  // untranslated.
  Status ReadHere(const tf::NodeDef& node, ValueId handle) {
    const Type type = f_.value(handle).type;
    f_.value(handle).type = {DType::kResource, Shape::Scalar()};
    Node& read = f_.AddNode(Op::kReadVariable, {handle}, {type});
    read.location.name = node.name();
    f_.value(read.results[0]).name = node.name();
    outputs_[node.name()].first = read.results;
    return {};
  }

  static std::string FunctionAttr(const tf::NodeDef& node, const std::string& attr) {
    const auto it = node.attr().find(attr);
    return it == node.attr().end() ? "" : it->second.func().name();
  }

  Status Refer(const tf::NodeDef& node, const std::string& from, const std::string& to, Node& made) {
    const std::string name = FunctionAttr(node, from);
    made.attrs.Set(to, FunctionRef{name});
    return Want(name);
  }

  Status ImportCall(const std::string& callee, Node& made) {
    const tf::FunctionDef* function = state_.model.FindFunction(callee);
    if (!function) return Invalid("function \"" + callee + "\" is not in the library");
    state_.wanted.push_back(callee);
    FUSEBOX_ASSIGN(Annotation annotation, AnnotationOf(*function));
    made.name = annotation.name;
    if (annotation.name.empty()) {
      made.op = Op::kCall;
      made.attrs.Set("subgraph", FunctionRef{callee});
      return {};
    }
    made.op = Op::kStablehloComposite;
    made.version = 1;
    made.attrs = std::move(annotation.attrs);
    made.body = callee;
    return {};
  }

  Status ImportConst(const tf::NodeDef& node) {
    const auto it = node.attr().find("value");
    if (it == node.attr().end()) return Invalid("it has no value");
    FUSEBOX_ASSIGN(Tensor tensor, ToTensor(it->second.tensor()));
    outputs_[node.name()] = {{f_.AddConst(tensor, node.name())}, {{"output", 0}}};
    return {};
  }

  ImportState& state_;
  Function& f_;
  bool in_function_;
  std::vector<const tf::NodeDef*> nodes_;
  std::unordered_map<std::string, int> index_;
  std::vector<std::string> roots_;
  std::vector<int> reached_;
  std::map<std::pair<std::string, int>, ValueId> values_;  // by node (or argument) and output
  std::unordered_map<std::string, std::pair<std::vector<ValueId>, std::map<std::string, int, std::less<>>>>
      outputs_;
  std::unordered_map<std::string, Node*> guessed_;  // of ops that neither the file nor a table defines
};

Status ImportBody(ImportState& state, const tf::FunctionDef& written, Function& f) {
  FUSEBOX_ASSIGN(const tf::FunctionDef* const rebuilt, v1::RebuildFunction(state.model, written));
  const tf::FunctionDef& def = *rebuilt;
  Importer importer(state, f, true);
  const auto& signature = def.signature();
  for (int i = 0; i < signature.input_arg_size(); ++i) {
    const auto& arg = signature.input_arg(i);
    importer.Bind(arg.name(), 0, f.AddInput({ToDType(arg.type()), ArgShape(def, i)}, arg.name()));
    f.input_names.push_back(arg.name());
  }
  for (const auto& node : def.node_def()) importer.AddNode(node);
  for (const auto& [name, edge] : def.ret()) importer.AddRoot(edge);
  for (const auto& [name, node] : def.control_ret()) importer.AddRoot("^" + node);
  FUSEBOX_TRY(importer.Run());
  for (const auto& arg : signature.output_arg()) {
    const auto it = def.ret().find(arg.name());
    if (it == def.ret().end()) return Invalid("output " + arg.name() + " has no value");
    FUSEBOX_ASSIGN(const ValueId v, importer.Resolve(it->second));
    f.outputs.push_back(v);
    f.output_names.push_back(arg.name());
  }
  for (const auto& [name, value] : def.attr()) {
    if (IsNoise(name)) continue;
    if (auto converted = ToAttr(value); converted && !std::holds_alternative<std::monostate>(*converted))
      f.attrs.Set(name, *converted);
  }
  return {};
}

// Arguments of a signature in `order`, or sorted if that is empty.
std::vector<std::pair<std::string, tf::TensorInfo>> Ordered(
    const google::protobuf::Map<std::string, tf::TensorInfo>& arguments, std::vector<std::string> order) {
  if (order.empty()) {
    for (const auto& [name, info] : arguments) order.push_back(name);
    std::ranges::sort(order);
  }
  std::vector<std::pair<std::string, tf::TensorInfo>> out;
  for (const std::string& name : order) out.emplace_back(name, arguments.at(name));
  return out;
}

}  // namespace

Status ImportFunction(ImportState& state, const tf::FunctionDef& def) {
  const std::string& name = def.signature().name();
  if (state.module.Find(name)) return {};
  Function& f = state.module.Add(name);
  FUSEBOX_TRY(ImportBody(state, def, f).At("function " + name));
  return {};
}

Status ImportSignature(ImportState& state, const std::string& key, const tf::SignatureDef& def) {
  std::string free = key;  // calls refer to functions by their library names
  while (state.model.FindFunction(free)) free += "_signature";
  Function& f = state.module.Add(free);
  Importer importer(state, f, false);
  Signature signature{key, f.name, {}, {}};
  const auto inputs = Ordered(def.inputs(), state.model.inputs);
  const auto outputs = Ordered(def.outputs(), state.model.outputs);
  std::vector<v1::Feed> feeds;
  for (const auto& [name, info] : inputs) {
    if (info.name().empty())
      return Unsupported("input " + name + " is a sparse or ragged tensor; TFLite has dense ones only");
    if (info.dtype() == tf::DT_RESOURCE || info.dtype() == tf::DT_VARIANT)
      return Unsupported("input " + name + " is a " + std::string(Name(ToDType(info.dtype()))) +
                         ", not a tensor");
    FUSEBOX_ASSIGN(const Edge edge, ParseEdge(info.name(), false));
    FUSEBOX_TRY(CheckFed(state.model, info, edge).At("input " + name));
    feeds.push_back({edge, ToDType(info.dtype())});
    importer.Bind(edge.node, edge.index,
                  f.AddInput({ToDType(info.dtype()), ToShape(info.tensor_shape())}, name));
    signature.input_names.push_back(name);
  }
  std::vector<std::string> results;
  for (const auto& [name, info] : outputs) {
    if (info.name().empty())
      return Unsupported("output " + name + " is a sparse or ragged tensor; TFLite has dense ones only");
    results.push_back(info.name());
    signature.output_names.push_back(name);
  }
  if (outputs.empty()) return Unsupported("it has no outputs");
  FUSEBOX_ASSIGN(const v1::Rebuilt rebuilt, v1::RebuildMain(state.model, feeds, results));
  for (const tf::NodeDef* node : rebuilt.nodes) importer.AddNode(*node);
  for (const std::string& result : rebuilt.results) importer.AddRoot(result);
  FUSEBOX_TRY(importer.Run());
  for (size_t i = 0; i < results.size(); ++i) {
    FUSEBOX_ASSIGN(const ValueId v, importer.Resolve(rebuilt.results[i]));
    if (f.value(v).type.dtype == DType::kResource)
      return Unsupported("output " + signature.output_names[i] + " is a resource, not a tensor");
    f.outputs.push_back(v);
  }
  f.input_names = signature.input_names;
  f.output_names = signature.output_names;
  state.module.signatures.push_back(std::move(signature));
  return {};
}

}  // namespace fusebox::saved_model
