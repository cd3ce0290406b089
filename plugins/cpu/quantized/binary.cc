// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/quantized/binary.h"

#include "plugins/cpu/elements/extremes.h"
#include "plugins/cpu/quantized/byte_code.h"

namespace fusebox::cpu {
namespace {

bool Selects(QuantizedOp op) { return op == QuantizedOp::kMaximum || op == QuantizedOp::kMinimum; }

}  // namespace

// Sums: both operands are scaled to a common scale with `shift_` extra bits, as many as in TFLite, so that
// the rounding is equal.
QuantizedBinary::QuantizedBinary(const Node& n, QuantizedOp op, Activation activation) : op_(op) {
  if (Selects(op)) return;
  const Affine x = AffineOf(n.in(0));
  const Affine y = AffineOf(n.in(1));
  const Affine z = AffineOf(n.out(0));
  const QuantizedRange range(activation, n.out(0));
  lowest_ = range.lowest;
  highest_ = range.highest;
  x_zero_ = x.zero;
  y_zero_ = y.zero;
  z_zero_ = z.zero;
  const double common = 2.0 * std::max(double{x.scale}, double{y.scale});
  quotient_ = double{x.scale} / y.scale / z.scale;
  x_root_ = x.scale / std::sqrt(double{z.scale});
  y_root_ = y.scale / std::sqrt(double{z.scale});
  switch (op) {
    case QuantizedOp::kAdd:
    case QuantizedOp::kSub:
    case QuantizedOp::kSquaredDifference: {
      const bool square = op == QuantizedOp::kSquaredDifference;
      shift_ = square ? 7 : n.in(0).dtype() == FBX_I16 ? 15 : 20;
      x_scale_ = FixedPoint(x.scale / common);
      y_scale_ = FixedPoint(y.scale / common);
      z_scale_ =
          FixedPoint((square ? common * common : common) / (std::ldexp(1.0, square ? 14 : shift_) * z.scale));
      break;
    }
    case QuantizedOp::kMul: z_scale_ = FixedPoint(double{x.scale * y.scale / z.scale}); break;
    default: break;
  }
}

void QuantizedBinary::Supports(const Node& n, QuantizedOp op) {
  RequireQuantized(n, 0);
  RequireQuantized(n, 1);
  if (Selects(op)) {
    RequireSameQuant(n, 0);
    RequireSameQuant(n, 1);
    if (!SameQuant(n.in(0).quant(), n.in(1).quant()))
      throw Reject{"QUANT", "the operands have different scales", "operand 1"};
    return;
  }
  RequireQuantizedResult(n, 0);
  RequireNoZeroPoint(n.in(0), "operand 0");
  RequireNoZeroPoint(n.in(1), "operand 1");
  RequireQuantizedActivation(n);
}

// Results of 8 bits by the vector code.
void QuantizedBinary::RunBytes(const Node& n, const BroadcastPlan& plan) const {
  using Op = ByteBinary::Op;
  const Op op = op_ == QuantizedOp::kAdd   ? Op::kAdd
                : op_ == QuantizedOp::kSub ? Op::kSub
                : op_ == QuantizedOp::kMul ? Op::kMul
                                           : Op::kSquaredDifference;
  const ByteBinary b{op,       n.in(0).dtype() == FBX_I8,
                     x_zero_,  y_zero_,
                     shift_,   x_scale_,
                     y_scale_, z_scale_,
                     z_zero_,  lowest_,
                     highest_};
  WalkBroadcast(
      n.host(), plan, {{{n.in(0).data<const uint8_t>(), 1}, {n.in(1).data<const uint8_t>(), 1}}},
      n.out(0).data<uint8_t>(), 1,
      [](const void* f, const BroadcastRuns& runs) {
        const auto* x = static_cast<const uint8_t*>(runs.in[0]);
        const auto* y = static_cast<const uint8_t*>(runs.in[1]);
        auto* z = static_cast<uint8_t*>(runs.z);
        for (int64_t r = 0; r < runs.rows; ++r, x += runs.row[0], y += runs.row[1], z += runs.count)
          BestByteKernels().binary(*static_cast<const ByteBinary*>(f), x, runs.step[0], y, runs.step[1], z,
                                   static_cast<size_t>(runs.count));
      },
      &b);
}

// Results of 16 bits.
void QuantizedBinary::RunShorts(const Node& n, const BroadcastPlan& plan) const {
  using T = int16_t;
  const QuantizedBinary c = *this;
  const auto run = [&](const auto& f) {
    RunBroadcast(n.host(), plan, n.in(0).data<const T>(), n.in(1).data<const T>(), n.out(0).data<T>(), f);
  };
  const auto quantized = [c](int32_t z) FUSEBOX_INLINE {
    return static_cast<T>(std::min(std::max(z + c.z_zero_, c.lowest_), c.highest_));
  };
  const auto left = [c](T x) FUSEBOX_INLINE { return Scaled((x - c.x_zero_) * (1 << c.shift_), c.x_scale_); };
  const auto right = [c](T y)
                         FUSEBOX_INLINE { return Scaled((y - c.y_zero_) * (1 << c.shift_), c.y_scale_); };
  const int32_t sign = op_ == QuantizedOp::kSub ? -1 : 1;
  switch (op_) {
    case QuantizedOp::kAdd:
    case QuantizedOp::kSub:
      return run([=](T x, T y)
                     FUSEBOX_INLINE { return quantized(Scaled(left(x) + sign * right(y), c.z_scale_)); });
    case QuantizedOp::kSquaredDifference:
      return run([=](T x, T y) FUSEBOX_INLINE {  // the square needs more than 32 bits
        const double d = c.x_root_ * x - c.y_root_ * y;
        return quantized(static_cast<int32_t>(std::min(d * d + 0.5, 65536.0)));
      });
    default:
      return run([=](T x, T y) FUSEBOX_INLINE {
        return quantized(Scaled((x - c.x_zero_) * (y - c.y_zero_), c.z_scale_));
      });
  }
}

void QuantizedBinary::Divide(const Node& n, const BroadcastPlan& plan) const {
  const QuantizedBinary c = *this;
  Dispatch(kQuantized, n.in(0).dtype(), [&]<class T>() {
    RunBroadcastPlainly(
        n.host(), plan, n.in(0).data<const T>(), n.in(1).data<const T>(), n.out(0).data<T>(), [=](T x, T y) {
          const double q = std::round(c.quotient_ * (x - c.x_zero_) / (y - c.y_zero_));
          const int32_t z = std::isnan(q) ? 0 : static_cast<int32_t>(std::clamp(q, -65536.0, 65536.0));
          return static_cast<T>(std::min(std::max(z + c.z_zero_, c.lowest_), c.highest_));
        });
  });
}

void QuantizedBinary::Run(const Node& n, const BroadcastPlan& plan) const {
  if (Selects(op_)) return RunIntegerExtremes(n, plan, op_ == QuantizedOp::kMaximum);
  if (op_ == QuantizedOp::kDiv) return Divide(n, plan);
  if (n.in(0).dtype() == FBX_I16) return RunShorts(n, plan);
  RunBytes(n, plan);
}

}  // namespace fusebox::cpu
