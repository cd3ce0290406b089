// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/nn_composites.h"

#include <cmath>

#include "host/graph/rewriter.h"

namespace fusebox::bench {
namespace {

using Dims = std::vector<int64_t>;

constexpr int64_t kHeads = 8, kShared = 2, kSize = 256;
constexpr Op kMultiply = Op::kBatchMatmul;
constexpr char kSecond[] = "second";  // a function that returns its second input

Type Real(Dims dims) { return {DType::kF32, Shape(std::move(dims))}; }

ValueId Ints(Function& f, const Dims& values) {
  return f.AddConst<int32_t>(DType::kI32, {static_cast<int64_t>(values.size())},
                             std::vector<int32_t>(values.begin(), values.end()));
}
ValueId Scalar(Function& f, float value) { return f.AddConst<float>(DType::kF32, Shape::Scalar(), {value}); }
ValueId Add(Function& f, Op op, std::vector<ValueId> operands, Type type, Attrs attrs = {}) {
  return f.AddNode(op, std::move(operands), {std::move(type)}, std::move(attrs)).results[0];
}
ValueId Reshape(Function& f, ValueId v, const Dims& dims) {
  return Add(f, Op::kReshape, {v, Ints(f, dims)}, {f.value(v).type.dtype, Shape(dims)});
}
ValueId Cast(Function& f, ValueId v, DType to) {
  const Type type = f.value(v).type;
  return Add(f, Op::kCast, {v}, {to, type.shape}, MakeAttrs("in_data_type", type.dtype, "out_data_type", to));
}

// Keeps the runtime's parameters in use.
ValueId Zero(Function& f, ValueId parameters) {
  const Type scalar{DType::kI32, Shape::Scalar()};
  const ValueId none = f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {0});
  const ValueId sum = Add(f, Op::kSum, {parameters, Ints(f, {0, 1, 2, 3})}, scalar);
  return Cast(f, Add(f, Op::kMul, {sum, none}, scalar), DType::kF32);
}
ValueId Parameters(Function& f) { return f.AddInput({DType::kI32, Shape({1, 1, 1, 7})}); }

void AddRope(Function& f, int64_t tokens) {
  const Dims swapped = {1, tokens, kHeads, kSize}, part = {1, tokens, kHeads, kSize / 2};
  const ValueId x = f.AddInput(Real({1, kHeads, tokens, kSize}));
  const ValueId positions = f.AddInput({DType::kI32, Shape({tokens})});
  std::vector<float> rates;
  for (int i = 0; i < kSize / 2; ++i)
    rates.push_back(std::pow(10000.0F, -2.0F * static_cast<float>(i) / kSize));
  const ValueId rate = f.AddConst<float>(DType::kF32, {1, 1, kSize / 2}, std::move(rates));
  const ValueId real = Cast(f, Reshape(f, positions, {1, tokens, 1}), DType::kF32);
  const ValueId angle = Add(f, Op::kMul, {real, rate}, Real({1, tokens, kSize / 2}));
  const auto spread = [&](Op op) {
    return Reshape(f, Add(f, op, {angle}, Real({1, tokens, kSize / 2})), {1, tokens, 1, kSize / 2});
  };
  const ValueId cosine = spread(Op::kCos), sine = spread(Op::kSin);
  const ValueId moved = Add(f, Op::kTranspose, {x, Ints(f, {0, 2, 1, 3})}, Real(swapped));
  const ValueId axis = f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {3});
  const auto halves =
      f.AddNode(Op::kSplit, {axis, moved}, {Real(part), Real(part)}, MakeAttrs("num_splits", int64_t{2}))
          .results;
  const auto combined = [&](Op op, ValueId a, ValueId b) {
    return Add(f, op, {Add(f, Op::kMul, {a, cosine}, Real(part)), Add(f, Op::kMul, {b, sine}, Real(part))},
               Real(part));
  };
  const ValueId joined =
      Add(f, Op::kConcatenation,
          {combined(Op::kSub, halves[0], halves[1]), combined(Op::kAdd, halves[1], halves[0])}, Real(swapped),
          MakeAttrs("axis", int64_t{3}));
  f.outputs = {Add(f, Op::kTranspose, {joined, Ints(f, {0, 2, 1, 3})}, Real({1, kHeads, tokens, kSize}))};
}

