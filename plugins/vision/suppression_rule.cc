// SPDX-License-Identifier: Apache-2.0
#include "plugins/vision/suppression_rule.h"

#include <string>

namespace fusebox::vision {
namespace {

constexpr uint32_t kOperands = 5;
constexpr const char* kNames[kOperands] = {"boxes", "scores", "max_output_size", "iou_threshold",
                                           "score_threshold"};
constexpr int kRanks[kOperands] = {2, 1, 0, 0, 0};

std::string Subject(uint32_t i) { return "operand " + std::to_string(i) + " (" + kNames[i] + ")"; }

void CheckOperand(const Site& site, uint32_t i) {
  const Tensor t = site.in(i);
  const fbx_dtype wanted = i == 2 ? FBX_I32 : FBX_F32;
  site.require(t.present(), "ARITY", "is absent", Subject(i));
  site.require(t.dtype() == wanted, "DTYPE",
               std::string("is ") + dtype_name(t.dtype()) + ", expected " + dtype_name(wanted), Subject(i));
  site.require(t.rank() >= 0, "RANK", "has an unknown rank", Subject(i));
  site.require(!(i == 0 && t.rank() > 2), "RANK",
               "has rank " + std::to_string(t.rank()) + ": the op supports no batch", Subject(i));
  site.require(t.rank() == kRanks[i], "RANK",
               "has rank " + std::to_string(t.rank()) + ", expected " + std::to_string(kRanks[i]),
               Subject(i));
}

}  // namespace

void SuppressionRule::match(const Site& site) {
  site.require(site.in_count() >= kOperands, "ARITY",
               "has " + std::to_string(site.in_count()) + " operands, expected 5 or more");
  site.require(site.out_count() == 2, "ARITY",
               "has " + std::to_string(site.out_count()) + " results, expected 2");
  for (uint32_t i = 0; i < kOperands; ++i) CheckOperand(site, i);
  site.require(site.in(0).dim(1) < 0 || site.in(0).dim(1) == 4, "SHAPE", "does not have four numbers per box",
               Subject(0));
}

void SuppressionRule::rewrite(const Site&, Build& build) {
  const auto kept = build.builtin("NON_MAX_SUPPRESSION_V4",
                                  {build.in(0), build.in(1), build.in(2), build.in(3), build.in(4)}, 2);
  build.result(0, kept[0]);
  build.result(1, kept[1]);
}

}  // namespace fusebox::vision
