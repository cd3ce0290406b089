// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/delegate.h"

#include <fusebox/abi/ext/cost.h>
#include <fusebox/abi/ext/progress.h>

#include <algorithm>
#include <array>

#include "plugins/math/costs.h"
#include "plugins/xnnpack/cost.h"
#include "plugins/xnnpack/library.h"
#include "plugins/xnnpack/partition/op.h"
#include "plugins/xnnpack/profile.h"

namespace fusebox::xnnpack {

namespace {

// Attempts to create a partition again, without the cached weights that XNNPACK contradicted.
constexpr int kAttempts = 4;

constexpr const char* kNoSuchOp = "XNNPACK has no such op";

const Operation* KnownOperation(const NetworkNode& node) {
  return node.abi()->kind == FBX_OP_BUILTIN ? FindOperation(node.op()) : nullptr;
}

const Operation& OperationOf(const NetworkNode& node) {
  const Operation* const operation = KnownOperation(node);
  if (operation == nullptr) throw Reject{"OP", kNoSuchOp};
  return *operation;
}

// Cost of an op in float products. A product of bytes costs half; an element of an op without products costs
// four.
double WorkOf(const NetworkNode& node) {
  double elements = 1;
  for (const size_t d : DimsOf(node.out(0))) elements *= static_cast<double>(d);
  const auto filter = node.constant(1);
  if (!filter || filter->rank() < 2) return 4 * elements;
  const int64_t channels = std::max<int64_t>(node.out(0).dim(-1), 1);
  const double products = elements * static_cast<double>(filter->count()) / static_cast<double>(channels);
  const bool floats = filter->dtype() == FBX_F32 || filter->dtype() == FBX_F16;
  return floats ? products : products / 2;
}

bool IsWorthThreads(const Network& network) {
  double work = 0;
  double ops = 0;
  for (uint32_t i = 0; i < network.graph().node_count(); ++i) {
    const NetworkNode node(network, i);
    if (node.out_count() == 0 || node.out(0).rank() <= 0) continue;
    work += WorkOf(node);
    ++ops;
  }
  return work >= std::max(math::kPartitionWork, math::kPartitionOpWork * ops);
}

bool IsBytes(fbx_dtype dtype) { return dtype == FBX_I8 || dtype == FBX_U8 || dtype == FBX_I4; }

// Returns whether all values are f32, and no op reads 8-bit or 4-bit weights.
bool HasOnlyFloats(const Graph& graph) {
  const auto is_f32 = [](Tensor t) { return !t.present() || t.is_const() || t.dtype() == FBX_F32; };
  for (uint32_t i = 0; i < graph.node_count(); ++i) {
    const GraphNode node = graph.node(i);
    for (uint32_t k = 0; k < node.in_count(); ++k) {
      if (!node.has_in(k)) continue;
      const Tensor in = node.in(k);
      if (!is_f32(in) || (in.is_const() && IsBytes(in.dtype()) && node.op() != "DEQUANTIZE")) return false;
    }
    for (uint32_t k = 0; k < node.out_count(); ++k)
      if (!is_f32(node.out(k))) return false;
  }
  return true;
}

Dims CallDims(Tensor t) {
  Dims dims;
  for (const int64_t d : t.dims()) {
    if (d <= 0) throw Reject{"SHAPE", "an empty tensor"};
    dims.push_back(static_cast<size_t>(d));
  }
  return dims;
}

// Reports packing progress of the session's weights.
class Meter {
 public:
  Meter(const fbx_host* host, PackProvider& provider) : host_(host), provider_(provider) {
    const auto* api =
        static_cast<const fbx_progress*>(host->get_extension(host, to_fbx_str(FBX_EXT_PROGRESS)));
    if (!FBX_HAS(api, begin) || !FBX_HAS(api, advance) || !FBX_HAS(api, end)) return;
    const uint64_t bytes = provider.bytes_to_pack();
    if (bytes == 0) return;
    api_ = api;
    api->begin(host, to_fbx_str("packing weights"), bytes);
    provider.Watch([api, host](uint64_t done) { api->advance(host, done); });
  }
  Meter(const Meter&) = delete;
  ~Meter() {
    if (api_ == nullptr) return;
    provider_.Watch(nullptr);
    api_->end(host_);
  }

