// SPDX-License-Identifier: Apache-2.0
// Sessions through the C API.
#include <gmock/gmock.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/host/c/fixture.h"

namespace fusebox::c {
namespace {

using testing::ElementsAre, testing::HasSubstr, testing::StartsWith;

std::string RunSaid(fusebox_session* session) {
  return Said([&](char** error) { return fusebox_session_run(session, error); });
}

TEST(CSession, RunsAndKeepsItsModel) {
  ModelHandle model = Opened(SumModel());
  const SessionHandle session = SessionOf(model, R"({"signature": "add", "threads": 2})");
  model.reset();
  Set(session.get(), 0, {1, -2, 3, 4});
  Set(session.get(), 1, {10, 20, 30, 40});
  EXPECT_EQ(RunSaid(session.get()), "ok");
  EXPECT_THAT(Output(session.get()), ElementsAre(11, 22, 33, 44));
}

TEST(CSession, OptionsAreChecked) {
  const ModelHandle model = Opened(SumModel());
  const auto said = [&](const char* options) {
    return Said([&](char** error) {
      fusebox_session* out = nullptr;
      const auto status = fusebox_session_create(model.get(), options, nullptr, &out, error);
      EXPECT_EQ(out, nullptr);
      return status;
    });
  };
  EXPECT_EQ(said(R"({"thread": 1})"),
            "invalid: session options:1:2: thread: unknown key \"thread\"; did you mean \"threads\"?");
  EXPECT_EQ(said(R"({"threads": -1})"), "invalid: session options:1:2: threads: -1 is less than 0");
  EXPECT_EQ(said(R"({"signature": "sub"})"),
            "not found: <memory>: no signature 'sub'; there are add, negate");
  EXPECT_THAT(said("[]"), StartsWith("invalid: session options:1:1: expected object"));
}

TEST(CSession, SelectsASignature) {
  const SessionHandle session = SessionOf(SumModel(), R"({"signature": "add"})");
  EXPECT_STREQ(fusebox_session_signature(session.get()), "add");
  EXPECT_EQ(fusebox_session_input_count(session.get()), 2);
  ASSERT_EQ(fusebox_session_select(session.get(), "negate", nullptr), FUSEBOX_OK);
  EXPECT_STREQ(fusebox_session_signature(session.get()), "negate");
  EXPECT_EQ(fusebox_session_input_count(session.get()), 1);
  EXPECT_EQ(fusebox_session_output_count(session.get()), 1);
  Set(session.get(), 0, {1, 2, 3, 4});
  EXPECT_EQ(RunSaid(session.get()), "ok");
  EXPECT_THAT(Output(session.get()), ElementsAre(-1, -2, -3, -4));
  EXPECT_EQ(Said([&](char** e) { return fusebox_session_select(session.get(), "sub", e); }),
            "not found: <memory>: no signature 'sub'; there are add, negate");
  EXPECT_STREQ(fusebox_session_signature(session.get()), "negate");
}

TEST(CSession, DescribesInputsAndOutputs) {
  const SessionHandle session = SessionOf(SumModel(), R"({"signature": "add"})");
  fusebox_tensor tensor = FUSEBOX_TENSOR;
  ASSERT_EQ(fusebox_session_input(session.get(), 1, &tensor, nullptr), FUSEBOX_OK);
  EXPECT_STREQ(tensor.name, "y");
  EXPECT_EQ(tensor.dtype, FBX_F32);
  ASSERT_EQ(tensor.rank, 2);
  EXPECT_EQ(tensor.dims[0] * 10 + tensor.dims[1], 22);
  EXPECT_EQ(tensor.data, nullptr);
  EXPECT_EQ(tensor.scale_count, 0u);
  ASSERT_EQ(fusebox_session_output(session.get(), 0, &tensor, nullptr), FUSEBOX_OK);
  EXPECT_STREQ(tensor.name, "sum");
  EXPECT_EQ(tensor.data, nullptr);
  int32_t index = -1;
  EXPECT_EQ(fusebox_session_find_input(session.get(), "y", &index, nullptr), FUSEBOX_OK);
  EXPECT_EQ(index, 1);
  EXPECT_EQ(fusebox_session_find_output(session.get(), "sum", &index, nullptr), FUSEBOX_OK);
  EXPECT_EQ(index, 0);
  EXPECT_EQ(Said([&](char** e) { return fusebox_session_find_input(session.get(), "q", &index, e); }),
            "not found: <memory>: no input 'q'; inputs: x, y");
  EXPECT_EQ(Said([&](char** e) { return fusebox_session_input(session.get(), 2, &tensor, e); }),
            "invalid: <memory>: no input 2; there are 2");
  EXPECT_EQ(Said([&](char** e) { return fusebox_session_output(session.get(), -1, &tensor, e); }),
            "invalid: <memory>: no output -1; there are 1");
  fusebox_tensor small = {};
  EXPECT_EQ(Said([&](char** e) { return fusebox_session_input(session.get(), 0, &small, e); }),
            "invalid: struct_size is 0; initialize the struct with FUSEBOX_TENSOR");
}

TEST(CSession, ReportsQuantization) {
  const SessionHandle session = SessionOf(ScaledModel());
  fusebox_tensor tensor = FUSEBOX_TENSOR;
  ASSERT_EQ(fusebox_session_input(session.get(), 0, &tensor, nullptr), FUSEBOX_OK);
  ASSERT_EQ(tensor.scale_count, 1u);
  EXPECT_EQ(tensor.scales[0], 0.5f);
  EXPECT_EQ(tensor.zero_points[0], 3);
  ASSERT_EQ(fusebox_session_output(session.get(), 0, &tensor, nullptr), FUSEBOX_OK);
  EXPECT_EQ(tensor.scale_count, 1u);
}

TEST(CSession, DynamicShapesAreResized) {
  const SessionHandle session = SessionOf(DynamicModel());
  fusebox_tensor tensor = FUSEBOX_TENSOR;
  ASSERT_EQ(fusebox_session_input(session.get(), 0, &tensor, nullptr), FUSEBOX_OK);
  EXPECT_EQ(tensor.dims[0], -1);
  const float one[] = {1, -2};
  EXPECT_THAT(Said([&](char** e) { return fusebox_session_set_input(session.get(), 0, one, 8, e); }),
              HasSubstr("input 0 'x' got f32[?,2]"));
  EXPECT_THAT(RunSaid(session.get()), HasSubstr("has no value yet"));
  for (const int64_t rows : {3, 0, 1}) {
    const int64_t dims[] = {rows, 2};
    ASSERT_EQ(fusebox_session_resize_input(session.get(), 0, dims, 2, nullptr), FUSEBOX_OK);
    ASSERT_EQ(fusebox_session_input(session.get(), 0, &tensor, nullptr), FUSEBOX_OK);
    EXPECT_EQ(tensor.dims[0], rows);
    Set(session.get(), 0, std::vector<float>(static_cast<size_t>(2 * rows), -7.f));
    EXPECT_EQ(RunSaid(session.get()), "ok");
    EXPECT_EQ(Output(session.get()), std::vector<float>(static_cast<size_t>(2 * rows), 7.f));
    ASSERT_EQ(fusebox_session_output(session.get(), 0, &tensor, nullptr), FUSEBOX_OK);
    EXPECT_EQ(tensor.dims[0], rows);
  }
}

TEST(CSession, WrongShapesAndSizesAreRefused) {
  const SessionHandle session = SessionOf(DynamicModel());
  const auto resize = [&](std::vector<int64_t> dims, int32_t rank) {
    return Said([&](char** e) {
      return fusebox_session_resize_input(session.get(), 0, dims.empty() ? nullptr : dims.data(), rank, e);
    });
  };
  EXPECT_EQ(resize({1}, -1), "invalid: rank -1 is not between 0 and 64");
  EXPECT_EQ(resize({1, -2}, 2), "invalid: dimension 1 is -2; expected 0 or more");
  EXPECT_EQ(resize({}, 2), "invalid: dims is NULL");
  EXPECT_EQ(
      resize({1}, 1),
      "invalid: <memory>: input 0 'x', f32[?,2], cannot be resized to f32[1]: it has another number of dims");
  ASSERT_EQ(resize({1, 2}, 2), "ok");
  const float values[] = {1, 2};
  EXPECT_THAT(Said([&](char** e) { return fusebox_session_set_input(session.get(), 0, values, 4, e); }),
              HasSubstr("has 4 bytes, but f32[1,2] requires 8"));
  EXPECT_EQ(Said([&](char** e) { return fusebox_session_set_input(session.get(), 0, nullptr, 8, e); }),
            "invalid: data is NULL");
}

TEST(CSession, InputsAreFilledInPlaceAndBound) {
  const SessionHandle session = SessionOf(SumModel(), R"({"signature": "negate"})");
  void* data = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(fusebox_session_input_data(session.get(), 0, &data, &bytes, nullptr), FUSEBOX_OK);
  ASSERT_EQ(bytes, 16u);
  std::ranges::fill(std::span(static_cast<float*>(data), 4), 5.f);
  EXPECT_EQ(RunSaid(session.get()), "ok");
  EXPECT_THAT(Output(session.get()), ElementsAre(-5, -5, -5, -5));

  alignas(64) float in[8] = {1, 2, 3, 4}, out[8] = {};
  ASSERT_EQ(fusebox_session_bind_input(session.get(), 0, in, sizeof in, nullptr), FUSEBOX_OK);
  ASSERT_EQ(fusebox_session_bind_output(session.get(), 0, out, sizeof out, nullptr), FUSEBOX_OK);
  EXPECT_EQ(RunSaid(session.get()), "ok");
  EXPECT_THAT(out, ElementsAre(-1, -2, -3, -4, 0, 0, 0, 0));
  fusebox_tensor tensor = FUSEBOX_TENSOR;
  ASSERT_EQ(fusebox_session_output(session.get(), 0, &tensor, nullptr), FUSEBOX_OK);
  EXPECT_EQ(tensor.data, out);
  in[0] = 9;
  EXPECT_EQ(RunSaid(session.get()), "ok");
  EXPECT_EQ(out[0], -9);
  ASSERT_EQ(fusebox_session_bind_output(session.get(), 0, nullptr, 0, nullptr), FUSEBOX_OK);
  Set(session.get(), 0, {1, 1, 1, 1});
  EXPECT_EQ(RunSaid(session.get()), "ok");
  EXPECT_EQ(out[0], -9);
  EXPECT_THAT(Said([&](char** e) { return fusebox_session_bind_input(session.get(), 0, in, 4, e); }),
              StartsWith("invalid: "));
}

TEST(CSession, StringsGoInAndOut) {
  const SessionHandle session = SessionOf(StringsModel());
  const char* const words[] = {"one", "", "a\0b"};
  const size_t lengths[] = {3, 0, 3};
  const int64_t three[] = {3}, none[] = {0};
  ASSERT_EQ(fusebox_session_set_strings(session.get(), 0, words, lengths, three, 1, nullptr), FUSEBOX_OK);
  EXPECT_EQ(RunSaid(session.get()), "ok");
  fusebox_tensor tensor = FUSEBOX_TENSOR;
  ASSERT_EQ(fusebox_session_output(session.get(), 0, &tensor, nullptr), FUSEBOX_OK);
  const char* text = nullptr;
  size_t length = 0;
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(fusebox_tensor_string(&tensor, i, &text, &length, nullptr), FUSEBOX_OK);
    EXPECT_EQ(std::string(text, length), std::string(words[i], lengths[i]));
  }
  EXPECT_EQ(Said([&](char** e) { return fusebox_tensor_string(&tensor, 3, &text, &length, e); }),
            "invalid: no string 3; there are 3");
  ASSERT_EQ(fusebox_session_set_strings(session.get(), 0, words, nullptr, three, 1, nullptr), FUSEBOX_OK);
  EXPECT_EQ(RunSaid(session.get()), "ok");
  ASSERT_EQ(fusebox_session_output(session.get(), 0, &tensor, nullptr), FUSEBOX_OK);
  ASSERT_EQ(fusebox_tensor_string(&tensor, 2, &text, &length, nullptr), FUSEBOX_OK);
  EXPECT_EQ(std::string(text, length), "a");
  ASSERT_EQ(fusebox_session_set_strings(session.get(), 0, nullptr, nullptr, none, 1, nullptr), FUSEBOX_OK);
  EXPECT_EQ(RunSaid(session.get()), "ok");
}

TEST(CSession, DamagedStringsAreRefused) {
  fusebox_tensor tensor = FUSEBOX_TENSOR;
  const char* text = nullptr;
  size_t length = 0;
  const auto said = [&](std::vector<int32_t> words) {
    tensor.dtype = FBX_STRING;
    tensor.data = words.data();
    tensor.bytes = words.size() * 4;
    return Said([&](char** e) { return fusebox_tensor_string(&tensor, 0, &text, &length, e); });
  };
  EXPECT_EQ(said({}), "invalid: no string 0; there are 0");
  EXPECT_EQ(said({1}), "invalid: no string 0; there are 0");
  EXPECT_EQ(said({1, 12}), "invalid: the strings are damaged");
  EXPECT_EQ(said({-1, 12, 12}), "invalid: the strings are damaged");
  EXPECT_EQ(said({1, 12, 13}), "invalid: string 0 is damaged");
  EXPECT_EQ(said({1, 12, 8}), "invalid: string 0 is damaged");
  EXPECT_EQ(said({1, -4, 12}), "invalid: string 0 is damaged");
  tensor.dtype = FBX_F32;
  EXPECT_EQ(Said([&](char** e) { return fusebox_tensor_string(&tensor, 0, &text, &length, e); }),
            "invalid: the tensor is f32, not string");
}

TEST(CSession, StateIsReset) {
  const SessionHandle session = SessionOf(CountModel());
  Set(session.get(), 0, {2});
  for (const float total : {2.f, 4.f}) {
    ASSERT_EQ(fusebox_session_run(session.get(), nullptr), FUSEBOX_OK);
    EXPECT_THAT(Output(session.get()), ElementsAre(total));
  }
  ASSERT_EQ(fusebox_session_reset_state(session.get(), nullptr), FUSEBOX_OK);
  ASSERT_EQ(fusebox_session_run(session.get(), nullptr), FUSEBOX_OK);
  EXPECT_THAT(Output(session.get()), ElementsAre(2));
}

TEST(CSession, AnyThreadCancels) {
  const SessionHandle session = SessionOf(EndlessModel());
  Set(session.get(), 0, {1});
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(fusebox_session_cancel(session.get()), FUSEBOX_OK);
  });
  char* error = nullptr;
  EXPECT_EQ(fusebox_session_run(session.get(), &error), FUSEBOX_CANCELLED);
  EXPECT_NE(error, nullptr);
  fusebox_text_free(error);
  other.join();
  EXPECT_EQ(fusebox_session_cancel(nullptr), FUSEBOX_INVALID);
}

