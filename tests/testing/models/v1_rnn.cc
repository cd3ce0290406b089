// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/models/v1_rnn.h"

namespace fusebox::test_models {
namespace {

using Cell = V1RnnOptions::Cell;

class Writer {
 public:
  Writer(const V1RnnOptions& options, uint64_t seed) : o_(options), random_(seed) {}

  V1Graph Write() {
    x_ = g_.Placeholder(
        "x", tf::DT_FLOAT,
        o_.time_major ? Shape{o_.steps, o_.batch, o_.inputs} : Shape{o_.batch, o_.steps, o_.inputs});
    if (o_.lengths) lengths_ = g_.Placeholder("lengths", tf::DT_INT32, {o_.batch});
    g_.SetScope("rnn");
    AddWeights();
    std::string in = o_.backwards ? Reversed(x_) : x_;
    if (!o_.time_major && !o_.static_rnn) in = Exchanged(in);
    std::string out = fused() ? Fused(in) : o_.static_rnn ? Unrolled(in) : Dynamic(in);
    if (!o_.time_major && !o_.static_rnn && !o_.last_output) out = Exchanged(out);
    if (o_.backwards) out = Reversed(out);
    g_.SetScope("");
    g_.Op("Identity", {out}, tf::DT_INVALID, {}, "output");
    const char* names[] = {"c", "h"};
    for (size_t i = 0; o_.final_state && i < states_.size(); ++i)
      g_.Op("Identity", {states_[i]}, tf::DT_INVALID, {}, names[states_.size() == 1 ? 1 : i]);
    return std::move(g_);
  }

 private:
  bool fused() const { return o_.cell == Cell::kFusedBlockLstm || o_.cell == Cell::kFusedBlockLstm2; }
  bool gru() const { return o_.cell == Cell::kGru || o_.cell == Cell::kBlockGru; }
  bool lstm() const { return !gru() && o_.cell != Cell::kBasicRnn; }
  int out_units() const { return o_.cell == Cell::kProjectedLstm ? o_.units - 2 : o_.units; }

  std::string Weight(const char* name, const Shape& shape) {
    const std::string value = g_.Const(random_.Weights(shape), name);
    return g_.Op("Identity", {value}, tf::DT_INVALID, {}, std::string(name) + "/read");
  }

  void AddWeights() {
    const int u = o_.units;
    const int rows = o_.inputs + out_units();
    kernel_ = Weight(gru() ? "gates/kernel" : "kernel", {rows, (lstm() ? 4 : gru() ? 2 : 1) * u});
    bias_ = Weight(gru() ? "gates/bias" : "bias", {(lstm() ? 4 : gru() ? 2 : 1) * u});
    if (gru()) {
      candidate_kernel_ = Weight("candidate/kernel", {rows, u});
      candidate_bias_ = Weight("candidate/bias", {u});
    }
    if (o_.cell == Cell::kPeepholeLstm)
      for (const char* name : {"w_i_diag", "w_f_diag", "w_o_diag"}) peepholes_.push_back(Weight(name, {u}));
    if (o_.cell == Cell::kProjectedLstm) projection_ = Weight("projection/kernel", {u, out_units()});
    if (o_.cell == Cell::kBlockLstm || fused()) zeros_ = g_.Const(Zeros({u}), "zeros");
  }

