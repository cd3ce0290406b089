// SPDX-License-Identifier: Apache-2.0
// Reads what the body of an attention composite does with its scores, between the product of q and k and the
// softmax.
#pragma once

#include <optional>
#include <vector>

#include "plugins/nn/attention/shape.h"
#include "plugins/nn/body/body.h"

namespace fusebox::nn {

// The mask that the body applies by itself, and how it uses the mask operand.
struct Masking {
  bool causal = false;
  bool selects = false;
  std::vector<float> values;  // [positions, keys]; empty: none
  std::optional<float> fill;  // replaces scores where the mask operand is false
};

class ScoreReader {
 public:
  ScoreReader(const Site& s, const Body& body, const Layout& layout, bool has_mask);

  // Follows the scores from the softmax back to the product of q and k. Declines anything that the op does
  // not compute.
  Masking Read();
  // Declines unless the scores are q k^T, not scaled, and the result is their softmax times v, with q, k and
  // v in this layout.
  void RequireProducts() const;

 private:
  GraphNode Softmax() const;
  void RequireScores(Tensor scores) const;
  fbx_value Before(const GraphNode& node, Masking& masking);
  fbx_value BeforeSelect(const GraphNode& node, Masking& masking);
  void RequireNoMask(const Masking& masking) const;
  bool IsMask(fbx_value v, bool as_condition) const;
  void RequireMaskShape(Tensor t) const;
  std::vector<float> Constant(Tensor t) const;
  std::vector<float> Selected(const GraphNode& node, uint32_t scores) const;
  void Classify(Masking& masking) const;
  void RequireProduct(const GraphNode& node, uint32_t operand, bool transposed) const;

  const Body& body_;
  int64_t positions_, keys_, heads_;
  Layout layout_;
  bool has_mask_;
  bool used_mask_ = false;
  bool scaled_ = false;
  bool capped_ = false;
  bool expects_cap_;
  fbx_value product_ = FBX_NO_VALUE;  // of q and k
};

}  // namespace fusebox::nn
