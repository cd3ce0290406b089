// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/packing/int4.h"

#include <xnnpack.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "plugins/xnnpack/library.h"

namespace fusebox::xnnpack {

namespace {

// Outputs that no tile divides; more columns than the widest tile has, and not a multiple of it.
constexpr size_t kOutputs = 40;
constexpr size_t kColumns = 160;
constexpr size_t kBlock = 32;
constexpr size_t kBlocks = kColumns / kBlock;
// The largest tiles have 16 rows. Numbers of rows with equal remainders by all usual tiles behave alike.
constexpr size_t kTile = 16;
constexpr size_t kPeriod = 1680;

// Different for adjacent rows, so that parameters of another row lead to other results.
float LargestOf(size_t row) { return 1 + 0.4f * static_cast<float>(row % 11); }
int WeightAt(size_t output, size_t column) {
  return static_cast<int>((output * 13 + column * 7 + column / 16) % 16) - 8;
}
// Exact as bfloat16.
float ScaleAt(size_t output, size_t block) { return 0.25f * static_cast<float>(1 + (output + block) % 3); }

struct DeleteSubgraph {
  void operator()(xnn_subgraph_t graph) const { xnn_delete_subgraph(graph); }
};
struct DeleteRuntime {
  void operator()(xnn_runtime_t runtime) const { xnn_delete_runtime(runtime); }
};

// A product of a fixed matrix by any number of rows.
class Trial {
 public:
  explicit Trial(bool blocks) : blocks_(blocks), weights_(kOutputs * kColumns / 2 + XNN_EXTRA_BYTES) {
    const int flip = blocks ? 8 : 0;  // XNNPACK stores weights of blocks with zero point 8
    for (size_t i = 0; i < kOutputs * kColumns; ++i) {
      const auto nibble = static_cast<unsigned>((WeightAt(i / kColumns, i % kColumns) + flip) & 15);
      weights_[i / 2] = static_cast<uint8_t>(weights_[i / 2] | nibble << (i % 2 * 4));
    }
    for (size_t i = 0; i < pattern_.size(); ++i)
      pattern_[i] = static_cast<float>(i * 57 % kPattern) / (kPattern / 2) - 1;
    for (size_t i = 0; i < kOutputs; ++i) {
      for (size_t k = 0; k < kColumns; ++k) {
        const float scale = ScaleAt(i, blocks ? k / kBlock : 0);
        real_weights_[i * kColumns + k] = scale * static_cast<float>(WeightAt(i, k));
        // Quantization of the input moves each product by less than a step.
        most_[i] += std::abs(real_weights_[i * kColumns + k]) * 2 / 255;
      }
    }
    for (size_t i = 0; i < kOutputs; ++i) {
      scales_[i] = ScaleAt(i, 0);
      for (size_t b = 0; b < kBlocks; ++b)
        block_scales_[i * kBlocks + b] = static_cast<uint16_t>(std::bit_cast<uint32_t>(ScaleAt(i, b)) >> 16);
    }
  }

  // Errors are expected in the last tile.
  bool IsRight(size_t rows) {
    std::vector<float> in(rows * kColumns + XNN_EXTRA_BYTES / sizeof(float));
    std::vector<float> out(rows * kOutputs);
    for (size_t row = 0; row < rows; ++row) {
      const float* const from = pattern_.data() + row * 31 % kPattern;
      for (size_t k = 0; k < kColumns; ++k) in[row * kColumns + k] = LargestOf(row) * from[k];
    }
    if (Run(rows, in.data(), out.data()) != xnn_status_success) return false;
    for (size_t row = 0; row < rows; ++row) {
      if (row >= kTile && row + kTile < rows) continue;
      const Results& expected = Expected(row, in.data() + row * kColumns);
      for (size_t i = 0; i < kOutputs; ++i)
        if (!(std::abs(out[row * kOutputs + i] - expected[i]) <= most_[i] * LargestOf(row))) return false;
    }
    return true;
  }

 private:
  using Results = std::array<float, kOutputs>;

  const Results& Expected(size_t row, const float* in) {
    const auto [at, is_new] = expected_.try_emplace(row);
    if (!is_new) return at->second;
    for (size_t i = 0; i < kOutputs; ++i) {
      float sum = 0;
      for (size_t k = 0; k < kColumns; ++k) sum += real_weights_[i * kColumns + k] * in[k];
      at->second[i] = sum;
    }
    return at->second;
  }

