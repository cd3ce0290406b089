// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/rates_probes.h"

#include <cmath>
#include <random>

#include "host/graph/view.h"
#include "plugins/cpu/cost.h"
#include "plugins/xnnpack/cost.h"

namespace fusebox::bench {
namespace {

using math::Work;
using Dims = std::vector<int64_t>;

// Builds nets of quantized or float values.
class Maker {
 public:
  explicit Maker(DType type)
      : type_(type),
        bytes_(type != DType::kF32),
        module_(std::make_unique<Module>()),
        f_(module_->Add("main")) {
    module_->source = "probe.tflite";
  }
  ValueId Input(Dims dims) { return Scaled(f_.AddInput({type(), Shape(dims)}, "x"), {0.05F}); }
  ValueId Filter(Dims dims, int axis) {
    int64_t count = 1;
    for (const int64_t d : dims) count *= d;
    std::minstd_rand random(7);
    if (!bytes_) {
      std::vector<float> values(static_cast<size_t>(count));
      for (float& v : values) v = static_cast<float>(random() % 1000) / 1000 - 0.5F;
      return f_.AddConst<float>(DType::kF32, Shape(dims), values);
    }
    if (type_ == DType::kU8) {
      std::vector<uint8_t> values(static_cast<size_t>(count));
      for (uint8_t& v : values) v = static_cast<uint8_t>(random() % 256);
      return Scaled(f_.AddConst<uint8_t>(type_, Shape(dims), values), {0.01F});
    }
    std::vector<int8_t> values(static_cast<size_t>(count));
    for (int8_t& v : values) v = static_cast<int8_t>(random() % 255 - 127);
    const auto channels = static_cast<size_t>(dims[static_cast<size_t>(axis)]);
    return Scaled(f_.AddConst<int8_t>(DType::kI8, Shape(dims), values), std::vector<float>(channels, 0.01F),
                  axis);
  }
  ValueId Bias(int64_t count) {
    const auto size = static_cast<size_t>(count);
    if (!bytes_) return f_.AddConst<float>(DType::kF32, Shape({count}), std::vector<float>(size));
    return Scaled(f_.AddConst<int32_t>(DType::kI32, Shape({count}), std::vector<int32_t>(size)),
                  std::vector<float>(type_ == DType::kU8 ? 1 : size, 0.0005F));
  }
  ValueId Integers(const std::vector<int32_t>& values) {
    return f_.AddConst<int32_t>(DType::kI32, Shape({static_cast<int64_t>(values.size())}), values);
  }
  ValueId Node(Op op, std::vector<ValueId> operands, Dims dims, Attrs attrs) {
    const ValueId out =
        f_.AddNode(op, std::move(operands), {{type(), Shape(dims)}}, std::move(attrs)).results[0];
    return Scaled(out, {0.05F});
  }
  std::unique_ptr<Module> Take(ValueId output) {
    f_.outputs = {output};
    return std::move(module_);
  }
  DType type() const { return type_; }

