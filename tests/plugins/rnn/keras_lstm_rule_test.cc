// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <sstream>

#include "tests/plugins/rnn/fake_host.h"

namespace fusebox::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const fbx_rule* Rule() {
  const FakeHost host;
  const fbx_plugin* plugin = nullptr;
  return fusebox_entry_v1.load(host.abi(), &plugin) == FBX_OK ? plugin->rules[0] : nullptr;
}

// Writes down what a rule emits, one line per node; values print as "op.result", operands of the site as "in3", i32
// constants as their list.
class Recorder {
 public:
  Recorder() {
    auto& b = table_.builder;
    b.head = FBX_HEAD(fbx_builder);
    b.operand = [](const fbx_builder* b, uint32_t i) noexcept {
      return Self(b).Add(std::string("in").append(std::to_string(i)));
    };
    b.add_const = AddConst;
    b.add_node = AddNode;
    b.attr_bool = [](const fbx_builder* b, fbx_str k, int32_t v) noexcept {
      Self(b).Attr(k, v ? "true" : "false");
    };
    b.attr_i64 = [](const fbx_builder* b, fbx_str k, int64_t v) noexcept {
      Self(b).Attr(k, std::to_string(v));
    };
    b.attr_f64 = [](const fbx_builder* b, fbx_str k, double v) noexcept {
      Self(b).Attr(k, std::to_string(v));
    };
    b.attr_str = [](const fbx_builder* b, fbx_str k, fbx_str v) noexcept {
      Self(b).Attr(k, std::string(v.ptr, v.len));
    };
    b.set_result = [](const fbx_builder* b, uint32_t i, fbx_value v) noexcept { Self(b).results[i] = v; };
    table_.self = this;
  }
  const fbx_builder* abi() const { return &table_.builder; }

  std::string Name(fbx_value v) const {
    return v == FBX_NO_VALUE ? "-" : constants_.count(v) ? List(v) : names_.at(v);
  }
  // Each node as "OP(operands) key=value ...".
  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    for (const Line& n : nodes_) {
      std::string line = n.op + "(";
      for (size_t i = 0; i < n.operands.size(); ++i) line.append(i ? "," : "").append(Name(n.operands[i]));
      line += ")";
      for (const auto& [key, value] : n.attrs) line.append(" ").append(key).append("=").append(value);
      lines.push_back(line);
    }
    return lines;
  }
  std::map<uint32_t, fbx_value> results;

 private:
  struct Line {
    std::string op;
    std::vector<fbx_value> operands;
    std::map<std::string, std::string> attrs;
  };
  struct Table {
    fbx_builder builder;
    Recorder* self;
  };
  static Recorder& Self(const fbx_builder* b) { return *reinterpret_cast<const Table*>(b)->self; }
  fbx_value Add(std::string name) {
    names_.push_back(std::move(name));
    return static_cast<fbx_value>(names_.size() - 1);
  }
  void Attr(fbx_str key, std::string value) {
    nodes_.back().attrs[std::string(key.ptr, key.len)] = std::move(value);
  }

  static fbx_value AddConst(const fbx_builder* b, fbx_dtype dtype, const int64_t* dims, int32_t rank,
                            void** data) noexcept {
    Recorder& self = Self(b);
    const fbx_value v = self.Add("constant");
    self.constants_[v] = FakeTensor(dtype, {dims, dims + rank}).Allocate(4);
    self.dtypes_[v] = dtype;
    *data = self.constants_[v].data<void>();
    return v;
  }
  static fbx_status AddNode(const fbx_builder* b, fbx_op_kind, fbx_str op, int32_t, const fbx_value* operands,
                            uint32_t n, fbx_value* results, uint32_t result_count) noexcept {
    Recorder& self = Self(b);
    self.nodes_.push_back({std::string(op.ptr, op.len), {operands, operands + n}, {}});
    for (uint32_t i = 0; i < result_count; ++i) {
      results[i] =
          self.Add(self.nodes_.back().op + std::to_string(self.nodes_.size() - 1) + "." + std::to_string(i));
    }
    return FBX_OK;
  }
  std::string List(fbx_value v) const {
    std::ostringstream text;
    const FakeTensor& t = constants_.at(v);
    text << "[";
    for (size_t i = 0; i < t.count(); ++i) {
      text << (i ? " " : "");
      dtypes_.at(v) == FBX_F32 ? text << t.data<float>()[i] << "f" : text << t.data<int32_t>()[i];
    }
    return text.str() + "]";
  }

  Table table_{};
  std::vector<std::string> names_;
  std::vector<Line> nodes_;
  std::map<fbx_value, FakeTensor> constants_;
  std::map<fbx_value, fbx_dtype> dtypes_;
};

