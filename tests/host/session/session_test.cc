// SPDX-License-Identifier: Apache-2.0
#include "host/session.h"

#include <gmock/gmock.h>

#include <thread>

#include "tests/host/run/graphs.h"
#include "tests/testing/on_device.h"

namespace fusebox {
namespace {

using run::Custom;
using run::F32;
using run::Floats;
using run::FloatsOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::shared_ptr<const Model> ModelOf(std::unique_ptr<Module> module) {
  module->source = "test.tflite";
  auto model = Model::FromModule(std::move(module), {.registry = run::TestRegistry()});
  EXPECT_TRUE(model) << model.error().message;
  return *model;
}

// x[?,2] -> FULLY_CONNECTED with RELU and a bias.
std::unique_ptr<Module> Dense() {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(F32({-1, 2}), "x");
  const ValueId weights = f.AddConst<float>(DType::kF32, {3, 2}, {1, 0, 0, 1, -1, -1});
  const ValueId bias = f.AddConst<float>(DType::kF32, {3}, {10, 20, 0});
  Attrs attrs;
  attrs.Set("fused_activation_function", "RELU");
  f.outputs = {f.AddNode(Op::kFullyConnected, {x, weights, bias}, {F32({-1, 3})}, attrs).results[0]};
  module->signatures = {{"serving_default", "main", {"features"}, {"scores"}}};
  return module;
}

Tensor Rows(std::vector<float> values) {
  return {F32({static_cast<int64_t>(values.size() / 2), 2}), Buffer::Of<float>(values)};
}

std::unique_ptr<Session> SessionOf(std::unique_ptr<Module> module) {
  auto session = Session::Create(ModelOf(std::move(module)));
  EXPECT_TRUE(session) << session.error().message;
  return *std::move(session);
}

TEST(Session, RunsAFullyConnectedLayerForAnyBatch) {
  const auto session = SessionOf(Dense());
  EXPECT_EQ(session->inputs()[0].name, "features");
  EXPECT_EQ(session->outputs()[0].name, "scores");
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(session->SetInput(0, Rows({1, 2})));
    ASSERT_TRUE(session->Run());
    EXPECT_THAT(FloatsOf(*session->output(0)), ElementsAre(11, 22, 0));
    ASSERT_TRUE(session->SetInput(0, Rows({1, 2, -50, 3})));
    ASSERT_TRUE(session->Run());
    EXPECT_EQ(session->output(0)->type, F32({2, 3}));
    EXPECT_THAT(FloatsOf(*session->output(0)), ElementsAre(11, 22, 0, 0, 23, 47));
  }
}

// The reshaped value shares the memory of the layer's, which is of another rank.
TEST(Session, GivesAnOutputThatSharesMemoryItsOwnDims) {
  auto module = Dense();
  Function& f = *module->functions[0];
  Attrs attrs;
  attrs.Set("new_shape", std::vector<int64_t>{-1, 1, 3, 1});
  f.outputs = {f.AddNode(Op::kReshape, {f.outputs[0]}, {F32({-1, 1, 3, 1})}, attrs).results[0]};
  const auto session = SessionOf(std::move(module));
  ASSERT_TRUE(session->SetInput(0, Rows({1, 2, -50, 3})));
  ASSERT_TRUE(session->Run());
  EXPECT_EQ(session->output(0)->type.shape, Shape({2, 1, 3, 1}));
}

TEST(Session, RunsAnEmptyBatch) {
  const auto session = SessionOf(Dense());
  ASSERT_TRUE(session->SetInput(0, {F32({0, 2}), Buffer::Copy({})}));
  const Status status = session->Run();
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(session->output(0)->type, F32({0, 3}));
}

TEST(Session, FillsAnInputInPlace) {
  const auto session = SessionOf(Dense());
  EXPECT_FALSE(session->InputData(0)) << "its batch is not known yet";
  ASSERT_TRUE(session->Resize(0, {1, 2}));
  const auto data = session->InputData(0);
  ASSERT_EQ(data->size(), 8u);
  const float values[] = {1, 1};
  std::copy_n(reinterpret_cast<const std::byte*>(values), 8, data->data());
  ASSERT_TRUE(session->Run());
  EXPECT_THAT(FloatsOf(*session->output(0)), ElementsAre(11, 21, 0));
}

TEST(Session, TakesDimsThatTheModelDoesNotDeclareOnceResized) {
  auto module = Dense();
  Function& f = *module->functions[0];
  f.value(f.inputs[0]).type = F32({1, 2});
  f.value(f.outputs[0]).type = F32({1, 3});
  const auto session = SessionOf(std::move(module));
  EXPECT_THAT(session->SetInput(0, Rows({1, 2, -50, 3})).error().message, HasSubstr("expected f32[1,2]"));
  ASSERT_TRUE(session->Resize(0, {2, 2}));
  EXPECT_EQ(session->inputs()[0].type, F32({2, 2}));
  ASSERT_TRUE(session->SetInput(0, Rows({1, 2, -50, 3})));
  ASSERT_TRUE(session->Run());
  EXPECT_EQ(session->output(0)->type, F32({2, 3}));
  EXPECT_THAT(FloatsOf(*session->output(0)), ElementsAre(11, 22, 0, 0, 23, 47));
  EXPECT_FALSE(session->SetInput(0, Rows({1, 2})));
  ASSERT_TRUE(session->Resize(0, {1, 2}));
  ASSERT_TRUE(session->SetInput(0, Rows({1, 2})));
  ASSERT_TRUE(session->Run());
  EXPECT_THAT(FloatsOf(*session->output(0)), ElementsAre(11, 22, 0));
  ASSERT_TRUE(session->Resize(0, {1, 3}));
  EXPECT_THAT(session->Prepare().error().message, HasSubstr("FULLY_CONNECTED"));
}

TEST(Session, NamesAnInputOfTheWrongTypeAndBothTypes) {
  const auto session = SessionOf(Dense());
  const Status status = session->SetInput(0, Floats({1, 2}));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kInvalid);
  for (const char* part : {"test.tflite", "features", "f32[2]", "f32[?,2]"})
    EXPECT_THAT(status.error().message, HasSubstr(part));
  const Tensor integers{{DType::kI32, {1, 2}}, Buffer::Of<int32_t>(std::vector<int32_t>{1, 2})};
  EXPECT_THAT(session->SetInput(0, integers).error().message, HasSubstr("i32[1,2]"));
  EXPECT_FALSE(session->SetInput(0, {F32({1, 3}), Buffer::Of<float>(std::vector<float>{1, 2, 3})}));
  EXPECT_FALSE(session->SetInput(0, {F32({2, 2}), Buffer::Of<float>(std::vector<float>{1, 2, 3})}))
      << "too few bytes";
  EXPECT_FALSE(session->Resize(0, {2, 1, 2}));
  EXPECT_FALSE(session->Resize(0, Shape()));
  EXPECT_FALSE(session->Resize(0, {int64_t{1} << 62, 2}));
  EXPECT_FALSE(session->SetInput(1, Rows({1, 2})));
  EXPECT_FALSE(session->SetInput(-1, Rows({1, 2})));
}

