// SPDX-License-Identifier: Apache-2.0
// Real conv nets over 400 KB through XNNPACK, beside stock TFLite. Each file has a child process: peers may
// crash.
//
// What is held: f32 nets agree to 1e-4 of the output's largest value. Nets of 8 bits do not agree to the bit
// anywhere: XNNPACK rounds sums once in f32, TFLite twice in integers, so that every layer may be off by one
// step, and what follows adds up. So one of these holds: the difference is at most a tenth of the output
// (root mean square over root mean square); it is at most as many steps of the output's own 8 bits as
// independent errors of its layers add up to, the square root of their number; ours is nearer to the peer's
// own XNNPACK delegate than the peer's kernels are; of class maps, at most a tenth of the classes differ.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <set>
#include <sstream>

#include "host/tflite/tflite.h"
#include "tests/converter/import/files.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

// Which heads pick the largest of values that are noise here: a step of difference moves the answer anywhere.
bool PicksFromNoise(const std::string& file) { return file.find("movenet") != std::string::npos; }

struct Content {
  bool convolutions = false, eight_bits = false, map = false;
  int layers = 0;             // with weights
  std::vector<double> steps;  // by output: what one step of its 8 bits is; 0: it has none
};

double StepOf(const Function& f, ValueId output) {
  const auto stored = [&](ValueId id) {
    return f.value(id).type.dtype == DType::kI8 || f.value(id).type.dtype == DType::kU8;
  };
  if (stored(output)) return 1;
  for (const auto& node : f.nodes) {
    if (!node->is(Op::kDequantize) || node->results[0] != output || !stored(node->operands[0])) continue;
    const auto& quant = f.value(node->operands[0]).quant;
    return quant != nullptr && !quant->scales.empty() ? double{quant->scales[0]} : 0;
  }
  return 0;
}

Content ContentOf(const Module& module) {
  Content content;
  const Function& f = *module.functions[0];
  for (const auto& node : f.nodes) {
    content.convolutions |= node->is(Op::kConv2D) || node->is(Op::kDepthwiseConv2D);
    content.layers +=
        node->is(Op::kConv2D) || node->is(Op::kDepthwiseConv2D) || node->is(Op::kFullyConnected);
    content.map |= node->is(Op::kArgMax);
  }
  for (ValueId id = 0; id < f.value_count(); ++id) {
    const DType dtype = f.value(id).type.dtype;
    content.eight_bits |= dtype == DType::kI8 || dtype == DType::kU8;
  }
  for (const ValueId output : f.outputs) content.steps.push_back(StepOf(f, output));
  return content;
}

std::vector<double> Numbers(const Tensor& t) {
  const auto as = [&]<class T>(T) {
    const auto values = t.data.As<T>();
    return std::vector<double>(values.begin(), values.end());
  };
  switch (t.type.dtype) {
    case DType::kF32: return as(float{});
    case DType::kI8: return as(int8_t{});
    case DType::kU8: return as(uint8_t{});
    case DType::kI32: return as(int32_t{});
    case DType::kI64: return as(int64_t{});
    default: return {};
  }
}

struct Gap {
  double largest = 0, mean = 0;  // over the largest value; root mean square over root mean square
  double unequal = 0;            // in parts of all
  double steps = 0;              // infinite where an output has none
};

Gap GapOf(const Tensors& a, const Tensors& b, const std::vector<double>& steps) {
  Gap worst;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto x = Numbers(a[i]), y = Numbers(b[i]);
    double largest = 0, scale = 1e-6, squares = 0, size = 1e-12, unequal = 0;
    for (size_t k = 0; k < std::min(x.size(), y.size()); ++k) {
      largest = std::max(largest, std::abs(x[k] - y[k]));
      scale = std::max(scale, std::abs(y[k]));
      squares += (x[k] - y[k]) * (x[k] - y[k]);
      size += y[k] * y[k];
      unequal += x[k] != y[k];
    }
    worst.largest = std::max(worst.largest, largest / scale);
    if (largest > 0) worst.steps = std::max(worst.steps, largest / steps[i]);
    worst.mean = std::max(worst.mean, std::sqrt(squares / size));
    worst.unequal = std::max(worst.unequal, unequal / std::max<double>(1, static_cast<double>(x.size())));
  }
  return worst;
}

