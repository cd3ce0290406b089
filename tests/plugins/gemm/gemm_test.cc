// SPDX-License-Identifier: Apache-2.0
// Products of fusebox.gemm/1 beside plain loops in f64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <fusebox/gemm.hpp>
#include <limits>
#include <random>

#include "host/session.h"
#include "tests/plugins/gemm/gemm_op.h"
#include "tests/plugins/kept_weights/counted_store.h"

namespace fusebox {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

enum class Kind { kF32, kF16, kHybrid, kHybridPerOutput, kBytes, kBytesPerOutput };

constexpr float kInScale = 0.03f, kOutScale = 0.07f;
constexpr int64_t kInZero = 5, kOutZero = -9;

struct Product {
  Kind kind = Kind::kF32;
  int64_t m = 3, n = 17, k = 65;
  fbx_gemm_order order = FBX_GEMM_NK;
  fbx_gemm_activation activation = FBX_GEMM_NONE;
  bool biased = true, times = false;
  float lowest = 0, highest = 0;

  bool quantized() const { return kind >= Kind::kHybrid; }
  bool bytes() const { return kind >= Kind::kBytes; }
  bool per_output() const { return kind == Kind::kHybridPerOutput || kind == Kind::kBytesPerOutput; }
};

// Operands as real numbers and as stored.
struct Operands {
  std::vector<float> x, w, bias, times;
  std::vector<int8_t> x8, w8;
  std::vector<uint16_t> w16;
  std::vector<int32_t> bias32;
  std::vector<float> scales;
};

size_t Size(int64_t n) { return static_cast<size_t>(n); }

// Eighths in [-1, 1], which f16 represents.
std::vector<float> Eighths(std::mt19937& random, int64_t count) {
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<float>(static_cast<int>(random() % 17) - 8) / 8);
  return out;
}

uint16_t HalfOf(float eighths) {
  if (eighths == 0) return 0;
  int exponent = 0;
  const float fraction = std::frexp(std::fabs(eighths), &exponent);
  const int bits = (exponent + 14) << 10 | static_cast<int>((fraction * 2 - 1) * 1024);
  return static_cast<uint16_t>(bits | (eighths < 0 ? 0x8000 : 0));
}

Operands Make(const Product& p) {
  std::mt19937 random(static_cast<uint32_t>(p.m * 1000003 + p.n * 1009 + p.k));
  Operands o;
  o.x = Eighths(random, p.m * p.k);
  o.w = Eighths(random, p.n * p.k);
  o.bias = Eighths(random, p.n);
  o.times = Eighths(random, p.m * p.n);
  for (const float w : o.w) o.w16.push_back(HalfOf(w));
  if (!p.quantized()) return o;
  for (int64_t i = 0; i < (p.per_output() ? std::max<int64_t>(1, p.n) : 1); ++i)
    o.scales.push_back(0.01f * static_cast<float>(i % 7 + 1));
  for (int64_t i = 0; i < p.n * p.k; ++i) {
    o.w8.push_back(static_cast<int8_t>(static_cast<int>(random() % 255) - 127));
    const int64_t output = p.order == FBX_GEMM_NK ? i / p.k : i % p.n;
    o.w[Size(i)] = static_cast<float>(o.w8.back()) * o.scales[p.per_output() ? Size(output) : 0];
  }
  if (!p.bytes()) return o;
  for (float& x : o.x) {
    o.x8.push_back(static_cast<int8_t>(static_cast<int>(random() % 255) - 127));
    x = kInScale * static_cast<float>(o.x8.back() - kInZero);
  }
  for (int64_t i = 0; i < p.n; ++i) {
    o.bias32.push_back(static_cast<int32_t>(random() % 2000) - 1000);
    o.bias[Size(i)] = static_cast<float>(o.bias32.back()) * kInScale * o.scales[p.per_output() ? Size(i) : 0];
  }
  return o;
}

