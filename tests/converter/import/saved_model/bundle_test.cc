// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "converter/import/saved_model/crc32c.h"
#include "converter/import/saved_model/slice_key.h"
#include "converter/import/saved_model/snappy.h"
#include "converter/import/saved_model/table.h"
#include "host/graph/npy.h"
#include "models/saved_model/bundle_writer.h"
#include "tests/converter/import/files.h"

namespace fusebox::saved_model {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace fusebox::models;
using fusebox::testing::FreshDir;
using fusebox::testing::ReadAll;
using fusebox::testing::WriteAll;

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string Text(const Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}

TensorValue Counting(const Shape& shape, int count) {
  std::vector<float> values(count);
  for (int i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return Floats(shape, values);
}

BundleWriter SmallBundle(int shards = 1) {
  BundleWriter writer(shards);
  writer.Add("a/kernel", Counting({2, 3}, 6));
  writer.Add("names", Strings({"one", "", "three"}));
  writer.Add("step", Long(7));
  writer.Add("empty", Zeros({0, 4}));
  return writer;
}

// Reads every tensor of a bundle, as far as that goes.
Status ReadEverything(const Bundle& bundle) {
  for (const auto& [key, tensor] : bundle.tensors()) {
    if (tensor.dtype == tf::DT_STRING) {
      FUSEBOX_TRY(bundle.ReadStrings(key));
    } else {
      FUSEBOX_TRY(bundle.Read(key));
    }
  }
  return {};
}

Status OpenAndRead(const std::string& prefix) {
  FUSEBOX_ASSIGN(Bundle bundle, Bundle::Open(prefix));
  return ReadEverything(bundle);
}

std::string MessageOf(const Status& status) { return status ? "" : status.error().message; }

TEST(Bundle, ReadsWhatWasWritten) {
  std::string prefix = FreshDir() + "/variables";
  ASSERT_TRUE(SmallBundle().Write(prefix));
  auto bundle = Bundle::Open(prefix);
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_EQ(bundle->tensors().size(), 4u);
  EXPECT_THAT(bundle->Find("a/kernel")->shape, ElementsAre(2, 3));
  EXPECT_EQ(bundle->Find("a/kernel")->dtype, tf::DT_FLOAT);
  EXPECT_EQ(Text(*bundle->Read("a/kernel")), Counting({2, 3}, 6).bytes);
  EXPECT_THAT(*bundle->ReadStrings("names"), ElementsAre("one", "", "three"));
  EXPECT_THAT(*UnpackStrings(*bundle->Read("names")), ElementsAre("one", "", "three"));
  EXPECT_EQ(bundle->Read("empty")->size(), 0u);
  EXPECT_EQ(bundle->Find("missing"), nullptr);
}

TEST(Bundle, GivesAlignedBytesBehindAString) {
  std::string prefix = FreshDir() + "/variables";
  ASSERT_TRUE(SmallBundle().Write(prefix));
  auto bundle = Bundle::Open(prefix);
  ASSERT_TRUE(bundle);
  auto step = bundle->Read("step");
  ASSERT_TRUE(step);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(step->data()) % sizeof(int64_t), 0u);
  EXPECT_EQ(step->As<int64_t>()[0], 7);
}

TEST(Bundle, GivesTheSameBytesAgain) {
  std::string prefix = FreshDir() + "/variables";
  ASSERT_TRUE(SmallBundle().Write(prefix));
  auto bundle = Bundle::Open(prefix);
  ASSERT_TRUE(bundle);
  for (const char* key : {"a/kernel", "names", "step"})
    EXPECT_TRUE(bundle->Read(key)->SameAs(*bundle->Read(key))) << key;
}

TEST(Bundle, NeedsAShardOnlyForItsOwnTensors) {
  std::string prefix = FreshDir() + "/variables";
  ASSERT_TRUE(SmallBundle(2).Write(prefix));
  std::filesystem::remove(prefix + ".data-00001-of-00002");
  auto bundle = Bundle::Open(prefix);
  ASSERT_TRUE(bundle);
  EXPECT_TRUE(bundle->Read("a/kernel"));
  auto names = bundle->ReadStrings("names");
  ASSERT_FALSE(names);
  EXPECT_THAT(names.error().message, AllOf(HasSubstr("names"), HasSubstr("variables.data-00001-of-00002")));
}

TEST(Bundle, JoinsThePartsOfATensor) {
  for (int shards : {1, 3}) {
    BundleWriter writer(shards);
    writer.AddPartitioned("table", Counting({5, 3, 2}, 30), 2);
    std::string prefix = FreshDir() + "/variables";
    ASSERT_TRUE(writer.Write(prefix));
    auto bundle = Bundle::Open(prefix);
    ASSERT_TRUE(bundle);
    EXPECT_EQ(bundle->tensors().size(), 1u);
    auto table = bundle->Read("table");
    ASSERT_TRUE(table) << table.error().message;
    EXPECT_EQ(Text(*table), Counting({5, 3, 2}, 30).bytes);
  }
}

TEST(Bundle, JoinsPartsAlongAnInnerDimension) {
  BundleWriter writer;
  tf::BundleEntry whole;
  whole.set_dtype(tf::DT_FLOAT);
  *whole.mutable_shape() = ShapeProto({2, 3});
  for (int64_t column : {0, 1}) {
    tf::TensorSlice& slice = *whole.add_slices();
    slice.add_extent();
    tf::TensorSlice::Extent& extent = *slice.add_extent();
    extent.set_start(column);
    extent.set_length(1 + column);
    writer.Add(SliceKey("t", slice), column == 0 ? Floats({2, 1}, std::vector<float>{0, 3})
                                                 : Floats({2, 2}, std::vector<float>{1, 2, 4, 5}));
  }
  writer.AddRecord("t", whole);
  std::string prefix = FreshDir() + "/variables";
  ASSERT_TRUE(writer.Write(prefix));
  auto bundle = Bundle::Open(prefix);
  ASSERT_TRUE(bundle);
  auto joined = bundle->Read("t");
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_EQ(Text(*joined), Counting({2, 3}, 6).bytes);
}

TEST(SliceKey, IsTensorFlowsOrderedCode) {
  tf::TensorSlice slice;
  slice.add_extent()->set_length(2);
  slice.add_extent();
  EXPECT_EQ(SliceKey(std::string_view("v\0\xff", 3), slice), std::string("\x00"
                                                                         "v\x00\xff\xff\x00\x00\x01"
                                                                         "\x01\x02"
                                                                         "\x80\x82"
                                                                         "\x80\x7f",
                                                                         14));
  slice.clear_extent();
  slice.add_extent()->set_start(64);
  slice.mutable_extent(0)->set_length(100000);
  EXPECT_EQ(SliceKey("", slice), std::string("\x00"
                                             "\x00\x01"
                                             "\x01\x01"
                                             "\xc0\x40"
                                             "\xe1\x86\xa0",
                                             10));
}

TEST(Crc32c, KnowsThePublishedValues) {
  EXPECT_EQ(Crc32c(Bytes(std::string(32, '\0'))), 0x8a9136aau);
  EXPECT_EQ(Crc32c(Bytes("123456789")), 0xe3069283u);
  EXPECT_EQ(Crc32c(Bytes("6789"), Crc32c(Bytes("12345"))), 0xe3069283u);
}

class DamagedBundle : public ::testing::Test {
 protected:
  void SetUp() override {
    prefix_ = FreshDir() + "/variables";
    writer_.Add("a/kernel", Counting({2, 3}, 6));
    writer_.Add("names", Strings({"one", "two"}));
    writer_.AddPartitioned("table", Counting({4, 2}, 8), 3);
    ASSERT_TRUE(writer_.Write(prefix_));
    ASSERT_TRUE(OpenAndRead(prefix_)) << MessageOf(OpenAndRead(prefix_));
  }
  std::string index() const { return prefix_ + ".index"; }
  std::string data() const { return prefix_ + ".data-00000-of-00001"; }

