// SPDX-License-Identifier: Apache-2.0
// sweep OURS STOCK FILE...: runs .tflite files through two libraries with TensorFlow Lite's C API, twice
// each, in processes of their own, and compares the outputs. One line per file, and counts at the end.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "fusebox/tflite/c/c_api.h"

namespace {

struct Api {
  explicit Api(const char* path) : library(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (library == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  }
  template <class F>
  F* Get(F*, const char* name) const {
    return reinterpret_cast<F*>(dlsym(library, name));
  }
  void* library;
};
#define CALL(api, name) (api).Get(&name, #name)

enum Result { kRan = 0, kNoFile = 2, kNoShapes = 3, kNoRun = 4 };

void Randomize(std::mt19937& random, TfLiteType type, char* data, size_t bytes) {
  std::uniform_real_distribution<float> floats(-1, 1);
  switch (type) {
    case kTfLiteFloat32:
      for (size_t i = 0; i + 4 <= bytes; i += 4) {
        const float value = floats(random);
        std::memcpy(data + i, &value, 4);
      }
      break;
    case kTfLiteInt8:
    case kTfLiteUInt8:
    case kTfLiteInt16:
      for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(random());
      break;
    case kTfLiteBool:
      for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(i % 2 == 0);
      break;
    case kTfLiteInt32:
    case kTfLiteInt64: {
      const size_t size = type == kTfLiteInt32 ? 4 : 8;
      std::memset(data, 0, bytes);
      for (size_t i = 0; i < bytes; i += size) data[i] = static_cast<char>(random() % 4);
      break;
    }
    default: std::memset(data, 0, bytes);
  }
}

Result Run(const char* path, const char* file, std::ostream& out) {
  const Api api(path);
  TfLiteModel* model = CALL(api, TfLiteModelCreateFromFile)(file);
  if (model == nullptr) return kNoFile;
  TfLiteInterpreterOptions* options = CALL(api, TfLiteInterpreterOptionsCreate)();
  CALL(api, TfLiteInterpreterOptionsSetNumThreads)(options, 1);
  TfLiteInterpreter* interpreter = CALL(api, TfLiteInterpreterCreate)(model, options);
  if (interpreter == nullptr) return kNoFile;
  if (CALL(api, TfLiteInterpreterAllocateTensors)(interpreter) != kTfLiteOk) return kNoShapes;
  for (int run = 0; run < 2; ++run) {
    std::mt19937 random(1);
    for (int i = 0; i < CALL(api, TfLiteInterpreterGetInputTensorCount)(interpreter); ++i) {
      TfLiteTensor* tensor = CALL(api, TfLiteInterpreterGetInputTensor)(interpreter, i);
      const size_t bytes = CALL(api, TfLiteTensorByteSize)(tensor);
      const TfLiteType type = CALL(api, TfLiteTensorType)(tensor);
      if (type == kTfLiteString) return kNoShapes;
      Randomize(random, type, static_cast<char*>(CALL(api, TfLiteTensorData)(tensor)), bytes);
    }
    if (CALL(api, TfLiteInterpreterInvoke)(interpreter) != kTfLiteOk) return kNoRun;
    for (int i = 0; i < CALL(api, TfLiteInterpreterGetOutputTensorCount)(interpreter); ++i) {
      const TfLiteTensor* tensor = CALL(api, TfLiteInterpreterGetOutputTensor)(interpreter, i);
      const uint64_t bytes = CALL(api, TfLiteTensorByteSize)(tensor);
      const int32_t type = CALL(api, TfLiteTensorType)(tensor);
      const int32_t rank = CALL(api, TfLiteTensorNumDims)(tensor);
      out.write(reinterpret_cast<const char*>(&type), 4).write(reinterpret_cast<const char*>(&rank), 4);
      for (int32_t d = 0; d < rank; ++d) {
        const int32_t dim = CALL(api, TfLiteTensorDim)(tensor, d);
        out.write(reinterpret_cast<const char*>(&dim), 4);
      }
      out.write(reinterpret_cast<const char*>(&bytes), 8);
      if (bytes > 0)
        out.write(static_cast<const char*>(CALL(api, TfLiteTensorData)(tensor)),
                  static_cast<std::streamsize>(bytes));
    }
  }
  return kRan;
}

// The exit status of a process that runs the file, and what it wrote.
int RunAlone(const char* library, const char* file, const std::string& result) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(9);
    std::ofstream out(result, std::ios::binary);
    const Result status = Run(library, file, out);
    out.flush();
    _exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

struct Output {
  int32_t type;
  std::vector<int32_t> dims;
  std::string bytes;
};

std::vector<Output> Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<Output> outputs;
  for (Output output; in.read(reinterpret_cast<char*>(&output.type), 4);) {
    int32_t rank = 0;
    uint64_t bytes = 0;
    in.read(reinterpret_cast<char*>(&rank), 4);
    output.dims.assign(static_cast<size_t>(rank < 0 ? 0 : rank), 0);
    in.read(reinterpret_cast<char*>(output.dims.data()), 4 * std::streamsize(output.dims.size()));
    in.read(reinterpret_cast<char*>(&bytes), 8);
    output.bytes.resize(bytes);
    in.read(output.bytes.data(), static_cast<std::streamsize>(bytes));
    outputs.push_back(output);
  }
  return outputs;
}

// The largest difference of two float outputs, over the largest magnitude.
double Difference(const Output& a, const Output& b) {
  double worst = 0, scale = 1e-6;
  for (size_t i = 0; i + 4 <= a.bytes.size(); i += 4) {
    float x, y;
    std::memcpy(&x, a.bytes.data() + i, 4);
    std::memcpy(&y, b.bytes.data() + i, 4);
    if (std::isfinite(y)) scale = std::max<double>(scale, std::abs(y));
    if (x != y && !(std::isnan(x) && std::isnan(y))) worst = std::max<double>(worst, std::abs(x - y));
  }
  return worst / scale;
}

std::string Compare(const std::vector<Output>& ours, const std::vector<Output>& theirs) {
  if (ours.size() != theirs.size()) return "differs: number of outputs";
  double worst = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    if (ours[i].type != theirs[i].type) return "differs: type of output " + std::to_string(i);
    if (ours[i].dims != theirs[i].dims) return "differs: dims of output " + std::to_string(i);
    if (ours[i].bytes == theirs[i].bytes) continue;
    if (ours[i].type != kTfLiteFloat32 || ours[i].bytes.size() != theirs[i].bytes.size())
      return "differs: integers of output " + std::to_string(i);
    worst = std::max(worst, Difference(ours[i], theirs[i]));
  }
  if (worst > 1e-4) return "differs: floats by " + std::to_string(worst);
  return worst == 0 ? "same" : "close";
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, int> counts;
  const std::string base = "/tmp/fusebox-sweep." + std::to_string(getpid());
  const std::string ours = base + ".ours";
  const std::string theirs = base + ".stock";
  for (int i = 3; i < argc; ++i) {
    const int first = RunAlone(argv[1], argv[i], ours);
    const int second = RunAlone(argv[2], argv[i], theirs);
    std::string word = first == kRan && second == kRan ? Compare(Read(ours), Read(theirs))
                       : first == kRan                 ? "only ours"
                       : second == kRan ? "only stock: ours ended with " + std::to_string(first)
                                        : "neither";
    if (first >= 100) word += ": ours crashed";
    std::printf("%s\t%s\n", argv[i], word.c_str());
    ++counts[word.substr(0, word.find(':'))];
  }
  for (const auto& [word, count] : counts) std::printf("%d %s\n", count, word.c_str());
  std::remove(ours.c_str());
  std::remove(theirs.c_str());
  return counts["differs"] + counts["only stock"] == 0 ? 0 : 1;
}
