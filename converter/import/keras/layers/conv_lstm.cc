// SPDX-License-Identifier: Apache-2.0
#include "converter/import/keras/layers/conv_lstm.h"

namespace fusebox::keras {
namespace {

// Moves the channels of a sequence [batch, time, ...] from dimension 2 to the end, or back.
ValueId MoveChannels(LayerCall& c, ValueId v, bool back) {
  const int rank = c.emit().rank(v);
  if (!c.ChannelsFirst() || rank < 4) return v;
  std::vector<int64_t> perm = {0, 1};
  if (back) perm.push_back(rank - 1);
  for (int i = back ? 2 : 3; i < (back ? rank - 1 : rank); ++i) perm.push_back(i);
  if (!back) perm.push_back(2);
  return c.emit().Transpose(v, perm);
}

// Size of a convolution's result; 0 or less if the window does not fit.
int64_t OutputSize(const Window& w, size_t i, int64_t in) {
  if (w.padding == "SAME") return (in + w.strides[i] - 1) / w.strides[i];
  const int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
  return in < reach ? 0 : (in - reach) / w.strides[i] + 1;
}

bool IsSoftmax(const nlohmann::json& activation) {
  return activation.dump().find("softmax") != std::string::npos;
}

}  // namespace

ConvLstmForm::ConvLstmForm(LayerCall& call, RecurrentSpec spec, ValueId inputs, ValueId mask)
    : call_(call), spec_(std::move(spec)), inputs_(inputs) {
  LayerCall& c = call_;
  if (c.keras() == 1) c.emit().Refuse("a ConvLSTM of Keras 1; load and save the model with Keras 2");
  if (c.ChannelsFirst() && (IsSoftmax(spec_.activation) || IsSoftmax(spec_.recurrent_activation)))
    c.emit().Refuse("softmax over the last of the dimensions of channels_first");
  Window& w = spec_.window;
  w.space = SpatialRank(c.layer().class_name);
  const auto n = static_cast<size_t>(w.space);
  w.kernel = c.Sizes("kernel_size", n);
  w.strides = c.Sizes("strides", n);
  w.dilations = c.Has("dilation_rate") ? c.Sizes("dilation_rate", n) : std::vector<int64_t>(n, 1);
  w.padding = Padding(c);
  if (c.emit().rank(inputs) != w.space + 3) return;  // reported by the caller
  inputs_ = MoveChannels(c, inputs, false);
  ReadSpace();
  CheckMask(mask);
}

void ConvLstmForm::ReadSpace() {
  Emitter& e = call_.emit();
  const Window& w = spec_.window;
  for (size_t i = 0; i < w.kernel.size() && e.ok(); ++i) {
    const Extent in = e.size(inputs_, static_cast<int>(i) + 2);
    const bool keeps = w.padding == "SAME" && w.strides[i] == 1;
    if (in.size < 0 && !keeps)
      return e.Refuse("its input is " + ToString(e.type(inputs_)) +
                      ", so the size of its state is unknown; save the model with a fixed input shape");
    if (in.size >= 0 && OutputSize(w, i, in.size) < 1)
      return e.Reject("its kernel is larger than its input " + ToString(e.type(inputs_)));
    spec_.space.push_back(keeps ? in : Extent{OutputSize(w, i, in.size)});
  }
}

// A mask of elements must fit the state, which it keeps element by element.
void ConvLstmForm::CheckMask(ValueId mask) const {
  Emitter& e = call_.emit();
  if (mask == kNoValue || e.rank(mask) == 2 || !e.ok()) return;
  bool fits = e.rank(mask) == spec_.window.space + 2 && !call_.ChannelsFirst();
  for (size_t i = 0; fits && i < spec_.space.size(); ++i) {
    const int64_t size = e.dim(mask, static_cast<int>(i) + 2);
    fits = size == 1 || size == spec_.space[i].size;
  }
  if (!fits) e.Refuse("a mask " + ToString(e.type(mask)) + ", which does not fit its states");
}

RecurrentResults ConvLstmForm::Back(RecurrentResults results) const {
  results.outputs = MoveChannels(call_, results.outputs, true);
  results.last = ChannelsBack(call_, results.last);
  for (ValueId& state : results.states) state = ChannelsBack(call_, state);
  return results;
}

void ReadConvLstmWeights(LayerCall& c, const RecurrentSpec& spec, RecurrentOperands& to) {
  const int64_t columns = 4 * spec.units;
  to.kernel = c.Weight("kernel", spec.window.KernelShape(c.emit().dim(to.inputs, -1), columns));
  to.recurrent = c.Weight("recurrent_kernel", spec.window.KernelShape(spec.units, columns));
  if (!c.emit().ok()) return;
  if (c.Bool("use_bias", true)) {
    to.bias = c.Weight("bias", {columns});
  } else {
    const std::vector<float> zeros(static_cast<size_t>(columns), 0);
    to.bias =
        c.Constant({{DType::kF32, Shape({columns})}, Buffer::Of<float>(zeros)}, c.layer().path + "/bias");
  }
}

}  // namespace fusebox::keras
