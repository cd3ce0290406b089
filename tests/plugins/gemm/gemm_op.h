// SPDX-License-Identifier: Apache-2.0
// t.gemm(x, weights, bias or none, times or none): one product of fusebox.gemm/1, as a plugin linked into the
// test. Attributes: order, activation, lowest, highest.
#pragma once

#include <fusebox/abi/plugin.h>

extern const fbx_entry kGemmOp;
