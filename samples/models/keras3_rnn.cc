// SPDX-License-Identifier: Apache-2.0
#include "models/saved_model/saved_model_builder.h"
#include "samples/models/keras3_cell.h"
#include "samples/models/models.h"

namespace fusebox::samples {

using namespace models;
namespace {

// sequence[index] of a tensor [steps, ...], or one element of a shape.
Ref StepAt(GraphBuilder& g, const Ref& value, int index, const Shape& shape) {
  return g.Op(
      "StridedSlice",
      {value, g.Const(Ints({index}), "strided_slice/stack"),
       g.Const(Ints({index + 1}), "strided_slice/stack_1"), g.Const(Ints({1}), "strided_slice/stack_2")},
      shape, {Attr("shrink_axis_mask", 1)});
}

class Keras3Layer {
 public:
  Keras3Layer(SavedModelBuilder& model, Random& random, const Keras3RnnOptions& options)
      : model_(model), o_(options), cell_(options) {
    const int64_t columns = cell_.gates() * o_.units;
    const auto add = [&](const char* name, TensorValue value) {
      const std::string path = "_all_variables/" + std::to_string(variables_.size());
      variables_.push_back(
          model.AddVariable("sequential/rnn/cell/" + std::string(name), std::move(value), path));
    };
    add("kernel", random.Weights({o_.inputs, columns}));
    add("recurrent_kernel", random.Weights({o_.units, columns}));
    if (o_.use_bias) add("bias", random.Uniform(cell_.bias_shape(), -0.2f, 0.2f));
    if (o_.twist == Keras3RnnOptions::Twist::kOtherWeights)
      add("other_kernel", random.Weights({o_.inputs, columns}));
  }

  void Build(FunctionBuilder& f) {
    const Ref x = f.Arg("x", tf::DT_FLOAT, {o_.batch, o_.steps, o_.inputs});
    f.SetScope("sequential/rnn");
    const std::vector<Ref> states(cell_.state_count(), ZeroState(f, x));
    Ref steps =
        f.Op("Transpose", {x, f.Const(Ints({1, 0, 2}), "transpose/perm")}, {o_.steps, o_.batch, o_.inputs});
    Ref count = StepAt(f, f.Op("Shape", {steps}, {3}, {Attr("out_type", tf::DT_INT32)}), 0, kScalar);
    if (o_.go_backwards) steps = Reversed(f, steps);
    std::vector<Ref> out = o_.cudnn    ? Cudnn(f, x, states)
                           : o_.unroll ? Unrolled(f, steps, states)
                                       : Loop(f, x, steps, count, states);
    f.SetScope("");
    if (!o_.return_state && o_.twist != Keras3RnnOptions::Twist::kCounterOut) out.resize(1);
    f.Return(out);
  }

  std::vector<std::string> outputs() const {
    std::vector<std::string> names = {"output"};
    if (o_.return_state) names.emplace_back("state_h");
    if (o_.return_state && cell_.state_count() == 2) names.emplace_back("state_c");
    if (o_.twist == Keras3RnnOptions::Twist::kCounterOut) names.emplace_back("steps");
    return names;
  }

 private:
  Ref Reversed(FunctionBuilder& f, const Ref& steps) const {
    return f.Op("ReverseV2", {steps, f.Const(Ints({0}), "ReverseV2/axis")}, steps.shape);
  }

  Ref ZeroState(FunctionBuilder& f, const Ref& x) const {
    Ref batch = StepAt(f, f.Op("Shape", {x}, {3}, {Attr("out_type", tf::DT_INT32)}), 0, kScalar);
    Ref dims = f.Op("Pack", {batch, f.Const(Int(o_.units), "zeros/packed/1")}, {2});
    return f.Op("Fill", {dims, f.Const(Float(0), "zeros/Const")}, cell_.state_shape());
  }

  // Unstacked inputs, a cell for each, outputs stacked again.
  std::vector<Ref> Unrolled(FunctionBuilder& f, const Ref& steps, std::vector<Ref> states) {
    const auto xs = f.Ops("Unpack", {steps},
                          std::vector<Shape>(static_cast<size_t>(o_.steps), Shape{o_.batch, o_.inputs}),
                          {Attr("num", o_.steps), Attr("axis", 0)});
    std::vector<Ref> weights;
    std::vector<Ref> hs;
    for (const VariableRef v : variables_) weights.push_back(f.Read(v));
    for (size_t t = 0; t < xs.size(); ++t) {
      const bool last = t + 1 == xs.size();
      if (last && o_.twist == Keras3RnnOptions::Twist::kOtherWeights) weights[0] = weights.back();
      states = cell_.Step(f, xs[last && o_.twist == Keras3RnnOptions::Twist::kSharedSteps ? 0 : t], states,
                          weights);
      hs.push_back(states[0]);
    }
    std::vector<Ref> out = {states[0]};
    if (o_.return_sequences) {
      const Ref all = f.Op("Pack", hs, {o_.steps, o_.batch, o_.units}, {Attr("axis", 0)});
      out[0] = f.Op("Transpose", {all, f.Const(Ints({1, 0, 2}), "transpose_1/perm")},
                    {o_.batch, o_.steps, o_.units});
    }
    out.insert(out.end(), states.begin(), states.end());
    return out;
  }

