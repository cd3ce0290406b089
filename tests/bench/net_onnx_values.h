// SPDX-License-Identifier: Apache-2.0
// The values of a function in an ONNX graph, in either order of dimensions and as 8-bit or real numbers.
#pragma once

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/net_onnx.h"

namespace fusebox::bench {

struct Untranslated : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Channels are the last (TFLite) or the second (ONNX) of four dims.
enum class Order { kLast, kFirst };

class OnnxValues {
 public:
  using Ints = std::vector<int64_t>;

  explicit OnnxValues(const Function&);
  const Function& function() const { return f_; }
  Ints dims(ValueId) const;  // unknown ones are 1
  DType dtype(ValueId v) const { return f_.value(v).type.dtype; }
  bool is_const(ValueId v) const { return f_.value(v).is_const(); }
  const Quant* quant(ValueId) const;  // of 8-bit values with a scale; else null

  // Adds a node; returns the name of its result.
  std::string Add(const std::string& op, const std::vector<std::string>& inputs,
                  const std::string& attributes = {});
  std::vector<std::string> AddMany(const std::string& op, const std::vector<std::string>& inputs,
                                   size_t results, const std::string& attributes = {});
  // Adds a constant; returns its name.
  template <class T>
  std::string Constant(const std::vector<T>& values, const Ints& dims) {
    const std::string name = NewName();
    graph_ += onnx::Initializer(name, dims, values);
    return name;
  }
  std::string List(const Ints& values) { return Constant(values, {static_cast<int64_t>(values.size())}); }
  std::string Scalar(float value) { return Constant(std::vector<float>{value}, {}); }
  // A constant as it is in the function.
  std::string Raw(ValueId);
  std::string Transposed(const std::string& name, const Ints& order);
  std::string Cast(const std::string& name, DType to);

  // The order in which the value is computed. Values without four dims: kLast. An input that nothing has read
  // yet: kFirst if the function has convolutions.
  Order order(ValueId) const;
  // The value as the model stores it: 8-bit values are unsigned. kFirst: values of fewer dims get four.
  std::string Stored(ValueId, Order);
  // 8-bit values as real numbers.
  std::string Real(ValueId, Order);
  void SetStored(ValueId, Order, const std::string& name);
  // Real numbers, which are quantized if the value has 8 bits.
  void SetReal(ValueId, Order, const std::string& name);
  // Stored values as real ones, with the scale of `v`.
  std::string Dequantized(ValueId v, const std::string& stored);
  // The number that means zero among the stored values.
  uint8_t zero(ValueId) const;

  OnnxNet Finish();

 private:
  std::string NewName() { return "t" + std::to_string(names_++); }
  bool IsInput(ValueId v) const { return std::ranges::find(f_.inputs, v) != f_.inputs.end(); }
  std::string Source(ValueId, Order);
  std::string ByteConstant(ValueId);
  std::string Scaled(const char* op, ValueId, const std::string& name);
  OnnxNet::Slot SlotOf(ValueId, const std::string& name) const;

  const Function& f_;
  const Order images_;
  std::string graph_;
  int names_ = 0;
  std::map<ValueId, Order> order_;
  std::map<std::pair<ValueId, Order>, std::string> stored_, real_;
};

// The permutation from the other order: {0, 3, 1, 2} makes channels the second dim.
std::vector<int64_t> DimsOrder(Order to);
// The position of a dim, counted from 0 in TFLite's order.
int64_t AxisIn(Order, int64_t axis);

}  // namespace fusebox::bench
