// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>

#include "host/graph/calls.h"
#include "host/graph/graph.h"
#include "host/graph/npy.h"
#include "host/graph/quant.h"

namespace fusebox {
namespace {

// 0: undefined; -1: an input; otherwise index of the node + 1.
constexpr int kNobody = 0;
constexpr int kInput = -1;

std::string InputPlace(size_t i) { return "input " + std::to_string(i); }
std::string OperandPlace(size_t i) { return "operand " + std::to_string(i); }
std::string ResultPlace(size_t i) { return "result " + std::to_string(i); }

Status VerifyConstant(const Value& value) {
  if (value.is_variable) return Invalid("is both a constant and a variable tensor");
  if (value.type.dtype == DType::kString) {
    FUSEBOX_ASSIGN(const auto strings, StringsIn(value.data));
    const auto elements = value.type.shape.element_count();
    if (elements && *elements != static_cast<int64_t>(strings.size()))
      return Invalid("string constant holds " + std::to_string(strings.size()) + " strings");
    return {};
  }
  const auto size = ByteSize(value.type);
  if (!size) return Invalid("constant of type " + ToString(value.type) + ", which has no fixed size");
  if (*size != value.data.size()) {
    return Invalid("constant of type " + ToString(value.type) + " has " + std::to_string(value.data.size()) +
                   " bytes, expected " + std::to_string(*size));
  }
  // Kernels read these bytes as bool, which has no other values.
  const auto is_neither = [](std::byte byte) { return byte > std::byte{1}; };
  if (value.type.dtype == DType::kBool && std::ranges::any_of(value.data.bytes(), is_neither))
    return Invalid("bool constant with bytes that are neither 0 nor 1");
  return {};
}

Status VerifyInitial(const Value& value, bool writable) {
  if (!value.is_variable) return Invalid("has an initial value, but is not a variable tensor");
  if (ByteSize(value.type) != value.initial.size())
    return Invalid("variable tensor of type " + ToString(value.type) + " has an initial value of " +
                   std::to_string(value.initial.size()) + " bytes");
  if (writable)
    return Unsupported("variable tensor with an initial value; in a .tflite file it can only start as zero");
  return {};
}

// Ops of the host: no kernel checks their number of results.
bool HasOneResult(Op op) {
  return op == Op::kVarHandle || op == Op::kReadVariable || op == Op::kHashtable ||
         op == Op::kHashtableFind || op == Op::kHashtableSize;
}

bool IsHandle(const Node& node) { return node.is(Op::kVarHandle) || node.is(Op::kHashtable); }

// Number of results before the states of an op with state; kernels write the states after them. Nothing for
// other ops.
std::optional<size_t> ResultsBeforeStates(const Node& node) {
  if (node.op == Op::kLstm || StateResultCount(node) == 0) return std::nullopt;  // LSTM has scratch results
  const bool two = node.op == Op::kBidirectionalSequenceLstm || node.op == Op::kBidirectionalSequenceRnn;
  return two && !node.attrs.b("merge_outputs", false) ? 2 : 1;
}

class Verifier {
 public:
  explicit Verifier(Strictness strictness) : writable_(strictness == Strictness::kWritable) {}

  Status Run(const Function& function) {
    function_ = &function;
    definer_.assign(static_cast<size_t>(function.value_count()), kNobody);
    if (writable_) taken_by_.assign(definer_.size(), nullptr);
    FUSEBOX_TRY(Inputs());
    for (ValueId id = 0; id < function_->value_count(); ++id) FUSEBOX_TRY(OneValue(id));
    for (size_t i = 0; i < function_->nodes.size(); ++i) {
      if (function_->nodes[i] == nullptr) return Internal("node " + std::to_string(i) + " is null");
      const Node& node = *function_->nodes[i];
      Status status = OneNode(node, static_cast<int>(i));
      if (!status) return std::move(status).At(Describe(*function_, node));
    }
    for (size_t i = 0; i < function_->outputs.size(); ++i) {
      FUSEBOX_TRY(Readable(function_->outputs[i], nullptr).At([&] { return "output " + std::to_string(i); }));
    }
    return {};
  }

 private:
  bool InRange(ValueId id) const { return id >= 0 && id < function_->value_count(); }

  std::string ValueText(ValueId id) const {
    const std::string& name = function_->value(id).name;
    return "%" + std::to_string(id) + (name.empty() ? "" : " (" + name + ")");
  }

