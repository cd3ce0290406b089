// SPDX-License-Identifier: Apache-2.0
// Lists of elements whose shape only a run knows: it comes from what the elements are computed from.
#include <gmock/gmock.h>

#include <functional>

#include "tests/converter/passes/bench.h"

namespace fusebox::converter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Type kListType{DType::kVariant, Shape::Scalar()}, kStep{DType::kI32, Shape::Scalar()};

// for i < 3: list[i] = item(body, i, variables), and the variables go on as `next` says (empty: unchanged). Inputs: the variables' types.
struct OpenList : Bench {
  using Body = std::function<ValueId(Function&, ValueId, std::vector<ValueId>&)>;
  Function& f = Add("main");

  explicit OpenList(const std::vector<Type>& given, const Body& step, int32_t length = 3) {
    std::vector<ValueId> inputs;
    for (const Type& type : given) inputs.push_back(f.AddInput(type));
    const ValueId shape = f.AddConst<int32_t>(DType::kI32, {1}, {-1});
    const ValueId size = f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {length});
    const ValueId list = f.AddNode(Op::kTensorListReserve, {shape, size}, {kListType}).results[0];
    const auto results = Loop(f, "loop", inputs, list, step, length == 0);
    f.outputs = f.AddNode(Op::kTensorListStack, {results[1], shape}, {{DType::kF32, Shape()}}).results;
    for (size_t i = 2; i < results.size(); ++i) f.outputs.push_back(results[i]);
    Sign(f);
  }

  // Of the loop: the counter, the list, the variables.
  std::vector<ValueId> Loop(Function& outer, const std::string& name, const std::vector<ValueId>& variables,
                            ValueId list, const Body& step, bool grows) {
    Function &cond = Add(name + "_cond"), &body = Add(name + "_body");
    std::vector<Type> types = {kStep, kListType};
    for (const ValueId v : variables) types.push_back(outer.value(v).type);
    for (Function* inside : {&cond, &body})
      for (const Type& type : types) inside->AddInput(type);
    const ValueId three = cond.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {3});
    cond.outputs =
        cond.AddNode(Op::kLess, {cond.inputs[0], three}, {{DType::kBool, Shape::Scalar()}}).results;
    std::vector<ValueId> carried(body.inputs.begin() + 2, body.inputs.end());
    const ValueId item = step(body, body.inputs[0], carried);
    Node& set = body.AddNode(Op::kTensorListSetItem, {body.inputs[1], body.inputs[0], item}, {kListType});
    if (grows) set.attrs.Set("resize_if_index_out_of_bounds", true);
    const ValueId written = set.results[0];
    const ValueId one = body.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {1});
    body.outputs = {body.AddNode(Op::kAdd, {body.inputs[0], one}, {kStep}).results[0], written};
    body.outputs.insert(body.outputs.end(), carried.begin(), carried.end());
    const ValueId zero = outer.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {0});
    std::vector<ValueId> operands = {zero, list};
    operands.insert(operands.end(), variables.begin(), variables.end());
    const Node& loop =
        outer.AddNode(Op::kWhile, operands, types,
                      Ref("cond_subgraph_index", name + "_cond", "body_subgraph_index", name + "_body"));
    return {loop.results.begin(), loop.results.end()};
  }

  std::string Lower() {
    if (std::string error = Run(LowerTensorLists); !error.empty()) return error;
    return Notes() + Run(RequireLegal);
  }
  std::string Failure(const std::vector<Tensor>& inputs) {
    const auto program = run::Program::Create(module, BuiltIn());
    if (!program) return program.error().message;
    const auto outputs = (*run::Runner::Create(**program, 1))->Run("main", inputs);
    return outputs ? "" : outputs.error().message;
  }
};

ValueId Sum(Function& f, ValueId a, ValueId b, std::vector<int64_t> dims) {
  return f.AddNode(Op::kAdd, {a, b}, {F32(std::move(dims))}).results[0];
}

