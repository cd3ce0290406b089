// SPDX-License-Identifier: Apache-2.0
// embed_cpp20 MODEL [ENDLESS]: the same as embed_c11, over the C++20 layer.
#include <fusebox/session.hpp>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>

using fusebox::Model, fusebox::Result, fusebox::Session, fusebox::Status;

namespace {

Result<Model> Open(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fusebox::Error{fusebox::Code::kNotFound, path + ": cannot be opened"};
  auto bytes = std::make_shared<std::vector<char>>(std::istreambuf_iterator<char>(file),
                                                   std::istreambuf_iterator<char>());
  return Model::FromMemory(std::as_bytes(std::span(*bytes)), bytes, {.name = path});
}

// Sets the first f32 input; dims that are not known become 1.
Result<size_t> Fill(Session& session) {
  const auto slot = session.Input(0);
  if (!slot) return slot.error();
  std::vector<int64_t> dims(slot->dims().begin(), slot->dims().end());
  for (int64_t& dim : dims) dim = dim < 0 ? 1 : dim;
  if (const Status resized = session.Resize(0, dims); !resized) return resized.error();
  const auto values = session.input<float>(0);
  if (!values) return values.error();
  for (size_t i = 0; i < values->size(); ++i) (*values)[i] = static_cast<float>(i);
  return values->size();
}

Status Run(const std::string& path) {
  const auto model = Open(path);
  if (!model) return model.error();
  auto session = Session::Create(*model, {.profile = true});
  if (!session) return session.error();
  const auto count = Fill(*session);
  if (!count) return count.error();
  if (const Status ran = session->Run(); !ran) return ran;
  const auto output = session->Output(0);
  if (!output) return output.error();
  std::printf("%zu values in, %zu bytes out", *count, output->bytes().size());
  if (const auto values = output->as<float>(); values && !values->empty())
    std::printf(", first %g", static_cast<double>(values->front()));
  std::printf("\n");
  const auto times = session->Times();
  if (!times) return times.error();
  for (const fusebox::NodeTime& time : *times)
    std::printf("node %d %s on %s: %.3f us\n", time.node, time.op.c_str(), time.runner.c_str(),
                static_cast<double>(time.total_ns) / 1000 / static_cast<double>(time.runs));
  return {};
}

Status RunEndless(const std::string& path) {
  const auto model = Open(path);
  if (!model) return model.error();
  auto session = Session::Create(*model);
  if (!session) return session.error();
  std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    session->Cancel();
  });
  const Status ran = session->Run();
  if (ran || ran.error().code != fusebox::Code::kCancelled) return ran;
  std::printf("cancelled\n");
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: embed_cpp20 MODEL [ENDLESS]\n");
    return 2;
  }
  Status done = Run(argv[1]);
  if (done && argc > 2) done = RunEndless(argv[2]);
  if (done) return 0;
  std::fprintf(stderr, "embed_cpp20: %s\n", done.error().message.c_str());
  return 2;
}
