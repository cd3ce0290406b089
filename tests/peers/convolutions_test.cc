// SPDX-License-Identifier: Apache-2.0
// Convolutions and matrix products of random shapes, strides, dilations, paddings and activations beside
// stock TFLite: on kernels, where 8-bit results have stock's bits, and floats through XNNPACK too.
#include <gtest/gtest.h>

#include <cstdlib>

#include "host/tflite/tflite.h"
#include "tests/peers/rounding.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

using xnnpack_test::Net, xnnpack_test::Q;

enum class Types { kFloat, kHybrid, kI8, kU8 };

struct Form {
  std::string name;
  Op op;
  Types types;
};
void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

bool IsQuantized(Types types) { return types == Types::kI8 || types == Types::kU8; }

// One axis of a window.
struct Axis {
  int64_t in, kernel, stride, dilation;
  int64_t reach() const { return (kernel - 1) * dilation + 1; }
  int64_t Out(bool same) const { return same ? (in + stride - 1) / stride : (in - reach()) / stride + 1; }
};

class Trial {
 public:
  Trial(Form form, Dice& dice) : form_(std::move(form)), dice_(dice) {}

  std::unique_ptr<Module> Build();
  // The largest sum of products of magnitudes, for inputs within [-1, 1].
  double largest() const { return largest_; }
  // The most that rounding of one input value of a hybrid product changes.
  double step() const { return step_; }
  // The same for all values.
  double steps() const { return 2 * step_ * std::sqrt(largest_); }

 private:
  std::unique_ptr<Module> Dense();
  std::unique_ptr<Module> Window();
  std::unique_ptr<Module> Transposed();
  std::unique_ptr<Module> Matrices();
  Axis RandomAxis(bool dilated);
  int64_t Channels() { return dice_.Flip() ? dice_.Int(1, 9) : dice_.Int(10, 70); }
  ValueId Input(const Dims& dims);
  ValueId RightInput(const Dims& dims);
  ValueId Weights(const Dims& dims, int axis);
  ValueId Bias(int64_t channels);
  ValueId Floats(const Dims& dims, double most);
  Attrs Activated(Attrs attrs);
  std::unique_ptr<Module> Take(Op op, std::vector<ValueId> operands, const Dims& out, Attrs attrs);
  DType dtype() const {
    return form_.types == Types::kI8 ? DType::kI8 : form_.types == Types::kU8 ? DType::kU8 : DType::kF32;
  }

  Form form_;
  Dice& dice_;
  Net net_;
  Q in_;
  std::vector<Q> weights_;
  double largest_ = 0, step_ = 0;
};

ValueId Trial::Floats(const Dims& dims, double most) {
  std::vector<float> values;
  for (int64_t i = 0; i < CountOf(dims); ++i)
    values.push_back(static_cast<float>(most * static_cast<double>(dice_.Int(-1000, 1000)) / 1000));
  return net_.Const<float>(DType::kF32, dims, values);
}

ValueId Trial::Input(const Dims& dims) {
  if (IsQuantized(form_.types)) in_ = {dice_.Scale(1e-3, 0.5), dice_.Zero(dtype())};
  return net_.Input(dtype(), dims, in_);
}

ValueId Trial::RightInput(const Dims& dims) {
  if (dice_.Flip()) return Weights(dims, 0);
  if (IsQuantized(form_.types)) weights_ = {{dice_.Scale(1e-3, 2e-2), dice_.Zero(dtype())}};
  return net_.Input(dtype(), dims, IsQuantized(form_.types) ? weights_[0] : Q{});
}

