// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

float Relu6(double x) { return static_cast<float>(std::clamp(x, 0.0, 6.0)); }

// The definition, in double. `rows` times `depth` against `outputs` times `depth`.
void Dense(Cases& c, int64_t rows, int64_t depth, int64_t outputs, bool bias) {
  const Data x = Random<float>({rows, depth}, 1, -1, 1), w = Random<float>({outputs, depth}, 2, -1, 1),
             b = Random<float>({outputs}, 3);
  const std::vector<float> vx = As<float>(x), vw = As<float>(w), vb = As<float>(b);
  std::vector<float> y;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < outputs; ++j) {
      double sum = bias ? vb[static_cast<size_t>(j)] : 0;
      for (int64_t p = 0; p < depth; ++p)
        sum += static_cast<double>(vx[static_cast<size_t>(i * depth + p)]) *
               vw[static_cast<size_t>(j * depth + p)];
      y.push_back(Relu6(sum));
    }
  }
  c.push_back({.name = std::to_string(rows) + "x" + std::to_string(depth) + "x" + std::to_string(outputs),
               .op = "FULLY_CONNECTED",
               .operands = {x, w, bias ? b : Absent()},
               .attrs = {{"fused_activation_function", "RELU6"}},
               .results = {F32({rows, outputs}, y)},
               .atol = 1e-5,
               .rtol = 1e-5});
}

const Suite kFullyConnected("fully_connected", [](Cases& c) {
  Dense(c, 1, 7, 5, true);
  Dense(c, 1, 128, 200, false);
  Dense(c, 3, 33, 66, true);
  Dense(c, 5, 1, 3, true);
  Dense(c, 13, 800, 67, true);
  Dense(c, 131, 17, 9, false);
  Dense(c, 261, 1601, 4, true);
  const Data w = F32({2, 3}, {1, 0, 0, 1, 1, 1}), b = F32({2}, {10, 20});
  c.push_back({.name = "more dims are rows",
               .op = "FULLY_CONNECTED",
               .operands = {F32({2, 1, 3}, {1, 2, 3, 4, 5, 6}), w, b},
               .results = {F32({2, 2}, {11, 26, 14, 35})}});
  c.push_back({.name = "rows across dims",
               .op = "FULLY_CONNECTED",
               .operands = {F32({3, 2}, {1, 2, 3, 4, 5, 6}), w, b},
               .results = {F32({2, 2}, {11, 26, 14, 35})}});
  std::vector<float> rows, tanhs;
  for (int i = 0; i < 40; ++i)
    rows.push_back(0.1f * static_cast<float>(i - 20)), tanhs.push_back(std::tanh(rows.back()));
  c.push_back({.name = "fused tanh",
               .op = "FULLY_CONNECTED",
               .operands = {F32({40, 1}, rows), F32({1, 1}, {1})},
               .attrs = {{"fused_activation_function", "TANH"}},
               .results = {F32({40, 1}, tanhs)},
               .atol = 1e-6});
  c.push_back({.name = "dims are kept",
               .op = "FULLY_CONNECTED",
               .operands = {F32({2, 1, 3}, {1, 2, 3, 4, 5, 6}), w, b},
               .attrs = {{"keep_num_dims", true}},
               .results = {F32({2, 1, 2}, {11, 26, 14, 35})}});
  c.push_back({.name = "two operands",
               .op = "FULLY_CONNECTED",
               .operands = {F32({3}, {1, 2, 3}), w},
               .results = {F32({1, 2}, {1, 6})}});
  c.push_back({.name = "no rows",
               .op = "FULLY_CONNECTED",
               .operands = {F32({0, 3}, {0}), w, b},
               .results = {F32({0, 2}, {0})}});
  c.push_back({.name = "no depth",
               .op = "FULLY_CONNECTED",
               .operands = {F32({2, 0}, {0}), F32({2, 0}, {0}), b},
               .results = {F32({2, 2}, {10, 20, 10, 20})}});
  c.push_back({.name = "a bias of one axis more",
               .op = "FULLY_CONNECTED",
               .operands = {F32({1, 3}, {1, 2, 3}), w, F32({1, 2}, {10, 20})},
               .results = {F32({1, 2}, {11, 26})}});
  c.push_back({.name = "depth",
               .op = "FULLY_CONNECTED",
               .operands = {F32({1, 4}, {1}), w},
               .error = "does not divide into rows of 3"});
  c.push_back({.name = "depth with dims kept",
               .op = "FULLY_CONNECTED",
               .operands = {F32({3, 2}, {1}), w},
               .attrs = {{"keep_num_dims", true}},
               .error = "depth of the weights"});
  c.push_back({.name = "bias",
               .op = "FULLY_CONNECTED",
               .operands = {F32({1, 3}, {1}), w, F32({3}, {1})},
               .error = "a bias of 3 values for 2 channels"});
  c.push_back({.name = "weights of rank 1",
               .op = "FULLY_CONNECTED",
               .operands = {F32({1, 3}, {1}), F32({3}, {1})},
               .error = "rank 1, expected 2"});
  c.push_back({.name = "no weights",
               .op = "FULLY_CONNECTED",
               .operands = {F32({1, 3}, {1}), Absent()},
               .error = "is missing"});
  c.push_back({.name = "shuffled",
               .op = "FULLY_CONNECTED",
               .operands = {F32({1, 3}, {1}), w},
               .attrs = {{"weights_format", "SHUFFLED4x16INT8"}},
               .refused = "SHUFFLED"});
});

