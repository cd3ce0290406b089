// SPDX-License-Identifier: Apache-2.0
// Ops of the host: calls, branches, loops, variables.
#include <fmt/format.h>

#include <cstring>

#include "host/run/frame.h"

namespace fusebox::run {
namespace {

Result<bool> Condition(const fbx_tensor& tensor) {
  if (tensor.dtype != FBX_BOOL || tensor.bytes != 1 || tensor.data == nullptr) {
    return Invalid(fmt::format("the condition is {}, expected one bool", ToString(TypeOf(tensor))));
  }
  return *static_cast<const uint8_t*>(tensor.data) != 0;
}

fbx_tensor EmptyTensor() {
  fbx_tensor tensor{};
  tensor.head = FBX_HEAD(fbx_tensor);
  return tensor;
}

void StoreHandle(int64_t handle, fbx_tensor& result) { std::memcpy(result.data, &handle, sizeof(handle)); }

}  // namespace

void Frame::MakeHostNode(size_t index, HostNode& host) {
  const Node& node = *function_.nodes[index];
  const plan::Unit& unit = code_.units[index];
  if (unit.part < 0) {
    for (const plan::Code* callee : unit.callees) host.callees.push_back(&runner_.FrameOf(*callee));
  }
  host.outs.resize(node.results.size());
  if (unit.runs_body && !code_.states[index].empty()) {
    host.shadows.assign(node.results.size(), EmptyTensor());
    host.shadow_memory = std::vector<Growable>(node.results.size());
  }
  if (node.is(Op::kVarHandle)) {
    host.handle =
        runner_.resources_.Handle(node.attrs.str("container", ""), node.attrs.str("shared_name", ""));
  }
  if (node.is(Op::kHashtable)) {
    const auto dtype = [&](const char* key, DType otherwise) {
      const AttrValue* value = node.attrs.Find(key);
      if (value == nullptr) return otherwise;
      if (const auto* parsed = std::get_if<DType>(value)) return *parsed;
      if (const auto* name = std::get_if<std::string>(value)) return ParseDType(*name).value_or(otherwise);
      return otherwise;
    };
    host.handle = runner_.resources_.TableHandle(
        node.attrs.i64("table_id", 0), dtype("key_dtype", DType::kI64), dtype("value_dtype", DType::kString));
  }
  if (!node.is(Op::kWhile) || unit.runs_body) return;
  const size_t n = node.operands.size();
  host.loop = std::make_unique<Loop>();
  for (int set = 0; set < 2; ++set) {
    host.loop->memory[set] = std::vector<Growable>(n);
    host.loop->tensors[set].assign(n, EmptyTensor());
  }
  host.loop->condition = EmptyTensor();
  host.loop->current.resize(n);
  host.loop->outs.resize(n);
  const Function& body = *unit.callees[1]->function;
  for (size_t i = 0; i < n; ++i) host.loop->passed_through.push_back(body.outputs[i] == body.inputs[i]);
}

// The frame of a partition's body is created on its first fallback.
Frame& Frame::BodyOf(size_t node) {
  HostNode& host = host_nodes_[node];
  if (host.callees.empty()) host.callees.push_back(&runner_.FrameOf(*code_.units[node].callees[0]));
  return *host.callees[0];
}

Status Frame::RunHost(const plan::Step& step) {
  const HostNode& host = host_nodes_[step.node];
  const Node& node = *function_.nodes[step.node];
  if (code_.units[step.node].runs_body) return RunCall(step.node, BodyOf(step.node), 0);
  switch (node.op) {
    case Op::kCall: return RunCall(step.node, *host.callees[0], 0);
    case Op::kIf: return RunIf(step.node);
    case Op::kWhile: return RunWhile(step.node);
    case Op::kCallOnce: return RunCallOnce(step.node);
    case Op::kVarHandle:
    case Op::kReadVariable:
    case Op::kAssignVariable: return RunVariable(step);
    default: return RunTable(step.node);
  }
}

Status Frame::RunCall(size_t index, Frame& callee, size_t first_operand) {
  HostNode& host = host_nodes_[index];
  const Node& node = *function_.nodes[index];
  for (size_t i = 0; i < host.outs.size(); ++i) {
    const auto id = static_cast<size_t>(node.results[i]);
    // A final state uses memory that the body may still read, so it is written elsewhere first.
    if (!host.shadows.empty()) {
      host.outs[i] = {&host.shadows[i], &host.shadow_memory[i]};
    } else {
      host.outs[i] = {&view_.tensor(node.results[i]), dynamic_[id] ? growables_[id].get() : nullptr};
    }
  }
  const fbx_node& abi = view_.node(index).abi;
  FUSEBOX_TRY(callee.Call({abi.operands + first_operand, abi.operand_count - first_operand}, host.outs));
  for (size_t i = 0; i < host.shadows.size(); ++i) FUSEBOX_TRY(Store(node.results[i], host.shadows[i]));
  return {};
}

Status Frame::RunIf(size_t index) {
  FUSEBOX_ASSIGN(const bool condition, Condition(*view_.node(index).abi.operands[0]));
  return RunCall(index, *host_nodes_[index].callees[condition ? 0 : 1], 1);
}

Status Frame::RunWhile(size_t index) {
  HostNode& host = host_nodes_[index];
  Loop& loop = *host.loop;
  const fbx_node& abi = view_.node(index).abi;
  const size_t n = loop.current.size();
  for (size_t i = 0; i < n; ++i) loop.current[i] = abi.operands[i];
  const Out condition_out{&loop.condition, &loop.condition_memory};
  for (int next = 0;; next ^= 1) {
    if (runner_.cancelled()) return Runner::Cancelled();  // functions may have no steps
    FUSEBOX_TRY(host.callees[0]->Call(loop.current, {&condition_out, 1}));
    FUSEBOX_ASSIGN(const bool again, Condition(loop.condition));
    if (!again) break;
    for (size_t i = 0; i < n; ++i) {
      loop.outs[i] =
          loop.passed_through[i] ? Out{nullptr, nullptr} : Out{&loop.tensors[next][i], &loop.memory[next][i]};
    }
    FUSEBOX_TRY(host.callees[1]->Call(loop.current, loop.outs));
    for (size_t i = 0; i < n; ++i) {
      if (!loop.passed_through[i]) loop.current[i] = &loop.tensors[next][i];
    }
  }
  const Node& node = *function_.nodes[index];
  for (size_t i = 0; i < n; ++i) FUSEBOX_TRY(Store(node.results[i], *loop.current[i]));
  return {};
}

Status Frame::RunCallOnce(size_t index) {
  const plan::Code* callee = code_.units[index].callees[0];
  if (runner_.called_once_.contains(callee)) return {};
  FUSEBOX_TRY(host_nodes_[index].callees[0]->Call({}, {}));
  runner_.called_once_.insert(callee);
  return {};
}

Result<int64_t> Frame::HandleOf(const fbx_tensor& tensor) const {
  if (tensor.dtype != FBX_RESOURCE || tensor.bytes < sizeof(int64_t) || tensor.data == nullptr) {
    return Invalid(fmt::format("operand 0 is {}, expected a resource", ToString(TypeOf(tensor))));
  }
  int64_t handle = 0;
  std::memcpy(&handle, tensor.data, sizeof(handle));
  return handle;
}

Status Frame::RunVariable(const plan::Step& step) {
  const Node& node = *function_.nodes[step.node];
  const fbx_node& abi = view_.node(step.node).abi;
  if (node.is(Op::kVarHandle)) {
    StoreHandle(host_nodes_[step.node].handle, view_.tensor(node.results[0]));
    return {};
  }
  FUSEBOX_ASSIGN(const int64_t handle, HandleOf(*abi.operands[0]));
  if (node.is(Op::kAssignVariable)) return runner_.resources_.Assign(handle, *abi.operands[1]);
  FUSEBOX_ASSIGN(const fbx_tensor* value, runner_.resources_.Read(handle));
  return step.in_variable.empty() ? Store(node.results[0], *value) : ShowVariable(step, *value);
}

// No copy: results point to the memory of the variable.
Status Frame::ShowVariable(const plan::Step& step, const fbx_tensor& value) {
  const fbx_tensor& result = view_.tensor(step.in_variable[0]);
  FUSEBOX_TRY(CheckStored(result, value));
  for (const ValueId id : step.in_variable) view_.tensor(id).data = value.data;
  return {};
}

Status Frame::RunTable(size_t index) {
  const Node& node = *function_.nodes[index];
  const fbx_node& abi = view_.node(index).abi;
  Resources& resources = runner_.resources_;
  if (node.is(Op::kHashtable)) {
    StoreHandle(host_nodes_[index].handle, view_.tensor(node.results[0]));
    return {};
  }
  FUSEBOX_ASSIGN(const int64_t handle, HandleOf(*abi.operands[0]));
  if (node.is(Op::kHashtableImport)) return resources.Import(handle, *abi.operands[1], *abi.operands[2]);
  fbx_tensor value = view_.tensor(node.results[0]);
  if (node.is(Op::kHashtableSize)) {
    FUSEBOX_ASSIGN(int64_t size, resources.TableSize(handle));
    value.dtype = FBX_I64;
    value.data = &size;
    value.bytes = sizeof(size);
    static constexpr int64_t kOne = 1;
    value.dims = &kOne;
    value.rank = 1;
    return Store(node.results[0], value);
  }
  std::string packed;
  FUSEBOX_TRY(resources.Lookup(handle, *abi.operands[1], *abi.operands[2], packed));
  BindTensor(value, *abi.operands[1]);  // the shape of the keys
  value.dtype = abi.operands[2]->dtype;
  value.data = packed.data();
  value.bytes = packed.size();
  return Store(node.results[0], value);
}

}  // namespace fusebox::run
