// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/profile.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace fusebox::cli {
namespace {

constexpr double kMillisecond = 1e6;  // ns

using Key = std::pair<std::string, size_t>;  // function, node
Key KeyOf(const NodeTime& time) { return {time.function, time.node}; }

// The rows of the runs between two snapshots of the times.
class Rows {
 public:
  Rows(const std::vector<NodeTime>& first, double runs, const Peak& peak) : runs_(runs), peak_(peak) {
    for (const NodeTime& time : first) first_.emplace(KeyOf(time), &time);
  }

  void Add(const NodeTime& time, bool inside) {
    const auto before = first_.find(KeyOf(time));
    const NodeTime none{};
    const NodeTime& first = before == first_.end() ? none : *before->second;
    ProfileRow row{.type = time.op, .name = time.name, .runner = time.runner, .function = time.function};
    row.node = time.node;
    row.nodes = time.nodes;
    row.inside = inside;
    row.first = static_cast<double>(first.total_ns) / kMillisecond;
    row.bytes = static_cast<double>(time.bytes);
    row.flops = static_cast<double>(time.flops);
    row.estimate = std::max(0.0, time.estimate_ns) / kMillisecond;
    Finish(row, time.total_ns - first.total_ns, time.runs - first.runs);
    for (const SpanTime& span : time.spans) AddSpan(span, first, time.runner);
  }

  std::vector<ProfileRow> Take() { return std::move(rows_); }

 private:
  void AddSpan(const SpanTime& span, const NodeTime& node, const std::string& runner) {
    const auto same = [&](const SpanTime& s) { return s.name == span.name && s.worker == span.worker; };
    const auto found = std::ranges::find_if(node.spans, same);
    const SpanTime first = found == node.spans.end() ? SpanTime{} : *found;
    ProfileRow row{.type = span.name, .runner = runner, .inside = true, .span = true};
    if (span.worker > 0) row.name = "thread " + std::to_string(span.worker);
    row.first = static_cast<double>(first.total_ns) / kMillisecond;
    const double count = std::max<double>(static_cast<double>(span.count), 1);
    row.bytes = static_cast<double>(span.bytes) / count;
    row.flops = static_cast<double>(span.flops) / count;
    Finish(row, span.total_ns - first.total_ns, span.count - first.count);
  }

  void Finish(ProfileRow& row, uint64_t ns, uint64_t calls) {
    row.calls = static_cast<double>(calls) / runs_;
    row.average = static_cast<double>(ns) / kMillisecond / runs_;
    if (row.flops > 0 && row.average > 0)
      row.of_peak = LeastSeconds(peak_, row.flops, row.bytes) * 1000 * row.calls / row.average;
    rows_.push_back(std::move(row));
  }

  const double runs_;
  const Peak& peak_;
  std::map<Key, const NodeTime*> first_;
  std::vector<ProfileRow> rows_;
};

// Nodes of other functions run inside a call, a loop or a branch of the first one.
std::vector<ProfileRow> RowsOf(const std::vector<NodeTime>& first, const std::vector<NodeTime>& last,
                               size_t runs, const Peak& peak, const std::string& entry) {
  Rows rows(first, static_cast<double>(runs), peak);
  for (const bool inside : {false, true})
    for (const NodeTime& time : last)
      if ((time.function != entry) == inside) rows.Add(time, inside);
  return rows.Take();
}

}  // namespace

Result<ModelProfile> ProfileModel(const Opened& opened, const SessionOptions& options,
                                  std::vector<Tensor> inputs, const Limits& limits) {
  SessionOptions profiled = options;
  profiled.profile = true;
  FUSEBOX_ASSIGN(const auto session, Session::Create(opened.model, profiled));
  for (size_t i = 0; i < inputs.size(); ++i) FUSEBOX_TRY(ShapeInput(*session, i, inputs[i]));
  FUSEBOX_TRY(SetInputs(*session, inputs, 0));
  const auto call = [&] { return session->Run(); };
  FUSEBOX_TRY(call());
  const std::vector<NodeTime> first = session->times();
  FUSEBOX_ASSIGN(const std::vector<double> times, Repeat(call, limits));
  ModelProfile out;
  out.runs = times.size();
  out.run = std::accumulate(times.begin(), times.end(), 0.0) / 1000 / static_cast<double>(times.size());
  out.peak = MeasurePeak();
  out.peak.flops *= session->threads();
  out.rows = RowsOf(first, session->times(), out.runs, out.peak, FunctionOf(opened));
  for (const ProfileRow& row : out.rows)
    if (!row.inside) out.total += row.average;
  return out;
}

}  // namespace fusebox::cli