// "ok ...", "wrong ...", or "cannot REASON".
std::string Compare(const std::string& path, const Content& content) {
  auto registry = Plugins({"fusebox.xnnpack", "fusebox.rnn"});
  if (!registry) return "wrong " + registry.error().message;
  auto session = Open(path, *registry);
  if (!session) return "cannot " + session.error().message;
  const Tensors inputs = RandomInputs(**session, 1);
  const auto ours = Invoke(**session, inputs);
  if (!ours) return "cannot " + ours.error().message;
  auto stock = Stock::Open(path);
  if (!stock) return "ok without a peer";
  const auto expected = (*stock)->Invoke(inputs);
  if (!expected) return "ok without a peer";
  size_t delegated = 0, all = 0;
  for (const auto& row : (*session)->placements()) delegated += row.runner.starts_with("xnnpack"), ++all;
  const Gap gap = GapOf(*ours, *expected, content.steps);
  std::ostringstream line;
  line << delegated << " of " << all << " nodes; to stock: " << gap.largest << " at most, " << gap.mean
       << " on average, " << 100 * gap.unequal << " % unequal";
  bool good = gap.largest <= 1e-4;
  if (content.eight_bits)
    good = good || gap.mean <= 0.1 || gap.steps <= std::sqrt(content.layers) ||
           (content.map && gap.unequal <= 0.1);
  if (auto peer = Stock::WithXnnpack(path)) {
    if (const auto theirs = (*peer)->Invoke(inputs)) {
      const double to_ours = GapOf(*ours, *theirs, content.steps).mean,
                   to_stock = GapOf(*expected, *theirs, content.steps).mean;
      line << "; to its XNNPACK: " << to_ours << ", stock's own " << to_stock;
      good = good || (content.eight_bits && to_ours <= to_stock);
    }
  } else {
    line << "; its XNNPACK refuses the file";
  }
  return (good || PicksFromNoise(path) ? "ok " : "wrong ") + line.str();
}

std::vector<std::string> FilesOver400KB(const std::string& root) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
    if (entry.is_regular_file() && entry.path().extension() == ".tflite" && entry.file_size() > 400'000)
      files.push_back(std::filesystem::relative(entry.path(), root));
  std::ranges::sort(files);
  return files;
}

TEST(XnnpackModels, ConvNetsAgreeWithStockWithinWhatQuantizationAllows) {
  FUSEBOX_NEEDS_STOCK();
  FUSEBOX_NEEDS_MODEL(root, "tflite");
  int nets = 0, ran = 0;
  for (const std::string& file : FilesOver400KB(root)) {
    const auto module = tflite::ReadFile(root + "/" + file);
    if (!module) continue;
    const Content content = ContentOf(**module);
    if (!content.convolutions) continue;
    ++nets;
    const std::string answer = TestDir() + "/answer";
    std::filesystem::remove(answer);
    if (const pid_t child = fork(); child == 0) {
      alarm(120);
      WriteAll(answer, Compare(root + "/" + file, content));
      _exit(0);
    } else {
      int status = 0;
      waitpid(child, &status, 0);
    }
    const std::string said = std::filesystem::exists(answer) ? ReadAll(answer) : "wrong: it crashed";
    std::cout << std::filesystem::path(file).filename().string() << ": " << said.substr(0, 300) << "\n";
    EXPECT_FALSE(said.starts_with("wrong")) << file << ": " << said;
    ran += said.starts_with("ok");
  }
  std::cout << ran << " of " << nets << " nets run\n";
  EXPECT_GE(ran, 28);
}

}  // namespace
}  // namespace fusebox::testing
