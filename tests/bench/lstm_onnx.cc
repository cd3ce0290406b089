// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime through its C API, whose function table is append-only: the entries used here are named by
// number. The model is written as protobuf, field by field.
#include <cstring>
#include <stdexcept>

#include "tests/bench/lstm_engine.h"

namespace fusebox::bench {
namespace {

// Protobuf messages as strings of bytes.
std::string Varint(uint64_t v) {
  std::string bytes;
  for (; v >= 128; v >>= 7) bytes += static_cast<char>(v | 128);
  return bytes + static_cast<char>(v);
}
std::string Number(int field, uint64_t v) { return Varint(static_cast<uint64_t>(field) << 3) + Varint(v); }
std::string Bytes(int field, const std::string& s) {
  return Varint(static_cast<uint64_t>(field) << 3 | 2) + Varint(s.size()) + s;
}

enum Type : uint64_t { kFloat = 1, kInt8 = 3 };

template <class T>
std::string TensorProto(const std::string& name, const std::vector<int>& dims, const std::vector<T>& data) {
  std::string t;
  for (const int d : dims) t += Number(1, static_cast<uint64_t>(d));
  return t + Number(2, sizeof(T) == 1 ? kInt8 : kFloat) + Bytes(8, name) +
         Bytes(9, {reinterpret_cast<const char*>(data.data()), data.size() * sizeof(T)});
}

std::string ValueInfo(const std::string& name, const std::vector<int>& dims) {
  std::string shape;
  for (const int d : dims) shape += Bytes(1, Number(1, static_cast<uint64_t>(d)));
  return Bytes(1, name) + Bytes(2, Bytes(1, Number(1, 1) + Bytes(2, shape)));
}

// ONNX stacks the gates in the order i, o, f, c.
constexpr int kOrder[] = {0, 3, 1, 2};

std::vector<float> Stack(const std::vector<float> (&gates)[4]) {
  std::vector<float> stacked;
  for (const int k : kOrder) stacked.insert(stacked.end(), gates[k].begin(), gates[k].end());
  return stacked;
}

// W or R as 8-bit numbers: [columns][gate][unit], with a scale for each gate and unit.
std::string ByteTensors(const LstmProblem& p, const std::string& name, const std::vector<float> (&gates)[4]) {
  const auto units = static_cast<size_t>(p.units), columns = gates[0].size() / units;
  std::vector<int8_t> values(4 * units * columns);
  std::vector<float> scales;
  for (size_t i = 0; i < 4; ++i) {
    const ByteWeights bytes = ToBytes(gates[kOrder[i]]);
    scales.insert(scales.end(), units, bytes.scale);
    for (size_t unit = 0; unit < units; ++unit) {
      for (size_t k = 0; k < columns; ++k)
        values[(k * 4 + i) * units + unit] = bytes.values[unit * columns + k];
    }
  }
  const int width = 4 * p.units;
  return Bytes(5, TensorProto(name, {1, static_cast<int>(columns), width}, values)) +
         Bytes(5, TensorProto(name + "_scale", {1, width}, scales)) +
         Bytes(5, TensorProto(name + "_zero", {1, width}, std::vector<int8_t>(4 * units)));
}

std::string WriteModel(const LstmProblem& p) {
  std::string node;
  for (const char* input : {"X", "W", "R", "B"}) node += Bytes(1, input);
  if (p.bytes()) {
    for (const char* input : {"", "", "", "", "W_scale", "W_zero", "R_scale", "R_zero"})
      node += Bytes(1, input);
  }
  node += Bytes(2, "Y") + Bytes(4, p.bytes() ? "DynamicQuantizeLSTM" : "LSTM") +
          Bytes(5, Bytes(1, "hidden_size") + Number(3, static_cast<uint64_t>(p.units)) + Number(20, 2));
  if (p.bytes()) node += Bytes(7, "com.microsoft");
  std::vector<float> bias = Stack(p.bias);
  bias.resize(2 * bias.size());
  const std::string weights =
      p.bytes() ? ByteTensors(p, "W", p.kernel) + ByteTensors(p, "R", p.recurrent)
                : Bytes(5, TensorProto("W", {1, 4 * p.units, p.inputs}, Stack(p.kernel))) +
                      Bytes(5, TensorProto("R", {1, 4 * p.units, p.units}, Stack(p.recurrent)));
  const std::string graph =
      Bytes(1, node) + Bytes(2, "lstm") + weights + Bytes(5, TensorProto("B", {1, 8 * p.units}, bias)) +
      Bytes(11, ValueInfo("X", {p.steps, 1, p.inputs})) + Bytes(12, ValueInfo("Y", {p.steps, 1, 1, p.units}));
  return Number(1, 8) + Bytes(7, graph) + Bytes(8, Bytes(1, "") + Number(2, 14)) +
         Bytes(8, Bytes(1, "com.microsoft") + Number(2, 1));
}

enum Entry {
  kGetErrorMessage = 2,
  kCreateEnv = 3,
  kCreateSessionFromArray = 8,
  kRun = 9,
  kCreateSessionOptions = 10,
  kSetIntraOpNumThreads = 24,
  kSetInterOpNumThreads = 25,
  kCreateTensorWithData = 49,
  kCreateCpuMemoryInfo = 69,
  kReleaseSession = 95,
  kReleaseValue = 96,
};

class Onnx : public LstmEngine {
 public:
  Onnx(const LstmProblem& problem, const std::string& library)
      : x_(problem.x), y_(static_cast<size_t>(problem.steps * problem.units)) {
    struct ApiBase {
      const void* (*get_api)(uint32_t version);
      const char* (*version)();
    };
    const auto* base =
        reinterpret_cast<const ApiBase* (*)()>(FindSymbol(OpenLibrary(library), "OrtGetApiBase"))();
    api_ = static_cast<void* const*>(base->get_api(17));
    if (!api_) throw std::runtime_error("ONNX Runtime does not have version 17 of its C API");
    const std::string model = WriteModel(problem);
    void *env = nullptr, *options = nullptr, *memory = nullptr;
    Call<int, const char*, void**>(kCreateEnv, 3, "bench", &env);
    Call<void**>(kCreateSessionOptions, &options);
    Call<void*, int>(kSetIntraOpNumThreads, options, problem.threads);
    Call<void*, int>(kSetInterOpNumThreads, options, 1);
    Call<void*, const void*, size_t, void*, void**>(kCreateSessionFromArray, env, model.data(), model.size(),
                                                    options, &session_);
    Call<int, int, void**>(kCreateCpuMemoryInfo, 1, 0, &memory);
    in_ = Tensor(memory, x_, {problem.steps, 1, problem.inputs});
    out_ = Tensor(memory, y_, {problem.steps, 1, 1, problem.units});
  }
  ~Onnx() override {
    for (void* value : {in_, out_}) reinterpret_cast<void (*)(void*)>(api_[kReleaseValue])(value);
    reinterpret_cast<void (*)(void*)>(api_[kReleaseSession])(session_);
  }

