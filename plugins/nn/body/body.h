// SPDX-License-Identifier: Apache-2.0
// The body of a composite, for rules that read from it what the attributes do not determine: the node that
// computes a value, dimensions that ops move, and zeros that a producer adds to keep operands in use.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fusebox/rule.hpp>

namespace fusebox::nn {

using namespace sdk;

[[noreturn]] inline void DeclineBody(std::string why) { throw Reject{"BODY", std::move(why)}; }

class Body {
 public:
  explicit Body(const Graph& graph);

  fbx_value operand(uint32_t i) const { return graph_.inputs()[i]; }
  fbx_value result(uint32_t i) const { return graph_.outputs()[i]; }
  Tensor value(fbx_value v) const {
    if (v == FBX_NO_VALUE) DeclineBody("it has an absent operand");
    return graph_.value(v);
  }
  // The dims of a value; declines if its rank is unknown.
  std::span<const int64_t> Dims(fbx_value v) const;
  // Returns nothing for operands and constants.
  std::optional<GraphNode> Producer(fbx_value v) const;
  // The producer; declines with the given reason if it is another op.
  GraphNode Producer(fbx_value v, std::string_view op, const std::string& otherwise) const;
  // The first node of this op.
  std::optional<GraphNode> Find(std::string_view op) const;

  // The first value on the way back from v that no op which only moves elements computes.
  fbx_value Origin(fbx_value v) const;
  // For each dimension of v: the dimension of `origin` that it is, or -1 if it has size 1. Declines if other
  // ops than TRANSPOSE and those that add or remove dimensions of size 1 lie between them.
  std::vector<int> DimsFrom(fbx_value v, fbx_value origin) const;
  // Returns whether v is `origin` with its dimensions in this order. Dimensions of size 1 do not count.
  bool IsTransposed(fbx_value v, fbx_value origin, const std::vector<int>& order) const;

  // v without zeros that are added to it.
  fbx_value WithoutZeros(fbx_value v) const;
  // Returns whether all elements are known to be 0: constants, integers multiplied by 0, and what ops that
  // move, sum or convert make of them.
  bool IsZero(fbx_value v) const { return IsZero(v, 8); }

 private:
  bool IsZero(fbx_value v, int depth) const;
  std::vector<int> AfterTranspose(const GraphNode& node, const std::vector<int>& dims) const;
  std::vector<int> AfterReshape(const GraphNode& node, const std::vector<int>& dims) const;

  Graph graph_;
  std::map<fbx_value, uint32_t> producers_;  // node by result
};

// The body of a site; declines if there is none.
Body BodyOf(const Site& s);

// The integers of a constant i32 operand, or nothing.
std::optional<std::vector<int64_t>> Integers(const GraphNode& node, uint32_t i);

}  // namespace fusebox::nn
