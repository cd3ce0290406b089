// SPDX-License-Identifier: Apache-2.0
// Complex numbers as pairs of real ones, held against std::complex.
#include <gmock/gmock.h>

#include <complex>
#include <map>
#include <numbers>

#include "host/graph/values.h"
#include "tests/converter/import/tables/translate_cases.h"
#include "tests/converter/passes/bench.h"

namespace fusebox::converter {
namespace {

using ::testing::HasSubstr;
using C = std::complex<double>;
using Cs = std::vector<C>;

const Type kNone{DType::kNone, Shape()};
const Type kComplex{DType::kComplex64, Shape()};

std::vector<float> Wave(size_t count) {
  std::vector<float> out;
  for (size_t i = 0; i < count; ++i)
    out.push_back(static_cast<float>(std::sin(1.3 * static_cast<double>(i * i)) * 3));
  return out;
}

Cs Transform(const Cs& x, double sign) {
  Cs out(x.size());
  for (size_t k = 0; k < x.size(); ++k) {
    for (size_t n = 0; n < x.size(); ++n)
      out[k] += x[n] * std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k * n) /
                                           static_cast<double>(x.size()));
  }
  return out;
}

ValueId Rfft(Function& f, ValueId x, int length) {
  return Opaque(f, "RFFT", {x, f.AddConst<int32_t>(DType::kI32, {1}, {length})}, kNone);
}
ValueId Real(Function& f, const char* op, ValueId x) { return Opaque(f, op, {x}, kNone); }

// The outputs of a function that `build` fills, on x [1, n].
std::vector<std::vector<double>> Outputs(const std::vector<float>& x, void (*build)(Function&, ValueId)) {
  Bench bench;
  Function& f = bench.Add("main");
  const Tensor input = F({1, static_cast<int64_t>(x.size())}, x);
  build(f, f.AddInput(input.type));
  bench.Sign(f);
  EXPECT_EQ(bench.Run(FoldToFixpoint), "");
  EXPECT_EQ(bench.Run(LowerComplex), "");
  EXPECT_EQ(bench.Run(FoldToFixpoint), "");
  EXPECT_EQ(Count(f, Op::kOpaque), 0u) << ToText(f);
  std::vector<std::vector<double>> out;
  for (const Tensor& tensor : bench.Compute("main", {input})) out.push_back(ToDoubles(tensor));
  return out;
}

void ExpectNear(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 2e-5) << "at " << i;
}

template <class Part>
std::vector<double> Of(const Cs& x, const Part& part) {
  std::vector<double> out;
  for (const C& c : x) out.push_back(part(c));
  return out;
}

Cs Spectrum(const std::vector<float>& x, size_t length) {
  Cs padded(length);
  for (size_t i = 0; i < std::min(length, x.size()); ++i) padded[i] = x[i];
  Cs all = Transform(padded, -1);
  all.resize(length / 2 + 1);
  return all;
}

TEST(LowerComplex, ARealTransformHasTheRightSizeAndAngle) {
  const auto x = Wave(12);
  const auto outputs = Outputs(x, [](Function& f, ValueId in) {
    const ValueId c = Rfft(f, in, 12);
    f.outputs = {Real(f, "ComplexAbs", c), Real(f, "Angle", c), Real(f, "Real", c), Real(f, "Imag", c)};
  });
  const Cs expected = Spectrum(x, 12);
  ASSERT_EQ(outputs.size(), 4u);
  ExpectNear(outputs[0], Of(expected, [](C c) { return std::abs(c); }));
  ExpectNear(outputs[2], Of(expected, [](C c) { return c.real(); }));
  ExpectNear(outputs[3], Of(expected, [](C c) { return c.imag(); }));
  for (size_t i = 1; i + 1 < expected.size(); ++i) EXPECT_NEAR(outputs[1][i], std::arg(expected[i]), 1e-5);
}

