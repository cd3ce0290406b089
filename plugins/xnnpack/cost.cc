// SPDX-License-Identifier: Apache-2.0
// Estimates of XNNPACK's times (fusebox.cost/1).
#include "plugins/common/cost.h"

#include "plugins/xnnpack/delegate.h"

namespace fusebox::xnnpack {
namespace {

// Measured by tests/bench/cost_constants.py on an AMD EPYC 7003.
constexpr cost::Row kAvx2[] = {
    {"CONV_2D", FBX_F32, FBX_F32, 8, 100, 0.0606, 0.248, 0.156, 0.26},
    {"TRANSPOSE_CONV", FBX_F32, FBX_F32, 8, 100, 0.0748, 3.03, 0, 0.0879},
    {"FULLY_CONNECTED", FBX_F32, FBX_F32, 1, 100, 0.074, 0, 0, 0.00708},
    {"DEPTHWISE_CONV_2D", FBX_F32, FBX_F32, 16, 100, 0.0821, 0.419, 0, 0.0637},
    {"CONV_2D", FBX_I8, FBX_I8, 8, 100, 0.0203, 1.89, 0.89, 0.0878},
    {"TRANSPOSE_CONV", FBX_I8, FBX_I8, 32, 100, 0.0303, 5.9, 0.142, 0},
    {"FULLY_CONNECTED", FBX_I8, FBX_I8, 8, 100, 0.0215, 0, 0.489, 0.019},
    {"DEPTHWISE_CONV_2D", FBX_I8, FBX_I8, 1, 100, 0.111, 0.61, 0, 0},
    {"CONV_2D", FBX_F32, FBX_I8, 8, 100, 0.0224, 1.41, 0.916, 0},
    {"TRANSPOSE_CONV", FBX_F32, FBX_I8, 32, 100, 0.0294, 4.96, 0.101, 0},
    {"FULLY_CONNECTED", FBX_F32, FBX_I8, 32, 100, 0.0139, 0, 1.02, 0.00382},
    {"BATCH_MATMUL", FBX_F32, FBX_F32, 1, 100, 0.0687, 0, 0, 0.00791},
    {"TANH", FBX_F32, FBX_DTYPE_NONE, 1, 41.5, 0, 0, 0.261, 0},
    {"ADD", FBX_F32, FBX_DTYPE_NONE, 1, 35.3, 0, 0, 0.096, 0},
    {"MUL", FBX_F32, FBX_DTYPE_NONE, 1, 41.1, 0, 0, 0.0924, 0},
    {"SUB", FBX_F32, FBX_DTYPE_NONE, 1, 46, 0, 0, 0.0849, 0},
    {"SQUARED_DIFFERENCE", FBX_F32, FBX_DTYPE_NONE, 1, 45.5, 0, 0, 0.083, 0},
    {"PRELU", FBX_F32, FBX_DTYPE_NONE, 1, 62.3, 0, 0, 0.0906, 0},
    {"LOGISTIC", FBX_F32, FBX_DTYPE_NONE, 1, 55.6, 0, 0, 0.486, 0},
    {"HARD_SWISH", FBX_F32, FBX_DTYPE_NONE, 1, 66.4, 0, 0, 0.0888, 0},
    {"RELU", FBX_F32, FBX_DTYPE_NONE, 1, 41.2, 0, 0, 0.0759, 0},
    {"RELU6", FBX_F32, FBX_DTYPE_NONE, 1, 34.5, 0, 0, 0.0772, 0},
    {"MEAN", FBX_F32, FBX_DTYPE_NONE, 1, 66.3, 0, 0, 0, 0.0592},
    {"RESIZE_BILINEAR", FBX_F32, FBX_DTYPE_NONE, 1, 100, 0, 0, 0.402, 0},
    {"MAX_POOL_2D", FBX_F32, FBX_DTYPE_NONE, 1, 71, 0, 0, 0.588, 0},
    {"AVERAGE_POOL_2D", FBX_F32, FBX_DTYPE_NONE, 1, 68.9, 0, 0, 0.598, 0},
    {"QUANTIZE", FBX_F32, FBX_DTYPE_NONE, 1, 55.4, 0, 0, 0.0731, 0},
    {"SOFTMAX", FBX_F32, FBX_DTYPE_NONE, 1, 4.14, 0, 40.7, 0.468, 0},
    {"ADD", FBX_I8, FBX_DTYPE_NONE, 1, 40.6, 0, 0, 0.128, 0},
    {"MUL", FBX_I8, FBX_DTYPE_NONE, 1, 32.2, 0, 0, 0.23, 0},
    {"SUB", FBX_I8, FBX_DTYPE_NONE, 1, 40.4, 0, 0, 0.128, 0},
    {"SQUARED_DIFFERENCE", FBX_I8, FBX_DTYPE_NONE, 1, 100, 0, 0, 0.343, 0},
    {"PRELU", FBX_I8, FBX_DTYPE_NONE, 1, 100, 0, 0, 0.344, 0},
    {"LOGISTIC", FBX_I8, FBX_DTYPE_NONE, 1, 63.6, 0, 0, 0.198, 0},
    {"TANH", FBX_I8, FBX_DTYPE_NONE, 1, 63.5, 0, 0, 0.196, 0},
    {"HARD_SWISH", FBX_I8, FBX_DTYPE_NONE, 1, 61.1, 0, 0, 0.201, 0},
    {"RELU", FBX_I8, FBX_DTYPE_NONE, 1, 39, 0, 0, 0.017, 0},
    {"RELU6", FBX_I8, FBX_DTYPE_NONE, 1, 39.3, 0, 0, 0.0174, 0},
    {"MEAN", FBX_I8, FBX_DTYPE_NONE, 1, 70.6, 0, 0, 0.134, 0.0381},
    {"RESIZE_BILINEAR", FBX_I8, FBX_DTYPE_NONE, 1, 55, 0, 0, 0.385, 0},
    {"MAX_POOL_2D", FBX_I8, FBX_DTYPE_NONE, 1, 49.5, 0, 0, 0.209, 0},
    {"AVERAGE_POOL_2D", FBX_I8, FBX_DTYPE_NONE, 1, 51.7, 0, 0, 1.07, 0},
    {"SOFTMAX", FBX_I8, FBX_DTYPE_NONE, 1, 100, 0, 41.3, 0.721, 0},
};
// From ratios that were measured with AVX-512 before, not by the tool. The table of AVX2 has the other rows.
constexpr cost::Row kAvx512[] = {
    {"CONV_2D", FBX_F32, FBX_F32, 32, 107, 0.0202, 0.27, 0.108, 0.116},
    {"FULLY_CONNECTED", FBX_F32, FBX_F32, 32, 0, 0.0202, 0, 0, 0.00376},
    {"DEPTHWISE_CONV_2D", FBX_F32, FBX_F32, 1, 0, 0.11, 1.5, 0, 0},
    {"TRANSPOSE_CONV", FBX_F32, FBX_F32, 16, 0, 0.056, 4, 0.45, 0},
};
constexpr double kBorder = 100;

// XNNPACK computes larger depthwise windows as matrix products of one column per channel, but with few
// channels as one product.
constexpr double kMostTaps = 25;
constexpr double kFewChannels = 4;
constexpr double kWideProduct = 2;

bool IsWide(const Node& n) {
  if (n.op() != "DEPTHWISE_CONV_2D") return false;
  return cost::Dim(n.in(1), 1) * cost::Dim(n.in(1), 2) > kMostTaps && cost::Dim(n.in(0), 3) > kFewChannels;
}

}  // namespace

double Delegate::cost(const Graph&, const GraphNode& node) const {
  if (!settings_.by_cost || settings_.half) return FBX_NO_COST;
  if (IsWide(node)) return cost::Slowness() * kWideProduct * cost::WorkOf(node, 1).products;
  // Only these are known to be slow on all CPUs.
  if (!cost::HasAvx2() && node.op() != "SOFTMAX") return FBX_NO_COST;
  const double cost = cost::HasAvx512() ? cost::CostOf(kAvx512, node) : FBX_NO_COST;
  return cost >= 0 ? cost : cost::Slowness() * cost::CostOf(kAvx2, node);
}

double Delegate::border(uint64_t) const { return kBorder; }

}  // namespace fusebox::xnnpack
