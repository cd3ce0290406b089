// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/damaged_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace fusebox::testing {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

CommandResult ConvertDamaged(models::SavedModelBuilder& model, const Damage& damage) {
  tf::SavedModel proto = model.ToProto();
  if (damage) damage(proto);
  const std::string dir = TestDir() + "/model", out = TestDir() + "/none.tflite";
  std::filesystem::remove(out);
  const Status written = models::WriteSavedModel(dir, proto, model.Checkpoint());
  EXPECT_TRUE(written) << written.error().message;
  CommandResult command = Fusebox({"convert", dir, "-o", out});
  EXPECT_EQ(std::filesystem::exists(out), command.status == 0);
  return command;
}

void ExpectRefused(const CommandResult& command, const std::string& place, const std::string& why) {
  EXPECT_EQ(command.status, 2) << command.err;
  EXPECT_THAT(command.err,
              AllOf(HasSubstr("/model"), HasSubstr(place), HasSubstr(why), Not(HasSubstr("internal"))));
}

tf::FunctionDef& FunctionIn(tf::SavedModel& model, const std::string& name) {
  auto& library = *model.mutable_meta_graphs(0)->mutable_graph_def()->mutable_library();
  for (tf::FunctionDef& f : *library.mutable_function())
    if (f.signature().name().starts_with(name)) return f;
  ADD_FAILURE() << "no function " << name;
  return *library.add_function();
}

tf::NodeDef& NodeIn(tf::FunctionDef& f, const std::string& op) {
  for (tf::NodeDef& node : *f.mutable_node_def())
    if (node.op() == op) return node;
  ADD_FAILURE() << "no " << op;
  return *f.add_node_def();
}

}  // namespace fusebox::testing