TEST(LowerComplex, ATransformCutsOrFillsToItsLength) {
  const auto x = Wave(9);
  const auto cut =
      Outputs(x, [](Function& f, ValueId in) { f.outputs = {Real(f, "ComplexAbs", Rfft(f, in, 7))}; });
  ExpectNear(cut[0], Of(Spectrum(x, 7), [](C c) { return std::abs(c); }));
  const auto filled =
      Outputs(x, [](Function& f, ValueId in) { f.outputs = {Real(f, "ComplexAbs", Rfft(f, in, 14))}; });
  ExpectNear(filled[0], Of(Spectrum(x, 14), [](C c) { return std::abs(c); }));
}

TEST(LowerComplex, TheInverseGivesBackWhatWentIn) {
  for (const size_t length : {size_t{8}, size_t{7}, size_t{1}, size_t{2}}) {
    const auto x = Wave(length);
    const auto outputs = Outputs(x, [](Function& f, ValueId in) {
      const auto n = static_cast<int32_t>(f.value(in).type.shape[1]);
      const ValueId size = f.AddConst<int32_t>(DType::kI32, {1}, {n});
      f.outputs = {Opaque(f, "IRFFT", {Rfft(f, in, n), size}, kNone)};
    });
    ExpectNear(outputs[0], {x.begin(), x.end()});
  }
}

TEST(LowerComplex, ComputesWithComplexNumbers) {
  const auto x = Wave(6);
  const auto outputs = Outputs(x, [](Function& f, ValueId in) {
    const Type scalar{DType::kComplex64, Shape::Scalar()};
    const ValueId factor = f.AddConst(scalar, Buffer::Of<float>(std::vector<float>{0.25f, -0.5f}));
    const ValueId c = Opaque(f, "Cast", {in}, kComplex, A("DstT", DType::kComplex64));
    const ValueId spectrum = Opaque(f, "FFT", {c}, kComplex);
    const ValueId product = Opaque(f, "Mul", {spectrum, factor}, kComplex);
    const ValueId grown = Opaque(f, "Exp", {Opaque(f, "Mul", {c, factor}, kComplex)}, kComplex);
    const ValueId sum = Opaque(f, "AddV2", {product, factor}, kComplex);
    const ValueId moved =
        Opaque(f, "Transpose", {sum, f.AddConst<int32_t>(DType::kI32, {2}, {1, 0})}, kComplex);
    const ValueId back = Opaque(f, "IFFT", {Opaque(f, "Conj", {spectrum}, kComplex)}, kComplex);
    f.outputs = {Real(f, "Real", moved), Real(f, "Imag", moved), Real(f, "Imag", grown),
                 Real(f, "Real", back), Opaque(f, "Cast", {product}, F32({1, 6}), A("DstT", DType::kF32))};
  });
  Cs in(x.begin(), x.end());
  const C factor(0.25, -0.5);
  const Cs spectrum = Transform(in, -1);
  ASSERT_EQ(outputs.size(), 5u);
  ExpectNear(outputs[0], Of(spectrum, [&](C c) { return (c * factor + factor).real(); }));
  ExpectNear(outputs[1], Of(spectrum, [&](C c) { return (c * factor + factor).imag(); }));
  ExpectNear(outputs[2], Of(in, [&](C c) { return std::exp(c * factor).imag(); }));
  Cs mirrored;
  for (const C& c : spectrum) mirrored.push_back(std::conj(c));
  ExpectNear(outputs[3], Of(Transform(mirrored, 1), [](C c) { return c.real() / 6; }));
  ExpectNear(outputs[4], Of(spectrum, [&](C c) { return (c * factor).real(); }));
}

