// SPDX-License-Identifier: Apache-2.0
#include "converter/recognize/rnn/layer.h"
#include "converter/recognize/rnn/scan.h"

namespace fusebox::converter::recognize {
namespace {

Result<bool> ZerosForMask(const View& view, const Node& node, ValueId mask) {
  const View step(view.module(), view.Callee(node, "body_subgraph_index"));
  FUSEBOX_ASSIGN(const Scan loop, ReadScan(view, step, node));
  if (loop.mask == kNoValue) return Unsupported("its loop has no mask");
  FUSEBOX_ASSIGN(const ValueId steps, SequenceOf(loop, view, step, loop.mask));
  const Node* expand = view.Producer(LayoutOf(view, steps).inputs);
  if (!expand || !expand->is(Op::kExpandDims) || expand->operands[0] != mask)
    return Unsupported("the mask of its loop is not its last operand");
  return loop.zero_output;
}

}  // namespace

void CompleteMaskedComposites(const Module& module, Function& f, std::vector<std::string>& notes) {
  for (const auto& node : f.nodes) {
    const Function* body = node->is(Op::kStablehloComposite) ? module.Find(node->body) : nullptr;
    if (!body || body->inputs.empty() || node->attrs.Find("zero_output_for_mask")) continue;
    const ValueId mask = body->inputs.back();
    if (body->value(mask).type.dtype != DType::kBool) continue;
    const View view(module, *body);
    for (const auto& loop : body->nodes) {
      if (!loop->is(Op::kWhile)) continue;
      const auto zeros = ZerosForMask(view, *loop, mask);
      if (zeros) node->attrs.Set("zero_output_for_mask", *zeros);
      else
        notes.push_back("function " + body->name +
                        ": the output of masked steps is not known: " + zeros.error().message);
    }
  }
}

}  // namespace fusebox::converter::recognize
