// SPDX-License-Identifier: Apache-2.0
// Splitting tensors: image patches, partitions, flat indices as coordinates.
#include <algorithm>
#include <cmath>

#include "converter/import/tables/translate.h"

namespace fusebox::converter {
namespace {

Attrs Option(const char* name, AttrValue value) {
  Attrs attrs;
  attrs.Set(name, std::move(value));
  return attrs;
}

// Attributes of ExtractImagePatches, for height and width.
struct Patches {
  std::vector<int64_t> size, stride, rate;
  std::string padding;
};

Result<Patches> PatchesOf(const Translation& t) {
  Patches made;
  for (const auto& [name, list] :
       {std::pair("ksizes", &made.size), {"strides", &made.stride}, {"rates", &made.rate}}) {
    const auto given = t.attrs().i64s(name);
    if (given.size() != 4 || given[1] < 1 || given[2] < 1) return Invalid(std::string("attribute ") + name);
    *list = {given[1], given[2]};
  }
  made.padding = t.attrs().str("padding", "VALID");
  if (made.padding != "VALID" && made.padding != "SAME") return Unsupported("padding " + made.padding);
  return made;
}

// Adjacent patches are blocks, in the element order of SPACE_TO_DEPTH.
ValueId Blocks(Translation& t, const Shape& image, int64_t size) {
  const auto whole = [&](size_t i) { return static_cast<int32_t>(image[i] - image[i] % size); };
  ValueId x = t.in(0);
  if (image[1] % size != 0 || image[2] % size != 0)
    x = t.Slice(x, {0, 0, 0, 0}, {-1, whole(1), whole(2), -1});
  return t.Value(Op::kSpaceToDepth, {x}, Option("block_size", size));
}

// Overlapping patches: a convolution with the rows of the identity matrix as filters.
Result<ValueId> Copies(Translation& t, const Patches& p, int64_t channels) {
  constexpr int64_t kMost = 2048;
  if (t.in_type(0).dtype != DType::kF32)
    return Unsupported("patches of " + std::string(Name(t.in_type(0).dtype)) + " that overlap");
  if (p.size[0] > kMost || p.size[1] > kMost || p.size[0] * p.size[1] > kMost / channels)
    return Unsupported("patches of more than " + std::to_string(kMost) + " elements that overlap");
  const int64_t count = p.size[0] * p.size[1] * channels;
  std::vector<float> unit(static_cast<size_t>(count * count), 0);
  for (int64_t i = 0; i < count; ++i) unit[static_cast<size_t>(i * count + i)] = 1;
  const ValueId filter =
      t.Const({{DType::kF32, {count, p.size[0], p.size[1], channels}}, Buffer::Of<float>(unit)});
  const ValueId bias =
      t.Const({{DType::kF32, {count}}, Buffer::Of<float>(std::vector<float>(static_cast<size_t>(count)))});
  Attrs attrs = Option("stride_h", p.stride[0]);
  attrs.Set("stride_w", p.stride[1]);
  if (p.rate[0] != 1) attrs.Set("dilation_h_factor", p.rate[0]);
  if (p.rate[1] != 1) attrs.Set("dilation_w_factor", p.rate[1]);
  if (p.padding != "SAME") attrs.Set("padding", p.padding);
  return t.Value(Op::kConv2D, {t.in(0), filter, bias}, std::move(attrs));
}

Status ExtractImagePatches(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  FUSEBOX_ASSIGN(const Patches p, PatchesOf(t));
  const Shape image = t.in_type(0).shape;  // copied: Emit invalidates references
  if (image.rank() != 4 || image[3] < 1) return Unsupported("the number of its channels is not known");
  const bool side_by_side = p.size == p.stride && p.size[0] == p.size[1] && p.rate[0] == 1 && p.rate[1] == 1;
  const bool known = image[1] >= p.size[0] && image[2] >= p.size[1];
  if (side_by_side && known &&
      (p.padding == "VALID" || (image[1] % p.size[0] == 0 && image[2] % p.size[1] == 0))) {
    return t.Return(Blocks(t, image, p.size[0]));
  }
  FUSEBOX_ASSIGN(const ValueId copies, Copies(t, p, image[3]));
  return t.Return(copies);
}

// The rows of each partition, in their order.
Status DynamicPartition(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  FUSEBOX_ASSIGN(const int rank, t.Rank(t.in(1)));
  if (rank != 1) return Unsupported("partitions of rank " + std::to_string(rank));
  constexpr size_t kMost = 1024;
  if (t.results().size() > kMost)
    return Unsupported("num_partitions is " + std::to_string(t.results().size()) + ", more than " +
                       std::to_string(kMost));
  for (size_t k = 0; k < t.results().size(); ++k) {
    const ValueId is = t.Value(Op::kEqual, {t.in(1), t.I32Scalar(static_cast<int32_t>(k))});
    const ValueId rows = t.Reshape(t.ToI32(t.Value(Op::kWhere, {is})), {-1});
    t.SetResult(k, t.Value(Op::kGather, {t.in(0), rows}));
  }
  return {};
}

// [rank, count]: coordinates of flat indices.
Status UnravelIndex(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  FUSEBOX_ASSIGN(const auto dims, t.Ints(1));
  const DType dtype = t.in_type(0).dtype;
  std::vector<ValueId> places(dims.size());
  ValueId rest = t.in(0);
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i] < 1) return Invalid("dimension " + std::to_string(i) + " is " + std::to_string(dims[i]));
    const ValueId size = t.Scalar(dtype, static_cast<double>(dims[i]));
    places[i] = t.Value(Op::kFloorMod, {rest, size});
    rest = t.Value(Op::kFloorDiv, {rest, size});
  }
  if (places.empty()) return Invalid("it has no dimensions");
  return t.Return(t.Value(Op::kPack, places, Option("values_count", static_cast<int64_t>(places.size()))));
}