FakeTensor F32(std::vector<int64_t> dims, uint32_t flags = 0) { return {FBX_F32, std::move(dims), flags}; }

// A site with 3 features and 4 units, batch 2 and 5 steps, that the rule takes as it stands.
struct Lstm {
  std::vector<FakeTensor> operands{F32({2, 5, 3}),
                                   F32({2, 4}),
                                   F32({2, 4}),
                                   F32({3, 16}, FBX_TENSOR_CONST),
                                   F32({4, 16}, FBX_TENSOR_CONST),
                                   F32({16}, FBX_TENSOR_CONST)};
  std::vector<FakeTensor> results{F32({2, 4}).Uses(1), F32({2, 5, 4}).Uses(1), F32({2, 4}).Uses(1),
                                  F32({2, 4}).Uses(1), F32({}).Uses(1)};
  FakeAttrs attrs;
  FakeHost host;

  template <class F>
  fbx_status With(const F& f) {
    std::vector<const fbx_tensor*> ins, outs;
    for (const FakeTensor& t : operands) ins.push_back(t.abi());
    for (const FakeTensor& t : results) outs.push_back(t.abi());
    const fbx_composite site{FBX_HEAD(fbx_composite),
                             {"lstm_0", 6},
                             1,
                             Abi(attrs),
                             static_cast<uint32_t>(ins.size()),
                             static_cast<uint32_t>(outs.size()),
                             ins.data(),
                             outs.data(),
                             nullptr,
                             {"site", 4}};
    return f(&site);
  }
  // "" when the rule matches, else "CODE subject: message".
  std::string WhyNot() {
    const fbx_status status =
        With([&](const fbx_composite* site) { return Rule()->match(host.abi(), site); });
    if (status == FBX_OK) return "";
    if (host.diagnostics.size() != 1) return "status " + std::to_string(status);
    const Diagnostic& d = host.diagnostics[0];
    return (status == FBX_NOT_APPLICABLE ? "" : "error ") + d.code + " " + d.subject + ": " + d.message;
  }
  Recorder Rewritten() {
    EXPECT_EQ(WhyNot(), "");
    Recorder recorder;
    EXPECT_EQ(
        With([&](const fbx_composite* site) { return Rule()->rewrite(host.abi(), site, recorder.abi()); }),
        FBX_OK);
    return recorder;
  }
};

TEST(KerasLstmRule, EmitsTransposesSplitsAndOneOp) {
  const Recorder r = Lstm().Rewritten();
  EXPECT_THAT(
      r.Lines(),
      ElementsAre(
          "TRANSPOSE(in3,[1 0])", "SPLIT([0],TRANSPOSE0.0) num_splits=4", "TRANSPOSE(in4,[1 0])",
          "SPLIT([0],TRANSPOSE2.0) num_splits=4", "SPLIT([0],in5) num_splits=4",
          "UNIDIRECTIONAL_SEQUENCE_LSTM(in0,SPLIT1.0,SPLIT1.1,SPLIT1.2,SPLIT1.3,SPLIT3.0,SPLIT3.1,SPLIT3.2,"
          "SPLIT3.3,-,-,-,SPLIT4.0,SPLIT4.1,SPLIT4.2,SPLIT4.3,-,-,in1,in2,-,-,-,-) cell_clip=0.000000 "
          "fused_activation_function=TANH proj_clip=0.000000 time_major=false",
          "STRIDED_SLICE(UNIDIRECTIONAL_SEQUENCE_LSTM5.0,[0 -1 0],[0 0 0],[1 1 1]) begin_mask=5 end_mask=5 "
          "shrink_axis_mask=2"));
  EXPECT_EQ(r.Name(r.results.at(0)), "STRIDED_SLICE6.0");
  EXPECT_EQ(r.Name(r.results.at(1)), "UNIDIRECTIONAL_SEQUENCE_LSTM5.0");
  EXPECT_EQ(r.Name(r.results.at(2)), "UNIDIRECTIONAL_SEQUENCE_LSTM5.1");
  EXPECT_EQ(r.Name(r.results.at(3)), "UNIDIRECTIONAL_SEQUENCE_LSTM5.2");
  EXPECT_EQ(r.Name(r.results.at(4)), "[1f]");
}