TEST(CSession, SessionsOfTwoThreadsShareAModelAndAPool) {
  const ModelHandle model = Opened(SumModel());
  fusebox_thread_pool* pool = nullptr;
  ASSERT_EQ(fusebox_thread_pool_create(2, &pool, nullptr), FUSEBOX_OK);
  EXPECT_EQ(fusebox_thread_pool_threads(pool), 2);
  const auto work = [&](float base) {
    fusebox_session* out = nullptr;
    ASSERT_EQ(fusebox_session_create(model.get(), R"({"signature": "add"})", pool, &out, nullptr),
              FUSEBOX_OK);
    const SessionHandle session(out);
    for (int i = 0; i < 100; ++i) {
      Set(out, 0, {base, base, base, base});
      Set(out, 1, {1, 2, 3, 4});
      ASSERT_EQ(fusebox_session_run(out, nullptr), FUSEBOX_OK);
      EXPECT_THAT(Output(out), ElementsAre(base + 1, base + 2, base + 3, base + 4));
    }
  };
  std::thread one(work, 10.f), two(work, 20.f);
  one.join();
  two.join();
  fusebox_thread_pool_free(pool);
  EXPECT_THAT(Said([&](char** e) { return fusebox_thread_pool_create(-1, &pool, e); }),
              StartsWith("invalid: "));
  EXPECT_EQ(fusebox_thread_pool_threads(nullptr), -1);
}

