// SPDX-License-Identifier: Apache-2.0
// Conformance cases of the kernels, computed by hand: through the C ABI, on operands of every alignment,
// between guard bytes, with poisoned results and scratch, without and with threads.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plugins/nn/attention/attention.h"
#include "plugins/nn/cache/update_rows.h"
#include "plugins/nn/norms/group_norm.h"
#include "plugins/nn/norms/l2_norm.h"
#include "plugins/nn/norms/rms_norm.h"
#include "plugins/nn/rope/rope.h"
#include "tests/conformance/cases/harness.h"

namespace fusebox::nn_test {
namespace {

using conformance::Bool;
using conformance::Case;
using conformance::Data;
using conformance::F32;
using conformance::I32;
using conformance::I64;
using conformance::I8;

template <class K>
void RunAll(std::vector<Case> cases) {
  for (Case& c : cases) {
    SCOPED_TRACE(c.name);
    c.op = K::custom;
    c.also_f64 = false;
    if (c.atol == 0) c.atol = 1e-5;
    if (c.results.empty()) c.results = {F32({1}, {0})};
    conformance::RunCase(sdk::kernel_of<K>, c);
  }
}

TEST(NnKernels, RmsNorm) {
  const Data x = F32({2, 2}, {3, 4, 0, 0}), scale = F32({2}, {1, 2});
  RunAll<nn::RmsNorm>({
      {.name = "scaled",
       .operands = {x, scale},
       .attrs = {{"epsilon", 0.5}},
       .results = {F32({2, 2}, {0.83205f, 2.21880f, 0, 0})}},
      {.name = "no rows",
       .operands = {F32({0, 2}, {0}), scale},
       .attrs = {{"epsilon", 0.5}},
       .results = {F32({0, 2}, {0})}},
      {.name = "another size",
       .operands = {x, F32({3}, {1})},
       .attrs = {{"epsilon", 0.5}},
       .error = "does not have the size of the last dimension"},
      {.name = "i8",
       .operands = {I8({1, 2}, {1}), scale},
       .attrs = {{"epsilon", 0.5}},
       .refused = "is i8, expected f32"},
      {.name = "one operand",
       .operands = {x},
       .attrs = {{"epsilon", 0.5}},
       .refused = "has 1 operands, expected 2"},
  });
}

TEST(NnKernels, L2Norm) {
  RunAll<nn::L2Norm>({
      {.name = "rows",
       .operands = {F32({2, 2}, {3, 4, 0, -2})},
       .attrs = {{"epsilon", 0.0}},
       .results = {F32({2, 2}, {0.6f, 0.8f, 0, -1})}},
      {.name = "epsilon",
       .operands = {F32({2}, {3, 0})},
       .attrs = {{"epsilon", 16.0}},
       .results = {F32({2}, {0.6f, 0})}},
  });
}

TEST(NnKernels, GroupNorm) {
  const Data scale = F32({2}, {2, 3}), bias = F32({2}, {10, 20});
  RunAll<nn::GroupNorm>({
      {.name = "layer",
       .operands = {F32({2, 2}, {1, 3, 5, 1}), scale, bias},
       .attrs = {{"epsilon", 0.0}, {"statistics", "position"}},
       .results = {F32({2, 2}, {8, 23, 12, 17})}},
      {.name = "layer without scale",
       .operands = {F32({2, 2}, {1, 3, 5, 1})},
       .attrs = {{"epsilon", 3.0}, {"statistics", "position"}},
       .results = {F32({2, 2}, {-0.5f, 0.5f, 0.755929f, -0.755929f})}},
      {.name = "groups of one channel, the last dimension",
       .operands = {F32({1, 2, 2}, {1, 10, 3, 30}), scale, bias},
       .attrs = {{"epsilon", 0.0}, {"num_groups", 2}, {"statistics", "group"}},
       .results = {F32({1, 2, 2}, {8, 17, 12, 23})}},
      {.name = "groups of one channel, dimension 1",
       .operands = {F32({1, 2, 2}, {1, 3, 10, 30}), scale, bias},
       .attrs = {{"epsilon", 0.0}, {"num_groups", 2}, {"channel_axis", 1}, {"statistics", "group"}},
       .results = {F32({1, 2, 2}, {8, 12, 17, 23})}},
      {.name = "positions, dimension 1",
       .operands = {F32({1, 2, 2}, {1, 10, 3, 30}), scale, bias},
       .attrs = {{"epsilon", 0.0}, {"channel_axis", 1}, {"statistics", "position"}},
       .results = {F32({1, 2, 2}, {8, 8, 23, 23})}},
      {.name = "elements",
       .operands = {F32({2, 2}, {1, 3, 5, 1}), scale, bias},
       .attrs = {{"epsilon", 1.0}, {"num_groups", 2}, {"statistics", "element"}},
       .results = {F32({2, 2}, {10, 20, 10, 20})}},
      {.name = "three groups of two channels",
       .operands = {F32({1, 2}, {1, 3})},
       .attrs = {{"epsilon", 0.0}, {"num_groups", 3}, {"statistics", "group"}},
       .error = "2 channels are not divisible"},
      {.name = "an axis too many",
       .operands = {F32({1, 2}, {1, 3})},
       .attrs = {{"epsilon", 0.0}, {"channel_axis", 2}, {"statistics", "group"}},
       .error = "is no dimension of operand 0"},
  });
}

TEST(NnKernels, Attention) {
  const Data q = F32({1, 2, 1, 2}, {0, 0, 2, 0}), k = F32({1, 2, 1, 2}, {0, 1, 0.5f, 3}),
             v = F32({1, 2, 1, 3}, {1, 2, 3, 5, 6, 7});
  RunAll<nn::Attention>({
      {.name = "mean, and weights of 0 and 1",
       .operands = {q, k, v},
       .attrs = {{"scale", 1.0}},
       .results = {F32({1, 2, 1, 3}, {3, 4, 5, 3.924234f, 4.924234f, 5.924234f})}},
      {.name = "scale of the size",
       .operands = {q, k, v},
       .results = {F32({1, 2, 1, 3}, {3, 4, 5, 3.679046f, 4.679046f, 5.679046f})}},
      {.name = "causal",
       .operands = {q, k, v},
       .attrs = {{"scale", 1.0}, {"causal", true}},
       .results = {F32({1, 2, 1, 3}, {1, 2, 3, 3.924234f, 4.924234f, 5.924234f})}},
      {.name = "masked",
       .operands = {q, k, v, F32({1, 1, 2, 2}, {0, -1e30f, -1e30f, 0})},
       .attrs = {{"scale", 1.0}},
       .results = {F32({1, 2, 1, 3}, {1, 2, 3, 5, 6, 7})}},
      {.name = "one mask for all",
       .operands = {q, k, v, F32({1, 1, 1, 1}, {5})},
       .attrs = {{"scale", 1.0}},
       .results = {F32({1, 2, 1, 3}, {3, 4, 5, 3.924234f, 4.924234f, 5.924234f})}},
      {.name = "two heads of q for one of k",
       .operands = {F32({1, 1, 2, 1}, {0, 100}), F32({1, 2, 1, 1}, {0, 1}), F32({1, 2, 1, 1}, {2, 4})},
       .results = {F32({1, 1, 2, 1}, {3, 4})}},
      {.name = "i8 caches",
       .operands = {F32({1, 1, 2, 1}, {0, 100}), I8({1, 2, 1, 1}, {3, 5}).Quantized(0.5f, 3),
                    I8({1, 2, 1, 1}, {-1, 7}).Quantized(0.25f, -5)},
       .results = {F32({1, 1, 2, 1}, {2, 3})}},
      {.name = "no keys",
       .operands = {q, F32({1, 0, 1, 2}, {0}), F32({1, 0, 1, 3}, {0})},
       .results = {F32({1, 2, 1, 3}, {0})}},
      {.name = "i8 without a scale",
       .operands = {q, I8({1, 2, 1, 2}, {0}), v},
       .refused = "is neither f32 nor f16 nor i8 with one scale"},
      {.name = "a mask of three keys",
       .operands = {q, k, v, F32({1, 1, 2, 3}, {0})},
       .refused = "is not broadcast to [batch, heads, positions, keys]"},
      {.name = "a bool mask",
       .operands = {q, k, v, Bool({1, 1, 2, 2}, {true, false, false, true})},
       .attrs = {{"scale", 1.0}, {"hidden", -1e4}},
       .results = {F32({1, 2, 1, 3}, {1, 2, 3, 5, 6, 7})}},
      {.name = "a bool mask that has no score",
       .operands = {q, k, v, Bool({1, 2}, {true, false})},
       .refused = "is bool, expected f32"},
      {.name = "transposed values alone",
       .operands = {q, k, v},
       .attrs = {{"transposed_values", true}},
       .refused = "needs heads_first"},
      {.name = "other heads of v", .operands = {q, k, F32({1, 2, 2, 3}, {0})}, .refused = "the heads of k"},
  });
}

TEST(NnKernels, Rope) {
  const Data x = F32({1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), rate = F32({1}, {0.5f});
  const Data positions = I32({2}, {0, 1});
  // cos(0.5) = 0.8775826, sin(0.5) = 0.4794255
  const Data turned = F32({1, 2, 2, 2}, {1, 2, 0.71504571f, 4.94860679f, 5, 6, 2.30767412f, 10.3766391f});
  RunAll<nn::Rope>({
      {.name = "positions in dimension 1",
       .operands = {x, positions, rate},
       .attrs = {{"axis", int64_t{1}}},
       .results = {F32({1, 2, 2, 2}, {1, 2, 3, 4, 1.51135989f, 7.66262311f, 2.30767412f, 10.3766391f})}},
      {.name = "positions in dimension 2",
       .operands = {x, positions, rate},
       .attrs = {{"axis", int64_t{2}}},
       .results = {turned}},
      {.name = "divides",
       .operands = {x, I32({2}, {0, 2}), F32({1}, {4})},
       .attrs = {{"axis", int64_t{2}}, {"divides", true}},
       .results = {turned}},
      {.name = "another number of positions",
       .operands = {x, I32({3}, {0, 1, 2}), rate},
       .attrs = {{"axis", int64_t{1}}},
       .error = "does not have one element per position of dimension 1"},
      {.name = "another number of rates",
       .operands = {x, positions, F32({2}, {1, 1})},
       .attrs = {{"axis", int64_t{1}}},
       .refused = "one element per pair of features"},
      {.name = "the dimension of the features",
       .operands = {x, positions, rate},
       .attrs = {{"axis", int64_t{3}}},
       .refused = "is no dimension before the last one"},
      {.name = "positions in f32",
       .operands = {x, F32({2}, {0, 1}), rate},
       .attrs = {{"axis", int64_t{1}}},
       .refused = "is neither i32 nor i64"},
  });
}

TEST(NnKernels, UpdateRows) {
  const conformance::Data cache = F32({1, 4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const conformance::Data rows = F32({1, 3, 2}, {10, 11, 12, 13, 14, 15});
  RunAll<nn::UpdateRows>({
      {.name = "gaps",
       .operands = {cache, I32({3}, {0, 1, 3}), rows},
       .results = {F32({1, 4, 2}, {10, 11, 12, 13, 5, 6, 14, 15})}},
      {.name = "a smaller position ends it",
       .operands = {cache, I64({3}, {2, 0, 3}), rows},
       .results = {F32({1, 4, 2}, {1, 2, 3, 4, 10, 11, 7, 8})}},
      {.name = "a negative position ends it",
       .operands = {cache, I64({3}, {-1, 0, 9}), rows},
       .results = {cache}},
      {.name = "the last of equal positions",
       .operands = {cache, I32({3}, {1, 1, 1}), rows},
       .results = {F32({1, 4, 2}, {1, 2, 14, 15, 5, 6, 7, 8})}},
      {.name = "batch",
       .operands = {F32({2, 2, 1}, {1, 2, 3, 4}), I32({1}, {1}), F32({2, 1, 1}, {8, 9})},
       .results = {F32({2, 2, 1}, {1, 8, 3, 9})}},
      {.name = "all rows",
       .operands = {F32({1, 2, 1}, {1, 2}), I32({2}, {1, 1}), F32({1, 2, 1}, {8, 9})},
       .results = {F32({1, 2, 1}, {1, 9})}},
      {.name = "no rows", .operands = {cache, I32({0}, {0}), F32({1, 0, 2}, {0})}, .results = {cache}},
      {.name = "no cache",
       .operands = {F32({1, 0, 2}, {0}), I32({1}, {0}), F32({1, 1, 2}, {0})},
       .results = {F32({1, 0, 2}, {0})}},
      {.name = "outside",
       .operands = {cache, I32({3}, {0, 4, 5}), rows},
       .results = {cache},
       .error = "position 4 is outside of a cache of 4"},
      {.name = "bytes",
       .operands = {I8({1, 1, 1}, {0}), I32({1}, {0}), I8({1, 1, 1}, {0})},
       .results = {I8({1, 1, 1}, {0})},
       .refused = "is neither f32 nor f16"},
      {.name = "positions for other rows",
       .operands = {cache, I32({2}, {0, 1}), rows},
       .results = {cache},
       .refused = "does not have one position per row"},
      {.name = "other rows",
       .operands = {cache, I32({3}, {0, 1, 2}), F32({1, 3, 3}, {0})},
       .results = {cache},
       .refused = "differs from operand 0 in dimension 2"},
  });
}

}  // namespace
}  // namespace fusebox::nn_test
