// SPDX-License-Identifier: Apache-2.0
// Products and cache updates with runtime parameters, as litert-torch writes them: their bodies add zeros
// that are computed from the parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "host/graph/rewriter.h"
#include "tests/plugins/nn/site.h"

namespace fusebox::nn_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

void ExpectOps(const Site& s, const std::string& ops) {
  EXPECT_EQ(s.Ops(), ops);
  for (uint64_t seed = 1; seed < 4; ++seed)
    EXPECT_THAT(s.Verified(seed), StartsWith("agrees (")) << "seed " << seed;
}

// The sum of the parameters times `factor`, as a scalar.
ValueId Zero(Site& s, ValueId parameters, DType dtype = DType::kF32, int32_t factor = 0) {
  const Type scalar{DType::kI32, Shape::Scalar()};
  const auto rank = static_cast<int32_t>(s.DimsOf(parameters).size());
  std::vector<int32_t> axes;
  for (int32_t d = 0; d < rank; ++d) axes.push_back(d);
  const ValueId sum = s.Typed(Op::kSum, {parameters, s.Ints(axes)}, scalar);
  const ValueId none = s.BodyConstant({scalar, Buffer::Of<int32_t>(std::vector<int32_t>{factor})});
  const ValueId zero = s.Typed(Op::kMul, {sum, none}, scalar);
  return s.Typed(Op::kCast, {zero}, {dtype, Shape::Scalar()},
                 MakeAttrs("in_data_type", DType::kI32, "out_data_type", dtype));
}

ValueId Parameters(Site& s) { return s.Operand({1, 1, 1, 7}, DType::kI32); }

struct BmmForm {
  Dims a = {1, 2, 3, 8}, b = {1, 2, 5, 8};
  bool transposes = false;  // instead of adj_y
  int32_t factor = 0;
};

Site RuntimeBmm(const BmmForm& f) {
  Site s("odml.runtime_bmm");
  s.attrs = MakeAttrs("is_global", true, "is_src", false, "rhs_cache_update", true);
  const ValueId a = s.Operand(f.a), b = s.Operand(f.b), parameters = Parameters(s);
  const Dims out = {f.a[0], f.a[1], f.a[2], f.b[2]};
  const ValueId product =
      f.transposes ? s.Add(Op::kBatchMatmul, {a, s.Transpose(b, {0, 1, 3, 2})}, out)
                   : s.Add(Op::kBatchMatmul, {a, b}, out, MakeAttrs("adj_x", false, "adj_y", true));
  s.Return(s.Binary(Op::kAdd, product, Zero(s, parameters, DType::kF32, f.factor)));
  return s;
}

TEST(RuntimeBmm, IsAProduct) {
  ExpectOps(RuntimeBmm({}), "BATCH_MATMUL");
  ExpectOps(RuntimeBmm({.transposes = true}), "BATCH_MATMUL");
  ExpectOps(RuntimeBmm({.a = {1, 1, 1, 64}, .b = {1, 1, 17, 64}}), "BATCH_MATMUL");
  ExpectOps(RuntimeBmm({.a = {-1, 2, 3, 5}, .b = {-1, 2, 7, 5}}), "BATCH_MATMUL");
}

TEST(RuntimeBmm, DeclinesWithTheReason) {
  EXPECT_THAT(RuntimeBmm({.factor = 1}).Ops(), HasSubstr("BODY: it is no product of its operands"));
  Site active = Site("odml.runtime_bmm");  // multiplies the first three keys only
  const ValueId a = active.Operand({1, 2, 3, 8}), b = active.Operand({1, 2, 5, 8});
  Parameters(active);
  const ValueId part =
      active.Add(Op::kSlice, {b, active.Ints({0, 0, 0, 0}), active.Ints({1, 2, 3, 8})}, {1, 2, 3, 8});
  active.Return(active.Add(Op::kBatchMatmul, {a, part}, {1, 2, 3, 3}, MakeAttrs("adj_y", true)));
  EXPECT_THAT(active.Ops(), HasSubstr("BODY: it changes an operand by SLICE"));
  Site bytes("odml.runtime_bmm");
  const ValueId x = bytes.Operand({1, 2, 3, 8}), y = bytes.Operand({1, 2, 5, 8}, DType::kI8);
  Parameters(bytes);
  bytes.QuantizeOperand(1, 0.1F, 0);
  bytes.Return(bytes.Add(Op::kBatchMatmul, {x, bytes.Add(Op::kDequantize, {y}, {1, 2, 5, 8})}, {1, 2, 3, 5},
                         MakeAttrs("adj_y", true)));
  EXPECT_THAT(bytes.Ops(), HasSubstr("DTYPE: is i8, expected f32 (operand 1)"));
}

enum class Place { kOperand, kPacked, kOther };

struct UpdateForm {
  int64_t heads = 2, count = 3, capacity = 7, size = 4;
  DType dtype = DType::kF32;
  Place place = Place::kPacked;
  bool reshapes = false;  // one token: the transpose is a reshape
  bool late = false;      // zeros are added to the transposed values
  bool swaps = true;      // k and v are transposed as they should be
  bool ring = false;
};

