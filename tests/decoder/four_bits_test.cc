// SPDX-License-Identifier: Apache-2.0
// Products with 4-bit weights beside the same weights in 8 bits: both have the same exact sums.
#include <gtest/gtest.h>

#include "host/graph/rewriter.h"
#include "host/session.h"

namespace fusebox::decoder_test {
namespace {

using Dims = std::vector<int64_t>;

std::shared_ptr<const Quant> Scales(std::vector<float> scales, int64_t zero = 0) {
  auto quant = std::make_shared<Quant>();
  quant->zero_points = std::vector<int64_t>(scales.size(), zero);
  quant->scales = std::move(scales);
  return quant;
}

int ValueAt(size_t i) { return static_cast<int>(i * 11 % 16) - 8; }

Buffer Values(size_t count, bool four_bits) {
  std::vector<int8_t> bytes;
  for (size_t i = 0; i < count; ++i) {
    if (!four_bits) bytes.push_back(static_cast<int8_t>(ValueAt(i)));
    else if (i % 2 == 0) bytes.push_back(static_cast<int8_t>(ValueAt(i) & 15));
    else bytes.back() = static_cast<int8_t>((bytes.back() & 15) | ValueAt(i) << 4);
  }
  return Buffer::Of<int8_t>(bytes);
}

struct Product {
  Op op;
  Dims input, weights, result;
  bool bytes;  // 8-bit input and result, else f32
  bool per_channel = false, asymmetric = false;
  Attrs attrs = {};
};

Tensor Run(const Product& p, bool four_bits) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const DType dtype = p.bytes ? DType::kI8 : DType::kF32;
  const ValueId x = f.AddInput({dtype, Shape(p.input)}, "x");
  const Type type{four_bits ? DType::kI4 : DType::kI8, Shape(p.weights)};
  const auto count = static_cast<size_t>(*type.shape.element_count());
  const ValueId w = f.AddConst(type, Values(count, four_bits));
  std::vector<float> scales(p.per_channel ? static_cast<size_t>(p.weights[0]) : 1);
  for (size_t i = 0; i < scales.size(); ++i) scales[i] = 0.01f * static_cast<float>(i % 7 + 1);
  f.value(w).quant = Scales(scales);
  Attrs attrs = p.attrs;
  if (p.asymmetric) attrs.Set("asymmetric_quantize_inputs", true);
  Node& node = p.op == Op::kBatchMatmul
                   ? f.AddNode(p.op, {x, w}, {{dtype, Shape(p.result)}}, attrs)
                   : f.AddNode(p.op, {x, w, kNoValue}, {{dtype, Shape(p.result)}}, attrs);
  f.outputs = {node.results[0]};
  if (p.bytes) f.value(x).quant = Scales({0.05f}, -3), f.value(f.outputs[0]).quant = Scales({0.2f}, 4);
  const size_t size = static_cast<size_t>(*Shape(p.input).element_count());
  std::vector<float> floats;
  std::vector<int8_t> bytes;
  for (size_t i = 0; i < size; ++i) {
    floats.push_back(static_cast<float>(i * 37 % 101) / 50 - 0.7f);
    bytes.push_back(static_cast<int8_t>(i * 37));
  }
  auto model = Model::FromModule(std::move(module), {.delegates = std::vector<Config::Delegate>{}});
  EXPECT_TRUE(model) << model.error().message;
  if (!model) return {};
  auto session = Session::Create(*model, {.threads = 2});
  EXPECT_TRUE(session) << session.error().message;
  EXPECT_TRUE((*session)->SetInput(
      0, {{dtype, Shape(p.input)}, p.bytes ? Buffer::Of<int8_t>(bytes) : Buffer::Of<float>(floats)}));
  const Status status = (*session)->Run();
  EXPECT_TRUE(status) << status.error().message;
  const auto output = (*session)->output(0);
  return {output->type, Buffer::Copy(output->data.bytes())};
}

void ExpectTheSame(const Product& p) {
  const Tensor four = Run(p, true), eight = Run(p, false);
  EXPECT_TRUE(four == eight) << Name(p.op) << " " << ToString(eight.type) << " by " << p.weights.back()
                             << (p.bytes ? " bytes" : " floats");
}

TEST(FourBits, AreEightBitsInFullyConnected) {
  for (const bool bytes : {false, true})
    for (const bool per_channel : {false, true})
      for (const int64_t depth : {1, 2, 7, 8, 10, 16, 30, 255, 256, 1030})
        for (const int64_t rows : {1, 2, 5, 9}) {
          const int64_t outputs = depth % 5 * 31 + 1;
          ExpectTheSame({Op::kFullyConnected,
                         {rows, depth},
                         {outputs, depth},
                         {rows, outputs},
                         bytes,
                         per_channel,
                         rows == 2});
        }
}

TEST(FourBits, AreEightBitsInBatchMatMul) {
  for (const bool bytes : {false, true})
    for (const bool swapped : {false, true})
      ExpectTheSame({Op::kBatchMatmul,
                     {2, 3, 18},
                     swapped ? Dims{2, 5, 18} : Dims{2, 18, 5},
                     {2, 3, 5},
                     bytes,
                     false,
                     false,
                     MakeAttrs("adj_y", swapped)});
}

TEST(FourBits, AreEightBitsInConvolutions) {
  for (const bool bytes : {false, true})
    ExpectTheSame({Op::kConv2D,
                   {2, 6, 5, 4},
                   {70, 3, 2, 4},
                   {2, 6, 5, 70},
                   bytes,
                   true,
                   false,
                   MakeAttrs("padding", "SAME", "stride_h", 1, "stride_w", 1)});
}

}  // namespace
}  // namespace fusebox::decoder_test
