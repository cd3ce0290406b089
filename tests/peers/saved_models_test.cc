// SPDX-License-Identifier: Apache-2.0
// Every real SavedModel converts, and what comes of it runs here as in stock TFLite; or it is known why not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

#include "host/graph/values.h"
#include "host/tflite/tflite.h"
#include "tests/peers/tfjs_graph.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What cannot be converted, and what must be said of it.
const std::map<std::string, std::string> kRefused = {
    {"control_flow_v1_saved_model", "node Merge (Merge)"},  // depends on the order of execution
    {"mlia-bioinspired-temporal-data", "variables.data"},   // its variables are missing
    {"trainer/keras/Format-Serving",
     "op ParseExampleV2: it parses serialized examples"},  // fed with strings, and nothing else
};

const std::string* Expected(const std::string& name) {
  for (const auto& [part, why] : kRefused) {
    if (name.find(part) != std::string::npos) return &why;
  }
  return nullptr;
}

// Use an op that stock TFLite 2.9 is too old for.
constexpr std::string_view kNewer[] = {"DTLN"};  // ATAN2

bool IsNewer(const std::string& name) {
  return std::ranges::any_of(kNewer, [&](std::string_view part) { return name.find(part) != name.npos; });
}

// Of an input whose rank is open, one element.
Tensors Inputs(const Session& session) {
  Tensors inputs;
  for (size_t i = 0; i < session.inputs().size(); ++i) {
    Type type = session.inputs()[i].type;
    if (!type.shape.ranked()) type.shape = Shape({1});
    inputs.push_back(Random(type, 3 + i));
  }
  return inputs;
}

// "equal", or what differs or could not be done. `stock_path` is the file that stock TFLite gets: `path`
// itself where all ops are builtin.
std::string BesideStock(const std::string& path, const std::string& stock_path,
                        const std::shared_ptr<Registry>& registry) {
  const auto session = Open(path, registry);
  if (!session) return "here: " + session.error().message;
  const Tensors inputs = Inputs(**session);
  const auto ours = Invoke(**session, inputs);
  if (!ours) return "here: " + ours.error().message;
  const auto stock = Stock::Open(stock_path);
  if (!stock) return "stock: " + stock.error().message;
  const auto theirs = (*stock)->Invoke(inputs);
  if (!theirs) return "stock: " + theirs.error().message;
  const std::string difference = Difference(*ours, *theirs, 1e-5, 1e-4);
  return difference.empty() ? "equal" : "differs: " + difference;
}

bool HasOwnOps(const converter::Report& report) {
  return std::ranges::any_of(report.ops_after,
                             [](const auto& op) { return op.first.starts_with("fusebox."); });
}

// For stock TFLite, which does not know fusebox.gru and fusebox.lstm.
Result<Written> ConvertToBuiltins(const std::string& model, converter::Options options,
                                  const std::string& tag) {
  Config config = PluginConfig();
  for (const char* op : {"gru", "lstm"}) config.options["fusebox.rnn"].Set(op, std::string("builtin"));
  FUSEBOX_ASSIGN(options.registry, Registry::Create(config));
  return Convert(model, options, tag + "-builtin");
}

std::vector<std::string> SavedModelsIn(const std::string& root) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().filename() == "saved_model.pb")
      names.push_back(std::filesystem::relative(entry.path().parent_path(), root));
  }
  std::ranges::sort(names);
  return names;
}

TEST(SavedModels, AllConvertAndRunAsInStockTflite) {
  FUSEBOX_NEEDS_STOCK();
  FUSEBOX_NEEDS_MODEL(root, "savedmodel");
  const auto registry = Plugins();
  ASSERT_TRUE(registry) << registry.error().message;
  const std::vector<std::string> names = SavedModelsIn(root);
  EXPECT_GT(names.size(), 20u);
  for (size_t i = 0; i < names.size(); ++i) {
    SCOPED_TRACE(names[i]);
    converter::Options options;
    options.batch = 1;
    options.registry = *registry;
    const auto written = Convert(root + "/" + names[i], options, std::to_string(i));
    const std::string* const refused = Expected(names[i]);
    if (!written) {
      std::cout << "refused    " << names[i] << ": " << written.error().message << "\n";
      if (refused != nullptr) {
        EXPECT_THAT(written.error().message, HasSubstr(*refused));
      } else ADD_FAILURE() << written.error().message;
      continue;
    }
    EXPECT_EQ(refused, nullptr) << "converts, though it is listed as refused";
    std::string stock_path = written->path;
    if (HasOwnOps(written->report)) {
      const auto builtins = ConvertToBuiltins(root + "/" + names[i], options, std::to_string(i));
      ASSERT_TRUE(builtins) << builtins.error().message;
      stock_path = builtins->path;
    }
    const std::string beside = BesideStock(written->path, stock_path, *registry);
    std::cout << "converted  " << names[i] << ": " << beside;
    if (stock_path != written->path)
      std::cout << " (stock TFLite runs the form with options gru and lstm: builtin)";
    for (const auto& [key, why] : written->report.refused) std::cout << "; without signature " << key;
    std::cout << "\n";
    if (IsNewer(names[i])) {
      EXPECT_THAT(beside, HasSubstr("newer model"));
    } else EXPECT_EQ(beside, "equal");
  }
}

