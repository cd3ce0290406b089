// SPDX-License-Identifier: Apache-2.0
// Layers with several inputs: elementwise, concatenation, dot product.
#include <algorithm>

#include "converter/import/keras/layer_call.h"

namespace fusebox::keras {
namespace {

// Adds dimensions of size 1 after the batch to inputs of lower rank, as Keras broadcasts.
std::vector<ValueId> Aligned(LayerCall& c) {
  int rank = 0;
  for (size_t i = 0; i < c.inputs().size(); ++i) rank = std::max(rank, c.emit().rank(c.in(i)));
  std::vector<ValueId> out;
  for (size_t i = 0; i < c.inputs().size(); ++i) {
    ValueId v = c.in(i);
    for (int r = c.emit().rank(v); r < rank && c.emit().ok(); ++r)
      v = c.emit().Op("ExpandDims", {v, c.emit().I32(1)});
    out.push_back(v);
  }
  if (out.size() < 2)
    c.emit().Reject("it is called with " + std::to_string(out.size()) + " tensors, expected two or more");
  return out;
}

ValueId Joined(LayerCall& c, const std::vector<ValueId>& masks, std::string_view how) {
  ValueId out = masks.empty() ? kNoValue : masks[0];
  for (size_t i = 1; i < masks.size(); ++i) out = c.emit().Op(how, {out, masks[i]});
  return out;
}

std::vector<ValueId> Masks(LayerCall& c) {
  std::vector<ValueId> out;
  for (size_t i = 0; i < c.inputs().size(); ++i)
    if (c.mask(i) != kNoValue) out.push_back(c.mask(i));
  return out;
}

// Keras 2: a step counts if it counts in all masked inputs. Keras 3: if it counts in any input and all have a
// mask.
ValueId MergedMask(LayerCall& c) {
  const std::vector<ValueId> masks = Masks(c);
  if (c.keras() < 3) return Joined(c, masks, "LogicalAnd");
  return masks.size() == c.inputs().size() ? Joined(c, masks, "LogicalOr") : kNoValue;
}

// Mask of sequences joined along features or time; inputs without a mask count fully.
ValueId ConcatenatedMask(LayerCall& c, int64_t axis) {
  std::vector<ValueId> masks = Masks(c);
  if (masks.empty() || c.emit().rank(c.in()) < 3) return kNoValue;
  if (axis == c.emit().rank(c.in()) - 1) return Joined(c, masks, "LogicalAnd");
  if (axis != 1 || masks.size() != c.inputs().size()) return kNoValue;
  return c.emit().Concat(std::move(masks), 1);
}

ValueId Folded(LayerCall& c, std::string_view op, const std::vector<ValueId>& parts) {
  ValueId out = parts.empty() ? kNoValue : parts[0];
  for (size_t i = 1; i < parts.size(); ++i) out = c.emit().Op(op, {out, parts[i]});
  return out;
}

void Add(LayerCall& c) { c.AddOutput(Folded(c, "AddV2", Aligned(c)), MergedMask(c)); }
void Multiply(LayerCall& c) { c.AddOutput(Folded(c, "Mul", Aligned(c)), MergedMask(c)); }
void Maximum(LayerCall& c) { c.AddOutput(Folded(c, "Maximum", Aligned(c)), MergedMask(c)); }
void Minimum(LayerCall& c) { c.AddOutput(Folded(c, "Minimum", Aligned(c)), MergedMask(c)); }

void Subtract(LayerCall& c) {
  const auto parts = Aligned(c);
  if (parts.size() != 2)
    return c.emit().Reject("it requires two tensors, and has " + std::to_string(parts.size()));
  c.AddOutput(Folded(c, "Sub", parts), MergedMask(c));
}

void AverageInputs(LayerCall& c) {
  const auto parts = Aligned(c);
  const ValueId sum = Folded(c, "AddV2", parts);
  c.AddOutput(
      c.emit().Op("Mul", {sum, c.emit().F32(1.0 / static_cast<double>(std::max<size_t>(parts.size(), 1)))}),
      MergedMask(c));
}

void Concatenate(LayerCall& c) {
  std::vector<ValueId> parts;
  for (const Flow& input : c.inputs()) parts.push_back(input.value);
  if (parts.empty()) return c.emit().Reject("it is called with no tensors");
  const int rank = c.emit().rank(parts[0]);
  int64_t axis = c.Int("axis", -1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return c.emit().Reject("its axis does not exist");
  for (const ValueId part : parts)
    for (int i = 0; i < rank; ++i) {
      const int64_t a = c.emit().rank(part) == rank ? c.emit().dim(part, i) : -2;
      const int64_t b = c.emit().dim(parts[0], i);
      if (c.emit().ok() && (a == -2 || (i != axis && a >= 0 && b >= 0 && a != b)))
        return c.emit().Reject("it joins " + ToString(c.emit().type(parts[0])) + " and " +
                               ToString(c.emit().type(part)) + " along dimension " + std::to_string(axis));
    }
  const ValueId mask = ConcatenatedMask(c, axis);
  c.AddOutput(c.emit().Concat(std::move(parts), static_cast<int>(axis)), mask);
}

ValueId UnitVectors(LayerCall& c, ValueId v, int64_t axis) {
  const ValueId sum =
      c.emit().Op("Sum", {c.emit().Op("Square", {v}), c.emit().I32s({axis})}, MakeAttrs("keep_dims", true));
  return c.emit().Op("Mul", {v, c.emit().Op("Rsqrt", {c.emit().Op("Maximum", {sum, c.emit().F32(1e-12)})})});
}

// [batch, rows..., contracted] with all rows merged, and the original sizes.
struct Rows {
  ValueId matrix = kNoValue;
  std::vector<Extent> sizes;
};
Rows ToRows(LayerCall& c, ValueId v, int64_t axis) {
  const int rank = c.emit().rank(v);
  std::vector<int64_t> perm = {0};
  Rows out;
  for (int i = 1; i < rank; ++i) {
    if (i == axis) continue;
    perm.push_back(i);
    out.sizes.push_back(c.emit().size(v, i));
  }
  perm.push_back(axis);
  if (!std::ranges::is_sorted(perm)) v = c.emit().Transpose(v, perm);
  int64_t rows = 1;
  for (const Extent& size : out.sizes) rows = rows < 0 || size.size < 0 ? -1 : rows * size.size;
  out.matrix = c.emit().rank(v) == 3
                   ? v
                   : c.emit().Reshape(v, {c.emit().size(v, 0), Extent{rows}, c.emit().size(v, -1)});
  return out;
}

void DotProduct(LayerCall& c) {
  if (c.inputs().size() != 2)
    return c.emit().Reject("it requires two tensors, and has " + std::to_string(c.inputs().size()));
  std::vector<int64_t> axes = c.Ints("axes");
  if (axes.size() == 1) axes.push_back(axes[0]);
  if (axes.size() != 2) return c.emit().Reject("its axes should be two numbers");
  ValueId v[2] = {c.in(0), c.in(1)};
  for (size_t i = 0; i < 2; ++i) {
    const int rank = c.emit().rank(v[i]);
    if (axes[i] < 0) axes[i] += rank;
    if (axes[i] < 1 || axes[i] >= rank)
      return c.emit().Reject("its axis " + std::to_string(axes[i]) + " does not exist");
    if (c.Bool("normalize", false)) v[i] = UnitVectors(c, v[i], axes[i]);
  }
  const Rows a = ToRows(c, v[0], axes[0]);
  const Rows b = ToRows(c, v[1], axes[1]);
  const ValueId product = c.emit().Op("BatchMatMulV2", {a.matrix, b.matrix}, MakeAttrs("adj_y", true));
  std::vector<Extent> shape = {c.emit().size(product, 0)};
  shape.insert(shape.end(), a.sizes.begin(), a.sizes.end());
  shape.insert(shape.end(), b.sizes.begin(), b.sizes.end());
  if (shape.size() == 1) shape.push_back({1});
  c.AddOutput(shape.size() == 3 ? product : c.emit().Reshape(product, shape));
}

}  // namespace

std::span<const LayerRow> MergeLayers() {
  static constexpr LayerRow kTable[] = {
      {"Add", Add, nullptr, MaskRule::kOwn},
      {"Subtract", Subtract, nullptr, MaskRule::kOwn},
      {"Multiply", Multiply, nullptr, MaskRule::kOwn},
      {"Average", AverageInputs, nullptr, MaskRule::kOwn},
      {"Maximum", Maximum, nullptr, MaskRule::kOwn},
      {"Minimum", Minimum, nullptr, MaskRule::kOwn},
      {"Concatenate", Concatenate, nullptr, MaskRule::kOwn},
      {"Dot", DotProduct, nullptr, MaskRule::kStop},
  };
  return kTable;
}

}  // namespace fusebox::keras
