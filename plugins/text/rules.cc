// SPDX-License-Identifier: Apache-2.0
#include "plugins/text/rules.h"

#include <string>
#include <vector>

namespace fusebox::text {
namespace {

constexpr std::string_view kNgramsAttrs[] = {"width", "string_separator", "axis", "reduction_type"};

// Emits a custom op with the composite's name and all its operands.
void Emit(const Site& site, Build& build, std::string_view op,
          std::initializer_list<std::string_view> attrs) {
  std::vector<Value> operands;
  for (uint32_t i = 0; i < site.in_count(); ++i) operands.push_back(build.in(i));
  const auto node = build.custom(op, operands, site.out_count());
  for (const std::string_view key : attrs) build.copy_attr(site.attrs(), key);
  for (uint32_t i = 0; i < site.out_count(); ++i) build.result(i, node[i]);
}

}  // namespace

void TokenizerRule::match(const Site& site) {
  site.require(site.in_count() == 1, "ARITY",
               "has " + std::to_string(site.in_count()) + " operands, expected 1");
  site.operand(0, FBX_STRING, -1);
  const int rank = site.in(0).rank();
  site.require(rank >= 0, "RANK", "has an unknown rank", "operand 0");
  site.require(rank <= 2, "RANK", "has rank " + std::to_string(rank) + ", expected 0, 1 or 2", "operand 0");
  site.require(
      site.out_count() == static_cast<uint32_t>(rank) + 1, "ARITY",
      "has " + std::to_string(site.out_count()) + " results for strings of rank " + std::to_string(rank));
}

void TokenizerRule::rewrite(const Site& site, Build& build) {
  Emit(site, build, "tftext:WhitespaceTokenizer", {});
}

void NgramsRule::match(const Site& site) {
  const uint32_t count = site.in_count();
  site.require(count >= 1, "ARITY", "has no operands");
  site.arity(count, count);
  site.operand(0, FBX_STRING, count > 1 ? 1 : -1);
  for (uint32_t i = 1; i < count; ++i) site.operand(i, FBX_I64, 1);
  for (const std::string_view key : kNgramsAttrs) site.attr(key);
  const Attrs attrs = site.attrs();
  site.require(attrs.i64("width") >= 1, "ATTR", "is " + std::to_string(attrs.i64("width")), "attr width");
  site.require(attrs.i64("axis") == -1, "ATTR", "is not -1", "attr axis");
  site.require(attrs.s("reduction_type") == "STRING_JOIN", "ATTR", "is not STRING_JOIN",
               "attr reduction_type");
}

void NgramsRule::rewrite(const Site& site, Build& build) {
  Emit(site, build, "tftext:Ngrams", {"width", "string_separator", "axis", "reduction_type"});
}

void ProjectionRule::match(const Site& site) {
  site.arity(2, 1);
  site.operand(0, FBX_STRING, 1);
  site.operand(1, FBX_I64, 1);
  for (const std::string_view key : {"hash_seed", "buckets"}) site.attr(key);
  site.require(!site.attrs().i64s("hash_seed").empty(), "ATTR", "is empty", "attr hash_seed");
  const int64_t buckets = site.attrs().i64("buckets");
  site.require(buckets >= 2, "ATTR", "is " + std::to_string(buckets), "attr buckets");
  const Tensor result = site.out(0);
  const auto seeds = static_cast<int64_t>(site.attrs().i64s("hash_seed").size());
  site.require(result.rank() < 0 || (result.rank() == 2 && (result.dim(1) < 0 || result.dim(1) == seeds)),
               "SHAPE", "does not have one column for each of " + std::to_string(seeds) + " seeds",
               "result 0");
}

void ProjectionRule::rewrite(const Site& site, Build& build) {
  Emit(site, build, "tftext:custom:SgnnProjection", {"hash_seed", "buckets"});
}

}  // namespace fusebox::text
