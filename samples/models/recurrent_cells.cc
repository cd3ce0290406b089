// SPDX-License-Identifier: Apache-2.0
#include "samples/models/recurrent_cells.h"

namespace fusebox::samples {
namespace {

using Weights = std::vector<Ref>;
using Activation = RecurrentOptions::Activation;

const char* NameOf(Activation activation) {
  switch (activation) {
    case Activation::kTanh: return "tanh";
    case Activation::kRelu: return "relu";
    case Activation::kRelu6: return "relu6";
    case Activation::kLinear: return "linear";
  }
  return "";
}

Ref Activate(GraphBuilder& g, Activation activation, const Ref& x, const Shape& shape) {
  switch (activation) {
    case Activation::kTanh: return g.Op("Tanh", {x}, shape);
    case Activation::kRelu: return g.Op("Relu", {x}, shape);
    case Activation::kRelu6: return g.Op("Relu6", {x}, shape);
    case Activation::kLinear: return x;
  }
  return x;
}

// kernel, recurrent kernel and biases, split into parts of `units` columns.
Weights Parts(GraphBuilder& g, const Ref& value, int axis, int64_t units) {
  Shape shape = value.shape;
  const int64_t parts = shape.dims().back() / units;
  shape.dims().back() = units;
  return g.Ops("Split", {g.Const(Int(axis), "split/split_dim"), value},
               std::vector<Shape>(static_cast<size_t>(parts), shape), {Attr("num_split", parts)});
}

class GruCell {
 public:
  GruCell(const RecurrentOptions& options, const LayerShape& shape) : options_(options), shape_(shape) {}

  bool reset_after() const { return options_.cell == RecurrentOptions::Cell::kGru; }

  // kernel, recurrent kernel, input bias and with reset_after the state's bias; in the other body three of
  // each.
  Weights Prepare(FunctionBuilder& f, const Ref& kernel, const Ref& recurrent, const Ref& bias) const {
    Weights weights = {kernel, recurrent, bias};
    if (reset_after()) {
      weights.pop_back();
      for (const Ref& row : f.Ops("Unpack", {bias}, {{3 * Units()}, {3 * Units()}}, {Attr("num", 2)}))
        weights.push_back(row);
    }
    if (!options_.other_body) return weights;
    Weights parts;
    for (size_t i = 0; i < weights.size(); ++i) {
      for (const Ref& part : Parts(f, weights[i], i < 2 ? 1 : 0, Units())) parts.push_back(part);
    }
    return parts;
  }

  std::vector<Ref> Step(GraphBuilder& g, const Ref& x, const Ref& h, const Weights& weights) const {
    const Shape shape = shape_.state();
    Weights of_x = Shares(g, x, weights, 0);
    Weights of_h = Shares(g, h, weights, 1);
    Ref z = g.Op("Sigmoid", {g.Op("AddV2", {of_x[0], of_h[0]}, shape)}, shape);
    Ref r = g.Op("Sigmoid", {g.Op("AddV2", {of_x[1], of_h[1]}, shape)}, shape);
    Ref recurrent = reset_after()
                        ? g.Op("Mul", {r, of_h[2]}, shape)
                        : g.Op("MatMul", {g.Op("Mul", {r, h}, shape), CandidateKernel(g, weights)}, shape);
    Ref candidate = Activate(g, options_.activation, g.Op("AddV2", {of_x[2], recurrent}, shape), shape);
    if (options_.other_body) {  // candidate + z * (h - candidate)
      Ref mixed = g.Op("Mul", {z, g.Op("Sub", {h, candidate}, shape)}, shape);
      return {g.Op("AddV2", {candidate, mixed}, shape)};
    }
    Ref rest = g.Op("Sub", {g.Const(Float(1), "sub/x"), z}, shape);
    return {g.Op("AddV2", {g.Op("Mul", {z, h}, shape), g.Op("Mul", {rest, candidate}, shape)}, shape)};
  }

 private:
  int64_t Units() const { return shape_.units; }

  // Contributions of x (which = 0) or h (1) to the gates: three, or two if the state is reset before.
  Weights Shares(GraphBuilder& g, const Ref& value, const Weights& weights, size_t which) const {
    const bool biased = which == 0 || reset_after();
    if (options_.other_body) {
      Weights shares;
      for (size_t gate = 0; gate < 3; ++gate) {
        Ref share = g.Op("MatMul", {value, weights[3 * which + gate]}, shape_.state());
        if (biased) share = g.Op("BiasAdd", {share, weights[6 + 3 * which + gate]}, shape_.state());
        shares.push_back(share);
      }
      return shares;
    }
    Ref kernel = weights[which];
    const int64_t columns = (biased ? 3 : 2) * Units();
    if (!biased)
      kernel = g.Op("Slice",
                    {kernel, g.Const(Ints({0, 0}), "begin"),
                     g.Const(Ints({-1, static_cast<int32_t>(columns)}), "size")},
                    {Units(), columns});
    Ref sum = g.Op("MatMul", {value, kernel}, {shape_.batch, columns});
    if (biased) sum = g.Op("BiasAdd", {sum, weights[2 + which]}, {shape_.batch, columns});
    return g.Ops("Split", {g.Const(Int(-1), "split/split_dim"), sum},
                 std::vector<Shape>(biased ? 3 : 2, shape_.state()), {Attr("num_split", biased ? 3 : 2)});
  }