  Status Inputs() {
    for (size_t i = 0; i < function_->inputs.size(); ++i) {
      const ValueId id = function_->inputs[i];
      if (!InRange(id)) return Invalid(InputPlace(i) + ": value " + std::to_string(id) + " does not exist");
      int& definer = definer_[static_cast<size_t>(id)];
      if (definer != kNobody) return Invalid(InputPlace(i) + ": " + ValueText(id) + " is an input twice");
      if (function_->value(id).is_const())
        return Invalid(InputPlace(i) + ": " + ValueText(id) + " is a constant");
      definer = kInput;
    }
    return {};
  }

  Status OneValue(ValueId id) {
    const Value& value = function_->value(id);
    for (const int64_t dim : value.type.shape.dims()) {
      if (dim < Shape::kUnknown) return Invalid(ValueText(id) + ": dimension " + std::to_string(dim));
    }
    if (value.is_const()) FUSEBOX_TRY(VerifyConstant(value).At([&] { return ValueText(id); }));
    if (value.initial) FUSEBOX_TRY(VerifyInitial(value, writable_).At([&] { return ValueText(id); }));
    if (value.quant != nullptr) FUSEBOX_TRY(VerifyQuant(value, writable_).At([&] { return ValueText(id); }));
    return {};
  }

  // Requires a definition before this point, and no overwrite in between.
  Status Readable(ValueId id, const Node* reader) const {
    if (!InRange(id)) return Invalid("value " + std::to_string(id) + " does not exist");
    const Value& value = function_->value(id);
    if (definer_[static_cast<size_t>(id)] == kNobody && !value.is_const() && !value.is_variable) {
      return Invalid(ValueText(id) + " is read before anything defines it");
    }
    if (!writable_) return {};
    const Node* taker = taken_by_[static_cast<size_t>(id)];
    if (taker != nullptr && reader != taker) {
      return Invalid(ValueText(id) + " is read after " + Describe(*function_, *taker) +
                     " has overwritten it; read its final state instead");
    }
    if (value.type.dtype == DType::kNone) return Invalid(ValueText(id) + " has no element type");
    return {};
  }

  Status OneNode(const Node& node, int index) {
    const OpInfo& info = Info(node.op);
    if (writable_ && info.code < 0) return Unsupported("is an internal op, which .tflite files cannot hold");
    if ((node.op == Op::kCustom || node.op == Op::kOpaque) && node.name.empty())
      return Invalid("has no name");
    FUSEBOX_TRY(Operands(node, info));
    FUSEBOX_TRY(States(node));
    FUSEBOX_TRY(Results(node, index));
    for (const ValueId id : node.intermediates) {
      if (id != kNoValue && !InRange(id))
        return Invalid("intermediate " + std::to_string(id) + " does not exist");
    }
    return {};
  }

  Status Operands(const Node& node, const OpInfo& info) const {
    const auto count = static_cast<int>(node.operands.size());
    if (count < info.operands.min || (info.operands.max >= 0 && count > info.operands.max)) {
      return Invalid("has " + std::to_string(count) + " operands, expected " +
                     std::to_string(info.operands.min) +
                     (info.operands.max < 0                    ? " or more"
                      : info.operands.max != info.operands.min ? " to " + std::to_string(info.operands.max)
                                                               : ""));
    }
    const bool any_optional = info.operands.max < 0;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (node.operands[i] == kNoValue) {
        const bool optional = any_optional || (i < 64 && (info.operands.optional >> i & 1) != 0);
        if (!optional) return Invalid(OperandPlace(i) + " is absent but not optional");
        continue;
      }
      FUSEBOX_TRY(Readable(node.operands[i], &node).At([&] { return OperandPlace(i); }));
    }
    return {};
  }

  Status States(const Node& node) {
    for (const int index : StateOperands(node.op)) {
      const auto i = static_cast<size_t>(index);
      if (i >= node.operands.size() || node.operands[i] == kNoValue || !writable_) continue;
      const ValueId id = node.operands[i];
      if (function_->value(id).is_const()) {
        return Invalid(OperandPlace(i) + ": " + ValueText(id) + " is a constant, but the op overwrites it");
      }
      for (size_t j = 0; j < node.operands.size(); ++j) {
        if (j != i && node.operands[j] == id) return Invalid(OperandPlace(i) + " is also " + OperandPlace(j));
      }
      taken_by_[static_cast<size_t>(id)] = &node;
    }
    return {};
  }

