// SPDX-License-Identifier: Apache-2.0
// Reads of resource variables that share the memory of the variable, and those that must be copies.
#include <gmock/gmock.h>

#include "host/graph/rewriter.h"
#include "host/session.h"

namespace fusebox::state_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const Type kTwo{DType::kF32, Shape{2}};

// A function over the variables "a" and "b", both [1, 2] at first, with one output.
class Variables {
 public:
  Variables() : f_(&module_->Add("main")) {
    module_->source = "variables.tflite";
    for (const char* name : {"a", "b"}) {
      Variable& variable = module_->variables.emplace_back();
      variable.name = name;
      variable.type = kTwo;
      variable.initial = Buffer::Of<float>(std::vector<float>{1, 2});
    }
  }
  Function& main() { return *f_; }
  Module& module() { return *module_; }

  static ValueId Handle(Function& f, const char* name) {
    return f
        .AddNode(Op::kVarHandle, {}, {{DType::kResource, Shape::Scalar()}}, MakeAttrs("shared_name", name))
        .results[0];
  }
  static void Assign(Function& f, const char* name, ValueId value) {
    f.AddNode(Op::kAssignVariable, {Handle(f, name), value}, {});
  }
  ValueId Read(const char* name) {
    return f_->AddNode(Op::kReadVariable, {Handle(*f_, name)}, {kTwo}).results[0];
  }
  ValueId Negative(ValueId x) { return f_->AddNode(Op::kNeg, {x}, {kTwo}).results[0]; }
  ValueId Sum(ValueId a, ValueId b) { return f_->AddNode(Op::kAdd, {a, b}, {kTwo}).results[0]; }
  ValueId Constant(std::vector<float> values) {
    return f_->AddConst<float>(DType::kF32, {2}, std::move(values));
  }

  // The function that assigns [5, 5] to "a".
  std::string Setter() {
    Function& f = module_->Add("set");
    Assign(f, "a", f.AddConst<float>(DType::kF32, {2}, {5, 5}));
    return f.name;
  }

  void Open(ValueId output, bool keep_values = false) {
    f_->outputs = {output};
    Config config;
    config.search_default_path = false;
    auto registry = Registry::Create(config);
    ASSERT_TRUE(registry);
    auto model = Model::FromModule(std::move(module_), {.registry = *registry});
    ASSERT_TRUE(model) << model.error().message;
    auto session = Session::Create(*model, {.keep_values = keep_values});
    ASSERT_TRUE(session) << session.error().message;
    session_ = *std::move(session);
  }
  std::vector<float> Run() {
    const Status status = session_->Run();
    EXPECT_TRUE(status) << status.error().message;
    const auto values = session_->output(0)->data.As<float>();
    return {values.begin(), values.end()};
  }
  std::string plan() const { return session_->Explain(); }
  Session& session() { return *session_; }

 private:
  std::unique_ptr<Module> module_ = std::make_unique<Module>();
  Function* f_;
  std::unique_ptr<Session> session_;
};

constexpr char kShared[] = "f32[2] variable";

TEST(VariablesInPlace, AreUpdatedWithoutCopies) {
  Variables v;
  const ValueId sum = v.Sum(v.Read("a"), v.Constant({1, 10}));
  Variables::Assign(v.main(), "a", sum);
  v.Open(v.Sum(sum, v.Constant({100, 100})));
  EXPECT_THAT(v.Run(), ElementsAre(102, 112));
  EXPECT_THAT(v.Run(), ElementsAre(103, 122));
  EXPECT_THAT(v.plan(), HasSubstr(kShared));
  EXPECT_THAT(v.plan(), HasSubstr("ADD             | fusebox.cpu | f32[2] shares value"));
  v.session().ResetState();
  EXPECT_THAT(v.Run(), ElementsAre(102, 112));
}

TEST(VariablesInPlace, AreUpdatedBySeveralNodesBeforeTheAssignment) {
  Variables v;
  const ValueId x = v.Negative(v.Sum(v.Read("a"), v.Constant({1, 1})));
  Variables::Assign(v.main(), "a", x);
  v.Open(v.Sum(x, v.Constant({0, 0})));
  EXPECT_THAT(v.Run(), ElementsAre(-2, -3));
  EXPECT_THAT(v.Run(), ElementsAre(1, 2));
  EXPECT_THAT(v.plan(), HasSubstr(kShared));
}