// A size and an angle as one number, the usual way back from a spectrum.
TEST(LowerComplex, ComputesNothingWithPartsThatAreZero) {
  Bench bench;
  Function& f = bench.Add("main");
  const Type scalar{DType::kComplex64, Shape::Scalar()};
  const ValueId i = f.AddConst(scalar, Buffer::Of<float>(std::vector<float>{0, 1}));
  const auto number = [&](ValueId v) {
    return Opaque(f, "Cast", {v}, kComplex, A("DstT", DType::kComplex64));
  };
  const Tensor input = F({1, 5}, Wave(5));
  const ValueId size = f.AddInput(input.type), angle = f.AddInput(input.type);
  const ValueId turn = Opaque(f, "Exp", {Opaque(f, "Mul", {i, number(angle)}, kComplex)}, kComplex);
  const ValueId c = Opaque(f, "Mul", {number(size), turn}, kComplex);
  f.outputs = {Real(f, "Real", c), Real(f, "Imag", c), Real(f, "ComplexAbs", number(size)),
               Real(f, "Imag", number(size))};
  bench.Sign(f);
  ASSERT_EQ(bench.Run(FoldToFixpoint), "");
  ASSERT_EQ(bench.Run(LowerComplex), "");
  ASSERT_EQ(bench.Run(FoldToFixpoint), "");
  ASSERT_EQ(bench.Run(Optimize), "");
  std::map<std::string, int> ops;
  for (const auto& node : f.nodes) ++ops[std::string(Name(node->op))];
  EXPECT_EQ(ops,
            (std::map<std::string, int>{{"COS", 1}, {"SIN", 1}, {"MUL", 2}, {"ABS", 1}, {"ZEROS_LIKE", 1}}))
      << ToText(f);
  const auto turned = F({1, 5}, {0.5f, -1, 3, 0, 2});
  const auto out = bench.Compute("main", {input, turned});
  for (size_t k = 0; k < 5; ++k) {
    const double r = input.data.As<float>()[k], a = turned.data.As<float>()[k];
    EXPECT_NEAR(out[0].data.As<float>()[k], r * std::cos(a), 1e-5);
    EXPECT_NEAR(out[1].data.As<float>()[k], r * std::sin(a), 1e-5);
    EXPECT_NEAR(out[2].data.As<float>()[k], std::abs(r), 1e-6);
    EXPECT_EQ(out[3].data.As<float>()[k], 0);
  }
}

std::string Refusal(void (*build)(Function&)) {
  Bench bench;
  build(bench.Add("main"));
  bench.Sign(*bench.module.Find("main"));
  return bench.Run(LowerComplex);
}

TEST(LowerComplex, SaysWhatItCannotLower) {
  EXPECT_THAT(Refusal([](Function& f) {
                const ValueId x = f.AddInput({DType::kComplex64, {2}});
                f.outputs = {f.AddNode(Op::kNeg, {x}, {{DType::kComplex64, {2}}}).results[0]};
              }),
              HasSubstr("complex number from outside the function"));
  EXPECT_THAT(Refusal([](Function& f) {
                const ValueId c =
                    f.AddConst({DType::kComplex128, {1}}, Buffer::Of<double>(std::vector<double>{1, 2}));
                f.outputs = {Real(f, "Real", c)};
              }),
              HasSubstr("operand 0 is complex128"));
  EXPECT_THAT(Refusal([](Function& f) { f.outputs = {Rfft(f, f.AddInput(F32({1, -1})), 8)}; }),
              HasSubstr("length of what is transformed is not known"));
  EXPECT_THAT(Refusal([](Function& f) { f.outputs = {Rfft(f, f.AddInput(F32({1, 8})), 8192)}; }),
              HasSubstr("a transform of length 8192"));
  EXPECT_THAT(Refusal([](Function& f) { f.outputs = {Rfft(f, f.AddInput(F32({1, int64_t{1} << 40})), 8)}; }),
              HasSubstr("a transform of 1099511627776 values"));
  EXPECT_THAT(Refusal([](Function& f) {
                const ValueId c = Rfft(f, f.AddInput(F32({1, 8})), 8);
                f.outputs = {f.AddNode(Op::kLog, {c}, {kComplex}).results[0]};
              }),
              HasSubstr("LOG of complex numbers"));
  EXPECT_THAT(
      Refusal([](Function& f) { f.outputs = {Real(f, "Strange", Rfft(f, f.AddInput(F32({1, 8})), 8))}; }),
      HasSubstr("Strange of complex numbers"));
  EXPECT_THAT(Refusal([](Function& f) { f.outputs = {Rfft(f, f.AddInput(F32({1, 8})), 8)}; }),
              HasSubstr("output 0 is a complex number"));
}

}  // namespace
}  // namespace fusebox::converter
