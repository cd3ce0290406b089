// SPDX-License-Identifier: Apache-2.0
#include "samples/models/recurrent_function.h"

namespace fusebox::samples {
namespace {

class RecurrentLoop {
 public:
  RecurrentLoop(SavedModelBuilder& model, const LayerShape& shape, const CellStep& step,
                const std::vector<Ref>& mask)
      : model_(model), shape_(shape), step_(step), mask_(mask) {}

  std::vector<Ref> Build(FunctionBuilder& f, const Ref& inputs, const std::vector<Ref>& states,
                         const std::vector<Ref>& weights) {
    Shape time_first = {shape_.steps, shape_.batch, shape_.inputs};
    Ref steps = inputs;
    if (!shape_.time_major)
      steps = f.Op("Transpose", {inputs, f.Const(Ints({1, 0, 2}), "transpose/perm")}, time_first);
    Ref count = SliceAt(f, f.Op("Shape", {steps}, {3}, {Attr("out_type", tf::DT_INT32)}), 0, kScalar);
    if (shape_.go_backwards)
      steps = f.Op("ReverseV2", {steps, f.Const(Ints({0}), "ReverseV2/axis")}, time_first);
    Ref list = f.Op("TensorListFromTensor",
                    {steps, f.Const(Ints({-1, shape_.inputs}), "TensorArrayUnstack/element_shape")}, kScalar,
                    {Attr("element_dtype", tf::DT_FLOAT)});
    // Keras traces one step outside of the loop to get the shape of its output.
    const Ref first = step_(f, SliceAt(f, steps, 0, {shape_.batch, shape_.inputs}), states, weights)[0];
    if (masked()) zeros_ = f.Op("ZerosLike", {first}, first.shape);
    return Loop(f, list, count, states, weights);
  }

 private:
  static Ref SliceAt(GraphBuilder& g, const Ref& value, int index, const Shape& shape) {
    return g.Op(
        "StridedSlice",
        {value, g.Const(Ints({index}), "strided_slice/stack"),
         g.Const(Ints({index + 1}), "strided_slice/stack_1"), g.Const(Ints({1}), "strided_slice/stack_2")},
        shape, {Attr("shrink_axis_mask", 1)});
  }

  std::vector<Ref> Loop(FunctionBuilder& f, const Ref& list, const Ref& count, const std::vector<Ref>& states,
                        const std::vector<Ref>& weights) {
    int64_t batch = shape_.batch;
    int64_t units = shape_.units;
    int64_t kept = shape_.last_step_only ? 1 : shape_.steps;
    Ref size = shape_.last_step_only ? f.Const(Int(1), "TensorArrayV2_1/num_elements") : count;
    Ref reserved =
        f.Op("TensorListReserve", {f.Const(Ints({-1, shape_.units}), "TensorArrayV2_1/element_shape"), size},
             kScalar, {Attr("element_dtype", tf::DT_FLOAT)});
    std::vector<Ref> all = {f.Const(Int(0), "while/loop_counter"),
                            f.Const(Int(-1), "while/maximum_iterations"), f.Const(Int(0), "time"), reserved};
    if (masked()) all.push_back(zeros_);
    states_at_ = all.size();
    all.insert(all.end(), states.begin(), states.end());
    count_at_ = all.size();
    all.push_back(count);
    all.push_back(list);
    if (masked()) all.insert(all.end(), {MaskList(f), zeros_});
    all.insert(all.end(), weights.begin(), weights.end());
    std::vector<Ref> loop = f.While(Condition(all), LoopBody(all), all);

    Ref sequence =
        f.Op("TensorListStack", {loop[3], f.Const(Ints({-1, shape_.units}), "TensorListStack/element_shape")},
             {kept, batch, units}, {Attr("element_dtype", tf::DT_FLOAT)});
    Ref last =
        f.Op("StridedSlice",
             {sequence, f.Const(Ints({-1}), "strided_slice_2/stack"),
              f.Const(Ints({0}), "strided_slice_2/stack_1"), f.Const(Ints({1}), "strided_slice_2/stack_2")},
             shape_.state(), {Attr("shrink_axis_mask", 1)});
    if (!shape_.time_major) {
      sequence =
          f.Op("Transpose", {sequence, f.Const(Ints({1, 0, 2}), "transpose_1/perm")}, {batch, kept, units});
    }
    std::vector<Ref> results = {last, sequence};
    results.insert(results.end(), loop.begin() + static_cast<ptrdiff_t>(states_at_),
                   loop.begin() + static_cast<ptrdiff_t>(count_at_));
    return results;
  }

  bool masked() const { return !mask_.empty(); }

  // The steps of the mask, each [batch, 1].
  Ref MaskList(FunctionBuilder& f) const {
    const Shape& given = mask_[0].shape;
    Ref mask = f.Op("ExpandDims", {mask_[0], f.Const(Int(-1), "ExpandDims/dim")}, {given[0], given[1], 1});
    if (!shape_.time_major)
      mask = f.Op("Transpose", {mask, f.Const(Ints({1, 0, 2}), "transpose_1/perm")}, {given[1], given[0], 1});
    if (shape_.go_backwards)
      mask = f.Op("ReverseV2", {mask, f.Const(Ints({0}), "ReverseV2_1/axis")}, mask.shape);
    return f.Op("TensorListFromTensor", {mask, f.Const(Ints({-1, 1}), "TensorArrayUnstack_1/element_shape")},
                kScalar, {Attr("element_dtype", tf::DT_BOOL)});
  }

