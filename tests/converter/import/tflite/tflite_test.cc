// SPDX-License-Identifier: Apache-2.0
// .tflite as the converter's input: Flex nodes lifted, the rest kept.
#include <flatbuffers/flexbuffers.h>
#include <gmock/gmock.h>

#include "converter/import/saved_model/graph.pb.h"
#include "converter/import/tflite/import.h"
#include "host/graph/flex.h"
#include "host/graph/half.h"
#include "host/tflite/tflite.h"
#include "tests/converter/import/tflite/file.h"
#include "tests/testing/on_device.h"

namespace fusebox::converter {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Options(const std::string& op, const std::string& node_def) {
  flexbuffers::Builder builder;
  builder.Vector([&] {
    builder.String(op);
    builder.String(node_def);
  });
  builder.Finish();
  return {builder.GetBuffer().begin(), builder.GetBuffer().end()};
}

tf::NodeDef Def(const std::string& op) {
  tf::NodeDef def;
  def.set_name("layer/" + op);
  def.set_op(op);
  return def;
}

Node& Flex(Function& f, const std::string& op, std::vector<ValueId> operands, Type type,
           const std::string& options) {
  Node& node = f.AddNode(Op::kCustom, std::move(operands), {std::move(type)});
  node.name = "Flex" + op;
  node.raw_options = options;
  return node;
}

std::string Zeros(size_t count) { return std::string(count, '\0'); }

// A zip with one empty entry of that name.
std::string ZipOf(const std::string& name) {
  const std::string length = static_cast<char>(name.size()) + Zeros(1);
  const std::string local = "PK\x03\x04" + Zeros(22) + length + Zeros(2) + name;
  const std::string directory = "PK\x01\x02" + Zeros(24) + length + Zeros(16) + name;
  const std::string one = std::string("\x01") + Zeros(1);
  return local + directory + "PK\x05\x06" + Zeros(4) + one + one + static_cast<char>(directory.size()) +
         Zeros(3) + static_cast<char>(local.size()) + Zeros(3) + Zeros(2);
}

// y = sum over axis 1, which stays.
struct SumFile : File {
  Function& f = Add("main");
  Node* node = nullptr;
  explicit SumFile(tf::NodeDef def = Def("Sum")) {
    (*def.mutable_attr())["keep_dims"].set_b(true);
    const ValueId x = f.AddInput(F32({2, 3}), "x");
    const ValueId axis = f.AddConst<int32_t>(DType::kI32, {1}, {1});
    node = &Flex(f, "Sum", {x, axis}, F32({2, 1}), Options(def.op(), def.SerializeAsString()));
    f.outputs = node->results;
    f.value(f.outputs[0]).name = "y";
  }
};

TEST(FromTflite, TranslatesFlexOpsWithTheirAttributes) {
  SumFile file;
  file.Sign(file.f);
  const auto converted = file.Convert();
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_THAT(converted->report.notes, ElementsAre(HasSubstr("1 Sum")));
  ASSERT_EQ(converted->module->functions[0]->nodes.size(), 1u);
  const Node& sum = *converted->module->functions[0]->nodes[0];
  EXPECT_EQ(sum.op, Op::kSum);
  EXPECT_TRUE(sum.attrs.b("keep_dims", false));
  EXPECT_EQ(sum.location.name, "layer/Sum");
}

TEST(FromTflite, KeepsSignaturesMetadataDescriptionAndAnAppendedZip) {
  SumFile file;
  file.Sign(file.f);
  file.module.description = "of a friend";
  file.module.metadata.push_back({"notes", Buffer::Of<uint8_t>(std::vector<uint8_t>{1, 2, 3})});
  const std::string zip = ZipOf("labels");
  file.module.appended = Buffer::Copy(std::as_bytes(std::span(zip)));
  const auto again = file.ConvertAndRead();
  ASSERT_TRUE(again) << again.error().message;
  const Module& module = **again;
  EXPECT_EQ(module.description, "of a friend");
  EXPECT_EQ(module.appended.size(), zip.size());
  const auto notes = std::ranges::find(module.metadata, "notes", &Metadata::name);
  ASSERT_NE(notes, module.metadata.end());
  EXPECT_EQ(notes->data.size(), 3u);
  ASSERT_EQ(module.signatures.size(), 1u);
  EXPECT_EQ(module.signatures[0].key, "main");
  EXPECT_THAT(module.signatures[0].input_names, ElementsAre("i0"));
}

// A composite of f32 [2] with the attribute scale.
Node& Composite(Function& f, ValueId x, const std::string& name, const std::string& body) {
  Node& node = f.AddNode(Op::kStablehloComposite, {x}, {F32({2})});
  node.name = name;
  node.version = 3;
  node.attrs.Set("scale", 0.5);
  node.body = body;
  return node;
}

// main = outer(outer(x)), outer = inner(-x), inner = |x|.
TEST(FromTflite, KeepsCompositesInsideOfComposites) {
  for (const Composites composites : {Composites::kKeep, Composites::kInline}) {
    File file;
    Function &main = file.Add("main"), &outer = file.Add("outer"), &inner = file.Add("inner");
    const ValueId once = Composite(main, main.AddInput(F32({2}), "x"), "acme.outer", "outer").results[0];
    main.outputs = Composite(main, once, "acme.outer", "outer").results;
    const ValueId negative = outer.AddNode(Op::kNeg, {outer.AddInput(F32({2}))}, {F32({2})}).results[0];
    outer.outputs = Composite(outer, negative, "acme.inner", "inner").results;
    inner.outputs = inner.AddNode(Op::kAbs, {inner.AddInput(F32({2}))}, {F32({2})}).results;
    file.Sign(main);
    file.options.composites = composites;
    const auto again = file.ConvertAndRead();
    ASSERT_TRUE(again) << again.error().message;
    const Module& module = **again;
    const Function& made = *module.Find("main");
    if (composites == Composites::kInline) {
      EXPECT_EQ(module.functions.size(), 1u);
      EXPECT_EQ(made.nodes.size(), 4u);
      continue;
    }
    ASSERT_EQ(made.nodes.size(), 2u);
    for (const auto& site : made.nodes) {
      EXPECT_EQ(site->name, "acme.outer");
      EXPECT_EQ(site->version, 3);
      EXPECT_EQ(site->attrs.f64("scale", 0), 0.5);
      const Function& body = *module.Find(site->body);
      ASSERT_EQ(body.nodes.size(), 2u);
      EXPECT_EQ(body.nodes[0]->op, Op::kNeg);
      EXPECT_EQ(body.nodes[1]->name, "acme.inner");
      EXPECT_EQ(module.Find(body.nodes[1]->body)->nodes.at(0)->op, Op::kAbs);
    }
  }
}

// LiteRT rejects a composite without them.
TEST(FromTflite, WritesTheAttributesOfACompositeWithoutAny) {
  File file;
  Function &main = file.Add("main"), &body = file.Add("body");
  Node& node = Composite(main, main.AddInput(F32({2}), "x"), "acme.plain", "body");
  node.attrs = {};
  main.outputs = node.results;
  body.outputs = body.AddNode(Op::kAbs, {body.AddInput(F32({2}))}, {F32({2})}).results;
  file.options.composites = Composites::kKeep;
  const auto again = file.ConvertAndRead();
  ASSERT_TRUE(again) << again.error().message;
  const auto bytes = tflite::Write(**again);
  ASSERT_TRUE(bytes) << bytes.error().message;
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  EXPECT_THAT(text, HasSubstr(WriteFlexMap({})));
}

TEST(FromTflite, LeavesAFileWithoutSignaturesWithoutThem) {
  SumFile file;
  const auto converted = file.Convert();
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_TRUE(converted->module->signatures.empty());
  EXPECT_THAT(converted->report.signatures, ElementsAre("main"));
  EXPECT_EQ(converted->module->functions[0]->value(converted->module->functions[0]->outputs[0]).name, "y");
}

TEST(FromTflite, TakesTheSignaturesThatAreAskedFor) {
  SumFile file;
  file.Sign(file.f);
  file.Save();
  EXPECT_THAT(tflite_import::Import(*MapFile(file.path), file.path, {"other"}, *BuiltIn()).error().message,
              AllOf(HasSubstr("signature other"), HasSubstr("available: main")));
  const auto imported = tflite_import::Import(*MapFile(file.path), file.path, {"main"}, *BuiltIn());
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->module->signatures.size(), 1u);
}

