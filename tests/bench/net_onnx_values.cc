// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/net_onnx_values.h"

#include <algorithm>

namespace fusebox::bench {
namespace {

onnx::Type TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32: return onnx::kFloat;
    case DType::kF16: return onnx::kFloat16;
    case DType::kU8: return onnx::kUint8;
    case DType::kI8: return onnx::kInt8;
    case DType::kI32: return onnx::kInt32;
    case DType::kI64: return onnx::kInt64;
    case DType::kBool: return onnx::kBool;
    default: throw Untranslated("type " + std::string(Name(dtype)));
  }
}

}  // namespace

std::vector<int64_t> DimsOrder(Order to) {
  return to == Order::kFirst ? std::vector<int64_t>{0, 3, 1, 2} : std::vector<int64_t>{0, 2, 3, 1};
}

int64_t AxisIn(Order order, int64_t axis) {
  return order == Order::kLast ? axis : DimsOrder(Order::kLast)[static_cast<size_t>(axis)];
}

OnnxValues::OnnxValues(const Function& f)
    : f_(f),
      images_(std::ranges::any_of(f.nodes, [](const auto& n) { return n->is(Op::kConv2D); }) ? Order::kFirst
                                                                                             : Order::kLast) {
}

OnnxValues::Ints OnnxValues::dims(ValueId v) const {
  const Shape& shape = f_.value(v).type.shape;
  if (!shape.ranked()) throw Untranslated("a value of unknown rank");
  Ints dims(shape.dims().begin(), shape.dims().end());
  for (int64_t& d : dims) d = d < 0 ? 1 : d;
  return dims;
}

const Quant* OnnxValues::quant(ValueId v) const {
  const Quant* const quant = f_.value(v).quant.get();
  if ((dtype(v) != DType::kI8 && dtype(v) != DType::kU8) || !quant || quant->scales.size() == 0)
    return nullptr;
  return quant;
}

std::vector<std::string> OnnxValues::AddMany(const std::string& op, const std::vector<std::string>& inputs,
                                             size_t results, const std::string& attributes) {
  std::vector<std::string> names;
  while (names.size() < results) names.push_back(NewName());
  graph_ += onnx::Node(op, inputs, names, attributes);
  return names;
}

std::string OnnxValues::Add(const std::string& op, const std::vector<std::string>& inputs,
                            const std::string& attributes) {
  return AddMany(op, inputs, 1, attributes)[0];
}

std::string OnnxValues::Raw(ValueId v) {
  const Value& value = f_.value(v);
  const std::string name = NewName();
  graph_ += onnx::Initializer(name, dims(v), TypeOf(dtype(v)), value.data.data(), value.data.size());
  return name;
}

std::string OnnxValues::ByteConstant(ValueId v) {
  if (dtype(v) == DType::kU8) return Raw(v);
  const auto bytes = f_.value(v).data.As<uint8_t>();
  std::vector<uint8_t> shifted(bytes.begin(), bytes.end());
  for (uint8_t& byte : shifted) byte ^= 0x80;
  return Constant(shifted, dims(v));
}

std::string OnnxValues::Transposed(const std::string& name, const Ints& order) {
  return Add("Transpose", {name}, onnx::IntsAttribute("perm", order));
}

std::string OnnxValues::Cast(const std::string& name, DType to) {
  return Add("Cast", {name}, onnx::IntAttribute("to", TypeOf(to)));
}

Order OnnxValues::order(ValueId v) const {
  if (const auto found = order_.find(v); found != order_.end()) return found->second;
  return IsInput(v) && dims(v).size() == 4 ? images_ : Order::kLast;
}

// The value in the only order in which it exists so far. An input exists in the first order that is needed.
std::string OnnxValues::Source(ValueId v, Order wanted) {
  if (const auto found = stored_.find({v, order(v)}); found != stored_.end()) return found->second;
  if (is_const(v)) {
    SetStored(v, Order::kLast, quant(v) ? ByteConstant(v) : Raw(v));
  } else if (IsInput(v)) {
    const std::string name = NewName();
    SetStored(v, dims(v).size() == 4 ? wanted : Order::kLast, name);
    const OnnxNet::Slot slot = SlotOf(v, name);
    graph_ += onnx::Input(name, slot.element, slot.dims);
  } else {
    throw Untranslated("variables");
  }
  return stored_.at({v, order(v)});
}

std::string OnnxValues::Stored(ValueId v, Order wanted) {
  const std::string source = Source(v, wanted);
  const auto [at, is_new] = stored_.try_emplace({v, wanted});
  if (!is_new) return at->second;
  std::string name = source;
  if (const Ints size = dims(v); size.size() < 4 && wanted == Order::kFirst) {
    Ints four(4 - size.size(), 1);
    four.insert(four.end(), size.begin(), size.end());
    name = Add("Reshape", {name, List(four)});
  }
  at->second = Transposed(name, DimsOrder(wanted));
  return at->second;
}

uint8_t OnnxValues::zero(ValueId v) const {
  const Quant& q = *quant(v);
  const int64_t zero = q.zero_points.size() == 0 ? 0 : q.zero_points[0];
  return static_cast<uint8_t>(dtype(v) == DType::kI8 ? zero + 128 : zero);
}

std::string OnnxValues::Scaled(const char* op, ValueId v, const std::string& name) {
  if (!quant(v)) return name;
  if (quant(v)->scales.size() > 1) throw Untranslated("activations with several scales");
  return Add(op, {name, Scalar(quant(v)->scales[0]), Constant(std::vector<uint8_t>{zero(v)}, {})});
}

std::string OnnxValues::Dequantized(ValueId v, const std::string& stored) {
  return Scaled("DequantizeLinear", v, stored);
}

std::string OnnxValues::Real(ValueId v, Order wanted) {
  const auto [at, is_new] = real_.try_emplace({v, wanted});
  if (is_new) at->second = Dequantized(v, Stored(v, wanted));
  return at->second;
}

void OnnxValues::SetStored(ValueId v, Order order, const std::string& name) {
  order_[v] = order;
  stored_[{v, order}] = name;
}

void OnnxValues::SetReal(ValueId v, Order order, const std::string& name) {
  SetStored(v, order, Scaled("QuantizeLinear", v, name));
}

OnnxNet::Slot OnnxValues::SlotOf(ValueId v, const std::string& name) const {
  OnnxNet::Slot slot;
  slot.name = name;
  slot.type = {dtype(v), Shape(dims(v))};
  slot.channels_first = order(v) == Order::kFirst;
  slot.shifted = quant(v) && dtype(v) == DType::kI8;
  slot.element = slot.shifted ? onnx::kUint8 : TypeOf(dtype(v));
  slot.dims = dims(v);
  if (slot.channels_first) slot.dims = {slot.dims[0], slot.dims[3], slot.dims[1], slot.dims[2]};
  return slot;
}

OnnxNet OnnxValues::Finish() {
  OnnxNet net;
  for (const ValueId v : f_.inputs) net.inputs.push_back(SlotOf(v, Source(v, Order::kLast)));
  for (const ValueId v : f_.outputs) {
    const std::string name = Add("Identity", {Source(v, Order::kLast)});
    net.outputs.push_back(SlotOf(v, name));
    graph_ += onnx::Output(name, net.outputs.back().element, net.outputs.back().dims);
  }
  net.model = onnx::Model(graph_);
  return net;
}

}  // namespace fusebox::bench
