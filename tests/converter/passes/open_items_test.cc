// SPDX-License-Identifier: Apache-2.0
// Items of open lists, computed by any op: their sizes are found, or refused where they could mislead.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/converter/passes/open_list.h"

namespace fusebox::converter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// item = op(x[i]) with x [3,batch,2,2] and any op that has a kernel.
struct Through {
  const char* name;
  std::function<ValueId(Function&, ValueId)> apply;   // x[i]: [batch,2,2]
  std::function<std::vector<int64_t>(int64_t)> item;  // its shape, by the batch
};

ValueId Ints(Function& f, std::vector<int32_t> values) {
  const auto count = static_cast<int64_t>(values.size());
  return f.AddConst<int32_t>(DType::kI32, {count}, std::move(values));
}
ValueId Op1(Function& f, Op op, ValueIds operands, std::vector<int64_t> dims, Attrs attrs = {},
            DType dtype = DType::kF32) {
  return f.AddNode(op, std::move(operands), {{dtype, Shape(std::move(dims))}}, std::move(attrs)).results[0];
}
Attrs With(const char* key, AttrValue value) {
  Attrs attrs;
  attrs.Set(key, std::move(value));
  return attrs;
}
ValueId One(Function& f, int32_t value) { return f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {value}); }

const Through kThrough[] = {
    {"mirrored",
     [](Function& f, ValueId x) {
       const ValueId by = f.AddConst<int32_t>(DType::kI32, {3, 2}, {0, 0, 1, 1, 0, 0});
       return Op1(f, Op::kMirrorPad, {x, by}, {-1, 4, 2});
     },
     [](int64_t n) { return std::vector<int64_t>{n, 4, 2}; }},
    {"resized",
     [](Function& f, ValueId x) {
       x = Op1(f, Op::kExpandDims, {x, One(f, 3)}, {-1, 2, 2, 1});
       return Op1(f, Op::kResizeNearestNeighbor, {x, Ints(f, {3, 3})}, {-1, 3, 3, 1});
     },
     [](int64_t n) { return std::vector<int64_t>{n, 3, 3, 1}; }},
    {"scattered_to_depth",
     [](Function& f, ValueId x) {
       x = Op1(f, Op::kExpandDims, {x, One(f, 3)}, {-1, 2, 2, 1});
       return Op1(f, Op::kSpaceToDepth, {x}, {-1, 1, 1, 4}, With("block_size", int64_t{2}));
     },
     [](int64_t n) { return std::vector<int64_t>{n, 1, 1, 4}; }},
    {"largest",
     [](Function& f, ValueId x) {
       return f.AddNode(Op::kTopkV2, {x, One(f, 1)}, {F32({-1, 2, 1}), I32({-1, 2, 1})}).results[0];
     },
     [](int64_t n) { return std::vector<int64_t>{n, 2, 1}; }},
    {"chosen",
     [](Function& f, ValueId x) {
       const ValueId best =
           Op1(f, Op::kArgMax, {x, One(f, 2)}, {-1, 2}, With("output_type", DType::kI32), DType::kI32);
       return Op1(f, Op::kOneHot,
                  {best, One(f, 5), f.AddConst<float>(DType::kF32, Shape::Scalar(), {1}),
                   f.AddConst<float>(DType::kF32, Shape::Scalar(), {0})},
                  {-1, 2, 5}, With("axis", int64_t{-1}));
     },
     [](int64_t n) { return std::vector<int64_t>{n, 2, 5}; }},
    {"padded",
     [](Function& f, ValueId x) {
       const ValueId by = f.AddConst<int32_t>(DType::kI32, {3, 2}, {1, 2, 0, 0, 0, 0});
       return Op1(f, Op::kPad, {x, by}, {-1, 2, 2});
     },
     [](int64_t n) { return std::vector<int64_t>{n + 3, 2, 2}; }},
    {"flat", [](Function& f, ValueId x) { return Op1(f, Op::kReshape, {x, Ints(f, {-1})}, {-1}); },
     [](int64_t n) { return std::vector<int64_t>{4 * n}; }},
    {"flat_and_back",
     [](Function& f, ValueId x) {
       x = Op1(f, Op::kReshape, {x, Ints(f, {-1, 2})}, {-1, 2});
       x = Op1(f, Op::kTanh, {x}, {-1, 2});
       return Op1(f, Op::kReshape, {x, Ints(f, {-1, 2, 2})}, {-1, 2, 2});
     },
     [](int64_t n) { return std::vector<int64_t>{n, 2, 2}; }},
    {"shaped_as_it_was",  // as Tensordot does it: the dimensions picked by GATHER
     [](Function& f, ValueId x) {
       const ValueId shape = Op1(f, Op::kShape, {x}, {3}, With("out_type", DType::kI32), DType::kI32);
       const ValueId rows = Op1(f, Op::kGather, {shape, Ints(f, {0})}, {1}, {}, DType::kI32);
       const ValueId size = Op1(f, Op::kConcatenation, {rows, Ints(f, {4})}, {2}, {}, DType::kI32);
       return Op1(f, Op::kReshape, {x, size}, {-1, 4});
     },
     [](int64_t n) { return std::vector<int64_t>{n, 4}; }},
    {"twice_as_many_zeros",
     [](Function& f, ValueId x) {
       const ValueId shape = Op1(f, Op::kShape, {x}, {3}, With("out_type", DType::kI32), DType::kI32);
       const ValueId rows =
           Op1(f, Op::kStridedSlice, {shape, Ints(f, {0}), Ints(f, {1}), Ints(f, {1})}, {1}, {}, DType::kI32);
       const ValueId twice = Op1(f, Op::kMul, {rows, Ints(f, {2})}, {1}, {}, DType::kI32);
       return Op1(f, Op::kFill, {twice, f.AddConst<float>(DType::kF32, Shape::Scalar(), {0})}, {-1});
     },
     [](int64_t n) { return std::vector<int64_t>{2 * n}; }},
    {"filled_up",  // as detections are padded to a fixed number
     [](Function& f, ValueId x) {
       const ValueId zero = f.AddConst<float>(DType::kF32, Shape::Scalar(), {0});
       const ValueId shape = Op1(f, Op::kShape, {x}, {3}, With("out_type", DType::kI32), DType::kI32);
       const ValueId rows =
           Op1(f, Op::kStridedSlice, {shape, Ints(f, {0}), Ints(f, {1}), Ints(f, {1})}, {1}, {}, DType::kI32);
       const ValueId missing = Op1(f, Op::kSub, {Ints(f, {5045}), rows}, {1}, {}, DType::kI32);
       const ValueId here = Op1(f, Op::kFill, {rows, zero}, {-1});
       const ValueId more = Op1(f, Op::kFill, {missing, zero}, {-1});
       return Op1(f, Op::kConcatenation, {here, more}, {-1}, With("axis", int64_t{0}));
     },
     [](int64_t) { return std::vector<int64_t>{5045}; }},
};