 private:
  ValueId Scaled(ValueId id, std::vector<float> scales, int axis = 0) {
    if (!bytes_) return id;
    const bool is_bias = f_.value(id).type.dtype == DType::kI32;
    const std::vector<int64_t> zeros(scales.size(), type_ == DType::kU8 && !is_bias ? 128 : 0);
    f_.value(id).quant =
        std::make_shared<const Quant>(Quant{.scales = scales, .zero_points = zeros, .axis = axis});
    return id;
  }
  DType type_;
  bool bytes_;
  std::unique_ptr<Module> module_;
  Function& f_;
};

Attrs WindowAttrs(int64_t stride) {
  Attrs attrs;
  attrs.Set("padding", "SAME");
  attrs.Set("stride_h", stride);
  attrs.Set("stride_w", stride);
  return attrs;
}

// Counts the work of the nodes of a net for kernels and for XNNPACK.
void Describe(Probe& probe) {
  const Function& f = *probe.module->functions[0];
  const GraphView view(*probe.module, f);
  fbx_host host{};
  host.attrs = &AttrApi();
  const sdk::Graph graph(&host, view.abi());
  double bytes = 0;
  for (const ValueId id : {f.inputs[0], f.outputs[0]})
    bytes += static_cast<double>(ByteSize(f.value(id).type).value_or(0));
  const auto add = [](std::array<double, kUnknowns>& sums, const Work& work) {
    for (size_t i = 0; i < work.size(); ++i) sums[i] += work[i];
  };
  const math::Isa isa = math::BestIsa();
  for (uint32_t i = 0; i < graph.node_count(); ++i) {
    const sdk::GraphNode n = graph.node(i);
    std::visit([&](const auto& shape) { add(probe.kernels, cpu::WorkOf(shape, isa)); }, *math::ShapeOf(n));
    std::visit([&](const auto& shape) { add(probe.xnnpack, xnnpack::WorkOf(shape, isa)); },
               *xnnpack::DefinedShapeOf(n));
  }
  probe.xnnpack[math::kBorder] = 2;
  probe.xnnpack[math::kBorderByte] = bytes;
  probe.kernels[kRun] = 1;
}

class Shapes {
 public:
  // Evenly spread on a logarithmic scale.
  int64_t Between(double low, double high) {
    return static_cast<int64_t>(std::lround(low * std::pow(high / low, part_(random_))));
  }
  int64_t OneOf(std::initializer_list<int64_t> values) {
    return values.begin()[static_cast<size_t>(part_(random_) * static_cast<double>(values.size()))];
  }

