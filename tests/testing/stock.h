// SPDX-License-Identifier: Apache-2.0
// Stock TFLite 2.9: its C library from FUSEBOX_PEER_DIR, loaded at run time; or the C library of another
// version. By default one thread and no delegate.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/base/status.h"
#include "host/graph/types.h"

namespace fusebox::testing {

struct StockOptions {
  int threads = 1;
  bool xnnpack = false;      // its XNNPACK delegate, including 8-bit ops
  std::string library = {};  // path of a libtensorflowlite_c.so; empty: TFLite 2.9
  std::string custom = {};   // an op that gets a kernel without computation
};

class Stock {
 public:
  // Reads the file and allocates. Errors contain TFLite's messages.
  static Result<std::unique_ptr<Stock>> Open(const std::string& path, const StockOptions& = {});
  // With its XNNPACK delegate, including 8-bit ops. No fallback: fails if the delegate rejects the file.
  static Result<std::unique_ptr<Stock>> WithXnnpack(const std::string& path, int threads = 1);
  // With a TfLiteDelegate of the caller, who frees it after the Stock.
  static Result<std::unique_ptr<Stock>> WithDelegate(const std::string& path, void* delegate);
  ~Stock();

  // Inputs and outputs in file order, with their current sizes.
  int input_count() const;
  int output_count() const;
  Result<Type> input_type(int index) const;
  Status Resize(int index, const Shape& shape);
  Status SetInput(int index, const Tensor& value);
  Status Run();
  Result<Tensor> output(int index) const;  // a copy
  // Sets all inputs (resized to the values' shapes), runs, and returns all outputs.
  Result<std::vector<Tensor>> Invoke(const std::vector<Tensor>& inputs);
  // Resets variable tensors to zero.
  Status ResetVariables();

  // Option bytes of the custom op's kernel, one per node.
  const std::vector<std::string>& custom_options() const;

 private:
  Stock();
  static Result<std::unique_ptr<Stock>> Make(const std::string& path, const StockOptions& options,
                                             void* delegate);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fusebox::testing