double Activated(const Product& p, double x) {
  switch (p.activation) {
    case FBX_GEMM_RELU: return std::isnan(x) ? x : std::max(x, 0.0);
    case FBX_GEMM_RELU6: return std::isnan(x) ? x : std::clamp(x, 0.0, 6.0);
    case FBX_GEMM_CLAMP: return std::isnan(x) ? x : std::clamp(x, double{p.lowest}, double{p.highest});
    case FBX_GEMM_TANH: return std::tanh(x);
    case FBX_GEMM_SIGMOID: return 1 / (1 + std::exp(-x));
    case FBX_GEMM_SILU: return x / (1 + std::exp(-x));
    case FBX_GEMM_GELU_TANH: return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    default: return x;
  }
}

// A row as a hybrid product sees it.
std::vector<double> Seen(const Product& p, const float* row) {
  std::vector<double> out(row, row + p.k);
  if (!p.quantized() || p.bytes()) return out;
  float largest = 0;
  for (const double x : out) largest = std::max(largest, std::fabs(static_cast<float>(x)));
  for (double& x : out)
    if (largest > 0) x = std::round(static_cast<float>(x) * (127.0f / largest)) * (largest / 127.0f);
  return out;
}

std::vector<double> Expected(const Product& p, const Operands& o) {
  std::vector<double> out;
  for (int64_t i = 0; i < p.m; ++i) {
    const std::vector<double> row = Seen(p, o.x.data() + i * p.k);
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = p.biased ? o.bias[Size(j)] : 0;
      for (int64_t k = 0; k < p.k; ++k)
        sum += row[Size(k)] * o.w[Size(p.order == FBX_GEMM_NK ? j * p.k + k : k * p.n + j)];
      out.push_back(Activated(p, sum) * (p.times ? double{o.times[Size(i * p.n + j)]} : 1.0));
    }
  }
  return out;
}

template <class T>
ValueId AddConst(Function& f, DType dtype, std::vector<int64_t> dims, const std::vector<T>& values) {
  return f.AddConst({dtype, Shape(std::move(dims))}, Buffer::Copy(std::as_bytes(std::span(values))));
}

std::shared_ptr<const Quant> QuantOf(std::vector<float> scales, int64_t zero = 0, int axis = 0) {
  const std::vector<int64_t> zeros(scales.size(), zero);
  return std::make_shared<const Quant>(
      Quant{.scales = std::move(scales), .zero_points = zeros, .axis = axis});
}

std::unique_ptr<Module> Build(const Product& p, const Operands& o) {
  auto module = std::make_unique<Module>();
  module->source = "gemm.tflite";
  Function& f = module->Add("main");
  const DType rows = p.bytes() ? DType::kI8 : DType::kF32;
  const ValueId x = f.AddInput({rows, Shape({p.m, p.k})}, "x");
  const std::vector<int64_t> dims = p.order == FBX_GEMM_NK ? std::vector{p.n, p.k} : std::vector{p.k, p.n};
  const ValueId w = p.quantized()          ? AddConst(f, DType::kI8, dims, o.w8)
                    : p.kind == Kind::kF16 ? AddConst(f, DType::kF16, dims, o.w16)
                                           : AddConst(f, DType::kF32, dims, o.w);
  if (p.quantized()) f.value(w).quant = QuantOf(o.scales, 0, p.order == FBX_GEMM_NK ? 0 : 1);
  if (p.bytes()) f.value(x).quant = QuantOf({kInScale}, kInZero);
  std::vector<ValueId> operands = {x, w, kNoValue};
  if (p.biased)
    operands[2] =
        p.bytes() ? AddConst(f, DType::kI32, {p.n}, o.bias32) : AddConst(f, DType::kF32, {p.n}, o.bias);
  if (p.times) operands.push_back(AddConst(f, DType::kF32, {p.m, p.n}, o.times));
  Attrs attrs;
  attrs.Set("order", p.order);
  attrs.Set("activation", p.activation);
  attrs.Set("lowest", double{p.lowest});
  attrs.Set("highest", double{p.highest});
  Node& node = f.AddNode(Op::kCustom, operands, {{rows, Shape({p.m, p.n})}}, attrs);
  node.name = "t.gemm";
  if (p.bytes()) f.value(node.results[0]).quant = QuantOf({kOutScale}, kOutZero);
  f.outputs = node.results;
  return module;
}