Type TypeOf(const UpdateForm& f, Dims dims) { return {f.dtype, Shape(std::move(dims))}; }

ValueId PlaceOf(Site& s, const UpdateForm& f, ValueId indices) {
  if (f.place == Place::kOperand) return indices;
  std::vector<ValueId> elements;
  for (int32_t i = 0; i < 4; ++i) {
    const ValueId one =
        s.Typed(Op::kSlice, {indices, s.Ints({f.place == Place::kOther ? 0 : i}), s.Ints({1})},
                {DType::kI32, Shape({1})});
    elements.push_back(s.Typed(Op::kReshape, {one, s.Ints({})}, {DType::kI32, Shape::Scalar()}));
  }
  return s.Typed(Op::kPack, elements, {DType::kI32, Shape({4})},
                 MakeAttrs("values_count", int64_t{4}, "axis", int64_t{0}));
}

Site CacheUpdate(const UpdateForm& f) {
  Site s("odml.cache_update");
  s.attrs = MakeAttrs("kv_cache_batch_size", f.heads, "cache_size", f.capacity, "head_size", f.size,
                      "is_ring_buffer", f.ring);
  const Dims update = {1, f.heads, f.count, f.size}, turned = {1, f.heads, f.size, f.count};
  const ValueId k = s.Operand(update, f.dtype), v = s.Operand(update, f.dtype);
  const ValueId parameters = Parameters(s);
  const ValueId k_cache = s.Operand({1, f.heads, f.capacity, f.size}, f.dtype);
  const ValueId v_cache = s.Operand({1, f.heads, f.size, f.capacity}, f.dtype);
  const ValueId k_place = s.Operand({4}, DType::kI32), v_place = s.Operand({4}, DType::kI32);
  const ValueId zero = Zero(s, parameters, f.dtype);
  const auto added = [&](ValueId x, const Dims& dims) {
    return s.Typed(Op::kAdd, {x, zero}, TypeOf(f, dims));
  };
  const auto moved = [&](ValueId x) {
    const std::vector<int32_t> order =
        f.swaps ? std::vector<int32_t>{0, 1, 3, 2} : std::vector<int32_t>{0, 1, 2, 3};
    if (f.reshapes)
      return s.Typed(Op::kReshape, {x, s.Ints({turned.begin(), turned.end()})}, TypeOf(f, turned));
    return s.Typed(Op::kTranspose, {x, s.Ints(order)}, TypeOf(f, turned));
  };
  const ValueId k_new = s.Typed(Op::kDynamicUpdateSlice, {k_cache, added(k, update), PlaceOf(s, f, k_place)},
                                TypeOf(f, {1, f.heads, f.capacity, f.size}));
  const ValueId v_update = f.late ? added(moved(v), turned) : moved(added(v, update));
  const ValueId v_new = s.Typed(Op::kDynamicUpdateSlice, {v_cache, v_update, PlaceOf(s, f, v_place)},
                                TypeOf(f, {1, f.heads, f.size, f.capacity}));
  s.ReturnAll({k_new, v_new});
  return s;
}

constexpr char kUpdates[] = "DYNAMIC_UPDATE_SLICE TRANSPOSE DYNAMIC_UPDATE_SLICE";

TEST(CacheUpdate, AreUpdatesOfSlices) {
  ExpectOps(CacheUpdate({}), kUpdates);
  ExpectOps(CacheUpdate({.place = Place::kOperand}), kUpdates);
  ExpectOps(CacheUpdate({.late = true}), kUpdates);
  ExpectOps(CacheUpdate({.heads = 1, .count = 1, .capacity = 1, .size = 1}), kUpdates);
  ExpectOps(CacheUpdate({.heads = 3, .count = 1, .capacity = 9, .size = 5, .reshapes = true}), kUpdates);
  ExpectOps(CacheUpdate({.heads = 3, .count = 1, .size = 5, .reshapes = true, .late = true}), kUpdates);
  ExpectOps(CacheUpdate({.dtype = DType::kI32}), kUpdates);
}

TEST(CacheUpdate, DeclinesWithTheReason) {
  EXPECT_THAT(CacheUpdate({.ring = true}).Ops(),
              HasSubstr("ATTR: has no counterpart in DYNAMIC_UPDATE_SLICE (attr is_ring_buffer)"));
  EXPECT_THAT(CacheUpdate({.place = Place::kOther}).Ops(), HasSubstr("it computes the place of an update"));
  EXPECT_THAT(CacheUpdate({.count = 4, .swaps = false}).Ops(),
              HasSubstr("it transposes an update otherwise"));
  Site scaled = CacheUpdate({.dtype = DType::kI8});
  scaled.QuantizeOperand(3, 0.1F, 0);
  EXPECT_THAT(scaled.Ops(), HasSubstr("QUANT: is quantized (operand 3)"));
}

}  // namespace
}  // namespace fusebox::nn_test
