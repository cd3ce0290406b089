// SPDX-License-Identifier: Apache-2.0
// UNIDIRECTIONAL_SEQUENCE_LSTM, LSTM (FULL) and fusebox.lstm, every variant (lstm/spec.h): f32 and f64, f32
// with weights of 8 bits (lstm/hybrid.h), and but for fusebox.lstm in integers (lstm/integer.h).
//
// f32 with constant weights, four gates and nothing optional runs as vector code on weights packed once;
// other floats as the plain definition. Results: output, and the final states, which share memory with
// operands 18 and 19 (not of fusebox.lstm).
#pragma once

#include <memory>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/lstm/spec.h"

namespace fusebox::rnn {

class HybridLstm;
class IntegerLstm;
class PackedLstm;

// What the ops have in common: all but their names.
struct LstmOps {
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
  explicit LstmOps(const Node& node);
  ~LstmOps();
  Shapes prepare(const Node& node, Plan& plan) const;
  void invoke(const Node& node, const Shapes& shapes) const;

 private:
  // At most one; none: the plain definition.
  std::unique_ptr<const PackedLstm> packed_;
  std::unique_ptr<const HybridLstm> hybrid_;
  std::unique_ptr<const IntegerLstm> integer_;
};

struct LstmKernel : LstmOps {
  static constexpr std::string_view builtin = "UNIDIRECTIONAL_SEQUENCE_LSTM";
  using LstmOps::LstmOps;
};

// One step. Kernel type BASIC is another op by the same name: lstm/basic_kernel.h.
struct LstmStepKernel : LstmOps {
  static constexpr std::string_view builtin = "LSTM";
  using LstmOps::LstmOps;
};

// Activations that the builtin op cannot say.
struct OtherLstmKernel : LstmOps {
  static constexpr std::string_view custom = "fusebox.lstm";
  using LstmOps::LstmOps;
};

}  // namespace fusebox::rnn
