// SPDX-License-Identifier: Apache-2.0
// A minimal host: attributes from a case, threads that split work, memory between guards.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fusebox/abi/ext/resize.h>
#include <fusebox/abi/ext/threads.h>

#include "tests/conformance/case.h"

namespace fusebox::conformance {

// Bytes between guards.
class Guarded {
 public:
  // kAligned: to 64 bytes. kAtEnd: the memory ends with them, and an access behind it ends the process.
  enum class Place { kAligned, kAtEnd };
  Guarded(size_t bytes, Place place, uint8_t fill);
  Guarded(const Guarded&) = delete;
  ~Guarded();
  uint8_t* data() { return start_; }
  size_t size() const { return bytes_; }
  bool intact() const;
  void Fill(uint8_t value);

 private:
  static constexpr size_t kGuard = 64;
  std::span<uint8_t> storage_;  // without the page that has no access
  uint8_t* start_;
  size_t bytes_;
};

// One operand or result as passed to the kernel. Must not move after abi() was called.
class StubTensor {
 public:
  // Result: dims unknown, no memory.
  explicit StubTensor(fbx_dtype dtype);
  explicit StubTensor(const Data& type);
  StubTensor(const StubTensor&) = delete;
  fbx_tensor* abi() { return &tensor_; }
  void SetDims(std::vector<int64_t> dims);
  void SetUnranked();
  void Allocate(size_t bytes, Guarded::Place place, uint8_t fill);
  void Share(StubTensor& other);  // uses the other's memory
  void Drop();                    // no value
  Guarded* memory() { return memory_.get(); }
  const std::vector<int64_t>& dims() const { return dims_; }

 private:
  fbx_tensor tensor_{};
  fbx_quant quant_{};
  Quant quant_values_;
  std::vector<int64_t> dims_;
  std::unique_ptr<Guarded> memory_;
};

// One node with its host. Operands start without value.
class StubNode {
 public:
  StubNode(const Case&, bool threads);
  StubNode(const StubNode&) = delete;
  const fbx_host* host() const { return &host_.abi; }
  const fbx_node* node() const { return &node_; }
  const fbx_infer* infer() const { return &infer_.abi; }
  const fbx_plan* plan() const { return &plan_.abi; }

  StubTensor& operand(size_t i) { return *operands_[i]; }
  StubTensor& result(size_t i) { return *results_[i]; }
  // Sets operand i to its value from the case.
  void Give(size_t i, Guarded::Place place);

  struct Inferred {
    bool set = false;
    fbx_dtype dtype = FBX_DTYPE_NONE;
    int32_t rank = -1;
    std::vector<int64_t> dims;
    bool is_static() const;
  };
  std::vector<Inferred> inferred;  // results of the last infer
  std::vector<bool> wanted;        // needs_value, per operand
  std::string messages;            // all diagnostics, one a line
  std::vector<std::unique_ptr<Guarded>> scratch;
  void PoisonScratch(uint8_t value);
  void ForgetInferred();

 private:
  template <class Abi>
  struct Scoped {  // starts with the ABI struct, so pointers convert
    Abi abi{};
    StubNode* self = nullptr;
  };
  static StubNode& Of(const fbx_host* h) { return *reinterpret_cast<const Scoped<fbx_host>*>(h)->self; }
  static void Emit(const fbx_host*, const fbx_diag*) noexcept;
  static const void* Extension(const fbx_host*, fbx_str) noexcept;
  static fbx_status Resize(const fbx_host*, const fbx_node*, uint32_t, const int64_t*, int32_t,
                           size_t) noexcept;
  static void Set(const fbx_infer*, uint32_t, fbx_dtype, const int64_t*, int32_t) noexcept;
  static void NeedsValue(const fbx_infer*, uint32_t) noexcept;
  static fbx_status Scratch(const fbx_plan*, size_t, uint32_t*) noexcept;
  static fbx_status Persistent(const fbx_plan*, size_t, uint32_t*) noexcept;
  void AddSlot(size_t bytes, bool persistent, uint32_t* slot);

  const Case& case_;
  bool threads_;
  std::vector<std::unique_ptr<StubTensor>> operands_, results_;
  std::vector<const fbx_tensor*> operand_views_, result_views_;
  std::vector<void*> slots_;
  std::vector<bool> slot_is_persistent_;
  Scoped<fbx_host> host_;
  Scoped<fbx_infer> infer_;
  Scoped<fbx_plan> plan_;
  fbx_node node_{};
};

}  // namespace fusebox::conformance
