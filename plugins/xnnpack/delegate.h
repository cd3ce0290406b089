// SPDX-License-Identifier: Apache-2.0
// The delegate "xnnpack": claims what the tables in ops/ support, and runs partitions as XNNPACK runtimes.
//
// The sessions of a model share its packed weights; the partitions of a session share one workspace and run
// by one thread at a time.
#pragma once

#include <xnnpack.h>
#include <fusebox/delegate.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "plugins/xnnpack/packing/pack_provider.h"
#include "plugins/xnnpack/packing/settings.h"
#include "plugins/xnnpack/partition/intermediates.h"
#include "plugins/xnnpack/partition/subgraph.h"

namespace fusebox::xnnpack {

using namespace sdk;

class Delegate {
 public:
  static constexpr std::string_view delegate = kDelegateName;
  static constexpr bool recompiles = true;
  static void load() noexcept;
  explicit Delegate(const Attrs& options) : settings_(options) {}

  void claim(const Graph& graph, Claim& claim);
  double cost(const Graph& graph, const GraphNode& node) const;
  double border(uint64_t bytes) const;

  class Session {
   public:
    Session(Delegate& delegate, const fbx_host* host);
    void finish(const fbx_host* host);
    PackProvider& provider() { return *provider_; }
    bool half() const { return half_; }
    xnn_workspace_t workspace() const { return workspace_.get(); }

   private:
    struct Release {
      void operator()(xnn_workspace_t w) const { xnn_release_workspace(w); }
    };
    const bool half_;
    std::shared_ptr<ModelWeights> weights_;
    std::unique_ptr<PackProvider> provider_;
    std::unique_ptr<xnn_workspace, Release> workspace_;
  };

  class Partition {
   public:
    Partition(Delegate& delegate, Session& session, const Graph& graph);
    void prepare(const Call& call, Infer& infer, Plan& plan);
    void invoke(const Call& call);

   private:
    // A value used by ops: index in the call, or among the intermediates; and its id.
    struct Port {
      uint32_t place, id;
    };
    struct Delete {
      void operator()(xnn_runtime_t r) const { xnn_delete_runtime(r); }
    };
    Partition(Session& session, const Graph& graph, const Network& network);
    xnn_status BuildAll(const Network& network, Session& session);
    bool BuildHalves(const Network& network, Session& session);
    xnn_status Build(const Network& network, Session& session, uint32_t nodes);
    [[noreturn]] void Refuse(const Network& network, Session& session, xnn_status status);
    void FindPorts(const Graph& graph, const Subgraph& subgraph);
    void ReshapeInputs(const Call& call);
    size_t PlaceIntermediates();
    void Setup(const Call& call);

    Intermediates intermediates_;
    bool half_ = false;                  // floats are f16
    std::vector<size_t> element_sizes_;  // of the intermediates
    bool may_grow_ = true;               // from Subgraph
    std::vector<Dims> input_dims_;       // last passed to XNNPACK, if they may not grow
    std::vector<Port> inputs_, outputs_, between_;
    std::vector<xnn_external_value> external_;  // last passed to XNNPACK
    std::optional<uint32_t> slot_;              // memory of the intermediates, if any
    std::byte* memory_at_ = nullptr;            // last passed to XNNPACK
    bool is_set_up_ = false;
    pthreadpool_t pool_ = nullptr;
    uint32_t profiling_ = 0;                    // flag of the runtime
    std::vector<std::vector<uint8_t>> memory_;  // constants of the runtime
    std::unique_ptr<xnn_runtime, Delete> runtime_;
  };

 private:
  std::shared_ptr<ModelWeights> weights();

  const Settings settings_;
  std::atomic<uint64_t> sessions_ = 0;  // opened so far, in the order in which signatures are used
  std::once_flag opened_;
  std::shared_ptr<ModelWeights> weights_;
};

}  // namespace fusebox::xnnpack
