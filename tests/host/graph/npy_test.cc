// SPDX-License-Identifier: Apache-2.0
#include "host/graph/npy.h"

#include <gtest/gtest.h>

namespace fusebox {
namespace {

std::string File(std::string dict, std::string_view payload) {
  dict += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(dict.size());
  out += '\0';
  return out + dict + std::string(payload);
}

TEST(Npy, GivesBackWhatItWrote) {
  for (const DType type :
       {DType::kF32, DType::kF64, DType::kF16, DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kU8,
        DType::kU16, DType::kU32, DType::kU64, DType::kBool, DType::kComplex64, DType::kComplex128}) {
    for (const Shape& shape : {Shape(std::vector<int64_t>()), Shape({3}), Shape({2, 0}), Shape({2, 3})}) {
      Tensor tensor{{type, shape}, {}};
      tensor.data = Buffer::Make(*ByteSize(tensor.type), [](auto bytes) {
        for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i & 1);
      });
      const auto text = FormatNpy(tensor);
      ASSERT_TRUE(text);
      EXPECT_EQ((text->size() - tensor.data.size()) % 64, 0u);
      const auto back = ParseNpy(*text, "x.npy");
      ASSERT_TRUE(back) << back.error().message;
      EXPECT_EQ(*back, tensor) << ToString(tensor.type);
    }
  }
}

TEST(Npy, ReadsStringsOfBothKinds) {
  const auto s = ParseNpy(
      File("{'descr': '|S3', 'fortran_order': False, 'shape': (2,), }", std::string_view("ab\0xyz", 6)),
      "s.npy");
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_EQ(*UnpackStrings(s->data), (std::vector<std::string>{"ab", "xyz"}));
  const auto u = ParseNpy(File("{'descr': '<U2', 'fortran_order': False, 'shape': (1,), }",
                               std::string_view("\xe4\0\0\0\0\0\0\0", 8)),
                          "u.npy");
  ASSERT_TRUE(u) << u.error().message;
  EXPECT_EQ(*UnpackStrings(u->data), (std::vector<std::string>{"\xc3\xa4"}));
  EXPECT_EQ(*ParseNpy(*FormatNpy(*s), "again"), *s);
}

TEST(Npy, ConvertsFortranOrder) {
  const int8_t columns[] = {1, 4, 2, 5, 3, 6};
  const auto read = ParseNpy(File("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3), }",
                                  {reinterpret_cast<const char*>(columns), 6}),
                             "f.npy");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(std::vector<int8_t>(read->data.As<int8_t>().begin(), read->data.As<int8_t>().end()),
            (std::vector<int8_t>{1, 2, 3, 4, 5, 6}));
}

TEST(Npy, RefusesWhatItCannotRead) {
  EXPECT_FALSE(ParseNpy("", "x"));
  EXPECT_FALSE(ParseNpy("not numpy at all", "x"));
  EXPECT_EQ(ParseNpy(File("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "abcd"), "x.npy")
                .error()
                .message,
            "x.npy: big-endian arrays are not supported");
  EXPECT_FALSE(
      ParseNpy(File("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "abcd"), "x"));
  EXPECT_FALSE(ParseNpy(File("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "abcd"), "x"))
      << "too short";
  EXPECT_FALSE(ParseNpy(
      File("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999), }", ""), "x"));
  EXPECT_FALSE(ParseNpy(
      File("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", ""), "x"));
  const std::string good = *FormatNpy({{DType::kF32, {2}}, Buffer::Make(8, {})});
  for (size_t i = 0; i < good.size(); ++i) EXPECT_FALSE(ParseNpy(good.substr(0, i), "x")) << i;
}

}  // namespace
}  // namespace fusebox
