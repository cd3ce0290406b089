// SPDX-License-Identifier: Apache-2.0
// String tensors: writing them, and MovesStrings<K>, which adds strings to a kernel K that moves elements: K
// moves string indices, and the strings follow.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fusebox/kernel.hpp>
#include <fusebox/strings.hpp>

namespace fusebox::cpu {

using namespace sdk;

// Sets result i to this shape and the strings at(k).
void StoreStrings(const Node& n, uint32_t i, std::span<const int64_t> dims,
                  const std::function<std::string_view(int64_t k)>& at);

bool HasStrings(const Node& n);

using InferFn = void (*)(const Node&, Infer&);

// Forwards the shapes of `infer`, but declares strings as unsized: their memory is allocated when they are
// known.
void InferStrings(const Node& n, Infer& out, InferFn infer);

// The node with u32 tensors in place of strings. After Number(), operands hold string indices.
class Numbered {
 public:
  explicit Numbered(const Node& n);
  Numbered(const Numbered&) = delete;
  Node node() const { return {original_.host(), &node_}; }
  // Numbers all strings of all operands, and allocates results for indices, with the shapes from `infer`.
  void Number(InferFn infer);
  // Replaces the indices in results by their strings.
  void Store() const;

 private:
  struct Operand {
    int64_t first;
    Strings strings;
  };
  std::string_view At(uint32_t number) const;

  const Node& original_;
  fbx_node node_{};
  std::vector<fbx_tensor> operands_, results_;
  std::vector<const fbx_tensor*> operand_views_, result_views_;
  std::vector<Operand> strings_;
  std::vector<uint32_t> numbers_;
  std::vector<std::vector<uint32_t>> moved_;  // per result
  std::vector<std::vector<int64_t>> shapes_;  // per result
};

template <class K>
class MovesStrings {
 public:
  static constexpr std::string_view builtin = K::builtin;
  static constexpr uint32_t flags = K::flags;

  static void supports(const Node& n) {
    if (!HasStrings(n)) return K::supports(n);
    K::supports(Numbered(n).node());
  }
  static void infer(const Node& n, Infer& out) {
    if (!HasStrings(n)) return K::infer(n, out);
    InferStrings(n, out, &K::infer);
  }
  explicit MovesStrings(const Node& n) : kernel_(Make(n)) {}
  void invoke(const Node& n) const {
    if (!HasStrings(n)) return kernel_.invoke(n);
    Numbered numbered(n);
    numbered.Number(&K::infer);
    kernel_.invoke(numbered.node());
    numbered.Store();
  }

 private:
  static K Make(const Node& n) {
    if constexpr (std::is_constructible_v<K, const Node&>) return K(n);
    else return K();
  }
  K kernel_;
};

}  // namespace fusebox::cpu
