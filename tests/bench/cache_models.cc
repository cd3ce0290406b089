// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/cache_models.h"

#include <cmath>

#include "host/tflite/tflite.h"
#include "tests/bench/net.h"

namespace fusebox::bench {
namespace {

struct LlmSizes {
  int64_t width, heads, hidden, layers, words, prompt;
  int64_t head_width() const { return width / heads; }
};

struct Layer {
  Weights attention_norm, query, key, value, output, feed_norm, gate, up, down;
};

struct Llm {
  LlmSizes sizes;
  Weights words;
  std::vector<Layer> layers;
  Weights norm, head;
};

Llm MakeLlm(Size size, bool int8) {
  Llm llm;
  llm.sizes =
      size == Size::kFull ? LlmSizes{768, 12, 2048, 12, 16000, 64} : LlmSizes{128, 4, 256, 2, 1000, 64};
  const auto [width, heads, hidden, layers, words, prompt] = llm.sizes;
  WeightSource source;
  const auto matrix = [&](int64_t out, int64_t in) {
    return int8 ? source.Int8({out, in}, in) : source.Float({out, in}, in);
  };
  llm.words = source.Float({words, width}, 1);
  for (int64_t i = 0; i < layers; ++i) {
    llm.layers.push_back({source.Float({width}, 1), matrix(width, width), matrix(width, width),
                          matrix(width, width), matrix(width, width), source.Float({width}, 1),
                          matrix(hidden, width), matrix(hidden, width), matrix(width, hidden)});
  }
  llm.norm = source.Float({width}, 1);
  llm.head = int8 ? matrix(words, width)
                  : llm.words;  // one matrix for words on the way in and out, where that can be
  return llm;
}

// x / sqrt(mean(x^2) + e) * scale
ValueId RootMeanSquareNorm(Net& net, ValueId x, const Weights& scale) {
  Dims reduced = net.dims(x);
  reduced.back() = 1;
  Attrs keep;
  keep.Set("keep_dims", true);
  const ValueId squares = net.Multiply(x, x);
  const ValueId mean = net.Node(Op::kMean, {squares, net.Integers({-1})}, reduced, keep);
  const ValueId inverse = net.Node(Op::kRsqrt, {net.Add(mean, net.Scalar(1e-5F))}, reduced);
  return net.Multiply(net.Multiply(x, inverse), net.Constant(scale));
}

// Keys and values of the tokens before as inputs, if there are any, and of this call as outputs.
struct Cache {
  std::vector<ValueId> inputs, outputs;
};

ValueId Attention(Net& net, const LlmSizes& s, const Layer& layer, ValueId x, Cache& cache) {
  const int64_t tokens = net.dims(x)[1];
  const auto heads = [&](const Weights& weights) {
    const ValueId flat = net.FullyConnected(x, weights);
    return net.Transpose(net.Reshape(flat, {1, tokens, s.heads, s.head_width()}), {0, 2, 1, 3});
  };
  const ValueId query = heads(layer.query);
  ValueId key = heads(layer.key), value = heads(layer.value);
  cache.outputs.insert(cache.outputs.end(), {key, value});
  if (!cache.inputs.empty()) {
    const size_t at = cache.outputs.size() - 2;
    key = net.Concat({cache.inputs[at], key}, 2);
    value = net.Concat({cache.inputs[at + 1], value}, 2);
  }
  const ValueId scale = net.Scalar(1 / std::sqrt(static_cast<float>(s.head_width())));
  const ValueId scores = net.Multiply(net.MatMul(query, key, true), scale);
  Attrs beta;
  beta.Set("beta", 1.0);
  const ValueId shares = net.Node(Op::kSoftmax, {scores}, net.dims(scores), beta);
  const ValueId mixed = net.Transpose(net.MatMul(shares, value, false), {0, 2, 1, 3});
  return net.FullyConnected(net.Reshape(mixed, {1, tokens, s.width}), layer.output);
}

ValueId FeedForward(Net& net, const Layer& layer, ValueId x) {
  const ValueId gate = net.FullyConnected(x, layer.gate);
  const ValueId open = net.Multiply(gate, net.Node(Op::kLogistic, {gate}, net.dims(gate)));
  return net.FullyConnected(net.Multiply(open, net.FullyConnected(x, layer.up)), layer.down);
}

void AddSignature(Module& module, const Llm& llm, const std::string& key, int64_t tokens) {
  const LlmSizes& s = llm.sizes;
  Function& f = module.Add(key);
  Net net(f);
  const ValueId ids = net.Input(DType::kI32, {1, tokens}, "tokens");
  Cache cache;
  if (tokens == 1) {
    for (size_t i = 0; i < 2 * llm.layers.size(); ++i) {
      cache.inputs.push_back(
          net.Input(DType::kF32, {1, s.heads, s.prompt, s.head_width()}, "cache_" + std::to_string(i)));
    }
  }
  ValueId x = net.Node(Op::kGather, {net.Constant(llm.words), ids}, {1, tokens, s.width});
  for (const Layer& layer : llm.layers) {
    x = net.Add(x, Attention(net, s, layer, RootMeanSquareNorm(net, x, layer.attention_norm), cache));
    x = net.Add(x, FeedForward(net, layer, RootMeanSquareNorm(net, x, layer.feed_norm)));
  }
  x = RootMeanSquareNorm(net, x, llm.norm);
  f.outputs.push_back(net.FullyConnected(x, llm.head));
  f.outputs.insert(f.outputs.end(), cache.outputs.begin(), cache.outputs.end());
  Signature& signature = module.signatures.emplace_back();
  signature.key = signature.function = key;
  for (const ValueId input : f.inputs) signature.input_names.push_back(f.value(input).name);
  signature.output_names.push_back("logits");
  for (size_t i = 0; i < cache.outputs.size(); ++i)
    signature.output_names.push_back("new_" + std::to_string(i));
}

Module MakeLlmModule(Size size, bool int8) {
  const Llm llm = MakeLlm(size, int8);
  Module module;
  AddSignature(module, llm, "prefill", llm.sizes.prompt);
  AddSignature(module, llm, "decode", 1);
  return module;
}

Module MakeUnet(Size size) {
  const int64_t base = size == Size::kFull ? 80 : 8, side = 64;
  constexpr int kDepth = 4;
  WeightSource source;
  Module module;
  Function& f = module.Add("main");
  Net net(f);
  const auto conv = [&](ValueId x, int64_t out, int64_t window = 3, int stride = 1) {
    const int64_t in = net.dims(x)[3];
    return net.Conv(x, source.Float({out, window, window, in}, window * window * in), source.Float({out}, 1),
                    stride);
  };
  const auto twice = [&](ValueId x, int64_t out) { return conv(conv(x, out), out); };
  ValueId x = net.Input(DType::kF32, {1, side, side, 3}, "image");
  std::vector<ValueId> skipped;
  for (int level = 0; level < kDepth; ++level) {
    skipped.push_back(twice(x, base << level));
    x = conv(skipped.back(), base << level, 3, 2);
  }
  x = twice(x, base << kDepth);
  for (int level = kDepth - 1; level >= 0; --level) {
    const int32_t to = static_cast<int32_t>(side >> level);
    Attrs half;
    half.Set("half_pixel_centers", true);
    x = net.Node(Op::kResizeBilinear, {x, net.Integers({to, to})}, {1, to, to, net.dims(x)[3]}, half);
    x = conv(x, base << level, 1);
    x = twice(net.Concat({skipped[static_cast<size_t>(level)], x}, 3), base << level);
  }
  f.outputs.push_back(conv(x, 4, 1));
  return module;
}

Module MakeFullyConnected(Size size, bool int8) {
  const int64_t width = (int8 ? 4096 : 2048) / (size == Size::kFull ? 1 : 10);
  WeightSource source;
  Module module;
  Function& f = module.Add("main");
  Net net(f);
  ValueId x = net.Input(DType::kF32, {1, width}, "x");
  for (int i = 0; i < 24; ++i)
    x = net.FullyConnected(x, int8 ? source.Int8({width, width}, width) : source.Float({width, width}, width),
                           true);
  f.outputs.push_back(x);
  return module;
}

}  // namespace

std::vector<std::string_view> CacheModelNames() { return {"llm", "llm_int8", "unet", "fc", "fc_int8"}; }

Status WriteCacheModel(std::string_view name, Size size, const std::string& path) {
  if (name == "llm" || name == "llm_int8") return tflite::WriteFile(MakeLlmModule(size, name != "llm"), path);
  if (name == "fc" || name == "fc_int8")
    return tflite::WriteFile(MakeFullyConnected(size, name != "fc"), path);
  if (name == "unet") return tflite::WriteFile(MakeUnet(size), path);
  return Invalid("no model " + std::string(name));
}

}  // namespace fusebox::bench
