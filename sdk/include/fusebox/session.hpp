// SPDX-License-Identifier: Apache-2.0
// Session and ThreadPool: run a Model. C++20 over <fusebox/c.h>, which has the rules in full.
//
//   auto session = fusebox::Session::Create(*model, {.threads = 2});
//   std::ranges::copy(pixels, session->input<float>(0)->begin());
//   if (auto ran = session->Run(); !ran) return fail(ran.error().message);
//   for (float score : *session->output<float>(0)) use(score);
#pragma once

#include "fusebox/model.hpp"
#include "fusebox/value.hpp"

namespace fusebox {
inline namespace v1 {

// Threads that several sessions share. Any thread.
class ThreadPool {
 public:
  // `threads`: maximum of one loop, including the calling thread; 0: one per core.
  static Result<ThreadPool> Create(int threads) {
    fusebox_thread_pool* handle = nullptr;
    const Status status =
        detail::Call([&](char** error) { return fusebox_thread_pool_create(threads, &handle, error); });
    if (!status) return status.error();
    return ThreadPool(handle);
  }
  int threads() const { return fusebox_thread_pool_threads(get()); }
  fusebox_thread_pool* get() const { return handle_.get(); }

 private:
  explicit ThreadPool(fusebox_thread_pool* handle) : handle_(handle) {}
  detail::Handle<fusebox_thread_pool, fusebox_thread_pool_free> handle_;
};

struct SessionOptions {
  std::string signature = {};  // empty: the only one, or the main function's
  int threads = 1;             // 0: one per core
  uint64_t memory_limit = 0;   // bytes of tensors and scratch memory; 0: see fusebox_session_create
  bool keep_values = false;    // for value()
  bool profile = false;        // for times()
  int shadow = 0;  // N: every N-th call of a fused op also runs its body, and compares, for Report; 0: none
  const ThreadPool* pool = nullptr;  // set: `threads` is not used
};

struct NodeTime {
  std::string function, op, name, runner;
  int node = 0;   // index in the function
  int nodes = 1;  // of a delegate's partition
  uint64_t runs = 0;
  uint64_t total_ns = 0;
};

// Memory, state and threads to run a model. One thread at a time, except Cancel.
class Session {
 public:
  static Result<Session> Create(const Model& model, const SessionOptions& options = {}) {
    detail::JsonObject json;
    json.Set("signature", options.signature).Set("threads", options.threads);
    json.Set("memory_limit", options.memory_limit);
    json.Set("keep_values", options.keep_values).Set("profile", options.profile);
    if (options.shadow > 0) json.Set("shadow", options.shadow);
    fusebox_session* handle = nullptr;
    const Status status = detail::Call([&](char** error) {
      return fusebox_session_create(model.get(), json.text().c_str(),
                                    options.pool != nullptr ? options.pool->get() : nullptr, &handle, error);
    });
    if (!status) return status.error();
    return Session(handle);
  }

  std::string_view signature() const { return fusebox_session_signature(get()); }
  // Selects the signature of the next runs. State is kept; values, shapes and bindings of inputs are not.
  Status Select(const std::string& key) {
    return detail::Call([&](char** error) { return fusebox_session_select(get(), key.c_str(), error); });
  }

  int input_count() const { return fusebox_session_input_count(get()); }
  int output_count() const { return fusebox_session_output_count(get()); }
  Result<int> FindInput(const std::string& name) const {
    return Find(
        [&](int32_t* at, char** e) { return fusebox_session_find_input(get(), name.c_str(), at, e); });
  }
  Result<int> FindOutput(const std::string& name) const {
    return Find(
        [&](int32_t* at, char** e) { return fusebox_session_find_output(get(), name.c_str(), at, e); });
  }
  // Name and type of an input, as declared or as resized; without its bytes.
  Result<Value> Input(int index) const {
    return View([&](fusebox_tensor* out, char** e) { return fusebox_session_input(get(), index, out, e); });
  }
  // An output; without bytes before the first run.
  Result<Value> Output(int index) {
    return View([&](fusebox_tensor* out, char** e) { return fusebox_session_output(get(), index, out, e); });
  }

  // The session's memory of an input, to fill in place. Its dims must be known, and its elements be T.
  template <class T>
  Result<std::span<T>> input(int index) {
    const Result<Value> slot = Input(index);
    if (!slot) return slot.error();
    if (const auto typed = slot->as<T>(); !typed) return typed.error();
    void* data = nullptr;
    size_t bytes = 0;
    const Status status = detail::Call(
        [&](char** error) { return fusebox_session_input_data(get(), index, &data, &bytes, error); });
    if (!status) return status.error();
    return std::span(static_cast<T*>(data), bytes / sizeof(T));
  }
  // The elements of an output after a run.
  template <class T>
  Result<std::span<const T>> output(int index) {
    return Output(index).and_then([](const Value& value) { return value.as<T>(); });
  }

  Status Resize(int index, std::span<const int64_t> dims) {
    return detail::Call([&](char** error) {
      return fusebox_session_resize_input(get(), index, dims.data(), static_cast<int32_t>(dims.size()),
                                          error);
    });
  }
  Status Resize(int index, std::initializer_list<int64_t> dims) {
    return Resize(index, std::span(dims.begin(), dims.size()));
  }
  // Copies the elements in.
  Status SetInput(int index, std::span<const std::byte> bytes) {
    return detail::Call([&](char** error) {
      return fusebox_session_set_input(get(), index, bytes.data(), bytes.size(), error);
    });
  }
  template <class T>
    requires(kElement<T> != FBX_DTYPE_NONE)
  Status SetInput(int index, std::span<const T> values) {
    const Result<Value> slot = Input(index);
    if (!slot) return slot.error();
    if (const auto typed = slot->as<T>(); !typed) return typed.error();
    return SetInput(index, std::as_bytes(values));
  }
  template <class T>
  Status SetInput(int index, const std::vector<T>& values) {
    return SetInput(index, std::span<const T>(values));
  }
  Status SetStrings(int index, std::span<const std::string> values, std::span<const int64_t> dims) {
    std::vector<const char*> texts;
    std::vector<size_t> lengths;
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    if (count != static_cast<int64_t>(values.size()))
      return Error{Code::kInvalid,
                   std::to_string(values.size()) + " strings for " + std::to_string(count) + " elements"};
    for (const std::string& value : values) {
      texts.push_back(value.data());
      lengths.push_back(value.size());
    }
    return detail::Call([&](char** error) {
      return fusebox_session_set_strings(get(), index, texts.data(), lengths.data(), dims.data(),
                                         static_cast<int32_t>(dims.size()), error);
    });
  }
  // Runs read from and write to this memory: fusebox_session_bind_input in c.h. Empty: unbound.
  Status BindInput(int index, std::span<std::byte> memory) {
    return detail::Call([&](char** error) {
      return fusebox_session_bind_input(get(), index, memory.data(), memory.size(), error);
    });
  }
  Status BindOutput(int index, std::span<std::byte> memory) {
    return detail::Call([&](char** error) {
      return fusebox_session_bind_output(get(), index, memory.data(), memory.size(), error);
    });
  }

  Status Run() {
    return detail::Call([&](char** error) { return fusebox_session_run(get(), error); });
  }
  // Plans without running.
  Status Prepare() {
    return detail::Call([&](char** error) { return fusebox_session_prepare(get(), error); });
  }
  // Ends the run in progress, or the next one, with Code::kCancelled. Any thread; never waits.
  void Cancel() { (void)fusebox_session_cancel(get()); }
  Status ResetState() {
    return detail::Call([&](char** error) { return fusebox_session_reset_state(get(), error); });
  }

  // With keep_values: any value of the model, as the last run left it.
  Result<Value> Kept(const std::string& name) {
    return View(
        [&](fusebox_tensor* out, char** e) { return fusebox_session_value(get(), name.c_str(), out, e); });
  }
  // With profile: the nodes that ran so far, in the order of the model.
  Result<std::vector<NodeTime>> Times() {
    int32_t count = 0;
    const Status taken =
        detail::Call([&](char** error) { return fusebox_session_times(get(), &count, error); });
    if (!taken) return taken.error();
    std::vector<NodeTime> out;
    for (int32_t i = 0; i < count; ++i) {
      fusebox_node_time time = FUSEBOX_NODE_TIME;
      const Status read =
          detail::Call([&](char** error) { return fusebox_session_time(get(), i, &time, error); });
      if (!read) return read.error();
      out.push_back({.function = time.function,
                     .op = time.op,
                     .name = time.name,
                     .runner = time.runner,
                     .node = time.node,
                     .nodes = time.nodes,
                     .runs = time.runs,
                     .total_ns = time.total_ns});
    }
    return out;
  }
  // {"signature", "threads", "arena_bytes", "notices", "placements", "shadows"}
  Result<std::string> Report() const {
    return detail::CallForText(
        [&](char** text, char** error) { return fusebox_session_report(get(), text, error); });
  }
  // The plan for the current shapes, for people.
  Result<std::string> Explain() const {
    return detail::CallForText(
        [&](char** text, char** error) { return fusebox_session_explain(get(), text, error); });
  }
  fusebox_session* get() const { return handle_.get(); }

 private:
  explicit Session(fusebox_session* handle) : handle_(handle) {}
  template <class F>
  static Result<int> Find(F&& find) {
    int32_t index = -1;
    const Status status = detail::Call([&](char** error) { return find(&index, error); });
    if (!status) return status.error();
    return static_cast<int>(index);
  }
  template <class F>
  static Result<Value> View(F&& read) {
    Value value;
    const Status status = detail::Call([&](char** error) { return read(&value.tensor_, error); });
    if (!status) return status.error();
    return value;
  }

  detail::Handle<fusebox_session, fusebox_session_free> handle_;
};

}  // namespace v1
}  // namespace fusebox
