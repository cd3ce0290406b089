// SPDX-License-Identifier: Apache-2.0
// UNIDIRECTIONAL_SEQUENCE_LSTM and LSTM (FULL), every variant (lstm_spec.h): f32 and f64, f32 with weights of 8 bits (lstm_hybrid.h),
// and in integers (lstm_integer.h).
//
// f32 with constant weights, four gates and nothing optional runs as vector code on weights packed once; other floats
// as the plain definition. Results: output, and the final states, which share memory with operands 18 and 19.
#pragma once

#include <memory>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/lstm_spec.h"

namespace fusebox::rnn {

class HybridLstm;
class IntegerLstm;
class PackedLstm;

struct LstmKernel {
  static constexpr std::string_view builtin = "UNIDIRECTIONAL_SEQUENCE_LSTM";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  // What prepare found out for given shapes.
  struct Shapes {
    LstmSpec spec;
    uint32_t scratch;    // slot
    size_t chunk_steps;  // vector code: steps whose input projection is held at once
    uint32_t threads;
  };

  static void supports(const Node& node);
  static void infer(const Node& node, Infer& out);
  explicit LstmKernel(const Node& node);
  ~LstmKernel();
  Shapes prepare(const Node& node, Plan& plan) const;
  void invoke(const Node& node, const Shapes& shapes) const;

 private:
  // At most one; none: the plain definition.
  std::unique_ptr<const PackedLstm> packed_;
  std::unique_ptr<const HybridLstm> hybrid_;
  std::unique_ptr<const IntegerLstm> integer_;
};

// One step. Kernel type BASIC is another op by the same name: basic_lstm_kernel.h.
struct LstmStepKernel : LstmKernel {
  static constexpr std::string_view builtin = "LSTM";
  using LstmKernel::LstmKernel;
};

}  // namespace fusebox::rnn
