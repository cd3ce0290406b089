// SPDX-License-Identifier: Apache-2.0
// embed_cpp17 MODEL [ENDLESS]: the same as embed_c11, in C++17 over the C API.
#include <fusebox/c.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Free {
  void operator()(fusebox_model* model) const { fusebox_model_free(model); }
  void operator()(fusebox_session* session) const { fusebox_session_free(session); }
};
using Model = std::unique_ptr<fusebox_model, Free>;
using Session = std::unique_ptr<fusebox_session, Free>;

// `error` is a pointer: its text is set by the call that yields `status`.
void Check(fusebox_status status, char** error) {
  if (status == FUSEBOX_OK) return;
  const std::string text = *error != nullptr ? *error : "";
  fusebox_text_free(*error);
  throw std::runtime_error(std::string(fusebox_status_name(status)) + ": " + text);
}

Model Open(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": cannot be opened");
  auto bytes = std::make_unique<std::vector<char>>(std::istreambuf_iterator<char>(file),
                                                   std::istreambuf_iterator<char>());
  fusebox_model* model = nullptr;
  char* error = nullptr;
  const auto* held = bytes.get();
  // The bytes belong to the model from here on, also after a failure.
  Check(fusebox_model_from_memory(
            held->data(), held->size(), [](void* user) { delete static_cast<std::vector<char>*>(user); },
            bytes.release(), nullptr, nullptr, &model, &error),
        &error);
  return Model(model);
}

Session Start(const Model& model, const char* options) {
  fusebox_session* session = nullptr;
  char* error = nullptr;
  Check(fusebox_session_create(model.get(), options, nullptr, &session, &error), &error);
  return Session(session);
}

// Sets the first f32 input; dims that are not known become 1.
size_t Fill(fusebox_session* session) {
  char* error = nullptr;
  fusebox_tensor input = FUSEBOX_TENSOR;
  Check(fusebox_session_input(session, 0, &input, &error), &error);
  std::vector<int64_t> dims(input.dims, input.dims + input.rank);
  for (int64_t& dim : dims) dim = dim < 0 ? 1 : dim;
  Check(fusebox_session_resize_input(session, 0, dims.data(), input.rank, &error), &error);
  void* data = nullptr;
  size_t bytes = 0;
  Check(fusebox_session_input_data(session, 0, &data, &bytes, &error), &error);
  const size_t count = bytes / sizeof(float);
  for (size_t i = 0; i < count; ++i) static_cast<float*>(data)[i] = static_cast<float>(i);
  return count;
}

void Run(const std::string& path) {
  const Session session = Start(Open(path), R"({"profile": true})");
  const size_t count = Fill(session.get());
  char* error = nullptr;
  Check(fusebox_session_run(session.get(), &error), &error);
  fusebox_tensor output = FUSEBOX_TENSOR;
  Check(fusebox_session_output(session.get(), 0, &output, &error), &error);
  std::printf("%zu values in, %zu bytes out", count, output.bytes);
  if (output.dtype == FBX_F32 && output.bytes > 0)
    std::printf(", first %g", static_cast<double>(*static_cast<const float*>(output.data)));
  std::printf("\n");
  int32_t nodes = 0;
  Check(fusebox_session_times(session.get(), &nodes, &error), &error);
  for (int32_t i = 0; i < nodes; ++i) {
    fusebox_node_time time = FUSEBOX_NODE_TIME;
    Check(fusebox_session_time(session.get(), i, &time, &error), &error);
    std::printf("node %d %s on %s: %.3f us\n", time.node, time.op, time.runner,
                static_cast<double>(time.total_ns) / 1000 / static_cast<double>(time.runs));
  }
}

void RunEndless(const std::string& path) {
  const Session session = Start(Open(path), nullptr);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    fusebox_session_cancel(session.get());
  });
  const fusebox_status status = fusebox_session_run(session.get(), nullptr);
  other.join();
  std::printf("%s\n", fusebox_status_name(status));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) throw std::runtime_error("usage: embed_cpp17 MODEL [ENDLESS]");
  Run(argv[1]);
  if (argc > 2) RunEndless(argv[2]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "embed_cpp17: %s\n", error.what());
  return 2;
}