  std::string Exchanged(const std::string& v) {
    const std::string range = g_.Op("Range", {g_.Const(Int(2)), g_.Const(Int(3)), g_.Const(Int(1))},
                                    tf::DT_INT32, {Attr("Tidx", tf::DT_INT32)}, "range");
    const std::string order = g_.Op("ConcatV2", {g_.Const(Ints({1, 0})), range, g_.Const(Int(0))},
                                    tf::DT_INT32, {Attr("N", 2), Attr("Tidx", tf::DT_INT32)}, "concat");
    return g_.Op("Transpose", {v, order}, tf::DT_INVALID, {Attr("Tperm", tf::DT_INT32)}, "transpose");
  }
  std::string Reversed(const std::string& v) {
    return g_.Op("ReverseV2", {v, g_.Const(Ints({o_.time_major ? 0 : 1}))}, tf::DT_INVALID,
                 {Attr("Tidx", tf::DT_INT32)}, "ReverseV2");
  }
  std::string Size(const std::string& v, int axis) {
    const std::string shape = g_.Op("Shape", {v}, tf::DT_INT32, {Attr("out_type", tf::DT_INT32)}, "Shape");
    return g_.Op("StridedSlice",
                 {shape, g_.Const(Ints({axis})), g_.Const(Ints({axis + 1})), g_.Const(Ints({1}))},
                 tf::DT_INT32, {Attr("Index", tf::DT_INT32), Attr("shrink_axis_mask", 1)}, "strided_slice");
  }
  std::string ZeroState(const std::string& in, int axis, int units) {
    if (o_.batch >= 0) return g_.Const(Zeros({o_.batch, units}), "zeros");
    const std::string batch = g_.Op("ExpandDims", {Size(in, axis), g_.Const(Int(0))}, tf::DT_INT32,
                                    {Attr("Tdim", tf::DT_INT32)}, "ExpandDims");
    const std::string shape = g_.Op("ConcatV2", {batch, g_.Const(Ints({units})), g_.Const(Int(0))},
                                    tf::DT_INT32, {Attr("N", 2), Attr("Tidx", tf::DT_INT32)}, "concat");
    return g_.Op("Fill", {shape, g_.Const(Float(0))}, tf::DT_FLOAT,
                 {Attr("T", tf::DT_FLOAT), Attr("index_type", tf::DT_INT32)}, "zeros");
  }
  Names ZeroStates(const std::string& in, int axis) {
    Names out;
    if (lstm()) out.push_back(ZeroState(in, axis, o_.units));
    out.push_back(ZeroState(in, axis, out_units()));
    return out;
  }

  std::string Dynamic(const std::string& in) {
    const Names initial = ZeroStates(in, 1);
    const std::string steps = Size(in, 0);
    std::string most = steps;
    if (o_.lengths)
      most = g_.Op("Max", {lengths_, g_.Const(Ints({0}))}, tf::DT_INT32, {Attr("Tidx", tf::DT_INT32)}, "Max");
    const std::string bound =
        g_.Op("Minimum", {steps, g_.Op("Maximum", {g_.Const(Int(1)), most}, tf::DT_INVALID, {}, "Maximum")},
              tf::DT_INVALID, {}, "Minimum");
    V1Graph::Array read = g_.TensorArray(steps, tf::DT_FLOAT, {o_.batch, o_.inputs});
    const V1Graph::Array written = g_.TensorArray(steps, tf::DT_FLOAT, {o_.batch, out_units()});
    read.flow = g_.Unstack(read, in);
    const std::string zero_output = o_.lengths ? ZeroState(in, 1, out_units()) : "";
    Names variables = {g_.Const(Int(0), "while/iteration_counter"), g_.Const(Int(0), "time"), written.flow};
    variables.insert(variables.end(), initial.begin(), initial.end());
    const Names end = g_.While(
        "while", variables,
        [&](const Names& v) {
          return g_.Op("LogicalAnd",
                       {g_.Op("Less", {v[0], steps}, tf::DT_BOOL), g_.Op("Less", {v[1], bound}, tf::DT_BOOL)},
                       tf::DT_BOOL);
        },
        [&](const Names& v) {
          const Names states(v.begin() + 3, v.end());
          const Names stepped = Step(g_.Read(read, v[1]), states);
          Names next = {Plus1(v[0]), Plus1(v[1]), ""};
          std::string output = stepped.back();
          std::string done;
          if (o_.lengths) {
            done = g_.Op("GreaterEqual", {v[1], lengths_}, tf::DT_BOOL);
            output = g_.Op("Select", {done, zero_output, output}, tf::DT_FLOAT, {Attr("T", tf::DT_FLOAT)});
          }
          next[2] = g_.Write({written.handle, v[2], written.dtype}, v[1], output);
          for (size_t i = 0; i < states.size(); ++i)
            next.push_back(o_.lengths ? g_.Op("Select", {done, states[i], stepped[i]}, tf::DT_FLOAT,
                                              {Attr("T", tf::DT_FLOAT)})
                                      : stepped[i]);
          return next;
        });
    states_.assign(end.begin() + 3, end.end());
    const V1Graph::Array all{written.handle, end[2], written.dtype};
    if (o_.last_output) return g_.Read(all, g_.Op("Sub", {end[1], g_.Const(Int(1))}));
    return g_.Stack(all, {o_.batch, out_units()});
  }