// The one signature takes serialized examples; what it calls once they are parsed can be converted alone.
TEST(SavedModels, FedWithStringsConvertByAFunctionOfTensors) {
  FUSEBOX_NEEDS_STOCK();
  FUSEBOX_NEEDS_MODEL(model,
                      "savedmodel/tensorflow__tfx/tfx/components/testdata/trainer/keras/Format-Serving");
  const auto registry = Plugins();
  ASSERT_TRUE(registry) << registry.error().message;
  converter::Options options;
  options.batch = 1;
  options.registry = *registry;
  const auto refused = Convert(model, options, "refused");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("signature serving_default"), HasSubstr("functions for --signature: "),
                    HasSubstr(" _wrapped_model, ")));
  options.signatures = {"_wrapped_model"};
  const auto written = Convert(model, options, "function");
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(BesideStock(written->path, written->path, *registry), "equal");
}

// What TensorFlow.js cannot run, and what it says of it.
const std::map<std::string, std::string> kNotInTfjs = {
    {"DTLN", "Unknown op 'Angle'"},
};

// "equal", or what differs or could not be done. TensorFlow.js gives f32 whatever the type.
std::string BesideGraph(const std::string& model, const std::string& key, Session& session) {
  const Tensors inputs = Inputs(session);
  const auto ours = Invoke(session, inputs);
  if (!ours) return "here: " + ours.error().message;
  Tensors as_floats;
  for (const Tensor& tensor : *ours) {
    const std::vector<double> values = ToDoubles(tensor);
    as_floats.push_back(Floats(tensor.type.shape, {values.begin(), values.end()}));
  }
  const auto theirs = RunTfjsGraph(model, key, inputs);
  if (!theirs) return theirs.error().message;
  const std::string difference = Difference(as_floats, *theirs, 1e-5, 1e-4);
  return difference.empty() ? "equal" : "differs: " + difference;
}

// Every signature that converts, against its own graph as the file has it.
TEST(SavedModels, GiveWhatTheirGraphsGiveInTfjs) {
  FUSEBOX_NEEDS_TFJS();
  FUSEBOX_NEEDS_MODEL(root, "savedmodel");
  const auto registry = Plugins();
  ASSERT_TRUE(registry) << registry.error().message;
  size_t compared = 0;
  for (const std::string& name : SavedModelsIn(root)) {
    if (Expected(name) != nullptr) continue;
    converter::Options options;
    options.batch = 1;
    options.registry = *registry;
    const auto written = Convert(root + "/" + name, options, "graph");
    ASSERT_TRUE(written) << written.error().message;
    const auto module = tflite::ReadFile(written->path);
    ASSERT_TRUE(module) << module.error().message;
    std::vector<std::unique_ptr<Session>>
        sessions;  // the folder of the file is emptied for each run of TensorFlow.js
    for (const Signature& signature : (*module)->signatures) {
      auto session = Open(written->path, *registry, signature.key);
      ASSERT_TRUE(session) << session.error().message;
      sessions.push_back(std::move(*session));
    }
    for (size_t i = 0; i < sessions.size(); ++i) {
      const std::string& key = (*module)->signatures[i].key;
      SCOPED_TRACE(name + " " + key);
      const std::string beside = BesideGraph(root + "/" + name, key, *sessions[i]);
      std::cout << "graph  " << name << " " << key << ": " << beside << "\n";
      ++compared;
      std::string expected = "equal";
      for (const auto& [part, why] : kNotInTfjs)
        if (name.find(part) != std::string::npos) expected = why;
      EXPECT_THAT(beside, HasSubstr(expected));
    }
  }
  EXPECT_GE(compared, 22u);
}

}  // namespace
}  // namespace fusebox::testing
