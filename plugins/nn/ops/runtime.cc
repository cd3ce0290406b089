// SPDX-License-Identifier: Apache-2.0
// Composites of litert-torch that have parameters of their runtime (the number of active tokens) as an
// operand. Their bodies keep it in use by adding zeros that are computed from it.
#include <algorithm>
#include <string>
#include <vector>

#include "plugins/nn/body/body.h"
#include "plugins/nn/ops/one_op.h"

namespace fusebox::nn {
namespace {

const std::vector<int> kAsIs = {0, 1, 2, 3};
const std::vector<int> kSwapped = {0, 1, 3, 2};

// Returns whether v is this element of the operand.
bool IsElement(const Body& body, fbx_value v, uint32_t operand, int64_t index) {
  const auto node = body.Producer(body.Origin(v));
  if (!node) return false;
  if (node->op() == "UNPACK" || node->op() == "SPLIT")
    return node->in_id(node->op() == "SPLIT" ? 1 : 0) == body.operand(operand) && index < node->out_count() &&
           node->out_id(static_cast<uint32_t>(index)) == body.Origin(v);
  if (node->op() != "SLICE" && node->op() != "STRIDED_SLICE") return false;
  const auto begin = Integers(*node, 1);
  return node->in_id(0) == body.operand(operand) && begin && begin->size() == 1 && begin->front() == index &&
         node->out(0).rank() >= 0 && node->out(0).count() == 1;
}

// The operand, or its four elements joined again.
bool IsPlace(const Body& body, fbx_value v, uint32_t operand) {
  if (body.Origin(v) == body.operand(operand)) return true;
  const auto node = body.Producer(body.Origin(v));
  if (!node || (node->op() != "PACK" && node->op() != "CONCATENATION") || node->in_count() != 4) return false;
  for (uint32_t i = 0; i < 4; ++i)
    if (!IsElement(body, node->in_id(i), operand, i)) return false;
  return true;
}

// Result i is cache i with operand i, its dimensions in this order, at place i.
void RequireUpdate(const Body& body, uint32_t i, const std::vector<int>& order) {
  const GraphNode node = body.Producer(body.result(i), "DYNAMIC_UPDATE_SLICE",
                                       "result " + std::to_string(i) + " is no DYNAMIC_UPDATE_SLICE");
  if (node.in_id(0) != body.operand(3 + i)) DeclineBody("it updates something else than its cache");
  if (!IsPlace(body, node.in_id(2), 5 + i)) DeclineBody("it computes the place of an update");
  // Zeros may be added before the transpose or after it.
  const fbx_value moved = body.WithoutZeros(node.in_id(1));
  const fbx_value sum = body.Origin(moved);
  const fbx_value update = body.WithoutZeros(sum);
  const bool is_first = sum == update;  // no zeros lie between: all moves are in one chain
  if (is_first ? !body.IsTransposed(moved, body.operand(i), order)
               : !body.IsTransposed(moved, sum, order) || update != body.operand(i))
    DeclineBody("it transposes an update otherwise");
}

}  // namespace

void RuntimeProduct(const Site& s, Build& b) {
  s.arity(3, 1);
  s.operand(0, FBX_F32, 4);
  s.operand(1, FBX_F32, 4);
  s.operand(2, FBX_I32);
  const Body body = BodyOf(s);
  const GraphNode node =
      body.Producer(body.WithoutZeros(body.result(0)), "BATCH_MATMUL", "it is no product of its operands");
  const std::vector<int>& order = node.attrs().b("adj_y", false) ? kAsIs : kSwapped;
  if (node.attrs().b("adj_x", false) || node.in_id(0) != body.operand(0) ||
      !body.IsTransposed(node.in_id(1), body.operand(1), order))
    DeclineBody("it is no product of its operands");
  b.result(0, b.builtin("BATCH_MATMUL", {b.in(0), b.in(1)}).attr("adj_x", false).attr("adj_y", true)[0]);
}

// Operands: k and v of new tokens [1,K,T,H], parameters, the caches [1,K,S,H] and [1,K,H,S], and the two
// places.
void CacheUpdate(const Site& s, Build& b) {
  s.arity(7, 2);
  s.require(!s.attrs().b("is_ring_buffer", false), "ATTR", "has no counterpart in DYNAMIC_UPDATE_SLICE",
            "attr is_ring_buffer");
  s.operand(2, FBX_I32);
  const Operands in(s, 7, 2);
  for (const uint32_t i : {0u, 1u, 3u, 4u}) {
    in.RequireUnscaled(i);
    s.require(s.in(i).rank() == 4, "RANK", "does not have rank 4", "operand " + std::to_string(i));
  }
  for (const uint32_t i : {5u, 6u}) in.RequireIntegers(i);
  const Body body = BodyOf(s);
  RequireUpdate(body, 0, kAsIs);
  RequireUpdate(body, 1, kSwapped);
  b.result(0, b.builtin("DYNAMIC_UPDATE_SLICE", {b.in(3), b.in(0), b.in(5)})[0]);
  b.result(1, b.builtin("DYNAMIC_UPDATE_SLICE", {b.in(4), b.transpose(b.in(1), {0, 1, 3, 2}), b.in(6)})[0]);
}

}  // namespace fusebox::nn