  // All matrices transposed and flat, then all biases; a GRU has its reset gate first.
  Ref Packed(FunctionBuilder& f) const {
    const int64_t gates = cell_.gates();
    const int64_t u = o_.units;
    std::vector<Ref> matrices;
    std::vector<Ref> biases;
    for (size_t i = 0; i < 2; ++i) {
      const int64_t rows = i == 0 ? o_.inputs : u;
      auto parts =
          f.Ops("Split", {f.Const(Int(1), "split/split_dim"), f.Read(variables_[i])},
                std::vector<Shape>(static_cast<size_t>(gates), Shape{rows, u}), {Attr("num_split", gates)});
      if (gates == 3) std::swap(parts[0], parts[1]);
      for (const Ref& part : parts) {
        const Ref turned = f.Op("Transpose", {part, f.Const(Ints({1, 0}), "transpose/perm")}, {u, rows});
        matrices.push_back(f.Op("Reshape", {turned, f.Const(Ints({-1}), "Reshape/shape")}, {u * rows}));
      }
    }
    Ref all = f.Op("Reshape", {f.Read(variables_[2]), f.Const(Ints({-1}), "Reshape/shape")},
                   {(gates == 3 ? 6 : 4) * u});
    if (gates == 4)  // the biases of the input products are zeros
      all = f.Op("ConcatV2", {f.Const(Zeros({4 * u}), "zeros"), all, f.Const(Int(0), "axis")}, {8 * u},
                 {Attr("N", 2)});
    biases =
        f.Ops("Split", {f.Const(Int(0), "split/split_dim"), all},
              std::vector<Shape>(static_cast<size_t>(2 * gates), Shape{u}), {Attr("num_split", 2 * gates)});
    if (gates == 3) {
      std::swap(biases[0], biases[1]);
      std::swap(biases[3], biases[4]);
    }
    std::vector<Ref> parts = matrices;
    parts.insert(parts.end(), biases.begin(), biases.end());
    const int64_t size = gates * (u * o_.inputs + u * u + 2 * u);
    parts.push_back(f.Const(Int(0), "concat/axis"));
    return f.Op("ConcatV2", parts, {size}, {Attr("N", parts.size() - 1)});
  }

  std::vector<Ref> Cudnn(FunctionBuilder& f, Ref x, const std::vector<Ref>& states) {
    if (o_.go_backwards) x = f.Op("ReverseV2", {x, f.Const(Ints({1}), "ReverseV2/axis")}, x.shape);
    const Shape state = {o_.batch, 1, o_.units};
    std::vector<Ref> in = {x};
    for (const Ref& h : states) in.push_back(f.Op("ExpandDims", {h, f.Const(Int(1), "dim")}, state));
    if (states.size() == 1) in.push_back(f.Const(Float(0), "no_c"));
    in.push_back(Packed(f));
    const Ref shape = f.Op("Shape", {x}, {3}, {Attr("out_type", tf::DT_INT32)});
    Ref steps = StepAt(f, shape, 1, kScalar);
    if (o_.twist == Keras3RnnOptions::Twist::kLengths) steps = f.Const(Int(o_.steps - 1), "shorter");
    const Ref batch = f.Op("Pack", {StepAt(f, shape, 0, kScalar)}, {1});
    in.push_back(f.Op("Fill", {batch, steps}, {o_.batch}));
    const auto out =
        f.Ops("CudnnRNNV3", in, {{o_.batch, o_.steps, o_.units}, state, state, Shape{}, Shape{}},
              {Attr("rnn_mode", states.size() == 1 ? "gru" : "lstm"), Attr("input_mode", "linear_input"),
               Attr("direction",
                    o_.twist == Keras3RnnOptions::Twist::kDirection ? "bidirectional" : "unidirectional"),
               Attr("is_training", false), Attr("time_major", false), Attr("num_proj", 0)});
    const auto squeezed = [&](const Ref& v) {
      return f.Op("Squeeze", {v}, cell_.state_shape(), {Attr("squeeze_dims", std::vector<int64_t>{1})});
    };
    std::vector<Ref> results = {o_.return_sequences ? out[0] : squeezed(out[1]), squeezed(out[1])};
    if (states.size() == 2) results.push_back(squeezed(out[2]));
    return results;
  }

