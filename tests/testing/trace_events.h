// SPDX-License-Identifier: Apache-2.0
// Checks files in Chrome's trace event format ("Trace Event Format", the JSON object form) more strictly than
// viewers do, and finds events in them.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/base/json.h"

namespace fusebox::testing_trace {

using nlohmann::json;

inline bool IsNumber(const json& event, const char* key) {
  return event.contains(key) && event[key].is_number() && std::isfinite(event[key].get<double>());
}
inline bool IsId(const json& event, const char* key) {
  return event.contains(key) && event[key].is_number_unsigned();
}
inline bool IsText(const json& event, const char* key) {
  return event.contains(key) && event[key].is_string();
}

// Of an event by itself; empty: valid.
inline std::string WhyNotAnEvent(const json& event) {
  static const std::string phases = "BEXiICbnestfPNODMVvRc";  // those of the specification
  if (!event.is_object()) return "an event is not an object";
  if (!IsText(event, "ph") || event["ph"].get<std::string>().size() != 1 ||
      phases.find(event["ph"].get<std::string>()) == std::string::npos)
    return "an unknown phase";
  if (!IsText(event, "name")) return "no name";
  if (!IsId(event, "pid") || !IsId(event, "tid")) return "pid and tid are not numbers";
  if (event.contains("args") && !event["args"].is_object()) return "args are not an object";
  const std::string phase = event["ph"];
  if (phase == "M") {
    static const std::set<std::string> names = {"process_name", "process_labels", "process_sort_index",
                                                "thread_name", "thread_sort_index"};
    if (!names.contains(event["name"].get<std::string>())) return "unknown metadata";
    return event.contains("args") && !event["args"].empty() ? "" : "metadata without args";
  }
  if (!IsNumber(event, "ts") || event["ts"] < 0) return "ts is not a time in microseconds";
  if (!IsText(event, "cat")) return "no category";
  if (phase == "X" && (!IsNumber(event, "dur") || event["dur"] < 0))
    return "dur is not a time in microseconds";
  if (phase == "C")
    for (const json& value : event["args"])
      if (!value.is_number()) return "a counter that is no number";
  return "";
}

// As viewers compute them, in floating point.
inline double Start(const json& event) { return event["ts"].get<double>(); }
inline double End(const json& event) { return Start(event) + event["dur"].get<double>(); }

using ThreadId = std::pair<uint64_t, uint64_t>;  // process, thread
inline ThreadId ThreadOf(const json& event) { return {event["pid"], event["tid"]}; }

// Two spans of a thread overlap only if one is inside the other.
inline std::string WhyNotNested(const json& events) {
  std::map<ThreadId, std::vector<const json*>> threads;
  for (const json& event : events)
    if (event["ph"] == "X") threads[ThreadOf(event)].push_back(&event);
  for (auto& [thread, spans] : threads) {
    std::ranges::stable_sort(spans, [](const json* a, const json* b) {
      return std::pair(Start(*a), -End(*a)) < std::pair(Start(*b), -End(*b));
    });
    std::vector<const json*> open;
    for (const json* span : spans) {
      while (!open.empty() && End(*open.back()) <= Start(*span)) open.pop_back();
      if (!open.empty() && End(*span) > End(*open.back()))
        return "span " + span->dump() + " overlaps " + open.back()->dump();
      open.push_back(span);
    }
  }
  return "";
}

// Empty: a valid trace, whose threads and processes have names.
inline std::string WhyNotATrace(std::string_view text) {
  const auto parsed = ParseJson(text, "trace");
  if (!parsed) return parsed.error().message;
  const json& trace = *parsed;
  if (!trace.is_object() || !trace.contains("traceEvents") || !trace["traceEvents"].is_array())
    return "no traceEvents";
  const std::string unit = trace.value("displayTimeUnit", "ms");
  if (unit != "ms" && unit != "ns") return "displayTimeUnit " + unit;
  std::set<ThreadId> threads, named;
  std::set<uint64_t> processes;
  for (const json& event : trace["traceEvents"]) {
    if (const std::string why = WhyNotAnEvent(event); !why.empty()) return why + ": " + event.dump();
    if (event["ph"] != "M") threads.insert(ThreadOf(event));
    if (event["name"] == "thread_name" && !named.insert(ThreadOf(event)).second)
      return "a thread has two names";
    if (event["name"] == "process_name" && !processes.insert(event["pid"].get<uint64_t>()).second)
      return "a process has two names";
  }
  for (const ThreadId& thread : threads)
    if (!named.contains(thread) || !processes.contains(thread.first)) return "a thread has no name";
  return WhyNotNested(trace["traceEvents"]);
}

// The spans and instants with this name; empty name: of this category.
inline std::vector<json> Spans(const json& trace, const std::string& name, const std::string& category = "") {
  std::vector<json> found;
  for (const json& event : trace["traceEvents"])
    if ((event["ph"] == "X" || event["ph"] == "i") && (name.empty() || event["name"] == name) &&
        (category.empty() || event["cat"] == category))
      found.push_back(event);
  return found;
}

inline bool Contains(const json& outer, const json& inner) {
  return ThreadOf(outer) == ThreadOf(inner) && Start(outer) <= Start(inner) && End(inner) <= End(outer);
}

// "thread_name" of a thread.
inline std::string NameOf(const json& trace, const ThreadId& thread) {
  for (const json& event : trace["traceEvents"])
    if (event["name"] == "thread_name" && ThreadOf(event) == thread) return event["args"]["name"];
  return "";
}

}  // namespace fusebox::testing_trace