  Status Results(const Node& node, int index) {
    const size_t states = StateResultCount(node);
    if (node.results.size() < states) return Invalid("has no results for its final states");
    const size_t proper = node.results.size() - states;
    if (HasOneResult(node.op) && proper != 1)
      return Invalid("has " + std::to_string(proper) + " results, expected 1");
    if (const auto wanted = ResultsBeforeStates(node); wanted && proper != *wanted)
      return Invalid("has " + std::to_string(proper) + " results, expected " + std::to_string(*wanted));
    for (size_t i = 0; i < node.results.size(); ++i) {
      const ValueId id = node.results[i];
      if (id == kNoValue) {
        if (i < proper) return Invalid(ResultPlace(i) + " is absent");
        continue;
      }
      if (!InRange(id)) return Invalid(ResultPlace(i) + ": value " + std::to_string(id) + " does not exist");
      int& definer = definer_[static_cast<size_t>(id)];
      if (definer == kInput)
        return Invalid(ResultPlace(i) + ": " + ValueText(id) + " is an input of the function");
      if (definer != kNobody) return Invalid(ResultPlace(i) + ": " + ValueText(id) + " is defined twice");
      if (function_->value(id).is_const())
        return Invalid(ResultPlace(i) + ": " + ValueText(id) + " is a constant");
      if (IsHandle(node) && function_->value(id).type.dtype != DType::kResource)
        return Invalid(ResultPlace(i) + ": " + ValueText(id) + " is " + ToString(function_->value(id).type) +
                       ", expected a resource");
      definer = index + 1;
    }
    return FinalStates(node, proper);
  }

  Status FinalStates(const Node& node, size_t proper) const {
    size_t result = proper;
    for (const int i : StateOperands(node.op)) {
      if (static_cast<size_t>(i) >= node.operands.size()) continue;
      const ValueId operand = node.operands[static_cast<size_t>(i)];
      const ValueId state = node.results[result];
      if (operand == kNoValue && state != kNoValue)
        return Invalid(ResultPlace(result) + " is the state of an absent operand");
      if (operand != kNoValue && state == kNoValue)
        return Invalid(ResultPlace(result) + ", a final state, is absent");
      if (operand != kNoValue && !Compatible(function_->value(state).type, function_->value(operand).type)) {
        return Invalid(ResultPlace(result) + " is " + ToString(function_->value(state).type) +
                       ", but the state it is of is " + ToString(function_->value(operand).type));
      }
      ++result;
    }
    return {};
  }

  const bool writable_;
  const Function* function_ = nullptr;
  std::vector<int> definer_;
  std::vector<const Node*> taken_by_;  // only for writable graphs
};

// Sorts the names and returns a duplicate, or null if there is none.
const std::string_view* FindTwice(std::vector<std::string_view>& names) {
  std::ranges::sort(names);
  const auto found = std::ranges::adjacent_find(names);
  return found == names.end() ? nullptr : &*found;
}

Status VerifySignatures(const Module& module) {
  std::vector<std::string_view> keys;
  for (const Signature& signature : module.signatures) keys.push_back(signature.key);
  if (const auto* key = FindTwice(keys)) return Invalid("signature " + std::string(*key) + " exists twice");
  for (const Signature& signature : module.signatures) {
    const std::string place = "signature " + signature.key;
    const Function* function = module.Find(signature.function);
    if (function == nullptr) return Invalid(place + ": function " + signature.function + " does not exist");
    if (signature.input_names.size() != function->inputs.size()) {
      return Invalid(place + ": names " + std::to_string(signature.input_names.size()) + " inputs of " +
                     std::to_string(function->inputs.size()));
    }
    if (signature.output_names.size() != function->outputs.size()) {
      return Invalid(place + ": names " + std::to_string(signature.output_names.size()) + " outputs of " +
                     std::to_string(function->outputs.size()));
    }
  }
  return {};
}

}  // namespace

Status Verify(const Module& module, Strictness strictness) {
  std::vector<std::string_view> names;
  names.reserve(module.functions.size());
  for (const auto& function : module.functions) {
    if (function == nullptr || function->name.empty()) return Internal("a function without a name");
    names.push_back(function->name);
  }
  if (const auto* name = FindTwice(names)) return Invalid("function " + std::string(*name) + " exists twice");
  if (strictness == Strictness::kWritable && module.functions.empty()) return Invalid("there is no function");
  FUSEBOX_TRY(VerifySignatures(module));
  Verifier verifier(strictness);
  for (const auto& function : module.functions) {
    FUSEBOX_TRY(verifier.Run(*function).At([&] { return "function " + function->name; }));
  }
  return VerifyCalls(module, strictness);
}

}  // namespace fusebox
