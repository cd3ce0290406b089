// SPDX-License-Identifier: Apache-2.0
// Op versions: a .tflite file stores for each op the lowest version that supports the node.
#pragma once

#include "host/graph/graph.h"

namespace fusebox {

// Depends on operand types, ranks and options. 1 for ops without rule, composites and custom ops.
int LowestVersion(const Function&, const Node&);

// Rules of ops.def.
namespace versions {
int EightBit(const Operands&);   // 2 with 8-bit signed operands
int Recurrent(const Operands&);  // 2 with 8-bit weights, 3 when they also quantize inputs asymmetrically
int FullyConnected(const Operands&);
int Conv2D(const Operands&);
int DepthwiseConv2D(const Operands&);
int TransposeConv(const Operands&);
int Lstm(const Operands&);
int UnidirectionalSequenceLstm(const Operands&);
int BidirectionalSequenceLstm(const Operands&);
int Svdf(const Operands&);
int BatchMatmul(const Operands&);
int Sub(const Operands&);
int Div(const Operands&);
int Pad(const Operands&);
int Transpose(const Operands&);
int Gather(const Operands&);
int ReverseV2(const Operands&);
int Split(const Operands&);
int BroadcastTo(const Operands&);
int EmbeddingLookup(const Operands&);
int Quantize(const Operands&);
int Dequantize(const Operands&);
int FakeQuant(const Operands&);
}  // namespace versions

}  // namespace fusebox
