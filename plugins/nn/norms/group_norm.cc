// SPDX-License-Identifier: Apache-2.0
#include "plugins/nn/norms/group_norm.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "plugins/nn/norms/rows.h"

namespace fusebox::nn {
namespace {

constexpr uint32_t kScale = 1;
constexpr uint32_t kBias = 2;

Statistics StatisticsOf(const Node& n) {
  const std::string_view name = n.attrs().s("statistics");
  if (name == "group") return Statistics::kGroup;
  return name == "position" ? Statistics::kPosition : Statistics::kElement;
}

size_t Product(std::span<const int64_t> dims) {
  size_t product = 1;
  for (const int64_t d : dims) product *= static_cast<size_t>(d);
  return product;
}

// x as [batch, outer, channels, inner].
struct View {
  size_t batch = 1;
  size_t outer = 1;
  size_t channels = 1;
  size_t inner = 1;

  View(const Node& n, int64_t axis) {
    const auto dims = n.in(0).dims();
    const auto rank = static_cast<int64_t>(dims.size());
    const int64_t first = axis < 0 ? axis + rank : axis;
    const int64_t count = n.has_in(kScale) ? n.in(kScale).rank() : 1;
    if (first < 0 || count < 0 || first + count > rank)
      throw Error{FBX_INVALID, "is no dimension of operand 0", "attr channel_axis"};
    const auto at = static_cast<size_t>(first);
    const auto size = static_cast<size_t>(count);
    if (at > 0) batch = static_cast<size_t>(dims[0]);
    if (at > 1) outer = Product(dims.subspan(1, at - 1));
    channels = Product(dims.subspan(at, size));
    inner = Product(dims.subspan(at + size));
  }
};

// Elements with one mean: `runs` times `channels` channels, each of `width` neighbors.
struct Group {
  const float* x;
  float* y;
  size_t runs, run_stride;
  size_t channels, channel_stride, width;
  const float *scale, *bias;  // of its channels; null: 1 and 0

  template <class F>
  float Sum(const F& f) const {
    float sum = 0;
    for (size_t run = 0; run < runs; ++run) {
      const float* const from = x + run * run_stride;
      if (channel_stride == width) {
        sum += SumOf(from, channels * width, f);
      } else {
        for (size_t c = 0; c < channels; ++c) sum += f(from[c * channel_stride]);
      }
    }
    return sum;
  }

  void Normalize(float epsilon) const {
    const auto count = static_cast<float>(runs * channels * width);
    const float mean = Sum([](float v) { return v; }) / count;
    const float variance = Sum([mean](float v) { return (v - mean) * (v - mean); }) / count;
    const float factor = 1 / std::sqrt(variance + epsilon);
    for (size_t run = 0; run < runs; ++run) Write(run * run_stride, mean, factor);
  }

 private:
  void Write(size_t start, float mean, float factor) const {
    const float* const from = x + start;
    float* const to = y + start;
    if (channel_stride == 1) {
      for (size_t c = 0; c < channels; ++c)
        to[c] = (from[c] - mean) * factor * (scale ? scale[c] : 1) + (bias ? bias[c] : 0);
      return;
    }
    for (size_t c = 0; c < channels; ++c) {
      const float weight = factor * (scale ? scale[c] : 1);
      const float shift = bias ? bias[c] : 0;
      for (size_t i = c * channel_stride; i < c * channel_stride + width; ++i)
        to[i] = (from[i] - mean) * weight + shift;
    }
  }
};

const float* OperandOf(const Node& n, uint32_t i, size_t channels) {
  if (!n.has_in(i)) return nullptr;
  if (static_cast<size_t>(n.in(i).count()) != channels)
    throw Error{FBX_INVALID, "does not have the size of the channel dimensions",
                "operand " + std::to_string(i)};
  return n.in(i).data<const float>();
}

// x - x is 0 for finite values only.
void NormalizeElements(const Node& n, const View& view, const float* scale, const float* bias,
                       float epsilon) {
  const auto x = n.in(0).values<const float>();
  float* const y = n.out(0).data<float>();
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i / view.inner % view.channels;
    const float difference = x[i] - x[i];
    y[i] = difference / std::sqrt(difference * difference + epsilon) * (scale ? scale[c] : 1) +
           (bias ? bias[c] : 0);
  }
}

}  // namespace

void GroupNorm::supports(const Node& n) {
  n.require(n.in_count() >= 1 && n.in_count() <= 3 && n.out_count() == 1, "ARITY",
            "needs 1 to 3 operands and 1 result");
  RequireRows(n);
  for (const uint32_t i : {kScale, kBias})
    if (n.has_in(i)) n.operand(i, FBX_F32);
}

GroupNorm::GroupNorm(const Node& n)
    : epsilon_(static_cast<float>(n.attrs().f64("epsilon"))),
      groups_(n.attrs().i64("num_groups", 1)),
      channel_axis_(n.attrs().i64("channel_axis", -1)),
      statistics_(StatisticsOf(n)) {}

void GroupNorm::invoke(const Node& n) const {
  const View view(n, channel_axis_);
  const float* const scale = OperandOf(n, kScale, view.channels);
  const float* const bias = OperandOf(n, kBias, view.channels);
  if (statistics_ == Statistics::kElement) return NormalizeElements(n, view, scale, bias, epsilon_);
  const auto groups = static_cast<size_t>(groups_);
  if (view.channels % groups != 0)
    throw Error{FBX_INVALID, std::to_string(view.channels) + " channels are not divisible by it",
                "attr num_groups"};
  const bool all = statistics_ == Statistics::kGroup;
  const size_t channels = view.channels / groups;
  const size_t image = view.channels * view.inner;
  const size_t places = all ? 1 : view.outer * view.inner;  // that have a mean each, per batch item
  const Group whole{n.in(0).data<const float>(),
                    n.out(0).data<float>(),
                    all ? view.outer : 1,
                    image,
                    channels,
                    view.inner,
                    all ? view.inner : 1,
                    scale,
                    bias};
  const size_t elements = whole.runs * channels * whole.width;
  parallel_for(n.host(), view.batch * places * groups,
               std::max<size_t>(1, 16384 / std::max<size_t>(elements, 1)),
               [&](size_t begin, size_t end, uint32_t) {
                 for (size_t i = begin; i < end; ++i) {
                   const size_t group = i % groups;
                   const size_t place = i / groups % places;
                   const size_t item = i / groups / places;
                   const size_t start = (item * view.outer + place / view.inner) * image +
                                        group * channels * view.inner + place % view.inner;
                   Group one = whole;
                   one.x += start;
                   one.y += start;
                   if (scale) one.scale += group * channels;
                   if (bias) one.bias += group * channels;
                   one.Normalize(epsilon_);
                 }
               });
}

}  // namespace fusebox::nn
