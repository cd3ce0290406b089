// SPDX-License-Identifier: Apache-2.0
// A model that is one composite with a body of plain ops. The nn plugin fuses it, and the op is verified
// against the body in f64.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "host/graph/graph.h"
#include "host/session.h"

namespace fusebox::nn_test {

using Dims = std::vector<int64_t>;

class Site {
 public:
  explicit Site(std::string name);

  // An operand of the composite: an input of the model, or a constant.
  ValueId Operand(Dims dims, DType dtype = DType::kF32);
  ValueId Constant(const Tensor& value);
  void QuantizeOperand(size_t operand, float scale, int64_t zero_point);

  // Nodes of the body.
  ValueId Add(Op op, std::vector<ValueId> operands, Dims dims, Attrs attrs = {});
  ValueId Floats(Dims dims, std::vector<float> values);
  ValueId Ints(std::vector<int32_t> values);
  ValueId BodyConstant(const Tensor& value) { return body().AddConst(value); }
  ValueId Scalar(float value) { return Floats({}, {value}); }
  ValueId Reshape(ValueId v, Dims dims);
  ValueId Transpose(ValueId v, const std::vector<int32_t>& permutation);
  // Mean or sum over dimensions that stay, with size 1.
  ValueId Reduce(Op op, ValueId v, const std::vector<int32_t>& axes);
  ValueId Binary(Op op, ValueId a, ValueId b);  // has the shape of the larger one
  ValueId Unary(Op op, ValueId a) { return Add(op, {a}, DimsOf(a)); }
  Dims DimsOf(ValueId v) const { return body().value(v).type.shape.dims(); }
  // Equal parts of v.
  std::vector<ValueId> Split(ValueId v, int32_t axis, int64_t parts);
  ValueId Typed(Op op, std::vector<ValueId> operands, Type type, Attrs attrs = {});
  // Ends the body.
  void Return(ValueId v) { ReturnAll({v}); }
  void ReturnAll(std::vector<ValueId> values);

  Attrs attrs;  // of the composite

  // A new module; only_body: the body alone, as a plain model.
  std::unique_ptr<Module> Build(bool only_body = false) const;

  // "agrees (f64, 6 cases, ...)", or why the composite is not fused or differs.
  std::string Verified(uint64_t seed = 1) const;
  // The op that replaces the composite, with its attributes; or why it is not fused.
  std::string Emitted() const;
  // The names of all ops that replace the composite, or why it is not fused.
  std::string Ops() const;
  Result<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs, int threads = 1) const;

 private:
  const Function& body() const { return *module_.functions[1]; }
  Function& body() { return *module_.functions[1]; }
  Function& main() { return *module_.functions[0]; }

  Module module_;
  std::string name_;
  std::vector<ValueId> operands_;  // of the composite, in main
};

std::shared_ptr<Registry> NnPlugin();
// Seeded values in [-2, 2).
Tensor RandomFloats(const Dims& dims, uint64_t seed);
std::vector<float> FloatsOf(const Tensor& t);

}  // namespace fusebox::nn_test
