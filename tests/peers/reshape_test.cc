// SPDX-License-Identifier: Apache-2.0
// RESHAPE of empty and other tensors to every short list of sizes: the dims that stock TFLite works out, or
// refused by both.
#include <gtest/gtest.h>

#include "host/tflite/tflite.h"
#include "tests/plugins/xnnpack/net.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

using xnnpack_test::Net;
using Sizes = std::vector<int64_t>;

// Every list of `rank` of the values.
std::vector<Sizes> Lists(const Sizes& values, size_t rank) {
  std::vector<Sizes> lists = {{}};
  for (size_t i = 0; i < rank; ++i) {
    std::vector<Sizes> longer;
    for (const Sizes& list : lists) {
      for (const int64_t v : values) {
        longer.push_back(list);
        longer.back().push_back(v);
      }
    }
    lists = std::move(longer);
  }
  return lists;
}

std::string Written(const Sizes& sizes) {
  std::string text = "[";
  for (const int64_t s : sizes) text += (text.size() > 1 ? "," : "") + std::to_string(s);
  return text + "]";
}

Sizes DimsOf(const Tensor& tensor) {
  return {tensor.type.shape.dims().begin(), tensor.type.shape.dims().end()};
}

// The result's dims; nothing where it is refused.
template <class R>
std::string Outcome(const R& results) {
  return results ? Written(DimsOf((*results)[0])) : "refused";
}

void Compare(const Sizes& from, const Sizes& to, const std::shared_ptr<Registry>& registry) {
  SCOPED_TRACE(Written(from) + " to " + Written(to));
  Net net;
  const ValueId x = net.Input(DType::kI32, from),
                list = net.Const<int32_t>(DType::kI32, {static_cast<int64_t>(to.size())},
                                          {to.begin(), to.end()});
  const auto module = net.Take({net.Add(Op::kReshape, {x, list}, DType::kI32, Sizes(to.size(), -1))});
  const std::string path = TestDir() + "/reshape.tflite";
  ASSERT_TRUE(tflite::WriteFile(*module, path));
  const Tensor input = Random(module->functions[0]->value(x).type, 1);
  std::string theirs = "refused", ours = "refused";
  if (auto stock = Stock::Open(path)) theirs = Outcome((*stock)->Invoke({input}));
  if (auto session = Open(path, registry)) ours = Outcome(Invoke(**session, {input}));
  EXPECT_EQ(ours, theirs);
}

TEST(ReshapePeers, SizesAreStocks) {
  FUSEBOX_NEEDS_STOCK();
  const auto registry = Plugins();
  ASSERT_TRUE(registry) << registry.error().message;
  for (const Sizes& from : {Sizes{0}, {6}, {0, 3}, {3, 0}, {0, 0}, {2, 3}, {2, 0, 5}, {1, 1}, {4, 0, 0, 3}}) {
    for (const size_t rank : {1, 2, 3}) {
      for (const Sizes& to : Lists(rank == 3 ? Sizes{-1, 0, 2, 3} : Sizes{-1, 0, 1, 2, 3, 6}, rank))
        Compare(from, to, *registry);
    }
  }
}

}  // namespace
}  // namespace fusebox::testing