  void Run() override {
    const char *x = "X", *y = "Y";
    Call<void*, const void*, const char* const*, void* const*, size_t, const char* const*, size_t, void**>(
        kRun, session_, nullptr, &x, &in_, 1, &y, 1, &out_);
  }
  std::vector<float> output() const override { return y_; }

 private:
  template <class... Args>
  void Call(Entry entry, Args... args) const {
    void* const status = reinterpret_cast<void* (*)(Args...)>(api_[entry])(args...);
    if (status)
      throw std::runtime_error(reinterpret_cast<const char* (*)(void*)>(api_[kGetErrorMessage])(status));
  }
  void* Tensor(void* memory, std::vector<float>& data, std::vector<int64_t> dims) const {
    void* value = nullptr;
    Call<void*, void*, size_t, const int64_t*, size_t, int, void**>(
        kCreateTensorWithData, memory, data.data(), data.size() * 4, dims.data(), dims.size(), 1, &value);
    return value;
  }

  std::vector<float> x_, y_;
  void* const* api_ = nullptr;
  void *session_ = nullptr, *in_ = nullptr, *out_ = nullptr;
};

}  // namespace

std::unique_ptr<LstmEngine> OnnxEngine(const LstmProblem& problem, const std::string& library) {
  return std::make_unique<Onnx>(problem, library);
}

}  // namespace fusebox::bench