TEST(Session, RefusesStringsThatDoNotFitTheirTensor) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  f.outputs = {f.AddInput({DType::kString, {2}})};
  const auto session = SessionOf(std::move(module));
  const auto strings = [](std::vector<int32_t> words) {
    return Tensor{{DType::kString, {2}}, Buffer::Of<int32_t>(words)};
  };
  EXPECT_TRUE(session->SetInput(0, strings({2, 16, 16, 16})));
  ASSERT_TRUE(session->Run());
  EXPECT_EQ(session->output(0)->data.size(), 16u);
  for (const auto& bad :
       {std::vector<int32_t>{}, {2}, {3, 16, 16, 16}, {2, 16, 15, 16}, {2, 16, 16, 17}, {2, -1, 16, 16}}) {
    EXPECT_FALSE(session->SetInput(0, strings(bad)));
  }
}

TEST(Session, SaysWhatIsMissingBeforeARun) {
  const auto session = SessionOf(Dense());
  EXPECT_THAT(session->Run().error().message, HasSubstr("features"));
  EXPECT_THAT(session->output(0).error().message, HasSubstr("no output yet; call Run first"));
  EXPECT_FALSE(session->output(5));
  EXPECT_THAT(session->FindInput("feature").error().message, HasSubstr("features"));
  EXPECT_EQ(*session->FindInput("features"), 0);
}

TEST(Session, RefusesBoolsThatAreNeitherTrueNorFalse) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  f.outputs = {f.AddInput({DType::kBool, {3}})};
  const auto session = SessionOf(std::move(module));
  const auto bools = [](std::vector<uint8_t> bytes) {
    return Tensor{{DType::kBool, {3}}, Buffer::Of<uint8_t>(bytes)};
  };
  EXPECT_TRUE(session->SetInput(0, bools({0, 1, 1})));
  const Status status = session->SetInput(0, bools({0, 1, 2}));
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("has bools that are neither 0 nor 1"));
}

