// SPDX-License-Identifier: Apache-2.0
#include "host/verify/shadow.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>

#include "host/base/log.h"
#include "host/fusion/fusion.h"
#include "host/graph/values.h"
#include "host/graph/view.h"
#include "host/verify/compare.h"
#include "host/verify/runnable.h"

namespace fusebox::verify {
namespace {

constexpr double kOfValue = 1e-3;
constexpr double kOfLargest = 1e-4;

Tensor CopyOf(const fbx_tensor& tensor) {
  return {TypeOf(tensor), Buffer::Copy({static_cast<const std::byte*>(tensor.data), tensor.bytes})};
}

double Largest(const Tensor& tensor) {
  double largest = 0;
  for (const double value : ToDoubles(tensor))
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  return largest;
}

// Bytes, for types without an order.
void CompareBytes(size_t result, const Tensor& fused, const Tensor& body, Case& out) {
  if (std::ranges::equal(fused.data.bytes(), body.data.bytes())) return;
  out.passed = false;
  out.where = "result " + std::to_string(result) + " differs";
}

std::string WhyNotCompared(const Module& module, const Function& f, const Node& node, const Function* body) {
  if (body == nullptr) return "its body is missing";
  if (body->placeholder || IsPlaceholder(module, *body)) return "its body is a placeholder";
  const Uses uses(f);
  for (const ValueId operand : node.operands) {
    if (operand != kNoValue && f.value(operand).is_variable && !uses.producer(operand))
      return "it keeps state";
  }
  return {};
}

}  // namespace

struct Shadow::Impl {
  // One fused op.
  struct Site {
    ShadowRow row;
    std::vector<bool> quantized;  // by result
    Runnable body;
    std::vector<Tensor> inputs;  // of the call in progress
  };
  const Module& module;
  std::shared_ptr<Registry> registry;
  const int every;
  std::deque<Site> sites;
  std::map<const Node*, Site*> by_node;
  Site* current = nullptr;

  Site& SiteOf(const Function& f, const Node& node) {
    Site*& known = by_node[&node];
    if (known != nullptr) return *known;
    known = &sites.emplace_back();
    ShadowRow& row = known->row;
    row.function = f.name;
    row.node = Describe(f, node);
    row.op = node.is(Op::kCustom) ? std::string_view(node.name) : Name(node.op);
    row.plugin = node.fused ? node.fused->plugin : "";
    const Function* const body = module.Find(node.body);
    row.why = WhyNotCompared(module, f, node, body);
    if (!row.why.empty()) return *known;
    std::vector<bool> absent;
    for (const ValueId operand : node.operands) absent.push_back(operand == kNoValue);
    for (const ValueId result : node.results)
      known->quantized.push_back(result != kNoValue && f.value(result).quant != nullptr);
    auto made = Runnable::Make(verify::CopyOf(module, *body, {}, absent), registry);
    if (!made) row.why = "its body does not run: " + made.error().message;
    else if (IsRandom(*made->module)) row.why = "its body draws random numbers";
    else if (IsStateful(*made->module, false)) row.why = "its body keeps state";
    else known->body = *std::move(made);
    return *known;
  }
};

Shadow::Shadow(const Module& module, std::shared_ptr<Registry> registry, int every)
    : impl_(std::make_unique<Impl>(module, std::move(registry), every)) {}
Shadow::~Shadow() = default;

bool Shadow::Before(const Function& f, const Node& node, std::span<const fbx_tensor* const> operands) {
  Impl::Site& site = impl_->SiteOf(f, node);
  const bool due = site.row.calls++ % impl_->every == 0;
  if (!due || !site.row.why.empty()) return false;
  site.inputs.clear();
  for (const fbx_tensor* operand : operands)
    if (operand != nullptr) site.inputs.push_back(CopyOf(*operand));
  impl_->current = &site;
  return true;
}

void Shadow::After(std::span<const fbx_tensor* const> results) {
  Impl::Site& site = *impl_->current;
  ShadowRow& row = site.row;
  const auto expected = site.body.Run(site.inputs);
  if (!expected) {
    row.why = "its body does not run: " + expected.error().message;
    return;
  }
  Case compared{.passed = true};
  for (size_t i = 0; i < results.size() && i < expected->size(); ++i) {
    if (results[i] == nullptr) continue;
    const Tensor fused = CopyOf(*results[i]);
    const Tensor& body = (*expected)[i];
    const bool floats = fused.type.dtype == DType::kF32 || fused.type.dtype == DType::kF64;
    const Bound bound = floats ? Bound{kOfLargest * Largest(body), kOfValue} : Bound{0, 0};
    if (IsComparable(fused.type.dtype))
      CompareResult(i, fused, body, body, bound, {}, site.quantized[i], compared);
    else CompareBytes(i, fused, body, compared);
  }
  ++row.compared;
  row.worst = std::max(row.worst, compared.worst);
  if (compared.passed) return;
  if (row.drifted++ > 0) return;
  row.where = compared.where;
  Log("shadow").warn("{}: {} of {} differs from its body in call {}: {}", row.node, row.op,
                     row.plugin.empty() ? "a plugin" : row.plugin, row.calls, row.where);
}

std::vector<ShadowRow> Shadow::rows() const {
  std::vector<ShadowRow> rows;
  for (const Impl::Site& site : impl_->sites) rows.push_back(site.row);
  return rows;
}

}  // namespace fusebox::verify