TEST(KerasLstmRule, MapsTimeMajorToTheOption) {
  Lstm lstm;
  lstm.attrs["time_major"] = true;
  lstm.operands[0] = F32({5, 2, 3});
  lstm.results[1] = F32({5, 2, 4}).Uses(1);
  const Recorder r = lstm.Rewritten();
  EXPECT_THAT(r.Lines(), Contains(HasSubstr("time_major=true")));
  EXPECT_THAT(r.Lines(),
              Contains(HasSubstr("[-1 0 0],[0 0 0],[1 1 1]) begin_mask=6 end_mask=6 shrink_axis_mask=1")));
}

TEST(KerasLstmRule, ReversesTimeWhenGoingBackwards) {
  Lstm lstm;
  lstm.attrs["go_backwards"] = true;
  EXPECT_THAT(lstm.Rewritten().Lines(), Contains("REVERSE_V2(in0,[1])"));
  lstm.attrs["time_major"] = true;
  lstm.operands[0] = F32({5, 2, 3});
  lstm.results[1] = F32({5, 2, 4}).Uses(1);
  EXPECT_THAT(lstm.Rewritten().Lines(), Contains("REVERSE_V2(in0,[0])"));
}

TEST(KerasLstmRule, KeepsOnlyTheLastStepOfASequenceOfOne) {
  Lstm lstm;
  lstm.results[1] = F32({2, 1, 4}).Uses(1);
  const Recorder r = lstm.Rewritten();
  EXPECT_THAT(r.Lines().back(), HasSubstr("begin_mask=5 end_mask=7 shrink_axis_mask=0"));
  EXPECT_THAT(r.Name(r.results.at(1)), StartsWith("STRIDED_SLICE"));
}

TEST(KerasLstmRule, TakesTheWholeSequenceOfOneStep) {
  Lstm lstm;
  lstm.operands[0] = F32({2, 1, 3});
  lstm.results[1] = F32({2, 1, 4}).Uses(1);
  const Recorder r = lstm.Rewritten();
  EXPECT_THAT(r.Name(r.results.at(1)), StartsWith("UNIDIRECTIONAL_SEQUENCE_LSTM"));
}

TEST(KerasLstmRule, TakesUnknownBatchAndTime) {
  Lstm lstm;
  lstm.operands[0] = F32({-1, -1, 3});
  lstm.operands[1] = lstm.operands[2] = F32({-1, 4});
  lstm.results[1] = F32({-1, -1, 4}).Uses(1);
  EXPECT_EQ(lstm.WhyNot(), "");
}

// One test for each way to break the contract.
template <class Change>
std::string Refusal(const Change& change) {
  Lstm lstm;
  change(lstm);
  return lstm.WhyNot();
}