// x[i] of a tensor [3, batch, 2] that the loop takes in and leaves as it is.
TEST(OpenLists, OfWhatIsReadStepByStep) {
  OpenList bench({F32({3, -1, 2})}, [](Function& body, ValueId i, std::vector<ValueId>& in) {
    const ValueId x = body.AddNode(Op::kGather, {in[0], i}, {F32({-1, 2})}).results[0];
    const ValueId w = body.AddConst<float>(DType::kF32, {3, 2}, {1, 0, 0, 1, 1, 1});
    const ValueId y = body.AddNode(Op::kFullyConnected, {x, w, kNoValue}, {F32({-1, 3})}).results[0];
    return body.AddNode(Op::kTanh, {y}, {F32({-1, 3})}).results[0];
  });
  bench.f.outputs.resize(1);
  bench.module.signatures[0].output_names.resize(1);
  EXPECT_EQ(bench.Lower(), "") << ToText(bench.module);
  for (const int64_t batch : {1, 2, 4}) {
    const std::vector<float> ones(static_cast<size_t>(3 * batch * 2), 1);
    const auto out = bench.Compute("main", {Floats({3, batch, 2}, ones)});
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].type.shape, Shape({3, batch, 3}));
    EXPECT_NEAR(FloatsOf(out[0]).back(), 0.9640, 1e-4);
  }
}

TEST(OpenLists, GrowWithTheirLoop) {
  const auto step = [](Function& body, ValueId i, std::vector<ValueId>& in) {
    const ValueId x = body.AddNode(Op::kGather, {in[0], i}, {F32({-1})}).results[0];
    return in[1] = Sum(body, x, in[1], {-1});
  };
  for (const int32_t length : {0, 3}) {
    OpenList bench({F32({3, -1}), F32({-1})}, step, length);
    EXPECT_EQ(bench.Lower(), "") << ToText(bench.module);
    const auto out = bench.Compute("main", {Floats({3, 2}, {1, 2, 3, 4, 5, 6}), Floats({2}, {10, 20})});
    ASSERT_EQ(out.size(), 3u) << ToText(bench.module);
    EXPECT_EQ(out[0].type.shape, Shape({3, 2}));
    EXPECT_THAT(FloatsOf(out[0]), ElementsAre(11, 22, 14, 26, 19, 32));
  }
}

// Of two dimensions that are broadcast, the one that is not 1, whichever it is in a run.
TEST(OpenLists, OfABroadcast) {
  OpenList bench({F32({3, -1}), F32({-1})}, [](Function& body, ValueId i, std::vector<ValueId>& in) {
    return Sum(body, body.AddNode(Op::kGather, {in[0], i}, {F32({-1})}).results[0], in[1], {-1});
  });
  EXPECT_EQ(bench.Lower(), "") << ToText(bench.module);
  auto out = bench.Compute("main", {Floats({3, 2}, {1, 2, 3, 4, 5, 6}), Floats({1}, {10})});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_THAT(FloatsOf(out[0]), ElementsAre(11, 12, 13, 14, 15, 16));
  out = bench.Compute("main", {Floats({3, 1}, {1, 2, 3}), Floats({2}, {10, 20})});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_THAT(FloatsOf(out[0]), ElementsAre(11, 21, 12, 22, 13, 23));
  out = bench.Compute("main", {Floats({3, 0}, {}), Floats({1}, {10})});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0].type.shape, Shape({3, 0}));
}

// What starts with one row and is broadcast to more by the first step tells nothing; what it is added to does.
TEST(OpenLists, OfAVariableThatIsBroadcast) {
  OpenList bench({F32({3, -1}), F32({1})}, [](Function& body, ValueId i, std::vector<ValueId>& in) {
    for (Type* type : {&body.value(in[1]).type}) *type = F32({-1});
    return in[1] = Sum(body, body.AddNode(Op::kGather, {in[0], i}, {F32({-1})}).results[0], in[1], {-1});
  });
  for (const auto& node : bench.f.nodes)
    if (node->is(Op::kWhile)) bench.f.value(node->results[3]).type = F32({-1});
  bench.module.Find("loop_cond")->value(bench.module.Find("loop_cond")->inputs[3]).type = F32({-1});
  EXPECT_EQ(bench.Lower(), "") << ToText(bench.module);
  const auto out = bench.Compute("main", {Floats({3, 2}, {1, 2, 3, 4, 5, 6}), Floats({1}, {10})});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_THAT(FloatsOf(out[0]), ElementsAre(11, 12, 14, 16, 19, 22));
}

// A loop that gives its variable another shape on the way fails; it does not misplace what it writes.
TEST(OpenLists, OfAVariableThatChangesItsShape) {
  OpenList bench({F32({-1}), F32({-1})}, [](Function& body, ValueId, std::vector<ValueId>& in) {
    const ValueId item = body.AddNode(Op::kTanh, {in[1]}, {F32({-1})}).results[0];
    in[1] = in[0];
    return item;
  });
  EXPECT_EQ(bench.Lower(), "") << ToText(bench.module);
  EXPECT_EQ(bench.Failure({Floats({2}, {1, 2}), Floats({2}, {3, 4})}), "");
  EXPECT_THAT(bench.Failure({Floats({1}, {1}), Floats({2}, {3, 4})}), HasSubstr("RESHAPE"));
}

