// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/conv_lstm/frame.h"

#include <algorithm>
#include <vector>

namespace fusebox::rnn {
namespace {

// Below this number of channels the transforms cost more than they save.
constexpr int64_t kFewestChannels = 8;

// A direct product of fewer columns costs more for its sums than for its columns; gathering costs a copy.
constexpr size_t kFewColumns = 32;
constexpr size_t kMostGathered = 256;

// The weights of a kernel of `n` taps at the points of its form: [points] `to_stride` apart.
void TransformWeights(const double* g, size_t stride, int64_t n, size_t points, double* to,
                      size_t to_stride) {
  constexpr double kPoints[] = {0, 1, -1, 2, -2};
  constexpr double kScalesOf4[] = {1, 0.5, 0.5};
  constexpr double kScalesOf6[] = {1.0 / 4, -1.0 / 6, -1.0 / 6, 1.0 / 24, 1.0 / 24};
  const double* const scales = points == 4 ? kScalesOf4 : kScalesOf6;
  const auto last = static_cast<size_t>(n - 1);
  to[(points - 1) * to_stride] = g[last * stride];  // at infinity
  for (size_t point = 0; point + 1 < points; ++point) {
    double sum = 0;
    for (size_t i = last + 1; i-- > 0;) sum = sum * kPoints[point] + g[i * stride];
    to[point * to_stride] = sum * scales[point];
  }
}

}  // namespace

const WinogradForm* FormOf(const Convolution& c) {
  for (const size_t d : {1u, 2u})
    if (c.strides[d] != 1 || c.dilations[d] != 1) return nullptr;
  if (c.channels < kFewestChannels) return nullptr;
  for (const WinogradForm& form : kWinogradForms)
    if (form.kernel[0] == c.kernel[1] && form.kernel[1] == c.kernel[2]) return &form;
  return nullptr;
}

Frame::Frame(const Convolution& c, const WinogradForm* form, size_t lanes, size_t panels)
    : c_(c),
      form_(form),
      lanes_(lanes),
      panels_(panels),
      contiguous_(c.dilations[2] == 1),
      gathers_(runs() > 1 && run() < kFewColumns && run() * runs() <= kMostGathered) {
  for (size_t d = 0; d < 3; ++d) {
    size_[d] = std::max((c.out[d] - 1) * c.strides[d] + c.reach(d), c.in[d] + c.before[d]);
    // The last block may exceed the size.
    if (form_ && d > 0) size_[d] += static_cast<int64_t>(form_->outputs[d - 1]) - 1;
  }
}

double Frame::measure() const {
  return static_cast<double>(size_[0]) * static_cast<double>(size_[1]) * static_cast<double>(size_[2]) *
         static_cast<double>(c_.channels);
}

void Frame::Fill(const float* inputs, float* frame, int64_t begin, int64_t end) const {
  for (int64_t i = begin; i < end; ++i)
    std::copy_n(inputs + i * row_floats(), row_floats(), frame + AtRow(i));
}

void Frame::Read(const float* frame, float* inputs, int64_t begin, int64_t end) const {
  for (int64_t i = begin; i < end; ++i)
    std::copy_n(frame + AtRow(i), row_floats(), inputs + i * row_floats());
}

size_t Frame::weights() const {
  const size_t minimal = form_ ? static_cast<size_t>(c_.kernel[0]) * form_->planes() * channels() : 0;
  return (products() * columns() + minimal) * width();
}

void Frame::Pack(const Tensor& from, float* to) const {
  const auto outputs = static_cast<size_t>(from.dim(0));
  const size_t count = products() * columns();
  std::vector<float> row(count);
  for (size_t output = 0; output < outputs; ++output) {
    if (from.dtype() == FBX_I8) {
      const int8_t* const values = from.data<const int8_t>() + output * count;
      const float scale = from.quant()->scales[from.quant()->count == 1 ? 0 : output];
      std::transform(values, values + count, row.begin(),
                     [&](int8_t v) { return scale * static_cast<float>(v); });
    } else {
      std::copy_n(from.data<const float>() + output * count, count, row.begin());
    }
    for (size_t i = 0; i < products(); ++i)
      math::PackF32Row(LayoutOf(columns()), output, row.data() + i * columns(), to + i * columns() * width());
    if (form_) PackMinimal(output, row.data(), to + count * width());
  }
}

// [tap of dimension 0][plane] panels.
void Frame::PackMinimal(size_t output, const float* row, float* to) const {
  const size_t n = channels();
  const size_t taps = static_cast<size_t>(form_->kernel[0] * form_->kernel[1]);
  const size_t across = static_cast<size_t>(form_->kernel[1]);
  const size_t planes = form_->planes();
  std::vector<float> all(planes * n);
  std::vector<double> kernel(taps);
  std::vector<double> half(form_->points[0] * across);
  std::vector<double> points(planes);
  for (int64_t outer = 0; outer < c_.kernel[0]; ++outer, row += taps * n) {
    for (size_t k = 0; k < n; ++k) {
      for (size_t i = 0; i < taps; ++i) kernel[i] = static_cast<double>(row[i * n + k]);
      if (form_->points[0] == 1) half = kernel;
      for (size_t i = 0; i < across && form_->points[0] > 1; ++i)
        TransformWeights(kernel.data() + i, across, form_->kernel[0], form_->points[0], half.data() + i,
                         across);
      for (size_t i = 0; i < form_->points[0]; ++i)
        TransformWeights(half.data() + i * across, 1, form_->kernel[1], form_->points[1],
                         points.data() + i * form_->points[1], 1);
      for (size_t plane = 0; plane < planes; ++plane) all[plane * n + k] = static_cast<float>(points[plane]);
    }
    for (size_t plane = 0; plane < planes; ++plane, to += n * width())
      math::PackF32Row(LayoutOf(n), output, all.data() + plane * n, to);
  }
}

int64_t Frame::AtRun(const Space& first, int64_t run) const {
  const int64_t taps = contiguous_ ? 1 : c_.kernel[2];
  const Space tap{run / taps / c_.kernel[1], run / taps % c_.kernel[1], run % taps};
  int64_t at = 0;
  for (size_t d = 0; d < 3; ++d)
    at += (first[d] * c_.strides[d] + tap[d] * c_.dilations[d]) * (d == 2 ? c_.channels : row(d));
  return at;
}

void Frame::Gather(const float* frame, const Elements& elements, float* to) const {
  const auto across = static_cast<size_t>(c_.strides[2] * c_.channels);
  for (int64_t i = 0; i < static_cast<int64_t>(runs()); ++i, to += run()) {
    const float* from = frame + AtRun(elements.first, i);
    float* out = to;
    for (int64_t r = 0; r < elements.rows; ++r, from += c_.strides[1] * row(1))
      for (size_t w = 0; w < static_cast<size_t>(elements.width); ++w, out += columns())
        for (size_t k = 0; k < run(); ++k) out[k] = from[w * across + k];
  }
}

void Frame::Multiply(const float* frame, const float* weights, const Elements& elements, const float* start,
                     size_t start_stride, float* memory, float* sums) const {
  math::F32Product product{
      {},
      {.layout = LayoutOf(columns()), .weights = weights, .start = start, .start_stride = start_stride},
      sums,
      width()};
  const size_t groups = product.task.layout.groups();
  if (gathers_) {
    Gather(frame, elements, memory);
    product.a = math::MatrixRows<float>(memory, elements.count(), columns(), columns());
    return math::Multiply(product, 0, groups);
  }
  for (int64_t i = 0; i < static_cast<int64_t>(runs()); ++i) {
    product.a = {frame + AtRun(elements.first, i),
                 static_cast<size_t>(elements.rows),
                 static_cast<size_t>(elements.width),
                 static_cast<size_t>(c_.strides[1] * row(1)),
                 static_cast<size_t>(c_.strides[2] * c_.channels),
                 columns()};
    math::Multiply(product, 0, groups);
    product.task.weights += columns() * width();
    product.task.start = sums;
    product.task.start_stride = width();
  }
}

void Frame::MultiplyMinimal(const CellCode& code, const float* frame, const float* weights,
                            const Elements& elements, bool first, float* inputs, float* products) const {
  const size_t n = channels();
  const size_t blocks = elements.blocks(*form_);
  const size_t across = elements.blocks_across(*form_);
  const auto transform = code.winograd_in[form_ - kWinogradForms];
  const auto down_step = static_cast<int64_t>(form_->outputs[0]) * row(1);
  const auto right_step = static_cast<int64_t>(form_->outputs[1]) * c_.channels;
  weights += this->products() * columns() * width();
  for (int64_t outer = 0; outer < c_.kernel[0]; ++outer) {
    const float* const from = frame + (elements.first[0] * c_.strides[0] + outer * c_.dilations[0]) * row(0) +
                              elements.first[1] * row(1) + elements.first[2] * c_.channels;
    for (size_t block = 0; block < blocks; ++block) {
      const auto down = static_cast<int64_t>(block / across);
      const auto right = static_cast<int64_t>(block % across);
      transform({from + down * down_step + right * right_step, static_cast<size_t>(row(1)), n,
                 inputs + block * n, blocks * n});
    }
    for (size_t plane = 0; plane < form_->planes(); ++plane, weights += n * width()) {
      float* const out = products + plane * blocks * width();
      const bool stores = first && outer == 0;
      const math::F32Layout layout = LayoutOf(n);
      math::Multiply(
          {math::MatrixRows<float>(inputs + plane * blocks * n, blocks, n, n),
           {.layout = layout, .weights = weights, .start = stores ? nullptr : out, .start_stride = width()},
           out,
           width()},
          0, layout.groups());
    }
  }
}

}  // namespace fusebox::rnn
