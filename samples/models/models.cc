// SPDX-License-Identifier: Apache-2.0
#include "samples/models/models.h"

#include <algorithm>

namespace fusebox::samples {
namespace {

// Binds WriteLstm and similar functions to fixed options, as a plain function.
template <auto kWrite, auto kOptions>
Status WriteAs(const std::string& dir, uint64_t seed) {
  return kWrite(dir, seed, kOptions);
}

using Lstm = LstmOptions;
template <Lstm kOptions>
constexpr auto kWriteLstm = WriteAs<&WriteLstm, kOptions>;

using Keras3 = Keras3RnnOptions;
template <Keras3 kOptions>
constexpr auto kWriteKeras3 = WriteAs<&WriteKeras3Rnn, kOptions>;

using Rnn = RecurrentOptions;
template <Rnn kOptions>
constexpr auto kWriteRnn = WriteAs<&WriteRecurrent, kOptions>;

constexpr SampleModel kModels[] = {
    {"dense",
     "three Dense layers with Relu and Softmax, batch dynamic; a second signature returns the logits",
     WriteDense},
    {"keras3_dense", "the same as exported by Keras 3: each variable is saved twice", WriteKeras3Dense},
    {"keras_lstm", "Keras LSTM and Dense, batch dynamic", kWriteLstm<Lstm{}>},
    {"lstm_time_major", "LSTM on [steps, batch, inputs], all steps returned",
     kWriteLstm<Lstm{.time_major = true, .return_sequences = true}>},
    {"lstm_backwards", "LSTM from the last step to the first",
     kWriteLstm<Lstm{.go_backwards = true, .return_sequences = true}>},
    {"lstm_sequences", "LSTM that returns all steps, any number of them",
     kWriteLstm<Lstm{.steps = -1, .return_sequences = true}>},
    {"lstm_last_step", "LSTM of newer Keras; its loop keeps only one step",
     kWriteLstm<Lstm{.last_step_only = true}>},
    {"lstm_states", "LSTM of one step whose states are inputs and outputs",
     kWriteLstm<Lstm{.batch = 1, .steps = 1, .initial_state = Lstm::State::kInput}>},
    {"lstm_constant_state", "LSTM that starts from constants",
     kWriteLstm<Lstm{.batch = 1, .return_state = true, .initial_state = Lstm::State::kConstant}>},
    {"lstm_computed_state", "LSTM that starts from a projection of its first input",
     kWriteLstm<Lstm{.return_state = true, .initial_state = Lstm::State::kComputed}>},
    {"lstm_four_gates", "another library's LSTM behind the same interface: one matrix product per gate",
     kWriteLstm<Lstm{.body = Lstm::Body::kFourGates}>},
    {"indy_lstm", "IndyLSTM: each unit depends only on its own state",
     kWriteLstm<Lstm{.return_sequences = true, .independent = true}>},
    {"lstm_swapped_gates", "the same interface with a wrong body: input and forget gate swapped",
     kWriteLstm<Lstm{.body = Lstm::Body::kSwappedGates}>},
    {"keras3_lstm", "LSTM of Keras 3: a loop without annotation", kWriteKeras3<Keras3{}>},
    {"keras3_gru", "GRU of Keras 3, all steps returned",
     kWriteKeras3<Keras3{.layer = Keras3::Layer::kGru, .return_sequences = true}>},
    {"keras3_simple_rnn", "SimpleRNN of Keras 3, from the last step to the first",
     kWriteKeras3<Keras3{.layer = Keras3::Layer::kSimpleRnn, .go_backwards = true}>},
    {"keras3_lstm_unrolled", "LSTM of Keras 3 with unroll: one copy of the cell per step",
     kWriteKeras3<Keras3{.return_sequences = true, .unroll = true}>},
    {"gru", "Keras GRU, all steps and the final state returned",
     kWriteRnn<Rnn{.return_sequences = true, .return_state = true}>},
    {"gru_reset_before", "GRU whose reset gate is applied to the state",
     kWriteRnn<Rnn{.cell = Rnn::Cell::kGruResetBefore}>},
    {"gru_other_body", "another library's GRU behind the same interface", kWriteRnn<Rnn{.other_body = true}>},
    {"simple_rnn", "Keras SimpleRNN, all steps returned",
     kWriteRnn<Rnn{.cell = Rnn::Cell::kSimpleRnn, .return_sequences = true}>},
    {"bidirectional_lstm", "Bidirectional LSTM, all steps, concatenated",
     kWriteRnn<Rnn{.cell = Rnn::Cell::kLstm, .return_sequences = true, .merge = Rnn::Merge::kConcat}>},
    {"stateful_lstm", "LSTM that keeps its states between calls",
     kWriteRnn<Rnn{.cell = Rnn::Cell::kLstm, .batch = 1, .stateful = true}>},
    {"custom_fused", "two Conv2D into my_custom_fused_op with a placeholder body",
     WriteAs<&WriteCustomFused, CustomFusedOptions{}>},
    {"custom_fused_body", "the same with a real body",
     WriteAs<&WriteCustomFused, CustomFusedOptions{.real_body = true}>},
    {"conv_relu", "Conv2D, BiasAdd, Relu", WriteAs<&WriteConvRelu, ConvReluOptions{}>},
    {"conv_relu_two_consumers", "the same, and the sum before Relu is an output too",
     WriteAs<&WriteConvRelu, ConvReluOptions{.second_consumer = true}>},
    {"conv_relu_spatial_bias", "the same with a bias that varies over the width",
     WriteAs<&WriteConvRelu, ConvReluOptions{.spatial_bias = true}>},
    {"conv_classifier", "convolutions with batch normalization, pool, Dense, Softmax, batch dynamic",
     WriteConvClassifier},
    {"counter", "a variable that the model changes; a second signature reads it", WriteCounter},
};

}  // namespace

std::span<const SampleModel> SampleModels() { return kModels; }

const SampleModel* FindSampleModel(std::string_view name) {
  auto found = std::ranges::find(kModels, name, &SampleModel::name);
  return found == std::end(kModels) ? nullptr : &*found;
}

}  // namespace fusebox::samples
