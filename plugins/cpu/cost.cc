// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/cost.h"

#include "plugins/common/cost.h"

namespace fusebox::cpu {
namespace {

// Measured on an AMD EPYC 7003, each product with cold caches but its input.
constexpr cost::Row kAvx2[] = {
    {"CONV_2D", FBX_F32, FBX_F32, 16, 81.3, 0.0186, 1.3, 0.273, 0.189},
    {"TRANSPOSE_CONV", FBX_F32, FBX_F32, 16, 100, 0.0281, 3.4, 0.135, 0},
    {"FULLY_CONNECTED", FBX_F32, FBX_F32, 16, 100, 0.0206, 0, 0.375, 0.0485},
    {"DEPTHWISE_CONV_2D", FBX_F32, FBX_F32, 1, 100, 0.0616, 0, 0.237, 0.252},
    {"CONV_2D", FBX_I8, FBX_I8, 16, 100, 0.017, 2.87, 1.61, 0.0067},
    {"TRANSPOSE_CONV", FBX_I8, FBX_I8, 8, 100, 0.0213, 3.57, 0.469, 0},
    {"FULLY_CONNECTED", FBX_I8, FBX_I8, 16, 100, 0.0155, 0, 0.813, 0.0217},
    {"DEPTHWISE_CONV_2D", FBX_I8, FBX_I8, 1, 100, 0.063, 0.0663, 1.18, 0.209},
    {"CONV_2D", FBX_F32, FBX_I8, 32, 100, 0.0118, 2.09, 2.71, 0.048},
    {"TRANSPOSE_CONV", FBX_F32, FBX_I8, 32, 100, 0.0231, 3.8, 0.512, 0},
    {"FULLY_CONNECTED", FBX_F32, FBX_I8, 32, 100, 0.0229, 0, 1.75, 0},
    {"BATCH_MATMUL", FBX_F32, FBX_F32, 1, 100, 0.0103, 0, 0.0986, 0.466},
    {"TANH", FBX_F32, FBX_DTYPE_NONE, 1, 33.3, 0, 0, 0.974, 0},
    {"ADD", FBX_F32, FBX_DTYPE_NONE, 1, 37.1, 0, 0, 0.103, 0},
    {"MUL", FBX_F32, FBX_DTYPE_NONE, 1, 45.5, 0, 0, 0.1, 0},
    {"SUB", FBX_F32, FBX_DTYPE_NONE, 1, 50.5, 0, 0, 0.0938, 0},
    {"SQUARED_DIFFERENCE", FBX_F32, FBX_DTYPE_NONE, 1, 48.2, 0, 0, 0.0897, 0},
    {"PRELU", FBX_F32, FBX_DTYPE_NONE, 1, 100, 0, 0, 0.11, 0},
    {"LOGISTIC", FBX_F32, FBX_DTYPE_NONE, 1, 42.2, 0, 0, 0.637, 0},
    {"HARD_SWISH", FBX_F32, FBX_DTYPE_NONE, 1, 67.6, 0, 0, 0.185, 0},
    {"RELU", FBX_F32, FBX_DTYPE_NONE, 1, 44.3, 0, 0, 0.0832, 0},
    {"RELU6", FBX_F32, FBX_DTYPE_NONE, 1, 44.3, 0, 0, 0.12, 0},
    {"MEAN", FBX_F32, FBX_DTYPE_NONE, 1, 100, 0, 0, 0, 0.142},
    {"RESIZE_BILINEAR", FBX_F32, FBX_DTYPE_NONE, 1, 100, 0, 0, 0.208, 0},
    {"MAX_POOL_2D", FBX_F32, FBX_DTYPE_NONE, 1, 100, 0, 0, 0.934, 0},
    {"AVERAGE_POOL_2D", FBX_F32, FBX_DTYPE_NONE, 1, 100, 0, 0, 0.557, 0},
    {"QUANTIZE", FBX_F32, FBX_DTYPE_NONE, 1, 59.4, 0, 0, 0.888, 0},
    {"SOFTMAX", FBX_F32, FBX_DTYPE_NONE, 1, 48.4, 0, 15.1, 1.56, 0},
    {"ADD", FBX_I8, FBX_DTYPE_NONE, 1, 90.4, 0, 0, 1.28, 0},
    {"MUL", FBX_I8, FBX_DTYPE_NONE, 1, 46.3, 0, 0, 0.583, 0},
    {"SUB", FBX_I8, FBX_DTYPE_NONE, 1, 95, 0, 0, 1.3, 0},
    {"SQUARED_DIFFERENCE", FBX_I8, FBX_DTYPE_NONE, 1, 94, 0, 0, 1.38, 0},
    {"PRELU", FBX_I8, FBX_DTYPE_NONE, 1, 100, 0, 0, 3.91, 0},
    {"LOGISTIC", FBX_I8, FBX_DTYPE_NONE, 1, 40.4, 0, 0, 0.335, 0},
    {"TANH", FBX_I8, FBX_DTYPE_NONE, 1, 45.9, 0, 0, 0.333, 0},
    {"HARD_SWISH", FBX_I8, FBX_DTYPE_NONE, 1, 40.6, 0, 0, 0.342, 0},
    {"RELU", FBX_I8, FBX_DTYPE_NONE, 1, 42.6, 0, 0, 0.329, 0},
    {"RELU6", FBX_I8, FBX_DTYPE_NONE, 1, 42.4, 0, 0, 0.332, 0},
    {"MEAN", FBX_I8, FBX_DTYPE_NONE, 1, 100, 0, 0, 4.53, 0.651},
    {"RESIZE_BILINEAR", FBX_I8, FBX_DTYPE_NONE, 1, 100, 0, 0, 0.794, 0},
    {"MAX_POOL_2D", FBX_I8, FBX_DTYPE_NONE, 1, 100, 0, 0, 0.385, 0},
    {"AVERAGE_POOL_2D", FBX_I8, FBX_DTYPE_NONE, 1, 83.3, 0, 0, 1.08, 0},
    {"SOFTMAX", FBX_I8, FBX_DTYPE_NONE, 1, 100, 0, 11.6, 4.5, 0},
};

// Kernels pack computed filters in each invoke.
constexpr double kPackedWeight = 0.5;

double CostOf(const sdk::Node& node) {
  const double cost = cost::CostOf(kAvx2, node);
  if (cost < 0) return cost;
  const bool packs =
      cost::OperandsOf(node).filter >= 0 && node.op() != "DEPTHWISE_CONV_2D" && !node.in(1).is_const();
  return cost::Slowness() * (packs ? cost + kPackedWeight * cost::Count(node.in(1)) : cost);
}

double KernelCost(const fbx_host* host, const fbx_kernel*, const fbx_node* node) noexcept {
  return sdk::detail::guarded_cost([&] { return CostOf(sdk::Node(host, node)); });
}

constexpr fbx_cost kTable{FBX_HEAD(fbx_cost), KernelCost, nullptr, nullptr};

}  // namespace

const void* CostService::table() noexcept { return &kTable; }

}  // namespace fusebox::cpu