TEST(OpenItems, OfWhatAnyOpComputes) {
  for (const Through& through : kThrough) {
    SCOPED_TRACE(through.name);
    OpenList bench({F32({3, -1, 2, 2})}, [&](Function& body, ValueId i, std::vector<ValueId>& in) {
      return through.apply(body, Op1(body, Op::kGather, {in[0], i}, {-1, 2, 2}));
    });
    EXPECT_EQ(bench.Lower(), "") << ToText(bench.module);
    for (const int64_t batch : {1, 2, 5, 5040}) {
      const auto out = bench.Compute(
          "main", {Floats({3, batch, 2, 2}, std::vector<float>(static_cast<size_t>(12 * batch), 1))});
      ASSERT_EQ(out.size(), 2u);
      std::vector<int64_t> wanted = through.item(batch);
      wanted.insert(wanted.begin(), 3);
      EXPECT_EQ(out[0].type.shape, Shape(wanted));
    }
  }
}

// Sizes that rise with the batch for a while, or every other time, are not mistaken for it.
TEST(OpenItems, RefuseSizesThatAreClampedOrRounded) {
  for (const auto& [end, step] :
       std::vector<std::pair<int32_t, int32_t>>{{3, 1}, {5040, 1}, {2'000'000, 1}, {0, 2}}) {
    OpenList bench({F32({3, -1})}, [&](Function& body, ValueId i, std::vector<ValueId>& in) {
      const ValueId x = Op1(body, Op::kGather, {in[0], i}, {-1});
      return Op1(body, Op::kStridedSlice, {x, Ints(body, {0}), Ints(body, {end}), Ints(body, {step})}, {-1},
                 With("end_mask", int64_t{end == 0}));
    });
    EXPECT_THAT(bench.Lower(), HasSubstr("not known")) << end << " " << step;
  }
}