std::shared_ptr<Registry> Plugins() {
  static const fbx_entry* const kEntries[] = {&kGemmOp, &kCountedStore};
  static const std::shared_ptr<Registry> registry = [] {
    Config config;
    config.search_default_path = false;
    auto made = Registry::Create(config, kEntries);
    EXPECT_TRUE(made) << made.error().message;
    return made ? *made : nullptr;
  }();
  return registry;
}

Result<std::shared_ptr<const Model>> Open(std::unique_ptr<Module> module) {
  return Model::FromModule(std::move(module), {.registry = Plugins()});
}

Result<Tensor> RunModel(const std::shared_ptr<const Model>& model, const Product& p, const Operands& o,
                        int threads = 1) {
  FUSEBOX_ASSIGN(const auto session, Session::Create(model, {.threads = threads}));
  const auto bytes = p.bytes() ? std::as_bytes(std::span(o.x8)) : std::as_bytes(std::span(o.x));
  FUSEBOX_TRY(session->SetInput(0, {session->inputs()[0].type, Buffer::Copy(bytes)}));
  FUSEBOX_TRY(session->Run());
  FUSEBOX_ASSIGN(const Tensor out, session->output(0));
  return Tensor{out.type, Buffer::Copy(out.data.bytes())};
}

Result<Tensor> Compute(const Product& p, const Operands& o, int threads = 1) {
  FUSEBOX_ASSIGN(const auto model, Open(Build(p, o)));
  return RunModel(model, p, o, threads);
}

class GemmTest : public ::testing::Test {
 protected:
  GemmTest() { store_counts.open = false; }
  ~GemmTest() override { EmptyCountedStore(); }

  static void Compare(const Product& p) {
    const Operands o = Make(p);
    const auto out = Compute(p, o);
    ASSERT_TRUE(out) << out.error().message;
    const std::vector<double> expected = Expected(p, o);
    for (size_t i = 0; i < expected.size(); ++i) {
      const std::string at = "[" + std::to_string(p.m) + "," + std::to_string(p.n) + "," +
                             std::to_string(p.k) + "] at " + std::to_string(i);
      if (p.bytes()) {
        const double q = std::clamp(std::round(expected[i] / kOutScale) + kOutZero, -128.0, 127.0);
        ASSERT_NEAR(out->data.As<int8_t>()[i], q, 1) << at;
      } else {
        ASSERT_NEAR(out->data.As<float>()[i], expected[i], 2e-5 * (1 + std::fabs(expected[i]))) << at;
      }
    }
  }
};

class GemmOf : public GemmTest, public ::testing::WithParamInterface<Kind> {};

TEST_P(GemmOf, AllSizesAreTheDefinition) {
  for (const fbx_gemm_order order : {FBX_GEMM_NK, FBX_GEMM_KN})
    for (const int64_t m : {0, 1, 17, 65})
      for (const int64_t n : {0, 1, 17, 65, 130})
        for (const int64_t k : {0, 1, 17, 65})
          Compare({.kind = GetParam(), .m = m, .n = n, .k = k, .order = order});
}

TEST_P(GemmOf, ActivationsAreTheirFormulas) {
  const bool bytes = Product{.kind = GetParam()}.bytes();
  for (fbx_gemm_activation a = FBX_GEMM_NONE; a <= (bytes ? FBX_GEMM_CLAMP : FBX_GEMM_GELU_TANH); ++a) {
    SCOPED_TRACE(a);
    for (const bool biased : {false, true})
      Compare(
          {.kind = GetParam(), .m = 5, .activation = a, .biased = biased, .lowest = -0.5f, .highest = 1.5f});
  }
}

