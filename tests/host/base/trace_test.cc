// SPDX-License-Identifier: Apache-2.0
#include "host/base/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/testing/trace_events.h"

namespace fusebox {
namespace {

using testing::IsEmpty;
using testing_trace::json;
using testing_trace::Spans;
using testing_trace::WhyNotATrace;

json Written(const Trace& trace) {
  const std::string path = testing::TempDir() + "trace.json";
  auto file = AtomicFile::Create(path);
  if (!file || !trace.Write(*file) || !file->Commit()) ADD_FAILURE() << path;
  const std::string text = ReadTextFile(path).value_or("");
  EXPECT_EQ(WhyNotATrace(text), "") << text;
  return json::parse(text, nullptr, false);
}

TEST(Trace, HasNestedSpansWithArguments) {
  Trace trace;
  {
    const Trace::Recording recording(trace);
    TraceSpan outer("open");
    outer.Arg("file", std::string("a.tflite"));
    TraceSpan inner("read", "other");
    inner.Arg("bytes", uint64_t{7});
    inner.Arg("names", std::vector<std::string>{"a", "b"});
  }
  const json written = Written(trace);
  const json outer = Spans(written, "open").at(0), inner = Spans(written, "read").at(0);
  EXPECT_EQ(outer["cat"], "stage");
  EXPECT_EQ(outer["args"], json::parse(R"({"file": "a.tflite"})"));
  EXPECT_EQ(inner["cat"], "other");
  EXPECT_EQ(inner["args"], json::parse(R"({"bytes": 7, "names": ["a", "b"]})"));
  EXPECT_TRUE(testing_trace::Contains(outer, inner));
  EXPECT_EQ(testing_trace::NameOf(written, testing_trace::ThreadOf(outer)), "main");
  EXPECT_EQ(written["otherData"]["dropped"], 0);
}

TEST(Trace, RecordsOnlyWhereItIsCurrent) {
  Trace trace, other;
  {
    const TraceSpan span("before");
  }
  {
    const Trace::Recording recording(trace);
    {
      const Trace::Recording inner(other);
    }
    EXPECT_EQ(Trace::Current(), &trace);
    std::thread([] { const TraceSpan span("elsewhere"); }).join();
    const TraceSpan span("here");
  }
  EXPECT_EQ(Trace::Current(), nullptr);
  {
    const TraceSpan span("after");
  }
  EXPECT_EQ(Spans(Written(trace), "").size(), 1u);
  EXPECT_THAT(Spans(Written(other), ""), IsEmpty());
}

TEST(Trace, IsValidForAnyNames) {
  Trace trace;
  std::vector<std::string> names = {"", "\"}],", "\\", std::string("a\0b", 3), "\xff\xfe", "\n\t\x01", "ä €"};
  names.push_back(std::string(100'000, 'x'));
  for (const std::string& name : names) {
    trace.EnterProcess(name);
    trace.Add(trace.Describe({name, name, {{name, name}, {name + "2", std::vector<std::string>{name}}}}),
              Trace::Now(), Trace::Now());
  }
  const json written = Written(trace);
  ASSERT_EQ(Spans(written, "").size(), names.size());
  EXPECT_EQ(Spans(written, names[1])[0]["args"][names[1]], names[1]);
  EXPECT_EQ(Spans(written, names[3]).size(), 1u);
  EXPECT_EQ(Spans(written, names[7]).size(), 1u);
}

TEST(Trace, CutsSpansThatWouldNotNest) {
  Trace trace;
  const uint64_t now = Trace::Now() + 1000;
  const auto add = [&](const char* name, uint64_t start, uint64_t end) {
    trace.Add(trace.Describe({name, "test"}), start, end);
  };
  add("outer", now, now + 100);
  add("beyond", now + 50, now + 200);
  add("inside", now + 120, now + 130);
  add("backward", now + 300, now + 250);
  add("long ago", 0, 10);
  add("never", UINT64_MAX - 1, UINT64_MAX);
  add("same", now, now + 100);  // ended later: the outer one
  const json written = Written(trace);
  EXPECT_NEAR(Spans(written, "beyond")[0]["dur"].get<double>(), 0.05, 0.005);
  EXPECT_NEAR(Spans(written, "inside")[0]["dur"].get<double>(), 0.01, 0.005);
  EXPECT_EQ(Spans(written, "backward")[0]["ph"], "i");
  const json all = Spans(written, "");
  EXPECT_EQ(all[1]["name"], "same");
  EXPECT_EQ(all[2]["name"], "outer");
}

// Sums such as 0.1 + 0.7 differ from 0.8 in the last digit.
TEST(Trace, SpansThatTouchDoNotOverlapInFloatingPoint) {
  Trace trace;
  const Trace::KindId kind = trace.Describe({"n", "c"});
  uint64_t start = Trace::Now();
  trace.Add(kind, start, start + 1'000 * 777);
  for (int i = 0; i < 1'000; ++i, start += 777) trace.Add(kind, start, start + 777);
  EXPECT_EQ(Spans(Written(trace), "n").size(), 1'001u);
}

TEST(Trace, IsBounded) {
  Trace trace(3);
  const Trace::KindId kind = trace.Describe({"n", "c"});
  for (int i = 0; i < 10; ++i) trace.Add(kind, Trace::Now(), Trace::Now());
  trace.Add(0, Trace::Now(), Trace::Now());  // no kind: not a span
  EXPECT_EQ(trace.dropped(), 7u);
  const json written = Written(trace);
  EXPECT_EQ(Spans(written, "n").size(), 3u);
  EXPECT_EQ(written["otherData"]["dropped"], 7);
}

TEST(Trace, TakesSpansOfManyThreads) {
  Trace trace;
  std::vector<std::thread> threads;
  for (uint32_t i = 1; i <= 4; ++i)
    threads.emplace_back([&trace, i] {
      if (i < 4) trace.NameWorker(Trace::Thread(), i);
      for (int k = 0; k < 500; ++k) {
        const uint64_t start = Trace::Now();
        trace.Add(trace.Describe({"work " + std::to_string(k % 7), "c"}), start, Trace::Now());
      }
    });
  for (std::thread& thread : threads) thread.join();
  const json written = Written(trace);
  EXPECT_EQ(Spans(written, "").size(), 2000u);
  std::set<std::string> names;
  for (const json& span : Spans(written, ""))
    names.insert(testing_trace::NameOf(written, testing_trace::ThreadOf(span)));
  EXPECT_EQ(names.size(), 4u);
  EXPECT_TRUE(names.contains("worker 1") && names.contains("worker 3"));
}

TEST(Trace, FollowsProgress) {
  EXPECT_EQ(Traced(nullptr), nullptr);
  Trace trace;
  int heard = 0;
  {
    const Trace::Recording recording(trace);
    const ProgressListener listener = Traced([&](const Progress&) { ++heard; });
    for (const auto& [what, done, ended] : {std::tuple("one", 0, false),
                                            {"one", 10, false},
                                            {"one", 30, true},
                                            {"two", 30, false},
                                            {"two", 32, true}})
      listener({.what = what, .done = static_cast<uint64_t>(done), .total = 32, .ended = ended});
    Traced(nullptr)({.what = "unheard", .ended = true});
  }
  EXPECT_EQ(heard, 5);
  const json written = Written(trace);
  EXPECT_EQ(Spans(written, "one").at(0)["args"]["bytes"], 30);
  EXPECT_EQ(Spans(written, "two").at(0)["args"]["bytes"], 2);
  EXPECT_EQ(Spans(written, "").size(), 2u);
}

// The check that the other tests rely on.
TEST(TraceCheck, RefusesWhatTheFormatForbids) {
  const std::string names = R"({"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"p"}},
      {"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"t"}})";
  const auto why = [&](const std::string& events) {
    return WhyNotATrace(R"({"traceEvents":[)" + names + (events.empty() ? "" : "," + events) + "]}");
  };
  const auto span = [](const std::string& times) {
    return R"({"ph":"X","name":"n","cat":"c","pid":1,"tid":1,)" + times + "}";
  };
  EXPECT_EQ(why(""), "");
  EXPECT_EQ(
      why(span(R"("ts":1,"dur":4)") + "," + span(R"("ts":2,"dur":3)") + "," + span(R"("ts":5,"dur":1)")), "");
  EXPECT_NE(why(span(R"("ts":1,"dur":4)") + "," + span(R"("ts":2,"dur":3.001)")), "") << "overlap";
  EXPECT_NE(why(span(R"("ts":1)")), "");
  EXPECT_NE(why(span(R"("ts":-1,"dur":4)")), "");
  EXPECT_NE(why(span(R"("ts":"1","dur":4)")), "");
  EXPECT_NE(why(R"({"ph":"X","name":"n","cat":"c","pid":1,"tid":2,"ts":1,"dur":1})"), "")
      << "no name of thread 2";
  EXPECT_NE(why(R"({"ph":"Y","name":"n","cat":"c","pid":1,"tid":1,"ts":1})"), "");
  EXPECT_NE(why(R"({"ph":"C","name":"n","cat":"c","pid":1,"tid":1,"ts":1,"args":{"a":"b"}})"), "");
  EXPECT_NE(why(R"({"ph":"M","name":"thread_nam","pid":1,"tid":1,"args":{"name":"t"}})"), "");
  EXPECT_NE(why(names), "") << "named twice";
  EXPECT_NE(why("{"), "");
  EXPECT_NE(WhyNotATrace("[]"), "");
  EXPECT_NE(WhyNotATrace(R"({"traceEvents":[],"displayTimeUnit":"s"})"), "");
}

}  // namespace
}  // namespace fusebox
