// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "tests/converter/import/tables/translate_cases.h"

namespace fusebox::converter {

std::vector<SourceOp> SegmentCases() {
  const Tensor rows = F({4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}), ids = I({4}, {0, 0, 2, 2});
  const Tensor x = F({2, 3}, {1, 2, 3, 4, 5, 6}), places = I({3, 2}, {0, 1, 1, 2, 0, 1});
  const Tensor updates = F({3}, {10, -1, 20}), long_list = L({5}, {7, 3, 7, 7, 3});
  const Tensor none = F({0}, {});
  constexpr float inf = std::numeric_limits<float>::infinity();
  const auto hot = A("T", DType::kF32, "binary_output", true);
  return {
      {"SegmentSum", {F({3}, {1, 2, 3}), I({3}, {0, 0, 1})}, {3, 3}},
      {"SegmentMean", {rows, ids}, {2, 3, 0, 0, 1, -1}},
      {"SegmentMean", {F({2}, {1, 3}), L({2}, {0, 0})}, {2}},
      {"SegmentMax", {rows, ids}, {3, 4, 0, 0, 7, 6}},
      {"SegmentMin", {rows, ids}, {1, 2, 0, 0, -5, -8}},
      {"SegmentMax", {F({4}, {-inf, -inf, 1, -inf}), I({4}, {0, 0, 2, 2})}, {-inf, 0, 1}},
      {"SegmentMin", {F({4}, {inf, inf, 1, inf}), I({4}, {0, 0, 2, 2})}, {inf, 0, 1}},
      {"SegmentMax", {F({1}, {-3.4028235e38f}), I({1}, {0})}, {-3.4028234663852886e38}},
      {"SegmentProd", {rows, ids}, {3, 8, 1, 1, -35, -48}},
      {"SparseSegmentSum", {rows, I({3}, {3, 0, 0}), I({3}, {0, 0, 1})}, {8, -6, 1, 2}},
      {"SparseSegmentMean", {rows, L({3}, {3, 0, 0}), I({3}, {0, 0, 1})}, {4, -3, 1, 2}},
      {"SparseSegmentSqrtN", {rows, I({2}, {3, 0}), I({2}, {1, 1})}, {0, 0, 8 / 1.41421356, -6 / 1.41421356}},
      {"Unique", {long_list}, {7, 3}, A("out_idx", DType::kI64), 2},
      {"UniqueV2", {long_list, L({0}, {})}, {7, 3}, {}, 2},
      {"UniqueWithCounts", {long_list}, {7, 3}, {}, 3},
      {"UniqueWithCountsV2", {long_list, I({1}, {0})}, {7, 3}, {}, 3},
      {"DenseBincount",
       {L({2, 3}, {0, 2, 2, 1, 5, 0}), L({}, {3}), none},
       {1, 0, 2, 1, 1, 0},
       A("T", DType::kF32)},
      {"DenseBincount", {L({2, 3}, {0, 2, 2, 1, 5, 0}), L({}, {3}), none}, {1, 0, 1, 1, 1, 0}, hot},
      {"DenseBincount", {I({0}, {}), I({}, {3}), none}, {0, 0, 0}, hot},
      {"DenseBincount", {I({3}, {0, 1, 0}), I({}, {2}), F({3}, {0.5f, 2, 3})}, {3.5, 2}},
      {"Bincount", {I({3}, {0, 1, 0}), I({}, {3}), none}, {2, 1, 0}},
      {"LowerBound", {F({2, 3}, {1, 2, 3, 4, 4, 6}), F({2, 2}, {2, 9, 4, 0})}, {1, 3, 0, 0}, {}, 1, 2},
      {"UpperBound", {F({1, 3}, {1, 2, 2}), F({1, 2}, {2, 0})}, {3, 0}, A("out_type", DType::kI64), 1, 2},
      {"TensorScatterSub", {x, places, updates}, {1, -28, 3, 4, 5, 7}, {}, 1, 3},
      {"TensorScatterMax", {x, places, updates}, {1, 20, 3, 4, 5, 6}, {}, 1, 3},
      {"TensorScatterMin", {x, places, updates}, {1, 2, 3, 4, 5, -1}, {}, 1, 3},
      {"TensorScatterMin", {x, L({1, 1}, {1}), F({1, 3}, {9, 0, 9})}, {1, 2, 3, 4, 0, 6}, {}, 1, 3},
      {"TensorScatterMax", {F({3}, {-inf, -inf, 2}), I({1, 1}, {1}), F({1}, {5})}, {-inf, 5, 2}, {}, 1, 3},
      {"TensorScatterMin", {F({2}, {inf, 1}), I({1, 1}, {1}), F({1}, {inf})}, {inf, 1}, {}, 1, 3},
      {"InvertPermutation", {I({4}, {2, 0, 3, 1})}, {1, 3, 0, 2}},
      {"InvertPermutation", {L({2}, {1, 0})}, {1, 0}},
  };
}

std::vector<SourceOp> FormCases() {
  const Tensor m = F({2, 3}, {1, 2, 3, 4, 5, 6}), image = F({1, 2, 2, 1}, {1, 2, 3, 4});
  const Tensor no_crops = I({2, 2}, {0, 0, 0, 0});
  return {
      {"Concat", {I({}, {1}), m, F({2, 1}, {8, 9})}, {1, 2, 3, 8, 4, 5, 6, 9}, {}, 1, 0},
      {"TopK", {m}, {3, 2, 6, 5}, A("k", 2), 2},
      {"SpaceToBatch", {image, no_crops}, {1, 2, 3, 4}, A("block_size", 2)},
      {"BatchToSpace", {F({4, 1, 1, 1}, {1, 2, 3, 4}), I({2, 2}, {0, 1, 0, 0})}, {1, 2}, A("block_size", 2)},
      {"Cumprod", {m, I({}, {1})}, {1, 2, 6, 4, 20, 120}},
      {"Cumprod", {m, I({}, {-1})}, {6, 6, 3, 120, 30, 6}, A("reverse", true)},
      {"Cumprod", {m, I({}, {0})}, {1, 1, 1, 1, 2, 3}, A("exclusive", true)},
      {"Cumprod", {m, I({}, {1})}, {6, 3, 1, 30, 6, 1}, A("exclusive", true, "reverse", true)},
      {"Cumprod", {I({5}, {1, 2, 3, 4, 5}), I({}, {0})}, {1, 2, 6, 24, 120}},
      {"EuclideanNorm", {F({2, 2}, {3, 4, 0, 2}), I({1}, {1})}, {5, 2}},
      {"EuclideanNorm", {F({2, 2}, {3, 4, 0, 0}), L({2}, {0, 1})}, {5}, A("keep_dims", true)},
  };
}

std::vector<SourceOp> BitCases() {
  const Tensor x = I({4}, {12, -1, -8, 0x7fffffff}), y = I({4}, {10, 5, 6, -1});
  const Tensor bytes = {{DType::kU8, {2}}, Buffer::Of<uint8_t>(std::vector<uint8_t>{0xf0, 3})};
  const Tensor mask = {{DType::kU8, {2}}, Buffer::Of<uint8_t>(std::vector<uint8_t>{0x3c, 1})};
  return {
      {"BitwiseXor", {x, y}, {6, -6, -2, -2147483648.0}, {}, 1, 2},
      {"BitwiseAnd", {x, y}, {8, 5, 0, 0x7fffffff}, {}, 1, 2},
      {"BitwiseOr", {x, y}, {14, -1, -2, -1}, {}, 1, 2},
      {"BitwiseAnd", {bytes, mask}, {0x30, 1}, {}, 1, 2},
      {"BitwiseOr", {bytes, mask}, {0xfc, 3}, {}, 1, 2},
      {"RightShift", {x, I({4}, {2, 1, 1, 30})}, {3, -1, -4, 1}, {}, 1, 2},
      {"Bitcast", {F({2}, {1, -2})}, {0x3f800000, -1073741824.0}, A("type", DType::kI32)},
      {"Bitcast", {I({1}, {0x0401})}, {1, 4, 0, 0}, A("type", DType::kU8)},
      {"Invert", {x}, {-13, 0, 7, -2147483648.0}},
      {"Invert", {bytes}, {15, 252}},
  };
}

}  // namespace fusebox::converter