 private:
  const fbx_host* host_;
  PackProvider& provider_;
  const fbx_progress* api_ = nullptr;
};

}  // namespace

// If it fails, sessions report it.
void Delegate::load() noexcept { StartLibrary(); }

// Opened by the first session, so that a model that never runs opens no files.
std::shared_ptr<ModelWeights> Delegate::weights() {
  std::call_once(opened_,
                 [this] { weights_ = std::make_shared<ModelWeights>(OpenStore(settings_.cache_path)); });
  return weights_;
}

void Delegate::claim(const Graph& graph, Claim& claim) {
  const Network network(graph, true);
  for (uint32_t i = 0; i < graph.node_count(); ++i) {
    if (!claim.offered(i)) continue;
    try {
      const NetworkNode node(network, i);
      const Operation* const operation = KnownOperation(node);
      if (operation == nullptr) {  // most nodes of some models, and an exception takes microseconds
        claim.reject(i, "OP", kNoSuchOp);
        continue;
      }
      operation->supports(node);
      if (settings_.by_cost) RejectSlow(node);
      claim.accept(i, operation->accept);
    } catch (const Reject& r) {
      claim.reject(i, r.code, r.subject.empty() ? r.why : r.why + " (" + r.subject + ")");
    }
  }
}

// Kernels compute no f16.
double Delegate::cost(const Graph&, const GraphNode& node) const {
  return settings_.by_cost && !settings_.half ? CostOf(node) : FBX_NO_COST;
}

double Delegate::border(uint64_t bytes) const { return BorderCost(bytes); }

Delegate::Session::Session(Delegate& delegate, const fbx_host*) : half_(delegate.settings_.half) {
  RequireLibrary();
  weights_ = delegate.weights();
  provider_ = std::make_unique<PackProvider>(
      weights_, delegate.settings_.share ? std::nullopt : std::optional(delegate.sessions_++));
  xnn_workspace_t workspace = nullptr;
  if (const xnn_status status = xnn_create_workspace(&workspace); status != xnn_status_success)
    throw Reject{"XNNPACK", std::string("no workspace: ") + StatusName(status)};
  workspace_.reset(workspace);
}

void Delegate::Session::finish(const fbx_host* host) {
  provider_->Publish();
  const PackStatistics& s = provider_->statistics();
  if (s.bytes_packed > 0) {
    if (const std::string why = weights_->WhyNotKept(); !why.empty())
      emit_diag(host, FBX_WARNING, "CACHE", "packed weights are not stored: " + why);
  }
  emit_diag(host, FBX_NOTE, "WEIGHTS",
            "bytes: " + std::to_string(s.bytes_packed) + " packed, " + std::to_string(s.bytes_found) +
                " found, " + std::to_string(s.bytes_shared) + " shared, " + std::to_string(s.bytes_again) +
                " packed again, " + std::to_string(s.bytes_private) + " private");
}

Delegate::Partition::Partition(Delegate&, Session& session, const Graph& graph)
    : Partition(session, graph, Network(graph)) {}

Delegate::Partition::Partition(Session& session, const Graph& graph, const Network& network)
    : intermediates_(network) {
  if (IsWorthThreads(network)) pool_ = HostPool(graph.host());
  profiling_ = ProfilingFlag(graph.host());
  if (!session.half() || !BuildHalves(network, session)) {
    if (const xnn_status status = BuildAll(network, session); status != xnn_status_success)
      Refuse(network, session, status);
  }
  for (const fbx_value id : intermediates_.values()) {
    const size_t real = half_ ? sizeof(uint16_t) : sizeof(float);
    element_sizes_.push_back(Quantized(graph.value(id)) ? 1 : real);
  }
}

xnn_status Delegate::Partition::BuildAll(const Network& network, Session& session) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const xnn_status status = Build(network, session, network.graph().node_count());
    const std::string poisoned = session.provider().poisoned();
    session.provider().ForgetSources();
    if (status != xnn_status_success || poisoned.empty()) return status;
    runtime_.reset();
    emit_diag(network.graph().host(), FBX_WARNING, "CACHE", poisoned);
  }
  throw Reject{"CACHE", "XNNPACK contradicts the cached weights"};
}

// Returns false, with a warning, if XNNPACK cannot compute the partition in f16.
bool Delegate::Partition::BuildHalves(const Network& network, Session& session) {
  std::string why = "not all of its values and weights are floats";
  if (HasOnlyFloats(network.graph())) {
    half_ = true;
    const xnn_status status = BuildAll(network, session);
    if (status == xnn_status_success) return true;
    why = std::string("XNNPACK: ") + StatusName(status);
    half_ = false;
  }
  emit_diag(network.graph().host(), FBX_WARNING, "PRECISION",
            "a partition is computed in f32 instead of f16 (" + why + ")");
  return false;
}

// Creates a runtime of the first `nodes` nodes.
xnn_status Delegate::Partition::Build(const Network& network, Session& session, uint32_t nodes) {
  Subgraph subgraph(network, session.provider(), intermediates_.values(), half_);
  session.provider().Trace(network.graph().host());
  for (uint32_t i = 0; i < nodes; ++i) {
    const NetworkNode node(network, i);
    subgraph.Defining(node);
    const Operation& operation = OperationOf(node);
    operation.supports(node);
    operation.define(node, subgraph);
  }
  subgraph.Finish();
  session.provider().Trace(nullptr);
  xnn_runtime_t runtime = nullptr;
  const Meter meter(network.graph().host(), session.provider());
  const xnn_status status = xnn_create_runtime_v4(subgraph.get(), session.provider().get(),
                                                  session.workspace(), pool_, profiling_, &runtime);
  if (status != xnn_status_success) return status;
  runtime_.reset(runtime);
  memory_ = subgraph.TakeMemory();
  may_grow_ = subgraph.MayGrow();
  FindPorts(network.graph(), subgraph);
  return status;
}

