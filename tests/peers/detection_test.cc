// SPDX-License-Identifier: Apache-2.0
// plugins/vision beside stock TFLite, which has TFLite_Detection_PostProcess too.
#include <gtest/gtest.h>

#include "host/tflite/tflite.h"
#include "tests/plugins/vision/detector.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

using vision_test::Detector;

TEST(DetectionPeers, FindsWhatStockFinds) {
  FUSEBOX_NEEDS_STOCK();
  for (const Detector& d :
       {Detector{}, Detector{.anchors = 500, .classes = 20, .most = 50},
        Detector{.background = 0, .per_box = 3}, Detector{.anchors = 300, .regular = true},
        Detector{.anchors = 300, .per_class = 2, .regular = true},
        Detector{.anchors = 20,
                 .classes = 9,
                 .background = 1,
                 .most = 100,
                 .least_score = -5,
                 .most_overlap = 0.9},
        Detector{.anchors = 40, .bytes = true}, Detector{.anchors = 40, .regular = true, .bytes = true}}) {
    SCOPED_TRACE(d.anchors);
    const auto module = ModuleOf(d, SeededAnchors(d));
    const std::string path = TestDir() + "/detector.tflite";
    ASSERT_TRUE(tflite::WriteFile(*module, path));
    const auto inputs = SeededInputs(d);
    auto stock = Stock::Open(path);
    ASSERT_TRUE(stock) << stock.error().message;
    auto expected = (*stock)->Invoke(inputs);
    ASSERT_TRUE(expected) << expected.error().message;
    auto session = Open(path, *Plugins({"fusebox.vision"}));
    ASSERT_TRUE(session) << session.error().message;
    const auto found = Invoke(**session, inputs);
    ASSERT_TRUE(found) << found.error().message;
    const auto count = (*found)[3].data.As<float>()[0];
    EXPECT_GT(count, 0);
    ASSERT_EQ(count, (*expected)[3].data.As<float>()[0]);
    // What stock leaves behind the last detection is whatever was there.
    for (size_t i = 0; i < 3; ++i) {
      const auto ours = (*found)[i].data.As<float>(), theirs = (*expected)[i].data.As<float>();
      ASSERT_EQ(ours.size(), theirs.size());
      const size_t each = static_cast<size_t>(d.per_box) * (i == 0 ? 4 : 1);
      for (size_t k = 0; k < static_cast<size_t>(count) * each; ++k)
        EXPECT_NEAR(ours[k], theirs[k], 1e-6) << "output " << i << ", " << k;
    }
  }
}

}  // namespace
}  // namespace fusebox::testing
