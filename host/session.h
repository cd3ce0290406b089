// SPDX-License-Identifier: Apache-2.0
// Session: a Model planned for input shapes, with its memory, state and threads. One thread at a time; many
// sessions may share one Model.
//
//   session->SetInput(0, tensor);  session->Run();  session->output(0)
//
// Input shapes may change between runs: the session plans again when they do, and remembers plans by shape.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host/base/progress.h"
#include "host/base/status.h"
#include "host/graph/types.h"
#include "host/model.h"

namespace fusebox {

struct SessionOptions {
  std::string signature;  // empty: the only one, or that of the main function
  int threads = 1;  // that one Run may use, the caller's included; at most, and 0: one per core that the
                    // process may use
  ProgressListener progress = {};  // of packing weights, where a delegate does and tells
};

class Session {
 public:
  // Error: a signature that is not there, or that cannot run (Model::entries lists those that can).
  static Result<std::unique_ptr<Session>> Create(std::shared_ptr<const Model>, const SessionOptions& = {});
  ~Session();

  struct Slot {
    std::string name;
    Type type;  // as the model declares it, or Resize has made it: -1 dims where they may vary
  };
  const std::vector<Slot>& inputs() const;  // in signature order
  const std::vector<Slot>& outputs() const;
  Result<int> FindInput(std::string_view name) const;

  const std::string& signature() const;  // that Run runs; empty: a main function that has none
  // From now on Run runs that signature; state is kept. Values set before are forgotten.
  Status SelectSignature(std::string_view key);

  // Copies the value in. Its dtype must be the input's and its dims compatible; the error names the input and
  // both types. Bools are bytes of 0 and 1.
  Status SetInput(int index, const Tensor& value);
  // Memory of an input to be filled in place, for shapes known by now; valid until the next SetInput, Resize
  // or Run with other shapes.
  Result<std::span<std::byte>> InputData(int index);
  // Gives an input other dims, of the rank that the model declares. Dims that the model fixes may change too
  // (a batch of 8 where it says 1), and are the new ones from then on, until SelectSignature; ops that do not
  // take them make Prepare and Run fail, and a delegate that has laid out its partition for the declared ones
  // leaves it to the kernels.
  Status Resize(int index, const Shape& shape);

  // Plans if needed, then runs. A failure leaves inputs as they are and outputs undefined.
  Status Run();
  // Plans without running: memory is allocated, shapes are checked.
  Status Prepare();

  // A view of output `index` after Run: valid until the next Run. Tensor.data borrows the session's memory.
  Result<Tensor> output(int index) const;

  // Variable tensors and kernels' persistent memory to zero, resource variables and hash tables to their
  // initial values.
  void ResetState();

  // Who runs each node by now, and what this session had to say beside its model's notices: delegates that
  // declined.
  std::vector<Placement> placements() const;
  const std::vector<std::string>& notices() const;

  // The plan for the current shapes as text rows, for --explain: node, op, result types, who runs it, memory.
  std::string Explain() const;
  size_t arena_bytes() const;
  int threads() const;  // that Run uses

 private:
  Session();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fusebox
