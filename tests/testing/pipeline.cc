// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/pipeline.h"

#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "converter/words.h"
#include "tests/converter/import/files.h"
#include "tests/testing/models/models.h"

namespace fusebox::testing {

std::string TestDir() {
  static const ::testing::TestInfo* known = nullptr;
  static std::string dir;
  const ::testing::TestInfo* const now = ::testing::UnitTest::GetInstance()->current_test_info();
  if (now != known) dir = FreshDir();
  known = now;
  return dir;
}

Result<std::string> Sample(const std::string& name, uint64_t seed) {
  const samples::SampleModel* const sample = test_models::FindModel(name);
  if (!sample) return NotFound("no sample model " + name);
  std::string dir = TestDir() + "/" + name;
  FUSEBOX_TRY(sample->write(dir, seed));
  return dir;
}

Config PluginConfig(const std::vector<std::string>& plugins) {
  Config config;
  config.search_default_path = false;
  for (const std::string& plugin : plugins)
    config.plugins.push_back(plugin.starts_with('/') ? plugin : FUSEBOX_BUILD_DIR "/plugins/" + plugin);
  return config;
}

Result<std::shared_ptr<Registry>> Plugins(const std::vector<std::string>& plugins) {
  return Registry::Create(PluginConfig(plugins));
}

Result<Written> Convert(const std::string& saved_model, const converter::Options& options,
                        const std::string& tag) {
  FUSEBOX_ASSIGN(converter::Conversion conversion, converter::FromPath(saved_model));
  conversion.options = options;
  FUSEBOX_ASSIGN(converter::Converted converted, conversion.Convert());
  Written out;
  const std::string dir = TestDir();
  out.path = dir + "/" + std::filesystem::path(saved_model).filename().string() + "-" + tag + ".tflite";
  FUSEBOX_TRY(converted.Write(out.path));
  out.report = std::move(converted.report);
  return out;
}

Result<std::unique_ptr<Session>> Open(const std::string& path, std::shared_ptr<Registry> registry,
                                      const std::string& signature) {
  FUSEBOX_ASSIGN(auto model, Model::Open(path, {.registry = std::move(registry)}));
  return Session::Create(std::move(model), {.signature = signature});
}

Result<Tensors> Invoke(Session& session, const Tensors& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) FUSEBOX_TRY(session.SetInput(static_cast<int>(i), inputs[i]));
  FUSEBOX_TRY(session.Run());
  Tensors outputs;
  for (size_t i = 0; i < session.outputs().size(); ++i) {
    FUSEBOX_ASSIGN(Tensor output, session.output(static_cast<int>(i)));
    output.data = Buffer::Copy(output.data.bytes());
    outputs.push_back(std::move(output));
  }
  return outputs;
}

Tensor Random(const Type& type, uint64_t seed) {
  Type known = type;
  for (int64_t& dim : known.shape.dims()) dim = std::max<int64_t>(dim, dim < 0 ? 1 : 0);
  std::mt19937_64 random(seed);
  const size_t size = ByteSize(known).value_or(0);
  Buffer data = Buffer::Make(size, [&](std::span<std::byte> bytes) {
    if (known.dtype == DType::kF32) {
      std::uniform_real_distribution<float> uniform(-1, 1);
      for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
        const float value = uniform(random);
        std::memcpy(&bytes[i], &value, 4);
      }
    } else {
      const size_t width = std::max<size_t>(BitsOf(known.dtype) / 8, 1);
      const unsigned values = known.dtype == DType::kBool ? 2 : 4;
      for (size_t i = 0; i < bytes.size(); i += width) bytes[i] = static_cast<std::byte>(random() % values);
    }
  });
  return {std::move(known), std::move(data)};
}

Tensors RandomInputs(const Session& session, uint64_t seed) {
  Tensors out;
  for (const Session::Slot& input : session.inputs())
    out.push_back(Random(input.type, seed * 100 + out.size()));
  return out;
}

Tensor Floats(Shape shape, const std::vector<float>& values) {
  return {{DType::kF32, std::move(shape)}, Buffer::Of<float>(values)};
}

std::string Difference(const Tensors& a, const Tensors& b, double atol, double rtol) {
  if (a.size() != b.size()) return std::to_string(a.size()) + " and " + std::to_string(b.size()) + " outputs";
  double worst = 0;
  std::string where;
  for (size_t o = 0; o < a.size(); ++o) {
    const std::string output = "output " + std::to_string(o);
    if (a[o].type != b[o].type) return output + ": " + ToString(a[o].type) + " and " + ToString(b[o].type);
    if (a[o].data.size() != b[o].data.size()) return output + ": sizes differ";
    if (a[o].type.dtype != DType::kF32) {
      if (!std::ranges::equal(a[o].data.bytes(), b[o].data.bytes())) return output + ": values differ";
      continue;
    }
    const auto x = a[o].data.As<float>(), y = b[o].data.As<float>();
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i]) && std::isnan(y[i])) continue;
      const double excess = std::abs(double{x[i]} - y[i]) / (atol + rtol * std::abs(double{y[i]}));
      if (x[i] == y[i] || (excess <= 1 || excess < worst)) continue;
      worst = excess;
      where =
          output + "[" + std::to_string(i) + "]: " + std::to_string(x[i]) + " and " + std::to_string(y[i]);
    }
  }
  return where;
}

std::map<std::string, int> OpsOf(const Module& module) {
  std::map<std::string, int> ops;
  for (const auto& function : module.functions) {
    for (const auto& node : function->nodes)
      ++ops[node->is(Op::kCustom) ? node->name : std::string(Name(node->op))];
  }
  return ops;
}

std::vector<std::string> UnusedConstants(const Module& module) {
  std::vector<std::string> unused;
  for (const auto& function : module.functions) {
    const Uses uses(*function);
    for (ValueId v = 0; v < function->value_count(); ++v) {
      if (function->value(v).is_const() && uses.readers(v).empty())
        unused.push_back(function->name + ": " + function->value(v).name);
    }
  }
  return unused;
}

CommandResult Fusebox(const std::vector<std::string>& arguments) {
  const std::string out = TestDir() + "-command";
  std::string command = "FUSEBOX_PLUGIN_PATH= HOME=/nonexistent '" FUSEBOX_BUILD_DIR "/bin/fusebox'";
  for (const std::string& argument : arguments) command += " '" + argument + "'";
  const int status = std::system((command + " >'" + out + ".out' 2>'" + out + ".err'").c_str());
  CommandResult result{WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadAll(out + ".out"),
                       ReadAll(out + ".err")};
  std::filesystem::remove(out + ".out");
  std::filesystem::remove(out + ".err");
  return result;
}

std::vector<std::string> FilesIn(const std::string& dir) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir))
    out.push_back(entry.path().string());
  std::ranges::sort(out);
  return out;
}

}  // namespace fusebox::testing
