// SPDX-License-Identifier: Apache-2.0
// Names of inputs that a signature leaves out.
#include <gmock/gmock.h>

#include <set>

#include "tests/host/tflite/models.h"
#include "tflite_generated.h"

namespace fusebox::tflite {
namespace {

using ::testing::ElementsAre;

// A function of inputs with one name, and a signature that has none of them.
std::vector<std::string> NamesOf(size_t inputs) {
  Module module;
  Function& f = module.Add("main");
  for (size_t i = 0; i < inputs; ++i) f.AddInput({DType::kF32, {1}}, "x");
  f.outputs = {f.inputs[0]};
  module.signatures = {{"all", "main", std::vector<std::string>(inputs, ""), {"y"}}};
  for (size_t i = 0; i < inputs; ++i) module.signatures[0].input_names[i] = "n" + std::to_string(i);
  const std::string file = *Write(module);
  const std::unique_ptr<::tflite::ModelT> model(::tflite::GetModel(file.data())->UnPack());
  model->signature_defs[0]->inputs.clear();
  flatbuffers::FlatBufferBuilder out;
  ::tflite::FinishModelBuffer(out, ::tflite::Model::Pack(out, model.get()));
  const auto read = ReadBytes({reinterpret_cast<const char*>(out.GetBufferPointer()), out.GetSize()});
  EXPECT_TRUE(read) << read.error().message;
  return read ? (*read)->signatures[0].input_names : std::vector<std::string>();
}

TEST(Signatures, NameInputsThatTheyLeaveOut) {
  EXPECT_THAT(NamesOf(4), ElementsAre("x", "x_", "x_2", "x_3"));
}

// Each name was compared with all names, once for each of its equals: minutes.
TEST(Signatures, NameThousandsOfInputsAtOnce) {
  const std::vector<std::string> names = NamesOf(6000);
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), 6000u);
}

}  // namespace
}  // namespace fusebox::tflite
