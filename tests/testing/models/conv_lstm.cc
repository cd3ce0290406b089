// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/models/conv_lstm.h"

#include "models/saved_model/saved_model_builder.h"

namespace fusebox::test_models {

using namespace models;
namespace {

using Sizes = std::vector<int64_t>;

Sizes Join(Sizes first, const Sizes& space, const Sizes& last) {
  first.insert(first.end(), space.begin(), space.end());
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

TensorValue Dims(const Sizes& dims) { return Ints(std::vector<int32_t>(dims.begin(), dims.end())); }

class ConvLstmLayer {
 public:
  ConvLstmLayer(SavedModelBuilder& model, Random& random, const ConvLstmOptions& options)
      : model_(model), o_(options), space_(o_.size.size()) {
    for (size_t d = 0; d < space_; ++d) {
      const int64_t reach = (o_.kernel[d] - 1) * o_.dilation + 1;
      state_size_.push_back(((o_.same ? o_.size[d] - 1 : o_.size[d] - reach) + o_.stride) / o_.stride);
    }
    const auto add = [&](const char* name, TensorValue value) {
      const std::string path = "layer_with_weights-0/cell/" + std::string(name);
      shapes_.push_back(value.shape);
      variables_.push_back(model.AddVariable("conv_lstm/" + std::string(name), std::move(value), path));
    };
    add("kernel", random.Weights(Join({}, o_.kernel, {o_.channels, 4 * o_.filters})));
    add("recurrent_kernel", random.Weights(Join({}, o_.kernel, {o_.filters, 4 * o_.filters})));
    if (o_.use_bias) add("bias", random.Uniform({4 * o_.filters}, -0.2f, 0.2f));
  }

  void Build(FunctionBuilder& f) {
    const bool time_major = o_.twist == ConvLstmOptions::Twist::kTimeMajor;
    const Sizes item = Join({}, o_.size, {o_.channels});
    Sizes dims = Join({o_.batch, o_.steps}, item, {});
    if (time_major) std::swap(dims[0], dims[1]);
    const Ref x = f.Arg("x", tf::DT_FLOAT, dims);
    f.SetScope("sequential/conv_lstm");
    const Ref state = ZeroState(f, x);
    Ref steps = time_major ? x : Exchanged(f, x);
    const Ref shape = f.Op("Shape", {steps}, {steps.shape.rank()}, {Attr("out_type", tf::DT_INT32)});
    const Ref count = Element(f, shape, 0);
    if (o_.go_backwards) steps = f.Op("ReverseV2", {steps, f.Const(Ints({0}), "axis")}, steps.shape);
    std::vector<Ref> out = Loop(f, steps, count, state);
    f.SetScope("");
    if (!o_.return_state) out.resize(1);
    f.Return(out);
  }

  std::vector<std::string> outputs() const {
    if (!o_.return_state) return {"output"};
    return {"output", "state_h", "state_c"};
  }

 private:
  Shape StateShape() const { return Join({o_.batch}, state_size_, {o_.filters}); }

  static Ref Element(GraphBuilder& g, const Ref& of, int index) {
    return g.Op("StridedSlice",
                {of, g.Const(Ints({index}), "stack"), g.Const(Ints({index + 1}), "stack_1"),
                 g.Const(Ints({1}), "stack_2")},
                kScalar, {Attr("shrink_axis_mask", 1)});
  }
  static Ref Exchanged(GraphBuilder& g, const Ref& v) {
    Sizes order = {1, 0};
    Sizes dims(v.shape.dims().begin(), v.shape.dims().end());
    for (int64_t i = 2; i < v.shape.rank(); ++i) order.push_back(i);
    std::swap(dims[0], dims[1]);
    return g.Op("Transpose", {v, g.Const(Dims(order), "transpose/perm")}, dims);
  }

  // Zeros: filled, or in Keras 2 the sum of all steps convolved by zeros.
  Ref ZeroState(FunctionBuilder& f, const Ref& x) const {
    if (o_.keras2) {
      const Ref zeros = f.Op("ZerosLike", {x}, x.shape);
      const Ref sum = f.Op("Sum", {zeros, f.Const(Int(1), "Sum/reduction_indices")},
                           Join({o_.batch}, o_.size, {o_.channels}));
      return Convolve(f, sum, f.Const(Zeros(Join({}, o_.kernel, {o_.channels, o_.filters})), "zeros"), false);
    }
    const Ref shape = f.Op("Shape", {x}, {x.shape.rank()}, {Attr("out_type", tf::DT_INT32)});
    std::vector<Ref> dims = {Element(f, shape, o_.twist == ConvLstmOptions::Twist::kTimeMajor ? 1 : 0)};
    for (const int64_t size : Join({}, state_size_, {o_.filters}))
      dims.push_back(f.Const(Int(static_cast<int32_t>(size)), "zeros/packed"));
    const Ref packed = f.Op("Pack", dims, {static_cast<int64_t>(dims.size())});
    return f.Op("Fill", {packed, f.Const(Float(0), "zeros/Const")}, StateShape());
  }

  Ref ListOf(FunctionBuilder& f, const Ref& steps) const {
    Sizes element(steps.shape.dims().begin() + 1, steps.shape.dims().end());
    return f.Op("TensorListFromTensor", {steps, f.Const(Dims(element), "element_shape")}, kScalar,
                {Attr("element_dtype", steps.dtype)});
  }

  std::vector<Ref> Loop(FunctionBuilder& f, const Ref& steps, const Ref& count, const Ref& state) {
    const Ref size = o_.return_sequences ? count : f.Const(Int(1), "num_elements");
    const Shape item = StateShape();
    const Sizes element(item.dims().begin(), item.dims().end());
    const Ref list = f.Op("TensorListReserve", {f.Const(Dims(element), "element_shape"), size}, kScalar,
                          {Attr("element_dtype", tf::DT_FLOAT)});
    std::vector<Ref> all = {f.Const(Int(0), "while/loop_counter"),
                            count,
                            f.Const(Int(0), "time"),
                            list,
                            state,
                            state,
                            count,
                            ListOf(f, steps)};
    for (const VariableRef v : variables_) all.push_back(f.Capture(v));
    const std::vector<Ref> loop = f.While(Condition(all), Body(all), all, true);
    const int64_t kept = o_.return_sequences ? o_.steps : 1;
    const Ref stack = f.Op("TensorListStack", {loop[3], f.Const(Dims(element), "element_shape")},
                           Join({kept}, element, {}), {Attr("element_dtype", tf::DT_FLOAT)});
    Ref output = stack;
    if (!o_.return_sequences)
      output = f.Op(
          "StridedSlice",
          {stack, f.Const(Ints({-1}), "stack"), f.Const(Ints({0}), "stack_1"), f.Const(Ints({1}), "stack_2")},
          StateShape(), {Attr("shrink_axis_mask", 1)});
    else if (o_.twist != ConvLstmOptions::Twist::kTimeMajor) output = Exchanged(f, stack);
    return {output, loop[4], loop[5]};
  }

  std::vector<Ref> AddArgs(FunctionBuilder& g, const std::vector<Ref>& values) const {
    std::vector<Ref> args;
    for (size_t i = 0; i < values.size(); ++i)
      args.push_back(g.Arg("while_arg_" + std::to_string(i), values[i].dtype, values[i].shape));
    g.SetScope("while");
    return args;
  }

  const FunctionBuilder& Condition(const std::vector<Ref>& values) {
    FunctionBuilder& g = model_.AddFunction("while_cond");
    const std::vector<Ref> args = AddArgs(g, values);
    g.Return({g.Op("LogicalAnd",
                   {g.Op("Less", {args[0], args[1]}, kScalar), g.Op("Less", {args[2], args[6]}, kScalar)},
                   kScalar)});
    return g;
  }

  const FunctionBuilder& Body(const std::vector<Ref>& values) {
    FunctionBuilder& g = model_.AddFunction("while_body");
    const std::vector<Ref> args = AddArgs(g, values);
    const auto next_of = [&](const Ref& counter) {
      return g.Op("AddV2", {counter, g.Const(Int(1), "add/y")}, kScalar);
    };
    const Sizes item = Join({o_.batch}, o_.size, {o_.channels});
    const Ref x = g.Op("TensorListGetItem", {args[7], args[2], g.Const(Dims(item), "element_shape")}, item,
                       {Attr("element_dtype", tf::DT_FLOAT)});
    std::vector<Ref> weights;
    for (size_t i = 0; i < variables_.size(); ++i)
      weights.push_back(g.Op("ReadVariableOp", {args[8 + i]}, shapes_[i], {Attr("dtype", tf::DT_FLOAT)}));
    const auto [h, c] = Step(g, x, args[4], args[5], weights);
    const Ref slot = o_.return_sequences ? args[2] : g.Const(Int(0), "index");
    const Ref list = g.Op("TensorListSetItem", {args[3], slot, h}, kScalar);
    g.ReturnLoop({next_of(args[0]), args[1], next_of(args[2]), list, h, c}, {args.begin() + 6, args.end()});
    return g;
  }

  // [.., 4 * n] in four parts of the last dimension.
  std::vector<Ref> Gates(GraphBuilder& g, const Ref& v) const {
    Shape part = v.shape;
    part.dims().back() /= 4;
    return g.Ops("Split", {g.Const(Int(v.shape.rank() - 1), "split/split_dim"), v},
                 std::vector<Shape>(4, part), {Attr("num_split", 4)});
  }

  Ref Convolve(GraphBuilder& g, const Ref& x, const Ref& kernel, bool of_state) const {
    const bool line = space_ == 1;
    const int64_t stride = of_state ? 1 : o_.stride;
    const bool dilates = !of_state || o_.twist == ConvLstmOptions::Twist::kDilatedState;
    const Sizes inner(space_, stride);
    const Sizes apart(space_, dilates ? o_.dilation : 1);
    const Sizes first = line ? Sizes{1, 1} : Sizes{1};
    const std::vector<Attr> attrs = {Attr("strides", Join(first, inner, {1})),
                                     Attr("dilations", Join(first, apart, {1})),
                                     Attr("padding", of_state || o_.same ? "SAME" : "VALID")};
    const Sizes out = Join({o_.batch}, state_size_, {kernel.shape.dims().back()});
    if (!line) return g.Op(space_ == 3 ? "Conv3D" : "Conv2D", {x, kernel}, out, attrs);
    const auto wide = [&](const Ref& v, int axis) {
      Sizes dims(v.shape.dims().begin(), v.shape.dims().end());
      dims.insert(dims.begin() + axis, 1);
      return g.Op("ExpandDims", {v, g.Const(Int(axis), "conv1d/ExpandDims/dim")}, dims);
    };
    Sizes conv = out;
    conv.insert(conv.begin() + 1, 1);
    return g.Op("Squeeze", {g.Op("Conv2D", {wide(x, 1), wide(kernel, 0)}, conv, attrs)}, out,
                {Attr("squeeze_dims", Sizes{-3})});
  }

  Ref Gate(GraphBuilder& g, const Ref& sum) const {
    if (!o_.hard_sigmoid) return g.Op("Sigmoid", {sum}, sum.shape);
    const auto op = [&](const char* name, const Ref& v, float by) {
      return g.Op(name, {v, g.Const(Float(by), "hard_sigmoid/constant")}, sum.shape);
    };
    return op("Maximum", op("Minimum", op("AddV2", op("Mul", sum, 0.2f), 0.5f), 1), 0);
  }

  std::pair<Ref, Ref> Step(GraphBuilder& g, const Ref& x, const Ref& h, const Ref& c,
                           const std::vector<Ref>& weights) const {
    const Shape shape = StateShape();
    const auto op = [&](const char* name, const Ref& a, const Ref& b) { return g.Op(name, {a, b}, shape); };
    const auto act = [&](const Ref& v) { return g.Op(o_.relu ? "Relu" : "Tanh", {v}, shape); };
    const auto kernels = Gates(g, weights[0]);
    const auto recurrents = Gates(g, weights[1]);
    std::vector<Ref> biases;
    std::vector<Ref> sums;
    if (o_.use_bias) biases = Gates(g, weights[2]);
    for (size_t i = 0; i < 4; ++i) {
      Ref in = x;
      if (i == 2 && o_.twist == ConvLstmOptions::Twist::kScaledInput)
        in = g.Op("Mul", {x, g.Const(Float(2), "two")}, x.shape);
      Ref kernel = kernels[i];
      if (i == 1 && o_.twist == ConvLstmOptions::Twist::kOtherKernel) kernel = Larger(g, kernel);
      Ref of_x = Convolve(g, in, kernel, false);
      if (o_.use_bias) of_x = g.Op("BiasAdd", {of_x, biases[i]}, shape);
      sums.push_back(op("AddV2", of_x, Convolve(g, h, recurrents[i], true)));
    }
    if (o_.twist == ConvLstmOptions::Twist::kPeephole) sums[3] = op("AddV2", sums[3], c);
    const Ref kept = op("Mul", Gate(g, sums[1]), c);
    const Ref added = op("Mul", Gate(g, sums[0]), act(sums[2]));
    const Ref next = op("AddV2", kept, added);
    return {op("Mul", Gate(g, sums[3]), act(next)), next};
  }

  // With zeros on both sides of the last spatial dimension.
  Ref Larger(GraphBuilder& g, const Ref& kernel) const {
    const auto rank = static_cast<size_t>(kernel.shape.rank());
    std::vector<int32_t> amounts(2 * rank, 0);
    amounts[2 * (space_ - 1)] = amounts[2 * (space_ - 1) + 1] = 1;
    TensorValue table = Ints(amounts);
    table.shape = {static_cast<int64_t>(rank), 2};
    Shape shape = kernel.shape;
    shape.dims()[space_ - 1] += 2;
    return g.Op("Pad", {kernel, g.Const(table, "paddings")}, shape);
  }

  SavedModelBuilder& model_;
  const ConvLstmOptions& o_;
  size_t space_;
  Sizes state_size_;
  std::vector<VariableRef> variables_;
  std::vector<Shape> shapes_;
};

}  // namespace

Status WriteConvLstm(const std::string& dir, uint64_t seed, const ConvLstmOptions& options) {
  Random random(seed);
  SavedModelBuilder model;
  ConvLstmLayer layer(model, random, options);
  FunctionBuilder& f = model.AddFunction("__inference_serve");
  layer.Build(f);
  model.AddSignature("serving_default", f, {"x"}, layer.outputs());
  return model.Write(dir);
}

}  // namespace fusebox::test_models