  std::string Unrolled(const std::string& in) {
    const std::string parts = g_.Op("Unpack", {in}, tf::DT_INVALID,
                                    {Attr("num", o_.steps), Attr("axis", o_.time_major ? 0 : 1)}, "unstack");
    states_ = ZeroStates(in, o_.time_major ? 1 : 0);
    Names outputs;
    for (int t = 0; t < o_.steps; ++t) {
      states_ = Step(t == 0 ? parts : g_.Output(parts, t, tf::DT_FLOAT), states_);
      outputs.push_back(states_.back());
    }
    return g_.Op("Pack", outputs, tf::DT_FLOAT, {Attr("N", o_.steps), Attr("axis", o_.time_major ? 0 : 1)},
                 "stack");
  }

  std::string Fused(const std::string& in) {
    const Names initial = ZeroStates(in, 1);
    const bool second = o_.cell == Cell::kFusedBlockLstm2;
    const std::string steps = g_.Op("Cast", {Size(in, 0)}, tf::DT_INT64,
                                    {Attr("SrcT", tf::DT_INT32), Attr("DstT", tf::DT_INT64)}, "ToInt64");
    const std::string op = g_.Op(
        second ? "BlockLSTMV2" : "BlockLSTM",
        {steps, in, initial[0], initial[1], kernel_, zeros_, zeros_, zeros_, bias_}, tf::DT_FLOAT,
        second
            ? std::vector<Attr>{Attr("T", tf::DT_FLOAT), Attr("cell_clip", 0.0f), Attr("use_peephole", false)}
            : std::vector<Attr>{Attr("T", tf::DT_FLOAT), Attr("forget_bias", o_.forget_bias),
                                Attr("cell_clip", -1.0f), Attr("use_peephole", false)});
    const std::string c = g_.Output(op, 1, tf::DT_FLOAT);
    const std::string h = g_.Output(op, 6, tf::DT_FLOAT);
    states_ = {Last(c), Last(h)};
    return h;
  }

  std::string Last(const std::string& v) {
    return g_.Op("StridedSlice", {v, g_.Const(Ints({-1})), g_.Const(Ints({0})), g_.Const(Ints({1}))},
                 tf::DT_FLOAT, {Attr("Index", tf::DT_INT32), Attr("shrink_axis_mask", 1)}, "strided_slice");
  }
  std::string Plus1(const std::string& v) { return g_.Op("Add", {v, g_.Const(Int(1))}); }
  std::string Mul(const std::string& a, const std::string& b) { return g_.Op("Mul", {a, b}); }
  std::string Add(const std::string& a, const std::string& b) { return g_.Op("Add", {a, b}); }
  std::string Sigmoid(const std::string& v) { return g_.Op("Sigmoid", {v}); }
  std::string Tanh(const std::string& v) { return g_.Op("Tanh", {v}); }

