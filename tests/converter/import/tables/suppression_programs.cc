// SPDX-License-Identifier: Apache-2.0
// The choice of boxes, held against its definition.
#include <algorithm>
#include <array>
#include <cmath>

#include "tests/converter/import/tables/programs.h"

namespace fusebox::converter {
namespace {

using Box = std::array<double, 4>;  // two opposite corners: y, x, y, x

double Overlap(const Box& a, const Box& b) {
  const auto area = [](const Box& box) { return std::abs((box[2] - box[0]) * (box[3] - box[1])); };
  double common = 1;
  for (const size_t axis : {0u, 1u}) {
    const double low = std::max(std::min(a[axis], a[axis + 2]), std::min(b[axis], b[axis + 2]));
    const double high = std::min(std::max(a[axis], a[axis + 2]), std::max(b[axis], b[axis + 2]));
    common *= std::max(0.0, high - low);
  }
  return common / (area(a) + area(b) - common);
}

struct Chosen {
  std::vector<double> indices, scores;
};

// The best box that is left again and again; the scores of the others fall by exp(-overlap^2 / 2 sigma).
Chosen ByDefinition(const std::vector<Box>& boxes, std::vector<double> scores, size_t most, double overlap,
                    double least, double sigma = 0) {
  Chosen chosen;
  std::vector<bool> left(boxes.size(), true);
  while (chosen.indices.size() < most) {
    size_t best = boxes.size();
    for (size_t i = 0; i < boxes.size(); ++i)
      if (left[i] && scores[i] > least && (best == boxes.size() || scores[i] > scores[best])) best = i;
    if (best == boxes.size()) break;
    left[best] = false;
    chosen.indices.push_back(static_cast<double>(best));
    chosen.scores.push_back(scores[best]);
    for (size_t i = 0; i < boxes.size(); ++i) {
      const double common = Overlap(boxes[best], boxes[i]);
      if (common > overlap) left[i] = false;
      else if (sigma > 0) scores[i] *= std::exp(-common * common / (2 * sigma));
    }
  }
  return chosen;
}

const std::vector<Box> kBoxes = {{0, 0, 1, 1},   {0, 0.1, 1, 1.1},   {1, 0.95, 0, -0.05},
                                 {0, 10, 1, 11}, {0, 10.4, 1, 11.4}, {0, 100, 1, 101}};
const std::vector<double> kScores = {0.9, 0.75, 0.6, 0.95, 0.5, 0.3};

Tensor BoxTensor(std::vector<int64_t> dims, const std::vector<Box>& boxes) {
  std::vector<float> values;
  for (const Box& box : boxes)
    for (const double v : box) values.push_back(static_cast<float>(v));
  return F(std::move(dims), values);
}
Tensor ScoreTensor(std::vector<int64_t> dims, const std::vector<double>& scores) {
  return F(std::move(dims), std::vector<float>(scores.begin(), scores.end()));
}

// The op on the six boxes: at most `most`, and the further operands.
Program Selects(const char* op, int32_t most, std::vector<Tensor> further, Attrs attrs, size_t results,
                std::vector<std::vector<double>> expected) {
  const Tensor boxes = BoxTensor({6, 4}, kBoxes), scores = ScoreTensor({6}, kScores);
  return {op,
          [=](ProgramWriter& w) {
            std::vector<ValueId> operands = {w.In(boxes.type), w.In(scores.type), w.C(I({}, {most}))};
            for (const Tensor& tensor : further) operands.push_back(w.C(tensor));
            w.Out(w.Ops(op, operands, attrs, results));
          },
          {boxes, scores},
          Are(std::move(expected))};
}

void AddPlain(std::vector<Program>& programs) {
  const Tensor half = F({}, {0.5f}), least = F({}, {0.4f});
  const auto all = ByDefinition(kBoxes, kScores, 6, 0.5, -1e9).indices;
  const auto above = ByDefinition(kBoxes, kScores, 6, 0.5, 0.4).indices;
  const auto two = ByDefinition(kBoxes, kScores, 2, 0.5, -1e9).indices;
  programs.push_back(Selects("NonMaxSuppression", 6, {}, A("iou_threshold", 0.5), 1, {all}));
  programs.push_back(Selects("NonMaxSuppression", 2, {}, A("iou_threshold", 0.5), 1, {two}));
  programs.push_back(Selects("NonMaxSuppressionV2", 6, {half}, {}, 1, {all}));
  programs.push_back(Selects("NonMaxSuppressionV3", 6, {half, least}, {}, 1, {above}));
  std::vector<double> padded = above;
  padded.resize(6);
  const auto count = static_cast<double>(above.size());
  programs.push_back(Selects("NonMaxSuppressionV4", 6, {half, least}, {}, 2, {above, {count}}));
  programs.push_back(Selects("NonMaxSuppressionV4", 6, {half, least}, A("pad_to_max_output_size", true), 2,
                             {padded, {count}}));
}

void AddWithScores(std::vector<Program>& programs) {
  for (const double sigma : {0.0, 0.5}) {
    const Chosen chosen = ByDefinition(kBoxes, kScores, 5, 0.5, 0.25, sigma);
    const auto count = static_cast<double>(chosen.indices.size());
    programs.push_back(Selects("NonMaxSuppressionV5", 5,
                               {F({}, {0.5f}), F({}, {0.25f}), F({}, {static_cast<float>(sigma)})}, {}, 3,
                               {chosen.indices, chosen.scores, {count}}));
  }
}

// Two classes over the boxes of one image, each cut off at two boxes, three together.
Program Combines() {
  const std::vector<double> other = {0.2, 0.1, 0.15, 0.85, 0.1, 0.8};
  std::vector<double> both;
  for (size_t i = 0; i < 6; ++i) both.insert(both.end(), {kScores[i], other[i]});
  struct Found {
    double score, of_class;
    size_t box;
  };
  std::vector<Found> found;
  for (const double of_class : {0.0, 1.0}) {
    const Chosen chosen = ByDefinition(kBoxes, of_class > 0 ? other : kScores, 2, 0.5, 0.4);
    for (size_t i = 0; i < chosen.indices.size(); ++i)
      found.push_back({chosen.scores[i], of_class, static_cast<size_t>(chosen.indices[i])});
  }
  std::ranges::stable_sort(found, [](const Found& a, const Found& b) { return a.score > b.score; });
  found.resize(3);
  std::vector<std::vector<double>> expected(4);
  for (const Found& f : found) {
    for (const double v : kBoxes[f.box]) expected[0].push_back(std::clamp(v, 0.0, 1.0));
    expected[1].push_back(f.score);
    expected[2].push_back(f.of_class);
  }
  expected[3] = {3};
  const Tensor boxes = BoxTensor({1, 6, 1, 4}, kBoxes), scores = ScoreTensor({1, 6, 2}, both);
  return {"CombinedNonMaxSuppression",
          [=](ProgramWriter& w) {
            w.Out(w.Ops("CombinedNonMaxSuppression",
                        {w.In(boxes.type), w.In(scores.type), w.C(I({}, {2})), w.C(I({}, {3})),
                         w.C(F({}, {0.5f})), w.C(F({}, {0.4f}))},
                        {}, 4));
          },
          {boxes, scores},
          Are(std::move(expected))};
}

}  // namespace

std::vector<Program> SuppressionPrograms() {
  std::vector<Program> programs = {Combines()};
  AddPlain(programs);
  AddWithScores(programs);
  return programs;
}

}  // namespace fusebox::converter
