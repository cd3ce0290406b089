// SPDX-License-Identifier: Apache-2.0
// Every real Keras file that holds a whole model converts; what comes of it runs here as in stock TFLite and
// as in TensorFlow.js.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

#include "tests/peers/tfjs.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

using ::testing::HasSubstr;

// What is no whole model of known layers, and what must be said of it.
const std::map<std::string, std::string> kRefused = {
    {"breizhn__DTLN/pretrained_model/DTLN_norm_500h.h5", "weights only, no model"},
    {"breizhn__DTLN/pretrained_model/model.h5", "weights only, no model"},
    {"pre_pr22362_nested_container.keras", "legacy_nested_container>NestedDenseModel"},
};

const std::string* Expected(const std::string& name) {
  for (const auto& [part, why] : kRefused) {
    if (name.ends_with(part)) return &why;
  }
  return nullptr;
}

std::vector<std::string> KerasFiles(const std::string& root) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string ending = entry.path().extension();
    if (ending == ".h5" || ending == ".hdf5" || ending == ".keras")
      names.push_back(std::filesystem::relative(entry.path(), root));
  }
  std::ranges::sort(names);
  return names;
}

// "equal", or what differs or could not be done.
std::string Verdict(const Tensors& ours, const Result<Tensors>& theirs) {
  if (!theirs) return theirs.error().message;
  const std::string difference = Difference(ours, *theirs, 1e-5, 1e-4);
  return difference.empty() ? "equal" : "differs: " + difference;
}

Result<Tensors> InStock(const std::string& path, const Tensors& inputs) {
  FUSEBOX_ASSIGN(const auto stock, Stock::Open(path));
  return stock->Invoke(inputs);
}

Result<Tensors> InTfjs(const std::string& file, const Tensors& inputs) {
  FUSEBOX_ASSIGN(const KerasModel model, ReadKeras(file, inputs));
  FUSEBOX_ASSIGN(const auto results, RunTfjs({model}));
  return results.at(0);
}

TEST(KerasModels, AllConvertAndRunAsInStockTfliteAndTfjs) {
  FUSEBOX_NEEDS_STOCK();
  FUSEBOX_NEEDS_TFJS();
  FUSEBOX_NEEDS_MODEL(root, "keras");
  const auto registry = Plugins();
  ASSERT_TRUE(registry) << registry.error().message;
  const auto names = KerasFiles(root);
  EXPECT_EQ(names.size(), 25u);
  for (size_t i = 0; i < names.size(); ++i) {
    SCOPED_TRACE(names[i]);
    converter::Options options;
    options.batch = 1;
    options.registry = *registry;
    const auto written = Convert(root + "/" + names[i], options, std::to_string(i));
    if (const std::string* why = Expected(names[i])) {
      ASSERT_FALSE(written) << "converts, though it is listed as refused";
      EXPECT_THAT(written.error().message, HasSubstr(*why));
      std::cout << "refused    " << names[i] << ": " << written.error().message << "\n";
      continue;
    }
    ASSERT_TRUE(written) << written.error().message;
    const auto session = Open(written->path, *registry);
    ASSERT_TRUE(session) << session.error().message;
    const Tensors inputs = RandomInputs(**session, 7);
    const auto ours = Invoke(**session, inputs);
    ASSERT_TRUE(ours) << ours.error().message;
    const std::string stock = Verdict(*ours, InStock(written->path, inputs));
    const std::string tfjs = Verdict(*ours, InTfjs(root + "/" + names[i], inputs));
    int ops = 0;
    for (const auto& [name, count] : written->report.ops_after) ops += count;
    std::cout << "converted  " << names[i] << ": " << ops << " ops; stock: " << stock << "; tfjs: " << tfjs
              << "\n";
    EXPECT_EQ(stock, "equal");
    EXPECT_EQ(tfjs, "equal");
  }
}

// The official file holds WHILE loops and Flex ops; converted again, it is the same fused model.
TEST(KerasModels, AFlexFileThatIsConvertedGivesWhatItsKerasFileGives) {
  FUSEBOX_NEEDS_MODEL(keras, "keras/mahmuudtolba__Human-Action-Recognition/action.h5");
  FUSEBOX_NEEDS_MODEL(flex, "tflite/mahmuudtolba__Human-Action-Recognition/action.tflite");
  const auto registry = Plugins();
  ASSERT_TRUE(registry) << registry.error().message;
  std::vector<std::unique_ptr<Session>> sessions;
  for (auto conversion : {converter::FromKeras(keras), converter::FromTflite(flex)}) {
    conversion.options.registry = *registry;
    conversion.options.batch = 1;
    const auto converted = conversion.Convert();
    ASSERT_TRUE(converted) << converted.error().message;
    EXPECT_EQ(OpsOf(*converted->module)["UNIDIRECTIONAL_SEQUENCE_LSTM"], 2);
    const std::string path = TestDir() + "/" + std::to_string(sessions.size()) + ".tflite";
    ASSERT_TRUE(converted->Write(path));
    auto session = Open(path, *registry);
    ASSERT_TRUE(session) << session.error().message;
    sessions.push_back(std::move(*session));
  }
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Tensors inputs = RandomInputs(*sessions[0], seed);
    const auto a = Invoke(*sessions[0], inputs), b = Invoke(*sessions[1], inputs);
    ASSERT_TRUE(a && b);
    EXPECT_EQ(Difference(*a, *b, 1e-5, 1e-5), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace fusebox::testing
