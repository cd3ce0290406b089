// SPDX-License-Identifier: Apache-2.0
#include "tests/converter/import/tables/translate_cases.h"

namespace fusebox::converter {
namespace {

using Ints = std::vector<int64_t>;

}  // namespace

std::vector<SourceOp> BuiltinCases() {
  const Tensor m = F({2, 3}, {1, 2, 3, 4, 5, 6}), d = F({2}, {8, 9}), ids = I({2}, {1, 0});
  std::vector<SourceOp> out = {
      {"LRN", {F({1, 1, 1, 2}, {3, 4})}, {0.588348405, 0.784464541}, A("depth_radius", 1)},
      {"LRN",
       {F({1, 1, 1, 2}, {3, 4})},
       {1, 0.75},
       A("depth_radius", 0, "bias", 0.0, "alpha", 1.0 / 3, "beta", 1.0)},
      {"Bucketize", {F({3}, {-1, 0.5f, 7})}, {0, 1, 2}, A("boundaries", std::vector<double>{0, 1})},
      {"MatrixDiag", {d}, {8, 0, 0, 9}},
      {"MatrixSetDiag", {m, d}, {8, 2, 3, 4, 9, 6}, {}, 1, 2},
      {"MatrixDiagPart", {m}, {1, 5}},
      {"MatrixDiagPart", {F({2, 2, 1}, {1, 2, 3, 4})}, {1, 3}},
      {"UnsortedSegmentSum", {d, ids, I({}, {3})}, {9, 8, 0}},
      {"UnsortedSegmentProd", {d, L({2}, {1, 1}), L({}, {2})}, {1, 72}},
      {"UnsortedSegmentMax", {d, I({2}, {0, 0}), I({}, {1})}, {9}},
      {"UnsortedSegmentMin", {d, I({2}, {0, 0}), I({}, {1})}, {8}},
      {"FakeQuantWithMinMaxArgs",
       {F({3}, {-9, 0.2f, 1.3f})},
       {-2, 0, 1.5},
       A("min", -2.0, "max", 5.5, "num_bits", 4)},
      {"FakeQuantWithMinMaxVars",
       {F({3}, {-9, 0.2f, 1.3f}), F({}, {-2}), F({}, {5})},
       {-2, 0, 1.5},
       A("num_bits", 4, "narrow_range", true)},
      {"FakeQuantWithMinMaxArgs",
       {F({8}, {-1, 0, 0.5f, 1, 2, 2.9f, 3, 10})},
       {0, 0, 0.5, 1, 2, 2.5, 2.5, 2.5},
       A("min", 0.5, "max", 3.0)},
      {"FakeQuantWithMinMaxVars", {d, F({}, {-3}), F({}, {-1})}, {0, 0}},
      {"FakeQuantWithMinMaxVars", {d, F({}, {0}), F({}, {0})}, {0, 0}},
  };
  const Tensor none = F({}, {0}), main = I({}, {0}), whole = I({}, {-1});
  for (const std::string version : {"V2", "V3"}) {
    out.push_back({"MatrixDiag" + version, {d, main, whole, whole, none}, {8, 0, 0, 9}});
    out.push_back({"MatrixSetDiag" + version, {m, d, main}, {8, 2, 3, 4, 9, 6}, {}, 1, 2});
    out.push_back({"MatrixDiagPart" + version, {m, main, none}, {1, 5}});
  }
  return out;
}

std::vector<SourceOp> VolumeCases() {
  const Ints ones = {1, 1, 1, 1, 1};
  const Tensor box = F({1, 2, 2, 2, 1}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor filter = F({2, 1, 2, 1, 1}, {1, 10, 100, 1000});
  return {
      {"Conv3D", {box, filter}, {6521, 8743}, A("strides", ones, "padding", "VALID")},
      {"Conv3D",
       {F({1, 1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), filter},
       {6521, 8743},
       A("strides", ones, "padding", "VALID", "data_format", "NCDHW")},
      {"Conv3D", {box, filter}, {6521, 602, 8743, 804, 65, 6, 87, 8}, A("strides", ones, "padding", "SAME")},
      {"Conv3DBackpropInputV2",
       {I({5}, {1, 2, 1, 3, 1}), filter, F({1, 1, 1, 2, 1}, {1, 2})},
       {1, 12, 20, 100, 1200, 2000},
       A("strides", ones, "padding", "VALID"),
       1,
       0},
      {"MaxPool3D", {box}, {8}, A("ksize", Ints{1, 2, 2, 2, 1}, "strides", ones, "padding", "VALID")},
      {"MaxPool3D",
       {F({1, 1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})},
       {4, 8},
       A("ksize", Ints{1, 1, 1, 2, 2}, "strides", Ints{1, 1, 1, 2, 2}, "padding", "SAME", "data_format",
         "NCDHW")},
      {"AvgPool3D",
       {box},
       {4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8},
       A("ksize", Ints{1, 2, 2, 2, 1}, "strides", ones, "padding", "SAME")},
  };
}

}  // namespace fusebox::converter
