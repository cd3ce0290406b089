// SPDX-License-Identifier: Apache-2.0
// Program: a module with a kernel or a delegate chosen for each node. Immutable, any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "host/plan/plan.h"
#include "host/run/missing.h"
#include "host/run/placement.h"

namespace fusebox::run {

// All functions that an entry reaches, with an initialized kernel or a delegate for each node. An entry with
// a node that nothing can run is dropped; only its error is kept.
class Program {
 public:
  // The entries are the main function and the functions of signatures. `module` must outlive the program.
  // Nodes are offered to `delegates` in order; failures of a delegate become notices. Error: no entry can
  // run; names the first node without kernel, the plugins that list its op, and the searched directories.
  static Result<std::unique_ptr<Program>> Create(const Module& module, std::shared_ptr<Registry> registry,
                                                 const Delegation& delegates = {},
                                                 Missing missing = Missing::kWarn);
  // Same, with these functions as entries. Fails if one cannot run.
  static Result<std::unique_ptr<Program>> Create(const Module& module, std::shared_ptr<Registry> registry,
                                                 std::span<const std::string> entries,
                                                 const Delegation& delegates = {});
  // Same as the first, without initialized kernels: only to list entries. Not an error if none can run.
  static std::unique_ptr<Program> Survey(const Module& module, std::shared_ptr<Registry> registry,
                                         const Delegation& delegates = {});
  ~Program();
  Program(const Program&) = delete;

  const Module& module() const { return module_; }
  const plan::Code* Find(std::string_view function) const;  // null: not reached
  // Why an entry cannot run. OK for any other function.
  Status StatusOf(std::string_view entry) const;
  const std::vector<std::string>& notices() const { return notices_; }
  const DelegateOptions& delegate_options() const { return options_; }
  // With a session: takes into account the delegates that declined there.
  std::vector<Placement> placements(const delegate::Session* = nullptr) const;

  std::span<const std::unique_ptr<delegate::Part>> parts() const { return parts_; }
  const plan::Code& CodeOf(size_t part) const { return *part_codes_[part]; }  // kernels that run a partition
  std::vector<size_t> PartsOf(const plan::Code& entry) const;                 // that a call may reach
  // Initializes the kernels of a partition on its first fallback. Call before planning; any thread.
  Status EnsureInitialized(const plan::Code&) const;
  // Where a session has a value of a function of the module: in the function, and in a partition. Empty:
  // nothing reaches the function, or computes the value.
  struct Home {
    const plan::Code* code;
    ValueId id;
    int part;  // -1: none
  };
  std::vector<Home> HomesOf(const Function&, ValueId) const;
  std::span<const std::unique_ptr<plan::Code>> codes() const { return codes_; }

 private:
  // Kernels initialized on demand: of a function that runs only if a delegate declines. Also of a branch or
  // a loop's body without `code`, whose kernels cannot be initialized: `status` ends a run that needs it.
  struct Late {
    std::once_flag once;
    plan::Code* code = nullptr;
    Status status;
  };
  // Claims of delegates for a function.
  struct Offered {
    const Function* function;  // of the module
    std::vector<delegate::Answer> answers;
    delegate::Outlined outlined;  // null function: no node was claimed
  };
  Program(const Module& module, std::shared_ptr<Registry> registry, const Delegation& delegates)
      : module_(module), registry_(std::move(registry)), options_(delegates.options) {}
  friend class ProgramBuilder;
  static std::set<const plan::Code*> CalledBy(const plan::Code&);  // whenever it runs; itself included
  static void FreeInstances(std::span<const std::unique_ptr<plan::Code>>);
  Placement PlacementOf(const plan::Code&, size_t unit, const Function&, size_t node) const;
  void AddPlacements(const plan::Code&, const delegate::Session*, std::vector<Placement>&) const;

  const Module& module_;
  std::shared_ptr<Registry> registry_;
  DelegateOptions options_;
  std::vector<std::unique_ptr<delegate::Instance>> delegates_;
  std::vector<std::unique_ptr<delegate::Part>> parts_;
  std::vector<plan::Code*> part_codes_;  // by part
  std::map<const plan::Code*, std::unique_ptr<Offered>> offered_;
  std::map<const plan::Code*, std::unique_ptr<Late>> late_;
  std::vector<std::unique_ptr<plan::Code>> codes_;
  std::map<std::string, plan::Code*, std::less<>> by_name_;
  std::map<std::string, Status, std::less<>> refused_;  // entries that cannot run
  std::vector<std::string> notices_;
};

}  // namespace fusebox::run
