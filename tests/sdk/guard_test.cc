// SPDX-License-Identifier: Apache-2.0
// guard(): what C++ code throws, as the ABI says it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <fusebox/base.hpp>

#include <stdexcept>

namespace fusebox {
namespace {

std::vector<std::string> said;

void Emit(const fbx_host*, const fbx_diag* diag) noexcept {
  const std::string code(view(diag->code));
  said.push_back((code.empty() ? "" : code + ": ") + std::string(view(diag->message)));
}

class Guard : public testing::Test {
 protected:
  Guard() {
    said.clear();
    host_.head = FBX_HEAD(fbx_host);
    host_.emit = Emit;
  }
  template <class Thrown>
  fbx_status After(Thrown thrown) {
    return guard(&host_, [&] { throw thrown; });
  }
  fbx_host host_{};
};

TEST_F(Guard, SaysWhatWasThrown) {
  EXPECT_EQ(guard(&host_, [] {}), FBX_OK);
  EXPECT_EQ(After(Reject{"RANK", "is 3"}), FBX_NOT_APPLICABLE);
  EXPECT_EQ(After(Error{FBX_IO, "the disk is full"}), FBX_IO);
  EXPECT_EQ(After(std::bad_alloc()), FBX_OUT_OF_MEMORY);
  EXPECT_EQ(After(std::runtime_error("oh")), FBX_INTERNAL);
  EXPECT_EQ(After(7), FBX_INTERNAL);
  EXPECT_THAT(said, testing::ElementsAre("RANK: is 3", "the disk is full", "EXCEPTION: oh",
                                         "EXCEPTION: an exception of unknown type"));
}

// A status variable that nobody set.
TEST_F(Guard, AnErrorIsNeverOk) {
  EXPECT_EQ(After(Error{FBX_OK, "it did not work"}), FBX_INTERNAL);
  EXPECT_THAT(said, testing::ElementsAre("it did not work"));
}

}  // namespace
}  // namespace fusebox