  // [x, h] W + b.
  std::string Linear(const std::string& x, const std::string& h, const std::string& w, const std::string& b) {
    const std::string both = g_.Op("ConcatV2", {x, h, g_.Const(Int(1), "concat/axis")}, tf::DT_FLOAT,
                                   {Attr("N", 2), Attr("Tidx", tf::DT_INT32)}, "concat");
    const std::string product =
        g_.Op("MatMul", {both, w}, tf::DT_FLOAT, {Attr("transpose_a", false), Attr("transpose_b", false)});
    return g_.Op("BiasAdd", {product, b}, tf::DT_FLOAT, {Attr("data_format", "NHWC")});
  }
  Names Split(const std::string& v, int parts) {
    const std::string first = g_.Op("Split", {g_.Const(Int(1), "split/split_dim"), v}, tf::DT_FLOAT,
                                    {Attr("T", tf::DT_FLOAT), Attr("num_split", parts)}, "split");
    Names out = {first};
    for (int i = 1; i < parts; ++i) out.push_back(g_.Output(first, i, tf::DT_FLOAT));
    return out;
  }

  // c and h, or h alone, of the next step.
  Names Step(const std::string& x, const Names& s) {
    if (o_.cell == Cell::kBasicRnn) return {Tanh(Linear(x, s[0], kernel_, bias_))};
    if (o_.cell == Cell::kGru) return Gru(x, s[0]);
    if (o_.cell == Cell::kBlockGru) {
      const std::string op =
          g_.Op("GRUBlockCell", {x, s[0], kernel_, candidate_kernel_, bias_, candidate_bias_});
      return {g_.Output(op, 3, tf::DT_FLOAT)};
    }
    if (o_.cell != Cell::kBlockLstm) return Lstm(x, s[0], s[1]);
    const std::string op =
        g_.Op("LSTMBlockCell", {x, s[0], s[1], kernel_, zeros_, zeros_, zeros_, bias_}, tf::DT_FLOAT,
              {Attr("forget_bias", o_.forget_bias), Attr("cell_clip", -1.0f), Attr("use_peephole", false)});
    return {g_.Output(op, 1, tf::DT_FLOAT), g_.Output(op, 6, tf::DT_FLOAT)};
  }

  Names Gru(const std::string& x, const std::string& h) {
    const Names ru = Split(Sigmoid(Linear(x, h, kernel_, bias_)), 2);
    const std::string fresh = Tanh(Linear(x, Mul(ru[0], h), candidate_kernel_, candidate_bias_));
    const std::string rest = g_.Op("Sub", {g_.Const(Float(1)), ru[1]});
    return {Add(Mul(ru[1], h), Mul(rest, fresh))};
  }

  Names Lstm(const std::string& x, const std::string& c, const std::string& h) {
    const Names gates = Split(Linear(x, h, kernel_, bias_), 4);  // i, j, f, o
    const auto peep = [&](const std::string& v, size_t which, const std::string& state) {
      return peepholes_.empty() ? v : Add(v, Mul(peepholes_[which], state));
    };
    const std::string f = Sigmoid(peep(Add(gates[2], g_.Const(Float(o_.forget_bias))), 1, c));
    const std::string next = Add(Mul(c, f), Mul(Sigmoid(peep(gates[0], 0, c)), Tanh(gates[1])));
    std::string out = Mul(Tanh(next), Sigmoid(peep(gates[3], 2, next)));
    if (!projection_.empty()) out = g_.Op("MatMul", {out, projection_});
    return {next, out};
  }

  const V1RnnOptions& o_;
  Random random_;
  V1Graph g_;
  std::string x_, lengths_, kernel_, bias_, candidate_kernel_, candidate_bias_, projection_, zeros_;
  Names peepholes_, states_;
};

}  // namespace

V1Graph V1Rnn(const V1RnnOptions& options, uint64_t seed) { return Writer(options, seed).Write(); }

Names OutputsOf(const V1RnnOptions& options) {
  if (!options.final_state) return {"output"};
  const bool one =
      options.cell == Cell::kGru || options.cell == Cell::kBlockGru || options.cell == Cell::kBasicRnn;
  return one ? Names{"h", "output"} : Names{"c", "h", "output"};
}

}  // namespace fusebox::test_models
