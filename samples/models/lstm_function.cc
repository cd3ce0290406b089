// SPDX-License-Identifier: Apache-2.0
#include "samples/models/lstm_function.h"

#include <array>

namespace fusebox::samples {
namespace {

// What a step reads besides its input and state: kernel, recurrent kernel and bias, or four of each.
using Weights = std::vector<Ref>;

struct State {
  Ref h, c;
};

class LstmFunction {
 public:
  LstmFunction(SavedModelBuilder& model, const LstmOptions& options) : model_(model), options_(options) {}

  void Build(FunctionBuilder& f) {
    int64_t batch = options_.batch, units = options_.units;
    Ref inputs = f.Arg("inputs", tf::DT_FLOAT, InputShape());
    State init = {f.Arg("init_h", tf::DT_FLOAT, {batch, units}),
                  f.Arg("init_c", tf::DT_FLOAT, {batch, units})};
    Ref kernel = f.Arg("kernel", tf::DT_FLOAT, {options_.inputs, 4 * units});
    Ref recurrent = f.Arg("recurrent_kernel", tf::DT_FLOAT, {units, 4 * units});
    Ref bias = f.Arg("bias", tf::DT_FLOAT, {4 * units});

    Shape time_first = {options_.steps, batch, options_.inputs};
    Ref steps = inputs;
    if (!options_.time_major)
      steps = f.Op("Transpose", {inputs, f.Const(Ints({1, 0, 2}), "transpose/perm")}, time_first);
    Ref count = SliceAt(f, f.Op("Shape", {steps}, {3}, {Attr("out_type", tf::DT_INT32)}), 0, kScalar);
    if (options_.go_backwards)
      steps = f.Op("ReverseV2", {steps, f.Const(Ints({0}), "ReverseV2/axis")}, time_first);
    Ref list = f.Op("TensorListFromTensor",
                    {steps, f.Const(Ints({-1, options_.inputs}), "TensorArrayUnstack/element_shape")},
                    kScalar, {Attr("element_dtype", tf::DT_FLOAT)});

    Weights weights = PrepareWeights(f, kernel, recurrent, bias);
    // Keras traces one step outside of the loop, only to learn the shape of its output.
    Step(f, SliceAt(f, steps, 0, {batch, options_.inputs}), init, weights);
    Loop(f, list, count, init, weights);
  }

 private:
  Shape InputShape() const {
    if (options_.unknown_rank) return {};
    if (options_.time_major) return {options_.steps, options_.batch, options_.inputs};
    return {options_.batch, options_.steps, options_.inputs};
  }

  Shape StateShape() const { return {options_.batch, options_.units}; }

  static Ref SliceAt(GraphBuilder& g, const Ref& value, int index, const Shape& shape) {
    return g.Op(
        "StridedSlice",
        {value, g.Const(Ints({index}), "strided_slice/stack"),
         g.Const(Ints({index + 1}), "strided_slice/stack_1"), g.Const(Ints({1}), "strided_slice/stack_2")},
        shape, {Attr("shrink_axis_mask", 1)});
  }

  Weights PrepareWeights(FunctionBuilder& f, const Ref& kernel, const Ref& recurrent, const Ref& bias) const {
    if (options_.body != LstmOptions::Body::kFourGates) return {kernel, recurrent, bias};
    Weights all;
    for (const auto& [value, axis] : {std::pair(kernel, 1), std::pair(recurrent, 1), std::pair(bias, 0)}) {
      Shape shape = value.shape;
      shape.dims().back() = options_.units;
      std::vector<Ref> parts = f.Ops("Split", {f.Const(Int(axis), "split/split_dim"), value},
                                     std::vector<Shape>(4, shape), {Attr("num_split", 4)});
      all.insert(all.end(), parts.begin(), parts.end());
    }
    return all;
  }

  Ref Gate(GraphBuilder& g, const Ref& x, const Ref& h, const Ref& kernel, const Ref& recurrent,
           const Ref& bias) const {
    Shape shape = {options_.batch, bias.shape[0]};
    Ref sum =
        g.Op("AddV2", {g.Op("MatMul", {x, kernel}, shape), g.Op("MatMul", {h, recurrent}, shape)}, shape);
    return g.Op("BiasAdd", {sum, bias}, shape);
  }

  // i, f, c, o before their activation.
  std::vector<Ref> Gates(GraphBuilder& g, const Ref& x, const Ref& h, const Weights& weights) const {
    if (options_.body == LstmOptions::Body::kFourGates) {
      std::vector<Ref> gates;
      for (int i = 0; i < 4; ++i) gates.push_back(Gate(g, x, h, weights[i], weights[4 + i], weights[8 + i]));
      return gates;
    }
    Ref sum = Gate(g, x, h, weights[0], weights[1], weights[2]);
    std::vector<Ref> gates = g.Ops("Split", {g.Const(Int(1), "split/split_dim"), sum},
                                   std::vector<Shape>(4, StateShape()), {Attr("num_split", 4)});
    if (options_.body == LstmOptions::Body::kSwappedGates) std::swap(gates[0], gates[1]);
    return gates;
  }

