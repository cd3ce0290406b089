// SPDX-License-Identifier: Apache-2.0
// Parses an op's roles in quantization.
#include <algorithm>
#include <set>

#include "host/plugin/steps.h"

namespace fusebox {
namespace {

using nlohmann::json;

std::string Operand(size_t operand) { return "operand " + std::to_string(operand); }

// Parses one member after the other. The schema has already validated them.
class Reader {
 public:
  Reader(const Document& document, const json& value, std::string at)
      : document_(document), value_(value), at_(std::move(at)) {}

  Result<OpQuantization> Read() {
    out_.asymmetric_inputs = value_.value("asymmetric_inputs", false);
    FUSEBOX_TRY(
        Each("weights", [&](const json& entry, const std::string& at) { return Weights(entry, at); }));
    FUSEBOX_TRY(Each("biases", [&](const json& entry, const std::string& at) { return Bias(entry, at); }));
    FUSEBOX_TRY(
        Each("same_scale", [&](const json& entry, const std::string& at) { return Group(entry, at); }));
    return std::move(out_);
  }

 private:
  template <class F>
  Status Each(const char* key, const F& read) {
    if (!value_.contains(key)) return {};
    for (size_t i = 0; i < value_[key].size(); ++i)
      FUSEBOX_TRY(read(value_[key][i], at_ + "/" + key + "/" + std::to_string(i)));
    return {};
  }

  Status Once(size_t operand, const std::string& at) {
    if (with_role_.insert(operand).second) return {};
    return document_.Complain(at, Operand(operand) + " has a role already");
  }

  Status Weights(const json& entry, const std::string& at) {
    out_.weights.push_back({entry["operand"].get<size_t>(), entry.value("axis", -1)});
    return Once(out_.weights.back().operand, at + "/operand");
  }

  Status Bias(const json& entry, const std::string& at) {
    const OpQuantization::Bias bias{entry["operand"].get<size_t>(), entry["input"].get<size_t>(),
                                    entry["weights"].get<size_t>()};
    out_.biases.push_back(bias);
    if (std::ranges::find(out_.weights, bias.weights, &OpQuantization::Weights::operand) ==
        out_.weights.end())
      return document_.Complain(at + "/weights", Operand(bias.weights) + " is not listed in \"weights\"");
    FUSEBOX_TRY(Once(bias.operand, at + "/operand"));
    if (with_role_.contains(bias.input))
      return document_.Complain(at + "/input", Operand(bias.input) + " is not an activation");
    return {};
  }

  Status Group(const json& entry, const std::string& at) {
    OpQuantization::SameScale group{entry.value("operands", std::vector<size_t>()),
                                    entry.value("results", std::vector<size_t>())};
    if (group.operands.size() + group.results.size() < 2)
      return document_.Complain(at, "has fewer than two operands and results");
    for (const size_t operand : group.operands) FUSEBOX_TRY(Once(operand, at + "/operands"));
    for (const size_t result : group.results)
      if (!results_.insert(result).second)
        return document_.Complain(at + "/results", "result " + std::to_string(result) + " is in two groups");
    out_.same_scale.push_back(std::move(group));
    return {};
  }

  const Document& document_;
  const json& value_;
  const std::string at_;
  OpQuantization out_;
  std::set<size_t> with_role_, results_;
};

}  // namespace

Result<OpQuantization> ReadQuantization(const Document& document, const json& quantization,
                                        const std::string& at) {
  return Reader(document, quantization, at).Read();
}

}  // namespace fusebox