TEST(FromTflite, KeepsTheNamesOfOutputsThatBecomeOne) {
  File file;
  Function& f = file.Add("main");
  const ValueId x = f.AddNode(Op::kRelu, {f.AddInput(F32({4}))}, {F32({4})}).results[0];
  const ValueId one = f.AddConst<float>(DType::kF32, Shape::Scalar(), {1}),
                zero = f.AddConst<float>(DType::kF32, Shape::Scalar(), {0});
  f.outputs = {f.AddNode(Op::kMul, {x, one}, {F32({4})}).results[0],
               f.AddNode(Op::kAdd, {x, zero}, {F32({4})}).results[0]};
  file.Sign(f);
  file.module.signatures[0].output_names = {"b", "a"};
  const auto again = file.ConvertAndRead();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_THAT((*again)->signatures[0].output_names, ElementsAre("b", "a"));
}

// Weights in halves behind a DEQUANTIZE, as TFLite's converter stores them; a batch norm behind the second
// product changes its weights.
TEST(FromTflite, LeavesHalvesInHalves) {
  File file;
  Function& f = file.Add("main");
  std::vector<Half> halves(32 * 32);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<Half>(static_cast<float>(i % 7) - 3);
  ValueId x = f.AddInput(F32({1, 32}));
  for (int i = 0; i < 2; ++i) {
    const ValueId stored =
        f.AddConst({DType::kF16, {32, 32}}, Buffer::Of<Half>(halves), "w" + std::to_string(i));
    const ValueId weights = f.AddNode(Op::kDequantize, {stored}, {F32({32, 32})}).results[0];
    x = f.AddNode(Op::kFullyConnected, {x, weights, kNoValue}, {F32({1, 32})}).results[0];
  }
  f.outputs =
      f.AddNode(Op::kMul, {x, f.AddConst<float>(DType::kF32, Shape::Scalar(), {0.1F})}, {F32({1, 32})})
          .results;
  file.Sign(f);
  const auto converted = file.Convert();
  ASSERT_TRUE(converted) << converted.error().message;
  const Function& made = *converted->module->functions[0];
  size_t kept = 0;
  for (const auto& node : made.nodes)
    kept += node->is(Op::kDequantize) && made.value(node->operands[0]).type.dtype == DType::kF16;
  EXPECT_EQ(Count(made, Op::kMul), 0u) << ToText(made);
  EXPECT_EQ(kept, 1u) << ToText(made);
}