// One scale for each of the axis, or one for all.
ValueId Trial::Weights(const Dims& dims, int axis) {
  const auto count = static_cast<size_t>(CountOf(dims));
  const auto outputs = static_cast<size_t>(dims[static_cast<size_t>(axis)]);
  if (form_.op != Op::kTransposeConv) largest_ = static_cast<double>(count) / static_cast<double>(outputs);
  else largest_ = static_cast<double>(count);
  if (form_.types == Types::kFloat) return Floats(dims, 1);
  // Stock's hybrid depthwise convolutions have a scale for each channel, its matrix products have one.
  const bool each = form_.op != Op::kFullyConnected && form_.op != Op::kBatchMatmul &&
                    form_.types != Types::kU8 && (form_.op == Op::kDepthwiseConv2D || dice_.Flip());
  for (size_t c = 0; c < (each ? outputs : 1); ++c)
    weights_.push_back({dice_.Scale(1e-3, 2e-2), dtype() == DType::kU8 ? dice_.Int(100, 150) : 0});
  for (const Q& q : weights_) step_ = std::max(step_, 127.0 * q.scale * 2 / 255);
  largest_ *= 2.54;
  if (dtype() == DType::kU8)
    return net_.Const<uint8_t>(DType::kU8, dims, dice_.Values<uint8_t>(count, 0, 255), weights_, axis);
  return net_.Const<int8_t>(DType::kI8, dims, dice_.Values<int8_t>(count, -127, 127), weights_, axis);
}

ValueId Trial::Bias(int64_t channels) {
  // Stock's convolutions need one.
  if (!IsQuantized(form_.types))
    return form_.op != Op::kFullyConnected || dice_.Flip() ? Floats({channels}, 3) : kNoValue;
  std::vector<Q> q = weights_;
  for (Q& each : q) each = {each.scale * in_.scale, 0};
  const auto values = dice_.Values<int32_t>(static_cast<size_t>(channels), -5000, 5000);
  return net_.Const<int32_t>(DType::kI32, {channels}, values, q);
}

Attrs Trial::Activated(Attrs attrs) {
  static constexpr const char* kNames[] = {"NONE", "RELU", "RELU6", "RELU_N1_TO_1"};
  attrs.Set("fused_activation_function", kNames[dice_.Int(0, 3)]);
  return attrs;
}

std::unique_ptr<Module> Trial::Take(Op op, std::vector<ValueId> operands, const Dims& out, Attrs attrs) {
  if (operands.back() == kNoValue) operands.pop_back();
  Q q;
  if (IsQuantized(form_.types)) {
    const double products = std::sqrt(largest_ / 2.54) * in_.scale * weights_[0].scale * 70 * 70;
    q = {static_cast<float>(products / 127 * dice_.Scale(0.3, 3)), dice_.Zero(dtype())};
  }
  return net_.Take({net_.Add(op, std::move(operands), dtype(), out, std::move(attrs), q)});
}

std::unique_ptr<Module> Trial::Dense() {
  const int64_t rows = dice_.Flip() ? 1 : dice_.Int(2, 60), depth = dice_.Int(1, 200), outs = Channels();
  const ValueId x = Input({rows, depth}), w = Weights({outs, depth}, 0), b = Bias(outs);
  Attrs attrs = Activated({});
  if (form_.types == Types::kHybrid) attrs.Set("asymmetric_quantize_inputs", dice_.Flip());
  return Take(Op::kFullyConnected, {x, w, b}, {rows, outs}, attrs);
}

Axis Trial::RandomAxis(bool dilated) {
  Axis axis{dice_.Int(1, 25), dice_.Int(1, 5), 1, 1};
  if (dilated) axis.dilation = dice_.Int(1, 3);
  else axis.stride = dice_.Int(1, 3);
  axis.in = std::max(axis.in, axis.reach());
  return axis;
}

std::unique_ptr<Module> Trial::Window() {
  const bool depthwise = form_.op == Op::kDepthwiseConv2D, same = dice_.Flip(), dilated = dice_.Flip();
  Axis h = RandomAxis(dilated), w = RandomAxis(dilated);
  if (depthwise && dice_.Int(0, 5) == 0) w.in = w.kernel = 1;  // kernels turn an image of one column
  if (depthwise) w.stride = h.stride;                          // stock has one stride
  const int64_t batch = dice_.Int(1, 2), depth = Channels();
  const int64_t outs = depthwise ? depth * dice_.Int(1, 2) : Channels();
  const ValueId x = Input({batch, h.in, w.in, depth});
  const ValueId filter =
      depthwise ? Weights({1, h.kernel, w.kernel, outs}, 3) : Weights({outs, h.kernel, w.kernel, depth}, 0);
  Attrs attrs = Activated(xnnpack_test::Options("padding", same ? "SAME" : "VALID", "stride_h", h.stride,
                                                "stride_w", w.stride, "dilation_h_factor", h.dilation,
                                                "dilation_w_factor", w.dilation));
  if (depthwise) attrs.Set("depth_multiplier", outs / depth);
  return Take(form_.op, {x, filter, Bias(outs)}, {batch, h.Out(same), w.Out(same), outs}, attrs);
}

