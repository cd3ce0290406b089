// SPDX-License-Identifier: Apache-2.0
#include "converter/passes/open_inputs.h"

#include <algorithm>

namespace fusebox::converter {
namespace {

std::string ShapeOption(const std::string& name, const Shape& shape) {
  std::string text = "--shape " + name + "=";
  if (!shape.ranked()) return text + "...";
  for (int i = 0; i < shape.rank(); ++i)
    text += (i > 0 ? "," : "") + (shape[i] < 0 ? "N" : std::to_string(shape[i]));
  return text;
}

}  // namespace

std::string HowToFix(const Context& context, const Signature& s) {
  const Function& f = *context.module.Find(s.function);
  std::string shapes;
  int count = 0;
  bool batch = false;
  for (size_t i = 0; i < std::min<size_t>(f.inputs.size(), s.input_names.size()); ++i) {
    Shape shape = f.value(f.inputs[i]).type.shape;
    if (context.lengths.contains({s.key, s.input_names[i]})) shape = Shape({Shape::kUnknown});
    if (shape.is_static()) continue;
    batch = batch || (!context.options.batch && shape.rank() > 1 && shape[0] < 0);
    shapes += (count++ > 0 ? ", " : "") + ShapeOption(s.input_names[i], shape);
  }
  if (count == 0) return "";
  return std::string("fix the ") + (batch ? "batch size (--batch N) or the " : "") +
         (count > 1 ? "inputs' shapes (" : "input's shape (") + shapes + ")";
}

std::string HowToFix(const Context& context) {
  for (const Signature& s : context.module.signatures)
    if (std::string text = HowToFix(context, s); !text.empty()) return text;
  return "";
}

}  // namespace fusebox::converter
