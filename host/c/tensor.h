// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "fusebox/c.h"
#include "host/graph/types.h"

namespace fusebox::c {

// Sets all members but struct_size. `out` borrows type, data, name and quantization.
void Fill(fusebox_tensor& out, const Type& type, std::span<const std::byte> data, const std::string& name,
          const Quant* quant);

}  // namespace fusebox::c
