// SPDX-License-Identifier: Apache-2.0
// The kernel tables of this plugin, one per file of kernels/: kernels/arg_min_max.cc defines
// kArgMinMaxKernels. kernels.cmake lists the files and their ops for the manifest.
#pragma once

#include <span>

#include <fusebox/abi/kernel.h>

namespace fusebox::cpu {

using KernelTable = std::span<const fbx_kernel* const>;

#define FUSEBOX_KERNELS(Name) extern const KernelTable k##Name##Kernels;
#include "kernel_tables.inc"
#undef FUSEBOX_KERNELS

}  // namespace fusebox::cpu
