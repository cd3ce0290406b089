// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/models/lingvo.h"

#include <map>

#include "models/saved_model/saved_model_builder.h"

namespace fusebox::test_models {

using namespace models;
namespace {

std::string NameOf(const LingvoOptions& o) {
  std::string name = o.bare_name ? "" : "lingvo.";
  if (o.layer_norm) name += "LayerNormalized";
  name += "LSTMCellSimple";
  if (o.coupled) name += ",CoupleInputForgetGates";
  return name;
}

// The gates in column order; g is the cell input.
std::string GateOrder(const LingvoOptions& o) { return o.coupled ? "gfo" : "gifo"; }

class CellFunction {
 public:
  CellFunction(SavedModelBuilder& model, const LingvoOptions& o)
      : o_(o), outputs_(o.outputs ? o.outputs : o.cells), f_(model.AddFunction("__inference_cell")) {}

  const FunctionBuilder& Build() {
    Annotate();
    const int64_t columns = static_cast<int64_t>(GateOrder(o_).size()) * o_.cells;
    const Ref x = f_.Arg("input", tf::DT_FLOAT, {o_.batch, o_.inputs});
    weight_ = f_.Arg("weight", tf::DT_FLOAT, {o_.inputs + outputs_, columns});
    bias_ = f_.Arg("bias", tf::DT_FLOAT, {columns});
    const Ref projection =
        f_.Arg("projection", tf::DT_FLOAT, o_.outputs ? Shape{o_.cells, outputs_} : kScalar);
    if (o_.layer_norm) scale_ = f_.Arg("layer_norm_scale", tf::DT_FLOAT, {4 * int64_t{o_.cells}});
    const Ref m0 = o_.states ? f_.Arg("m0", tf::DT_FLOAT, {o_.batch, outputs_}) : Zeros(x, outputs_);
    const Ref c0 = o_.states ? f_.Arg("c0", tf::DT_FLOAT, Cells()) : Zeros(x, o_.cells);

    std::map<char, Ref> gates = Gates(x, m0);
    if (o_.body == LingvoOptions::Body::kSwappedGates) std::swap(gates['i'], gates['f']);
    const Ref forget = Map("Sigmoid", gates['f']);
    const Ref in =
        o_.coupled ? f_.Op("Sub", {f_.Const(Float(1), "one"), forget}, Cells()) : Map("Sigmoid", gates['i']);
    const Ref c1 =
        Clip(Pair("AddV2", Pair("Mul", forget, c0), Pair("Mul", in, Map("Tanh", gates['g']))), o_.cell_clip);
    Ref m1 = Pair("Mul", Map("Sigmoid", gates['o']), Map("Tanh", c1));
    if (o_.outputs) m1 = Clip(f_.Op("MatMul", {m1, projection}, {o_.batch, outputs_}), o_.projection_clip);
    f_.Return(o_.states ? std::vector<Ref>{m1, c1} : std::vector<Ref>{m1});
    return f_;
  }

 private:
  Shape Cells() const { return {o_.batch, o_.cells}; }
  Ref Map(const char* op, const Ref& x) { return f_.Op(op, {x}, Cells()); }
  Ref Pair(const char* op, const Ref& a, const Ref& b) { return f_.Op(op, {a, b}, Cells()); }

  void Annotate() {
    if (!o_.clip_attribute) {
      f_.SetAttr(Attr("_implements", NameOf(o_)));
      return;
    }
    f_.SetAttr(Attr("_implements", NameOf(o_),
                    {Attr("cell_clip", o_.cell_clip), Attr("proj_clip", o_.projection_clip)}));
  }

  Ref Zeros(const Ref& x, int64_t width) {
    const Ref shape = f_.Op("Shape", {x}, {2}, {Attr("out_type", tf::DT_INT32)});
    const Ref rows = f_.Op("Slice", {shape, f_.Const(Ints({0}), "begin"), f_.Const(Ints({1}), "size")}, {1});
    const Ref wide = f_.Const(Ints({static_cast<int32_t>(width)}), "width");
    const Ref dims = f_.Op("ConcatV2", {rows, wide, f_.Const(Int(0), "axis")}, {2});
    return f_.Op("Fill", {dims, f_.Const(Float(0), "zero")}, {o_.batch, width});
  }

  Ref Clip(const Ref& x, float bound) {
    if (bound == 0) return x;
    return f_.Op("ClipByValue", {x, f_.Const(Float(-bound), "low"), f_.Const(Float(bound), "high")}, x.shape);
  }

  // value[begin of each dimension, size of each dimension].
  Ref Part(const Ref& value, std::initializer_list<int32_t> begin, std::initializer_list<int32_t> size) {
    Shape shape = value.shape;
    std::copy(size.begin(), size.end(), shape.dims().begin());
    return f_.Op("Slice", {value, f_.Const(Ints(begin), "begin"), f_.Const(Ints(size), "size")}, shape);
  }

