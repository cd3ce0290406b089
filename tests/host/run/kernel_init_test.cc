// SPDX-License-Identifier: Apache-2.0
// fusebox.kernel_init/1, as a plugin sees it through its host.
#include "host/run/kernel_init.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/graph/view.h"
#include "tests/host/run/graphs.h"

namespace fusebox::run {
namespace {

using testing::ElementsAre;

struct Talk {
  explicit Talk(const DelegateOptions& options) : services(threads, options) {}
  const fbx_kernel_init& api() {
    return *static_cast<const fbx_kernel_init*>(host()->get_extension(host(), AsAbi(FBX_EXT_KERNEL_INIT)));
  }
  const fbx_host* host() { return call.abi(); }
  std::shared_ptr<Registry> registry = TestRegistry();
  Threads threads{1};
  KernelInitServices services;
  HostCall call{*registry->KernelsFor(FBX_OP_CUSTOM, "test.twice", 0)[0].plugin, &services};
};

std::vector<int> done;
void Done(void* object) noexcept { done.push_back(*static_cast<int*>(object)); }

TEST(KernelInit, KeepsObjectsUntilItEnds) {
  int first = 1, second = 2;
  done.clear();
  {
    Talk talk({});
    const fbx_kernel_init& init = talk.api();
    EXPECT_EQ(init.find(talk.host(), &first), nullptr);
    EXPECT_EQ(init.keep(talk.host(), &first, &first, Done), FBX_OK);
    EXPECT_EQ(init.keep(talk.host(), &second, &second, Done), FBX_OK);
    EXPECT_EQ(init.keep(talk.host(), &first, &second, Done), FBX_INVALID) << "the key is taken";
    EXPECT_EQ(init.keep(talk.host(), &done, &second, nullptr), FBX_INVALID);
    EXPECT_EQ(init.find(talk.host(), &first), &first);
    EXPECT_EQ(init.find(talk.host(), &second), &second);
    EXPECT_TRUE(done.empty());
  }
  EXPECT_THAT(done, ElementsAre(2, 1));
}

TEST(KernelInit, TellsWhoAsksAndWhatTheModelSays) {
  Attrs attrs;
  attrs.Set("path", "here");
  const DelegateOptions options = {{"toy", std::make_shared<const Attrs>(attrs)}};
  Talk talk(options);
  const fbx_kernel_init& init = talk.api();
  EXPECT_EQ(init.plugin(talk.host()), talk.call.plugin().abi());
  const fbx_attrs* const found = init.delegate_options(talk.host(), AsAbi("toy"));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(FromAbi(found).str("path", ""), "here");
  EXPECT_EQ(init.delegate_options(talk.host(), AsAbi("toys")), nullptr);
  EXPECT_EQ(init.delegate_options(talk.host(), {nullptr, 0}), nullptr);
}

TEST(KernelInit, LoadsNoPluginWhoseDelegatesAreTurnedOff) {
  const DelegateOptions options = {{"toy", std::make_shared<const Attrs>()}};
  Talk talk(options);
  Manifest provider;
  EXPECT_TRUE(talk.services.MayLoad(provider)) << "it has none";
  provider.delegates.push_back({"lego", "", true});
  EXPECT_FALSE(talk.services.MayLoad(provider));
  provider.delegates.push_back({"toy", "", true});
  EXPECT_TRUE(talk.services.MayLoad(provider));
}

TEST(KernelInit, IsNotThereElsewhere) {
  Talk talk({});
  HostCall elsewhere(talk.call.plugin(), &SerialServices());
  EXPECT_EQ(elsewhere.abi()->get_extension(elsewhere.abi(), AsAbi(FBX_EXT_KERNEL_INIT)), nullptr);
}

}  // namespace
}  // namespace fusebox::run
