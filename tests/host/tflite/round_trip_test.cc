// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <fstream>

#include "host/tflite/options.h"
#include "tests/host/tflite/models.h"

namespace fusebox::tflite {
namespace {

// A value that the field can hold and that is not its default.
AttrValue Sample(const OptionField& field) {
  if (field.type == reflection::String) return std::string("some text");
  if (field.type == reflection::Vector) {
    if (field.element == reflection::UByte) return std::string("\x01\x02", 2);
    if (IsReal(field.element)) return std::vector<double>{0.5, -2};
    if (field.names != nullptr) return std::vector<std::string>{"HIGHEST", "DEFAULT"};
    if (field.element == reflection::Bool) return std::vector<int64_t>{1, 0};
    if (!field.is_function) return std::vector<int64_t>{3, -4};
    Attrs functions;
    functions.Set("0", FunctionRef{"other"});
    functions.Set("1", FunctionRef{"main"});
    return std::make_shared<const Attrs>(functions);
  }
  if (field.is_function) return FunctionRef{"other"};
  if (IsReal(field.type)) return field.default_real + 1.5;
  if (field.type == reflection::Bool) return field.default_integer == 0;
  if (field.is_dtype) return DType::kI8;
  if (field.names != nullptr) return *EnumName(*field.names, field.default_integer == 1 ? 0 : 1);
  return field.default_integer + 5;
}

TEST(Options, ComeBackFromEveryFieldOfEveryTable) {
  int fields = 0;
  for (const OpInfo& info : AllOps()) {
    // Those that refer to functions of a certain interface have tests of their own.
    if (info.options.empty() || info.op == Op::kStablehloComposite || info.effects == Effects::kControl)
      continue;
    const OptionTable* table = FindTable(info.options);
    ASSERT_NE(table, nullptr) << info.name << " has options " << info.options << ", which the schema lacks";
    Module module;
    Function& main = module.Add("main");
    module.Add("other");
    std::vector<ValueId> operands;
    for (int i = 0; i < info.operands.min; ++i)
      operands.push_back(main.AddInput({DType::kF32, {1}}, "x" + std::to_string(i)));
    const size_t states = StateOperands(info.op).size();
    const bool basic = info.op == Op::kLstm;
    const bool handle = info.op == Op::kVarHandle || info.op == Op::kHashtable;
    const Type result{handle ? DType::kResource : DType::kF32, {1}};
    Node& node = main.AddNode(info.op, operands, std::vector<Type>(1 + (basic ? 0 : states), result));
    for (const OptionField& field : table->fields) node.attrs.Set(field.name, Sample(field));
    if (info.op == Op::kCallOnce) node.results.clear();
    if (info.op == Op::kStablehloCustomCall) node.attrs.Erase("called_computations");
    fields += static_cast<int>(node.attrs.size());
    SCOPED_TRACE(info.name);
    ExpectRoundTrip(module);
  }
  EXPECT_GT(fields, 190);
}

TEST(Options, AreSaidByNameAndKind) {
  EXPECT_EQ(OptionDefault("Conv2DOptions", "dilation_w_factor"), AttrValue(int64_t{1}));
  EXPECT_EQ(OptionDefault("BidirectionalSequenceLSTMOptions", "time_major"), AttrValue(true));
  EXPECT_EQ(OptionDefault("Conv2DOptions", "padding"), AttrValue(std::string("SAME")));
  EXPECT_EQ(OptionDefault("CastOptions", "out_data_type"), AttrValue(DType::kF32));
  EXPECT_EQ(OptionDefault("Conv2DOptions", "nonsense"), AttrValue());
}

TEST(Options, RefuseWhatTheTableCannotHold) {
  const auto why = [](const char* name, AttrValue value) {
    Module module;
    Function& main = module.Add("main");
    const ValueId x = main.AddInput({DType::kF32, {1}}, "x");
    main.AddNode(Op::kSoftmax, {x}, {{DType::kF32, {1}}}).attrs.Set(name, std::move(value));
    const auto bytes = Write(module);
    return bytes ? std::string() : bytes.error().message;
  };
  EXPECT_EQ(why("betta", 1.0),
            "function main: node 0 SOFTMAX: attribute betta is not a field of SoftmaxOptions; did you mean "
            "\"beta\"?");
  EXPECT_EQ(why("beta", "x"), "function main: node 0 SOFTMAX: beta: has a value of the wrong kind: x");
  EXPECT_EQ(why("beta", 1.0), "");
}

TEST(Write, IsUndoneByRead) { ExpectRoundTrip(*Everything()); }

TEST(Write, GivesAFinalStateTheTensorOfItsOperand) {
  const auto module = *ReadBytes(*Write(*Everything()));
  const Function& main = *module->functions[0];
  const Node *stateless = nullptr, *stateful = nullptr;
  for (const auto& node : main.nodes) {
    if (node->is(Op::kRnn)) (stateless == nullptr ? stateless : stateful) = node.get();
  }
  ASSERT_NE(stateful, nullptr);
  EXPECT_FALSE(main.value(stateless->operands[4]).is_variable) << "a defined state is a value";
  EXPECT_TRUE(main.value(stateful->operands[4]).is_variable);
  EXPECT_EQ(stateful->operands[0], stateless->results[1]) << "later readers read the final state";
  EXPECT_EQ(main.outputs[0], stateless->results[1]);
}

TEST(Write, AlignsWeightsAndLeavesRoomBehindThem) {
  const std::string bytes = *Write(*Everything());
  const Buffer file = Buffer::Of(std::span<const char>(bytes));
  const auto module = *Read(file, "bytes");
  const Function& main = *module->functions[0];
  for (ValueId id = 0; id < main.value_count(); ++id) {
    const Buffer& data = main.value(id).data;
    if (data.size() == 0) continue;
    EXPECT_EQ((data.data() - file.data()) % 16, 0) << main.value(id).name;
    EXPECT_LE(data.data() + data.size() + kOverread, file.data() + file.size());
  }
}

TEST(Write, SharesEqualConstantsButNoOutputs) {
  Module module;
  Function& main = module.Add("main");
  const std::vector<float> weights(4096, 1);
  const ValueId a = main.AddConst(DType::kF32, {4096}, weights, "a"),
                b = main.AddConst(DType::kF32, {4096}, weights, "b");
  main.outputs = main.AddNode(Op::kAdd, {a, b}, {{DType::kF32, {4096}}}).results;
  const size_t shared = Write(module)->size();
  EXPECT_GT(Write(module, {.deduplicate = false})->size(), shared + 16000);
  main.outputs.push_back(a);
  EXPECT_GT(Write(module)->size(), shared + 16000);
}

TEST(Read, LeavesScalesAndZeroPointsInTheFile) {
  Module module;
  Function& main = module.Add("main");
  const Quant quant{.scales = std::vector<float>(64, 0.5f), .zero_points = std::vector<int64_t>(64, 3)};
  main.outputs = {main.AddInput({DType::kI8, Shape({64, 1})})};
  main.value(0).quant = std::make_shared<const Quant>(quant);
  const std::string bytes = *Write(module);
  const Buffer file = Buffer::Of(std::span<const char>(bytes));
  const auto read = *Read(file, "bytes");
  const Quant& got = *read->functions[0]->value(0).quant;
  EXPECT_EQ(got, quant);
  const auto in_file = [&](const void* data) {
    return data >= file.data() && data < file.data() + file.size();
  };
  EXPECT_TRUE(in_file(got.scales.data()));
  EXPECT_TRUE(in_file(got.zero_points.data()));
}

TEST(Write, SharesEqualShapesAndZeroPoints) {
  const auto size = [](int64_t other) {
    Module m;
    Function& f = m.Add("main");
    for (int i = 0; i < 2; ++i) {
      Quant quant{std::vector<float>(64, 0.5f), {}, {}, std::vector<int64_t>(64, i == 0 ? 0 : other)};
      const ValueId v = f.AddInput({DType::kI8, Shape({64, 1})});
      f.value(v).quant = std::make_shared<const Quant>(quant);
    }
    f.outputs = f.inputs;
    return Write(m)->size();
  };
  EXPECT_GE(size(1), size(0) + 64 * sizeof(int64_t));
}

TEST(Write, KeepsAnAppendedZip) {
  auto module = Everything();
  // One stored, empty entry "a"; offsets count from the zip's start.
  std::string zip("PK\x03\x04", 4);
  zip += std::string(22, '\0') + std::string("\x01\0\0\0", 4) + "a";
  const size_t directory = zip.size();
  std::string entry = std::string("PK\x01\x02", 4) + std::string(24, '\0') + std::string("\x01\0", 2) +
                      std::string(16, '\0') + "a";
  std::string end = std::string("PK\x05\x06", 4) + std::string(4, '\0') + std::string("\x01\0\x01\0", 4);
  end += static_cast<char>(entry.size()) + std::string(3, '\0') + static_cast<char>(directory) +
         std::string(3, '\0') + std::string(2, '\0');
  zip += entry + end;
  module->appended = Buffer::Of(std::span<const char>(zip));
  ExpectRoundTrip(*module);
  // A zip whose offsets count from the start of the file comes to the same.
  module->appended = Buffer();
  std::string file = *Write(*module);
  const auto shift = static_cast<uint32_t>(file.size());
  std::string absolute = zip;
  const auto add = [&](size_t at) {
    uint32_t value;
    std::memcpy(&value, absolute.data() + at, 4);
    value += shift;
    std::memcpy(absolute.data() + at, &value, 4);
  };
  add(directory + 42);
  add(zip.size() - 6);
  const auto back = ReadBytes(file + absolute);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(std::string(reinterpret_cast<const char*>((*back)->appended.data()), (*back)->appended.size()),
            zip);
}

TEST(Write, LeavesNothingBehindWhenItFails) {
  auto module = Everything();
  module->functions[0]->AddNode(Op::kOpaque, {}, {}).name = "Mystery";
  const std::string path = testing::TempDir() + "/refused.tflite";
  std::filesystem::remove(path);
  EXPECT_FALSE(WriteFile(*module, path));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Schema, NamesTheOpsAsTheTableOfOpsDoes) {
  std::ifstream file(FUSEBOX_SOURCE_DIR "/host/tflite/schema/tflite.fbs");
  std::string line;
  bool inside = false;
  int seen = 0;
  while (std::getline(file, line)) {
    if (line.starts_with("enum BuiltinOperator")) inside = true;
    const size_t equals = line.find(" = ");
    if (line == "}") inside = false;
    if (!inside || equals == std::string::npos) continue;
    const auto op = FindOp(std::stoi(line.substr(equals + 3)));
    ASSERT_TRUE(op) << line;
    EXPECT_EQ(Name(*op), line.substr(2, equals - 2));
    ++seen;
  }
  EXPECT_EQ(seen, 210);
}

TEST(RealFiles, KeepTheirMeaning) {
  const auto files = RealFiles();
  if (files.empty()) GTEST_SKIP() << "FUSEBOX_MODELS is not set: no real files";
  int read = 0, refused = 0;
  double milliseconds = 0;
  for (const std::string& path : files) {
    const auto start = std::chrono::steady_clock::now();
    const auto module = ReadFile(path);
    milliseconds +=
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (!module) {
      ++refused;
      std::printf("refused: %s\n", module.error().message.c_str());
      continue;
    }
    ++read;
    SCOPED_TRACE(path);
    ExpectRoundTrip(**module);
  }
  std::printf("%d files read in %.1f ms, %d refused\n", read, milliseconds, refused);
  EXPECT_LE(refused, 3);
}

}  // namespace
}  // namespace fusebox::tflite
