// SPDX-License-Identifier: Apache-2.0
// Verifies that a fused op computes the same as the composite's body.
//
// Both run on the host with the same operands: constants of the site, other operands from value classes
// (normal, tiny, large, zero, one-hot, extremes). The reference is a copy of the body in f64 if every op has
// an f64 kernel, else the f32 body. In f64, quantized weights of ops on floats are the numbers that they
// stand for, and no operand is rounded to 8 bits. A case passes if  |fused - reference| <= max(atol + rtol
// |reference|, 2 x error of the f32 body, rounding); rounding is the change of the reference when operands
// and constants change by the accumulated f32 rounding error (rounding.h). Results with scales may differ by
// one step. A case that passes only because the f32 body itself is more than 1 % off shows nothing: the op is
// not verified.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/fusion/fusion.h"

namespace fusebox::verify {

struct Options {
  bool all = false;  // every value class; else only normal and zero
  uint64_t seed = 1;
  // Tolerances if the rule declares none.
  double atol = 1e-6;
  double rtol = 1e-5;
  double seconds = 0;       // after this time, no f64 run and no further case begins; 0: no limit
  int64_t unknown_dim = 3;  // size of unknown dimensions
  // of operands, if more is known than in the replacement; unranked: not
  std::vector<Shape> shapes = {};
};

struct Case {
  std::string name;  // "tiny, dims [3,5,7]"
  bool passed = false;
  double worst = 0;       // largest error; relative to the result's largest value if that is above 1
  double steps = -1;      // largest difference of quantized results in steps; -1: there are none
  double mean_steps = 0;  // largest average of these differences over a result
  std::string where;      // "result 1 [0,2,3]: 0.25, expected 0.5"
  double own = 0;         // error of the f32 body, as `worst`, if the case passes only because of it
};

struct Verdict {
  enum class Outcome { kAgrees, kDiffers, kNotVerified } outcome = Outcome::kNotVerified;
  bool shortened = false;   // Options::seconds were over before the end
  bool unprovable = false;  // not verified, because the f32 body is itself too far from the truth
  std::string truth;        // type of the reference: "f64", "f32", or "integers" if the body has no floats
  std::string why;  // not verified: "no kernel for X", "placeholder"; differs: the worst case and how to
                    // reproduce it
  std::vector<Case> cases;
  // "agrees (f64, 6 cases, worst 2.1e-7)", "not verified: WHY", "cannot be verified: WHY" if unprovable
  std::string Summary() const;
};

// `module` holds the body and its callees, `scratch` the replacement. The body must run on the host (tensor
// lists lowered).
Result<Verdict> VerifyFused(const Module& module, const Function& body, const Module& scratch,
                            const Function& replacement, const std::vector<Tensor>& constants,
                            const std::vector<bool>& used_results, fbx_tolerance, std::shared_ptr<Registry>,
                            const Options& = {});

// Result for one fused op of a .tflite file and its kept body.
struct Row {
  std::string function, node, op, plugin;
  Verdict verdict;
};
Result<std::vector<Row>> VerifyModel(const Module&, std::shared_ptr<Registry>, const Options& = {});

}  // namespace fusebox::verify
