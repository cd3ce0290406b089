// SPDX-License-Identifier: Apache-2.0
// Conversions through the C API, and through the C++20 layer over it.
#include "fusebox/convert.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "fusebox/session.hpp"
#include "tests/converter/c/sources.h"
#include "tests/host/c/models.h"

namespace {

using fusebox::c::FileOf, fusebox::c::Folder, fusebox::c::SavedModelOf;
using testing::HasSubstr, testing::StartsWith;

// The error of a conversion of a file of SumModel; "" after success.
std::string Said(const char* options, const std::string& destination = Folder() + "/out.tflite") {
  const std::string source = FileOf("sum.tflite", fusebox::c::SumModel());
  char* error = nullptr;
  const fusebox_status status =
      fusebox_convert(source.c_str(), destination.c_str(), options, nullptr, nullptr, nullptr, &error);
  EXPECT_EQ(status == FUSEBOX_OK, error == nullptr);
  const std::string out = error != nullptr ? error : "";
  fusebox_convert_free(error);
  return out;
}

TEST(CConvert, WritesAFileAndAReport) {
  const std::string source = SavedModelOf("dense"), destination = Folder() + "/dense.tflite";
  std::vector<std::string> passes;
  const auto progress = [](void* user, const char* pass, uint64_t, uint64_t) {
    static_cast<std::vector<std::string>*>(user)->push_back(pass);
  };
  char *report = nullptr, *error = nullptr;
  ASSERT_EQ(fusebox_convert(source.c_str(), destination.c_str(), R"({"batch": 1, "verify": "strict"})",
                            progress, &passes, &report, &error),
            FUSEBOX_OK)
      << error;
  EXPECT_TRUE(std::filesystem::exists(destination));
  EXPECT_GT(passes.size(), 5u);
  const auto json = nlohmann::json::parse(report);
  fusebox_convert_free(report);
  EXPECT_EQ(json["source"], source);
  EXPECT_EQ(json["verification_failed"], false);
  EXPECT_FALSE(json["ops_after"].empty());
}

// State in variable tensors, and custom ops.
TEST(CConvert, TheReportNamesOpsThatLitertRejects) {
  const auto rejected = [](const char* model, const std::string& composites) {
    std::string report;
    const auto options = fusebox::ConvertOptions{
        .batch = 1, .plugins = {FUSEBOX_BUILD_DIR "/plugins/fusebox.rnn"}, .composites = composites};
    const auto converted = fusebox::ConvertToMemory(SavedModelOf(model), options, &report);
    EXPECT_TRUE(converted) << model;
    return nlohmann::json::parse(report)["rejected_by_litert"];
  };
  EXPECT_EQ(rejected("keras_lstm", "fuse"), nlohmann::json({"UNIDIRECTIONAL_SEQUENCE_LSTM"}));
  EXPECT_EQ(rejected("keras3_gru", "fuse"), nlohmann::json({"fusebox.gru"}));
  for (const char* const model : {"keras_lstm", "keras3_gru"}) {
    EXPECT_EQ(rejected(model, "inline"), nlohmann::json::array()) << model;
    EXPECT_EQ(rejected(model, "keep"), nlohmann::json::array()) << model;
  }
}

TEST(CConvert, OptionsAreChecked) {
  EXPECT_EQ(Said(R"({"bach": 1})"),
            "conversion options:1:2: bach: unknown key \"bach\"; did you mean \"batch\"?");
  EXPECT_EQ(Said(R"({"verify": "strickt"})"),
            "conversion options:1:2: verify: \"strickt\" is not one of \"off\", \"sample\", \"strict\"; did "
            "you mean "
            "\"strict\"?");
  EXPECT_EQ(Said(R"({"batch": 0})"), "conversion options:1:2: batch: 0 is less than 1");
  EXPECT_EQ(Said(R"({"composites": "inline", "verify": "strict"})"),
            "conversion options:1:26: verify: has no effect with composites \"inline\", which fuses nothing");
  EXPECT_THAT(Said(R"({"signature": ["sub"]})"), HasSubstr("sub"));
  EXPECT_THAT(Said(R"({"plugin": ["/nowhere"]})"), HasSubstr("/nowhere"));
  EXPECT_EQ(Said(R"({"signature": ["add"], "shape": {"x": [2, 2]}, "composites": "keep"})"), "");
  EXPECT_EQ(Said(nullptr), "");
  // Only graphs of TensorFlow are cut.
  EXPECT_THAT(Said(R"({"inputs": ["x"]})"), HasSubstr("which this is not"));
  EXPECT_THAT(Said(R"({"outputs": ["x"]})"), HasSubstr("which this is not"));
  EXPECT_THAT(Said(R"({"outputs": [""]})"), HasSubstr("outputs"));
}

TEST(CConvert, TheSourceIsNotReplaced) {
  const std::string source = Folder() + "/sum.tflite";
  EXPECT_EQ(Said(nullptr, source),
            source + ": would replace a file of the source " + source + "; write elsewhere");
}

TEST(CConvert, FailuresHaveAReportToo) {
  const std::string source = FileOf("broken.tflite", "xxxxTFL3 but no more");
  char *report = nullptr, *error = nullptr;
  EXPECT_NE(fusebox_convert(source.c_str(), (Folder() + "/out.tflite").c_str(), nullptr, nullptr, nullptr,
                            &report, &error),
            FUSEBOX_OK);
  ASSERT_NE(report, nullptr);
  ASSERT_NE(error, nullptr);
  EXPECT_THAT(std::string(error), HasSubstr("broken.tflite"));
  EXPECT_EQ(nlohmann::json::parse(report)["error"], error);
  EXPECT_FALSE(std::filesystem::exists(Folder() + "/out.tflite"));
  fusebox_convert_free(report);
  fusebox_convert_free(error);
}

TEST(CConvert, NullArgumentsAreErrors) {
  char* error = nullptr;
  EXPECT_EQ(fusebox_convert(nullptr, "x", nullptr, nullptr, nullptr, nullptr, &error), FUSEBOX_INVALID);
  EXPECT_STREQ(error, "source is NULL");
  fusebox_convert_free(error);
  EXPECT_EQ(fusebox_convert("x", nullptr, nullptr, nullptr, nullptr, nullptr, &error), FUSEBOX_INVALID);
  EXPECT_STREQ(error, "destination is NULL");
  fusebox_convert_free(error);
  size_t size = 0;
  EXPECT_EQ(fusebox_convert_to_memory("x", nullptr, nullptr, nullptr, nullptr, &size, nullptr, &error),
            FUSEBOX_INVALID);
  EXPECT_STREQ(error, "bytes is NULL");
  fusebox_convert_free(error);
  EXPECT_EQ(fusebox_convert("/nowhere", "x", nullptr, nullptr, nullptr, nullptr, nullptr), FUSEBOX_NOT_FOUND);
  fusebox_convert_free(nullptr);
  EXPECT_EQ(fusebox_convert_c_version(), 65536u);
  EXPECT_STREQ(fusebox_convert_version(), fusebox_version());
  EXPECT_EQ(fusebox_convert_set_log_sink(nullptr, nullptr, nullptr), FUSEBOX_OK);
}

// The plugins of a number are searched once.
TEST(CConvert, CallsWithOneNumberShareTheirPlugins) {
  const std::string model = fusebox::c::SumModel();
  const auto converts = [&](uint64_t number, const char* config) {
    fusebox_convert_source source = FUSEBOX_CONVERT_SOURCE;
    source.bytes = model.data();
    source.size = model.size();
    source.config = config;
    source.registry = number;
    void* bytes = nullptr;
    size_t size = 0;
    const fusebox_status status = fusebox_convert_bytes(&source, R"({"composites": "keep"})", nullptr,
                                                        nullptr, &bytes, &size, nullptr, nullptr);
    fusebox_convert_free(bytes);
    return status == FUSEBOX_OK;
  };
  constexpr const char* kNone = R"({"search_default_path": false})";
  constexpr const char* kMissing = R"({"search_default_path": false, "plugins": ["/nowhere"]})";
  EXPECT_TRUE(converts(7, kNone));
  EXPECT_TRUE(converts(7, kMissing)) << "nothing is searched again";
  EXPECT_FALSE(converts(8, kMissing));
  EXPECT_FALSE(converts(0, kMissing));
  EXPECT_TRUE(converts(8, kNone));
}

TEST(CConvert, EndsAtItsTimeLimit) {
  const std::string model = fusebox::c::SumModel();
  fusebox_convert_source source = FUSEBOX_CONVERT_SOURCE;
  source.bytes = model.data();
  source.size = model.size();
  source.time_limit_ms = 1;
  const auto slowly = [](void*, const char*, uint64_t, uint64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  void* bytes = nullptr;
  size_t size = 0;
  char* error = nullptr;
  EXPECT_EQ(fusebox_convert_bytes(&source, nullptr, slowly, nullptr, &bytes, &size, nullptr, &error),
            FUSEBOX_CANCELLED);
  EXPECT_THAT(error, HasSubstr("was cancelled"));
  EXPECT_EQ(bytes, nullptr);
  fusebox_convert_free(error);
  source.time_limit_ms = INT64_MAX;
  EXPECT_EQ(fusebox_convert_bytes(&source, nullptr, slowly, nullptr, &bytes, &size, nullptr, nullptr),
            FUSEBOX_OK);
  fusebox_convert_free(bytes);
}

TEST(Convert, BytesOpenInASession) {
  std::string report;
  int passes = 0;
  fusebox::ConvertOptions options;
  options.batch = 1;
  options.composites = "fuse";
  options.progress = [&](std::string_view, uint64_t, uint64_t) { ++passes; };
  const auto converted = fusebox::ConvertToMemory(SavedModelOf("dense"), options, &report);
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_GT(passes, 5);
  EXPECT_THAT(report, StartsWith("{"));
  const auto registry = fusebox::Registry::Create({.config = R"({"search_default_path": false})"});
  const auto model =
      fusebox::Model::FromMemory(converted->bytes(), converted->owner(), {.registry = &*registry});
  ASSERT_TRUE(model) << model.error().message;
  auto session = fusebox::Session::Create(*model);
  ASSERT_TRUE(session) << session.error().message;
  for (int i = 0; i < session->input_count(); ++i) std::ranges::fill(*session->input<float>(i), 1.f);
  EXPECT_TRUE(session->Run());
}

TEST(Convert, ErrorsAreValues) {
  const auto done = fusebox::Convert("/nowhere", Folder() + "/out.tflite", {.plugins = {"a\"b"}});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, fusebox::Code::kNotFound);
  EXPECT_THAT(done.error().message, HasSubstr("/nowhere"));
}

}  // namespace
