// SPDX-License-Identifier: Apache-2.0
#include "samples/models/lstm_function.h"

#include "samples/models/recurrent_function.h"

namespace fusebox::samples {
namespace {

// Weights of a step: kernel, recurrent kernel and bias, or four of each.
using Weights = std::vector<Ref>;

class LstmCell {
 public:
  explicit LstmCell(const LstmOptions& options) : options_(options) {}

  Weights Prepare(FunctionBuilder& f, const Ref& kernel, const Ref& recurrent, const Ref& bias) const {
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

  std::vector<Ref> Step(GraphBuilder& g, const Ref& x, const std::vector<Ref>& states,
                        const Weights& weights) const {
    Shape shape = StateShape();
    std::vector<Ref> gates = Gates(g, x, states[0], weights);
    Ref kept = g.Op("Mul", {g.Op("Sigmoid", {gates[1]}, shape), states[1]}, shape);
    Ref input = g.Op("Mul", {g.Op("Sigmoid", {gates[0]}, shape), g.Op("Tanh", {gates[2]}, shape)}, shape);
    Ref c = g.Op("AddV2", {kept, input}, shape);
    Ref h = g.Op("Mul", {g.Op("Sigmoid", {gates[3]}, shape), g.Op("Tanh", {c}, shape)}, shape);
    return {h, c};
  }

 private:
  Shape StateShape() const { return {options_.batch, options_.units}; }

  static Ref Fourfold(GraphBuilder& g, const Ref& h) {
    Shape shape = h.shape;
    shape.dims().back() *= 4;
    return g.Op("ConcatV2", {h, h, h, h, g.Const(Int(1), "concat/axis")}, shape, {Attr("N", 4)});
  }

  Ref Gate(GraphBuilder& g, const Ref& x, const Ref& h, const Ref& kernel, const Ref& recurrent,
           const Ref& bias) const {
    Shape shape = {options_.batch, bias.shape[0]};
    Ref share = options_.independent ? g.Op("Mul", {Fourfold(g, h), recurrent}, shape)
                                     : g.Op("MatMul", {h, recurrent}, shape);
    Ref sum = g.Op("AddV2", {g.Op("MatMul", {x, kernel}, shape), share}, shape);
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

  const LstmOptions& options_;
};

}  // namespace

FunctionBuilder& AddLstmFunction(SavedModelBuilder& model, const LstmOptions& options,
                                 const std::string& uuid, Masks masks) {
  FunctionBuilder& f = model.AddFunction("__inference_standard_lstm");
  f.SetAttr(Attr("api_implements", (options.independent ? "indy_lstm_" : "lstm_") + uuid))
      .SetAttr(Attr("api_preferred_device", "CPU"));
  f.SetAttr(Attr("time_major", options.time_major)).SetAttr(Attr("go_backwards", options.go_backwards));
  const LayerShape shape{.batch = options.batch,
                         .steps = options.steps,
                         .inputs = options.inputs,
                         .units = options.units,
                         .time_major = options.time_major,
                         .go_backwards = options.go_backwards,
                         .last_step_only = options.last_step_only,
                         .unknown_rank = options.unknown_rank,
                         .masks = masks};
  int64_t units = options.units;
  Ref inputs = f.Arg("inputs", tf::DT_FLOAT, shape.input());
  Ref h = f.Arg("init_h", tf::DT_FLOAT, shape.state());
  Ref c = f.Arg("init_c", tf::DT_FLOAT, shape.state());
  Ref kernel = f.Arg("kernel", tf::DT_FLOAT, {options.inputs, 4 * units});
  Ref recurrent = f.Arg("recurrent_kernel", tf::DT_FLOAT, {options.independent ? 1 : units, 4 * units});
  Ref bias = f.Arg("bias", tf::DT_FLOAT, {4 * units});
  const std::vector<Ref> mask = AddMaskArgument(f, shape);
  const LstmCell cell(options);
  std::vector<Ref> results = AddRecurrentLoop(
      model, f, shape, inputs, {h, c}, cell.Prepare(f, kernel, recurrent, bias),
      [&](GraphBuilder& g, const Ref& x, const std::vector<Ref>& states, const Weights& weights) {
        return cell.Step(g, x, states, weights);
      },
      mask);
  results.push_back(f.Const(Float(1), "runtime"));
  f.Return(results);
  return f;
}

}  // namespace fusebox::samples
