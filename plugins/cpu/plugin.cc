// SPDX-License-Identifier: Apache-2.0
#include <fusebox/plugin.hpp>

#include <array>
#include <vector>

#include "plugins/cpu/cost.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/products/gemm_service.h"

namespace fusebox::cpu {

using namespace sdk;

namespace {

std::vector<const fbx_kernel*> AllKernels() {
  const KernelTable tables[] = {
#define FUSEBOX_KERNELS(Name) k##Name##Kernels,
#include "kernel_tables.inc"
#undef FUSEBOX_KERNELS
  };
  std::vector<const fbx_kernel*> all;
  for (const KernelTable table : tables) all.insert(all.end(), table.begin(), table.end());
  return all;
}

// The tables are defined in other files and are joined at run time.
fbx_status Load(const fbx_host* host, const fbx_plugin** out) noexcept {
  return call_guarded(host, [&] {
    static const std::vector<const fbx_kernel*> kernels = AllKernels();
    static const fbx_plugin plugin =
        detail::make_plugin("fusebox.cpu", "1.0.0", std::array<const fbx_rule*, 0>(), kernels,
                            detail::no_delegates, detail::Tables<CostService, GemmService>::services);
    *out = &plugin;
  });
}

}  // namespace
}  // namespace fusebox::cpu

// The name differs from fusebox_entry_v1, since it is part of the host.
extern "C" constinit const fbx_entry fusebox_cpu_entry_v1 =
    fusebox::sdk::detail::make_entry(&fusebox::cpu::Load);