  // Selects rows of `fresh` that are not masked in this step, and rows of `old` otherwise.
  Ref Where(FunctionBuilder& g, const Ref& counts, const Ref& fresh, const Ref& old) const {
    const Ref tiled =
        g.Op("Tile", {counts, g.Const(Ints({1, shape_.units}), "Tile/multiples")}, shape_.state());
    return g.Op("SelectV2", {tiled, fresh, old}, shape_.state());
  }

  // The written value, then the next states; in a masked layer the previous value comes first.
  std::vector<Ref> Masked(FunctionBuilder& g, const std::vector<Ref>& args, std::vector<Ref> next) const {
    const Ref& list = args[count_at_ + 2];
    const Ref counts = g.Op("TensorListGetItem",
                            {list, args[2], g.Const(Ints({-1, 1}), "TensorListGetItem_1/element_shape")},
                            {shape_.batch, 1}, {Attr("element_dtype", tf::DT_BOOL)});
    const Ref& else_given = shape_.masks == Masks::kZeros ? args[count_at_ + 3] : args[4];
    std::vector<Ref> out = {Where(g, counts, next[0], else_given)};
    for (size_t i = 0; i < next.size(); ++i) out.push_back(Where(g, counts, next[i], args[states_at_ + i]));
    return out;
  }

  std::vector<Ref> AddLoopArgs(FunctionBuilder& g, const std::vector<Ref>& values) const {
    std::vector<Ref> args;
    for (size_t i = 0; i < values.size(); ++i) {
      std::string name = i == 0          ? "while_loop_counter"
                         : i == 1        ? "while_maximum_iterations"
                         : i == 2        ? "placeholder"
                         : i < count_at_ ? "placeholder_" + std::to_string(i - 2)
                                         : "captured_" + std::to_string(i - count_at_);
      args.push_back(g.Arg("while_" + name, values[i].dtype, values[i].shape));
    }
    return args;
  }

  const FunctionBuilder& Condition(const std::vector<Ref>& values) {
    FunctionBuilder& g = model_.AddFunction("while_cond");
    std::vector<Ref> args = AddLoopArgs(g, values);
    g.SetScope("while");
    g.Return({g.Op("Less", {args[2], args[count_at_]}, kScalar)});
    return g;
  }

  const FunctionBuilder& LoopBody(const std::vector<Ref>& values) {
    FunctionBuilder& g = model_.AddFunction("while_body");
    std::vector<Ref> args = AddLoopArgs(g, values);
    g.SetScope("while");
    const auto captured = args.begin() + static_cast<ptrdiff_t>(count_at_);
    const Ref& counter = args[0];
    const Ref& time = args[2];
    const Ref& list = args[3];
    Ref x = g.Op("TensorListGetItem",
                 {captured[1], time, g.Const(Ints({-1, shape_.inputs}), "TensorListGetItem/element_shape")},
                 {shape_.batch, shape_.inputs}, {Attr("element_dtype", tf::DT_FLOAT)});
    const auto states = args.begin() + static_cast<ptrdiff_t>(states_at_);
    std::vector<Ref> next = step_(g, x, {states, captured}, {captured + (masked() ? 4 : 2), args.end()});
    if (masked()) next = Masked(g, args, std::move(next));
    Ref slot = shape_.last_step_only ? g.Const(Int(0), "TensorListSetItem/index") : time;
    Ref written = g.Op("TensorListSetItem", {list, slot, next[0]}, kScalar);
    Ref next_time = g.Op("AddV2", {time, g.Const(Int(1), "add/y")}, kScalar);
    Ref next_counter = g.Op("AddV2", {counter, g.Const(Int(1), "add/y")}, kScalar);
    std::vector<Ref> carried = {next_counter, args[1], next_time, written};
    carried.insert(carried.end(), next.begin(), next.end());
    g.ReturnLoop(carried, {captured, args.end()});
    return g;
  }

  SavedModelBuilder& model_;
  const LayerShape& shape_;
  const CellStep& step_;
  const std::vector<Ref>& mask_;
  Ref zeros_;             // output of a masked layer before its first step
  size_t states_at_ = 4;  // index of the states in the loop's values
  size_t count_at_ = 0;   // index of the number of steps in the loop's values; captured ones follow
};

}  // namespace

Shape LayerShape::input() const {
  if (unknown_rank) return {};
  if (time_major) return {steps, batch, inputs};
  return {batch, steps, inputs};
}

std::vector<Ref> AddMaskArgument(FunctionBuilder& f, const LayerShape& shape) {
  if (shape.masks == Masks::kNone) return {};
  const Shape in = shape.input();
  return {f.Arg("mask", tf::DT_BOOL, {in[0], in[1]})};
}

std::vector<Ref> AddRecurrentLoop(SavedModelBuilder& model, FunctionBuilder& f, const LayerShape& shape,
                                  const Ref& inputs, const std::vector<Ref>& states,
                                  const std::vector<Ref>& weights, const CellStep& step,
                                  const std::vector<Ref>& mask) {
  return RecurrentLoop(model, shape, step, mask).Build(f, inputs, states, weights);
}

}  // namespace fusebox::samples
