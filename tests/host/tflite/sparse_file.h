// SPDX-License-Identifier: Apache-2.0
// Rewrites files with dense constants as files with sparse ones.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tflite {
struct SparsityParametersT;
}

namespace fusebox::testing {

// Storage of a sparse constant: dimensions of the levels, outermost first (block dimensions are numbered
// after the tensor's own), the dimension that each block divides, its size, and which levels are sparse.
struct SparseForm {
  std::vector<int32_t> order;
  std::vector<int32_t> block_of = {};
  std::vector<int32_t> block_size = {};
  std::vector<bool> sparse;
  int index_bits = 32;  // 8, 16 or 32
  std::function<void(::tflite::SparsityParametersT&, std::vector<uint8_t>& stored)> damage = {};
};

// The file with constant `name` of the first subgraph stored in that form. `densify`: its readers use a
// DENSIFY.
std::string WithSparse(std::string_view file, const std::string& name, const SparseForm& form, bool densify);

}  // namespace fusebox::testing
