// SPDX-License-Identifier: Apache-2.0
// Parses rules without code.
#include <algorithm>
#include <numeric>

#include "host/plugin/steps.h"

namespace fusebox {
namespace {

using nlohmann::json;
using Operand = DeclaredRewrite::Operand;

bool IsPermutation(std::vector<int64_t> order) {
  std::vector<int64_t> natural(order.size());
  std::iota(natural.begin(), natural.end(), 0);
  std::sort(order.begin(), order.end());
  return order == natural;
}

Result<Operand> ReadOperand(const Document& document, const json& entry, const std::string& at) {
  Operand operand;
  if (entry.is_null()) return operand;
  if (entry.is_number()) {
    operand.from = entry.get<int>();
    return operand;
  }
  operand.from = entry["operand"].get<int>();
  operand.constant = entry.value("constant", false);
  if (entry.contains("rank")) operand.rank = entry["rank"].get<int>();
  if (entry.contains("dtype")) {
    const std::string name = entry["dtype"].get<std::string>();
    operand.dtype = ParseDType(name);
    if (!operand.dtype) return document.Complain(at + "/dtype", "no type \"" + name + "\"");
  }
  if (!entry.contains("transpose")) return operand;
  operand.permutation = entry["transpose"].get<std::vector<int64_t>>();
  if (!IsPermutation(operand.permutation))
    return document.Complain(at + "/transpose", "must list each dimension once");
  const int rank = static_cast<int>(operand.permutation.size());
  if (operand.rank.value_or(rank) != rank)
    return document.Complain(at + "/transpose", "has " + std::to_string(rank) + " dimensions, the rank is " +
                                                    std::to_string(*operand.rank));
  operand.rank = rank;
  return operand;
}

}  // namespace

Result<DeclaredRewrite> ReadRewrite(const Document& document, const json& rewrite, const std::string& at) {
  DeclaredRewrite declared;
  if (rewrite.contains("operands")) {
    declared.operands.emplace();
    for (const json& entry : rewrite["operands"]) {
      const std::string place = at + "/operands/" + std::to_string(declared.operands->size());
      FUSEBOX_ASSIGN(Operand operand, ReadOperand(document, entry, place));
      declared.operands->push_back(std::move(operand));
    }
  }
  if (rewrite.contains("results")) declared.results = rewrite["results"].get<std::vector<int>>();
  const json attributes = rewrite.value("attributes", json::object());
  for (const auto& [name, entry] : attributes.items()) {
    DeclaredRewrite::Attribute attribute{
        .name = name, .from = entry.value("from", std::string()), .value = {}};
    if (entry.contains("value")) {
      const auto value = AttrsFromJson(json{{"value", entry["value"]}});
      if (!value)
        return document.Complain(at + "/attributes/" + EscapePointer(name) + value.error().pointer,
                                 value.error().what);
      attribute.value = *value->Find("value");
    }
    declared.attributes.push_back(std::move(attribute));
  }
  const json tolerance = rewrite.value("tolerance", json::object());
  declared.tolerance = {FBX_HEAD(fbx_tolerance), tolerance.value("atol", 0.0), tolerance.value("rtol", 0.0)};
  return declared;
}

}  // namespace fusebox
