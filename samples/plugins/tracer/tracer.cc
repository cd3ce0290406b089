// SPDX-License-Identifier: Apache-2.0
// tracer: a delegate that counts, times and forwards. It claims nodes, lets the host's kernels run them, and
// measures each one: as spans of a profile, and in a table that it writes when the model is closed.
#include <chrono>
#include <cstdio>
#include <fusebox/delegate.hpp>
#include <fusebox/forward.hpp>
#include <fusebox/plugin.hpp>
#include <fusebox/profile.hpp>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

using namespace fusebox::sdk;

namespace {

struct Traced {
  std::string op, node;
  uint64_t runs = 0;
  uint64_t ns = 0;
};

// A scalar or a list of integers, which may be a shape.
bool MayBeShape(Tensor t) {
  return !t.is_const() && (t.dtype() == FBX_I32 || t.dtype() == FBX_I64) && t.rank() <= 1;
}

bool IsStatic(Tensor t) {
  if (t.rank() < 0) return false;
  for (const int64_t dim : t.dims())
    if (dim < 0) return false;
  return true;
}

class Tracer {
 public:
  static constexpr std::string_view delegate = "tracer";

  explicit Tracer(const Attrs& options) : report_(options.s("report", "")) {}
  ~Tracer() {
    if (!report_.empty()) Write();
  }

  // The host runs a partition through its delegate only if it knows all sizes before.
  void supports(const Graph&, const GraphNode& n) const {
    bool known = true;
    for (uint32_t i = 0; i < n.in_count(); ++i) {
      if (!n.has_in(i)) continue;
      const std::string operand = "operand " + std::to_string(i);
      n.require(n.in(i).dtype() != FBX_STRING, "DTYPE", "the size of strings depends on data", operand);
      n.require(!MayBeShape(n.in(i)), "NONCONST", "sizes may depend on its value", operand);
      known = known && IsStatic(n.in(i));
    }
    for (uint32_t i = 0; i < n.out_count(); ++i) {
      const std::string result = "result " + std::to_string(i);
      n.require(n.out(i).dtype() != FBX_STRING, "DTYPE", "the size of strings depends on data", result);
      n.require(!known || IsStatic(n.out(i)), "SHAPE", "its size depends on data", result);
    }
  }

  // A partition of one session, so that it needs no lock while it runs.
  class Partition {
   public:
    Partition(Tracer& tracer, const Graph& graph) : tracer_(tracer), name_(graph.name()) {
      for (uint32_t i = 0; i < graph.node_count(); ++i) {
        const GraphNode node = graph.node(i);
        traced_.push_back({std::string(node.op()), std::string(to_string_view(node.abi()->location))});
      }
    }
    ~Partition() { tracer_.Add(name_, traced_); }

    void reshape(const Call&) {}  // kernels run any shape
    void prepare(const Call& call, Infer&, Plan&) { Forward(call).prepare(); }
    void invoke(const Call& call) {
      host_ = call.host();
      Forward(call).run(*this);
    }

    void before(uint32_t node) noexcept {
      span_.emplace(host_, traced_[node].op);
      start_ = std::chrono::steady_clock::now();
    }
    void after(uint32_t node) noexcept {
      const auto time = std::chrono::steady_clock::now() - start_;
      span_.reset();
      ++traced_[node].runs;
      traced_[node].ns +=
          static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
    }

   private:
    Tracer& tracer_;
    const std::string name_;
    std::vector<Traced> traced_;  // by node
    const fbx_host* host_ = nullptr;
    std::optional<Span> span_;
    std::chrono::steady_clock::time_point start_;
  };

 private:
  // Partitions of several sessions may end at the same time.
  void Add(const std::string& partition, const std::vector<Traced>& traced) {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < traced.size(); ++i) {
      Traced& sum = sums_.try_emplace({partition, i}, Traced{traced[i].op, traced[i].node}).first->second;
      sum.runs += traced[i].runs;
      sum.ns += traced[i].ns;
    }
  }

  void Write() const {
    std::FILE* const file = std::fopen(report_.c_str(), "w");
    if (file == nullptr) {
      std::fprintf(stderr, "tracer: cannot write %s\n", report_.c_str());
      return;
    }
    std::fprintf(file, "partition\tindex\truns\tmicroseconds\top\tnode\n");
    for (const auto& [key, sum] : sums_) {
      std::fprintf(file, "%s\t%zu\t%llu\t%.1f\t%s\t%s\n", key.first.c_str(), key.second,
                   static_cast<unsigned long long>(sum.runs), static_cast<double>(sum.ns) / 1e3,
                   sum.op.c_str(), sum.node.c_str());
    }
    std::fclose(file);
  }

  const std::string report_;  // path of the table; empty: none
  std::mutex mutex_;
  std::map<std::pair<std::string, size_t>, Traced> sums_;  // by partition and node
};

}  // namespace

FUSEBOX_PLUGIN("com.acme.tracer", "1.0.0", Tracer)