void AddAttention(Function& f, int64_t tokens, int64_t keys) {
  const int64_t group = kHeads / kShared;
  const Dims rows = {1, kShared, group * tokens, keys};
  const ValueId q = f.AddInput(Real({1, kHeads, tokens, kSize}));
  const ValueId k = f.AddInput(Real({1, kShared, keys, kSize})),
                v = f.AddInput(Real({1, kShared, kSize, keys}));
  const ValueId mask = f.AddInput({DType::kBool, Shape({1, 1, tokens, keys})});
  const ValueId zero = Zero(f, Parameters(f));
  const ValueId real = Cast(f, mask, DType::kF32);
  const Type copies = Real({1, group, tokens, keys});
  const ValueId joined =
      Add(f, Op::kConcatenation, std::vector<ValueId>(group, real), copies, MakeAttrs("axis", int64_t{1}));
  const ValueId seen = Add(f, Op::kNotEqual, {joined, Scalar(f, 0)}, {DType::kBool, copies.shape});
  const ValueId packed = Reshape(f, seen, {1, 1, group * tokens, keys});
  ValueId x = Reshape(f, q, {1, kShared, group * tokens, kSize});
  x = Add(f, kMultiply, {x, k}, Real(rows), MakeAttrs("adj_y", true));
  x = Add(f, Op::kAdd, {x, zero}, Real(rows));
  x = Add(f, Op::kSelectV2, {packed, x, Scalar(f, -10000)}, Real(rows));
  x = Add(f, Op::kSoftmax, {x}, Real(rows), MakeAttrs("beta", 1.0));
  x = Add(f, kMultiply, {x, v}, Real({1, kShared, group * tokens, kSize}), MakeAttrs("adj_y", true));
  x = Add(f, Op::kAdd, {x, zero}, Real({1, kShared, group * tokens, kSize}));
  f.outputs = {Reshape(f, x, {1, kHeads, tokens, kSize})};
}

void AddProduct(Function& f, int64_t tokens, int64_t keys) {
  const Type type = Real({1, kShared, tokens, keys});
  const ValueId a = f.AddInput(Real({1, kShared, tokens, kSize})),
                b = f.AddInput(Real({1, kShared, keys, kSize}));
  const ValueId product = Add(f, kMultiply, {a, b}, type, MakeAttrs("adj_y", true));
  f.outputs = {Add(f, Op::kAdd, {product, Zero(f, Parameters(f))}, type)};
}

void AddUpdate(Function& f, int64_t tokens, int64_t keys) {
  const Type update = Real({1, kShared, tokens, kSize}), turned = Real({1, kShared, kSize, tokens});
  const Type k_type = Real({1, kShared, keys, kSize}), v_type = Real({1, kShared, kSize, keys});
  const ValueId k = f.AddInput(update), v = f.AddInput(update);
  const ValueId zero = Zero(f, Parameters(f));
  const ValueId k_cache = f.AddInput(k_type), v_cache = f.AddInput(v_type);
  const Type place{DType::kI32, Shape({4})};
  const ValueId k_place = f.AddInput(place), v_place = f.AddInput(place);
  const ValueId k_new = Add(f, Op::kAdd, {k, zero}, update);
  const ValueId v_moved = Add(f, Op::kTranspose, {v, Ints(f, {0, 1, 3, 2})}, turned);
  const ValueId v_new = Add(f, Op::kAdd, {v_moved, zero}, turned);
  f.outputs = {Add(f, Op::kDynamicUpdateSlice, {k_cache, k_new, k_place}, k_type),
               Add(f, Op::kDynamicUpdateSlice, {v_cache, v_new, v_place}, v_type)};
}