TEST(Session, RefusesAnUnknownSignatureAndSillyThreads) {
  const auto model = ModelOf(Dense());
  EXPECT_THAT(Session::Create(model, {.signature = "train"}).error().message, HasSubstr("serving_default"));
  EXPECT_FALSE(Session::Create(model, {.threads = -1}));
  EXPECT_FALSE(Session::Create(nullptr));
}

TEST(Session, PreparesWithoutRunning) {
  const auto session = SessionOf(Dense());
  ASSERT_TRUE(session->Resize(0, {4, 2}));
  const Status status = session->Prepare();
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_THAT(session->Explain(), HasSubstr("FULLY_CONNECTED"));
  EXPECT_THAT(session->Explain(), HasSubstr("f32[4,3]"));
}

TEST(Session, KeepsStateAcrossSignatures) {
  auto module = std::make_unique<Module>();
  const auto handle = [](Function& f) {
    Attrs attrs;
    attrs.Set("shared_name", "v");
    return f.AddNode(Op::kVarHandle, {}, {{DType::kResource, Shape(std::vector<int64_t>())}}, attrs)
        .results[0];
  };
  Function& write = module->Add("write");
  write.AddNode(Op::kAssignVariable, {handle(write), write.AddInput(F32({1}))}, {});
  Function& read = module->Add("read");
  read.outputs = {read.AddNode(Op::kReadVariable, {handle(read)}, {F32({1})}).results[0]};
  module->signatures = {{"write", "write", {"v"}, {}}, {"read", "read", {}, {"v"}}};
  auto session = Session::Create(ModelOf(std::move(module)), {.signature = "write"});
  ASSERT_TRUE(session);
  ASSERT_TRUE((*session)->SetInput(0, Floats({42})));
  ASSERT_TRUE((*session)->Run());
  ASSERT_TRUE((*session)->SelectSignature("read"));
  ASSERT_TRUE((*session)->Run());
  EXPECT_THAT(FloatsOf(*(*session)->output(0)), ElementsAre(42));
  (*session)->ResetState();
  EXPECT_FALSE((*session)->Run()) << "nothing is assigned any more";
}

TEST(Session, TwoSessionsOfOneModelRunAtTheSameTime) {
  const auto model = ModelOf(Dense());
  const auto work = [&](float x) {
    auto session = Session::Create(model, {.threads = 2});
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE((*session)->SetInput(0, Rows({x, x})));
      ASSERT_TRUE((*session)->Run());
      ASSERT_THAT(FloatsOf(*(*session)->output(0)), ElementsAre(10 + x, 20 + x, 0));
    }
  };
  std::thread other(work, 1.0f);
  work(2.0f);
  other.join();
}

TEST(Model, NamesTheFileThatIsNotThere) {
  const auto model = Model::Open("/nowhere/model.tflite", {.registry = run::TestRegistry()});
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("/nowhere/model.tflite"));
}

TEST(Model, ListsWhoRunsEachNode) {
  const auto rows = ModelOf(Dense())->placements();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].op, "FULLY_CONNECTED");
  EXPECT_EQ(rows[0].runner, "fusebox.cpu");
}

std::vector<std::string> Runnable(const Model& model) {
  std::vector<std::string> keys;
  for (const Model::Entry& entry : model.entries())
    if (entry.status) keys.push_back(entry.signature);
  return keys;
}

TEST(Session, ASignatureThatCannotRunFailsAlone) {
  const auto model = ModelOf(fixtures::OnDevice::Make({"save", "infer", "restore", "train"}));
  EXPECT_THAT(Runnable(*model), ElementsAre("infer", "train"));
  for (const std::string key : {"", "save"}) {
    const auto none = Session::Create(model, {.signature = key});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, Code::kUnsupported);
    EXPECT_THAT(
        none.error().message,
        HasSubstr("test.tflite: signature save cannot run: function save_function: node 3 FlexSaveV2"));
    EXPECT_THAT(none.error().message, HasSubstr("; signatures that can run: infer, train"));
  }
  // The ops of a signature that failed are in no list of who runs what.
  for (const Placement& row : model->placements()) EXPECT_THAT(row.op, Not(HasSubstr("Flex")));
}

