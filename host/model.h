// SPDX-License-Identifier: Apache-2.0
// Model: a .tflite file, read, checked and fused; immutable, for any thread.
//
//   auto registry = fusebox::Registry::Create(config);
//   auto model = fusebox::Model::Open("model.tflite", {.registry = *registry});
//   auto session = fusebox::Session::Create(*model);
//
// Open reads the file, fuses the composites that it still holds with the registry's rules, offers the nodes
// to delegates, chooses a kernel for every node and initializes those that no delegate takes (weights are
// packed here, once, for all sessions). A fused op whose plugin is missing runs its kept body where the file
// has one, with a notice. A signature that reaches an op without a kernel fails alone: Session::Create
// returns its error, which names op, plugin and the places searched. Open fails where no signature can run.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/base/status.h"
#include "host/fusion/fusion.h"
#include "host/graph/graph.h"
#include "host/plugin/plugin.h"
#include "host/run/placement.h"

namespace fusebox {

struct ModelOptions {
  std::shared_ptr<Registry> registry;  // null: one with the default search path
  bool fuse = true;                    // late fusion of composites
  // Delegates, in the order in which they are offered nodes; empty: none. Nothing: the config's list, else
  // the default ones.
  std::optional<std::vector<Config::Delegate>> delegates = {};
  // JSON, options by delegate, over those of the config: {"xnnpack": {"weight_cache_path": "cache/"}}. A
  // delegate that is not used is a notice, unless its plugin has services for others, which look at the
  // options too (kept weights); an option that it does not know is an error.
  std::string delegate_options = {};
};

namespace run {
class Program;  // kernels chosen and initialized: host/run
}

class Model {
 public:
  static Result<std::shared_ptr<const Model>> Open(const std::string& path, const ModelOptions& = {});
  // The same for a module that is already in memory (the converter's, a test's).
  static Result<std::shared_ptr<const Model>> FromModule(std::unique_ptr<Module>, const ModelOptions& = {});
  ~Model();

  // What a session may run: the signatures in the order of the file, then the main function where no
  // signature runs it.
  struct Entry {
    std::string signature;  // empty: the main function, which has none
    std::string function;
    Status status;  // error: why it cannot run
  };
  std::vector<Entry> entries() const;
  // The same of a file that is not opened: kernels are chosen but not initialized, and it is no error where
  // nothing can run.
  static Result<std::vector<Entry>> Survey(const std::string& path, const ModelOptions& = {});

  const Module& module() const;
  const std::string& name() const;  // the file
  const std::shared_ptr<Registry>& registry() const;
  const std::vector<SiteReport>& fusions() const;   // what late fusion did with each composite, and why
  const std::vector<std::string>& notices() const;  // "my_op: plugin com.acme is missing, its body runs"
  // Who runs each node of each function, and why not somebody else. A delegate may still decline in a
  // session, which then has the last word.
  std::vector<Placement> placements() const;
  const run::Program& program() const;  // for Session

 private:
  Model();
  static Result<std::shared_ptr<const Model>> Create(std::unique_ptr<Module>, const ModelOptions&);
  Result<Delegation> Load(std::unique_ptr<Module>, const ModelOptions&);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fusebox