std::unique_ptr<Module> Trial::Transposed() {
  const bool same = dice_.Flip();
  const Axis h{dice_.Int(1, 9), dice_.Int(1, 4), dice_.Int(1, 3), 1},
      w{dice_.Int(1, 9), dice_.Int(1, 4), dice_.Int(1, 3), 1};
  const auto size = [&](const Axis& a) {
    return same ? a.in * a.stride : (a.in - 1) * a.stride + std::max(a.kernel, a.stride);
  };
  const int64_t depth = Channels(), outs = Channels();
  const Dims out = {dice_.Int(1, 2), size(h), size(w), outs};
  const ValueId dims = net_.Const<int32_t>(DType::kI32, {4}, {out.begin(), out.end()});
  const ValueId x = Input({out[0], h.in, w.in, depth}),
                filter = Weights({outs, h.kernel, w.kernel, depth}, 0);
  const Attrs attrs =
      xnnpack_test::Options("padding", same ? "SAME" : "VALID", "stride_h", h.stride, "stride_w", w.stride);
  return Take(Op::kTransposeConv, {dims, filter, x, Bias(outs)}, out, attrs);
}

std::unique_ptr<Module> Trial::Matrices() {
  const int64_t m = dice_.Flip() ? 1 : dice_.Int(2, 40), k = dice_.Int(1, 90), n = Channels();
  const bool adj_x = dice_.Flip(), adj_y = dice_.Flip();
  Dims x, y, out;
  for (int64_t rank = dice_.Int(0, 2); rank > 0; --rank) {
    const int64_t dim = dice_.Int(1, 4), at = dice_.Int(0, 2);
    x.push_back(at == 1 ? 1 : dim), y.push_back(at == 2 ? 1 : dim), out.push_back(dim);
  }
  x.insert(x.end(), {adj_x ? k : m, adj_x ? m : k});
  y.insert(y.end(), {adj_y ? n : k, adj_y ? k : n});
  out.insert(out.end(), {m, n});
  const ValueId a = Input(x), b = RightInput(y);
  largest_ = static_cast<double>(k) * 2.54;
  return Take(Op::kBatchMatmul, {a, b}, out, xnnpack_test::Options("adj_x", adj_x, "adj_y", adj_y));
}

std::unique_ptr<Module> Trial::Build() {
  if (form_.op == Op::kBatchMatmul) return Matrices();
  if (form_.op == Op::kFullyConnected) return Dense();
  return form_.op == Op::kTransposeConv ? Transposed() : Window();
}

Tensor InputOf(const Type& type, uint32_t seed) {
  if (type.dtype != DType::kF32) return xnnpack_test::NoiseFor(type, seed);
  size_t count = 1;
  for (const int64_t d : type.shape.dims()) count *= static_cast<size_t>(d);
  return {type, Buffer::Of<float>(xnnpack_test::Noise<float>(count, seed, -1, 1))};
}

// The largest difference of stored values.
int StepsBetween(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.type, b.type);
  int most = 0;
  for (size_t i = 0; i < a.data.size(); ++i) {
    const auto x = static_cast<uint8_t>(a.data.bytes()[i]), y = static_cast<uint8_t>(b.data.bytes()[i]);
    const bool is_signed = a.type.dtype == DType::kI8;
    most = std::max(most, std::abs(is_signed ? static_cast<int8_t>(x) - static_cast<int8_t>(y) : x - y));
  }
  return most;
}

class Convolutions : public ::testing::TestWithParam<Form> {};

using Opened = Result<std::unique_ptr<Session>>;

// The packed weights of all trials are in one cache.
Opened OpenCached(const std::string& path) {
  Config::Delegate delegate = xnnpack_test::AllOnXnnpack();
  delegate.options.Set("weight_cache_path", TestDir() + "/cache/");
  FUSEBOX_ASSIGN(auto model, Model::Open(path, {.registry = xnnpack_test::XnnpackRegistry(),
                                                .delegates = std::vector{delegate}}));
  return Session::Create(std::move(model));
}

