// SPDX-License-Identifier: Apache-2.0
// A function as recognizers read it: producers, readers and constants by value number. A snapshot.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "host/graph/constants.h"
#include "host/graph/graph.h"

namespace fusebox::converter::recognize {

class View {
 public:
  View(const Module& module, const Function& f) : module_(module), f_(f), uses_(f) {}

  const Module& module() const { return module_; }
  const Function& function() const { return f_; }
  const Function& Callee(const Node& node, const char* attribute) const {
    return *module_.Find(node.attrs.function(attribute)->name);
  }
  const Type& type(ValueId v) const { return f_.value(v).type; }
  const Shape& shape(ValueId v) const { return f_.value(v).type.shape; }

  const Node* Producer(ValueId v) const { return v == kNoValue ? nullptr : uses_.producer(v); }
  // Its producer, if that is `op` without a fused activation.
  const Node* Producer(ValueId v, Op op) const;
  int result_index(ValueId v) const { return uses_.result_index(v); }  // among the producer's results
  std::span<const Uses::Reader> readers(ValueId v) const { return uses_.readers(v); }
  // Returns the other operand of `v`, an `op` of two operands one of which fits, or kNoValue if v is
  // something else.
  template <class Fits>
  ValueId Other(ValueId v, Op op, const Fits& fits) const {
    const Node* node = Producer(v, op);
    if (!node || node->operands.size() != 2) return kNoValue;
    if (fits(node->operands[1])) return node->operands[0];
    return fits(node->operands[0]) ? node->operands[1] : kNoValue;
  }

  std::optional<std::vector<int64_t>> Ints(ValueId v) const { return ConstInts(f_, v); }
  std::optional<double> Scalar(ValueId v) const { return ConstScalar(f_, v); }
  bool IsFull(ValueId v, float value) const;  // a constant f32, all elements are `value`

  std::string Text(ValueId v) const;  // the op that computes it, for messages

 private:
  const Module& module_;
  const Function& f_;
  Uses uses_;
};

std::string FusedActivation(const Node&);  // "NONE", "RELU"

}  // namespace fusebox::converter::recognize
