// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/onnx.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "tests/bench/library.h"

namespace fusebox::bench::onnx {
namespace {

std::string Varint(uint64_t v) {
  std::string bytes;
  for (; v >= 128; v >>= 7) bytes += static_cast<char>(v | 128);
  return bytes + static_cast<char>(v);
}

std::string ValueInfo(const std::string& name, Type type, const std::vector<int64_t>& dims) {
  std::string shape;
  for (const int64_t d : dims)
    shape += Bytes(1, d < 0 ? Bytes(2, "any") : Number(1, static_cast<uint64_t>(d)));
  return Bytes(1, name) + Bytes(2, Bytes(1, Number(1, type) + Bytes(2, shape)));
}

// Entries of the C API, whose function table only grows at its end.
enum Entry {
  kGetErrorMessage = 2,
  kCreateEnv = 3,
  kCreateSessionFromArray = 8,
  kRun = 9,
  kCreateSessionOptions = 10,
  kSetOptimizedModelFilePath = 11,
  kSetIntraOpNumThreads = 24,
  kSetInterOpNumThreads = 25,
  kCreateTensorWithData = 49,
  kCreateCpuMemoryInfo = 69,
  kReleaseSession = 95,
  kReleaseValue = 96,
};

}  // namespace

std::string Number(int field, uint64_t v) { return Varint(static_cast<uint64_t>(field) << 3) + Varint(v); }

std::string Bytes(int field, const std::string& s) {
  return Varint(static_cast<uint64_t>(field) << 3 | 2) + Varint(s.size()) + s;
}

std::string Node(const std::string& op, const std::vector<std::string>& inputs,
                 const std::vector<std::string>& outputs, const std::string& attributes, const char* domain) {
  std::string node;
  for (const std::string& input : inputs) node += Bytes(1, input);
  for (const std::string& output : outputs) node += Bytes(2, output);
  node += Bytes(4, op) + attributes;
  if (*domain != 0) node += Bytes(7, domain);
  return Bytes(1, node);
}

std::string IntAttribute(const std::string& name, int64_t value) {
  return Bytes(5, Bytes(1, name) + Number(3, static_cast<uint64_t>(value)) + Number(20, 2));
}

std::string IntsAttribute(const std::string& name, const std::vector<int64_t>& values) {
  std::string attribute = Bytes(1, name);
  for (const int64_t value : values) attribute += Number(8, static_cast<uint64_t>(value));
  return Bytes(5, attribute + Number(20, 7));
}

std::string FloatAttribute(const std::string& name, float value) {
  std::string bytes(4, 0);
  std::memcpy(bytes.data(), &value, 4);
  return Bytes(5, Bytes(1, name) + Varint(2 << 3 | 5) + bytes + Number(20, 1));
}

std::string TextAttribute(const std::string& name, const std::string& value) {
  return Bytes(5, Bytes(1, name) + Bytes(4, value) + Number(20, 3));
}

std::string Initializer(const std::string& name, const std::vector<int64_t>& dims, Type type,
                        const void* data, size_t bytes) {
  std::string t;
  for (const int64_t d : dims) t += Number(1, static_cast<uint64_t>(d));
  t += Number(2, type) + Bytes(8, name);
  t += Bytes(9, {static_cast<const char*>(data), bytes});
  return Bytes(5, t);
}

std::string Input(const std::string& name, Type type, const std::vector<int64_t>& dims) {
  return Bytes(11, ValueInfo(name, type, dims));
}
std::string Output(const std::string& name, Type type, const std::vector<int64_t>& dims) {
  return Bytes(12, ValueInfo(name, type, dims));
}

std::string Model(const std::string& graph) {
  return Number(1, 8) + Bytes(7, graph + Bytes(2, "model")) + Bytes(8, Bytes(1, "") + Number(2, 14)) +
         Bytes(8, Bytes(1, "com.microsoft") + Number(2, 1));
}

template <class... Args>
void Session::Call(int entry, Args... args) const {
  void* const status = reinterpret_cast<void* (*)(Args...)>(api_[entry])(args...);
  if (status)
    throw std::runtime_error(reinterpret_cast<const char* (*)(void*)>(api_[kGetErrorMessage])(status));
}

Session::Session(const std::string& library, const std::string& model, int threads,
                 const std::string& optimized) {
  struct ApiBase {
    const void* (*get_api)(uint32_t version);
    const char* (*version)();
  };
  const auto* base =
      reinterpret_cast<const ApiBase* (*)()>(FindSymbol(OpenLibrary(library), "OrtGetApiBase"))();
  api_ = static_cast<void* const*>(base->get_api(17));
  if (!api_) throw std::runtime_error("ONNX Runtime does not have version 17 of its C API");
  void *env = nullptr, *options = nullptr;
  Call<int, const char*, void**>(kCreateEnv, 3, "bench", &env);
  Call<void**>(kCreateSessionOptions, &options);
  Call<void*, int>(kSetIntraOpNumThreads, options, threads);
  Call<void*, int>(kSetInterOpNumThreads, options, 1);
  if (!optimized.empty()) Call<void*, const char*>(kSetOptimizedModelFilePath, options, optimized.c_str());
  Call<void*, const void*, size_t, void*, void**>(kCreateSessionFromArray, env, model.data(), model.size(),
                                                  options, &session_);
  Call<int, int, void**>(kCreateCpuMemoryInfo, 1, 0, &memory_);
}

Session::~Session() {
  for (void* tensor : tensors_) reinterpret_cast<void (*)(void*)>(api_[kReleaseValue])(tensor);
  reinterpret_cast<void (*)(void*)>(api_[kReleaseSession])(session_);
}

void* Session::Tensor(void* data, size_t bytes, const std::vector<int64_t>& dims, Type type) {
  void* tensor = nullptr;
  Call<void*, void*, size_t, const int64_t*, size_t, int, void**>(
      kCreateTensorWithData, memory_, data, bytes, dims.data(), dims.size(), static_cast<int>(type), &tensor);
  tensors_.push_back(tensor);
  return tensor;
}

void Session::Release(void* tensor) {
  std::erase(tensors_, tensor);
  reinterpret_cast<void (*)(void*)>(api_[kReleaseValue])(tensor);
}

void Session::Run(const std::vector<const char*>& input_names, const std::vector<void*>& inputs,
                  const std::vector<const char*>& output_names, std::vector<void*>& outputs) {
  Call<void*, const void*, const char* const*, void* const*, size_t, const char* const*, size_t, void**>(
      kRun, session_, nullptr, input_names.data(), inputs.data(), inputs.size(), output_names.data(),
      outputs.size(), outputs.data());
}

}  // namespace fusebox::bench::onnx
