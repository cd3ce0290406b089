// SPDX-License-Identifier: Apache-2.0
#include "host/graph/flex.h"

#include <flatbuffers/flexbuffers.h>
#include <gtest/gtest.h>

#include "tests/testing/refusal.h"

namespace fusebox {
namespace {

std::string Built(const std::function<void(flexbuffers::Builder&)>& build) {
  flexbuffers::Builder out;
  build(out);
  out.Finish();
  return {out.GetBuffer().begin(), out.GetBuffer().end()};
}

TEST(FlexMap, KeepsEveryKindOfAttribute) {
  Attrs inner;
  inner.Set("deep", std::vector<double>{0.5, 2});
  Attrs attrs;
  attrs.Set("flag", true);
  attrs.Set("big", int64_t{1} << 40);
  attrs.Set("negative", -3);
  attrs.Set("real", 0.1);
  attrs.Set("text", std::string("a\0b", 3));
  attrs.Set("ints", std::vector<int64_t>{1, -70000});
  attrs.Set("none", std::vector<int64_t>{});
  attrs.Set("words", std::vector<std::string>{"x", ""});
  attrs.Set("map", std::make_shared<const Attrs>(inner));
  const std::string bytes = WriteFlexMap(attrs);
  const auto back = ReadFlexMap(bytes);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, attrs) << ToString(*back);
  EXPECT_TRUE(FlexMapEquals(bytes, attrs));
}

TEST(FlexMap, NoticesWhatAttributesCannotReproduce) {
  const std::string untyped =
      Built([](auto& out) { out.Map([&] { out.Vector("list", [&] { out.Int(1), out.Int(2); }); }); });
  const auto attrs = ReadFlexMap(untyped);
  ASSERT_TRUE(attrs);
  EXPECT_EQ(attrs->i64s("list"), (std::vector<int64_t>{1, 2}));
  EXPECT_FALSE(FlexMapEquals(untyped, *attrs)) << "readers of untyped vectors would see nothing";
  const std::string blob = Built([](auto& out) { out.Map([&] { out.Key("b"), out.Blob("xy", 2); }); });
  EXPECT_FALSE(FlexMapEquals(blob, *ReadFlexMap(blob)));
}

TEST(FlexMap, RefusesWhatIsNoMap) {
  EXPECT_FALSE(ReadFlexMap(""));
  EXPECT_FALSE(ReadFlexMap("plain text"));
  EXPECT_FALSE(ReadFlexMap(Built([](auto& out) { out.Int(3); })));
}

TEST(FlexMap, SurvivesAnyDamage) {
  Attrs attrs;
  attrs.Set("ints", std::vector<int64_t>{1, 2, 3});
  attrs.Set("text", "hello");
  const std::string good = WriteFlexMap(attrs);
  int refused = 0;
  // What is read can be written and read again.
  const auto attempt = [&](const std::string& bytes) {
    const auto read = ReadFlexMap(bytes);
    refused += !read;
    EXPECT_TRUE(SucceedsOrBlamesInput(read));
    if (!read) return;
    const auto again = ReadFlexMap(WriteFlexMap(*read));
    ASSERT_TRUE(again) << again.error().message << " " << ToString(*read);
    EXPECT_EQ(ToString(*again), ToString(*read));
  };
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 1 << bit);
      attempt(bad);
    }
    attempt(good.substr(i));
    attempt(good.substr(0, i));
  }
  EXPECT_GT(refused, static_cast<int>(good.size()));
}

}  // namespace
}  // namespace fusebox
