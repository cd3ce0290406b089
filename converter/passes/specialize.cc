// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "converter/passes/pass.h"

namespace fusebox::converter {
namespace {

// The shape that products of an input with constants have; old graphs do not store it. Unranked: there is
// none.
Shape TakenByReaders(const Function& f, ValueId input) {
  const Uses uses(f);
  for (const auto& [node, index] : uses.readers(input)) {
    if (!node || index != 0 || node->operands.size() < 2 || node->operands[1] == kNoValue) continue;
    const Shape& weights = f.value(node->operands[1]).type.shape;
    if (node->is(Op::kFullyConnected) && weights.rank() == 2) return {Shape::kUnknown, weights[1]};
    if (node->is(Op::kConv2D) && weights.rank() == 4)
      return {Shape::kUnknown, Shape::kUnknown, Shape::kUnknown, weights[3]};
  }
  return Shape();
}

// Importers may have declared other shapes for inner values than those set here. Unknown dimensions stay
// compatible, so only known ones are kept.
Status SetInput(Context& context, const Signature& s, size_t i, std::vector<std::string>& used,
                bool& batched) {
  const Options& options = context.options;
  const std::string& name = s.input_names[i];
  Function& f = *context.module.Find(s.function);
  Type& type = f.value(f.inputs[i]).type;
  if (const auto it = options.shapes.find(name); it != options.shapes.end()) {
    used.push_back(name);
    if (!Compatible({type.dtype, it->second}, type)) {
      return Invalid("--shape " + name + "=" + ToString(it->second) + ": the model declares " +
                     ToString(type.shape));
    }
    type.shape = it->second;
  } else if (!type.shape.ranked()) {
    type.shape = TakenByReaders(f, f.inputs[i]);
    if (type.shape.ranked())
      context.Note("input " + name + " has no shape in the file; what reads it takes " +
                   ToString(type.shape));
  }
  if (!options.batch || type.shape.rank() < 1) return {};
  if (type.shape[0] == Shape::kUnknown) {
    if (type.shape.rank() == 1 && type.dtype != DType::kString) context.lengths.emplace(s.key, name);
    type.shape.dims()[0] = *options.batch;
  }
  batched = batched || type.shape[0] == *options.batch;
  return {};
}

// The only unknown dimension of the only input may be a length instead of a batch.
void NoteLength(Context& context) {
  for (const Signature& s : context.module.signatures) {
    if (s.input_names.size() != 1 || !context.lengths.contains({s.key, s.input_names[0]})) continue;
    const std::string& name = s.input_names[0];
    context.Note("--batch " + std::to_string(*context.options.batch) + " sets the only dimension of input " +
                 name + "[?] of signature " + s.key + "; if that dimension is a length, use --shape " + name +
                 "=N instead");
  }
}

}  // namespace

Status Specialize(Context& context) {
  if (context.options.batch && *context.options.batch < 1)
    return Invalid("--batch " + std::to_string(*context.options.batch) +
                   ": a batch has at least one element");
  std::vector<std::string> used;
  std::vector<std::string> names;
  bool batched = false;
  for (const Signature& s : context.module.signatures) {
    Function& f = *context.module.Find(s.function);
    for (size_t i = 0; i < f.inputs.size(); ++i) {
      names.push_back(s.input_names[i]);
      FUSEBOX_TRY(SetInput(context, s, i, used, batched).At("signature " + s.key));
    }
  }
  NoteLength(context);
  if (context.options.batch && !batched)
    context.Note("--batch " + std::to_string(*context.options.batch) +
                 " has no effect (no input has an unknown first dimension)");
  for (const auto& [name, shape] : context.options.shapes) {
    if (std::find(used.begin(), used.end(), name) != used.end()) continue;
    std::string known;
    for (const auto& n : names) known += (known.empty() ? "" : ", ") + n;
    return Invalid("--shape " + name + ": no such input" +
                   (known.empty() ? "; the model has none" : "; available: " + known));
  }
  return ForEachSignature(context, [&](const Signature& s) {
    return InferTypes(context.registry, context.module, *context.module.Find(s.function));
  });
}

}  // namespace fusebox::converter
