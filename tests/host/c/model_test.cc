// SPDX-License-Identifier: Apache-2.0
// Libraries, registries and models through the C API.
#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/host/c/fixture.h"

namespace fusebox::c {
namespace {

using testing::ElementsAre, testing::HasSubstr, testing::StartsWith;

TEST(CLibrary, VersionsAndNames) {
  EXPECT_THAT(fusebox_version(), testing::MatchesRegex("[0-9]+[.][0-9]+[.][0-9]+"));
  EXPECT_EQ(fusebox_c_version(), 65536u);
  EXPECT_EQ(fusebox_abi_version(), 65536u);
  EXPECT_STREQ(fusebox_status_name(FUSEBOX_CANCELLED), "cancelled");
  EXPECT_STREQ(fusebox_status_name(-7), "unknown");
  EXPECT_STREQ(fusebox_dtype_name(FBX_F32), "f32");
  EXPECT_STREQ(fusebox_dtype_name(1000), "none");
  fusebox_text_free(nullptr);
}

TEST(CRegistry, ListsItsPluginsAsJson) {
  const auto report = nlohmann::json::parse(TextOf(
      [](char** text, char** error) { return fusebox_registry_plugins(TestRegistry(), text, error); }));
  ASSERT_EQ(report["plugins"].size(), 1u);
  EXPECT_EQ(report["plugins"][0]["id"], "fusebox.cpu");
  EXPECT_EQ(report["plugins"][0]["state"], "ok");
  EXPECT_EQ(report["plugins"][0]["built_in"], true);
}

std::string CreateSaid(const char* file, const char* config) {
  return Said([&](char** error) {
    fusebox_registry* out = TestRegistry();
    const fusebox_status status = fusebox_registry_create(file, config, &out, error);
    EXPECT_EQ(out, nullptr);
    return status;
  });
}

TEST(CRegistry, RefusesWrongConfigurations) {
  EXPECT_EQ(CreateSaid(nullptr, R"({"plugin": ["x"]})"),
            "invalid: configuration:1:2: plugin: unknown key \"plugin\"; did you mean \"plugins\"?");
  EXPECT_THAT(CreateSaid(nullptr, "{"), StartsWith("invalid: configuration:1:2: "));
  EXPECT_THAT(CreateSaid("/nowhere/fusebox.json", nullptr), HasSubstr("/nowhere/fusebox.json: No such file"));
  EXPECT_THAT(CreateSaid(nullptr, R"({"plugins": ["/nowhere/my_op"]})"), HasSubstr("/nowhere/my_op"));
  EXPECT_EQ(Said([](char** error) { return fusebox_registry_create(nullptr, nullptr, nullptr, error); }),
            "invalid: out is NULL");
}

TEST(CRegistry, KeysOfTheTextReplaceThoseOfTheFile) {
  const std::string file = testing::TempDir() + "/c_api_fusebox.json";
  std::ofstream(file) << R"({"search_default_path": false, "deny": ["fusebox.cpu"]})";
  const auto state = [&](const char* config) {
    fusebox_registry* out = nullptr;
    EXPECT_EQ(fusebox_registry_create(file.c_str(), config, &out, nullptr), FUSEBOX_OK);
    const RegistryHandle registry(out);
    return nlohmann::json::parse(TextOf([&](char** text, char** error) {
      return fusebox_registry_plugins(out, text, error);
    }))["plugins"][0]["state"];
  };
  EXPECT_EQ(state(nullptr), "denied");
  EXPECT_EQ(state(R"({"deny": []})"), "ok");
}

TEST(CRegistry, NullArgumentsAreErrors) {
  char* text = nullptr;
  EXPECT_EQ(Said([&](char** e) { return fusebox_registry_plugins(nullptr, &text, e); }),
            "invalid: registry is NULL");
  EXPECT_EQ(Said([](char** e) { return fusebox_registry_plugins(TestRegistry(), nullptr, e); }),
            "invalid: json is NULL");
  EXPECT_EQ(Said([](char** e) { return fusebox_registry_add_plugin(nullptr, nullptr, nullptr, e); }),
            "invalid: registry is NULL");
  EXPECT_EQ(Said([](char** e) { return fusebox_registry_add_plugin(TestRegistry(), nullptr, nullptr, e); }),
            "invalid: entry is NULL");
  fusebox_registry_free(nullptr);
}

TEST(CModel, OpensAFileAndListsItsSignatures) {
  const std::string path = testing::TempDir() + "/c_api_sum.tflite", bytes = SumModel();
  std::ofstream(path, std::ios::binary) << bytes;
  fusebox_model* model = nullptr;
  char* error = nullptr;
  ASSERT_EQ(fusebox_model_open(path.c_str(), nullptr, TestRegistry(), &model, &error), FUSEBOX_OK) << error;
  const ModelHandle owner(model);
  ASSERT_EQ(fusebox_model_signature_count(model), 2);
  const char* why = "";
  EXPECT_STREQ(fusebox_model_signature(model, 1, &why), "negate");
  EXPECT_EQ(why, nullptr);
  EXPECT_EQ(fusebox_model_signature(model, 2, nullptr), nullptr);
  EXPECT_EQ(fusebox_model_signature(model, -1, nullptr), nullptr);
  EXPECT_EQ(fusebox_model_signature(nullptr, 0, &why), nullptr);
  EXPECT_EQ(fusebox_model_signature_count(nullptr), -1);
  const auto report = nlohmann::json::parse(
      TextOf([&](char** text, char** e) { return fusebox_model_report(model, text, e); }));
  EXPECT_EQ(report["name"], path);
  EXPECT_EQ(report["signatures"][0]["key"], "add");
  EXPECT_EQ(report["signatures"][0]["can_run"], true);
  EXPECT_EQ(report["placements"][0]["op"], "ABS");
  EXPECT_EQ(report["placements"][0]["runner"], "fusebox.cpu");
}

std::string OpenSaid(const std::string& bytes, const char* options) {
  return Said([&](char** error) {
    fusebox_model* out = nullptr;
    const auto status =
        fusebox_model_from_copy(bytes.data(), bytes.size(), options, TestRegistry(), &out, error);
    fusebox_model_free(out);
    return status;
  });
}

TEST(CModel, OptionsAreChecked) {
  const std::string sum = SumModel();
  EXPECT_EQ(OpenSaid(sum, R"({"fuze": true})"),
            "invalid: model options:1:2: fuze: unknown key \"fuze\"; did you mean \"fuse\"?");
  EXPECT_EQ(OpenSaid(sum, R"({"fuse": 1})"), "invalid: model options:1:2: fuse: expected boolean, not 1");
  EXPECT_EQ(OpenSaid(sum, R"({"delegates": [{"name": "nobody"}]})").substr(0, 8), "not foun");
  EXPECT_EQ(OpenSaid(sum, R"({"missing": "error"})"), "ok");
  EXPECT_THAT(OpenSaid(sum, R"({"missing": "never"})"), StartsWith("invalid: model options:1:2: missing: "));
  EXPECT_EQ(OpenSaid(sum, R"({"fuse": false, "delegates": [], "delegate_options": {}})"), "ok");
  EXPECT_EQ(OpenSaid(sum, R"({"time_limit_ms": 100000})"), "ok");
  EXPECT_THAT(OpenSaid(sum, R"({"time_limit_ms": -1})"), HasSubstr("time_limit_ms"));
  EXPECT_THAT(OpenSaid("no model", R"({"name": "net"})"), StartsWith("invalid: net: "));
}

TEST(CModel, AMissingKernelIsNamed) {
  EXPECT_THAT(OpenSaid(MissingModel(), nullptr), HasSubstr("acme.missing"));
}

TEST(CModel, BorrowedMemoryIsReleasedOnceAfterTheLastSession) {
  const std::string bytes = WeightsModel();
  auto memory = std::make_unique<std::byte[]>(bytes.size() + 64);
  void* start = memory.get();
  size_t space = bytes.size() + 64;
  std::memcpy(std::align(64, bytes.size(), start, space), bytes.data(), bytes.size());
  int released = 0;
  const auto release = [](void* user) { ++*static_cast<int*>(user); };
  fusebox_model* model = nullptr;
  ASSERT_EQ(fusebox_model_from_memory(start, bytes.size(), release, &released, nullptr, TestRegistry(),
                                      &model, nullptr),
            FUSEBOX_OK);
  ModelHandle owner(model);
  SessionHandle session = SessionOf(owner);
  owner.reset();
  Set(session.get(), 0, std::vector<float>(64, 1));
  ASSERT_EQ(fusebox_session_run(session.get(), nullptr), FUSEBOX_OK);
  EXPECT_EQ(Output(session.get())[63], 64);
  EXPECT_EQ(released, 0);
  session.reset();
  EXPECT_EQ(released, 1);
}

TEST(CModel, BorrowedMemoryIsReleasedWhenOpeningFails) {
  int released = 0;
  const auto release = [](void* user) { ++*static_cast<int*>(user); };
  fusebox_model* model = nullptr;
  EXPECT_EQ(fusebox_model_from_memory("x", 1, release, &released, nullptr, nullptr, &model, nullptr),
            FUSEBOX_INVALID);
  EXPECT_EQ(released, 1);
  EXPECT_EQ(fusebox_model_from_memory("x", 1, release, &released, nullptr, nullptr, nullptr, nullptr),
            FUSEBOX_INVALID);
  EXPECT_EQ(released, 2);
  EXPECT_EQ(fusebox_model_from_memory(nullptr, 1, release, &released, nullptr, nullptr, &model, nullptr),
            FUSEBOX_INVALID);
  EXPECT_EQ(released, 3);
}

TEST(CModel, NullArgumentsAreErrors) {
  fusebox_model* model = nullptr;
  char* text = nullptr;
  EXPECT_EQ(Said([&](char** e) { return fusebox_model_open(nullptr, nullptr, nullptr, &model, e); }),
            "invalid: path is NULL");
  EXPECT_EQ(Said([&](char** e) { return fusebox_model_open("x", nullptr, nullptr, nullptr, e); }),
            "invalid: out is NULL");
  EXPECT_EQ(Said([&](char** e) { return fusebox_model_from_copy(nullptr, 1, nullptr, nullptr, &model, e); }),
            "invalid: bytes is NULL");
  EXPECT_EQ(Said([&](char** e) { return fusebox_model_report(nullptr, &text, e); }),
            "invalid: model is NULL");
  EXPECT_EQ(
      Said([&](char** e) { return fusebox_model_open("/nowhere.tflite", nullptr, nullptr, &model, e); }),
      "not found: /nowhere.tflite: No such file or directory");
  fusebox_model_free(nullptr);
}

TEST(CLog, LinesGoToTheSink) {
  std::vector<std::string> lines;
  const auto sink = [](void* user, int32_t level, const char* topic, const char* text) {
    static_cast<std::vector<std::string>*>(user)->push_back(std::to_string(level) + " " + topic + ": " +
                                                            text);
  };
  ASSERT_EQ(fusebox_set_log_sink(sink, &lines, nullptr), FUSEBOX_OK);
  const std::string folder = testing::TempDir() + "/c_api_broken";
  ASSERT_EQ(std::system(("mkdir -p " + folder + "/bad").c_str()), 0);
  std::ofstream(folder + "/bad/fusebox-plugin.json") << "{";
  fusebox_registry* registry = nullptr;
  const std::string config = R"({"search_default_path": false, "plugin_path": [")" + folder + R"("]})";
  EXPECT_EQ(fusebox_registry_create(nullptr, config.c_str(), &registry, nullptr), FUSEBOX_OK);
  fusebox_registry_free(registry);
  ASSERT_EQ(fusebox_set_log_sink(nullptr, nullptr, nullptr), FUSEBOX_OK);
  ASSERT_FALSE(lines.empty());
  EXPECT_THAT(lines[0], StartsWith("2 "));
  EXPECT_THAT(lines[0], HasSubstr("bad/fusebox-plugin.json"));
}

}  // namespace
}  // namespace fusebox::c
