// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/targets.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "host/base/buffer.h"
#include "tests/fuzz/mutate.h"
#include "tests/testing/models/models.h"

namespace fusebox::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr Target kTargets[] = {
    {"saved_model", "saved_model.pb, converted whole", RunSavedModel, SavedModelSeeds, OtherSavedModelSeeds},
    {"frozen_graph", "a GraphDef, binary or text, converted whole", RunFrozenGraph, FrozenGraphSeeds},
    {"bundle", "variables.index and its data: four bytes of the index' length, index, data", RunBundle,
     BundleSeeds},
    {"records", "a bundle's records under good checksums: for each a length and its bytes; then the data",
     RunRecords, RecordSeeds},
    {"keras", "a Keras file, HDF5 or zip, converted whole", RunKeras, KerasSeeds},
    {"keras_config", "config.json of a .keras file with good weights, converted whole", RunKerasConfig,
     KerasConfigSeeds},
    {"tflite", ".tflite, read and written again", RunTflite, TfliteSeeds},
    {"run", ".tflite, opened and run with the built-in kernels", RunModel, ModelSeeds, OtherModelSeeds,
     Mutated},
#ifdef FUSEBOX_XNNPACK
    {"delegated", "the same with XNNPACK", RunDelegated, DelegatedSeeds, OtherDelegatedSeeds, Mutated},
#endif
    {"manifest", "fusebox-plugin.json, its rules applied and its schemas used", RunManifest, ManifestSeeds},
    {"config", "fusebox.json, with a plugin", RunConfig, ConfigSeeds},
#ifdef FUSEBOX_STRINGS
    {"strings", "one op of plugins/strings: its number, attributes and operands", RunStrings, StringSeeds},
#endif
    {"c_api", "calls of fusebox/c.h on a small model", RunCApi, CApiSeeds},
};

struct Scratch {
  Scratch() {
    const fs::path memory = "/dev/shm";
    const fs::path base = access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
    path = base / ("fusebox_fuzz-" + std::to_string(getpid()));
    fs::create_directories(path);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string path;
};

}  // namespace

std::span<const Target> Targets() { return kTargets; }

const Target* FindTarget(std::string_view name) {
  const auto found = std::ranges::find(kTargets, name, &Target::name);
  return found == std::end(kTargets) ? nullptr : found;
}

const std::string& ScratchDir() {
  static const Scratch scratch;
  return scratch.path;
}

void WriteScratch(const std::string& path, std::span<const std::byte> bytes) {
  FUSEBOX_CHECK(WriteFile(path, bytes).has_value());
}

std::string SampleDir(const std::string& name) {
  const std::string dir = ScratchDir() + "/" + name;
  if (!fs::exists(dir)) FUSEBOX_CHECK(test_models::FindModel(name)->write(dir, 1).has_value());
  return dir;
}

std::string Contents(const std::string& path) {
  const auto mapped = MapFile(path);
  FUSEBOX_CHECK(mapped.has_value());
  return {reinterpret_cast<const char*>(mapped->data()), mapped->size()};
}

}  // namespace fusebox::fuzz