TEST_P(GemmOf, TimesMultipliesActivatedResults) {
  const Product p{.kind = GetParam(), .m = 7, .n = 140, .activation = FBX_GEMM_SILU, .times = true};
  if (!p.bytes()) return Compare(p);
  Product bytes = p;
  bytes.activation = FBX_GEMM_NONE;
  const auto out = Compute(bytes, Make(bytes));
  ASSERT_FALSE(out);
  EXPECT_THAT(out.error().message, HasSubstr("`times` of a product of i8"));
}

TEST_P(GemmOf, BitsDependNeitherOnThreadsNorOnOtherRows) {
  const Product p{.kind = GetParam(), .m = 130, .n = 300, .k = 65};
  const Operands o = Make(p);
  const auto one = Compute(p, o, 1), two = Compute(p, o, 2);
  ASSERT_TRUE(one && two);
  EXPECT_TRUE(*one == *two);
  Product alone = p;
  alone.m = 1;
  Operands last = o;
  if (p.bytes()) last.x8.assign(o.x8.end() - p.k, o.x8.end());
  else last.x.assign(o.x.end() - p.k, o.x.end());
  const auto row = Compute(alone, last);
  ASSERT_TRUE(row) << row.error().message;
  const auto all = one->data.bytes(), expected = row->data.bytes();
  EXPECT_TRUE(
      std::equal(expected.begin(), expected.end(), all.end() - static_cast<ptrdiff_t>(expected.size())));
}

TEST_P(GemmOf, NanFillsItsRow) {
  Product p{.kind = GetParam(), .m = 5};
  if (p.bytes()) return;
  for (fbx_gemm_activation a = FBX_GEMM_NONE; a <= FBX_GEMM_GELU_TANH; ++a) {
    p.activation = a;
    p.highest = 1;
    Operands o = Make(p);
    o.x[Size(2 * p.k + 9)] = std::numeric_limits<float>::quiet_NaN();
    const auto out = Compute(p, o);
    ASSERT_TRUE(out) << out.error().message;
    for (int64_t i = 0; i < p.m * p.n; ++i)
      EXPECT_EQ(std::isnan(out->data.As<float>()[Size(i)]), i / p.n == 2)
          << "activation " << a << " at " << i;
  }
}

TEST_P(GemmOf, PackedWeightsAreShared) {
  store_counts.open = true;
  const Product p{.kind = GetParam()};
  const Operands o = Make(p);
  const auto first = Open(Build(p, o));
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_THAT(store_counts.packed, ElementsAre("gemm")) << "in init";
  const auto second = Open(Build(p, o));
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(store_counts.found, 1);
  const auto a = RunModel(*first, p, o), b = RunModel(*first, p, o), c = RunModel(*second, p, o);
  ASSERT_TRUE(a && b && c);
  EXPECT_TRUE(*a == *b && *a == *c);
  EXPECT_THAT(store_counts.packed, ElementsAre("gemm"));
  store_counts.open = false;
  const auto without = Compute(p, o);
  ASSERT_TRUE(without);
  EXPECT_TRUE(*a == *without);
}

