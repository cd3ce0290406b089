// SPDX-License-Identifier: Apache-2.0
#include "plugins/math/cost/shapes.h"

#include <algorithm>
#include <string_view>

namespace fusebox::math {
namespace {

using namespace sdk;

double Dim(Tensor t, int i) { return static_cast<double>(std::max<int64_t>(1, t.dim(i))); }

double Count(Tensor t) {
  double count = 1;
  for (const int64_t d : t.dims()) count *= static_cast<double>(std::max<int64_t>(1, d));
  return count;
}

bool IsByte(Tensor t) { return t.dtype() == FBX_I8 || t.dtype() == FBX_U8; }

bool Has(const Node& n, uint32_t operands) {
  if (n.in_count() < operands || n.out_count() != 1 || !n.out(0).present()) return false;
  for (uint32_t i = 0; i < operands; ++i)
    if (!n.has_in(i) || n.in(i).rank() < 0) return false;
  return n.out(0).rank() >= 0;
}

// f32, or bytes, throughout.
bool IsPlain(Tensor input, Tensor weights, Tensor result) {
  const bool floats = input.dtype() == FBX_F32 && weights.dtype() == FBX_F32 && result.dtype() == FBX_F32;
  return floats || (IsByte(input) && IsByte(weights) && IsByte(result));
}

bool HasImages(const Node& n, uint32_t input) {
  return n.in(1).rank() == 4 && n.in(input).rank() == 4 && n.out(0).rank() == 4 &&
         IsPlain(n.in(input), n.in(1), n.out(0));
}

double Pixels(Tensor t) { return Dim(t, 0) * Dim(t, 1) * Dim(t, 2); }

int64_t Option(const Node& n, std::string_view name) { return std::max<int64_t>(1, n.attrs().i64(name, 1)); }

std::optional<ProductShape> ConvolutionOf(const Node& n) {
  const Tensor filter = n.in(1);
  if (!HasImages(n, 0) || !filter.is_const()) return std::nullopt;
  const double group = Dim(filter, 3);
  const double groups = std::max(1.0, Dim(n.in(0), 3) / group);
  ProductShape p{.rows = Pixels(n.out(0)),
                 .columns = Dim(filter, 0) / groups,
                 .depth = Dim(filter, 1) * Dim(filter, 2) * group,
                 .groups = groups,
                 .bytes = IsByte(filter),
                 .is_unsigned = filter.dtype() == FBX_U8};
  const bool in_place =
      filter.dim(1) * filter.dim(2) == 1 && Option(n, "stride_h") * Option(n, "stride_w") == 1;
  if (in_place && groups == 1) return p;
  p.taps = Dim(filter, 1) * Dim(filter, 2);
  p.segments = Option(n, "dilation_w_factor") == 1 && groups == 1 ? Dim(filter, 1) : p.taps;
  return p;
}

std::optional<ProductShape> FullyConnectedOf(const Node& n) {
  const Tensor filter = n.in(1);
  if (filter.rank() != 2 || !filter.is_const() || !IsPlain(n.in(0), filter, n.out(0))) return std::nullopt;
  return ProductShape{.rows = std::max(1.0, Count(n.out(0)) / Dim(filter, 0)),
                      .columns = Dim(filter, 0),
                      .depth = Dim(filter, 1),
                      .bytes = IsByte(filter),
                      .is_unsigned = filter.dtype() == FBX_U8};
}

// The ops whose speed is measured.
constexpr std::string_view kMaps[] = {"ADD", "MUL", "SUB"};
constexpr std::string_view kFunctions[] = {"LOGISTIC"};

std::optional<ProductShape> ProductOf(const Node& n) {
  if (!Has(n, 2)) return std::nullopt;
  if (n.op() == "CONV_2D") return ConvolutionOf(n);
  return n.op() == "FULLY_CONNECTED" ? FullyConnectedOf(n) : std::nullopt;
}

std::optional<TapsShape> TapsOf(const Node& n) {
  if (n.op() != "DEPTHWISE_CONV_2D" || !Has(n, 2) || !HasImages(n, 0)) return std::nullopt;
  const Tensor filter = n.in(1);
  return TapsShape{.pixels = Pixels(n.out(0)),
                   .channels = Dim(filter, 3),
                   .taps = Dim(filter, 1) * Dim(filter, 2),
                   .inputs = Dim(n.in(0), 3),
                   .bytes = IsByte(filter)};
}

std::optional<TransposedShape> TransposedOf(const Node& n) {
  if (n.op() != "TRANSPOSE_CONV" || !Has(n, 3) || !HasImages(n, 2) || !n.in(1).is_const())
    return std::nullopt;
  const Tensor filter = n.in(1);
  return TransposedShape{.inputs = Pixels(n.in(2)),
                         .outputs = Pixels(n.out(0)),
                         .taps = Dim(filter, 1) * Dim(filter, 2),
                         .steps = static_cast<double>(Option(n, "stride_h") * Option(n, "stride_w")),
                         .channels = Dim(filter, 3),
                         .results = Dim(filter, 0),
                         .bytes = IsByte(filter),
                         .is_unsigned = filter.dtype() == FBX_U8};
}

std::optional<ElementsShape> ElementsOf(const Node& n) {
  if (!Has(n, 1) || !IsPlain(n.in(0), n.in(0), n.out(0))) return std::nullopt;
  const std::string_view op = n.op();
  const bool bytes = IsByte(n.in(0));
  const double count = Count(n.out(0));
  ElementsShape e{.moved = count, .bytes = bytes};
  for (uint32_t i = 0; i < n.in_count(); ++i)
    if (n.has_in(i) && n.in(i).rank() >= 0) e.moved += Count(n.in(i));
  if (op == "SOFTMAX" && !bytes && n.in(0).rank() > 0) {
    e.functions = count;
    e.rows = count / Dim(n.in(0), n.in(0).rank() - 1);
    return e;
  }
  if (std::ranges::find(kMaps, op) != std::end(kMaps)) return e;
  if (std::ranges::find(kFunctions, op) == std::end(kFunctions)) return std::nullopt;
  if (!bytes) e.functions = count;
  return e;
}

}  // namespace

std::optional<NodeShape> ShapeOf(const Node& n) {
  if (const auto product = ProductOf(n)) return *product;
  if (const auto taps = TapsOf(n)) return *taps;
  if (const auto transposed = TransposedOf(n)) return *transposed;
  if (const auto elements = ElementsOf(n)) return *elements;
  return std::nullopt;
}

}  // namespace fusebox::math