  std::map<char, Ref> Gates(const Ref& x, const Ref& m) {
    const Ref both = f_.Op("ConcatV2", {x, m, f_.Const(Int(1), "axis")}, {o_.batch, o_.inputs + outputs_});
    const std::string order = GateOrder(o_);
    std::map<char, Ref> gates;
    if (o_.body == LingvoOptions::Body::kPerGate) {
      for (size_t k = 0; k < order.size(); ++k)
        gates[order[k]] = Products(x, m, static_cast<int32_t>(k) * o_.cells);
    } else {
      const Ref all = f_.Op("MatMul", {both, weight_}, {o_.batch, weight_.shape[1]});
      const auto parts =
          f_.Ops("Split", {f_.Const(Int(1), "split_dim"), all}, std::vector<Shape>(order.size(), Cells()),
                 {Attr("num_split", static_cast<int64_t>(order.size()))});
      for (size_t k = 0; k < order.size(); ++k) gates[order[k]] = parts[k];
    }
    for (size_t k = 0; k < order.size(); ++k) {
      Ref& gate = gates[order[k]];
      if (o_.layer_norm)
        gate = Normalized(gate, static_cast<int32_t>(std::string("gifo").find(order[k])) * o_.cells);
      gate = f_.Op("BiasAdd", {gate, Part(bias_, {static_cast<int32_t>(k) * o_.cells}, {o_.cells})}, Cells());
    }
    return gates;
  }

  // The two products of one gate, whose columns begin at `column`: of input and output.
  Ref Products(const Ref& x, const Ref& m, int32_t column) {
    const int32_t outputs = static_cast<int32_t>(outputs_);
    const Ref of_x = Part(weight_, {0, column}, {o_.inputs, o_.cells});
    const Ref of_m = Part(weight_, {o_.inputs, column}, {outputs, o_.cells});
    return Pair("AddV2", f_.Op("MatMul", {x, of_x}, Cells()), f_.Op("MatMul", {m, of_m}, Cells()));
  }

  Ref Normalized(const Ref& gate, int32_t scale_at) {
    const Shape column = {o_.batch, 1};
    const auto mean = [&](const Ref& v) {
      return f_.Op("Mean", {v, f_.Const(Ints({1}), "axes")}, column, {Attr("keep_dims", true)});
    };
    const Ref center = mean(gate);
    const Ref variance = mean(Pair("SquaredDifference", gate, center));
    const Ref safe = f_.Op("AddV2", {variance, f_.Const(Float(1e-8F), "epsilon")}, column);
    const Ref unit = Pair("Mul", Pair("Sub", gate, center), f_.Op("Rsqrt", {safe}, column));
    return Pair("Mul", unit, Part(scale_, {scale_at}, {o_.cells}));
  }

  const LingvoOptions& o_;
  int64_t outputs_;
  FunctionBuilder& f_;
  Ref weight_, bias_, scale_;
};

}  // namespace

Status WriteLingvo(const std::string& dir, uint64_t seed, const LingvoOptions& o) {
  if (o.projection_clip != 0 && !o.outputs) return Invalid("projection_clip requires a projection");
  Random random(seed);
  SavedModelBuilder model;
  const int64_t outputs = o.outputs ? o.outputs : o.cells;
  const int64_t columns = static_cast<int64_t>(GateOrder(o).size()) * o.cells;
  const auto add = [&](const char* name, TensorValue value) {
    return model.AddVariable(std::string("cell/") + name, std::move(value), std::string("cell/") + name);
  };
  const VariableRef weight = add("wm", random.Weights({o.inputs + outputs, columns}));
  const VariableRef bias = add("b", random.Uniform({columns}, -0.2F, 0.2F));
  const TensorValue projection = o.outputs ? random.Weights({o.cells, outputs}) : Float(0);
  const VariableRef projection_variable = add("w_proj", projection);
  const VariableRef scale = add("scale", random.Uniform({4 * int64_t{o.cells}}, 0.5F, 1.5F));
  const FunctionBuilder& cell = CellFunction(model, o).Build();

  FunctionBuilder& f = model.AddFunction("__inference_call");
  std::vector<Ref> arguments = {f.Arg("x", tf::DT_FLOAT, {o.batch, o.inputs})};
  std::vector<std::string> inputs = {"x"};
  std::vector<std::string> results = {"m1"};
  std::vector<Ref> states;
  if (o.states) {
    states = {f.Arg("m0", tf::DT_FLOAT, {o.batch, outputs}), f.Arg("c0", tf::DT_FLOAT, {o.batch, o.cells})};
    inputs.insert(inputs.end(), {"m0", "c0"});
    results.push_back("c1");
  }
  for (const VariableRef variable : {weight, bias, projection_variable})
    arguments.push_back(f.Read(variable));
  if (o.layer_norm) arguments.push_back(f.Read(scale));
  arguments.insert(arguments.end(), states.begin(), states.end());
  f.Return(f.Call(cell, arguments));
  model.AddSignature("serving_default", f, inputs, results);
  return model.Write(dir);
}

}  // namespace fusebox::test_models