  Ref CandidateKernel(GraphBuilder& g, const Weights& weights) const {
    if (options_.other_body) return weights[5];
    const int32_t first = static_cast<int32_t>(2 * Units());
    return g.Op("Slice", {weights[1], g.Const(Ints({0, first}), "begin"), g.Const(Ints({-1, -1}), "size")},
                {Units(), Units()});
  }

  const RecurrentOptions& options_;
  const LayerShape& shape_;
};

struct Arguments {
  Ref inputs, h, kernel, recurrent, bias;
};

Arguments AddArguments(FunctionBuilder& f, const LayerShape& shape, int64_t gates, bool two_biases) {
  int64_t units = shape.units;
  return {.inputs = f.Arg("inputs", tf::DT_FLOAT, shape.input()),
          .h = f.Arg("init_h", tf::DT_FLOAT, shape.state()),
          .kernel = f.Arg("kernel", tf::DT_FLOAT, {shape.inputs, gates * units}),
          .recurrent = f.Arg("recurrent_kernel", tf::DT_FLOAT, {units, gates * units}),
          .bias = f.Arg("bias", tf::DT_FLOAT, two_biases ? Shape{2, gates * units} : Shape{gates * units})};
}

void SetAttrs(FunctionBuilder& f, const RecurrentOptions& options, const LayerShape& shape) {
  f.SetAttr(Attr("time_major", shape.time_major)).SetAttr(Attr("go_backwards", shape.go_backwards));
  if (options.activation != Activation::kTanh) f.SetAttr(Attr("activation", NameOf(options.activation)));
}

}  // namespace

FunctionBuilder& AddGruFunction(SavedModelBuilder& model, const RecurrentOptions& options,
                                const LayerShape& shape, const std::string& uuid) {
  const GruCell cell(options, shape);
  FunctionBuilder& f = model.AddFunction("__inference_standard_gru");
  if (cell.reset_after()) {
    f.SetAttr(Attr("api_implements", "gru_" + uuid)).SetAttr(Attr("api_preferred_device", "CPU"));
  } else {
    f.SetAttr(Attr("_implements", "keras.gru")).SetAttr(Attr("reset_after", false));
  }
  SetAttrs(f, options, shape);
  const Arguments a = AddArguments(f, shape, 3, cell.reset_after());
  const std::vector<Ref> mask = AddMaskArgument(f, shape);
  std::vector<Ref> results = AddRecurrentLoop(
      model, f, shape, a.inputs, {a.h}, cell.Prepare(f, a.kernel, a.recurrent, a.bias),
      [&](GraphBuilder& g, const Ref& x, const std::vector<Ref>& states, const Weights& weights) {
        return cell.Step(g, x, states[0], weights);
      },
      mask);
  results.push_back(f.Const(Float(1), "runtime"));
  f.Return(results);
  return f;
}

FunctionBuilder& AddSimpleRnnFunction(SavedModelBuilder& model, const RecurrentOptions& options,
                                      const LayerShape& shape) {
  FunctionBuilder& f = model.AddFunction("__inference_simple_rnn");
  f.SetAttr(Attr("_implements", "keras.simple_rnn"));
  SetAttrs(f, options, shape);
  const Arguments a = AddArguments(f, shape, 1, false);
  const std::vector<Ref> mask = AddMaskArgument(f, shape);
  const auto step = [&](GraphBuilder& g, const Ref& x, const std::vector<Ref>& states,
                        const Weights& weights) {
    const Shape state = shape.state();
    Ref of_x = g.Op("MatMul", {x, weights[0]}, state);
    Ref of_h = g.Op("MatMul", {states[0], weights[1]}, state);
    Ref sum = options.other_body ? g.Op("BiasAdd", {g.Op("AddV2", {of_h, of_x}, state), weights[2]}, state)
                                 : g.Op("AddV2", {g.Op("BiasAdd", {of_x, weights[2]}, state), of_h}, state);
    return std::vector<Ref>{Activate(g, options.activation, sum, state)};
  };
  f.Return(AddRecurrentLoop(model, f, shape, a.inputs, {a.h}, {a.kernel, a.recurrent, a.bias}, step, mask));
  return f;
}

}  // namespace fusebox::samples
