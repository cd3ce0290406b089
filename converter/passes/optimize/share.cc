// SPDX-License-Identifier: Apache-2.0
// Equal constants become one, and nodes that compute the same become one.
#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "converter/passes/optimize/edit.h"

namespace fusebox::converter::optimize {
namespace {

bool SameQuant(const Value& a, const Value& b) {
  return a.quant == b.quant || (a.quant && b.quant && *a.quant == *b.quant);
}

bool Equal(const Value& a, const Value& b) {
  if (a.type != b.type || a.extra != b.extra || !SameQuant(a, b) || a.data.size() != b.data.size())
    return false;
  return a.data.data() == b.data.data() || std::memcmp(a.data.data(), b.data.data(), a.data.size()) == 0;
}

// Hashes the size and both ends of the data. Values with equal hashes are compared in full.
uint64_t Hash(const Value& v) {
  uint64_t hash = 1469598103934665603u ^ v.data.size() ^ (static_cast<uint64_t>(v.type.dtype) << 48);
  const auto bytes = std::string_view(reinterpret_cast<const char*>(v.data.data()), v.data.size());
  const auto mix = [&](std::string_view part) {
    for (const char c : part) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  };
  mix(bytes.substr(0, 256));
  if (bytes.size() > 256) mix(bytes.substr(bytes.size() - 256));
  return hash;
}

// Returns values that must not share a tensor: outputs are handed out, and states are written.
std::unordered_set<ValueId> Own(const Function& f) {
  std::unordered_set<ValueId> own(f.outputs.begin(), f.outputs.end());
  for (const auto& node : f.nodes)
    for (const int i : StateOperands(node->op))
      if (static_cast<size_t>(i) < node->operands.size()) own.insert(node->operands[static_cast<size_t>(i)]);
  return own;
}

bool ShareConstants(Function& f, const std::unordered_set<ValueId>& own) {
  std::unordered_map<uint64_t, std::vector<ValueId>> seen;
  std::unordered_map<ValueId, ValueId> now;
  for (const auto& node : f.nodes) {
    for (ValueId& v : node->operands) {
      if (v == kNoValue || !f.value(v).is_const() || f.value(v).is_variable || own.contains(v)) continue;
      auto [known, added] = now.emplace(v, v);
      if (added) {
        auto& alike = seen[Hash(f.value(v))];
        const auto it =
            std::ranges::find_if(alike, [&](ValueId other) { return Equal(f.value(other), f.value(v)); });
        if (it != alike.end()) known->second = *it;
        else alike.push_back(v);
      }
      v = known->second;
    }
  }
  return std::ranges::any_of(now, [](const auto& entry) { return entry.first != entry.second; });
}

std::string KeyOf(const Node& node) {
  std::string key =
      std::to_string(static_cast<int>(node.op)) + node.name + '/' + std::to_string(node.version);
  for (ValueId v : node.operands) key += ',' + std::to_string(v);
  return key;
}

bool SameResults(const Function& f, const Node& a, const Node& b) {
  if (a.results.size() != b.results.size() || a.attrs != b.attrs) return false;
  for (size_t i = 0; i < a.results.size(); ++i) {
    if ((a.results[i] == kNoValue) != (b.results[i] == kNoValue)) return false;
    if (a.results[i] == kNoValue) continue;
    const Value& x = f.value(a.results[i]);
    const Value& y = f.value(b.results[i]);
    if (x.type != y.type || !SameQuant(x, y)) return false;
  }
  return true;
}

bool ShareNodes(Function& f, const std::unordered_set<ValueId>& own) {
  std::unordered_map<std::string, std::vector<const Node*>> seen;
  std::unordered_map<ValueId, ValueId> now;
  bool changed = false;
  for (auto& node : f.nodes) {
    for (ValueId& v : node->operands)
      if (const auto it = now.find(v); it != now.end()) v = it->second;
    if (Info(node->op).effects != Effects::kPure || Info(node->op).code < 0) continue;
    if (std::ranges::any_of(node->results, [&](ValueId v) { return own.contains(v); })) continue;
    auto& alike = seen[KeyOf(*node)];
    const auto it =
        std::ranges::find_if(alike, [&](const Node* other) { return SameResults(f, *other, *node); });
    if (it == alike.end()) {
      alike.push_back(node.get());
      continue;
    }
    for (size_t i = 0; i < node->results.size(); ++i)
      if (node->results[i] != kNoValue) now[node->results[i]] = (*it)->results[i];
    node.reset();
    changed = true;
  }
  f.Sweep();
  return changed;
}

}  // namespace

bool Share(Function& f) {
  const auto own = Own(f);
  const bool constants = ShareConstants(f, own);
  return ShareNodes(f, own) || constants;
}

}  // namespace fusebox::converter::optimize