 private:
  std::minstd_rand random_{11};
  std::uniform_real_distribution<double> part_{0, 0.999};
};

Probe Convolution(Shapes& shapes, DType type) {
  while (true) {
    const int64_t side = shapes.Between(3, 120), in = shapes.Between(3, 1024), out = shapes.Between(2, 1024),
                  window = shapes.OneOf({1, 1, 3, 3, 5}), stride = shapes.OneOf({1, 1, 2}),
                  to = (side + stride - 1) / stride;
    const int64_t work = to * to * window * window * in * out;
    if (work < 30'000 || work > 100'000'000) continue;
    Maker m(type);
    const ValueId x = m.Input({1, side, side, in});
    const ValueId y = m.Node(Op::kConv2D, {x, m.Filter({out, window, window, in}, 0), m.Bias(out)},
                             {1, to, to, out}, WindowAttrs(stride));
    return {"conv " + std::to_string(side) + "x" + std::to_string(in) + " to " + std::to_string(to) + "x" +
                std::to_string(out) + " by " + std::to_string(window),
            m.Take(y)};
  }
}

Probe Depthwise(Shapes& shapes, DType type) {
  while (true) {
    const int64_t side = shapes.Between(4, 120), channels = shapes.Between(4, 960),
                  window = shapes.OneOf({3, 3, 3, 5, 5, 7}), stride = shapes.OneOf({1, 1, 2}),
                  to = (side + stride - 1) / stride;
    const int64_t work = to * to * window * window * channels;
    if (work < 20'000 || work > 6'000'000) continue;
    Maker m(type);
    const ValueId x = m.Input({1, side, side, channels});
    Attrs attrs = WindowAttrs(stride);
    attrs.Set("depth_multiplier", int64_t{1});
    const ValueId y =
        m.Node(Op::kDepthwiseConv2D, {x, m.Filter({1, window, window, channels}, 3), m.Bias(channels)},
               {1, to, to, channels}, attrs);
    return {"depthwise " + std::to_string(side) + "x" + std::to_string(channels) + " by " +
                std::to_string(window) + "/" + std::to_string(stride),
            m.Take(y)};
  }
}

Probe FullyConnected(Shapes& shapes, DType type) {
  while (true) {
    const int64_t rows = shapes.OneOf({1, 1, 1, 4, 16, 100}), in = shapes.Between(16, 3000),
                  out = shapes.Between(2, 2000);
    const int64_t work = rows * in * out;
    if (work < 3'000 || work > 6'000'000) continue;
    Maker m(type);
    const ValueId x = m.Input({rows, in});
    const ValueId y = m.Node(Op::kFullyConnected, {x, m.Filter({out, in}, 0), m.Bias(out)}, {rows, out}, {});
    return {
        "fully connected " + std::to_string(rows) + "x" + std::to_string(in) + " to " + std::to_string(out),
        m.Take(y)};
  }
}

Probe Transposed(Shapes& shapes, DType type) {
  while (true) {
    const int64_t side = shapes.Between(4, 100), in = shapes.Between(4, 256), out = shapes.Between(1, 128),
                  window = shapes.OneOf({2, 3, 4}), to = side * 2;
    const int64_t work = side * side * window * window * in * out;
    if (work < 50'000 || work > 20'000'000) continue;
    Maker m(type);
    const ValueId x = m.Input({1, side, side, in});
    const auto size = static_cast<int32_t>(to);
    const ValueId y = m.Node(
        Op::kTransposeConv,
        {m.Integers({1, size, size, static_cast<int32_t>(out)}), m.Filter({out, window, window, in}, 0), x},
        {1, to, to, out}, WindowAttrs(2));
    return {"transposed " + std::to_string(side) + "x" + std::to_string(in) + " to " + std::to_string(out) +
                " by " + std::to_string(window),
            m.Take(y)};
  }
}

Probe Softmax(Shapes& shapes, DType) {
  const int64_t length = shapes.Between(2, 1000),
                rows = shapes.Between(1, 100'000.0 / static_cast<double>(length));
  Maker m(DType::kF32);
  Attrs attrs;
  attrs.Set("beta", 1.0);
  const ValueId x = m.Input({rows, length});
  return {"softmax " + std::to_string(rows) + "x" + std::to_string(length),
          m.Take(m.Node(Op::kSoftmax, {x}, {rows, length}, attrs))};
}

// Some equal ops one after the other: the more there are, the less the border counts.
Probe Chain(Shapes& shapes, DType type) {
  const int64_t length = shapes.OneOf({1, 2, 4, 8}), side = shapes.Between(1, 60),
                channels = shapes.Between(2, 48);
  const Op op = type != DType::kF32
                    ? Op::kAdd
                    : std::array{Op::kAdd, Op::kLogistic}[static_cast<size_t>(shapes.OneOf({0, 1}))];
  Maker m(type);
  ValueId x = m.Input({1, side, side, channels});
  for (int64_t i = 0; i < length; ++i)
    x = m.Node(op, op == Op::kAdd ? std::vector{x, x} : std::vector{x}, {1, side, side, channels}, {});
  return {std::to_string(length) + " " + std::string(Name(op)) + " " + std::to_string(side) + "x" +
              std::to_string(channels),
          m.Take(x)};
}

}  // namespace

std::vector<Probe> Probes() {
  Shapes shapes;
  std::vector<Probe> probes;
  const auto add = [&](int count, Probe (*make)(Shapes&, DType)) {
    for (int i = 0; i < count; ++i)
      for (const DType type : {DType::kF32, DType::kI8, DType::kU8}) {
        probes.push_back(make(shapes, type));
        probes.back().name += type == DType::kF32 ? " f32" : type == DType::kI8 ? " i8" : " u8";
      }
  };
  add(80, Convolution);
  add(40, Depthwise);
  add(40, FullyConnected);
  add(20, Transposed);
  add(12, Softmax);
  add(40, Chain);
  for (Probe& probe : probes) Describe(probe);
  return probes;
}

std::unique_ptr<Module> MixedNet(bool alternate, int nodes_of_each) {
  Maker m(DType::kF32);
  ValueId x = m.Input({1, 4, 4, 8});
  for (int i = 0; i < 2 * nodes_of_each; ++i) {
    const bool floor = alternate ? i % 2 == 1 : i >= nodes_of_each;  // XNNPACK has none of floats
    x = floor ? m.Node(Op::kFloor, {x}, {1, 4, 4, 8}, {}) : m.Node(Op::kAdd, {x, x}, {1, 4, 4, 8}, {});
  }
  return m.Take(x);
}

}  // namespace fusebox::bench
