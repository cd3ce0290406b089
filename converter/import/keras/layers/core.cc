// SPDX-License-Identifier: Apache-2.0
// Dense, Embedding, masks, and layers that reshape or do nothing.
#include <algorithm>

#include "converter/import/keras/layer_call.h"

namespace fusebox::keras {
namespace {

std::vector<WeightSpec> KernelAndBias(const Layer& layer) {
  std::vector<WeightSpec> out = {{"kernel", "vars/0"}};
  if (ConfigFlag(layer, "use_bias", true)) out.push_back({"bias", "vars/1"});
  return out;
}

// Inputs of more than two dimensions are flattened to one batch dimension for the product.
void Dense(LayerCall& c) {
  const ValueId x = c.in();
  const int rank = c.emit().rank(x);
  const int64_t features = c.emit().dim(x, -1);
  const int64_t units = c.Int("units");
  const ValueId kernel = c.Weight("kernel", {features, units});
  if (!c.emit().ok()) return;
  const int64_t rows = c.emit().dim(kernel, 0);
  if (rank < 2)
    return c.emit().Reject("its input is " + ToString(c.emit().type(x)) +
                           ", expected two dimensions or more");
  ValueId y = rank == 2 ? x : c.emit().Reshape(x, {Extent{}, Extent{rows}});
  y = c.emit().Op("MatMul", {y, kernel});
  if (c.Bool("use_bias", true)) y = c.emit().Op("BiasAdd", {y, c.Weight("bias", {units})});
  if (rank > 2) {
    std::vector<Extent> shape;
    for (int i = 0; i + 1 < rank; ++i) shape.push_back(c.emit().size(x, i));
    shape.push_back({units});
    y = c.emit().Reshape(y, shape);
  }
  c.AddOutput(c.Activate(y));
}

std::vector<WeightSpec> EinsumWeights(const Layer& layer) {
  std::vector<WeightSpec> out = {{"kernel", "vars/0"}};
  const auto it = layer.config.find("bias_axes");
  if (it != layer.config.end() && !it->is_null()) out.push_back({"bias", "vars/1"});
  return out;
}

// A product described by its equation: "abc,cd->abd". The bias has the sizes of bias_axes, and ones after the
// first of them.
void EinsumDense(LayerCall& c) {
  const std::string equation = c.Str("equation", "");
  const std::string axes = c.Str("bias_axes", "");
  const size_t comma = equation.find(',');
  const size_t arrow = equation.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || arrow < comma)
    return c.emit().Reject("its equation " + equation + " is not a product of two tensors");
  const std::string out = equation.substr(arrow + 2);
  const auto open = [](size_t rank) { return std::vector<int64_t>(rank, Shape::kUnknown); };
  const ValueId kernel = c.Weight("kernel", open(arrow - comma - 1));
  ValueId y = c.emit().Op("Einsum", {c.in(), kernel}, MakeAttrs("equation", equation));
  if (const size_t first = out.find_first_of(axes); !axes.empty()) {
    if (first == std::string::npos)
      return c.emit().Reject("its bias_axes " + axes + " do not occur in " + out);
    y = c.emit().Op("AddV2", {y, c.Weight("bias", open(out.size() - first))});
  }
  c.AddOutput(c.Activate(y));
}

std::vector<WeightSpec> EmbeddingWeights(const Layer&) { return {{"embeddings", "vars/0"}}; }

void Embedding(LayerCall& c) {
  const ValueId table = c.Weight("embeddings", {c.Int("input_dim"), c.Int("output_dim")});
  const ValueId x = c.in();
  const DType dtype = c.emit().dtype(x);
  const ValueId ids = dtype == DType::kI32 || dtype == DType::kI64 ? x : c.emit().Cast(x, DType::kI32);
  ValueId mask = kNoValue;
  if (c.Bool("mask_zero", false))
    mask = c.emit().Op("NotEqual", {ids, c.emit().Cast(c.emit().I32(0), c.emit().dtype(ids))});
  c.AddOutput(c.emit().Op("GatherV2", {table, ids, c.emit().I32(0)}), mask);
}

// Steps whose features all equal mask_value are masked and set to zero.
void Masking(LayerCall& c) {
  const ValueId x = c.in();
  const ValueId differs = c.emit().Op("NotEqual", {x, c.emit().F32(c.Float("mask_value", 0))});
  const ValueId kept = c.emit().Op("Any", {differs, c.emit().I32s({-1})}, MakeAttrs("keep_dims", true));
  const ValueId mask = c.emit().Op("Squeeze", {kept}, MakeAttrs("squeeze_dims", std::vector<int64_t>{-1}));
  c.AddOutput(c.emit().Op("Mul", {x, c.emit().Cast(kept, DType::kF32)}), mask);
}

void PassThrough(LayerCall& c) { c.AddOutput(c.in()); }
void AsFloats(LayerCall& c) { c.AddOutput(c.emit().Cast(c.in(), DType::kF32)); }

void Flatten(LayerCall& c) {
  ValueId x = c.in();
  const int rank = c.emit().rank(x);
  if (rank <= 1) return c.AddOutput(c.emit().Reshape(x, {c.emit().size(x, 0), Extent{1}}));
  if (c.ChannelsFirst() && rank > 2) {
    std::vector<int64_t> perm = {0};
    for (int i = 2; i < rank; ++i) perm.push_back(i);
    perm.push_back(1);
    x = c.emit().Transpose(x, perm);
  }
  int64_t rest = 1;
  for (int i = 1; i < rank; ++i) {
    const int64_t dim = c.emit().dim(x, i);
    rest = dim < 0 || rest < 0 ? Shape::kUnknown : rest * dim;
    if (rest > INT32_MAX)
      return c.emit().Reject("its input " + ToString(c.emit().type(x)) + " has too many elements");
  }
  c.AddOutput(c.emit().Reshape(x, {c.emit().size(x, 0), Extent{rest}}));
}

void ReshapeLayer(LayerCall& c) {
  const ValueId x = c.in();
  std::vector<int64_t> target = c.Ints("target_shape");
  // -1 is inferred from the input's size and the other sizes.
  int64_t known = 1;
  int64_t given = 1;
  for (int i = 1; i < c.emit().rank(x); ++i)
    known = known < 0 || c.emit().dim(x, i) < 0 ? -1 : known * c.emit().dim(x, i);
  for (const int64_t dim : target) {
    if (dim < -1 || dim > INT32_MAX || (dim > 0 && given > INT32_MAX / dim))
      return c.emit().Reject("its target_shape " + ToString(Shape(target)) + " is invalid");
    given *= dim < 0 ? 1 : dim;
  }
  const auto open = std::ranges::count(target, -1);
  if (open > 1)
    return c.emit().Reject("its target_shape " + ToString(Shape(target)) + " has several unknown sizes");
  if (known >= 0 && given > 0 && (open ? known % given != 0 : known != given))
    return c.emit().Reject("its input " + ToString(c.emit().type(x)) +
                           " does not have the elements of target_shape " + ToString(Shape(target)));
  std::vector<Extent> shape = {c.emit().size(x, 0)};
  for (const int64_t dim : target)
    shape.push_back({dim < 0 && known >= 0 && given > 0 ? known / given : dim});
  c.AddOutput(c.emit().Reshape(x, shape));
}

void Permute(LayerCall& c) {
  std::vector<int64_t> perm = {0};
  std::vector<int64_t> sorted;
  for (const int64_t dim : c.Ints("dims")) perm.push_back(dim);
  sorted = perm;
  std::ranges::sort(sorted);
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<int64_t>(i))
      return c.emit().Reject("its dims " + ToString(Shape(perm)) + " are not a permutation");
  if (c.emit().rank(c.in()) != static_cast<int>(perm.size()))
    return c.emit().Reject("its input is " + ToString(c.emit().type(c.in())) + ", but dims has " +
                           std::to_string(perm.size() - 1) + " numbers");
  c.AddOutput(c.emit().Transpose(c.in(), perm));
}