// Of one session, with one variable, which the shared initializer has set once.
TEST(Session, SignaturesThatRunShareVariables) {
  const auto model = ModelOf(fixtures::OnDevice::Make({"restore", "save", "train", "infer"}));
  auto session = Session::Create(model, {.signature = "train"});
  ASSERT_TRUE(session) << session.error().message;
  ASSERT_TRUE((*session)->SetInput(0, Floats({10, 20})));
  ASSERT_TRUE((*session)->Run());
  EXPECT_THAT(FloatsOf(*(*session)->output(0)), ElementsAre(12, 23));
  EXPECT_FALSE((*session)->SelectSignature("restore"));
  EXPECT_EQ((*session)->signature(), "train");
  ASSERT_TRUE((*session)->SelectSignature("infer"));
  ASSERT_TRUE((*session)->SetInput(0, Floats({1, 2})));
  ASSERT_TRUE((*session)->Run());
  EXPECT_THAT(FloatsOf(*(*session)->output(0)), ElementsAre(12, 46));
}

TEST(Session, AModelOfWhichNothingRunsIsNoModel) {
  auto module = fixtures::OnDevice::Make({"save", "restore"});
  module->source = "test.tflite";
  const auto model = Model::FromModule(std::move(module), {.registry = run::TestRegistry()});
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("test.tflite: function save_function: node 3 FlexSaveV2"));
  EXPECT_THAT(model.error().message, HasSubstr("translate the file with `fusebox convert` first"));
}

// The main subgraph is what runs without a signature; no other one is looked at.
TEST(Session, SubgraphsThatNothingReachesDoNotMatter) {
  auto module = fixtures::OnDevice::Make({"infer", "save"});
  module->signatures.clear();
  const auto model = ModelOf(std::move(module));
  ASSERT_EQ(model->entries().size(), 1u);
  EXPECT_EQ(model->entries()[0].function, "infer_function");
  EXPECT_TRUE(Session::Create(model));
  auto other = fixtures::OnDevice::Make({"save", "infer"});
  other->signatures.erase(other->signatures.begin());
  const auto main_fails = ModelOf(std::move(other));
  EXPECT_THAT(Runnable(*main_fails), ElementsAre("infer"));
  EXPECT_TRUE(Session::Create(main_fails));
}

// The kernels of a signature that fails go with it; what the two share is made once.
TEST(Session, AKernelThatCannotBeMadeFailsItsSignatureAlone) {
  auto module = std::make_unique<Module>();
  Attrs fail, call;
  fail.Set("fail", 1);
  call.Set("subgraph", FunctionRef{"shared"});
  for (const char* key : {"bad", "good"}) {
    Function& f = module->Add(key);
    const ValueId shared = f.AddNode(Op::kCall, {f.AddInput(F32({2}))}, {F32({2})}, call).results[0];
    const ValueId own = Custom(f, "test.made", {shared}, F32({2}));
    f.outputs = {std::string(key) == "bad" ? Custom(f, "test.made", {own}, F32({2}), fail) : own};
    module->signatures.push_back({key, key, {"x"}, {"y"}});
  }
  Function& shared = module->Add("shared");
  shared.outputs = {Custom(shared, "test.made", {shared.AddInput(F32({2}))}, F32({2}))};
  {
    const auto model = ModelOf(std::move(module));
    EXPECT_EQ(test_made, 2);
    EXPECT_THAT(Runnable(*model), ElementsAre("good"));
    EXPECT_THAT(model->entries()[0].status.error().message, HasSubstr("cannot be made"));
    const auto session = Session::Create(model, {.signature = "good"});
    ASSERT_TRUE(session) << session.error().message;
    ASSERT_TRUE((*session)->SetInput(0, Floats({1, 2})));
    ASSERT_TRUE((*session)->Run());
    EXPECT_THAT(FloatsOf(*(*session)->output(0)), ElementsAre(1, 2));
  }
  EXPECT_EQ(test_made, 0);
}

// What a signature that fails has reached is there for the next one.
TEST(Session, AFunctionThatAFailingSignatureSharesRuns) {
  auto module = fixtures::OnDevice::Make({"save", "infer"});
  Function& save = *module->Find("save_function");
  Attrs call;
  call.Set("subgraph", FunctionRef{"infer_function"});
  const ValueId x = save.AddConst<float>(DType::kF32, {2}, {1, 2});
  save.AddNode(Op::kCall, {x}, {F32({2})}, call);
  std::rotate(save.nodes.begin(), save.nodes.end() - 1, save.nodes.end());
  const auto session = Session::Create(ModelOf(std::move(module)), {.signature = "infer"});
  ASSERT_TRUE(session) << session.error().message;
  ASSERT_TRUE((*session)->SetInput(0, Floats({10, 100})));
  ASSERT_TRUE((*session)->Run());
  EXPECT_THAT(FloatsOf(*(*session)->output(0)), ElementsAre(20, 300));
}

}  // namespace
}  // namespace fusebox
