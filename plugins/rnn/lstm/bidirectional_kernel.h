// SPDX-License-Identifier: Apache-2.0
// BIDIRECTIONAL_SEQUENCE_LSTM, f32, f64 and hybrid (lstm/bidirectional_spec.h), with the code of the LSTM's
// cells.
#pragma once

#include <memory>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/lstm/bidirectional_spec.h"

namespace fusebox::rnn {

class HybridLstm;
class PackedLstm;

struct BidirectionalKernel {
  static constexpr std::string_view builtin = "BIDIRECTIONAL_SEQUENCE_LSTM";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  // What prepare found out for given shapes.
  struct Shapes {
    BidirectionalSpec spec;
    size_t forward_chunk, backward_chunk;  // vector code: steps whose input projection is held at once
    uint32_t cells;                        // slots: scratch of either cell,
    uint32_t reversed, forward, backward;  // the input in reverse, and each direction's sequence
    uint32_t threads;
  };

  static void supports(const Node& node);
  static void infer(const Node& node, Infer& out);
  explicit BidirectionalKernel(const Node& node);
  ~BidirectionalKernel();
  Shapes prepare(const Node& node, Plan& plan) const;
  void invoke(const Node& node, const Shapes& shapes) const;

 private:
  // Both null: the plain definition.
  struct Cell {
    std::unique_ptr<const PackedLstm> packed;
    std::unique_ptr<const HybridLstm> hybrid;
  };
  static Cell MakeCell(const Node& node, const LstmSpec& spec, bool backward);
  static size_t ScratchBytes(const Cell& cell, const LstmSpec& spec, size_t chunk, uint32_t threads);

  template <class T>
  void Run(const Node& node, const Shapes& shapes) const;
  template <class T>
  void RunDirection(const Node& node, const Shapes& shapes, bool backward, const T* x, T* output) const;

  Cell forward_, backward_;
};

}  // namespace fusebox::rnn
