// SPDX-License-Identifier: Apache-2.0
// Operands of custom ops that nothing defines.
#include <gmock/gmock.h>

#include "tests/host/tflite/models.h"
#include "tflite_generated.h"

namespace fusebox::tflite {
namespace {

// y = op(x, scratch), where the file does not state what the second operand is.
// `shared`: an ADD reads it, too.
std::string FileWithScratch(Op op, bool shared = false) {
  Module module;
  Function& f = module.Add("main");
  const Type type{DType::kF32, {2}};
  const ValueId x = f.AddInput(type, "x");
  const ValueId scratch = f.AddValue(type, "scratch");
  f.value(scratch).is_variable = true;
  Node& node = f.AddNode(op, {x, scratch}, {type});
  if (op == Op::kCustom) node.name = "npu";
  f.outputs = node.results;
  if (shared) f.outputs = f.AddNode(Op::kAdd, {node.results[0], scratch}, {type}).results;
  const std::string file = *Write(module);
  const std::unique_ptr<::tflite::ModelT> model(::tflite::GetModel(file.data())->UnPack());
  for (const auto& tensor : model->subgraphs[0]->tensors) tensor->is_variable = false;
  flatbuffers::FlatBufferBuilder out;
  ::tflite::FinishModelBuffer(out, ::tflite::Model::Pack(out, model.get()));
  return {reinterpret_cast<const char*>(out.GetBufferPointer()), out.GetSize()};
}

TEST(Scratch, OfACustomOpIsState) {
  const auto module = ReadBytes(FileWithScratch(Op::kCustom));
  ASSERT_TRUE(module) << module.error().message;
  const Function& f = *(*module)->functions[0];
  EXPECT_FALSE(f.value(f.nodes[0]->operands[0]).is_variable);
  EXPECT_TRUE(f.value(f.nodes[0]->operands[1]).is_variable);
  ExpectRoundTrip(**module);
}

TEST(Scratch, OfABuiltinOpIsAnError) {
  for (const auto& file : {FileWithScratch(Op::kAdd), FileWithScratch(Op::kCustom, true)}) {
    const auto module = ReadBytes(file);
    ASSERT_FALSE(module);
    EXPECT_THAT(module.error().message, ::testing::HasSubstr("is read before anything defines it"));
  }
}

}  // namespace
}  // namespace fusebox::tflite