  // What reading says when the record of a key has been changed, with all checksums right.
  std::string AfterChange(const std::string& key, const std::function<void(tf::BundleEntry&)>& change) {
    BundleWriter changed = writer_;
    change(changed.entry(key));
    EXPECT_TRUE(changed.Write(prefix_));
    return MessageOf(OpenAndRead(prefix_));
  }

  std::string prefix_;
  BundleWriter writer_;
};

TEST_F(DamagedBundle, IsRefusedAtEveryLengthOfItsIndex) {
  std::string bytes = ReadAll(index());
  for (size_t size = 0; size < bytes.size(); ++size) {
    WriteAll(index(), bytes.substr(0, size));
    Status status = OpenAndRead(prefix_);
    ASSERT_FALSE(status) << size;
    ASSERT_THAT(status.error().message, HasSubstr(index()));
  }
}

TEST_F(DamagedBundle, IsRefusedWhenAnyByteOfItsIndexIsWrong) {
  std::string bytes = ReadAll(index());
  size_t harmless = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    WriteAll(index(), damaged);
    harmless += OpenAndRead(prefix_).has_value();
  }
  // The footer's padding and the handle of a block that nobody reads (with its contents) do not matter.
  EXPECT_LT(harmless, 60u);
}

TEST_F(DamagedBundle, IsRefusedAtEveryLengthOfItsData) {
  std::string bytes = ReadAll(data());
  for (size_t size = 0; size < bytes.size(); ++size) {
    WriteAll(data(), bytes.substr(0, size));
    Status status = OpenAndRead(prefix_);
    ASSERT_FALSE(status) << size;
    ASSERT_THAT(status.error().message, HasSubstr(data()));
  }
}

