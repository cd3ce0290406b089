// SPDX-License-Identifier: Apache-2.0
#include "plugins/nn/body/body.h"

#include <algorithm>
#include <numeric>

namespace fusebox::nn {
namespace {

bool IsReshape(std::string_view op) { return op == "RESHAPE" || op == "EXPAND_DIMS" || op == "SQUEEZE"; }

template <class T>
bool AllZero(Tensor t) {
  return std::ranges::all_of(t.values<const T>(), [](T v) { return v == T(0); });
}

}  // namespace

Body::Body(const Graph& graph) : graph_(graph) {
  for (uint32_t i = 0; i < graph.node_count(); ++i) {
    const GraphNode node = graph.node(i);
    for (uint32_t r = 0; r < node.out_count(); ++r) producers_[node.out_id(r)] = i;
  }
}

Body BodyOf(const Site& s) {
  const auto graph = s.body();
  if (!graph) DeclineBody("it is a placeholder");
  return Body(*graph);
}

std::optional<std::vector<int64_t>> Integers(const GraphNode& node, uint32_t i) {
  if (i >= node.in_count() || !node.in(i).is_const() || !node.in(i).has_value() ||
      node.in(i).dtype() != FBX_I32)
    return std::nullopt;
  const auto values = node.in(i).values<const int32_t>();
  return std::vector<int64_t>(values.begin(), values.end());
}

std::span<const int64_t> Body::Dims(fbx_value v) const {
  if (value(v).rank() < 0) DeclineBody("the rank of one of its values is not known");
  return value(v).dims();
}

std::optional<GraphNode> Body::Producer(fbx_value v) const {
  const auto producer = producers_.find(v);
  return producer == producers_.end() ? std::nullopt : std::optional(graph_.node(producer->second));
}

GraphNode Body::Producer(fbx_value v, std::string_view op, const std::string& otherwise) const {
  const auto node = Producer(v);
  if (!node || node->op() != op) DeclineBody(otherwise);
  return *node;
}

std::optional<GraphNode> Body::Find(std::string_view op) const {
  for (uint32_t i = 0; i < graph_.node_count(); ++i)
    if (graph_.node(i).op() == op) return graph_.node(i);
  return std::nullopt;
}

fbx_value Body::Origin(fbx_value v) const {
  for (auto node = Producer(v); node && (node->op() == "TRANSPOSE" || IsReshape(node->op()));
       node = Producer(v))
    v = node->in_id(0);
  return v;
}

std::vector<int> Body::DimsFrom(fbx_value v, fbx_value origin) const {
  std::vector<GraphNode> moves;
  while (v != origin) {
    const auto node = Producer(v);
    if (!node) DeclineBody("it computes with other values than the operands that it should");
    if (node->op() != "TRANSPOSE" && !IsReshape(node->op()))
      DeclineBody("it changes an operand by " + std::string(node->op()));
    moves.push_back(*node);
    v = node->in_id(0);
  }
  std::vector<int> dims(Dims(origin).size());
  std::iota(dims.begin(), dims.end(), 0);
  for (auto node = moves.rbegin(); node != moves.rend(); ++node)
    dims = node->op() == "TRANSPOSE" ? AfterTranspose(*node, dims) : AfterReshape(*node, dims);
  return dims;
}

std::vector<int> Body::AfterTranspose(const GraphNode& node, const std::vector<int>& dims) const {
  const auto order = Integers(node, 1);
  if (!order || order->size() != dims.size()) DeclineBody("it computes the order of a transpose");
  std::vector<int> after;
  for (const int64_t d : *order) {
    const int64_t from = d < 0 ? d + static_cast<int64_t>(dims.size()) : d;
    if (from < 0 || from >= static_cast<int64_t>(dims.size())) DeclineBody("a transpose has a bad order");
    after.push_back(dims[static_cast<size_t>(from)]);
  }
  return after;
}

std::vector<int> Body::AfterReshape(const GraphNode& node, const std::vector<int>& dims) const {
  const auto before = Dims(node.in_id(0));
  const auto after = Dims(node.out_id(0));
  std::vector<int> out;
  size_t next = 0;
  const auto skip = [&] {
    while (next < before.size() && before[next] == 1) ++next;
  };
  for (const int64_t size : after) {
    skip();
    if (size == 1) {
      out.push_back(-1);
      continue;
    }
    if (next == before.size() || before[next] != size) DeclineBody("it reshapes an operand");
    out.push_back(dims[next++]);
  }
  skip();
  if (next != before.size()) DeclineBody("it reshapes an operand");
  return out;
}

bool Body::IsTransposed(fbx_value v, fbx_value origin, const std::vector<int>& order) const {
  const std::vector<int> dims = DimsFrom(v, origin);
  return std::ranges::equal(dims, order, [](int is, int should) { return is < 0 || is == should; });
}

fbx_value Body::WithoutZeros(fbx_value v) const {
  for (auto node = Producer(v); node && node->op() == "ADD"; node = Producer(v)) {
    if (IsZero(node->in_id(1))) v = node->in_id(0);
    else if (IsZero(node->in_id(0))) v = node->in_id(1);
    else break;
  }
  return v;
}

bool Body::IsZero(fbx_value v, int depth) const {
  const Tensor t = value(v);
  if (t.is_const() && t.has_value()) {
    switch (t.dtype()) {
      case FBX_F32: return AllZero<float>(t);
      case FBX_I32: return AllZero<int32_t>(t);
      case FBX_I64: return AllZero<int64_t>(t);
      default: return false;
    }
  }
  const auto node = Producer(v);
  if (!node || depth == 0) return false;
  const std::string_view op = node->op();
  // A float times 0 may be NaN.
  if (op == "MUL" && (t.dtype() == FBX_I32 || t.dtype() == FBX_I64))
    return IsZero(node->in_id(0), depth - 1) || IsZero(node->in_id(1), depth - 1);
  if (op == "ADD") return IsZero(node->in_id(0), depth - 1) && IsZero(node->in_id(1), depth - 1);
  return (IsReshape(op) || op == "CAST" || op == "BROADCAST_TO" || op == "SUM") &&
         IsZero(node->in_id(0), depth - 1);
}

}  // namespace fusebox::nn