// A row of the update at each position.
void AddRows(Function& f, int64_t tokens, int64_t keys) {
  const Type cache = Real({1, keys, kShared, kSize});
  const Type update = Real({1, tokens, kShared, kSize});
  const ValueId caches[] = {f.AddInput(cache), f.AddInput(cache)};
  const ValueId positions = f.AddInput({DType::kI32, Shape({tokens})});
  const ValueId places = Reshape(f, positions, {tokens, 1});
  const auto attrs = MakeAttrs("update_window_dims", Dims{0, 2, 3}, "inserted_window_dims", Dims{1},
                               "scatter_dims_to_operand_dims", Dims{1}, "index_vector_dim", int64_t{1},
                               "update_computation_subgraph_index", FunctionRef{kSecond});
  for (const ValueId one : caches)
    f.outputs.push_back(Add(f, Op::kStablehloScatter, {one, places, f.AddInput(update)}, cache, attrs));
}

}  // namespace

std::unique_ptr<Module> CompositeJob::Build(bool composite) const {
  auto module = std::make_unique<Module>();
  module->source = title;
  Function& main = module->Add("main");
  Function& second = module->Add(kSecond);
  second.AddInput(Real({}));
  second.outputs = {second.AddInput(Real({}))};
  if (!composite) return add_body(main), std::move(module);
  Function& body = module->Add("body");
  add_body(body);
  std::vector<ValueId> operands;
  for (const ValueId input : body.inputs) operands.push_back(main.AddInput(body.value(input).type));
  std::vector<Type> types;
  for (const ValueId output : body.outputs) types.push_back(body.value(output).type);
  Node& node = main.AddNode(is_custom_op ? Op::kCustom : Op::kStablehloComposite, operands, types, attrs);
  node.name = name;
  node.version = 1;
  if (!is_custom_op) node.body = "body";
  main.outputs = node.results;
  return module;
}

std::vector<CompositeJob> CompositeJobs() {
  constexpr char kRope[] = "odml.rope", kAttention[] = "odml.sdpa_transposed";
  const auto rope = [](int64_t tokens) { return [=](Function& f) { AddRope(f, tokens); }; };
  const auto attention = [](int64_t tokens, int64_t keys) {
    return [=](Function& f) { AddAttention(f, tokens, keys); };
  };
  const auto product = [](int64_t tokens, int64_t keys) {
    return [=](Function& f) { AddProduct(f, tokens, keys); };
  };
  const auto update = [](int64_t tokens, int64_t keys) {
    return [=](Function& f) { AddUpdate(f, tokens, keys); };
  };
  return {{"odml.rope, 1 token", kRope, {}, rope(1)},
          {"odml.rope, 1024 tokens", kRope, {}, rope(1024)},
          {"odml.sdpa_transposed, 1 token, 4096 keys", kAttention, {}, attention(1, 4096), 4096},
          {"odml.sdpa_transposed, 1 token, 512 of 4096 keys", kAttention, {}, attention(1, 4096), 512},
          {"odml.sdpa_transposed, 128 tokens, 1024 keys", kAttention, {}, attention(128, 1024), 1024},
          {"odml.runtime_bmm, 1 token, 4096 keys", "odml.runtime_bmm", {}, product(1, 4096)},
          {"odml.runtime_bmm, 256 tokens, 1024 keys", "odml.runtime_bmm", {}, product(256, 1024)},
          {"odml.cache_update, 256 tokens, 1024 keys", "odml.cache_update", {}, update(256, 1024)},
          {.title = "odml.update_external_kv_cache, 256 tokens, 1024 keys",
           .name = "odml.update_external_kv_cache",
           .attrs = {},
           .add_body = [](Function& f) { AddRows(f, 256, 1024); },
           .is_custom_op = true}};
}

}  // namespace fusebox::bench
