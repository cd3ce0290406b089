// SPDX-License-Identifier: Apache-2.0
// A host refuses a plugin whose kernels are not those of its manifest, so that the two must not drift apart.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include <fusebox/abi/plugin.h>
#include <fusebox/base.hpp>

extern "C" {
extern const fbx_entry fusebox_cpu_entry_v1;
extern const char fusebox_cpu_manifest[];
}

namespace fusebox {
namespace {

std::set<std::string> ManifestOps() {
  const std::string_view text = fusebox_cpu_manifest, key = "\"builtin\": \"";
  std::set<std::string> ops;
  for (size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    const size_t begin = at + key.size();
    const std::string op(text.substr(begin, text.find('"', begin) - begin));
    EXPECT_TRUE(ops.insert(op).second) << op << " stands in the manifest twice";
  }
  return ops;
}

TEST(CpuManifest, NamesEveryKernelAndNoOther) {
  const fbx_plugin* plugin = nullptr;
  ASSERT_EQ(fusebox_cpu_entry_v1.load(nullptr, &plugin), FBX_OK);
  std::set<std::string> kernels;
  for (uint32_t i = 0; i < plugin->kernel_count; ++i)
    kernels.emplace(sdk::to_string_view(plugin->kernels[i]->op));
  EXPECT_EQ(ManifestOps(), kernels);
}

}  // namespace
}  // namespace fusebox
