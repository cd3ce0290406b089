// SPDX-License-Identifier: Apache-2.0
// The shape of a node's work, as estimates of its time count it. An unknown dim counts as 1.
#pragma once

#include <optional>
#include <variant>

#include <fusebox/node.hpp>

namespace fusebox::math {

// `groups` matrix products [rows x depth] by [depth x columns]. The rows may be patches of an image.
struct ProductShape {
  double rows = 1;
  double columns = 1;
  double depth = 1;
  double groups = 1;
  double segments = 0;  // of a patch, which each lie together; 0: the rows lie in place
  double taps = 0;      // of a patch
  bool narrow = false;  // too few columns for wide code
  bool bytes = false;
  bool is_unsigned = false;
};

// Windows of at most as many taps count as near.
inline constexpr double kNearTaps = 9;

// A depthwise convolution.
struct TapsShape {
  double pixels = 1;  // of the result
  double channels = 1;
  double taps = 1;
  double inputs = 1;  // channels of the input
  bool bytes = false;
};

// A transposed convolution: all inputs by all taps, and the sums of those that overlap.
struct TransposedShape {
  double inputs = 1;   // pixels
  double outputs = 1;  // pixels
  double taps = 1;
  double steps = 1;  // pixels of a stride
  double channels = 1;
  double results = 1;  // channels of the output
  bool bytes = false;
  bool is_unsigned = false;
};

// An op that computes each element by itself, or SOFTMAX.
struct ElementsShape {
  double moved = 0;  // elements that are read or written
  double functions = 0;
  double rows = 0;
  bool bytes = false;
};

using NodeShape = std::variant<ProductShape, TapsShape, TransposedShape, ElementsShape>;
// Returns nothing for a node of another kind, of other dtypes, or whose weights are not stored as they are
// read.
std::optional<NodeShape> ShapeOf(const sdk::Node& n);

}  // namespace fusebox::math
