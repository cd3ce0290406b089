// SPDX-License-Identifier: Apache-2.0
// Values of a session by number.
#include <gmock/gmock.h>

#include "tests/host/c/fixture.h"

namespace fusebox::c {
namespace {

using testing::ElementsAre;

TEST(CValues, ValuesHaveNumbers) {
  const SessionHandle session = SessionOf(WeightsModel());
  EXPECT_EQ(fusebox_session_value_count(session.get()), 3);
  const int32_t input = fusebox_session_input_value(session.get(), 0);
  const int32_t output = fusebox_session_output_value(session.get(), 0);
  const int32_t weights = 3 - input - output;
  EXPECT_EQ(fusebox_session_input_value(session.get(), 1), -1);
  EXPECT_EQ(fusebox_session_output_value(session.get(), -1), -1);
  fusebox_tensor tensor = FUSEBOX_TENSOR;
  ASSERT_EQ(fusebox_session_value_at(session.get(), weights, &tensor, nullptr), FUSEBOX_OK);
  EXPECT_EQ(FloatsOf(tensor)[2], 2.f);
  ASSERT_EQ(fusebox_session_value_at(session.get(), output, &tensor, nullptr), FUSEBOX_OK);
  EXPECT_EQ(tensor.dims[0], 64);
  EXPECT_EQ(tensor.data, nullptr);
  EXPECT_EQ(Said([&](char** e) { return fusebox_session_value_at(session.get(), 3, &tensor, e); }),
            "invalid: <memory>: no value 3; there are 3");
}

TEST(CValues, KeptValuesAreReadByNumber) {
  const SessionHandle session = SessionOf(SumModel(), R"({"signature": "add", "keep_values": true})");
  fusebox_tensor tensor = FUSEBOX_TENSOR;
  int32_t inner = -1;
  for (int32_t i = 0; i < fusebox_session_value_count(session.get()); ++i) {
    ASSERT_EQ(fusebox_session_value_at(session.get(), i, &tensor, nullptr), FUSEBOX_OK);
    EXPECT_EQ(tensor.data, nullptr);  // not before a run
    if (std::string(tensor.name) == "inner") inner = i;
  }
  Set(session.get(), 0, {-1, -2, -3, -4});
  Set(session.get(), 1, {1, 1, 1, 1});
  ASSERT_EQ(fusebox_session_run(session.get(), nullptr), FUSEBOX_OK);
  ASSERT_EQ(fusebox_session_value_at(session.get(), inner, &tensor, nullptr), FUSEBOX_OK);
  EXPECT_THAT(FloatsOf(tensor), ElementsAre(1, 2, 3, 4));
}

TEST(CValues, PrepareFindsTheDimsOfOutputs) {
  const SessionHandle session = SessionOf(DynamicModel());
  const int64_t dims[] = {5, 2};
  ASSERT_EQ(fusebox_session_resize_input(session.get(), 0, dims, 2, nullptr), FUSEBOX_OK);
  ASSERT_EQ(fusebox_session_prepare(session.get(), nullptr), FUSEBOX_OK);
  fusebox_tensor tensor = FUSEBOX_TENSOR;
  ASSERT_EQ(fusebox_session_output(session.get(), 0, &tensor, nullptr), FUSEBOX_OK);
  EXPECT_EQ(tensor.dims[0], 5);
  EXPECT_EQ(tensor.data, nullptr);
}

}  // namespace
}  // namespace fusebox::c
