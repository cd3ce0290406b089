// SPDX-License-Identifier: Apache-2.0
// Samples one node at several sizes of its operands, to fit the sizes and integers of its results.
#pragma once

#include <deque>
#include <map>

#include "host/eval/eval.h"
#include "host/eval/fit_sizes.h"

namespace fusebox {

// symbol * factor + offset; a number if factor is 0. Equal sizes compare equal.
struct Size {
  int32_t symbol = 0;
  int64_t factor = 0;
  int64_t offset = 0;
  static Size Number(int64_t n) { return {0, 0, n}; }
  bool is_number() const { return factor == 0; }
  auto operator<=>(const Size&) const = default;
};
using Sizes = std::vector<Size>;

// Known facts of a tensor: its dimensions, and its integers if they are few.
struct KnownSizes {
  std::optional<Sizes> dims, ints;
  bool operator==(const KnownSizes&) const = default;
};
bool IsFewIntegers(const Type&);
Buffer IntegerBuffer(DType, const std::vector<int64_t>&);
std::vector<int64_t> IntegersIn(const Type&, const Buffer&);

using Fits = std::vector<std::optional<Fit>>;

// Cache of fits: models repeat the same few forms of shape arithmetic thousands of times.
class SampledForms {
 public:
  SampledForms() : calls_(SerialServices()) {}

 private:
  friend class SampledNode;
  struct Form {
    const Function* f;
    const Node* node;
    std::vector<KnownSizes> operands;
    Fits fits;
  };
  static constexpr size_t kMost = 16;  // per op, the most recent
  std::map<std::pair<Op, bool>, std::deque<Form>> forms_;
  HostCalls calls_;
};

class SampledNode {
 public:
  // Error: no kernel. Entries of `forms` refer to the function.
  static Result<std::unique_ptr<SampledNode>> Create(Registry&, SampledForms& forms, const Function&,
                                                     const Node&);

  // Sets what is known of each operand; constants use their own value instead. Sets `symbols`, each with
  // factor 1.
  void Show(std::vector<KnownSizes> operands);
  const Sizes& symbols() const { return symbols_; }
  // The rank and dimensions of each result.
  Fits Shapes() { return Find(false); }
  // The integers of all results, which must have their declared shapes.
  Fits Integers() { return Find(true); }

 private:
  using Row = std::vector<int64_t>;
  SampledNode(SampledForms& forms, const Function& f, const Node& node)
      : forms_(forms), f_(f), node_(node), view_(f, node), buffers_(node.operands.size()) {}
  Fits Find(bool integers);
  bool IsLike(const SampledForms::Form&) const;
  std::optional<Row> Infer(std::span<const int64_t> sizes);
  std::optional<Row> Compute(std::span<const int64_t> sizes);

  SampledForms& forms_;
  const Function& f_;
  const Node& node_;
  KernelRef kernel_;
  NodeView view_;
  std::vector<KnownSizes> operands_;  // symbols are indices into symbols_
  Sizes symbols_;
  std::vector<Buffer> buffers_;
};

}  // namespace fusebox