TEST_F(DamagedBundle, IsRefusedWhenAnyByteOfItsDataIsWrong) {
  std::string bytes = ReadAll(data());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x40);
    WriteAll(data(), damaged);
    ASSERT_FALSE(OpenAndRead(prefix_)) << i;
  }
}

TEST_F(DamagedBundle, NamesTheKeyAndTheReasonOfABadRecord) {
  EXPECT_THAT(AfterChange("a/kernel", [](auto& entry) { entry.set_offset(1LL << 62); }),
              AllOf(HasSubstr("a/kernel"), HasSubstr("truncated")));
  EXPECT_THAT(AfterChange("a/kernel", [](auto& entry) { entry.set_offset(-8); }), HasSubstr("no such place"));
  EXPECT_THAT(AfterChange("a/kernel", [](auto& entry) { entry.set_shard_id(1); }), HasSubstr("shard 1 of 1"));
  EXPECT_THAT(AfterChange("a/kernel", [](auto& entry) { entry.set_size(20); }),
              AllOf(HasSubstr("a/kernel"), HasSubstr("20 bytes"), HasSubstr("float32[2,3]")));
  EXPECT_THAT(AfterChange("a/kernel", [](auto& entry) { entry.set_crc32c(1); }), HasSubstr("checksum"));
  EXPECT_THAT(AfterChange("a/kernel", [](auto& entry) { entry.set_dtype(tf::DT_INT64); }),
              HasSubstr("int64[2,3]"));
  EXPECT_THAT(
      AfterChange("a/kernel", [](auto& entry) { entry.mutable_shape()->mutable_dim(0)->set_size(-1); }),
      HasSubstr("dimension of -1"));
  EXPECT_THAT(AfterChange("a/kernel",
                          [](auto& entry) { entry.mutable_shape()->mutable_dim(0)->set_size(1LL << 62); }),
              HasSubstr("too many elements"));
  EXPECT_THAT(AfterChange("a/kernel", [](auto& entry) { entry.mutable_shape()->set_unknown_rank(true); }),
              HasSubstr("rank"));
  EXPECT_THAT(AfterChange("a/kernel", [](auto& entry) { entry.set_dtype(tf::DT_VARIANT); }),
              HasSubstr("no fixed size"));
  EXPECT_THAT(
      AfterChange("names", [](auto& entry) { entry.mutable_shape()->mutable_dim(0)->set_size(1LL << 40); }),
      AllOf(HasSubstr("names"), HasSubstr("too short")));
  EXPECT_THAT(AfterChange("names", [](auto& entry) { entry.mutable_shape()->mutable_dim(0)->set_size(1); }),
              HasSubstr("names"));
}

TEST_F(DamagedBundle, NamesThePartThatIsWrong) {
  EXPECT_THAT(
      AfterChange("table", [](auto& entry) { entry.mutable_slices(0)->mutable_extent(0)->set_length(9); }),
      HasSubstr("outside"));
  EXPECT_THAT(
      AfterChange("table", [](auto& entry) { entry.mutable_slices(0)->mutable_extent(0)->set_length(2); }),
      HasSubstr("6 of 8"));
  EXPECT_THAT(
      AfterChange("table", [](auto& entry) { entry.mutable_slices(1)->mutable_extent(0)->set_start(2); }),
      HasSubstr("overlap"));
  EXPECT_THAT(AfterChange("table", [](auto& entry) { entry.mutable_slices(0)->add_extent(); }),
              HasSubstr("rank"));
  EXPECT_THAT(AfterChange("table", [](auto& entry) { *entry.add_slices() = entry.slices(0); }),
              HasSubstr("overlap"));
  EXPECT_THAT(AfterChange("table",
                          [](auto& entry) {
                            entry.mutable_shape()->mutable_dim(1)->set_size(1LL << 40);
                            entry.mutable_slices(0)->mutable_extent(0)->set_length(3);
                          }),
              HasSubstr("too short"));
}