// Sizes of the model that are also sizes that ops are tried at.
TEST(OpenItems, AreNotMisledByEqualSizes) {
  for (const int64_t size : {1, 2, 3, 5040, 10080, 15120, 5040 * 106'000}) {
    OpenList bench({F32({3, -1}), F32({size, 0})}, [&](Function& body, ValueId i, std::vector<ValueId>& in) {
      const ValueId x = Op1(body, Op::kGather, {in[0], i}, {-1});
      const ValueId sum = body.AddConst<float>(DType::kF32, Shape::Scalar(), {1});
      const ValueId rows = Op1(body, Op::kSum, {in[1], Ints(body, {1})}, {size});
      const ValueId scaled = Op1(body, Op::kMul, {x, sum}, {-1});
      return Op1(body, Op::kConcatenation,
                 {scaled, Op1(body, Op::kSlice, {rows, Ints(body, {0}), Ints(body, {1})}, {1})}, {-1},
                 With("axis", int64_t{0}));
    });
    EXPECT_EQ(bench.Lower(), "") << size;
    if (size > 100'000) continue;
    for (const int64_t n : {int64_t{4}, size}) {
      const auto out = bench.Compute(
          "main", {Floats({3, n}, std::vector<float>(static_cast<size_t>(3 * n), 1)), Floats({size, 0}, {})});
      ASSERT_EQ(out.size(), 3u);
      EXPECT_EQ(out[0].type.shape, Shape({3, n + 1}));
    }
  }
}

// The number of rows goes into the loop as a number.
TEST(OpenItems, OfSizesThatTheLoopCarries) {
  OpenList bench({F32({3, -1}), I32({})}, [](Function& body, ValueId, std::vector<ValueId>& in) {
    const ValueId size = Op1(body, Op::kReshape, {in[1], Ints(body, {1})}, {1}, {}, DType::kI32);
    return Op1(body, Op::kFill, {size, body.AddConst<float>(DType::kF32, Shape::Scalar(), {7})}, {-1});
  });
  Function& f = bench.f;
  const ValueId given = f.inputs[1];
  const ValueId shape =
      f.InsertNode(0, Op::kShape, {f.inputs[0]}, {I32({2})}, With("out_type", DType::kI32)).results[0];
  Attrs shrink = With("shrink_axis_mask", int64_t{1});
  const ValueId one = Ints(f, {1}), two = Ints(f, {2});
  const ValueId rows =
      f.InsertNode(1, Op::kStridedSlice, {shape, one, two, one}, {I32({})}, shrink).results[0];
  for (const auto& node : f.nodes)
    if (node->is(Op::kWhile)) std::replace(node->operands.begin(), node->operands.end(), given, rows);
  EXPECT_EQ(bench.Lower(), "") << ToText(bench.module);
  const auto out = bench.Compute(
      "main", {Floats({3, 2}, {1, 2, 3, 4, 5, 6}), {kStep, Buffer::Of<int32_t>(std::vector{0})}});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_THAT(FloatsOf(out[0]), ElementsAre(7, 7, 7, 7, 7, 7));
}

// A state that keeps its shape needs no check behind the loop.
TEST(OpenItems, AreNotCheckedWhereTheShapeStays) {
  for (const bool stays : {true, false}) {
    OpenList bench({F32({3, -1}), F32({-1})}, [&](Function& body, ValueId i, std::vector<ValueId>& in) {
      const ValueId x = Op1(body, Op::kGather, {in[0], i}, {-1});
      const ValueId item = Op1(body, Op::kTanh, {in[1]}, {-1});
      in[1] = stays ? Op1(body, Op::kNeg, {in[1]}, {-1}) : x;
      return item;
    });
    EXPECT_EQ(bench.Lower(), "");
    const Node* loop = nullptr;
    bool checked = false;
    for (const auto& node : bench.f.nodes) {
      if (node->is(Op::kWhile)) loop = node.get();
      checked |= loop && node->is(Op::kReshape) && node->operands[0] == loop->results[1];
    }
    EXPECT_EQ(checked, !stays) << ToText(bench.f);
  }
}

// Nothing is known of an op that no plugin has, but that its result is the next state.
TEST(OpenItems, OfAStateThatAnUnknownOpComputes) {
  OpenList bench({F32({-1})}, [](Function& body, ValueId, std::vector<ValueId>& in) {
    Node& cell = body.AddNode(Op::kCustom, {in[0]}, {F32({-1})});
    cell.name = "some.cell";
    return in[0] = cell.results[0];
  });
  EXPECT_EQ(bench.Lower(), "") << ToText(bench.module);
}

// Deeper than a stack, were each op asked through the next.
TEST(OpenItems, OfLongChains) {
  OpenList bench({F32({3, -1})}, [](Function& body, ValueId i, std::vector<ValueId>& in) {
    ValueId x = Op1(body, Op::kGather, {in[0], i}, {-1});
    for (int k = 0; k < 5'000; ++k) x = Op1(body, k % 2 ? Op::kTanh : Op::kSquare, {x}, {-1});
    return x;
  });
  EXPECT_EQ(bench.Lower(), "");
}

}  // namespace
}  // namespace fusebox::converter
