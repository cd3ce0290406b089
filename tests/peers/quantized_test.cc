// SPDX-License-Identifier: Apache-2.0
// Quantized conversions: how large they are, how far from the float model, and that stock TFLite runs them as
// we do.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>

#include "host/base/table.h"
#include "host/graph/npy.h"
#include "host/tflite/tflite.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

namespace fs = std::filesystem;
using converter::Quantization;

constexpr int kCalibrated = 64, kTried = 200;

// How a quantized net is held against its float form on random inputs.
struct Score {
  int clear = 0;             // inputs whose winner leads by a tenth of the spread of the outputs
  int agree = 0;             // those of them with the same winner
  double largest = 0;        // error of an output
  std::string beside_stock;  // empty: as near as the mode asks for
};

std::vector<float> FloatsOf(const Tensor& tensor) {
  const auto values = tensor.data.As<float>();
  return {values.begin(), values.end()};
}

void Compare(const Tensor& was, const Tensor& is, Score& score) {
  const auto a = FloatsOf(was), b = FloatsOf(is);
  auto sorted = a;
  std::ranges::sort(sorted, std::greater());
  for (size_t i = 0; i < a.size(); ++i)
    score.largest = std::max(score.largest, std::abs(static_cast<double>(a[i]) - b[i]));
  if (sorted.size() < 2 || sorted[0] - sorted[1] < 0.1f * (sorted[0] - sorted.back())) return;
  ++score.clear;
  score.agree += std::ranges::max_element(a) - a.begin() == std::ranges::max_element(b) - b.begin();
}

Result<Score> Try(const std::string& plain, const std::string& quantized,
                  const std::shared_ptr<Registry>& registry, double tolerance, int tried = kTried) {
  FUSEBOX_ASSIGN(const auto a, Open(plain, registry));
  FUSEBOX_ASSIGN(const auto b, Open(quantized, registry));
  const auto stock = Stock::Open(quantized);
  Score score;
  if (!stock) score.beside_stock = "newer than stock: " + stock.error().message.substr(0, 120);
  for (uint64_t seed = 1000; seed < 1000 + static_cast<uint64_t>(tried); ++seed) {
    const Tensors inputs = RandomInputs(*a, seed);
    FUSEBOX_ASSIGN(const Tensors was, Invoke(*a, inputs));
    FUSEBOX_ASSIGN(const Tensors is, Invoke(*b, inputs));
    Compare(was[0], is[0], score);
    if (seed % 10 != 0 || !stock) continue;
    FUSEBOX_TRY((*stock)->ResetVariables());
    FUSEBOX_ASSIGN(const Tensors theirs, (*stock)->Invoke(inputs));
    if (score.beside_stock.empty()) score.beside_stock = Difference(is, theirs, tolerance, tolerance);
  }
  return score;
}

// in0.npy..: samples in the first dimension.
Result<std::string> Calibration(const std::string& plain, const std::shared_ptr<Registry>& registry) {
  FUSEBOX_ASSIGN(const auto session, Open(plain, registry));
  const std::string dir = TestDir() + "/calibration-" + fs::path(plain).stem().string();
  fs::create_directories(dir);
  for (size_t i = 0; i < session->inputs().size(); ++i) {
    Type type = session->inputs()[i].type;
    type.shape.dims().insert(type.shape.dims().begin(), kCalibrated);
    FUSEBOX_TRY(WriteNpy(dir + "/in" + std::to_string(i) + ".npy", Random(type, 5 + i)));
  }
  return dir;
}

std::vector<std::string> FilesBelow(const std::string& root) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

bool HasConvolutions(const converter::Report& report) {
  return std::ranges::any_of(report.ops_after, [](const auto& op) { return op.first == "CONV_2D"; });
}

struct Net {
  std::string name, source;
  bool classifies;  // its outputs are scores of classes
};

