// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "converter/quantize/quantize.h"

namespace fusebox::converter::quantize {
namespace {

// The scale of an activation for the same steps in another type: u8 for i8.
std::shared_ptr<const Quant> As(DType dtype, const std::shared_ptr<const Quant>& eight) {
  if (dtype != DType::kU8) return eight;
  auto out = std::make_shared<Quant>(*eight);
  std::vector<int64_t> zero_points(eight->zero_points.begin(), eight->zero_points.end());
  for (int64_t& zero_point : zero_points) zero_point += 128;
  out->zero_points = zero_points;
  return out;
}

std::unexpected<Error> Refuse(const Function& f, const char* end, ValueId v, DType to, const Node& node,
                              const char* verb) {
  return Unsupported(fmt::format("{} '{}' cannot be {}: {} {} it as f32", end, f.value(v).name, Name(to),
                                 Place(node), verb));
}

Status SetInput(Rewriter& r, ValueId v, DType to) {
  Function& f = r.f();
  const auto found = r.readers(v);
  const std::vector<Node*> readers(found.begin(), found.end());
  for (const Node* node : readers)
    if (!node->is(Op::kQuantize)) return Refuse(f, "input", v, to, *node, "reads");
  if (readers.empty()) return {};
  const std::shared_ptr<const Quant> quant = f.value(readers[0]->results[0]).quant;
  f.value(v).type.dtype = to;
  f.value(v).quant = As(to, quant);
  if (to == DType::kU8) return {};
  for (Node* node : readers)
    if (*f.value(node->results[0]).quant == *quant) r.Replace(*node, v);
  return {};
}

Status SetOutput(Function& f, size_t index, DType to) {
  const ValueId v = f.outputs[index];
  const Node* const node = Rewriter(f).producer(v);
  if (node == nullptr) return {};
  if (!node->is(Op::kDequantize)) return Refuse(f, "output", v, to, *node, "computes");
  const ValueId eight = node->operands[0];
  f.outputs[index] = eight;
  if (to == DType::kU8) {
    const ValueId result = f.AddNode(Op::kQuantize, {eight}, {{to, f.value(eight).type.shape}}).results[0];
    f.value(result).quant = As(to, f.value(eight).quant);
    f.outputs[index] = result;
  }
  f.value(f.outputs[index]).name = f.value(v).name;
  Rewriter r(f);
  if (r.reads(v) == 0) r.Remove(*r.producer(v));
  return {};
}

}  // namespace

Status SetEnds(Function& f, DType inputs, DType outputs) {
  for (const ValueId v : f.inputs) {
    Rewriter r(f);
    if (inputs != DType::kF32 && f.value(v).type.dtype == DType::kF32) FUSEBOX_TRY(SetInput(r, v, inputs));
  }
  for (size_t i = 0; i < f.outputs.size(); ++i) {
    if (outputs != DType::kF32 && f.value(f.outputs[i]).type.dtype == DType::kF32)
      FUSEBOX_TRY(SetOutput(f, i, outputs));
  }
  return {};
}

}  // namespace fusebox::converter::quantize