// Runs the file with kernels, through XNNPACK, and twice with a cache; `again`: inputs of other sizes for the
// same sessions.
void ExpectStocks(const std::string& path, const Form& form, const Trial& trial,
                  const std::vector<std::vector<Tensor>>& again) {
  auto stock = Stock::Open(path);
  ASSERT_TRUE(stock) << stock.error().message;
  const auto kernels = Plugins();
  ASSERT_TRUE(kernels) << kernels.error().message;
  double atol = 1e-6 * trial.largest() + 1e-5;
  if (form.types == Types::kHybrid) atol += trial.step();
  const std::function<Opened()> ways[] = {[&] { return Open(path, *kernels); },
                                          [&] { return Open(path, xnnpack_test::XnnpackRegistry()); },
                                          [&] { return OpenCached(path); }, [&] { return OpenCached(path); }};
  for (const auto& open : ways) {
    const bool xnnpack = &open != ways;
    const auto ours = open();
    ASSERT_TRUE(ours) << ours.error().message;
    for (size_t run = 0; run < again.size(); ++run) {
      SCOPED_TRACE("way " + std::to_string(&open - ways) + ", run " + std::to_string(run));
      const auto expected = (*stock)->Invoke(again[run]);
      ASSERT_TRUE(expected) << expected.error().message;
      ASSERT_TRUE((*ours)->Resize(0, again[run][0].type.shape));
      const auto got = Invoke(**ours, again[run]);
      ASSERT_TRUE(got) << got.error().message;
      // XNNPACK rounds by another rule, and all inputs of a hybrid product.
      if (IsQuantized(form.types)) {
        EXPECT_LE(StepsBetween((*got)[0], (*expected)[0]), xnnpack ? 1 : 0);
      } else EXPECT_EQ(Difference(*got, *expected, xnnpack ? trial.steps() + atol : atol, 1e-5), "");
    }
  }
}

TEST_P(Convolutions, AreStocks) {
  FUSEBOX_NEEDS_STOCK();
  const Form& form = GetParam();
  const int trials = std::getenv("FUSEBOX_LONG_TESTS") ? 600 : 60;
  for (int i = 0; i < trials && !HasFailure(); ++i) {
    SCOPED_TRACE("trial " + std::to_string(i));
    Dice dice(static_cast<uint32_t>(i + 1));
    Trial trial(form, dice);
    const auto module = trial.Build();
    const std::string path = TestDir() + "/op.tflite";
    ASSERT_TRUE(tflite::WriteFile(*module, path));
    const Function& main = *module->functions[0];
    std::vector<Tensor> inputs;
    for (const ValueId id : main.inputs)
      inputs.push_back(InputOf(main.value(id).type, static_cast<uint32_t>(dice.Int(0, 1000))));
    std::vector<std::vector<Tensor>> runs = {inputs, inputs};  // the first may run unpacked
    if (form.op != Op::kTransposeConv && form.op != Op::kBatchMatmul) {
      for (int size = 0; size < 3; ++size) {
        Type type = inputs[0].type;
        type.shape.dims()[0] = dice.Int(1, 6);
        runs.push_back({InputOf(type, 5)});
      }
      runs.push_back(inputs);
    }
    ExpectStocks(path, form, trial, runs);
  }
}

std::vector<Form> Forms() {
  std::vector<Form> forms;
  for (const auto& [op, of] : {std::pair(Op::kConv2D, "Conv"),
                               {Op::kDepthwiseConv2D, "Depthwise"},
                               {Op::kTransposeConv, "Transposed"},
                               {Op::kFullyConnected, "Dense"},
                               {Op::kBatchMatmul, "Matrices"}})
    for (const auto& [types, name] : {std::pair(Types::kFloat, "Floats"),
                                      {Types::kHybrid, "Hybrid"},
                                      {Types::kI8, "I8"},
                                      {Types::kU8, "U8"}}) {
      // Stock has none, or one that reads beyond its memory.
      if (op == Op::kTransposeConv && types == Types::kHybrid) continue;
      if (op == Op::kBatchMatmul && (types == Types::kU8 || types == Types::kHybrid)) continue;
      forms.push_back({of + std::string(name), op, types});
    }
  return forms;
}

INSTANTIATE_TEST_SUITE_P(Random, Convolutions, ::testing::ValuesIn(Forms()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusebox::testing