  State Step(GraphBuilder& g, const Ref& x, const State& state, const Weights& weights) const {
    Shape shape = StateShape();
    std::vector<Ref> gates = Gates(g, x, state.h, weights);
    Ref kept = g.Op("Mul", {g.Op("Sigmoid", {gates[1]}, shape), state.c}, shape);
    Ref input = g.Op("Mul", {g.Op("Sigmoid", {gates[0]}, shape), g.Op("Tanh", {gates[2]}, shape)}, shape);
    Ref c = g.Op("AddV2", {kept, input}, shape);
    Ref h = g.Op("Mul", {g.Op("Sigmoid", {gates[3]}, shape), g.Op("Tanh", {c}, shape)}, shape);
    return {h, c};
  }

  void Loop(FunctionBuilder& f, const Ref& list, const Ref& count, const State& init,
            const Weights& weights) {
    int64_t batch = options_.batch, units = options_.units;
    int64_t kept = options_.last_step_only ? 1 : options_.steps;
    Ref size = options_.last_step_only ? f.Const(Int(1), "TensorArrayV2_1/num_elements") : count;
    Ref reserved = f.Op("TensorListReserve",
                        {f.Const(Ints({-1, options_.units}), "TensorArrayV2_1/element_shape"), size}, kScalar,
                        {Attr("element_dtype", tf::DT_FLOAT)});
    std::vector<Ref> carried = {f.Const(Int(0), "while/loop_counter"),
                                f.Const(Int(-1), "while/maximum_iterations"),
                                f.Const(Int(0), "time"),
                                reserved,
                                init.h,
                                init.c};
    std::vector<Ref> invariant = {count, list};
    invariant.insert(invariant.end(), weights.begin(), weights.end());
    std::vector<Ref> all = carried;
    all.insert(all.end(), invariant.begin(), invariant.end());
    std::vector<Ref> loop = f.While(Condition(all), LoopBody(all, invariant.size()), all);

    Ref sequence = f.Op("TensorListStack",
                        {loop[3], f.Const(Ints({-1, options_.units}), "TensorListStack/element_shape")},
                        {kept, batch, units}, {Attr("element_dtype", tf::DT_FLOAT)});
    Ref last =
        f.Op("StridedSlice",
             {sequence, f.Const(Ints({-1}), "strided_slice_2/stack"),
              f.Const(Ints({0}), "strided_slice_2/stack_1"), f.Const(Ints({1}), "strided_slice_2/stack_2")},
             StateShape(), {Attr("shrink_axis_mask", 1)});
    if (!options_.time_major) {
      sequence =
          f.Op("Transpose", {sequence, f.Const(Ints({1, 0, 2}), "transpose_1/perm")}, {batch, kept, units});
    }
    f.Return({last, sequence, loop[4], loop[5], f.Const(Float(1), "runtime")});
  }

  static std::vector<Ref> AddLoopArgs(FunctionBuilder& g, const std::vector<Ref>& values) {
    constexpr std::array kNames = {"while_loop_counter", "while_maximum_iterations",
                                   "placeholder",        "placeholder_1",
                                   "placeholder_2",      "placeholder_3"};
    std::vector<Ref> args;
    for (size_t i = 0; i < values.size(); ++i) {
      std::string name = i < kNames.size() ? kNames[i] : "captured_" + std::to_string(i - kNames.size());
      args.push_back(g.Arg("while_" + name, values[i].dtype, values[i].shape));
    }
    return args;
  }

  const FunctionBuilder& Condition(const std::vector<Ref>& values) {
    FunctionBuilder& g = model_.AddFunction("while_cond");
    std::vector<Ref> args = AddLoopArgs(g, values);
    g.SetScope("while");
    g.Return({g.Op("Less", {args[2], args[6]}, kScalar)});
    return g;
  }

  const FunctionBuilder& LoopBody(const std::vector<Ref>& values, size_t invariants) {
    FunctionBuilder& g = model_.AddFunction("while_body");
    std::vector<Ref> args = AddLoopArgs(g, values);
    g.SetScope("while");
    const Ref &counter = args[0], &time = args[2], &list = args[3];
    Ref x = g.Op("TensorListGetItem",
                 {args[7], time, g.Const(Ints({-1, options_.inputs}), "TensorListGetItem/element_shape")},
                 {options_.batch, options_.inputs}, {Attr("element_dtype", tf::DT_FLOAT)});
    State next = Step(g, x, {args[4], args[5]}, {args.begin() + 8, args.end()});
    Ref slot = options_.last_step_only ? g.Const(Int(0), "TensorListSetItem/index") : time;
    Ref written = g.Op("TensorListSetItem", {list, slot, next.h}, kScalar);
    Ref next_time = g.Op("AddV2", {time, g.Const(Int(1), "add/y")}, kScalar);
    Ref next_counter = g.Op("AddV2", {counter, g.Const(Int(1), "add/y")}, kScalar);
    g.ReturnLoop({next_counter, args[1], next_time, written, next.h, next.c},
                 {args.end() - static_cast<ptrdiff_t>(invariants), args.end()});
    return g;
  }

  SavedModelBuilder& model_;
  const LstmOptions& options_;
};

}  // namespace

FunctionBuilder& AddLstmFunction(SavedModelBuilder& model, const LstmOptions& options,
                                 const std::string& uuid) {
  FunctionBuilder& f = model.AddFunction("__inference_standard_lstm");
  f.SetAttr(Attr("api_implements", "lstm_" + uuid)).SetAttr(Attr("api_preferred_device", "CPU"));
  f.SetAttr(Attr("time_major", options.time_major)).SetAttr(Attr("go_backwards", options.go_backwards));
  LstmFunction(model, options).Build(f);
  return f;
}

}  // namespace fusebox::samples