TEST_F(DamagedBundle, RefusesOtherMachinesAndVersions) {
  writer_.header().set_endianness(tf::BundleHeader::BIG);
  ASSERT_TRUE(writer_.Write(prefix_));
  EXPECT_EQ(OpenAndRead(prefix_).error().code, Code::kUnsupported);
  EXPECT_THAT(OpenAndRead(prefix_).error().message, HasSubstr("big-endian"));
  writer_.header().set_endianness(tf::BundleHeader::LITTLE);
  writer_.header().mutable_version()->set_min_consumer(2);
  ASSERT_TRUE(writer_.Write(prefix_));
  EXPECT_THAT(OpenAndRead(prefix_).error().message, HasSubstr("version 2"));
}

// A table of one block with these bytes, whose checksums are right.
std::string TableOf(const std::string& block, char compression = 0, uint64_t claimed_size = 0) {
  auto put_varint = [](std::string& out, uint64_t value) {
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    out += static_cast<char>(value);
  };
  auto put_block = [](std::string& file, std::string payload, char type) {
    payload += type;
    uint32_t crc = MaskCrc(Crc32c(Bytes(payload)));
    file += payload + std::string(reinterpret_cast<const char*>(&crc), 4);
  };
  std::string file, handle, footer;
  put_block(file, block, compression);
  put_varint(handle, 0);
  put_varint(handle, claimed_size ? claimed_size : block.size());
  std::string index = std::string("\0\1", 2) + static_cast<char>(handle.size()) + "k" + handle;
  index += std::string("\0\0\0\0\1\0\0\0", 8);
  put_varint(footer, 0);
  put_varint(footer, 0);
  put_varint(footer, file.size());
  put_varint(footer, index.size());
  put_block(file, index, 0);
  footer.resize(40, '\0');
  return file + footer + "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
}

const std::string kOneRestart = std::string("\0\0\0\0\1\0\0\0", 8);

std::string WalkMessage(const std::string& table) {
  return MessageOf(ReadTable(Bytes(table), [](std::string_view, std::string_view) -> Status { return {}; }));
}

TEST(Table, ChecksLengthsEvenWhenTheChecksumsAreRight) {
  EXPECT_EQ(WalkMessage(TableOf(std::string("\0\1\1kv", 5) + kOneRestart)), "");
  // 0xfffffff0 + 0x20 wraps around in 32 bits.
  EXPECT_THAT(WalkMessage(TableOf(std::string("\0\xf0\xff\xff\xff\x0f\x20kv", 9) + kOneRestart)),
              HasSubstr("beyond its block"));
  EXPECT_THAT(WalkMessage(TableOf(std::string("\5\1\1kv", 5) + kOneRestart)), HasSubstr("damaged record"));
  EXPECT_THAT(WalkMessage(TableOf(std::string("\0\1\1kv", 5) + "\0\0\0\0\xff\xff\xff\xff")),
              HasSubstr("restart points"));
  EXPECT_THAT(WalkMessage(TableOf("abc")), HasSubstr("restart points"));
  EXPECT_THAT(WalkMessage(TableOf(kOneRestart, 0, uint64_t{1} << 62)), HasSubstr("beyond the end"));
  EXPECT_THAT(WalkMessage(TableOf(kOneRestart, 7)), HasSubstr("compression 7"));
  EXPECT_THAT(WalkMessage(TableOf(std::string("\0\1\1kv\0\1\1jv", 10) + kOneRestart)),
              HasSubstr("out of order"));
}

TEST(Snappy, DecodesLiteralsAndCopies) {
  // "abc", then six bytes from three back, then four from two back, by each form of copy.
  std::string packed = std::string(
                           "\x0d\x08"
                           "abc"
                           "\x09\x03",
                           7) +
                       std::string("\x0e\x02\x00", 3);
  EXPECT_EQ(*DecodeSnappy(Bytes(packed)), "abcabcabcbcbc");
  for (size_t size = 0; size < packed.size(); ++size)
    EXPECT_FALSE(DecodeSnappy(Bytes(packed.substr(0, size)))) << size;
  EXPECT_FALSE(
      DecodeSnappy(Bytes(std::string("\xff\xff\xff\xff\x7f\x00"
                                     "a",
                                     7))));
  EXPECT_FALSE(DecodeSnappy(Bytes(std::string("\x04\x01\x01", 3))));
}

TEST(Table, ReadsACompressedBlock) {
  std::string block = std::string("\0\1\1kv", 5) + kOneRestart;
  std::string packed =
      std::string(1, static_cast<char>(block.size())) + static_cast<char>((block.size() - 1) << 2) + block;
  EXPECT_EQ(WalkMessage(TableOf(packed, 1)), "");
  EXPECT_THAT(WalkMessage(TableOf(packed.substr(0, 4), 1)), HasSubstr("compressed"));
}

}  // namespace
}  // namespace fusebox::saved_model
