// SPDX-License-Identifier: Apache-2.0
// Runs a .tflite file with plugins and reports what runs each node. Uses only the installed library.
#include <host/graph/npy.h>
#include <host/model.h>
#include <host/session.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <random>
#include <sstream>

using fusebox::DType, fusebox::Result, fusebox::Session, fusebox::Status, fusebox::Tensor;

struct Arguments {
  std::string model;
  fusebox::Config config;
  std::map<std::string, std::string> inputs;  // file by name
  std::map<std::string, int> numbers = {{"--seed", 1}, {"--threads", 1}, {"--runs", 1}};
};

constexpr const char* kUsage =
    "usage: host_app MODEL [--config FILE] [--plugin DIR]... [--input NAME=NPY] [--seed|--threads|--runs N]";

Result<Arguments> Parse(int argc, char** argv) {
  Arguments out;
  if (argc < 2 || argc % 2 != 0) return fusebox::Invalid(kUsage);
  out.model = argv[1];
  std::vector<std::string> plugins;
  for (int i = 2; i < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    const size_t equals = value.find('=');
    if (flag == "--config") {
      FUSEBOX_ASSIGN(out.config, fusebox::ReadConfig(value));
    } else if (flag == "--plugin") {
      plugins.push_back(value);
    } else if (flag == "--input" && equals != std::string::npos) {
      out.inputs[value.substr(0, equals)] = value.substr(equals + 1);
    } else if (const auto number = out.numbers.find(flag); number != out.numbers.end()) {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number->second);
      const int least = flag == "--threads" ? 0 : 1;  // 0: one per core
      if (error != std::errc() || *end != 0 || number->second < least || number->second > 1'000'000)
        return fusebox::Invalid(flag + " " + value + ": expected a number, " + std::to_string(least) +
                                " to 1000000");
    } else {
      return fusebox::Invalid(flag + " " + value + ": unknown argument\n" + kUsage);
    }
  }
  out.config.plugins = std::move(plugins);
  return out;
}

// Random f32 in [-1, 1), zeros for other types; unknown dimensions become 1.
Result<Tensor> Random(fusebox::Type type, uint64_t seed) {
  for (int64_t& dim : type.shape.dims()) dim = dim < 0 ? 1 : dim;
  const auto bytes = fusebox::ByteSize(type);
  if (!bytes) return fusebox::Unsupported("cannot generate values of type " + ToString(type));
  if (type.dtype != DType::kF32) return Tensor{type, fusebox::Buffer::Make(*bytes, [](auto) {})};
  const auto fill = [random = std::mt19937_64(seed)](std::span<std::byte> data) mutable {
    for (float& number : std::span(reinterpret_cast<float*>(data.data()), data.size() / sizeof(float)))
      number = static_cast<float>(random() >> 40) / (1 << 23) - 1;
  };
  return Tensor{type, fusebox::Buffer::Make(*bytes, fill)};
}

Status SetInputs(const Arguments& arguments, Session& session) {
  for (const auto& [name, file] : arguments.inputs) FUSEBOX_TRY(session.FindInput(name));
  for (size_t i = 0; i < session.inputs().size(); ++i) {
    const auto& [name, type] = session.inputs()[i];
    const uint64_t seed = arguments.numbers.at("--seed") + i;
    const auto file = arguments.inputs.find(name);
    const bool made_up = file == arguments.inputs.end();
    FUSEBOX_ASSIGN(const Tensor value,
                   made_up ? Random(type, seed).At(name) : fusebox::ReadNpy(file->second));
    FUSEBOX_TRY(session.SetInput(static_cast<int>(i), value));
  }
  return {};
}

void Row(std::string_view what, const std::vector<std::string>& cells) {
  std::printf("%-9s", std::string(what).c_str());
  for (size_t i = 0; i < cells.size(); ++i) std::printf("%s%s", i > 0 ? " | " : "", cells[i].c_str());
  std::printf("\n");
}

void PrintWhatRuns(const fusebox::Registry& registry, const fusebox::Model& model) {
  for (const fusebox::PluginInfo& p : registry.plugins()) {
    const std::string state = std::string(Name(p.state)) + (p.loaded ? ", loaded" : "");
    Row("plugin", {p.manifest.id, p.manifest.version, p.manifest.path, state, p.why});
  }
  for (const auto& function : model.module().functions) {
    for (const auto& node : function->nodes) {
      const fusebox::Provenance* by = node->fused.get();
      if (by) Row("fusion", {node->location.name, by->rule, by->plugin + " " + by->plugin_version});
    }
  }
  for (const auto& site : model.fusions())
    if (!site.fused) Row("fusion", {site.location, site.composite, "not fused: " + site.why});
  for (const std::string& notice : model.notices()) Row("notice", {notice});
  for (const auto& row : model.placements()) Row("node", {row.node, row.op, row.who, row.why});
}

// Prints the first elements if the tensor's type is E.
template <class E>
void First(const Tensor& value, DType type, std::ostream& out) {
  const auto elements = value.data.As<E>();
  if (value.type.dtype != type) return;
  for (const E element : elements.first(std::min<size_t>(elements.size(), 8))) out << +element << " ";
}

Status PrintOutputs(const Session& session) {
  for (size_t i = 0; i < session.outputs().size(); ++i) {
    FUSEBOX_ASSIGN(const Tensor value, session.output(static_cast<int>(i)));
    std::ostringstream out;
    out.precision(8);
    First<float>(value, DType::kF32, out), First<int32_t>(value, DType::kI32, out);
    First<int64_t>(value, DType::kI64, out), First<bool>(value, DType::kBool, out);
    First<int8_t>(value, DType::kI8, out), First<uint8_t>(value, DType::kU8, out);
    Row("output", {session.outputs()[i].name, ToString(value.type), out.str()});
  }
  return {};
}

Status Main(int argc, char** argv) {
  FUSEBOX_ASSIGN(const Arguments arguments, Parse(argc, argv));
  FUSEBOX_ASSIGN(const auto registry, fusebox::Registry::Create(arguments.config));
  FUSEBOX_ASSIGN(const auto model, fusebox::Model::Open(arguments.model, {.registry = registry}));
  FUSEBOX_ASSIGN(const auto session,
                 Session::Create(model, {.signature = {}, .threads = arguments.numbers.at("--threads")}));
  FUSEBOX_TRY(SetInputs(arguments, *session));
  FUSEBOX_TRY(session->Prepare());
  PrintWhatRuns(*registry, *model);
  std::vector<double> times(static_cast<size_t>(arguments.numbers.at("--runs")));
  for (double& time : times) {
    const auto start = std::chrono::steady_clock::now();
    FUSEBOX_TRY(session->Run());
    time = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  }
  FUSEBOX_TRY(PrintOutputs(*session));
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  std::printf("latency  %.1f us (median of %zu)\n", times[times.size() / 2], times.size());
  return {};
}

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::puts(kUsage);
    return 0;
  }
  const Status done = Main(argc, argv);
  if (done) return 0;
  std::fprintf(stderr, "host_app: %s\n", done.error().message.c_str());
  return done.error().code == fusebox::Code::kInternal ? 3 : 2;
}