Status SparseToDense(Translation& t) {
  FUSEBOX_TRY(t.Arity(4));
  return t.Return(t.Value(Op::kSparseToDense, {t.ToI32(t.in(0)), t.ToI32(t.in(1)), t.in(2), t.in(3)}));
}

// Rounds to 2^bits steps per channel (last dimension). The bounds are shifted so that zero is a step.
Status FakeQuantPerChannel(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  for (const size_t i : {1, 2})
    if (!t.is_const(t.in(i)) || t.in_type(i).dtype != DType::kF32)
      return Unsupported("its bounds are not constant");
  const auto least = t.f().value(t.in(1)).data.As<float>();
  const auto most = t.f().value(t.in(2)).data.As<float>();
  if (least.size() != most.size()) return Invalid("the numbers of lower and upper bounds differ");
  const int64_t bits = t.attrs().i64("num_bits", 8);
  if (bits < 2 || bits > 16) return Invalid("num_bits " + std::to_string(bits));
  const float low = t.attrs().b("narrow_range", false) ? 1.0f : 0.0f;
  const auto high = static_cast<float>((int64_t{1} << bits) - 1);
  std::vector<float> from;
  std::vector<float> to;
  std::vector<float> steps;
  for (size_t i = 0; i < least.size(); ++i) {
    const float step = (most[i] - least[i]) / (high - low);
    if (!(step > 0)) return Unsupported("channel " + std::to_string(i) + " has no width");
    const float zero = std::clamp(std::round(low - least[i] / step), low, high);
    from.push_back((low - zero) * step);
    to.push_back((high - zero) * step);
    steps.push_back(step);
  }
  const auto list = [&](const std::vector<float>& v) {
    return t.Const({{DType::kF32, {static_cast<int64_t>(v.size())}}, Buffer::Of<float>(v)});
  };
  const ValueId base = list(from);
  const ValueId step = list(steps);
  const ValueId within = t.Value(Op::kMinimum, {t.Value(Op::kMaximum, {t.in(0), base}), list(to)});
  const ValueId count = t.Value(Op::kDiv, {t.Value(Op::kSub, {within, base}), step});
  const ValueId whole = t.Value(Op::kFloor, {t.Value(Op::kAdd, {count, t.Scalar(DType::kF32, 0.5)})});
  return t.Return(t.Value(Op::kAdd, {t.Value(Op::kMul, {whole, step}), base}));
}

}  // namespace

std::span<const TranslateRow> PatchTable() {
  static constexpr TranslateRow kTable[] = {
      {"ExtractImagePatches", ExtractImagePatches},
      {"DynamicPartition", DynamicPartition},
      {"UnravelIndex", UnravelIndex},
      {"SparseToDense", SparseToDense},
      {"FakeQuantWithMinMaxVarsPerChannel", FakeQuantPerChannel},
  };
  return kTable;
}

}  // namespace fusebox::converter