  Ref ListOf(FunctionBuilder& f, const Ref& steps) const {
    Shape element = steps.shape;
    const int32_t width = static_cast<int32_t>(element[2]);
    return f.Op("TensorListFromTensor",
                {steps, f.Const(Ints({-1, width}), "TensorArrayUnstack/element_shape")}, kScalar,
                {Attr("element_dtype", steps.dtype)});
  }

  // A step with only zero features is padding.
  Ref MaskOf(FunctionBuilder& f, const Ref& x) const {
    const Ref sum = f.Op("Sum", {f.Op("Mul", {x, x}, x.shape), f.Const(Ints({2}), "axis")},
                         {o_.batch, o_.steps, 1}, {Attr("keep_dims", true)});
    const Ref mask = f.Op("Greater", {sum, f.Const(Float(0), "zero")}, sum.shape);
    const Ref first =
        f.Op("Transpose", {mask, f.Const(Ints({1, 0, 2}), "transpose/perm")}, {o_.steps, o_.batch, 1});
    return o_.go_backwards ? Reversed(f, first) : first;
  }

  std::vector<Ref> Loop(FunctionBuilder& f, const Ref& x, const Ref& steps, Ref count,
                        const std::vector<Ref>& states) {
    const bool longer = o_.twist == Keras3RnnOptions::Twist::kListLength;
    Ref size = o_.return_sequences ? count : f.Const(Int(1), "TensorArrayV2_1/num_elements");
    if (longer) size = f.Op("AddV2", {size, f.Const(Int(1), "one")}, kScalar);
    const Ref list =
        f.Op("TensorListReserve", {f.Const(Ints({-1, o_.units}), "TensorArrayV2_1/element_shape"), size},
             kScalar, {Attr("element_dtype", tf::DT_FLOAT)});
    if (o_.twist == Keras3RnnOptions::Twist::kLastOf)
      count = f.Op("Sub", {count, f.Const(Int(1), "one")}, kScalar);
    const Ref nought = f.Const(Int(0), "while/loop_counter");
    std::vector<Ref> all = {nought, count,
                            f.Const(Int(o_.twist == Keras3RnnOptions::Twist::kReadAt ? 1 : 0), "time"), list};
    all.insert(all.end(), states.begin(), states.end());
    if (o_.mask) all.push_back(ZeroState(f, x));
    const size_t carried = all.size();
    all.insert(all.end(), {count, ListOf(f, steps)});
    if (o_.mask) all.push_back(ListOf(f, MaskOf(f, x)));
    for (const VariableRef v : variables_) all.push_back(f.Capture(v));
    const std::vector<Ref> loop = f.While(Condition(all), Body(all, carried), all, true);

    const int64_t kept = longer ? -1 : o_.return_sequences ? o_.steps : 1;
    const Ref stack =
        f.Op("TensorListStack", {loop[3], f.Const(Ints({-1, o_.units}), "TensorListStack/element_shape")},
             {kept, o_.batch, o_.units}, {Attr("element_dtype", tf::DT_FLOAT)});
    std::vector<Ref> out = {
        f.Op("StridedSlice",
             {stack, f.Const(Ints({-1}), "strided_slice_2/stack"),
              f.Const(Ints({0}), "strided_slice_2/stack_1"), f.Const(Ints({1}), "strided_slice_2/stack_2")},
             cell_.state_shape(), {Attr("shrink_axis_mask", 1)})};
    if (o_.return_sequences)
      out[0] = f.Op("Transpose", {stack, f.Const(Ints({1, 0, 2}), "transpose_1/perm")},
                    {o_.batch, kept, o_.units});
    if (o_.return_state)
      out.insert(out.end(), loop.begin() + 4, loop.begin() + 4 + static_cast<ptrdiff_t>(states.size()));
    if (o_.twist == Keras3RnnOptions::Twist::kCounterOut) out.push_back(loop[2]);
    return out;
  }

  std::vector<Ref> AddArgs(FunctionBuilder& g, const std::vector<Ref>& values) const {
    std::vector<Ref> args;
    for (size_t i = 0; i < values.size(); ++i)
      args.push_back(g.Arg("while_arg_" + std::to_string(i), values[i].dtype, values[i].shape));
    g.SetScope("while");
    return args;
  }