TEST(VariablesInPlace, DoNotChangeIfAnotherOneIsAssigned) {
  Variables v;
  Variables::Assign(v.main(), "b", v.Negative(v.Read("a")));
  v.Open(v.Sum(v.Read("a"), v.Read("b")));
  EXPECT_THAT(v.Run(), ElementsAre(0, 0));
  EXPECT_THAT(v.Run(), ElementsAre(0, 0));
  EXPECT_THAT(v.plan(), HasSubstr(kShared));
}

TEST(VariablesInPlace, DoNotChangeIfNothingIsAssigned) {
  Variables v;
  v.Open(v.Sum(v.Negative(v.Read("a")), v.Constant({0, 0})));
  EXPECT_THAT(v.Run(), ElementsAre(-1, -2));
  EXPECT_THAT(v.Run(), ElementsAre(-1, -2));
}

TEST(VariablesInPlace, DoNotChangeAfterTheAssignment) {
  Variables v;
  const ValueId sum = v.Sum(v.Read("a"), v.Constant({1, 1}));
  Variables::Assign(v.main(), "a", sum);
  v.Open(v.Sum(v.Negative(sum), v.Constant({0, 0})));
  EXPECT_THAT(v.Run(), ElementsAre(-2, -3));
  EXPECT_THAT(v.Run(), ElementsAre(-3, -4));
}

TEST(VariablesInPlace, AreCopiedIfTheyAreAssignedBeforeTheLastUse) {
  Variables v;
  const ValueId old = v.Read("a");
  Variables::Assign(v.main(), "a", v.Constant({7, 7}));
  v.Open(v.Sum(old, v.Constant({0, 0})));
  EXPECT_THAT(v.Run(), ElementsAre(1, 2));
  EXPECT_THAT(v.Run(), ElementsAre(7, 7));
  EXPECT_THAT(v.plan(), Not(HasSubstr(kShared)));
}

TEST(VariablesInPlace, AreCopiedIfTheyAreReadBeforeTheAssignment) {
  Variables v;
  const ValueId sum = v.Sum(v.Read("a"), v.Constant({1, 1}));
  const ValueId old = v.Read("a");
  Variables::Assign(v.main(), "a", sum);
  v.Open(v.Sum(old, v.Constant({0, 0})));
  EXPECT_THAT(v.Run(), ElementsAre(1, 2));
  EXPECT_THAT(v.Run(), ElementsAre(2, 3));
}

TEST(VariablesInPlace, AreCopiedIfAFunctionMayAssignThem) {
  Variables v;
  const std::string setter = v.Setter();
  const ValueId old = v.Read("a");
  v.main().AddNode(Op::kCallOnce, {}, {}, MakeAttrs("init_subgraph_index", FunctionRef{setter}));
  v.Open(v.Sum(old, v.Constant({0, 0})));
  EXPECT_THAT(v.Run(), ElementsAre(1, 2));
  EXPECT_THAT(v.Run(), ElementsAre(5, 5));
  EXPECT_THAT(v.plan(), Not(HasSubstr(kShared)));
}

TEST(VariablesInPlace, AreCopiedToOutputs) {
  Variables v;
  const ValueId sum = v.Sum(v.Read("a"), v.Constant({1, 1}));
  Variables::Assign(v.main(), "a", sum);
  v.Open(sum);
  EXPECT_THAT(v.Run(), ElementsAre(2, 3));
  EXPECT_THAT(v.Run(), ElementsAre(3, 4));
  EXPECT_THAT(v.plan(), Not(HasSubstr(kShared)));
}

TEST(VariablesInPlace, AreCopiedIfValuesAreKept) {
  Variables v;
  const ValueId old = v.Read("a"), sum = v.Sum(old, v.Constant({1, 1}));
  Variables::Assign(v.main(), "a", sum);
  v.Open(v.Sum(sum, v.Constant({0, 0})), true);
  EXPECT_THAT(v.Run(), ElementsAre(2, 3));
  EXPECT_EQ(v.session().value("main", old)->data.As<float>()[1], 2);
}

TEST(VariablesInPlace, OfAnotherTypeAreRefused) {
  Variables v;
  const ValueId read = v.Read("a");
  Variables::Assign(v.main(), "b", v.main().AddConst<float>(DType::kF32, {3}, {1, 2, 3}));
  v.Open(v.Sum(read, v.Read("b")));
  const Status status = v.session().Run();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("the result is declared f32[2], but the value is f32[3]"));
}

}  // namespace
}  // namespace fusebox::state_test
