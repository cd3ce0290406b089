// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/decoder.h"

#include <limits>
#include <string>

#include "host/graph/rewriter.h"

namespace fusebox::bench {
namespace {

// Adds nodes of one signature. T, the number of tokens, may be -1.
class Writer {
 public:
  Writer(const Decoder& decoder, Module& module, std::string signature, int64_t tokens)
      : d_(decoder),
        s_(decoder.sizes),
        module_(module),
        f_(module.Add(signature)),
        net_(f_),
        tokens_(tokens) {
    module.signatures.push_back({signature, f_.name, {"tokens", "input_pos"}, {"logits"}});
  }

  void Write() {
    f_.AddNode(Op::kCallOnce, {}, {}, MakeAttrs("init_subgraph_index", FunctionRef{"initialize_cache"}));
    const ValueId tokens = net_.Input(DType::kI32, {1, tokens_}, "tokens");
    positions_ = net_.Input(DType::kI32, {tokens_}, "input_pos");
    first_ = Indices(Op::kSlice, {positions_, net_.Integers({0}), net_.Integers({1})}, {1});
    mask_ = Gathered(Mask(), 2, {1, 1, tokens_, s_.capacity});
    cos_ = Rotary([](double angle) { return std::cos(angle); });
    sin_ = Rotary([](double angle) { return std::sin(angle); });
    const ValueId ids = Indices(Op::kReshape, {tokens, net_.Integers({-1})}, {tokens_});
    ValueId x = net_.Node(Op::kEmbeddingLookup, {ids, net_.Constant(d_.table)}, {tokens_, s_.width});
    x = net_.Reshape(x, {1, tokens_, s_.width});
    for (size_t i = 0; i < d_.layers.size(); ++i) x = Layer(x, i);
    x = net_.Node(Op::kStridedSlice,
                  {x, net_.Integers({0, -1, 0}), net_.Integers({1, 0, static_cast<int32_t>(s_.width)}),
                   net_.Integers({1, 1, 1})},
                  {1, 1, s_.width}, MakeAttrs("end_mask", 2));
    tokens_ = 1;
    f_.outputs = {net_.FullyConnected(Norm(x, d_.last_norm), d_.logits)};
  }

 private:
  Type F32(Dims dims) const { return {DType::kF32, std::move(dims)}; }
  ValueId Indices(Op op, std::vector<ValueId> operands, Dims dims, Attrs attrs = {}) {
    return f_.AddNode(op, std::move(operands), {{DType::kI32, std::move(dims)}}, std::move(attrs)).results[0];
  }
  ValueId Gathered(ValueId table, int axis, Dims dims) {
    return net_.Node(Op::kGather, {table, positions_}, std::move(dims), MakeAttrs("axis", axis));
  }

  // Row p hides the keys after position p.
  ValueId Mask() {
    const auto n = static_cast<size_t>(s_.capacity);
    std::vector<float> hidden(n * n);
    for (size_t p = 0; p < n; ++p)
      for (size_t key = p + 1; key < n; ++key) hidden[p * n + key] = -std::numeric_limits<float>::infinity();
    return f_.AddConst<float>(DType::kF32, {1, 1, s_.capacity, s_.capacity}, std::move(hidden));
  }

  ValueId Rotary(double (*function)(double)) {
    std::vector<float> table;
    for (int64_t p = 0; p < s_.capacity; ++p)
      for (int64_t i = 0; i < s_.head / 2; ++i)
        table.push_back(static_cast<float>(function(RotaryAngle(p, i, s_.head))));
    const ValueId values = f_.AddConst<float>(DType::kF32, {s_.capacity, s_.head / 2}, std::move(table));
    return net_.Reshape(Gathered(values, 0, {tokens_, s_.head / 2}), {1, tokens_, 1, s_.head / 2});
  }

  ValueId Composite(const char* name, std::vector<ValueId> operands, Dims result, Attrs attrs,
                    const std::string& body) {
    Node& node =
        f_.AddNode(Op::kStablehloComposite, std::move(operands), {F32(std::move(result))}, std::move(attrs));
    node.name = name;
    node.version = 1;
    node.body = body;
    return node.results[0];
  }

  ValueId Norm(ValueId x, const Weights& scale) {
    const std::string body = "rms_norm_of_" + std::to_string(tokens_);
    if (module_.Find(body) == nullptr) AddNorm(module_.Add(body));
    return Composite("odml.rms_norm", {x, net_.Constant(scale)}, net_.dims(x),
                     MakeAttrs("epsilon", kDecoderEpsilon), body);
  }

  void AddNorm(Function& f) const {
    Net net(f);
    const Dims dims = {1, tokens_, s_.width}, row = {1, tokens_, 1};
    const ValueId x = net.Input(DType::kF32, dims, "x"), scale = net.Input(DType::kF32, {s_.width}, "scale");
    const ValueId squares = net.Multiply(x, x);
    ValueId mean = net.Node(Op::kMean, {squares, net.Integers({2})}, row, MakeAttrs("keep_dims", true));
    mean = net.Node(Op::kAdd, {mean, net.Scalar(static_cast<float>(kDecoderEpsilon))}, row);
    f.outputs = {net.Multiply(net.Multiply(x, net.Node(Op::kRsqrt, {mean}, row)), scale)};
  }

