// SPDX-License-Identifier: Apache-2.0
// DEPTH_TO_SPACE and SPACE_TO_DEPTH.
#include "plugins/xnnpack/ops/op.h"

namespace fusebox::xnnpack {
namespace {

uint32_t BlockSize(const Site& site) {
  const int64_t size = site.attrs().i64("block_size", 0);
  site.require(size > 1 && size <= 1 << 15, "ATTR", "a block size of " + std::to_string(size));
  return static_cast<uint32_t>(size);
}

void Supports(const Site& site) {
  RequireArity(site, 1, 1);
  RequireValues(site, 0, 0);
  RequireSameQuant(site.in(0), site.out(0));
  RequireRank(site.in(0), 4, Operand(0));
  site.require(!site.constant(0), "CONST", "its operand is constant");
  BlockSize(site);
}

void SupportsToSpace(const Site& site) {
  Supports(site);
  const int64_t block = BlockSize(site), channels = site.in(0).dim(3);
  site.require(channels > 0 && channels % (block * block) == 0, "SHAPE",
               "channels do not divide into blocks");
}

void SupportsToDepth(const Site& site) {
  Supports(site);
  const int64_t block = BlockSize(site), height = site.in(0).dim(1), width = site.in(0).dim(2);
  site.require(height > 0 && width > 0 && height % block == 0 && width % block == 0, "SHAPE",
               "the image does not divide into blocks");
}

void DefineToSpace(const Site& site, Subgraph& graph) {
  graph.Check(
      xnn_define_depth_to_space_2d(graph.get(), BlockSize(site), graph.In(site, 0), graph.Out(site), 0));
}

void DefineToDepth(const Site& site, Subgraph& graph) {
  graph.Check(
      xnn_define_space_to_depth_2d(graph.get(), BlockSize(site), graph.In(site, 0), graph.Out(site), 0));
}

constexpr Operation kTable[] = {
    {"DEPTH_TO_SPACE", Accept::kJoin, SupportsToSpace, DefineToSpace},
    {"SPACE_TO_DEPTH", Accept::kJoin, SupportsToDepth, DefineToDepth},
};

}  // namespace

constinit const OperationTable kSpaceOps = kTable;

}  // namespace fusebox::xnnpack