  // Keras limits the loop twice: by its own counter and by the number of steps.
  const FunctionBuilder& Condition(const std::vector<Ref>& values) {
    FunctionBuilder& g = model_.AddFunction("while_cond");
    const std::vector<Ref> args = AddArgs(g, values);
    const size_t carried = 4 + cell_.state_count() + (o_.mask ? 1 : 0);
    Ref more = g.Op("Less", {args[2], args[carried]}, kScalar);
    if (o_.twist == Keras3RnnOptions::Twist::kReadAt) more = g.Op("Less", {args[0], args[1]}, kScalar);
    if (o_.twist == Keras3RnnOptions::Twist::kCondition) {
      const Ref sum = g.Op("Sum", {args[4], g.Const(Ints({0, 1}), "axes")}, kScalar);
      more = g.Op("LogicalAnd", {more, g.Op("Less", {sum, g.Const(Float(100), "bound")}, kScalar)}, kScalar);
    }
    g.Return({g.Op("LogicalAnd", {g.Op("Less", {args[0], args[1]}, kScalar), more}, kScalar)});
    return g;
  }

  Ref Item(FunctionBuilder& g, const Ref& list, const Ref& at, tf::DataType dtype, int64_t width) const {
    return g.Op(
        "TensorListGetItem",
        {list, at, g.Const(Ints({-1, static_cast<int32_t>(width)}), "TensorListGetItem/element_shape")},
        {o_.batch, width}, {Attr("element_dtype", dtype)});
  }

  const FunctionBuilder& Body(const std::vector<Ref>& values, size_t carried) {
    FunctionBuilder& g = model_.AddFunction("while_body");
    const std::vector<Ref> args = AddArgs(g, values);
    const Ref& time = args[2];
    const Ref one = g.Const(Int(1), "add/y");
    const size_t count = cell_.state_count();
    const size_t lists = carried + 1;
    const size_t handles = lists + (o_.mask ? 2 : 1);
    const auto next_of = [&](const Ref& counter) { return g.Op("AddV2", {counter, one}, kScalar); };
    Ref next_time = next_of(time);
    if (o_.twist == Keras3RnnOptions::Twist::kReadAt)
      next_time = g.Op("Minimum", {next_time, g.Const(Int(o_.steps - 1), "end")}, kScalar);
    const Ref x = Item(g, args[lists], time, tf::DT_FLOAT, o_.inputs);
    std::vector<Ref> states(args.begin() + 4, args.begin() + 4 + static_cast<ptrdiff_t>(count));
    std::vector<Ref> weights;
    for (size_t i = 0; i < variables_.size(); ++i)
      weights.push_back(
          g.Op("ReadVariableOp", {args[handles + i]}, WeightShape(i), {Attr("dtype", tf::DT_FLOAT)}));
    std::vector<Ref> next = cell_.Step(g, x, states, weights);
    Ref output = next[0];
    if (o_.mask) {
      const Ref mask = Item(g, args[lists + 1], time, tf::DT_BOOL, 1);
      const auto where = [&](const Ref& fresh, const Ref& old) {
        const Ref tiled = g.Op("Tile", {mask, g.Const(Ints({1, 1}), "Tile/multiples")}, mask.shape);
        return g.Op("SelectV2", {tiled, fresh, old}, fresh.shape);
      };
      output = where(next[0], args[4 + count]);
      for (size_t i = 0; i < count; ++i) next[i] = where(next[i], states[i]);
    }
    Ref slot = o_.return_sequences ? time : g.Const(Int(0), "TensorListSetItem/index");
    if (o_.twist == Keras3RnnOptions::Twist::kWriteAt)
      slot = g.Op("Sub", {g.Const(Int(o_.steps - 1), "end"), time}, kScalar);
    std::vector<Ref> results = {next_of(args[0]), args[1], next_time,
                                g.Op("TensorListSetItem", {args[3], slot, output}, kScalar)};
    results.insert(results.end(), next.begin(), next.end());
    if (o_.mask) results.push_back(output);
    g.ReturnLoop(results, {args.begin() + static_cast<ptrdiff_t>(carried), args.end()});
    return g;
  }

  Shape WeightShape(size_t i) const {
    const int64_t columns = cell_.gates() * o_.units;
    if (i == 2) return cell_.bias_shape();
    return {i == 0 ? o_.inputs : o_.units, columns};
  }

  SavedModelBuilder& model_;
  const Keras3RnnOptions& o_;
  Keras3Cell cell_;
  std::vector<VariableRef> variables_;
};

}  // namespace

Status WriteKeras3Rnn(const std::string& dir, uint64_t seed, const Keras3RnnOptions& options) {
  if (options.unroll && options.steps < 1)
    return Invalid("an unrolled layer requires a known number of steps");
  Random random(seed);
  SavedModelBuilder model(SavedModelBuilder::Exporter::kKeras3);
  Keras3Layer layer(model, random, options);
  FunctionBuilder& f = model.AddFunction("__inference_serve");
  layer.Build(f);
  for (const char* key : {"serve", "serving_default"}) model.AddSignature(key, f, {"x"}, layer.outputs());
  return model.Write(dir);
}

}  // namespace fusebox::samples
