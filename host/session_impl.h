// SPDX-License-Identifier: Apache-2.0
// Internals of Session, shared by its files.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "host/run/run.h"
#include "host/session.h"

namespace fusebox {

inline std::string Quoted(const Session::Slot& slot, int index) {
  return slot.name.empty() ? fmt::format("input {}", index) : fmt::format("input {} '{}'", index, slot.name);
}

struct Session::Impl {
  // A tensor of the caller, with its memory.
  struct Port {
    fbx_tensor tensor{};
    Growable memory;
    bool shaped = false;         // all dims are known
    bool blank = false;          // reads as zeros that are not written yet
    bool lent = false;           // the caller has its address and may write to it
    std::span<std::byte> bound;  // memory of the caller; empty: none
    bool copies = false;         // to or from it, in Run: kernels cannot use it
    Dims dims;                   // of an output that is bound

    // Zeroes large inputs only if they are read before they are set.
    void Fill() {
      if (blank && tensor.bytes > 0) std::memset(tensor.data, 0, tensor.bytes);
      blank = false;
    }
  };

  std::shared_ptr<const Model> model;
  std::unique_ptr<verify::Shadow> shadow;  // null: off
  std::unique_ptr<run::Runner> runner;
  std::string signature;
  const plan::Code* code = nullptr;
  std::vector<Slot> inputs, outputs;
  std::vector<std::unique_ptr<Port>> input_ports, output_ports;
  std::vector<const fbx_tensor*> operands;
  std::vector<run::Out> outs;
  bool ran = false;
  bool keeps_values = false;  // of the last run
  bool has_values = false;    // of the last run

  void Select(const plan::Code& chosen, const Signature* signature);
  Status Check(int index) const;
  Status CheckOutput(int index) const;
  Status Shape(int index, const Type& type, size_t bytes, bool blank);
  Status Ready(bool with_data) const;
  Status ReserveOutputs();
  std::string Named(size_t output) const;  // in messages
  // Calls `allocate` for the memory of a tensor, with the limit of the session.
  template <class Place, class F>
  Status Allocate(const Place& name, const Type& type, const F& allocate) {
    const MemoryBudget::Scope scope(runner->budget());
    const auto place = [&] { return fmt::format("{}: {}, {}", model->name(), name(), ToString(type)); };
    return CatchNoMemory(place, [&] {
      allocate();
      return Status();
    });
  }
  void UnbindOutput(size_t index);
  // Returns an error if the memory overlaps bound memory of another tensor. An input and an output may have
  // the same.
  Status CheckApart(std::span<const std::byte> memory, const Port& self) const;
  // Returns whether memory has what kernels need: alignment, and readable bytes behind it if they read those.
  bool KernelsCanUse(std::span<const std::byte> memory, size_t bytes, ValueId value) const;
  void FindShared();  // outputs in the memory of an input
  Tensor ViewOf(const fbx_tensor&) const;
  Status KeepsValues() const;
  Result<Tensor> ValueOf(const Function&, ValueId) const;
};

}  // namespace fusebox