// Names the first node that XNNPACK rejects.
void Delegate::Partition::Refuse(const Network& network, Session& session, xnn_status status) {
  uint32_t good = 0;
  uint32_t bad = network.graph().node_count();
  while (bad - good > 1) {
    const uint32_t middle = good + (bad - good) / 2;
    (Build(network, session, middle) == xnn_status_success ? good : bad) = middle;
    session.provider().ForgetSources();
    runtime_.reset();
  }
  throw Reject{"XNNPACK", std::string("no runtime: ") + StatusName(status),
               std::string(NetworkNode(network, bad - 1).op()) + " " +
                   std::string(to_string_view(NetworkNode(network, bad - 1).abi()->location))};
}

void Delegate::Partition::FindPorts(const Graph& graph, const Subgraph& subgraph) {
  external_.clear();
  const auto find = [&](std::span<const fbx_value> values, std::vector<Port>& ports) {
    ports.clear();
    for (uint32_t i = 0; i < values.size(); ++i)
      if (subgraph.uses(values[i])) ports.push_back({i, subgraph.external_id(values[i])});
    for (const Port& port : ports) external_.push_back({port.id, nullptr});
  };
  find(graph.inputs(), inputs_);
  find(graph.outputs(), outputs_);
  find(intermediates_.values(), between_);
}

namespace {

void CheckStep(xnn_status status, const char* what) {
  if (status != xnn_status_success) throw Reject{"XNNPACK", std::string(what) + ": " + StatusName(status)};
}

}  // namespace

// For the current shapes; returns the bytes of their memory.
size_t Delegate::Partition::PlaceIntermediates() {
  std::vector<size_t> sizes(intermediates_.values().size());
  for (const Port& port : between_) {
    size_t rank = 0;
    std::array<size_t, XNN_MAX_TENSOR_DIMS> dims{};
    CheckStep(xnn_get_external_value_shape(runtime_.get(), port.id, &rank, dims.data()), "shape");
    sizes[port.place] = element_sizes_[port.place];
    for (size_t i = 0; i < rank; ++i) sizes[port.place] *= dims[i];
  }
  return intermediates_.Place(sizes);
}

void Delegate::Partition::ReshapeInputs(const Call& call) {
  std::vector<Dims> now;
  for (const Port& port : inputs_) now.push_back(CallDims(call.in(port.place)));
  for (size_t i = 0; !may_grow_ && i < input_dims_.size(); ++i) {
    for (size_t d = 0; d < now[i].size(); ++d)
      if (now[i][d] > input_dims_[i][d])
        throw Reject{
            "SHAPE",
            "XNNPACK convolutions of floats by 8-bit weights do not support more images than before"};
  }
  for (size_t i = 0; i < now.size(); ++i)
    CheckStep(xnn_reshape_external_value(runtime_.get(), inputs_[i].id, now[i].size(), now[i].data()),
              "input shape");
  input_dims_ = std::move(now);
}

void Delegate::Partition::prepare(const Call& call, Infer& infer, Plan& plan) {
  is_set_up_ = false;
  ReshapeInputs(call);
  CheckStep(xnn_reshape_runtime(runtime_.get()), "reshape");
  for (const Port& port : outputs_) {
    size_t rank = 0;
    std::array<size_t, XNN_MAX_TENSOR_DIMS> dims{};
    CheckStep(xnn_get_external_value_shape(runtime_.get(), port.id, &rank, dims.data()), "output shape");
    const std::vector<int64_t> result(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(rank));
    infer.set(port.place, call.out(port.place).dtype(), result);
  }
  memory_at_ = nullptr;
  const size_t bytes = PlaceIntermediates();
  slot_ = bytes > 0 ? std::optional(plan.scratch(bytes)) : std::nullopt;
}

// XNNPACK visits all ops to set pointers, which is noticeable in small nets.
void Delegate::Partition::Setup(const Call& call) {
  size_t k = 0;
  bool moved = !is_set_up_;
  const auto place = [&](void* data) {
    moved = moved || external_[k].data != data;
    external_[k++].data = data;
  };
  for (const Port& port : inputs_) place(call.in(port.place).data<void>());
  for (const Port& port : outputs_) place(call.out(port.place).data<void>());
  if (slot_ && call.scratch<std::byte>(*slot_) != memory_at_) {
    memory_at_ = call.scratch<std::byte>(*slot_);
    for (const Port& port : between_) place(memory_at_ + intermediates_.offset(port.place));
  }
  if (!moved) return;
  is_set_up_ = false;
  const xnn_status status = xnn_setup_runtime_v2(runtime_.get(), external_.size(), external_.data());
  if (status != xnn_status_success) throw Error{FBX_INTERNAL, std::string("setup: ") + StatusName(status)};
  is_set_up_ = true;
}

void Delegate::Partition::invoke(const Call& call) {
  Setup(call);
  const xnn_status status = xnn_invoke_runtime(runtime_.get());
  if (status != xnn_status_success) throw Error{FBX_INTERNAL, std::string("invoke: ") + StatusName(status)};
  if (profiling_ != 0) AddOperatorTimes(call.host(), runtime_.get());
}

}  // namespace fusebox::xnnpack
