// SPDX-License-Identifier: Apache-2.0
// What is drawn is not TensorFlow's, but is distributed as TensorFlow defines: of many numbers, the moments
// are looked at.
#include <cmath>
#include <map>

#include "host/graph/values.h"
#include "tests/converter/import/tables/programs.h"

namespace fusebox::converter {
namespace {

constexpr int kMany = 4000;

Attrs Seeded(const char* name, DType dtype) { return A(name, dtype, "seed", 3, "seed2", 5); }

// The only output: kMany numbers, in the shape that was asked for.
std::vector<double> Drawn(const Program::Outputs& outputs, DType dtype) {
  EXPECT_EQ(outputs.size(), 1u);
  if (outputs.size() != 1) return {};
  EXPECT_EQ(outputs[0].type, (Type{dtype, {kMany / 4, 4}}));
  return ToDoubles(outputs[0]);
}

// The mean of x^power.
double Moment(const std::vector<double>& values, int power) {
  double sum = 0;
  for (const double v : values) sum += std::pow(v, power);
  return sum / static_cast<double>(values.size());
}

std::map<double, double> Shares(const std::vector<double>& values) {
  std::map<double, double> shares;
  for (const double v : values) shares[v] += 1.0 / static_cast<double>(values.size());
  return shares;
}

}  // namespace

std::vector<Program> RandomPrograms() {
  const Tensor shape = I({2}, {kMany / 4, 4});
  return {
      {"RandomUniform",
       [=](ProgramWriter& w) { w.Out(w.One("RandomUniform", {w.C(shape)}, Seeded("dtype", DType::kF32))); },
       {},
       [](const Program::Outputs& outputs) {
         const auto x = Drawn(outputs, DType::kF32);
         for (const double v : x) EXPECT_TRUE(v >= 0 && v < 1) << v;
         EXPECT_NEAR(Moment(x, 1), 0.5, 0.02);
         EXPECT_NEAR(Moment(x, 2), 1.0 / 3, 0.02);
         EXPECT_GT(Shares(x).size(), kMany * 0.99);
       }},
      {"RandomStandardNormal",
       [=](ProgramWriter& w) {
         w.Out(w.One("RandomStandardNormal", {w.C(shape)}, Seeded("dtype", DType::kF32)));
       },
       {},
       [](const Program::Outputs& outputs) {
         const auto x = Drawn(outputs, DType::kF32);
         EXPECT_NEAR(Moment(x, 1), 0, 0.06);
         EXPECT_NEAR(Moment(x, 2), 1, 0.1);
         EXPECT_NEAR(Moment(x, 4), 3, 0.6);
       }},
      {"RandomUniformInt",
       [=](ProgramWriter& w) {
         w.Out(w.One("RandomUniformInt", {w.C(shape), w.C(I({}, {-2})), w.C(I({}, {3}))},
                     Seeded("Tout", DType::kI32)));
       },
       {},
       [](const Program::Outputs& outputs) {
         const auto shares = Shares(Drawn(outputs, DType::kI32));
         EXPECT_EQ(shares.size(), 5u);
         for (const double v : {-2, -1, 0, 1, 2})
           EXPECT_NEAR(shares.contains(v) ? shares.at(v) : 0, 0.2, 0.03) << v;
       }},
      // Of logits log 1, log 3 and nothing.
      {"Multinomial",
       [=](ProgramWriter& w) {
         w.Out(w.One("Multinomial", {w.In(F32({kMany / 4, 3})), w.C(I({}, {4}))},
                     Seeded("output_dtype", DType::kI64)));
       },
       {[] {
         std::vector<float> logits;
         for (int i = 0; i < kMany / 4; ++i) logits.insert(logits.end(), {0, std::log(3.0f), -100});
         return F({kMany / 4, 3}, logits);
       }()},
       [](const Program::Outputs& outputs) {
         const auto shares = Shares(Drawn(outputs, DType::kI64));
         EXPECT_EQ(shares.size(), 2u);
         EXPECT_NEAR(shares.contains(0) ? shares.at(0) : 0, 0.25, 0.03);
         EXPECT_NEAR(shares.contains(1) ? shares.at(1) : 0, 0.75, 0.03);
       }},
  };
}

}  // namespace fusebox::converter
