// SPDX-License-Identifier: Apache-2.0
// Declared shapes of computed tensors. TFLite treats them as hints and infers shapes anew; files of older
// tools contain the sizes of one run even if an input size is unknown. Here, inferred shapes take precedence
// as well.
#include "converter/import/tflite/import.h"
#include "host/eval/eval.h"

namespace fusebox::tflite_import {
namespace {

bool IsOpen(const Shape& shape) { return shape.ranked() && !shape.is_static(); }

// The part of an unconfirmed declaration that is kept: everything if the file marks unknown sizes, else only
// the rank. Older files write rank 0 for an unknown rank.
Shape Believed(const Shape& declared) {
  if (!declared.ranked() || IsOpen(declared)) return declared;
  if (declared.rank() == 0) return Shape();
  return Shape(std::vector<int64_t>(static_cast<size_t>(declared.rank()), Shape::kUnknown));
}

struct Hint {
  Function* function;
  ValueId value;
  Shape shape;
};

// Results of ops with shape inference, and inputs of functions called by control-flow ops.
std::vector<Hint> Hints(Module& module, Registry& registry) {
  std::vector<Hint> hints;
  const auto add = [&](Function& f, ValueId v) {
    if (v != kNoValue && !f.value(v).is_const()) hints.push_back({&f, v, f.value(v).type.shape});
  };
  for (const auto& f : module.functions) {
    for (const auto& node : f->nodes) {
      const bool control = Info(node->op).effects == Effects::kControl;
      if (node->is(Op::kStablehloRngBitGenerator)) continue;  // the shape of its bits stands nowhere else
      if (!control && (Has(node->op, kHost) || !ChooseKernel(registry, *f, *node))) continue;
      for (size_t i = 0; i < ProperResults(*node); ++i) add(*f, node->results[i]);
      if (!control) continue;
      for (const std::string& callee : References(*node)) {
        Function& called = *module.Find(callee);
        for (const ValueId v : called.inputs) add(called, v);
      }
    }
  }
  return hints;
}

}  // namespace

void CheckHints(Module& module, Registry& registry) {
  const std::vector<Hint> hints = Hints(module, registry);
  for (const Hint& hint : hints) hint.function->value(hint.value).type.shape = Shape();
  Status status;
  for (const Signature& s : module.signatures)
    if (status) status = InferTypes(registry, module, *module.Find(s.function));
  for (const Hint& hint : hints) {
    Type& type = hint.function->value(hint.value).type;
    const Type declared{type.dtype, status ? Believed(hint.shape) : hint.shape};
    if (!status || !type.shape.ranked()) type = declared;
    else if (const auto refined = IsOpen(hint.shape) ? Refine(type, declared) : std::nullopt) type = *refined;
  }
}

}  // namespace fusebox::tflite_import
