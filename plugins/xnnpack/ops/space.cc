// SPDX-License-Identifier: Apache-2.0
// DEPTH_TO_SPACE and SPACE_TO_DEPTH.
#include "plugins/xnnpack/partition/op.h"

namespace fusebox::xnnpack {
namespace {

uint32_t BlockSize(const NetworkNode& node) {
  const int64_t size = node.attrs().i64("block_size", 0);
  node.require(size > 1 && size <= 1 << 15, "ATTR", "a block size of " + std::to_string(size));
  return static_cast<uint32_t>(size);
}

void Supports(const NetworkNode& node) {
  RequireArity(node, 1, 1);
  RequireValues(node, 0, 0);
  RequireSameQuant(node.in(0), node.out(0));
  RequireRank(node.in(0), 4, Operand(0));
  node.require(!node.constant(0), "CONST", "its operand is constant");
  BlockSize(node);
}

void SupportsToSpace(const NetworkNode& node) {
  Supports(node);
  const int64_t block = BlockSize(node);
  const int64_t channels = node.in(0).dim(3);
  node.require(channels > 0 && channels % (block * block) == 0, "SHAPE",
               "channels do not divide into blocks");
}

void SupportsToDepth(const NetworkNode& node) {
  Supports(node);
  const int64_t block = BlockSize(node);
  const int64_t height = node.in(0).dim(1);
  const int64_t width = node.in(0).dim(2);
  node.require(height > 0 && width > 0 && height % block == 0 && width % block == 0, "SHAPE",
               "the image does not divide into blocks");
}

void DefineToSpace(const NetworkNode& node, Subgraph& graph) {
  graph.Check(
      xnn_define_depth_to_space_2d(graph.get(), BlockSize(node), graph.In(node, 0), graph.Out(node), 0));
}

void DefineToDepth(const NetworkNode& node, Subgraph& graph) {
  graph.Check(
      xnn_define_space_to_depth_2d(graph.get(), BlockSize(node), graph.In(node, 0), graph.Out(node), 0));
}

constexpr Operation kTable[] = {
    {"DEPTH_TO_SPACE", Accept::kJoin, SupportsToSpace, DefineToSpace},
    {"SPACE_TO_DEPTH", Accept::kJoin, SupportsToDepth, DefineToDepth},
};

}  // namespace

constinit const OperationTable kSpaceOps = kTable;

}  // namespace fusebox::xnnpack
