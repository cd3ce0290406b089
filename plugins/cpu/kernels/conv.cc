// SPDX-License-Identifier: Apache-2.0
// CONV_2D and CONV_3D as matrix products: a row of A is the input patch of one output pixel.
#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/products/matrix_product.h"
#include "plugins/cpu/windows/patches.h"

namespace fusebox::cpu {
namespace {

void CheckFilter(const Node& n, int rank) {
  RequireRank(n, 0, rank);
  RequireRank(n, 1, rank);
  for (int i = 0; i < rank; ++i)
    if (DimOrUnknown(n.in(1), i) == 0) Fail("an empty filter " + Text(n.in(1).dims()), Operand(1));
}

// Filter [outs, height, width, channels of a group].
struct Images {
  static constexpr std::string_view builtin = "CONV_2D";
  static constexpr ProductOperands operands{.exact_scales = true, .round_half_up = true};

  static void Infer(const Node& n, const WindowOptions& w, sdk::Infer& out) {
    CheckFilter(n, 4);
    const Tensor in = n.in(0);
    const Tensor filter = n.in(1);
    const int64_t channels = DimOrUnknown(in, 3);
    const int64_t group = DimOrUnknown(filter, 3);
    const int64_t outs = DimOrUnknown(filter, 0);
    if (channels == 0 || (channels > 0 && group > 0 && channels % group != 0))
      Fail("an input of " + std::to_string(channels) + " channels for a filter of " + std::to_string(group),
           Operand(1));
    if (channels > 0 && group > 0 && outs >= 0 && outs % (channels / group) != 0)
      Fail(std::to_string(outs) + " filters do not divide into " + std::to_string(channels / group) +
               " groups",
           Operand(1));
    MatrixProduct::Check(n, operands, outs);
    const auto size = [&](int i, const Slide& slide) {
      return OutputSize(DimOrUnknown(in, i), DimOrUnknown(filter, i), slide, w.same);
    };
    out.set(0, in.dtype(), {DimOrUnknown(in, 0), size(1, w.height), size(2, w.width), outs});
  }

  static ProductShape Weights(const Tensor& in, const Tensor& filter) {
    const int64_t groups = std::max<int64_t>(1, in.dim(3) / filter.dim(3));
    return {-1, filter.dim(0) / groups, CountFrom(Shape(filter), 1), groups};
  }

  static ConvGeometry Geometry(const Node& n, const WindowOptions& w) {
    const Tensor in = n.in(0);
    const Tensor filter = n.in(1);
    return {in.dim(0),
            in.dim(3),
            filter.dim(3),
            filter.dim(0),
            ConvAxis::Of(1, 1, {}, false),
            ConvAxis::Of(in.dim(1), filter.dim(1), w.height, w.same),
            ConvAxis::Of(in.dim(2), filter.dim(2), w.width, w.same)};
  }
};

// Filter [depth, height, width, channels, outs].
struct Volumes {
  static constexpr std::string_view builtin = "CONV_3D";
  static constexpr ProductOperands operands{.transposed = true, .taps = true};

  static void Infer(const Node& n, const WindowOptions& w, sdk::Infer& out) {
    CheckFilter(n, 5);
    const Tensor in = n.in(0);
    const Tensor filter = n.in(1);
    const int64_t outs = DimOrUnknown(filter, 4);
    SameDim(DimOrUnknown(in, 4), DimOrUnknown(filter, 3), "channels of the input and of the filter");
    MatrixProduct::Check(n, operands, outs);
    const auto size = [&](int i, const Slide& slide) {
      return OutputSize(DimOrUnknown(in, i + 1), DimOrUnknown(filter, i), slide, w.same);
    };
    out.set(0, in.dtype(),
            {DimOrUnknown(in, 0), size(0, DepthSlide(n)), size(1, w.height), size(2, w.width), outs});
  }

  static ProductShape Weights(const Tensor&, const Tensor& filter) {
    return {-1, filter.dim(4), Count(filter.dims().first(4)), 1};
  }

  static ConvGeometry Geometry(const Node& n, const WindowOptions& w) {
    const Tensor in = n.in(0);
    const Tensor filter = n.in(1);
    return {in.dim(0),
            in.dim(4),
            in.dim(4),
            filter.dim(4),
            ConvAxis::Of(in.dim(1), filter.dim(0), DepthSlide(n), w.same),
            ConvAxis::Of(in.dim(2), filter.dim(1), w.height, w.same),
            ConvAxis::Of(in.dim(3), filter.dim(2), w.width, w.same)};
  }
};

template <class Form>
struct Conv {
  static constexpr std::string_view builtin = Form::builtin;
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  using State = ProductState;

  // TFLite gives a hybrid input a zero point if the weights have per-channel scales.
  explicit Conv(const Node& n) : window_(ReadWindowOptions(n)) {
    ProductSpec spec{.operands = Form::operands, .activation = FusedActivation(n), .images = true};
    spec.asymmetric = n.in(1).quant() && n.in(1).quant()->count > 1;
    const bool known = n.in(0).rank() > 0 && n.in(0).dim(n.in(0).rank() - 1) > 0;
    if (n.in(1).is_const() && known) spec.shape = Form::Weights(n.in(0), n.in(1));
    product_ = MatrixProduct::Choose(n, spec);
  }

  static void supports(const Node& n) { MatrixProduct::Supports(n, Form::operands); }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 3);
    Form::Infer(n, ReadWindowOptions(n), out);
  }

  State prepare(const Node& n, Plan& plan) const {
    const ConvGeometry g = Form::Geometry(n, window_);
    ProductTask task{.shape = {g.pixels(), g.out_channels / g.groups(), g.patch(), g.groups()},
                     .samples = g.batch,
                     .rows_per_sample = std::max<int64_t>(1, g.image())};
    if (!g.patches_are_pixels()) task.window = g;
    return product_->Prepare(n, plan, task);
  }

  void invoke(const Node& n, const State& state) const { product_->RunAll(n, state); }

 private:
  WindowOptions window_;
  std::unique_ptr<const MatrixProduct> product_;
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<Conv<Images>>, &kernel_of<Conv<Volumes>>};

}  // namespace

constinit const KernelTable kConvKernels = kTable;

}  // namespace fusebox::cpu
