// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "tests/bench/decoder_engine.h"
#include "tests/bench/onnx.h"

namespace fusebox::bench {
namespace {

constexpr char kContrib[] = "com.microsoft";
constexpr int64_t kBlock = 128;  // inputs with one scale; MatMulNBits has no scales per output

// The graph, with the dims of its dynamic tokens.
class Graph {
 public:
  explicit Graph(const Decoder& decoder) : d_(decoder), s_(decoder.sizes) {}

  std::string Model() {
    Tables();
    Inputs();
    Add("Gather", {"table", "tokens"}, {"x0"});
    std::string x = "x0";
    for (size_t i = 0; i < d_.layers.size(); ++i) x = Layer(x, i);
    Init("last", {1}, std::vector<int64_t>{-1});
    Add("Gather", {x, "last"}, {"last_x"}, onnx::IntAttribute("axis", 1));
    Product(Norm("last_x", "last_norm", d_.last_norm), "logits", d_.logits);
    graph_ += onnx::Output("logits", onnx::kFloat, {1, 1, s_.vocabulary});
    return onnx::Model(graph_);
  }

 private:
  void Add(const std::string& op, std::initializer_list<std::string> inputs,
           std::initializer_list<std::string> outputs, const std::string& attributes = {},
           const char* domain = "") {
    graph_ += onnx::Node(op, inputs, outputs, attributes, domain);
  }
  template <class T>
  void Init(const std::string& name, const std::vector<int64_t>& dims, const std::vector<T>& data) {
    graph_ += onnx::Initializer(name, dims, data);
  }

  void Tables() {
    std::vector<float> table(static_cast<size_t>(s_.vocabulary * s_.width)), cos, sin;
    for (size_t i = 0; i < table.size(); ++i) table[i] = ValueAt(d_.table, i);
    Init("table", {s_.vocabulary, s_.width}, table);
    for (int64_t p = 0; p < s_.capacity; ++p)
      for (int64_t i = 0; i < s_.head / 2; ++i) {
        cos.push_back(static_cast<float>(std::cos(RotaryAngle(p, i, s_.head))));
        sin.push_back(static_cast<float>(std::sin(RotaryAngle(p, i, s_.head))));
      }
    Init("cos", {s_.capacity, s_.head / 2}, cos);
    Init("sin", {s_.capacity, s_.head / 2}, sin);
  }

  void Inputs() {
    graph_ += onnx::Input("tokens", onnx::kInt64, {1, -1}) + onnx::Input("before", onnx::kInt32, {1}) +
              onnx::Input("total", onnx::kInt32, {});
    for (size_t i = 0; i < 2 * d_.layers.size(); ++i) {
      const std::string number = std::to_string(i);
      const std::vector<int64_t> dims = {1, s_.kv_heads, s_.capacity, s_.head};
      graph_ += onnx::Input("past" + number, onnx::kFloat, dims) +
                onnx::Output("present" + number, onnx::kFloat, dims);
    }
  }

  std::string Norm(const std::string& x, const std::string& name, const Weights& scale) {
    const auto values = scale.data.As<float>();
    Init(name, {s_.width}, std::vector<float>(values.begin(), values.end()));
    Add("SimplifiedLayerNormalization", {x, name}, {name + "_y"},
        onnx::IntAttribute("axis", -1) +
            onnx::FloatAttribute("epsilon", static_cast<float>(kDecoderEpsilon)));
    return name + "_y";
  }

  std::string Product(const std::string& x, const std::string& name, const Weights& weights) {
    const int64_t outputs = weights.type.shape[0], inputs = weights.type.shape[1];
    if (weights.type.dtype == DType::kF32) {
      std::vector<float> columns(static_cast<size_t>(outputs * inputs));
      const auto rows = weights.data.As<float>();
      for (int64_t i = 0; i < outputs; ++i)
        for (int64_t k = 0; k < inputs; ++k)
          columns[static_cast<size_t>(k * outputs + i)] = rows[static_cast<size_t>(i * inputs + k)];
      Init(name + "_w", {inputs, outputs}, columns);
      Add("MatMul", {x, name + "_w"}, {name});
      return name;
    }
    const int bits = weights.type.dtype == DType::kI8 ? 8 : 4;
    const int64_t blocks = (inputs + kBlock - 1) / kBlock;
    Init(name + "_w", {outputs, blocks, kBlock * bits / 8}, Blocks(weights, blocks, bits));
    std::vector<float> scales;
    for (const float scale : weights.quant->scales)
      scales.insert(scales.end(), static_cast<size_t>(blocks), scale);
    Init(name + "_s", {outputs * blocks}, scales);
    const auto attribute = [](const char* key, int64_t value) { return onnx::IntAttribute(key, value); };
    Add("MatMulNBits", {x, name + "_w", name + "_s"}, {name},
        attribute("K", inputs) + attribute("N", outputs) + attribute("bits", bits) +
            attribute("block_size", kBlock) + attribute("accuracy_level", 4),
        kContrib);
    return name;
  }