TEST(FromTflite, RefusesWhatStaysFlexInGroups) {
  File file;
  Function& f = file.Add("main");
  ValueId x = f.AddInput(F32({2}));
  for (int i = 0; i < 3; ++i)
    x = Flex(f, "Unheard", {x}, F32({2}), Options("Unheard", Def("Unheard").SerializeAsString())).results[0];
  f.outputs = {x};
  EXPECT_THAT(file.Refusal(), AllOf(HasSubstr("op Unheard (layer/Unheard)"), HasSubstr("no translation")));
  ASSERT_EQ(file.last.unsupported.size(), 1u);
  EXPECT_EQ(file.last.unsupported[0].count, 3);
}

TEST(FromTflite, RefusesFlexCallsOfFunctionsThatNoFileHolds) {
  File file;
  Function& f = file.Add("main");
  tf::NodeDef def = Def("PartitionedCall");
  (*def.mutable_attr())["f"].mutable_func()->set_name("gone");
  f.outputs =
      Flex(f, "PartitionedCall", {f.AddInput(F32({2}))}, F32({2}), Options(def.op(), def.SerializeAsString()))
          .results;
  EXPECT_THAT(file.Refusal(),
              HasSubstr("op PartitionedCall (layer/PartitionedCall): there is no translation"));
}

