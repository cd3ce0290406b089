// SPDX-License-Identifier: Apache-2.0
// Stock TFLite: the C library of TFLite 2.9 from FUSEBOX_PEER_DIR, opened at run time. One thread and no
// delegate, unless asked for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/base/status.h"
#include "host/graph/types.h"

namespace fusebox::testing {

class Stock {
 public:
  // Reads the file and allocates. Errors hold what TFLite reported.
  // `custom` names an op for which a kernel stands in that computes nothing.
  static Result<std::unique_ptr<Stock>> Open(const std::string& path, const std::string& custom = {});
  // With its own XNNPACK delegate, 8-bit ops included. Errors where the delegate refuses the file: it never
  // falls back.
  static Result<std::unique_ptr<Stock>> WithXnnpack(const std::string& path, int threads = 1);
  ~Stock();

  // Inputs and outputs in the file's order, with the sizes that they have now.
  int input_count() const;
  int output_count() const;
  Result<Type> input_type(int index) const;
  Status Resize(int index, const Shape& shape);
  Status SetInput(int index, const Tensor& value);
  Status Run();
  Result<Tensor> output(int index) const;  // a copy
  // SetInput for all, Run, all outputs; inputs take the values' shapes.
  Result<std::vector<Tensor>> Invoke(const std::vector<Tensor>& inputs);
  // Variable tensors back to zero.
  Status ResetVariables();

  // The option bytes that the custom op's kernel was created with, one per node.
  const std::vector<std::string>& custom_options() const;

 private:
  Stock();
  static Result<std::unique_ptr<Stock>> Make(const std::string& path, const std::string& custom, bool xnnpack,
                                             int threads);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fusebox::testing