// The project's own conv net, and those of models/ that are there.
std::vector<Net> Nets() {
  std::vector<Net> nets;
  if (const auto sample = Sample("conv_classifier")) nets.push_back({"conv_classifier", *sample, true});
  std::string why;
  const std::string root = ModelFile("savedmodel", &why);
  if (root.empty()) {
    std::cout << "without the public models: " << why << "\n";
    return nets;
  }
  nets.push_back({"kws_ref_model",
                  root + "/mlcommons__tiny/benchmark/training/keyword_spotting/trained_models/kws_ref_model",
                  true});
  nets.push_back(
      {"movie genres, dense", root + "/legobridge__movie-genre-classification/models/nn_model", false});
  nets.push_back({"DTLN", root + "/breizhn__DTLN/pretrained_model/dtln_saved_model", false});
  return nets;
}

// How near to stock. Hybrid kernels round what comes in to 255 steps, so that a last bit that differs moves a
// value by a step: they are held to a fifth of the error that the rounding makes. Bytes: a step of SOFTMAX's
// result; words: two.
constexpr struct {
  Quantization as;
  const char* name;
  double tolerance;
} kModes[] = {{Quantization::kFloat16, "float16", 1e-5},
              {Quantization::kDynamic, "dynamic", 1.5e-3},
              {Quantization::kInt8, "int8", 1.01 / 256},
              {Quantization::kInt16x8, "int16x8", 2.01 / 32768}};

TEST(Quantized, NetsAreSmallAndRunAsInStock) {
  FUSEBOX_NEEDS_STOCK();
  const auto registry = Plugins();
  ASSERT_TRUE(registry) << registry.error().message;
  Table table({"net", "as", "bytes", "of float", "largest error", "same winner", "beside stock"});
  for (const Net& net : Nets()) {
    converter::Options options;
    options.registry = *registry;
    options.batch = 1;
    const auto plain = Convert(net.source, options, net.name + "-f32");
    ASSERT_TRUE(plain) << plain.error().message;
    const auto size = static_cast<double>(fs::file_size(plain->path));
    for (const auto& mode : kModes) {
      SCOPED_TRACE(net.name + " as " + mode.name);
      options.quantization = mode.as;
      options.calibration.clear();
      if (HasIntegerActivations(mode.as)) {
        const auto dir = Calibration(plain->path, *registry);
        ASSERT_TRUE(dir) << dir.error().message;
        options.calibration = *dir;
      }
      const auto written = Convert(net.source, options, net.name + "-" + mode.name);
      ASSERT_TRUE(written) << written.error().message;
      const double ratio = static_cast<double>(fs::file_size(written->path)) / size;
      const auto score = Try(plain->path, written->path, *registry, mode.tolerance);
      const std::string beside = !score                        ? score.error().message
                                 : score->beside_stock.empty() ? "equal"
                                                               : score->beside_stock;
      table.Row({net.name, mode.name, std::to_string(fs::file_size(written->path)), std::to_string(ratio),
                 score ? std::to_string(score->largest) : "-",
                 score && net.classifies
                     ? std::to_string(score->agree) + " of " + std::to_string(score->clear)
                     : "-",
                 beside});
      if (mode.as == Quantization::kFloat16) {
        EXPECT_LT(ratio, 0.56);
      }
      if (mode.as == Quantization::kDynamic) {
        EXPECT_LT(ratio, net.name == "kws_ref_model" ? 0.34 : 0.3) << "scales are a part of small nets";
      }
      ASSERT_TRUE(score) << score.error().message;
      if (!net.classifies) continue;
      EXPECT_LT(ratio, 0.56);
      EXPECT_EQ(beside, "equal");
      EXPECT_GT(score->clear, kTried / 4);
      EXPECT_GE(score->agree, 0.98 * score->clear);
    }
  }
  std::cout << table.Text();
}