  // [1,T,heads,head]
  ValueId Heads(ValueId x, const Weights& weights, int64_t heads) {
    return net_.Reshape(net_.FullyConnected(x, weights), {1, tokens_, heads, s_.head});
  }

  ValueId Rotated(ValueId x) {
    Dims half = net_.dims(x);
    half.back() /= 2;
    const ValueId axis = f_.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {3});
    const auto halves =
        f_.AddNode(Op::kSplit, {axis, x}, {F32(half), F32(half)}, MakeAttrs("num_splits", 2)).results;
    const auto times = [&](ValueId a, ValueId b) { return net_.Node(Op::kMul, {a, b}, half); };
    const ValueId a = net_.Node(Op::kSub, {times(halves[0], cos_), times(halves[1], sin_)}, half);
    const ValueId b = net_.Add(times(halves[1], cos_), times(halves[0], sin_));
    return net_.Concat({a, b}, 3);
  }

  // The cache with `update` from the first position on.
  ValueId Updated(const std::string& name, ValueId update) {
    const ValueId handle =
        f_.AddNode(Op::kVarHandle, {}, {{DType::kResource, Shape::Scalar()}}, MakeAttrs("shared_name", name))
            .results[0];
    const Dims dims = {1, s_.capacity, s_.kv_heads, s_.head};
    const ValueId old = net_.Node(Op::kReadVariable, {handle}, dims);
    const ValueId zero = net_.Integers({0});
    const ValueId start = Indices(Op::kConcatenation, {zero, first_, zero, zero}, {4}, MakeAttrs("axis", 0));
    const ValueId cache = net_.Node(Op::kDynamicUpdateSlice, {old, update, start}, dims);
    f_.AddNode(Op::kAssignVariable, {handle, cache}, {});
    return cache;
  }

  ValueId Layer(ValueId x, size_t index) {
    const DecoderLayer& layer = d_.layers[index];
    const std::string number = std::to_string(index);
    const ValueId normed = Norm(x, layer.attention_norm);
    const ValueId q = Rotated(Heads(normed, layer.q, s_.heads));
    const ValueId k = Updated("kv_cache_k_" + number, Rotated(Heads(normed, layer.k, s_.kv_heads)));
    const ValueId v = Updated("kv_cache_v_" + number, Heads(normed, layer.v, s_.kv_heads));
    const std::string body = "attention_of_" + std::to_string(tokens_);
    if (module_.Find(body) == nullptr) AddAttention(module_.Add(body));
    const ValueId attended =
        Composite("odml.scaled_dot_product_attention", {q, k, v, mask_}, {1, tokens_, s_.heads, s_.head},
                  MakeAttrs("scale", 1 / std::sqrt(static_cast<double>(s_.head))), body);
    const ValueId rows = net_.Reshape(attended, {1, tokens_, s_.heads * s_.head});
    x = net_.Add(x, net_.FullyConnected(rows, layer.o));
    return net_.Add(x, FeedForward(Norm(x, layer.ffn_norm), layer));
  }

  // down(silu(gate(x)) * up(x))
  ValueId FeedForward(ValueId x, const DecoderLayer& layer) {
    const ValueId gate = net_.FullyConnected(x, layer.gate), up = net_.FullyConnected(x, layer.up);
    const ValueId silu = net_.Multiply(gate, net_.Node(Op::kLogistic, {gate}, net_.dims(gate)));
    return net_.FullyConnected(net_.Multiply(silu, up), layer.down);
  }

  // Heads of q that share a head of k and v are rows of one product.
  void AddAttention(Function& f) const {
    Net net(f);
    const int64_t group = s_.heads / s_.kv_heads, rows = tokens_ < 0 ? -1 : tokens_ * group;
    const Dims cache = {1, s_.capacity, s_.kv_heads, s_.head};
    const ValueId q = net.Input(DType::kF32, {1, tokens_, s_.heads, s_.head}, "q");
    const ValueId k = net.Input(DType::kF32, cache, "k"), v = net.Input(DType::kF32, cache, "v");
    const ValueId mask = net.Input(DType::kF32, {1, 1, tokens_, s_.capacity}, "mask");
    const ValueId scale = net.Scalar(1 / std::sqrt(static_cast<float>(s_.head)));
    ValueId x = net.Node(Op::kMul, {q, scale}, net.dims(q));
    x = net.Transpose(net.Reshape(x, {1, tokens_, s_.kv_heads, group, s_.head}), {0, 2, 1, 3, 4});
    x = net.Reshape(x, {1, s_.kv_heads, rows, s_.head});
    x = net.MatMul(x, net.Transpose(k, {0, 2, 3, 1}), false);
    x = net.Reshape(x, {1, s_.kv_heads, tokens_, group, s_.capacity});
    x = net.Add(x, net.Reshape(mask, {1, 1, tokens_, 1, s_.capacity}));
    x = net.Reshape(x, {1, s_.kv_heads, rows, s_.capacity});
    x = net.Node(Op::kSoftmax, {x}, net.dims(x), MakeAttrs("beta", 1.0));
    x = net.MatMul(x, net.Transpose(v, {0, 2, 1, 3}), false);
    x = net.Transpose(net.Reshape(x, {1, s_.kv_heads, tokens_, group, s_.head}), {0, 2, 1, 3, 4});
    f.outputs = {net.Reshape(x, {1, tokens_, s_.heads, s_.head})};
  }

