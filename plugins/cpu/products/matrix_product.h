// SPDX-License-Identifier: Apache-2.0
// The matrix product inside convolutions, FULLY_CONNECTED and BATCH_MATMUL: C[m][n] = activation(the sum over
// k of A[m][k] * B[n][k] + bias[n]). An op only declares where its rows are. The dtypes of its operands
// choose a variant, once:
//   floats   f32 with packed weights, or with weights as they are stored for few rows; f64 as stored
//   bytes    i8 and u8 with packed weights; f32 rows that each run quantizes to bytes (hybrid)
//   words    i16 rows
//   blocks   f32 rows, quantized by each run, and weights with a scale per block of a row
#pragma once

#include <memory>
#include <optional>

#include "plugins/cpu/base/activation.h"
#include "plugins/cpu/products/byte_tiles.h"
#include "plugins/cpu/products/quantized_bytes.h"
#include "plugins/cpu/products/quantized_words.h"
#include "plugins/cpu/windows/patches.h"

namespace fusebox::cpu {

// A product as far as it is known when its node is created. Sizes that are not known yet are -1. The groups
// of the shape are all matrices that the weights hold.
struct ProductSpec {
  ProductOperands operands;
  Activation activation = Activation::kNone;
  bool asymmetric = false;  // hybrid rows have zero points
  bool images = false;      // rows are pixels or patches of images: there are many
  ProductShape shape;
};

// The rows of a plan: patches of `window` for each group, or rows that lie one after the other.
struct ProductTask {
  ProductShape shape;
  std::optional<ConvGeometry> window;
  int64_t samples = 1;          // parts of the input with separate scales, if hybrid
  int64_t rows_per_sample = 1;  // output rows
  bool sums = false;            // for Sum and Finish instead of Run
};

struct FloatPlan {
  bool panels = false;   // multiplies packed weights,
  bool kept = false;     // which are constant
  int64_t chunk = 0;     // pixels that are computed together
  int64_t copies = 0;    // their patches that are copied at once
  uint32_t workers = 0;  // number of buffers
  uint32_t patches = 0;
  uint32_t rows = 0;  // of A and C
  uint32_t offsets = 0;
  uint32_t weights = 0;
};

struct ProductState {
  ProductTask task;
  FloatPlan floats;
  BytePlan bytes_plan;
  QuantizedBytes::State bytes;
  ProductPlan words_plan;
  QuantizedWords::State words;
};

// One of the products of a run.
struct ProductPart {
  const void* input = nullptr;  // from Begin
  int64_t first_row = 0;        // of the input
  int64_t matrix = 0;           // the first of the weights' matrices
  bool weights_change = true;   // since the last product of the run
  int64_t at = 0;               // element of the result
};

// The type of sums, the distance between the sums of two rows, and the most rows of a call.
struct ProductSums {
  fbx_dtype dtype;
  int64_t stride;
  int64_t rows;
};

class MatrixProduct {
 public:
  // For supports. Throws Reject.
  static void Supports(const Node& n, const ProductOperands& operands);
  // For infer, of weights with `outputs` rows (-1: unknown): dtypes and bias. Throws Error.
  static void Check(const Node& n, const ProductOperands& operands, int64_t outputs);
  static std::unique_ptr<const MatrixProduct> Choose(const Node& n, const ProductSpec& spec);

  virtual ~MatrixProduct() = default;
  virtual ProductState Prepare(const Node& n, Plan& plan, const ProductTask& task) const = 0;
  // Each run begins with this. Returns the input as the parts read it.
  virtual const void* Begin(const Node& n, const ProductState& state, const void* input) const = 0;
  virtual void Run(const Node& n, const ProductState& state, const ProductPart& part) const = 0;

  // For ops that add rows of a product before they are results. Blocks have no sums.
  virtual ProductSums Sums(const ProductState& state) const;
  // Writes the sums of rows [first, first + count). `worker`: of the plan.
  virtual void Sum(const Node& n, const ProductState& state, const void* input, uint32_t worker,
                   int64_t first, int64_t count, void* sums) const;
  // Writes results from element `at` on, of pixels of one sample. Their sums [pixels][channels] may lie in
  // the result if they are of its dtype, and change.
  virtual void Finish(const Node& n, const ProductState& state, int64_t sample, int64_t pixels,
                      int64_t channels, void* sums, int64_t at) const;

  // A run of one product.
  void RunAll(const Node& n, const ProductState& state) const {
    Run(n, state, {.input = Begin(n, state, n.in(operands_.input).data<const std::byte>())});
  }

 protected:
  explicit MatrixProduct(const ProductSpec& spec) : operands_(spec.operands), activation_(spec.activation) {}

  ProductOperands operands_;
  Activation activation_;
};

// The variants.
std::unique_ptr<const MatrixProduct> ProductOfFloats(const Node& n, const ProductSpec& spec);
std::unique_ptr<const MatrixProduct> ProductOfBytes(const Node& n, const ProductSpec& spec);
std::unique_ptr<const MatrixProduct> ProductOfWords(const Node& n, const ProductSpec& spec);
std::unique_ptr<const MatrixProduct> ProductOfBlocks(const Node& n, const ProductSpec& spec);

bool HasBlocks(const Node& n, const ProductOperands& operands);
// Throws Reject.
void SupportsBlocks(const Node& n, const ProductOperands& operands);

}  // namespace fusebox::cpu