void RepeatVector(LayerCall& c) {
  const ValueId wide = c.emit().Op("ExpandDims", {c.in(), c.emit().I32(1)});
  c.AddOutput(c.emit().Op("Tile", {wide, c.emit().I32s({1, c.Sizes("n", 1)[0], 1})}));
}

void InputLayer(LayerCall& c) { c.emit().Reject("it is not an input of its model"); }

// Reduces a mask to [batch, time]: a step counts if any of its elements does.
ValueId StepMask(LayerCall& c, ValueId mask) {
  while (mask != kNoValue && c.emit().rank(mask) > 2) mask = c.emit().Op("Any", {mask, c.emit().I32s({-1})});
  return mask;
}

// Applies a layer to every time step: the steps become one long batch.
void TimeDistributed(LayerCall& c) {
  const ValueId x = c.in();
  const int rank = c.emit().rank(x);
  if (rank < 3)
    return c.emit().Reject("its input is " + ToString(c.emit().type(x)) +
                           ", expected three dimensions or more");
  std::vector<Extent> flat = {Extent{}};
  std::vector<Extent> unfolded = {c.emit().size(x, 0), c.emit().size(x, 1)};
  const int64_t batch = c.emit().dim(x, 0);
  const int64_t steps = c.emit().dim(x, 1);
  if (batch >= 0 && steps >= 0) flat[0].size = batch * steps;
  for (int i = 2; i < rank; ++i) flat.push_back(c.emit().size(x, i));
  // The mask is passed on per step; Keras 2 drops it for a known batch size.
  const ValueId mask = c.mask();
  const bool inner = mask != kNoValue && c.emit().rank(mask) > 2 && (batch < 0 || c.keras() >= 3);
  ValueId flat_mask = kNoValue;
  if (inner) {
    std::vector<Extent> shape = {flat[0]};
    for (int i = 2; i < c.emit().rank(mask); ++i) shape.push_back(c.emit().size(mask, i));
    flat_mask = c.emit().Reshape(mask, shape);
  }
  const auto results = BuildLayer(c.state(), c.emit(), *c.layer().wrapped[0],
                                  {Given{Flow{c.emit().Reshape(x, flat), flat_mask}}});
  if (!c.emit().ok()) return;
  const auto unfold = [&](ValueId v) {
    std::vector<Extent> shape = unfolded;
    for (int i = 1; i < c.emit().rank(v); ++i) shape.push_back(c.emit().size(v, i));
    return c.emit().Reshape(v, shape);
  };
  for (const Flow& result : results)
    c.AddOutput(unfold(result.value),
                inner && result.mask != kNoValue ? unfold(result.mask) : StepMask(c, mask));
}

}  // namespace

