// SPDX-License-Identifier: Apache-2.0
// Scales of elements that ops move, and elements of 4 bits.
#include "host/eval/moved.h"

#include <gmock/gmock.h>

#include <cmath>

namespace fusebox {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::shared_ptr<Registry> OwnKernels() {
  Config config;
  config.search_default_path = false;
  auto registry = Registry::Create(config);
  EXPECT_TRUE(registry) << registry.error().message;
  return *registry;
}

std::shared_ptr<const Quant> Scales(std::vector<float> scales, int32_t axis = 0, int32_t block_size = 0) {
  Quant quant;
  quant.zero_points = std::vector<int64_t>(scales.size());
  quant.scales = std::move(scales);
  quant.axis = axis;
  quant.block_size = block_size;
  return std::make_shared<const Quant>(std::move(quant));
}

// One op on i8 constants, numbered from 0, folded.
class Mover {
 public:
  ValueId Data(Shape shape, std::shared_ptr<const Quant> quant) {
    std::vector<int8_t> values(static_cast<size_t>(*shape.element_count()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int8_t>(i);
    const ValueId v = f_.AddConst(DType::kI8, std::move(shape), std::move(values));
    f_.value(v).quant = std::move(quant);
    return v;
  }
  ValueId Ints(std::vector<int32_t> values, bool scalar = false) {
    const auto n = static_cast<int64_t>(values.size());
    return f_.AddConst(DType::kI32, scalar ? Shape::Scalar() : Shape{n}, std::move(values));
  }
  // Error of MoveQuant, empty: none. `axis`: an attribute.
  std::string Run(Op op, std::vector<ValueId> operands, size_t results = 1, Attrs attrs = {}) {
    Node& node = f_.AddNode(op, std::move(operands), std::vector<Type>(results), std::move(attrs));
    f_.outputs = node.results;
    const auto registry = OwnKernels();
    if (const Status inferred = InferNode(*registry, module_, f_, node); !inferred)
      return inferred.error().message;
    if (const Status moved = MoveQuant(*registry, f_, node); !moved) return moved.error().message;
    EXPECT_TRUE(Fold(*registry, module_, f_));
    return "";
  }
  const Value& out(size_t i = 0) const { return f_.value(f_.outputs[i]); }
  Function& f() { return f_; }

 private:
  Module module_;
  Function& f_ = module_.Add("main");
};

Attrs With(const char* key, int64_t value) {
  Attrs attrs;
  attrs.Set(key, value);
  return attrs;
}

TEST(MoveQuant, TheAxisFollowsTheChannels) {
  Mover transpose;
  EXPECT_EQ(
      transpose.Run(Op::kTranspose, {transpose.Data({2, 3}, Scales({1, 2, 4}, 1)), transpose.Ints({1, 0})}),
      "");
  EXPECT_TRUE(transpose.out().is_const());
  EXPECT_EQ(transpose.out().quant->axis, 0);
  EXPECT_THAT(transpose.out().quant->scales, ElementsAre(1, 2, 4));
  EXPECT_THAT(transpose.out().data.As<int8_t>(), ElementsAre(0, 3, 1, 4, 2, 5));
  Mover reshape;
  EXPECT_EQ(reshape.Run(Op::kReshape, {reshape.Data({3, 2}, Scales({1, 2, 4})), reshape.Ints({1, 3, 2, 1})}),
            "");
  EXPECT_EQ(reshape.out().quant->axis, 1);
  Mover slice;
  EXPECT_EQ(slice.Run(Op::kSlice,
                      {slice.Data({4, 2}, Scales({1, 2, 4, 8})), slice.Ints({1, 0}), slice.Ints({2, 2})}),
            "");
  EXPECT_THAT(slice.out().quant->scales, ElementsAre(2, 4));
  Mover gather;
  EXPECT_EQ(gather.Run(Op::kGather, {gather.Data({3, 2}, Scales({1, 2, 4})), gather.Ints({2, 2, 0})}), "");
  EXPECT_THAT(gather.out().quant->scales, ElementsAre(4, 4, 1));
  Mover split;
  EXPECT_EQ(split.Run(Op::kSplit, {split.Ints({0}, true), split.Data({4, 2}, Scales({1, 2, 4, 8}))}, 2,
                      With("num_splits", 2)),
            "");
  EXPECT_THAT(split.out(0).quant->scales, ElementsAre(1, 2));
  EXPECT_THAT(split.out(1).quant->scales, ElementsAre(4, 8));
  Mover pad;
  const ValueId around = pad.f().AddConst<int32_t>(DType::kI32, {2, 2}, {0, 0, 1, 1});
  EXPECT_EQ(pad.Run(Op::kPad, {pad.Data({2, 2}, Scales({1, 2})), around}), "");
  EXPECT_THAT(pad.out().quant->scales, ElementsAre(1, 2));
  EXPECT_THAT(pad.out().data.As<int8_t>(), ElementsAre(0, 0, 1, 0, 0, 2, 3, 0));
}

TEST(MoveQuant, EqualScalesOfChannelsStayScalesOfChannels) {
  Mover m;
  EXPECT_EQ(m.Run(Op::kTranspose, {m.Data({3, 3}, Scales({2, 2, 2}, 1)), m.Ints({1, 0})}), "");
  EXPECT_EQ(m.out().quant->axis, 0);
  EXPECT_THAT(m.out().quant->scales, ElementsAre(2, 2, 2));
}

TEST(MoveQuant, OneScaleStaysOneAlsoOfComputedOperands) {
  Mover m;
  const ValueId x = m.f().AddInput({DType::kI8, {-1, 3}});
  m.f().value(x).quant = Scales({0.5});
  EXPECT_EQ(m.Run(Op::kTranspose, {x, m.Ints({1, 0})}), "");
  EXPECT_THAT(m.out().quant->scales, ElementsAre(0.5));
}

TEST(MoveQuant, JoinsTheScalesOfSeveralOperands) {
  Mover per_row;
  EXPECT_EQ(per_row.Run(Op::kConcatenation,
                        {per_row.Data({2, 2}, Scales({1, 2})), per_row.Data({1, 2}, Scales({4}))}, 1,
                        With("axis", 0)),
            "");
  EXPECT_THAT(per_row.out().quant->scales, ElementsAre(1, 2, 4));
  Mover side_by_side;  // rows of equal scales fit together along the other axis
  EXPECT_EQ(
      side_by_side.Run(Op::kConcatenation,
                       {side_by_side.Data({2, 2}, Scales({1, 2})), side_by_side.Data({2, 1}, Scales({1, 2}))},
                       1, With("axis", 1)),
      "");
  EXPECT_THAT(side_by_side.out().quant->scales, ElementsAre(1, 2));
  EXPECT_EQ(side_by_side.out().quant->axis, 0);
}

TEST(MoveQuant, RefusesScalesThatFollowNoAxis) {
  Mover reshape;
  EXPECT_THAT(reshape.Run(Op::kReshape, {reshape.Data({4, 3}, Scales({1, 2, 4}, 1)), reshape.Ints({6, 2})}),
              HasSubstr("do not stay along one axis"));
  Mover mixed;
  EXPECT_THAT(mixed.Run(Op::kConcatenation, {mixed.Data({2, 2}, Scales({1, 2})), mixed.Data({2, 1}, nullptr)},
                        1, With("axis", 1)),
              HasSubstr("operand 1 has no scale, another one has"));
}

TEST(MoveQuant, BlocksStayWhole) {
  Mover rows;
  EXPECT_EQ(rows.Run(Op::kSlice, {rows.Data({3, 4}, Scales({1, 2, 3, 4, 5, 6}, 0, 2)), rows.Ints({1, 0}),
                                  rows.Ints({2, 4})}),
            "");
  EXPECT_EQ(rows.out().quant->block_size, 2);
  EXPECT_THAT(rows.out().quant->scales, ElementsAre(3, 4, 5, 6));
  Mover turned;
  EXPECT_THAT(turned.Run(Op::kTranspose,
                         {turned.Data({3, 4}, Scales({1, 2, 3, 4, 5, 6}, 0, 2)), turned.Ints({1, 0})}),
              HasSubstr("do not stay"));
}

TEST(MoveQuant, FoldsFourBits) {
  Mover m;
  // 0..5 in two rows of three, the second row begins in the middle of a byte; -8 is the lowest.
  const ValueId x = m.f().AddConst<uint8_t>(DType::kI4, {2, 3}, {0x10, 0x32, 0x85});
  m.f().value(x).quant = Scales({1, 2}, 0);
  EXPECT_EQ(m.Run(Op::kTranspose, {x, m.Ints({1, 0})}), "");
  EXPECT_EQ(m.out().type, (Type{DType::kI4, {3, 2}}));
  EXPECT_EQ(m.out().quant->axis, 1);
  EXPECT_THAT(m.out().data.As<uint8_t>(), ElementsAre(0x30, 0x51, 0x82));
}

// As in a damaged file.
TEST(MoveQuant, OperandsAndResultsMayBeAbsent) {
  Mover split;
  const ValueId x = split.f().AddConst<uint8_t>(DType::kI4, {2, 2}, {0x10, 0x32});
  Node& node =
      split.f().AddNode(Op::kSplit, {split.Ints({0}, true), x}, std::vector<Type>(2), With("num_splits", 2));
  node.results[0] = kNoValue;
  const auto registry = OwnKernels();
  EXPECT_TRUE(InferNode(*registry, Module(), split.f(), node));
  EXPECT_EQ(split.f().value(node.results[1]).type, (Type{DType::kI4, {1, 2}}));
  Mover join;
  const ValueId y = join.f().AddConst<uint8_t>(DType::kI4, {1, 2}, {0x10});
  EXPECT_NE(join.Run(Op::kConcatenation, {kNoValue, y}, 1, With("axis", 0)), "");
}

}  // namespace
}  // namespace fusebox