// One batch, then the same for others by the caller's shapes.
void Product(Cases& c, std::vector<int64_t> xb, std::vector<int64_t> yb, int64_t m, int64_t k, int64_t n,
             bool adj_x, bool adj_y) {
  std::vector<int64_t> xd = xb, yd = yb, batch;
  xd.insert(xd.end(), {adj_x ? k : m, adj_x ? m : k});
  yd.insert(yd.end(), {adj_y ? n : k, adj_y ? k : n});
  const Data x = Random<float>(xd, 4, -1, 1), y = Random<float>(yd, 5, -1, 1);
  const size_t rank = std::max(xb.size(), yb.size());
  xb.insert(xb.begin(), rank - xb.size(), 1);
  yb.insert(yb.begin(), rank - yb.size(), 1);
  int64_t batches = 1;
  for (size_t d = 0; d < rank; ++d) batch.push_back(std::max(xb[d], yb[d])), batches *= batch[d];
  const std::vector<float> vx = As<float>(x), vy = As<float>(y);
  std::vector<float> z;
  for (int64_t b = 0; b < batches; ++b) {
    int64_t rest = b, xi = 0, yi = 0, xs = 1, ys = 1;
    for (size_t d = rank; d-- > 0; rest /= batch[d]) {
      xi += rest % batch[d] % xb[d] * xs;
      yi += rest % batch[d] % yb[d] * ys;
      xs *= xb[d];
      ys *= yb[d];
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p)
          sum += static_cast<double>(vx[static_cast<size_t>(xi * m * k + (adj_x ? p * m + i : i * k + p))]) *
                 vy[static_cast<size_t>(yi * k * n + (adj_y ? j * k + p : p * n + j))];
        z.push_back(static_cast<float>(sum));
      }
    }
  }
  std::vector<int64_t> dims = batch;
  dims.insert(dims.end(), {m, n});
  c.push_back({.name = std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n),
               .op = "BATCH_MATMUL",
               .operands = {x, y},
               .attrs = {{"adj_x", adj_x}, {"adj_y", adj_y}},
               .results = {F32(dims, z)},
               .atol = 1e-5,
               .rtol = 1e-5});
}

const Suite kBatchMatMul("batch_matmul", [](Cases& c) {
  Product(c, {}, {}, 2, 3, 4, false, false);
  Product(c, {2}, {2}, 3, 5, 7, true, false);
  Product(c, {2}, {2}, 3, 5, 7, false, true);
  Product(c, {2, 3}, {3}, 4, 9, 6, true, true);
  Product(c, {2, 1}, {1, 3}, 1, 17, 20, false, false);
  Product(c, {}, {5}, 6, 2, 1, false, false);
  // Rows that packed weights pay for; broadcast both ways.
  Product(c, {2, 1}, {1, 3}, 17, 9, 37, false, false);
  Product(c, {3}, {3}, 20, 5, 40, false, true);
  Product(c, {2}, {}, 18, 6, 33, true, false);
  Product(c, {1}, {1}, 70, 129, 65, false, false);
  c.push_back({.name = "no depth",
               .op = "BATCH_MATMUL",
               .operands = {F32({2, 0}, {0}), F32({0, 2}, {0})},
               .results = {F32({2, 2}, {0})}});
  c.push_back({.name = "no batch",
               .op = "BATCH_MATMUL",
               .operands = {F32({0, 2, 3}, {0}), F32({0, 3, 2}, {0})},
               .results = {F32({0, 2, 2}, {0})}});
  c.push_back({.name = "depth",
               .op = "BATCH_MATMUL",
               .operands = {F32({2, 3}, {1}), F32({2, 3}, {1})},
               .error = "contracted dims differ"});
  c.push_back({.name = "batches",
               .op = "BATCH_MATMUL",
               .operands = {F32({2, 2, 3}, {1}), F32({3, 3, 2}, {1})},
               .error = "do not broadcast"});
  c.push_back({.name = "a vector",
               .op = "BATCH_MATMUL",
               .operands = {F32({3}, {1}), F32({3, 2}, {1})},
               .error = "rank 2 or more"});
  c.push_back({.name = "i32",
               .op = "BATCH_MATMUL",
               .operands = {I32({1, 1}, {1}), I32({1, 1}, {1})},
               .refused = "i32"});
});

}  // namespace
}  // namespace fusebox::conformance