TEST(KerasLstmRule, RefusesAMask) {
  EXPECT_THAT(Refusal([](Lstm& l) { l.operands.push_back({FBX_BOOL, {2, 5}}); }),
              StartsWith("ARITY operand 6: has 7 operands: a mask"));
}
TEST(KerasLstmRule, RefusesOtherOperandCounts) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands.pop_back(); }), "ARITY : has 5 operands, expected 6");
}
TEST(KerasLstmRule, RefusesOtherResultCounts) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.results.pop_back(); }), "ARITY : has 4 results, expected 5");
}
TEST(KerasLstmRule, RefusesAnAbsentOperand) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[5] = FakeTensor(); }), "ARITY operand 5 (bias): is absent");
}
TEST(KerasLstmRule, RefusesUnknownRank) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[0] = FakeTensor::Unranked(FBX_F32); }),
            "RANK operand 0 (inputs): has an unknown rank");
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[2] = FakeTensor::Unranked(FBX_F32); }),
            "RANK operand 2 (init_c): has an unknown rank");
}
TEST(KerasLstmRule, RefusesOtherRanks) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[0] = F32({5, 3}); }),
            "RANK operand 0 (inputs): has shape [5,3], expected rank 3");
  EXPECT_THAT(Refusal([](Lstm& l) { l.operands[5] = F32({2, 8}, FBX_TENSOR_CONST); }),
              StartsWith("RANK operand 5 (bias)"));
}
TEST(KerasLstmRule, RefusesOtherTypes) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[0] = {FBX_F64, {2, 5, 3}}; }),
            "DTYPE operand 0 (inputs): is f64, only f32 is done");
  EXPECT_THAT(Refusal([](Lstm& l) { l.operands[3] = {FBX_F16, {3, 16}, FBX_TENSOR_CONST}; }),
              StartsWith("DTYPE operand 3 (kernel)"));
}
TEST(KerasLstmRule, RefusesWeightsThatTheModelChanges) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[3] = F32({3, 16}, FBX_TENSOR_VARIABLE); }),
            "NONCONST operand 3 (kernel): is read from a variable that the model changes");
}
TEST(KerasLstmRule, RefusesComputedWeights) {
  for (const auto& [i, name] : {std::pair{3, "kernel"}, {4, "recurrent_kernel"}, {5, "bias"}}) {
    EXPECT_EQ(Refusal([i = i](Lstm& l) { l.operands[i] = FakeTensor(FBX_F32, l.operands[i].dims()); }),
              "NONCONST operand " + std::to_string(i) + " (" + name + "): is computed, not constant");
  }
}
TEST(KerasLstmRule, RefusesAKernelForOtherUnits) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[3] = F32({3, 12}, FBX_TENSOR_CONST); }),
            "SHAPE operand 3 (kernel): has shape [3,12], but 4 units need 16 columns");
}
TEST(KerasLstmRule, RefusesAKernelForOtherFeatures) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[3] = F32({7, 16}, FBX_TENSOR_CONST); }),
            "SHAPE operand 3 (kernel): has shape [7,16], but the inputs have 3 features");
}
TEST(KerasLstmRule, RefusesARecurrentKernelThatIsNotFourGates) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[4] = F32({4, 12}, FBX_TENSOR_CONST); }),
            "SHAPE operand 4 (recurrent_kernel): has shape [4,12], but 4 units need 16 columns");
}
TEST(KerasLstmRule, RefusesALayerWithoutUnits) {
  EXPECT_THAT(Refusal([](Lstm& l) { l.operands[4] = F32({0, 0}, FBX_TENSOR_CONST); }),
              HasSubstr("has no units"));
}
TEST(KerasLstmRule, RefusesAnotherBias) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[5] = F32({8}, FBX_TENSOR_CONST); }),
            "SHAPE operand 5 (bias): has shape [8], but 4 units need 16 values");
}
TEST(KerasLstmRule, RefusesStatesOfOtherUnits) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[1] = F32({2, 5}); }),
            "SHAPE operand 1 (init_h): has shape [2,5], but there are 4 units");
}
TEST(KerasLstmRule, RefusesStatesOfAnotherBatch) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[2] = F32({1, 4}); }),
            "SHAPE operand 2 (init_c): has shape [1,4], but the batch is 2");
}
TEST(KerasLstmRule, RefusesASequenceOfAnotherLength) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.results[1] = F32({2, 4, 4}).Uses(1); }),
            "SHAPE result 1 (sequence): has shape [2,4,4], but the inputs have 5 steps");
}
TEST(KerasLstmRule, RefusesAReadSequenceThatMayBeTheLastStepOnly) {
  EXPECT_THAT(Refusal([](Lstm& l) { l.results[1] = F32({2, -1, 4}).Uses(1); }),
              StartsWith("SHAPE result 1 (sequence): is of unknown"));
  EXPECT_EQ(Refusal([](Lstm& l) { l.results[1] = F32({2, -1, 4}).Uses(0); }), "");
}

TEST(KerasLstmRule, ReportsAnAttributeOfAnotherKind) {
  EXPECT_THAT(Refusal([](Lstm& l) { l.attrs["time_major"] = std::string("yes"); }),
              HasSubstr("error FAIL attr time_major"));
}

}  // namespace
}  // namespace fusebox::testing
