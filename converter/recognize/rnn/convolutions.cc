// SPDX-License-Identifier: Apache-2.0
// Sums of convolutions with constant kernels.
#include "converter/recognize/rnn/affine.h"
#include "host/base/status.h"

namespace fusebox::converter::recognize {
namespace {

class ConvolutionReader {
 public:
  ConvolutionReader(const View& in, int64_t columns) : in_(in), f_(in.function()) {
    out_.bias.resize(static_cast<size_t>(columns));
  }

  Status Read(ValueId v, Range range, bool ignore_activation) {
    constexpr int kMostParts = 64;  // sums of sums, as deep as a file makes them
    if (++parts_ > kMostParts)
      return Unsupported("a sum of more than " + std::to_string(kMostParts) + " parts");
    const Value& value = f_.value(v);
    if (value.type.dtype != DType::kF32) return Unsupported("a value of " + ToString(value.type));
    if (value.is_const()) return AddBias(value, range, out_.bias);
    const Node* node = in_.Producer(v);
    if (!node || LastDim(v) < range.begin + range.count) return Refuse(v);
    if (!ignore_activation && FusedActivation(*node) != "NONE") return Refuse(v);
    switch (node->op) {
      case Op::kAdd:
        FUSEBOX_TRY(Read(node->operands[0], range, false));
        return Read(node->operands[1], range, false);
      case Op::kSplit: return Split(*node, v, range);
      case Op::kSqueeze:
      case Op::kReshape: return Line(*node, v, range);
      case Op::kConv2D: return Plane(*node, node->operands[0], false, range);
      case Op::kConv3D: return Volume(*node, range);
      default: return Refuse(v);
    }
  }

  AffineSum Take() { return std::move(out_); }

 private:
  int64_t LastDim(ValueId v) const {
    const Shape& shape = in_.shape(v);
    return shape.rank() < 1 ? -1 : shape[static_cast<size_t>(shape.rank() - 1)];
  }
  Status Refuse(ValueId v) const {
    return Unsupported(in_.Text(v) + " is no convolution with a constant kernel");
  }

  Status Split(const Node& node, ValueId v, Range range) {
    const auto axis = in_.Ints(node.operands[0]);
    const int64_t last = in_.shape(v).rank() - 1;
    const int64_t width = LastDim(v);
    if (!axis || axis->size() != 1 || ((*axis)[0] != last && (*axis)[0] != -1))
      return Unsupported("SPLIT over another axis than the last");
    return Read(node.operands[1], {range.begin + in_.result_index(v) * width, range.count}, false);
  }

  // [batch, 1, width, channels] as [batch, width, channels], by an op that exchanges nothing.
  bool Narrows(ValueId wide, ValueId narrow) const {
    const Shape& from = in_.shape(wide);
    const Shape& to = in_.shape(narrow);
    return from.rank() == 4 && to.rank() == 3 && from[1] == 1 && from[2] == to[1] && from[3] == to[2] &&
           to[2] > 0 && (to[1] > 0 || from[0] == to[0]);
  }

  // A convolution of height 1 between two ops that add and remove this dimension; or a sum of it and a bias.
  Status Line(const Node& node, ValueId v, Range range) {
    const ValueId wide = node.operands[0];
    if (!Narrows(wide, v)) return Refuse(v);
    const Node* conv = in_.Producer(wide, Op::kConv2D);
    const Node* widen = conv ? in_.Producer(conv->operands[0]) : nullptr;
    if (!widen || (!widen->is(Op::kExpandDims) && !widen->is(Op::kReshape)) ||
        !Narrows(conv->operands[0], widen->operands[0]))
      return Refuse(v);
    return Plane(*conv, widen->operands[0], true, range);
  }

  Status Plane(const Node& node, ValueId source, bool line, Range range) {
    const Value& kernel = f_.value(node.operands[1]);
    const Shape& shape = kernel.type.shape;  // [out, height, width, in]
    FUSEBOX_TRY(Check(node, kernel, 4, 3, 0, range));
    Window window{{shape[1], shape[2]},
                  {node.attrs.i64("stride_h", 1), node.attrs.i64("stride_w", 1)},
                  {node.attrs.i64("dilation_h_factor", 1), node.attrs.i64("dilation_w_factor", 1)},
                  node.attrs.str("padding", "SAME")};
    if (line) {
      if (shape[1] != 1) return Refuse(node.results[0]);
      for (auto* sizes : {&window.kernel, &window.strides, &window.dilations}) sizes->erase(sizes->begin());
    }
    return Add(node, source,
               {node.operands[1], true, 0, shape[1] * shape[2] * shape[3], range.begin, range.count,
                std::move(window)},
               range);
  }

  Status Volume(const Node& node, Range range) {
    const Value& kernel = f_.value(node.operands[1]);
    const Shape& shape = kernel.type.shape;  // [depth, height, width, in, out]
    FUSEBOX_TRY(Check(node, kernel, 5, 3, 4, range));
    Window window{
        {shape[0], shape[1], shape[2]},
        {node.attrs.i64("stride_d", 1), node.attrs.i64("stride_h", 1), node.attrs.i64("stride_w", 1)},
        {node.attrs.i64("dilation_d_factor", 1), node.attrs.i64("dilation_h_factor", 1),
         node.attrs.i64("dilation_w_factor", 1)},
        node.attrs.str("padding", "SAME")};
    const int64_t rows = shape[0] * shape[1] * shape[2] * shape[3];
    return Add(node, node.operands[0],
               {.matrix = node.operands[1],
                .transposed = false,
                .row = 0,
                .rows = rows,
                .column = range.begin,
                .columns = range.count,
                .window = std::move(window)},
               range);
  }

  // A constant kernel of all channels of the input.
  Status Check(const Node& node, const Value& kernel, int rank, size_t in, size_t out, Range range) const {
    const Shape& shape = kernel.type.shape;
    if (kernel.type.dtype != DType::kF32) return Unsupported("a kernel of " + ToString(kernel.type));
    if (!kernel.is_const()) return Unsupported("its kernel is computed (" + in_.Text(node.operands[1]) + ")");
    if (shape.rank() != rank || LastDim(node.operands[0]) != shape[in] ||
        range.begin + range.count > shape[out])
      return Refuse(node.results[0]);
    return {};
  }

  Status Add(const Node& node, ValueId source, Block block, Range range) {
    if (node.operands.size() > 2 && node.operands[2] != kNoValue) {
      if (!f_.value(node.operands[2]).is_const()) return Refuse(node.results[0]);
      FUSEBOX_TRY(AddBias(f_.value(node.operands[2]), range, out_.bias));
    }
    out_.products.push_back({source, std::move(block)});
    return {};
  }

  const View& in_;
  const Function& f_;
  AffineSum out_;
  int parts_ = 0;
};

}  // namespace

Result<AffineSum> ReadConvolutions(const View& in, const Activated& of) {
  const Shape& shape = in.shape(of.inner);
  const int64_t columns = shape.rank() < 3 ? -1 : shape[static_cast<size_t>(shape.rank() - 1)];
  if (columns < 1)
    return Unsupported(in.Text(of.inner) + " has a shape of " + ToString(shape) +
                       ", expected [batch, space.., filters]");
  ConvolutionReader reader(in, columns);
  FUSEBOX_TRY(reader.Read(of.inner, {0, columns}, of.fused));
  return reader.Take();
}

}  // namespace fusebox::converter::recognize