std::string NameOf(const ::testing::TestParamInfo<Kind>& info) {
  constexpr const char* kNames[] = {"F32", "F16", "Hybrid", "HybridPerOutput", "Bytes", "BytesPerOutput"};
  return kNames[static_cast<size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Kinds, GemmOf,
                         ::testing::Values(Kind::kF32, Kind::kF16, Kind::kHybrid, Kind::kHybridPerOutput,
                                           Kind::kBytes, Kind::kBytesPerOutput),
                         NameOf);

TEST_F(GemmTest, OtherWeightsAndOrdersAreOtherEntries) {
  store_counts.open = true;
  Product p{.n = 17, .k = 17};
  Operands o = Make(p);
  ASSERT_TRUE(Open(Build(p, o)));
  o.w[3] += 1;
  ASSERT_TRUE(Open(Build(p, o)));
  p.order = FBX_GEMM_KN;
  ASSERT_TRUE(Open(Build(p, o)));
  EXPECT_THAT(store_counts.packed, ElementsAre("gemm", "gemm", "gemm"));
}

std::string WhyNot(const Product& p, const std::function<void(Function&, Node&)>& damage) {
  const Operands o = Make(p);
  auto module = Build(p, o);
  Function& f = *module->functions[0];
  damage(f, *f.nodes[0]);
  const auto model = Open(std::move(module));
  return model ? "" : model.error().message;
}

TEST_F(GemmTest, DeclinesWithTheReason) {
  const Product p{.m = 3, .n = 4, .k = 5};
  const auto weights = [](auto value) { return [value](Function& f, Node& n) { n.operands[1] = value(f); }; };
  EXPECT_THAT(WhyNot(p, weights([](Function& f) { return f.AddInput({DType::kF32, Shape({4, 5})}, "w"); })),
              HasSubstr("NONCONST: are not constant (weights)"));
  EXPECT_THAT(WhyNot(p, weights([](Function& f) {
                       return AddConst(f, DType::kI32, {4, 5}, std::vector<int32_t>(20));
                     })),
              HasSubstr("DTYPE: i32 is none of f32, f16, i8 (weights)"));
  EXPECT_THAT(WhyNot(p, weights([](Function& f) {
                       return AddConst(f, DType::kI8, {4, 5}, std::vector<int8_t>(20));
                     })),
              HasSubstr("QUANT: have neither one scale nor one for each output (weights)"));
  EXPECT_THAT(WhyNot({.kind = Kind::kHybrid},
                     [](Function& f, Node& n) { f.value(n.operands[1]).quant = QuantOf({0.1f}, 3); }),
              HasSubstr("QUANT: have a zero point (weights)"));
  EXPECT_THAT(
      WhyNot(p, [](Function& f,
                   Node& n) { n.operands[2] = AddConst(f, DType::kF32, {3}, std::vector<float>(3)); }),
      HasSubstr("SHAPE: is not one value for each output (bias)"));
  EXPECT_THAT(WhyNot({.kind = Kind::kBytes, .activation = FBX_GEMM_TANH}, [](Function&, Node&) {}),
              HasSubstr("ATTR: is unsupported for i8 (activation)"));
  EXPECT_THAT(WhyNot({.activation = 99}, [](Function&, Node&) {}),
              HasSubstr("ATTR: is unknown (activation)"));
  EXPECT_THAT(WhyNot({.activation = FBX_GEMM_CLAMP, .lowest = 2, .highest = 1}, [](Function&, Node&) {}),
              HasSubstr("ATTR: clamps to no range (activation)"));
}

TEST_F(GemmTest, LinkedPluginsMayRequireIt) {
  constexpr std::string_view kManifest = R"({"manifest_version": "1.0", "abi": {"major": 1},
      "plugin": {"id": "t.plugin", "version": "1.0.0", "namespace": "t"},
      "provides": {"ops": [{"custom": "t.gemm"}]}, "requires": {"extensions": ["fusebox.gemm/1"]}})";
  const fbx_static_plugin plugin{FBX_HEAD(fbx_static_plugin), &kGemmOp, {kManifest.data(), kManifest.size()}};
  const fbx_static_plugin* const plugins[] = {&plugin};
  Config config;
  config.search_default_path = false;
  const auto registry = Registry::Create(config, plugins);
  ASSERT_TRUE(registry) << registry.error().message;
  const Product p;
  const auto model = Model::FromModule(Build(p, Make(p)), {.registry = *registry});
  EXPECT_TRUE(model) << model.error().message;
}

TEST(GemmWithout, TheExtensionIsNamed) {
  fbx_host host{};
  host.head = FBX_HEAD(fbx_host);
  host.get_extension = [](const fbx_host*, fbx_str) noexcept -> const void* { return nullptr; };
  fbx_tensor weights{};
  try {
    sdk::Gemm::supports(sdk::Node(&host, nullptr), {.weights = sdk::Tensor(&weights)});
    FAIL() << "accepted";
  } catch (const sdk::Error& e) {
    EXPECT_EQ(e.status, FBX_UNSUPPORTED);
    EXPECT_THAT(e.message, HasSubstr("fusebox.gemm/1: list it under \"requires\" in the manifest"));
  }
}

}  // namespace
}  // namespace fusebox
