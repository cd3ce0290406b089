// SPDX-License-Identifier: Apache-2.0
// odml.group_norm and odml.layer_norm (LiteRT, litert-torch): (x - mean) * rsqrt(variance + epsilon) * scale
// + bias, with the mean and the variance of each group of channels.
//
// Operands: x f32, and optionally scale and bias, f32 with the shape of the channel dimensions. The op
// fusebox.group_norm has the attributes epsilon, num_groups (1), channel_axis (the first channel dimension)
// and statistics:
//   group     one mean per batch item and group, over its channels and all positions (PyTorch's group_norm)
//   position  one mean per position and group, over its channels (layer_norm with one group)
//   element   each element is its own mean, as in the bodies of LiteRT's test files
#pragma once

#include <fusebox/kernel.hpp>
#include <fusebox/rule.hpp>

namespace fusebox::nn {

using namespace sdk;

enum class Statistics { kGroup, kPosition, kElement };

// The attributes of odml.group_norm do not determine the statistics and the channel dimension: producers
// write the same for a group norm and for a layer norm. The rule reads both from the body.
struct GroupNormRule {
  static constexpr std::string_view id = "fusebox.group_norm";
  static constexpr std::string_view implements = "odml.group_norm";
  static void match(const Site& s);
  static void rewrite(const Site& s, Build& b);
};

// Over the dimensions of the scale, the last ones.
struct LayerNormRule {
  static constexpr std::string_view id = "fusebox.layer_norm";
  static constexpr std::string_view implements = "odml.layer_norm";
  static void match(const Site& s);
  static void rewrite(const Site& s, Build& b);
};

class GroupNorm {
 public:
  static constexpr std::string_view custom = "fusebox.group_norm";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out) { out.like(0, n.in(0)); }
  explicit GroupNorm(const Node& n);
  void invoke(const Node& n) const;

 private:
  float epsilon_;
  int64_t groups_, channel_axis_;
  Statistics statistics_;
};

}  // namespace fusebox::nn
