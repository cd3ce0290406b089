// SPDX-License-Identifier: Apache-2.0
// The proof that a fused op computes what the composite's body computes.
//
// Both run on the host on the same operands: constants of the site as they are, everything else from value
// classes (normal, tiny, large, zero, one-hot, extremes). The truth is a copy of the body retyped to f64,
// where every op has an f64 kernel, else the f32 body. A case passes when  |fused - truth| <= max(atol + rtol
// |truth|, 2 x the f32 body's own error, rounding); rounding is how far the truth moves when operands and
// constants are off by what f32 adds up to on the way (rounding.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/fusion/fusion.h"

namespace fusebox::verify {

struct Options {
  bool all = false;  // every value class; else a sample of them (normal, zero)
  uint64_t seed = 1;
  double atol = 1e-6, rtol = 1e-5;  // used where the rule declares none
  int64_t unknown_dim = 3;          // size given to dimensions that the site leaves open
  // of operands, where the caller knows more than the replacement says; unranked: no more
  std::vector<Shape> shapes = {};
};

struct Case {
  std::string name;  // "tiny, dims [3,5,7]"
  bool passed = false;
  double worst = 0;   // largest error; of a result whose largest value is above 1, in units of that
  std::string where;  // "result 1 [0,2,3]: 0.25, expected 0.5"
};

struct Verdict {
  enum class Outcome { kAgrees, kDisagrees, kUnverifiable } outcome = Outcome::kUnverifiable;
  std::string truth;  // "f64" or "f32"
  std::string
      why;  // unverifiable: "no kernel for X", "placeholder"; disagrees: the worst case and how to repeat it
  std::vector<Case> cases;
  std::string Summary() const;  // "agrees (f64, 6 cases, worst 2.1e-7)"
};

// `module` holds body and what it calls, `scratch` the replacement. The body must run on the host (tensor
// lists lowered).
Result<Verdict> Prove(const Module& module, const Function& body, const Module& scratch,
                      const Function& replacement, const std::vector<Tensor>& constants,
                      const std::vector<bool>& used_results, fbx_tolerance, std::shared_ptr<Registry>,
                      const Options& = {});

// Every fused op of a .tflite against the body that the file keeps.
struct Row {
  std::string function, node, op, plugin;
  Verdict verdict;
};
Result<std::vector<Row>> ProveModel(const Module&, std::shared_ptr<Registry>, const Options& = {});

}  // namespace fusebox::verify
