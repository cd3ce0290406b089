// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/models/models.h"

#include <algorithm>
#include <vector>

#include "tests/testing/models/keras3_attention.h"
#include "tests/testing/models/lingvo.h"
#include "tests/testing/models/vision.h"

namespace fusebox::test_models {
namespace {

using Lingvo = LingvoOptions;

template <Lingvo kOptions>
Status WriteLingvoAs(const std::string& dir, uint64_t seed) {
  return WriteLingvo(dir, seed, kOptions);
}

constexpr samples::SampleModel kModels[] = {
    {"keras3_attention", "MultiHeadAttention of Keras 3 with a residual Add", WriteKeras3Attention},
    {"lingvo_lstm", "a cell of Lingvo that starts from zeros", WriteLingvoAs<Lingvo{}>},
    {"lingvo_states", "a cell of Lingvo whose states are inputs and outputs",
     WriteLingvoAs<Lingvo{.batch = 2, .states = true, .cell_clip = 0.25F}>},
    {"lingvo_projection", "a cell of Lingvo with a projection, both clipped",
     WriteLingvoAs<Lingvo{
         .batch = 2, .outputs = 5, .states = true, .cell_clip = 0.5F, .projection_clip = 0.125F}>},
    {"lingvo_norm_coupled",
     "a layer-normalized cell of Lingvo with coupled gates; the annotation has the clip",
     WriteLingvoAs<Lingvo{
         .outputs = 6, .layer_norm = true, .coupled = true, .cell_clip = 1, .clip_attribute = true}>},
    {"lingvo_per_gate", "the same interface with one matrix product per gate",
     WriteLingvoAs<Lingvo{
         .batch = 2, .outputs = 6, .layer_norm = true, .states = true, .body = Lingvo::Body::kPerGate}>},
    {"lingvo_swapped_gates", "the same interface with a wrong body: input and forget gate swapped",
     WriteLingvoAs<Lingvo{.batch = 2, .states = true, .body = Lingvo::Body::kSwappedGates}>},
    {"non_max_suppression", "non_max_suppression_padded_v2 with a real body", WriteNonMaxSuppression},
    {"detection_post_process", "TFLite_Detection_PostProcess with a real body", WriteDetectionPostProcess},
    {"dense_image_warp", "addons:DenseImageWarp with a real body", WriteDenseImageWarp},
    {"max_unpooling", "addons:MaxUnpooling2D with a real body", WriteMaxUnpooling},
};

}  // namespace

std::span<const samples::SampleModel> NamedModels() {
  static const std::vector<samples::SampleModel> all = [] {
    std::vector<samples::SampleModel> models(samples::SampleModels().begin(), samples::SampleModels().end());
    models.insert(models.end(), std::begin(kModels), std::end(kModels));
    return models;
  }();
  return all;
}

const samples::SampleModel* FindModel(std::string_view name) {
  const auto found = std::ranges::find(NamedModels(), name, &samples::SampleModel::name);
  return found == NamedModels().end() ? nullptr : &*found;
}

}  // namespace fusebox::test_models
