// SPDX-License-Identifier: Apache-2.0
// Signatures that do not fit their subgraph.
#include <gmock/gmock.h>

#include "host/base/log_sink.h"
#include "tests/host/tflite/models.h"
#include "tflite_generated.h"

namespace fusebox::tflite {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y = relu(relu(x)), with a signature whose tensors `edit` changes.
std::string FileWith(const std::function<void(::tflite::SignatureDefT&)>& edit) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const Type type{DType::kF32, {2}};
  const ValueId x = f.AddInput(type, "x");
  f.outputs = f.AddNode(Op::kRelu, f.AddNode(Op::kRelu, {x}, {type}).results, {type}).results;
  f.value(f.outputs[0]).name = "y";
  module->signatures.push_back({"run", "main", {"from"}, {"to"}});
  const std::string file = *Write(*module);
  const std::unique_ptr<::tflite::ModelT> model(::tflite::GetModel(file.data())->UnPack());
  edit(*model->signature_defs[0]);
  flatbuffers::FlatBufferBuilder out;
  ::tflite::FinishModelBuffer(out, ::tflite::Model::Pack(out, model.get()));
  return {reinterpret_cast<const char*>(out.GetBufferPointer()), out.GetSize()};
}

// A tensor that is neither input nor output.
uint32_t Inner(const ::tflite::SignatureDefT& signature) {
  uint32_t inner = 0;
  while (inner == signature.inputs[0]->tensor_index || inner == signature.outputs[0]->tensor_index) ++inner;
  return inner;
}

TEST(Signatures, IgnoreNamesOfOtherTensors) {
  std::vector<std::string> warnings;
  SetLogSink([&](LogLevel, std::string_view, std::string_view text) { warnings.emplace_back(text); });
  const auto read = [](const auto& edit) {
    auto module = ReadBytes(FileWith(edit));
    EXPECT_TRUE(module) << module.error().message;
    return (*module)->signatures[0];
  };
  const Signature same = read([](auto&) {});
  EXPECT_THAT(same.input_names, ElementsAre("from"));
  EXPECT_TRUE(warnings.empty());
  const Signature input = read([](auto& s) { s.inputs[0]->tensor_index = Inner(s); });
  EXPECT_THAT(input.input_names, ElementsAre("x")) << "the tensor's own name";
  EXPECT_THAT(input.output_names, ElementsAre("to"));
  const Signature output = read([](auto& s) { s.outputs[0]->tensor_index = 1000; });
  EXPECT_THAT(output.output_names, ElementsAre("y"));
  SetLogSink({});
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_THAT(warnings[0], HasSubstr("signature run: input \"from\" is ignored: tensor"));
  EXPECT_THAT(warnings[1], HasSubstr("output \"to\" is ignored: tensor 1000 is not among"));
}

}  // namespace
}  // namespace fusebox::tflite