TEST(CSession, ValuesAndTimesOfNodes) {
  const SessionHandle session =
      SessionOf(SumModel(), R"({"signature": "add", "keep_values": true, "profile": true})");
  Set(session.get(), 0, {-1, -2, -3, -4});
  Set(session.get(), 1, {1, 1, 1, 1});
  for (int i = 0; i < 3; ++i) ASSERT_EQ(fusebox_session_run(session.get(), nullptr), FUSEBOX_OK);
  fusebox_tensor tensor = FUSEBOX_TENSOR;
  ASSERT_EQ(fusebox_session_value(session.get(), "inner", &tensor, nullptr), FUSEBOX_OK);
  EXPECT_STREQ(tensor.name, "inner");
  EXPECT_THAT(FloatsOf(tensor), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Said([&](char** e) { return fusebox_session_value(session.get(), "outer", &tensor, e); }),
              StartsWith("not found: "));
  int32_t count = 0;
  ASSERT_EQ(fusebox_session_times(session.get(), &count, nullptr), FUSEBOX_OK);
  ASSERT_EQ(count, 2);
  fusebox_node_time time = FUSEBOX_NODE_TIME;
  ASSERT_EQ(fusebox_session_time(session.get(), 1, &time, nullptr), FUSEBOX_OK);
  EXPECT_STREQ(time.op, "ADD");
  EXPECT_STREQ(time.runner, "fusebox.cpu");
  EXPECT_EQ(time.runs, 3u);
  EXPECT_GT(time.total_ns, 0u);
  EXPECT_EQ(Said([&](char** e) { return fusebox_session_time(session.get(), 2, &time, e); }),
            "invalid: no time 2; there are 2");
  time.struct_size = 4;
  EXPECT_EQ(Said([&](char** e) { return fusebox_session_time(session.get(), 0, &time, e); }),
            "invalid: struct_size is 4; initialize the struct with FUSEBOX_NODE_TIME");
  const auto rows = nlohmann::json::parse(
      TextOf([&](char** text, char** e) { return fusebox_session_times_json(session.get(), text, e); }));
  EXPECT_EQ(rows[0]["op"], "ABS");
  EXPECT_EQ(rows[0]["runs"], 3);
}