  // Unsigned, with the zero point in the middle; the inputs of a row fill whole blocks.
  static std::vector<uint8_t> Blocks(const Weights& weights, int64_t blocks, int bits) {
    const auto outputs = static_cast<size_t>(weights.type.shape[0]),
               inputs = static_cast<size_t>(weights.type.shape[1]);
    const size_t row = static_cast<size_t>(blocks * kBlock * bits / 8),
                 used = inputs * static_cast<size_t>(bits) / 8;
    std::vector<uint8_t> values(outputs * row, bits == 8 ? 0x80 : 0x88);
    const auto bytes = weights.data.As<uint8_t>();
    for (size_t i = 0; i < outputs; ++i)
      for (size_t k = 0; k < used; ++k) values[i * row + k] ^= bytes[i * used + k];
    return values;
  }

  std::string Layer(const std::string& x, size_t index) {
    const DecoderLayer& layer = d_.layers[index];
    const std::string n = std::to_string(index);
    const std::string normed = Norm(x, "attention_norm" + n, layer.attention_norm);
    Product(normed, "q" + n, layer.q);
    Product(normed, "k" + n, layer.k);
    Product(normed, "v" + n, layer.v);
    const std::string k = std::to_string(2 * index), v = std::to_string(2 * index + 1);
    Add("GroupQueryAttention",
        {"q" + n, "k" + n, "v" + n, "past" + k, "past" + v, "before", "total", "cos", "sin"},
        {"attended" + n, "present" + k, "present" + v},
        onnx::IntAttribute("num_heads", s_.heads) + onnx::IntAttribute("kv_num_heads", s_.kv_heads) +
            onnx::IntAttribute("do_rotary", 1),
        kContrib);
    Add("Add", {x, Product("attended" + n, "o" + n, layer.o)}, {"middle" + n});
    const std::string middle = Norm("middle" + n, "ffn_norm" + n, layer.ffn_norm);
    Product(middle, "gate" + n, layer.gate);
    Product(middle, "up" + n, layer.up);
    Add("Sigmoid", {"gate" + n}, {"sigmoid" + n});
    Add("Mul", {"gate" + n, "sigmoid" + n}, {"silu" + n});
    Add("Mul", {"silu" + n, "up" + n}, {"product" + n});
    Add("Add", {"middle" + n, Product("product" + n, "down" + n, layer.down)},
        {"x" + std::to_string(index + 1)});
    return "x" + std::to_string(index + 1);
  }

  const Decoder& d_;
  const DecoderSizes& s_;
  std::string graph_;
};

class Onnx : public DecoderEngine {
 public:
  Onnx(const Decoder& decoder, const std::string& library, int threads)
      : sizes_(decoder.sizes),
        session_(library, Graph(decoder).Model(), threads),
        logits_(static_cast<size_t>(sizes_.vocabulary)) {
    const auto count = static_cast<size_t>(sizes_.kv_heads * sizes_.capacity * sizes_.head);
    const auto caches = static_cast<size_t>(2 * sizes_.layers);
    cache_.assign(caches, std::vector<float>(count));
    for (size_t i = 0; i < caches; ++i) {
      names_.push_back("past" + std::to_string(i));
      names_.push_back("present" + std::to_string(i));
    }
    inputs_ = {nullptr, session_.Tensor(&before_, 4, {1}, onnx::kInt32),
               session_.Tensor(&total_, 4, {}, onnx::kInt32)};
    outputs_ = {session_.Tensor(logits_.data(), 4 * logits_.size(), {1, 1, sizes_.vocabulary}, onnx::kFloat)};
    for (size_t i = 0; i < caches; ++i) {
      void* const cache = session_.Tensor(cache_[i].data(), 4 * count,
                                          {1, sizes_.kv_heads, sizes_.capacity, sizes_.head}, onnx::kFloat);
      input_names_.push_back(names_[2 * i].c_str());
      inputs_.push_back(cache);
      output_names_.push_back(names_[2 * i + 1].c_str());
      outputs_.push_back(cache);
    }
  }

  void Restart() override { total_ = 0; }

  std::span<const float> Run(std::span<const int32_t> tokens) override {
    tokens_.assign(tokens.begin(), tokens.end());
    total_ += static_cast<int32_t>(tokens.size());
    before_ = total_ - 1;
    inputs_[0] = session_.Tensor(tokens_.data(), 8 * tokens_.size(),
                                 {1, static_cast<int64_t>(tokens_.size())}, onnx::kInt64);
    session_.Run(input_names_, inputs_, output_names_, outputs_);
    session_.Release(inputs_[0]);
    return logits_;
  }

 private:
  const DecoderSizes sizes_;
  onnx::Session session_;
  std::vector<float> logits_;
  std::vector<std::vector<float>> cache_;
  std::vector<std::string> names_;
  std::vector<const char*> input_names_ = {"tokens", "before", "total"}, output_names_ = {"logits"};
  std::vector<void*> inputs_, outputs_;
  std::vector<int64_t> tokens_;
  int32_t before_ = 0, total_ = 0;
};

}  // namespace

std::unique_ptr<DecoderEngine> OnnxDecoder(const Decoder& decoder, const std::string& library, int threads) {
  return std::make_unique<Onnx>(decoder, library, threads);
}

}  // namespace fusebox::bench
