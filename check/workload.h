// SPDX-License-Identifier: Apache-2.0
// Models of a plugin, and runs of them in a child process.
#pragma once

#include <string>
#include <vector>

#include "check/rig.h"
#include "check/tests.h"
#include "host/model.h"
#include "host/session.h"

namespace fusebox::check {

// The .tflite files of Options::models and of the folders `models` and `tests` beside the manifest, sorted.
std::vector<std::string> ModelsOf(const Manifest& manifest, const Options& options);

// Returns a model with one node of a custom op, in the bytes of a .tflite file: the first of a few signatures
// of f32 operands that the kernel accepts, or an empty string if it accepts none. Runs code of the plugin,
// one child per signature.
Result<std::string> SynthesizeModel(const Manifest& manifest, const ManifestOp& op, const Options& options);

struct RunOptions {
  int threads = 1;
  int runs = 2;            // per session, with different inputs
  bool delegates = false;  // with the plugin's delegates; else none
  uint64_t seed = 1;
  int64_t unknown_dim = 3;  // size of unknown dimensions
  double special = 0;       // if it is not 0, a third of the elements of f32 inputs: NaN, an infinity
};
Result<std::shared_ptr<const Model>> OpenModel(Rig& rig, const std::string& path, bool delegates);
// The outputs of all runs of one session per entry that can run.
Result<std::vector<Tensor>> RunModel(const std::shared_ptr<const Model>& model, const RunOptions& options);
// One run of a session, for which only `seed`, `unknown_dim` and `special` count. Adds its outputs.
Status RunSession(Session& session, const Model& model, const Model::Entry& entry, const RunOptions& options,
                  std::vector<Tensor>& outputs);
// One run with inputs of these static shapes.
Result<std::vector<Tensor>> RunShapes(Session& session, const std::vector<Shape>& shapes, uint64_t seed,
                                      double special = 0);
// Does both with a new rig. Error: also a fault that the rig found. `failure`: of a delegate.
Result<std::vector<Tensor>> RunUnder(const Subject& subject, const Conditions& conditions,
                                     const RunOptions& options, size_t* invokes = nullptr,
                                     std::string* failure = nullptr);
// One input of the run with that number. Error: no values of this type.
Result<Tensor> MakeInput(const Type& type, const Quant* quant, uint64_t seed, size_t index,
                         int64_t unknown_dim);

// Returns where two lists of outputs differ: "output 0 [1,2]: 0.25 and 0.5", or an empty string if they do
// not. `rtol` 0: bit for bit; else relative to the largest value of the output, and quantized values may
// differ by `steps`.
std::string DifferenceOf(const std::vector<Tensor>& a, const std::vector<Tensor>& b, double rtol = 0,
                         double steps = 0);

// The finding for a model that does not run under the plain conditions.
Finding DoesNotRun(const Error& error);

}  // namespace fusebox::check
