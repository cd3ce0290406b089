// SPDX-License-Identifier: Apache-2.0
// Model: a .tflite file, read, verified and fused. Immutable, any thread.
//
//   auto registry = fusebox::Registry::Create(config);
//   auto model = fusebox::Model::Open("model.tflite", {.registry = *registry});
//   auto session = fusebox::Session::Create(*model);
//
// Open reads the file, imports it if it holds ops of TensorFlow (source.h), fuses its composites with the
// registry's rules, offers the nodes to delegates, chooses a kernel for every node and initializes the
// kernels of nodes without delegate (weights are packed here, once for all sessions). A fused op whose plugin
// is missing falls back to its kept body, if any, with a notice. If a signature reaches an op without kernel,
// Session::Create returns an error for that signature with op, plugin and searched directories. Open fails if
// no signature can run.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/base/status.h"
#include "host/fusion/fusion.h"
#include "host/graph/graph.h"
#include "host/plugin/registry.h"
#include "host/run/missing.h"
#include "host/run/placement.h"
#include "host/source.h"

namespace fusebox {

struct ModelOptions {
  std::shared_ptr<Registry> registry;        // null: one with the default search path
  bool fuse = true;                          // late fusion of composites
  ImportOps import_ops = ImportOps::kNever;  // of a file with ops of TensorFlow
  bool keep_bodies = false;  // an import keeps the bodies of builtin fused ops too, for people to look at
  // Delegates, in the order in which nodes are offered to them; empty: none. Nothing: the config's list, else
  // the default delegates.
  std::optional<std::vector<Config::Delegate>> delegates = {};
  // JSON, options by delegate, over options of the config: {"xnnpack": {"weight_cache_path": "cache/"}}.
  // Options of an unused delegate cause a notice, unless its plugin provides services, which read them too
  // (kept weights). An unknown option is an error.
  std::string delegate_options = {};
  std::string name = "<memory>";  // of a model from memory, in messages
  // If no plugin here has a kernel for a fused op, or a rule for a composite, and there is a body.
  Missing missing = Missing::kWarn;
  // Opening that takes longer fails with Code::kCancelled. 0: no limit, but ten seconds for an import.
  int64_t time_limit_ms = 0;
  // Opening ends at its next node, with Code::kCancelled, once any thread sets it.
  std::shared_ptr<std::atomic<bool>> cancel = {};
};

namespace run {
class Program;  // kernels chosen and initialized: host/run
}

class Model {
 public:
  static Result<std::shared_ptr<const Model>> Open(const std::string& path, const ModelOptions& = {});
  // Same, for the bytes of a .tflite file. Constants are not copied, except one that ends within 16 bytes of
  // the end of memory that Buffer did not allocate (kernels may read so far). Bytes at an address that is no
  // multiple of 8 are copied as a whole. A weight cache reads the weights at each start, since it remembers
  // digests of files only.
  static Result<std::shared_ptr<const Model>> FromMemory(Buffer bytes, const ModelOptions& = {});
  // Same, for a module in memory (from the converter, a test).
  static Result<std::shared_ptr<const Model>> FromModule(std::unique_ptr<Module>, const ModelOptions& = {});
  ~Model();

  // A function that sessions can run: the signatures in file order, then the main function if no signature
  // runs it.
  struct Entry {
    std::string signature;  // empty: the main function
    std::string function;
    Status status;  // error: why it cannot run
  };
  std::vector<Entry> entries() const;
  // The entries of a module that is not opened: kernels are chosen but not initialized. Not an error if no
  // entry can run.
  static Result<std::vector<Entry>> Survey(std::unique_ptr<Module>, const ModelOptions& = {});

  const Module& module() const;
  const std::string& name() const;  // path of the file, or ModelOptions::name
  const std::shared_ptr<Registry>& registry() const;
  // Result of fusion for each composite: at import, then of those in the file.
  const std::vector<SiteReport>& fusions() const;
  const std::vector<std::string>& notices() const;  // "my_op: falls back to its body: no kernel for my_op..."
  // Returns what runs each node of each function, and why. In a session, a delegate may still decline.
  std::vector<Placement> placements() const;
  const run::Program& program() const;  // for Session

 private:
  Model();
  static Result<std::shared_ptr<const Model>> Create(Source, const ModelOptions&);
  Result<Delegation> Load(Source, const ModelOptions&);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fusebox