std::span<const LayerRow> CoreLayers() {
  static constexpr LayerRow kTable[] = {
      {"InputLayer", InputLayer},
      {"Dense", Dense, KernelAndBias},
      {"EinsumDense", EinsumDense, EinsumWeights},
      {"Embedding", Embedding, EmbeddingWeights, MaskRule::kOwn},
      {"Masking", Masking, nullptr, MaskRule::kOwn},
      {"Flatten", Flatten, nullptr, MaskRule::kStop},
      {"Reshape", ReshapeLayer, nullptr, MaskRule::kStop},
      {"Permute", Permute, nullptr, MaskRule::kStop},
      {"RepeatVector", RepeatVector, nullptr, MaskRule::kStop},
      {"TimeDistributed", TimeDistributed, nullptr, MaskRule::kOwn},
      {"Dropout", PassThrough},
      {"SpatialDropout1D", PassThrough},
      {"SpatialDropout2D", PassThrough},
      {"SpatialDropout3D", PassThrough},
      {"AlphaDropout", PassThrough},
      {"GaussianDropout", PassThrough},
      {"GaussianNoise", PassThrough},
      {"ActivityRegularization", PassThrough},
      {"Identity", PassThrough},
      // Augmentation layers act only in training.
      {"RandomFlip", PassThrough},
      {"RandomRotation", PassThrough},
      {"RandomZoom", PassThrough},
      {"RandomContrast", PassThrough},
      {"RandomTranslation", PassThrough},
      {"RandomBrightness", PassThrough},
      {"RandomColorDegeneration", PassThrough},
      {"RandomColorJitter", PassThrough},
      {"RandomErasing", AsFloats},
      {"RandomGaussianBlur", AsFloats},
      {"RandomInvert", PassThrough},
      {"RandomPosterization", PassThrough},
      {"RandomSaturation", PassThrough},
      {"RandomSharpness", AsFloats},
      {"RandomHeight", PassThrough},
      {"RandomWidth", PassThrough},
  };
  return kTable;
}

}  // namespace fusebox::keras
