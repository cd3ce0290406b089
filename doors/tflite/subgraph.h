// SPDX-License-Identifier: Apache-2.0
// A function of a model with the tensors of its inputs and outputs, in memory of the door.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "doors/tflite/handles.h"
#include "doors/tflite/reporter.h"
#include "doors/tflite/tensors.h"

namespace fusebox::tflite {

// An input or output.
struct Port {
  OwnedTensor tensor;
  AlignedMemory memory;
  TfLiteCustomAllocation custom{};  // of the application instead of `memory`; data NULL: none
  int number = -1;                  // of the tensor in the file
  std::string name;                 // in the signature

  bool dynamic() const { return tensor.get().allocation_type == kTfLiteDynamic; }
};

class Subgraph {
 public:
  // `key`: of a signature; "": as for a session. The file outlives the subgraph. Null: there is none.
  static std::unique_ptr<Subgraph> Create(const fusebox_file* file, const char* key);

  const std::string& key() const { return key_; }
  std::deque<Port> inputs, outputs;
  std::vector<int> input_numbers, output_numbers;
  std::vector<size_t> inputs_by_name, outputs_by_name;

  bool allocated() const { return allocated_; }
  bool allocated_before() const { return allocated_before_; }
  // False: the session has selected another subgraph since Allocate.
  bool bound() const { return bound_; }
  void set_bound(bool bound) { bound_ = bound; }
  // Sets the dims of an input until the next Allocate. `strict`: only dims that the model leaves open.
  TfLiteStatus Resize(size_t input, std::span<const int> dims, bool strict, const Reporter& reporter);
  // Plans the session, which has selected this subgraph, and binds memory to inputs and outputs.
  TfLiteStatus Allocate(fusebox_session* session, const Reporter& reporter);
  // Copy strings to the session before a run, and results whose shapes depend on data from it afterwards.
  TfLiteStatus Push(fusebox_session* session, const Reporter& reporter);
  TfLiteStatus Pull(fusebox_session* session, const Reporter& reporter);
  void Invalidate() { allocated_ = false; }

 private:
  TfLiteStatus AllocateInputs(fusebox_session* session, const Reporter& reporter);
  TfLiteStatus AllocateOutputs(fusebox_session* session, const Reporter& reporter);

  std::string key_;
  bool allocated_ = false;
  bool allocated_before_ = false;
  bool bound_ = false;
  bool pushes_ = false;
  bool pulls_ = false;
};

}  // namespace fusebox::tflite
