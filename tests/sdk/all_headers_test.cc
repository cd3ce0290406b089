// SPDX-License-Identifier: Apache-2.0
// All public headers of the SDK and the host in one file: a program can embed the host and have a plugin
// linked in.
#include <gtest/gtest.h>

#include <type_traits>

#include <fusebox/abi/ext/cache.h>
#include <fusebox/abi/ext/progress.h>
#include <fusebox/abi/ext/pthreadpool.h>
#include <fusebox/forward.hpp>
#include <fusebox/gemm.hpp>
#include <fusebox/plugin.hpp>
#include <fusebox/quant.hpp>
#include <fusebox/strings.hpp>
#include <fusebox/weights.hpp>

#include "host/model.h"
#include "host/session.h"

namespace fusebox {
namespace {

TEST(AllHeaders, NamesOfTheHostAndOfTheSdkAreDifferentTypes) {
  EXPECT_FALSE((std::is_same_v<Node, sdk::Node>));
  EXPECT_FALSE((std::is_same_v<Tensor, sdk::Tensor>));
  EXPECT_FALSE((std::is_same_v<Error, sdk::Error>));
}

}  // namespace
}  // namespace fusebox