// What a file is made of.
struct Bytes {
  double weights = 0, scales = 0, floats = 0, rest = 0;
  size_t ops = 0;
};
Result<Bytes> BytesOf(const std::string& path) {
  FUSEBOX_ASSIGN(const auto module, tflite::ReadFile(path));
  const Function& f = *module->functions[0];
  Bytes out;
  out.ops = f.nodes.size();
  std::set<const void*> seen;
  std::set<size_t> zero_points;  // zeros are written once for each count
  for (const auto& node : f.nodes)
    for (const ValueId v : node->operands) {
      if (v == kNoValue || !f.value(v).is_const() || !seen.insert(f.value(v).data.data()).second) continue;
      const Value& value = f.value(v);
      (value.type.dtype == DType::kI8 ? out.weights : out.floats) += static_cast<double>(value.data.size());
      if (!value.quant) continue;
      const size_t count = value.quant->scales.size();
      out.scales += static_cast<double>(count * sizeof(float));
      if (zero_points.insert(count).second) out.scales += static_cast<double>(count * sizeof(int64_t));
    }
  out.rest = static_cast<double>(fs::file_size(path)) - out.weights - out.scales - out.floats;
  return out;
}

// Bytes of our kernels and of stock's may differ by a step in a layer, which the layers behind it carry on: a
// hundredth.
constexpr int kTriedOfKeras = 100;
// Below this a file cannot get to 0.3 of its size: scales, f32 biases, names and tables weigh as much as the
// weights. Those have a bar of their own, what the file holds beside numbers.
constexpr double kSmallNet = 250e3;
double LargestStructure(const Bytes& bytes) { return 1000 + 400 * static_cast<double>(bytes.ops); }

TEST(Quantized, ConvNetsOfKerasFilesKeepTheirWinner) {
  FUSEBOX_NEEDS_STOCK();
  FUSEBOX_NEEDS_MODEL(root, "keras");
  const auto registry = Plugins();
  ASSERT_TRUE(registry) << registry.error().message;
  Table table({"net", "bytes", "dynamic", "int8", "largest error", "same winner", "beside stock"});
  Table parts({"dynamic, bytes", "file", "i8 weights", "scales", "f32 and shapes", "names, tables", "ops",
               "of float"});
  const auto whole = [](double bytes) { return std::to_string(static_cast<int64_t>(bytes)); };
  for (const std::string& file : FilesBelow(root)) {
    SCOPED_TRACE(file);
    const std::string name = fs::path(file).stem();
    converter::Options options;
    options.registry = *registry;
    options.batch = 1;
    const auto plain = Convert(file, options, name + "-f32");
    if (!plain || !HasConvolutions(plain->report)) continue;
    options.quantization = Quantization::kDynamic;
    const auto dynamic = Convert(file, options, name + "-dynamic");
    ASSERT_TRUE(dynamic) << dynamic.error().message;
    options.quantization = Quantization::kInt8;
    const auto dir = Calibration(plain->path, *registry);
    ASSERT_TRUE(dir) << dir.error().message;
    options.calibration = *dir;
    const auto eight = Convert(file, options, name + "-int8");
    ASSERT_TRUE(eight) << eight.error().message;
    const auto score = Try(plain->path, eight->path, *registry, 0.01, kTriedOfKeras);
    ASSERT_TRUE(score) << score.error().message;
    const auto size = static_cast<double>(fs::file_size(plain->path));
    const double as_dynamic = static_cast<double>(fs::file_size(dynamic->path)) / size;
    table.Row({name, std::to_string(fs::file_size(plain->path)), std::to_string(as_dynamic),
               std::to_string(static_cast<double>(fs::file_size(eight->path)) / size),
               std::to_string(score->largest),
               std::to_string(score->agree) + " of " + std::to_string(score->clear),
               score->beside_stock.empty() ? "equal" : score->beside_stock});
    const auto bytes = BytesOf(dynamic->path);
    ASSERT_TRUE(bytes) << bytes.error().message;
    parts.Row({name, std::to_string(fs::file_size(dynamic->path)), whole(bytes->weights),
               whole(bytes->scales), whole(bytes->floats), whole(bytes->rest), std::to_string(bytes->ops),
               std::to_string(as_dynamic)});
    if (size >= kSmallNet) {
      EXPECT_LE(as_dynamic, 0.3);
    }
    EXPECT_LE(bytes->rest, LargestStructure(*bytes));
    EXPECT_EQ(score->beside_stock, "");
    EXPECT_GE(score->agree, 0.98 * score->clear);
  }
  std::cout << table.Text() << "\n" << parts.Text();
}

}  // namespace
}  // namespace fusebox::testing
