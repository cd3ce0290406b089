// SPDX-License-Identifier: Apache-2.0
// fusebox.opening/1, as a plugin sees it through its host.
#include "host/run/opening.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/graph/view.h"
#include "tests/host/run/graphs.h"

namespace fusebox::run {
namespace {

using testing::ElementsAre;

struct Talk {
  explicit Talk(const DelegateOptions& options) : services(threads, options) {}
  const fbx_opening& api() {
    return *static_cast<const fbx_opening*>(host()->get_extension(host(), AsAbi(FBX_EXT_OPENING)));
  }
  const fbx_host* host() { return call.abi(); }
  std::shared_ptr<Registry> registry = TestRegistry();
  Threads threads{1};
  Opening services;
  HostCall call{*registry->KernelsFor(FBX_OP_CUSTOM, "test.twice", 0)[0].plugin, &services};
};

std::vector<int> done;
void Done(void* object) noexcept { done.push_back(*static_cast<int*>(object)); }

TEST(Opening, KeepsObjectsUntilItEnds) {
  int first = 1, second = 2;
  done.clear();
  {
    Talk talk({});
    const fbx_opening& opening = talk.api();
    EXPECT_EQ(opening.find(talk.host(), &first), nullptr);
    EXPECT_EQ(opening.keep(talk.host(), &first, &first, Done), FBX_OK);
    EXPECT_EQ(opening.keep(talk.host(), &second, &second, Done), FBX_OK);
    EXPECT_EQ(opening.keep(talk.host(), &first, &second, Done), FBX_INVALID) << "the key is taken";
    EXPECT_EQ(opening.keep(talk.host(), &done, &second, nullptr), FBX_INVALID);
    EXPECT_EQ(opening.find(talk.host(), &first), &first);
    EXPECT_EQ(opening.find(talk.host(), &second), &second);
    EXPECT_TRUE(done.empty());
  }
  EXPECT_THAT(done, ElementsAre(2, 1));
}

TEST(Opening, TellsWhoAsksAndWhatTheModelSays) {
  Attrs attrs;
  attrs.Set("path", "here");
  const DelegateOptions options = {{"toy", std::make_shared<const Attrs>(attrs)}};
  Talk talk(options);
  const fbx_opening& opening = talk.api();
  EXPECT_EQ(opening.plugin(talk.host()), talk.call.plugin().abi());
  const fbx_attrs* const found = opening.delegate_options(talk.host(), AsAbi("toy"));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(FromAbi(found).str("path", ""), "here");
  EXPECT_EQ(opening.delegate_options(talk.host(), AsAbi("toys")), nullptr);
  EXPECT_EQ(opening.delegate_options(talk.host(), {nullptr, 0}), nullptr);
}

TEST(Opening, LoadsNoPluginWhoseDelegatesAreTurnedOff) {
  const DelegateOptions options = {{"toy", std::make_shared<const Attrs>()}};
  Talk talk(options);
  Manifest provider;
  EXPECT_TRUE(talk.services.MayLoad(provider)) << "it has none";
  provider.delegates.push_back({"lego", "", true});
  EXPECT_FALSE(talk.services.MayLoad(provider));
  provider.delegates.push_back({"toy", "", true});
  EXPECT_TRUE(talk.services.MayLoad(provider));
}

TEST(Opening, IsNotThereElsewhere) {
  Talk talk({});
  HostCall elsewhere(talk.call.plugin(), &SerialServices());
  EXPECT_EQ(elsewhere.abi()->get_extension(elsewhere.abi(), AsAbi(FBX_EXT_OPENING)), nullptr);
}

}  // namespace
}  // namespace fusebox::run
