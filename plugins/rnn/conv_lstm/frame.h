// SPDX-License-Identifier: Apache-2.0
// A convolution as matrix products with packed weights: the inputs are copied into a frame with zeros around
// them, so that every element has the same runs of inputs under the kernel.
//
// Directly, a convolution is a sum of products, one for each contiguous run; where all inputs under the
// kernel are few, they are gathered for one product. Kernels of some sizes in the last two dimensions can
// also run by Winograd's minimal filtering (simd/winograd-inl.h), with 4 products instead of 9 for each
// element of a 3x3 kernel. Its rounding errors depend on the largest input nearby, so it is for inputs of
// moderate size only.
#pragma once

#include <cstdint>

#include <fusebox/base.hpp>

#include "plugins/math/gemm/run.h"
#include "plugins/rnn/conv_lstm/spec.h"
#include "plugins/rnn/simd/cells.h"

namespace fusebox::rnn {

using namespace sdk;

// rows x width elements from `first` on.
struct Elements {
  Space first;
  int64_t rows, width;

  size_t count() const { return static_cast<size_t>(rows * width); }
  // Returns the number of blocks of a form's outputs.
  size_t blocks_across(const WinogradForm& form) const {
    return (static_cast<size_t>(width) + form.outputs[1] - 1) / form.outputs[1];
  }
  size_t blocks(const WinogradForm& form) const {
    return (static_cast<size_t>(rows) + form.outputs[0] - 1) / form.outputs[0] * blocks_across(form);
  }
};

// The form of minimal filtering for a convolution; null: none.
const WinogradForm* FormOf(const Convolution&);

class Frame {
 public:
  // `form`: FormOf, or null for none.
  Frame(const Convolution& c, const WinogradForm* form, size_t lanes, size_t panels);

  int64_t floats() const { return size_[0] * row(0); }  // of one row of the batch
  double measure() const;                               // the same; floats() may not fit
  int64_t rows() const { return c_.in[0] * c_.in[1]; }  // of the inputs
  int64_t row_floats() const { return c_.in[2] * c_.channels; }
  // Index of an input in the frame.
  int64_t At(const Space& in) const {
    return (in[0] + c_.before[0]) * row(0) + (in[1] + c_.before[1]) * row(1) +
           (in[2] + c_.before[2]) * c_.channels;
  }
  // Copies rows of the inputs [in.., channels] into the frame, or back.
  void Fill(const float* inputs, float* frame, int64_t begin, int64_t end) const;
  void Read(const float* frame, float* inputs, int64_t begin, int64_t end) const;

  size_t weights() const;  // packed, floats
  // Weights [outputs, kernel.., channels], f32 or i8.
  void Pack(const Tensor& from, float* to) const;

  // Floats of memory for the gathered inputs of this many elements; 0: not gathered.
  size_t gathered(size_t elements) const {
    return gathers_ ? elements * static_cast<size_t>(c_.taps() * c_.channels) : 0;
  }
  // sums[element] = start + the convolution; [panels][lane] an element. `memory`: gathered() floats.
  void Multiply(const float* frame, const float* weights, const Elements& elements, const float* start,
                size_t start_stride, float* memory, float* sums) const;

  // Minimal filtering: blocks transformed to `inputs` ([plane][block][channels]), and their products added to
  // `products` ([plane][block][panels][lane]), or stored if `first`.
  const WinogradForm* form() const { return form_; }  // null: none
  size_t channels() const { return static_cast<size_t>(c_.channels); }
  void MultiplyMinimal(const CellCode& code, const float* frame, const float* weights,
                       const Elements& elements, bool first, float* inputs, float* products) const;

 private:
  // Floats of one index of dimension 0 or 1.
  int64_t row(size_t d) const { return (d == 0 ? size_[1] : 1) * size_[2] * c_.channels; }
  int64_t AtRow(int64_t i) const { return At({i / c_.in[1], i % c_.in[1], 0}); }
  // Inputs of one contiguous run under the kernel, and the number of runs.
  size_t run() const { return static_cast<size_t>((contiguous_ ? c_.kernel[2] : 1) * c_.channels); }
  size_t runs() const { return static_cast<size_t>(c_.taps() * c_.channels) / run(); }
  // The same of direct products.
  size_t columns() const { return gathers_ ? run() * runs() : run(); }
  size_t products() const { return gathers_ ? 1 : runs(); }
  // Index of a run, from the first element's inputs; `first` is the element's index.
  int64_t AtRun(const Space& first, int64_t run) const;
  void Gather(const float* frame, const Elements& elements, float* to) const;
  size_t width() const { return panels_ * lanes_; }
  math::F32Layout LayoutOf(size_t k) const { return {lanes_, width(), k}; }
  void PackMinimal(size_t output, const float* row, float* to) const;

  Convolution c_;
  const WinogradForm* form_;
  size_t lanes_, panels_;
  bool contiguous_;  // the innermost dimension is not dilated
  bool gathers_;
  Space size_{};
};

}  // namespace fusebox::rnn