// A loop in a loop writes to the outer one's list.
TEST(OpenLists, GoIntoInnerLoops) {
  OpenList bench({F32({3, -1})}, [](Function& body, ValueId i, std::vector<ValueId>& in) {
    return body.AddNode(Op::kGather, {in[0], i}, {F32({-1})}).results[0];
  });
  // The body's write becomes a loop that writes the same row three times.
  Function& body = *bench.module.Find("loop_body");
  size_t at = 0;
  while (!body.nodes[at]->is(Op::kTensorListSetItem)) ++at;
  const ValueId row = body.nodes[at]->operands[2], old = body.nodes[at]->results[0];
  std::unique_ptr<Node> rest = std::move(body.nodes.back());
  body.nodes.resize(at);
  const auto inner = bench.Loop(
      body, "inner", {row}, body.inputs[1],
      [](Function& f, ValueId, std::vector<ValueId>& in) {
        return f.AddNode(Op::kNeg, {in[0]}, {F32({-1})}).results[0];
      },
      false);
  body.nodes.push_back(std::move(rest));
  body.ReplaceUses(old, inner[1]);
  EXPECT_EQ(bench.Lower(), "") << ToText(bench.module);
  const auto out = bench.Compute("main", {Floats({3, 2}, {1, 2, 3, 4, 5, 6})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_THAT(FloatsOf(out[0]), ElementsAre(-5, -6, -5, -6, -5, -6));
}

// Items whose sizes need not be the same are not told by the first of them.
TEST(OpenLists, RefuseItemsThatMayDiffer) {
  for (const bool same : {true, false}) {
    Bench bench;
    Function& f = bench.Add("main");
    const ValueId shape = f.AddConst<int32_t>(DType::kI32, {1}, {-1}),
                  two = f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {2});
    const ValueId x = f.AddInput(F32({-1})), y = f.AddInput(F32({-1}));
    ValueId list = f.AddNode(Op::kTensorListReserve, {shape, two}, {kListType}).results[0];
    const ValueId twice = Sum(f, x, x, {-1});
    for (const auto& [i, item] : {std::pair(0, x), std::pair(1, same ? twice : y)}) {
      const ValueId at = f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {i});
      list = f.AddNode(Op::kTensorListSetItem, {list, at, item}, {kListType}).results[0];
    }
    f.outputs = f.AddNode(Op::kTensorListStack, {list, shape}, {F32({2, -1})}).results;
    bench.Sign(f);
    EXPECT_EQ(bench.Run(LowerTensorLists), "");
    if (!same) {
      EXPECT_THAT(bench.Notes(), HasSubstr("not known"));
      continue;
    }
    EXPECT_EQ(bench.Notes(), "");
    const auto out = bench.Compute("main", {Floats({3}, {1, 2, 3}), Floats({1}, {0})});
    ASSERT_EQ(out.size(), 1u);
    EXPECT_THAT(FloatsOf(out[0]), ElementsAre(1, 2, 3, 2, 4, 6));
  }
}

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
};

TEST(OpenLists, OfWhatAnyOpComputes) {
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
TEST(OpenLists, RefuseSizesThatAreClampedOrRounded) {
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
TEST(OpenLists, AreNotMisledByEqualSizes) {
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
TEST(OpenLists, OfSizesThatTheLoopCarries) {
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
TEST(OpenLists, AreNotCheckedWhereTheShapeStays) {
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
TEST(OpenLists, OfAStateThatAnUnknownOpComputes) {
  OpenList bench({F32({-1})}, [](Function& body, ValueId, std::vector<ValueId>& in) {
    Node& cell = body.AddNode(Op::kCustom, {in[0]}, {F32({-1})});
    cell.name = "some.cell";
    return in[0] = cell.results[0];
  });
  EXPECT_EQ(bench.Lower(), "") << ToText(bench.module);
}

// Deeper than a stack, were each op asked through the next.
TEST(OpenLists, OfLongChains) {
  OpenList bench({F32({3, -1})}, [](Function& body, ValueId i, std::vector<ValueId>& in) {
    ValueId x = Op1(body, Op::kGather, {in[0], i}, {-1});
    for (int k = 0; k < 5'000; ++k) x = Op1(body, k % 2 ? Op::kTanh : Op::kSquare, {x}, {-1});
    return x;
  });
  EXPECT_EQ(bench.Lower(), "");
}

}  // namespace
}  // namespace fusebox::converter
