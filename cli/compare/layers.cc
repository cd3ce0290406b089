// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace fusebox::cli {
namespace {

// The function that a session of this signature runs.
Function& FunctionOf(Module& module, const std::string& signature) {
  for (const Signature& s : module.signatures)
    if (s.key == signature) return *module.Find(s.function);
  return *module.functions.front();
}

bool IsComparable(const Value& value) {
  const DType dtype = value.type.dtype;
  return !value.is_variable && dtype != DType::kResource && dtype != DType::kVariant &&
         dtype != DType::kString;
}

// Appends `value` to the outputs, unless it is one.
size_t OutputOf(Module& module, Function& f, ValueId value, const std::string& name) {
  const auto found = std::ranges::find(f.outputs, value);
  const auto index = static_cast<size_t>(found - f.outputs.begin());
  if (found != f.outputs.end()) return index;
  f.outputs.push_back(value);
  for (Signature& s : module.signatures)
    if (s.function == f.name) s.output_names.push_back(name);
  if (!f.output_names.empty()) f.output_names.push_back(name);
  return index;
}

void AddResults(Module& module, Function& f, size_t node, Exposed& out) {
  const Node& n = *f.nodes[node];
  for (size_t r = 0; r < ProperResultCount(n); ++r) {
    const ValueId id = n.results[r];
    if (id == kNoValue || !IsComparable(f.value(id))) continue;
    const Value& value = f.value(id);
    const std::string op(n.is(Op::kCustom) ? std::string_view(n.name) : Name(n.op));
    out.layers.push_back({.node = node, .op = op, .name = value.name, .type = value.type});
    out.quants.push_back(value.quant);
    out.outputs.push_back(OutputOf(module, f, id, fmt::format("node {} result {}", node, r)));
  }
}

// Real numbers, where both sides may have other types: f64, or the values that quantized numbers stand for.
Tensor Real(const Tensor& tensor, const Quant* quant) {
  const size_t count = ElementCount(tensor);
  const bool scaled = quant != nullptr && quant->scales.size() == 1;
  const double scale = scaled ? quant->scales[0] : 1;
  const double zero = scaled && !quant->zero_points.empty() ? static_cast<double>(quant->zero_points[0]) : 0;
  std::vector<double> values(count);
  ReadDoubles(tensor, 0, values);
  for (double& value : values) value = (value - zero) * scale;
  return {{DType::kF64, tensor.type.shape}, Buffer::Of<double>(std::move(values))};
}

void AddSquares(const Tensor& a, const Tensor& b, Squares& squares) {
  const auto x = a.data.As<double>();
  const auto y = b.data.As<double>();
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) continue;
    squares.difference += (x[i] - y[i]) * (x[i] - y[i]);
    squares.reference += y[i] * y[i];
  }
}

}  // namespace

Result<Exposed> Expose(const Opened& model, ModelOptions options, const SessionOptions& session) {
  Exposed out;
  std::unique_ptr<Module> module = Clone(model.model->module());
  Function& f = FunctionOf(*module, model.session->signature());
  for (size_t node = 0; node < f.nodes.size(); ++node) AddResults(*module, f, node, out);
  options.name = model.path;
  FUSEBOX_ASSIGN(out.opened.model, Model::FromModule(std::move(module), options));
  FUSEBOX_ASSIGN(out.opened.session, Session::Create(out.opened.model, session));
  out.opened.path = model.path;
  out.opened.ports = PortsOf(*out.opened.model, *out.opened.session, session.signature);
  return out;
}

std::vector<int> MatchLayers(std::vector<Layer>& a, std::span<const Layer> b) {
  std::multimap<std::string, int> names;
  std::multimap<size_t, int> nodes;
  for (size_t j = 0; j < b.size(); ++j) {
    if (!b[j].name.empty()) names.emplace(b[j].name, static_cast<int>(j));
    nodes.emplace(b[j].node, static_cast<int>(j));
  }
  std::vector<int> partners(a.size(), -1);
  for (size_t i = 0; i < a.size(); ++i) {
    // A converter may give several values one name: weights and what is computed with them.
    const auto match = [&](auto candidates, bool same_op) {
      for (auto it = candidates.first; it != candidates.second && partners[i] < 0; ++it) {
        const Layer& other = b[static_cast<size_t>(it->second)];
        if ((!same_op || other.op == a[i].op) && Compatible({a[i].type.dtype, other.type.shape}, a[i].type))
          partners[i] = it->second;
      }
    };
    match(names.equal_range(a[i].name), true);
    match(names.equal_range(a[i].name), false);
    a[i].matched = partners[i] >= 0;
    match(nodes.equal_range(a[i].node), true);
    if (partners[i] >= 0) a[i].other = b[static_cast<size_t>(partners[i])].name;
  }
  return partners;
}

Status AddLayers(Exposed& a, const Exposed& b, std::span<const int> partners, const Tolerance& tolerance,
                 std::vector<Squares>& squares) {
  for (size_t i = 0; i < partners.size(); ++i) {
    if (partners[i] < 0) continue;
    const auto j = static_cast<size_t>(partners[i]);
    FUSEBOX_ASSIGN(const Tensor left, a.opened.session->output(static_cast<int>(a.outputs[i])));
    FUSEBOX_ASSIGN(const Tensor right, b.opened.session->output(static_cast<int>(b.outputs[j])));
    Layer& layer = a.layers[i];
    layer.type = left.type;
    if (IsComplex(left.type.dtype) || IsComplex(right.type.dtype)) {
      FUSEBOX_ASSIGN(const Difference d, Compare(left, right, tolerance));
      layer.difference.Add(d);
      continue;
    }
    const Tensor x = Real(left, a.quants[i].get());
    const Tensor y = Real(right, b.quants[j].get());
    FUSEBOX_ASSIGN(const Difference d, Compare(x, y, tolerance));
    layer.difference.Add(d);
    AddSquares(x, y, squares[i]);
    const Squares& s = squares[i];
    layer.error = s.difference == 0 ? 0 : s.reference == 0 ? INFINITY : std::sqrt(s.difference / s.reference);
  }
  return {};
}

}  // namespace fusebox::cli