TEST(FromTflite, RefusesDamagedFlexOptions) {
  const auto with = [](const std::string& options) {
    SumFile file;
    file.node->raw_options = options;
    return file.Refusal();
  };
  EXPECT_THAT(with("\xff\xff\xff"), AllOf(HasSubstr("FlexSum"), HasSubstr("not a FlexBuffer")));
  flexbuffers::Builder one;
  one.Vector([&] { one.String("Sum"); });
  one.Finish();
  EXPECT_THAT(with({one.GetBuffer().begin(), one.GetBuffer().end()}), HasSubstr("not a pair"));
  EXPECT_THAT(with(Options("Sum", "\x0a\xff")), HasSubstr("damaged"));
  EXPECT_THAT(with(Options("Sum", Def("Mean").SerializeAsString())), HasSubstr("is of op \"Mean\""));
}

// TensorFlow's tutorial on training on the device: what reads and writes checkpoints stays behind.
TEST(FromTflite, ConvertsTheSignaturesThatItCan) {
  File file;
  for (const bool damaged : {false, true}) {
    file.module = std::move(*fixtures::OnDevice::Make({"save", "infer", "restore", "train"}));
    if (damaged) file.module.Find("save_function")->nodes.back()->raw_options = "\xff\xff\xff";
    const auto converted = file.ConvertAndRead();
    ASSERT_TRUE(converted) << converted.error().message;
    std::vector<std::string> keys;
    for (const Signature& s : (*converted)->signatures) keys.push_back(s.key);
    EXPECT_THAT(keys, ElementsAre("infer", "train"));
    ASSERT_EQ(file.last.refused.size(), 2u);
    EXPECT_EQ(file.last.refused[0].first, "save");
    EXPECT_THAT(file.last.refused[0].second,
                HasSubstr(damaged ? "op FlexSaveV2 (save_out): its options are not a FlexBuffer"
                                  : "op SaveV2 (SaveV2): it reads or writes files"));
    EXPECT_EQ(Count(*(*converted)->Find("infer_function"), Op::kCallOnce), 1u);
  }
}

// A counter that two signatures share, started by one CALL_ONCE function.
TEST(FromTflite, StartsVariablesOnceForAllSignatures) {
  File file;
  Function& step = file.Add("step");
  Function& peek = file.Add("peek");
  Function& init = file.Add("init");
  const auto handle = [](Function& f) { return Handle(f, "counter"); };
  const ValueId zero = init.AddConst<float>(DType::kF32, {1}, {5});
  init.AddNode(Op::kAssignVariable, {handle(init), zero}, {});
  for (Function* f : {&step, &peek}) f->AddNode(Op::kCallOnce, {}, {}, Ref("init_subgraph_index", "init"));
  const ValueId to = handle(step);
  const ValueId old = step.AddNode(Op::kReadVariable, {to}, {F32({1})}).results[0];
  const ValueId sum = step.AddNode(Op::kAdd, {old, step.AddInput(F32({1}))}, {F32({1})}).results[0];
  step.AddNode(Op::kAssignVariable, {to, sum}, {});
  step.outputs = {sum};
  peek.outputs = peek.AddNode(Op::kReadVariable, {handle(peek)}, {F32({1})}).results;
  file.Sign(step);
  file.Sign(peek);
  const auto converted = file.Convert();
  ASSERT_TRUE(converted) << converted.error().message;
  const auto program = run::Program::Create(*converted->module, BuiltIn());
  ASSERT_TRUE(program) << program.error().message;
  const auto runner = run::Runner::Create(**program, 1);
  const auto after = (*runner)->Run("step", std::vector<Tensor>{Floats({1}, {2})});
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_THAT(FloatsOf((*after)[0]), ElementsAre(7));
  const auto seen = (*runner)->Run("peek", std::vector<Tensor>{});
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_THAT(FloatsOf((*seen)[0]), ElementsAre(7));
}

}  // namespace
}  // namespace fusebox::converter