  const Decoder& d_;
  const DecoderSizes& s_;
  Module& module_;
  Function& f_;
  Net net_;
  int64_t tokens_;
  ValueId positions_ = kNoValue, first_ = kNoValue, mask_ = kNoValue, cos_ = kNoValue, sin_ = kNoValue;
};

// Zeros for all caches, once per session.
void AddInitialization(const DecoderSizes& s, Module& module) {
  Function& f = module.Add("initialize_cache");
  Net net(f);
  const auto dim = [](int64_t d) { return static_cast<int32_t>(d); };
  const ValueId dims = net.Integers({1, dim(s.capacity), dim(s.kv_heads), dim(s.head)});
  const ValueId zeros = net.Node(Op::kFill, {dims, net.Scalar(0)}, {1, s.capacity, s.kv_heads, s.head});
  for (int64_t layer = 0; layer < s.layers; ++layer)
    for (const char* name : {"kv_cache_k_", "kv_cache_v_"}) {
      const ValueId handle = f.AddNode(Op::kVarHandle, {}, {{DType::kResource, Shape::Scalar()}},
                                       MakeAttrs("shared_name", name + std::to_string(layer)))
                                 .results[0];
      f.AddNode(Op::kAssignVariable, {handle, zeros}, {});
    }
}

}  // namespace

std::string_view Name(DecoderWeights weights) {
  switch (weights) {
    case DecoderWeights::kFloats: return "f32";
    case DecoderWeights::kBytes: return "int8";
    case DecoderWeights::kNibbles: return "int4";
  }
  return "";
}

float ValueAt(const Weights& w, size_t i) {
  if (w.type.dtype == DType::kF32) return w.data.As<float>()[i];
  const size_t columns = static_cast<size_t>(w.type.shape[1]);
  const float scale = w.quant->scales[i / columns];
  if (w.type.dtype == DType::kI8) return scale * static_cast<float>(w.data.As<int8_t>()[i]);
  const int half = w.data.As<uint8_t>()[i / 2] >> (i % 2 * 4) & 0xF;
  return scale * static_cast<float>((half ^ 8) - 8);
}

size_t Decoder::bytes_per_token() const {
  size_t bytes = 0;
  const auto add = [&](const Weights& w) {
    bytes += w.data.size() + (w.quant ? w.quant->scales.size() * sizeof(float) : 0);
  };
  for (const DecoderLayer& layer : layers)
    for (const Weights* w : {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down})
      add(*w);
  add(logits);
  return bytes;
}

Decoder MakeDecoder(const DecoderSizes& s, DecoderWeights kind) {
  WeightSource source;
  const auto matrix = [&](int64_t outputs, int64_t inputs) {
    if (kind == DecoderWeights::kFloats) return source.Float({outputs, inputs}, inputs);
    return kind == DecoderWeights::kBytes ? source.Int8({outputs, inputs}, inputs)
                                          : source.Int4({outputs, inputs}, inputs);
  };
  const auto norm = [&] {
    Weights w = source.Float({s.width}, 1);  // in [-1, 1)
    w.data = Buffer::Make(w.data.size(), [&](std::span<std::byte> bytes) {
      auto* const to = reinterpret_cast<float*>(bytes.data());
      for (size_t i = 0; i < static_cast<size_t>(s.width); ++i) to[i] = 1 + 0.25f * w.data.As<float>()[i];
    });
    return w;
  };
  const Dims table = {s.vocabulary, s.width};
  Decoder d{s,
            kind == DecoderWeights::kFloats ? source.Float(table, 1) : source.Int8(table, 1),
            norm(),
            matrix(s.vocabulary, s.width),
            {}};
  const int64_t rows = s.heads * s.head, shared = s.kv_heads * s.head;
  for (int64_t i = 0; i < s.layers; ++i)
    d.layers.push_back({norm(), matrix(rows, s.width), matrix(shared, s.width), matrix(shared, s.width),
                        matrix(s.width, rows), norm(), matrix(s.ffn, s.width), matrix(s.ffn, s.width),
                        matrix(s.width, s.ffn)});
  return d;
}

std::unique_ptr<Module> ToModule(const Decoder& decoder) {
  auto module = std::make_unique<Module>();
  module->source = "decoder.tflite";
  Writer(decoder, *module, "prefill", decoder.sizes.prompt).Write();
  Writer(decoder, *module, "decode", 1).Write();
  AddInitialization(decoder.sizes, *module);
  return module;
}

}  // namespace fusebox::bench
