// SPDX-License-Identifier: Apache-2.0
// .tflite files with recurrent layers as loops without lists: the list of outputs is a tensor, and each step
// copies it with one new row. Fusebox writes such rows by DYNAMIC_UPDATE_SLICE, TensorFlow's converter by
// slices.
#include <gmock/gmock.h>

#include "converter/convert.h"
#include "host/graph/rewriter.h"
#include "host/tflite/tflite.h"
#include "tests/testing/on_device.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;

struct LoweredLoop {
  const char* name;
  const char* sample;
  const char* op;  // that each layer becomes
};

constexpr LoweredLoop kLoweredLoops[] = {
    {"Lstm", "keras_lstm", "UNIDIRECTIONAL_SEQUENCE_LSTM"},
    {"Sequences", "lstm_sequences", "UNIDIRECTIONAL_SEQUENCE_LSTM"},
    {"Backwards", "lstm_backwards", "UNIDIRECTIONAL_SEQUENCE_LSTM"},
    {"Gru", "gru", "fusebox.gru"},
    {"SimpleRnn", "simple_rnn", "UNIDIRECTIONAL_SEQUENCE_RNN"},
    {"Bidirectional", "bidirectional_lstm", "BIDIRECTIONAL_SEQUENCE_LSTM"},
    {"Keras3Lstm", "keras3_lstm", "UNIDIRECTIONAL_SEQUENCE_LSTM"},
    {"Keras3Gru", "keras3_gru", "fusebox.gru"},
};

Result<converter::Converted> ConvertAs(converter::Conversion conversion, converter::Composites composites) {
  conversion.options.registry = *Plugins();
  conversion.options.composites = composites;
  return conversion.Convert();
}

// CONCATENATION(SLICE(tensor, 0, [i, -1, ..]), row, SLICE(tensor, [i + off, 0, ..], -1)) in place of updates.
int WriteBySlices(Module& module, int32_t off) {
  int count = 0;
  for (const auto& f : module.functions) {
    for (size_t at = 0; at < f->nodes.size(); ++at) {
      if (!f->nodes[at]->is(Op::kDynamicUpdateSlice)) continue;
      const ValueIds operands = f->nodes[at]->operands;
      const Type type = f->value(f->nodes[at]->results[0]).type;
      const Uses uses(*f);
      const ValueId i = uses.producer(uses.producer(operands[2])->operands[0])->operands[0];
      Rewriter w(*f);
      w.InsertBefore(at);
      const size_t rest = static_cast<size_t>(type.shape.rank() - 1);
      const std::vector<int64_t> zeros(rest), ones(rest, -1), all(rest + 1, -1), none(rest + 1);
      const Type one{DType::kI32, Shape{1}}, whole{DType::kI32, Shape{type.shape.rank()}};
      const Type part{DType::kF32, Shape()};
      const auto joined = [&](ValueId v, const std::vector<int64_t>& end) {
        return w.Typed(Op::kConcatenation, {v, w.I32(end)}, whole, MakeAttrs("axis", 0));
      };
      const ValueId next = w.Typed(Op::kAdd, {i, w.I32Scalar(off)}, {DType::kI32, Shape::Scalar()});
      const ValueId same = w.Typed(Op::kReshape, {i, w.I32({1})}, one);
      const ValueId behind = w.Typed(Op::kReshape, {next, w.I32({1})}, one);
      const ValueId before = w.Typed(Op::kSlice, {operands[0], w.I32(none), joined(same, ones)}, part);
      const ValueId after = w.Typed(Op::kSlice, {operands[0], joined(behind, zeros), w.I32(all)}, part);
      const ValueId made =
          w.Typed(Op::kConcatenation, {before, operands[1], after}, type, MakeAttrs("axis", 0));
      w.Replace(*f->nodes[at], made);
      w.Finish();
      ++count;
    }
  }
  return count;
}

class LoweredLists : public ::testing::TestWithParam<LoweredLoop> {
 protected:
  // Writes the file of a loop; returns how many lists it writes by slices.
  Result<int> Write(bool slices, int32_t off = 1) {
    FUSEBOX_ASSIGN(const std::string source, Sample(GetParam().sample));
    FUSEBOX_ASSIGN(converter::Conversion conversion, converter::FromPath(source));
    FUSEBOX_ASSIGN(const converter::Converted loop,
                   ConvertAs(std::move(conversion), converter::Composites::kInline));
    FUSEBOX_TRY(loop.Write(path));
    if (!slices) return 0;
    FUSEBOX_ASSIGN(const std::unique_ptr<Module> module, tflite::ReadFile(path));
    const int count = WriteBySlices(*module, off);
    FUSEBOX_TRY(tflite::WriteFile(*module, path));
    return count;
  }

  const std::string path = TestDir() + "/loop.tflite";
};

TEST_P(LoweredLists, BecomeOneOp) {
  for (const bool slices : {false, true}) {
    SCOPED_TRACE(slices ? "slices" : "updates");
    const auto written = Write(slices);
    ASSERT_TRUE(written) << written.error().message;
    const auto converted = ConvertAs(converter::FromTflite(path), converter::Composites::kFuse);
    ASSERT_TRUE(converted) << converted.error().message;
    ASSERT_TRUE(converted->Write(path + ".out"));
    const auto loop = Model::Open(path, {.registry = *Plugins()});
    const auto fused = Model::Open(path + ".out", {.registry = *Plugins()});
    ASSERT_TRUE(loop) << loop.error().message;
    ASSERT_TRUE(fused) << fused.error().message;
    EXPECT_THAT(OpsOf((*loop)->module()), Contains(Key("WHILE")));
    EXPECT_THAT(OpsOf((*fused)->module()), Contains(Key(GetParam().op)));
    EXPECT_THAT(OpsOf((*fused)->module()), Not(Contains(Key("WHILE"))))
        << ::testing::PrintToString(converted->report.notes);
    auto theirs = Session::Create(*loop), ours = Session::Create(*fused);
    ASSERT_TRUE(theirs) << theirs.error().message;
    ASSERT_TRUE(ours) << ours.error().message;
    const Tensors inputs = RandomInputs(**theirs, 3);
    const auto a = Invoke(**ours, inputs), b = Invoke(**theirs, inputs);
    ASSERT_TRUE(a) << a.error().message;
    ASSERT_TRUE(b) << b.error().message;
    EXPECT_EQ(Difference(*a, *b), "");
  }
}

// Rows that do not follow each other leave a row out.
TEST_P(LoweredLists, StayLoopsIfTheyDropRows) {
  const auto written = Write(true, 2);
  ASSERT_TRUE(written) << written.error().message;
  if (*written == 0) GTEST_SKIP() << "the layer returns its last output, and its loop writes no list";
  const auto converted = ConvertAs(converter::FromTflite(path), converter::Composites::kFuse);
  ASSERT_TRUE(converted) << converted.error().message;
  ASSERT_TRUE(converted->Write(path + ".out"));
  const auto module = tflite::ReadFile(path + ".out");
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_THAT(OpsOf(**module), Contains(Key("WHILE")));
}

INSTANTIATE_TEST_SUITE_P(Of, LoweredLists, ::testing::ValuesIn(kLoweredLoops),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fusebox::testing