  int Run(size_t rows, float* in, float* out) {
    xnn_subgraph_t made = nullptr;
    if (const int status = xnn_create_subgraph(2, 0, &made)) return status;
    const std::unique_ptr<xnn_subgraph, DeleteSubgraph> graph(made);
    if (const int status = Define(made, rows)) return status;
    xnn_runtime_t runtime = nullptr;
    if (const int status = xnn_create_runtime_v4(made, nullptr, nullptr, nullptr, 0, &runtime)) return status;
    const std::unique_ptr<xnn_runtime, DeleteRuntime> owned(runtime);
    const std::array<xnn_external_value, 2> values{{{0, in}, {1, out}}};
    int status = xnn_reshape_runtime(runtime);
    if (status == 0) status = xnn_setup_runtime_v2(runtime, values.size(), values.data());
    return status != 0 ? status : xnn_invoke_runtime(runtime);
  }

  int Define(xnn_subgraph_t graph, size_t rows) const {
    const std::array<size_t, 2> in{rows, kColumns};
    const std::array<size_t, 2> out{rows, kOutputs};
    const std::array<size_t, 2> filter{kOutputs, kColumns};
    uint32_t x = 0;
    uint32_t q = 0;
    uint32_t w = 0;
    uint32_t y = 0;
    int status = xnn_define_tensor_value(graph, xnn_datatype_fp32, 2, in.data(), nullptr, 0,
                                         XNN_VALUE_FLAG_EXTERNAL_INPUT, &x);
    if (status == 0)
      status = xnn_define_tensor_value(graph, xnn_datatype_fp32, 2, out.data(), nullptr, 1,
                                       XNN_VALUE_FLAG_EXTERNAL_OUTPUT, &y);
    if (status == 0)
      status = xnn_define_dynamically_quantized_tensor_value(graph, xnn_datatype_qdint8, 2, 1, in.data(),
                                                             XNN_INVALID_VALUE_ID, 0, &q);
    if (status == 0) status = xnn_define_unary(graph, xnn_unary_convert, nullptr, x, q, 0);
    if (status == 0 && blocks_)
      status = xnn_define_blockwise_quantized_tensor_value(graph, xnn_datatype_qbint4, 8,
                                                           block_scales_.data(), 2, 0, kBlock, filter.data(),
                                                           weights_.data(), XNN_INVALID_VALUE_ID, 0, &w);
    if (status == 0 && !blocks_)
      status = xnn_define_channelwise_quantized_tensor_value(graph, xnn_datatype_qcint4, scales_.data(), 2, 0,
                                                             filter.data(), weights_.data(),
                                                             XNN_INVALID_VALUE_ID, 0, &w);
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    if (status == 0)
      status = xnn_define_fully_connected(graph, -kInfinity, kInfinity, q, w, XNN_INVALID_VALUE_ID, y, 0);
    return status;
  }

  static constexpr size_t kPattern = 101;
  const bool blocks_;
  std::array<float, kPattern + kColumns> pattern_{};  // inputs, before they are scaled
  std::vector<uint8_t> weights_;
  std::array<float, kOutputs> scales_{};
  std::array<uint16_t, kOutputs * kBlocks> block_scales_{};
  std::vector<float> real_weights_ = std::vector<float>(kOutputs * kColumns);
  std::array<float, kOutputs> most_{};  // error for each unit of a row's largest input
  std::map<size_t, Results> expected_;  // by row
};

// Returns whether XNNPACK may use its AMX code, whose results with a scale per channel differ from run to
// run: one trial proves nothing.
bool HasAmx() {
#if defined(__x86_64__)
  constexpr unsigned kAmxInt8 = 1U << 25;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kAmxInt8) != 0;
#else
  return false;
#endif
}

bool Try(bool blocks, size_t rows) {
  if (!blocks && HasAmx()) return false;
  if (StartLibrary() != xnn_status_success) return false;
  Trial trial(blocks);
  if (rows > 0) return trial.IsRight(rows);
  // Tries one row, all remainders, and one row after a tile, which has a special kernel where it is alone.
  for (size_t some = 1; some <= kTile + 1; ++some)
    if (!trial.IsRight(some)) return false;
  return true;
}

}  // namespace

bool MultipliesNibbles(bool blocks, size_t rows) {
  static std::mutex mutex;
  static std::map<std::pair<bool, size_t>, bool> known;
  if (rows > 2 * kPeriod) rows = kPeriod + rows % kPeriod;
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = known.try_emplace({blocks, rows}, false);
  if (is_new) at->second = Try(blocks, rows);
  return at->second;
}

}  // namespace fusebox::xnnpack