TEST(CSession, ReportsItself) {
  const SessionHandle session = SessionOf(SumModel(), R"({"signature": "negate", "threads": 2})");
  Set(session.get(), 0, {1, 2, 3, 4});
  EXPECT_EQ(Said([&](char** e) { return fusebox_session_prepare(session.get(), e); }), "ok");
  const auto report = nlohmann::json::parse(
      TextOf([&](char** text, char** e) { return fusebox_session_report(session.get(), text, e); }));
  EXPECT_EQ(report["signature"], "negate");
  EXPECT_EQ(report["threads"], 2);
  EXPECT_THAT(TextOf([&](char** text, char** e) { return fusebox_session_explain(session.get(), text, e); }),
              HasSubstr("NEG"));
}

// Every function with a NULL session.
TEST(CSession, NullIsAnError) {
  int32_t index = 0;
  fusebox_tensor tensor = FUSEBOX_TENSOR;
  fusebox_node_time time = FUSEBOX_NODE_TIME;
  const int64_t dims[] = {1};
  const char* const words[] = {"x"};
  void* data = nullptr;
  char* text = nullptr;
  fusebox_session* const none = nullptr;
  fusebox_session* out = nullptr;
  const std::vector<std::function<fusebox_status(char**)>> calls = {
      [&](char** e) { return fusebox_session_select(none, "", e); },
      [&](char** e) { return fusebox_session_find_input(none, "x", &index, e); },
      [&](char** e) { return fusebox_session_find_output(none, "x", &index, e); },
      [&](char** e) { return fusebox_session_input(none, 0, &tensor, e); },
      [&](char** e) { return fusebox_session_output(none, 0, &tensor, e); },
      [&](char** e) { return fusebox_session_resize_input(none, 0, dims, 1, e); },
      [&](char** e) { return fusebox_session_set_input(none, 0, dims, 8, e); },
      [&](char** e) { return fusebox_session_set_strings(none, 0, words, nullptr, dims, 1, e); },
      [&](char** e) { return fusebox_session_input_data(none, 0, &data, nullptr, e); },
      [&](char** e) { return fusebox_session_bind_input(none, 0, nullptr, 0, e); },
      [&](char** e) { return fusebox_session_bind_output(none, 0, nullptr, 0, e); },
      [&](char** e) { return fusebox_session_run(none, e); },
      [&](char** e) { return fusebox_session_prepare(none, e); },
      [&](char** e) { return fusebox_session_reset_state(none, e); },
      [&](char** e) { return fusebox_session_value(none, "x", &tensor, e); },
      [&](char** e) { return fusebox_session_value_at(none, 0, &tensor, e); },
      [&](char** e) { return fusebox_session_times(none, &index, e); },
      [&](char** e) { return fusebox_session_time(none, 0, &time, e); },
      [&](char** e) { return fusebox_session_times_json(none, &text, e); },
      [&](char** e) { return fusebox_session_report(none, &text, e); },
      [&](char** e) { return fusebox_session_explain(none, &text, e); }};
  for (size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(Said(calls[i]), "invalid: session is NULL") << i;
  EXPECT_EQ(fusebox_session_signature(none), nullptr);
  EXPECT_EQ(fusebox_session_input_count(none), -1);
  EXPECT_EQ(fusebox_session_output_count(none), -1);
  fusebox_session_free(nullptr);
  EXPECT_EQ(Said([&](char** e) { return fusebox_session_create(nullptr, nullptr, nullptr, &out, e); }),
            "invalid: model is NULL");
  const SessionHandle session = SessionOf(SumModel(), R"({"signature": "add"})");
  EXPECT_EQ(Said([&](char** e) { return fusebox_session_input(session.get(), 0, nullptr, e); }),
            "invalid: out is NULL");
  EXPECT_EQ(Said([&](char** e) { return fusebox_session_select(session.get(), nullptr, e); }),
            "invalid: key is NULL");
  EXPECT_EQ(Said([&](char** e) { return fusebox_session_times_json(session.get(), nullptr, e); }),
            "invalid: json is NULL");
}

}  // namespace
}  // namespace fusebox::c
