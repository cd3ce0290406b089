// SPDX-License-Identifier: Apache-2.0
// Stock TFLite through its C API: the model is written here field by field, so that nothing of ours is
// measured.
#include <flatbuffers/flatbuffers.h>

#include <cstring>
#include <stdexcept>

#include "tests/bench/library.h"
#include "tests/bench/lstm_engine.h"

namespace fusebox::bench {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::Vector;
using Table = Offset<flatbuffers::Table>;

constexpr flatbuffers::voffset_t Field(int number) {
  return static_cast<flatbuffers::voffset_t>(4 + 2 * number);
}
constexpr int kLstmCode = 44, kLstmOptions = 71, kTanh = 4;
constexpr int kFloat32 = 0, kInt32 = 2, kInt16 = 7, kInt8 = 9;

// Values of a tensor; without values an activation, or a variable.
struct Contents {
  int type = kFloat32;
  const void* data = nullptr;
  size_t size = 0;
  float scale = 0;  // 0: not quantized
  bool variable = false;
};
template <class T>
Contents Constant(int type, const std::vector<T>& values, float scale = 0) {
  return {type, values.data(), values.size() * sizeof(T), scale};
}

class ModelWriter {
 public:
  // Returns the tensor's number.
  int AddTensor(const std::vector<int32_t>& shape, const Contents& contents) {
    const uint32_t buffer = contents.data ? AddData(contents.data, contents.size) : 0;
    Table quantization;
    if (contents.scale > 0) {
      const auto scale = b_.CreateVector(std::vector<float>{contents.scale});
      const auto zero = b_.CreateVector(std::vector<int64_t>{0});
      const auto start = b_.StartTable();
      b_.AddOffset(Field(2), scale);
      b_.AddOffset(Field(3), zero);
      quantization = b_.EndTable(start);
    }
    const auto dims = b_.CreateVector(shape);
    const auto start = b_.StartTable();
    b_.AddOffset(Field(0), dims);
    b_.AddElement<int8_t>(Field(1), static_cast<int8_t>(contents.type), 0);
    b_.AddElement<uint32_t>(Field(2), buffer, 0);
    if (contents.scale > 0) b_.AddOffset(Field(4), quantization);
    b_.AddElement<uint8_t>(Field(5), contents.variable, 0);
    tensors_.push_back(b_.EndTable(start));
    return static_cast<int>(tensors_.size()) - 1;
  }

  std::string Finish(const std::vector<int32_t>& operands, int output,
                     const std::vector<int32_t>& intermediates) {
    auto start = b_.StartTable();
    b_.AddElement<int8_t>(Field(0), kTanh, 0);
    const Table options = b_.EndTable(start);
    const auto ins = b_.CreateVector(operands), outs = b_.CreateVector(std::vector<int32_t>{output}),
               between = b_.CreateVector(intermediates);
    start = b_.StartTable();
    b_.AddOffset(Field(1), ins);
    b_.AddOffset(Field(2), outs);
    b_.AddElement<uint8_t>(Field(3), kLstmOptions, 0);
    b_.AddOffset(Field(4), options);
    b_.AddOffset(Field(8), between);
    const Table node = b_.EndTable(start);
    const auto tensors = b_.CreateVector(tensors_), nodes = b_.CreateVector(std::vector<Table>{node});
    const auto inputs = b_.CreateVector(std::vector<int32_t>{operands[0]}),
               outputs = b_.CreateVector(std::vector<int32_t>{output});
    start = b_.StartTable();
    b_.AddOffset(Field(0), tensors);
    b_.AddOffset(Field(1), inputs);
    b_.AddOffset(Field(2), outputs);
    b_.AddOffset(Field(3), nodes);
    const Table graph = b_.EndTable(start);
    start = b_.StartTable();
    b_.AddElement<int8_t>(Field(0), kLstmCode, 0);
    b_.AddElement<int32_t>(Field(2), 1, 0);
    b_.AddElement<int32_t>(Field(3), kLstmCode, 0);
    const Table code = b_.EndTable(start);
    const auto codes = b_.CreateVector(std::vector<Table>{code}),
               graphs = b_.CreateVector(std::vector<Table>{graph});
    const auto buffers = b_.CreateVector(buffers_);
    start = b_.StartTable();
    b_.AddElement<uint32_t>(Field(0), 3, 0);
    b_.AddOffset(Field(1), codes);
    b_.AddOffset(Field(2), graphs);
    b_.AddOffset(Field(4), buffers);
    b_.Finish(Table(b_.EndTable(start)), "TFL3");
    return {reinterpret_cast<const char*>(b_.GetBufferPointer()), b_.GetSize()};
  }

  ModelWriter() { AddBuffer(0); }

 private:
  uint32_t AddData(const void* data, size_t size) {
    b_.ForceVectorAlignment(size, 1, 16);
    const auto bytes = b_.CreateVector(static_cast<const uint8_t*>(data), size);
    AddBuffer(bytes);
    return static_cast<uint32_t>(buffers_.size()) - 1;
  }
  void AddBuffer(Offset<Vector<uint8_t>> bytes) {
    const auto start = b_.StartTable();
    if (!bytes.IsNull()) b_.AddOffset(Field(0), bytes);
    buffers_.push_back(b_.EndTable(start));
  }

  FlatBufferBuilder b_;
  std::vector<Table> buffers_, tensors_;
};

void AddGate(ModelWriter& writer, const LstmProblem& p, int gate, std::vector<int32_t>& operands) {
  const auto add = [&](int columns, const std::vector<float>& values) {
    const std::vector<int32_t> shape = {p.units, columns};
    if (!p.bytes()) return writer.AddTensor(shape, Constant(kFloat32, values));
    const ByteWeights bytes = ToBytes(values);
    return writer.AddTensor(shape, Constant(kInt8, bytes.values, bytes.scale));
  };
  operands[static_cast<size_t>(1 + gate)] = add(p.inputs, p.kernel[gate]);
  operands[static_cast<size_t>(5 + gate)] = add(p.units, p.recurrent[gate]);
  int32_t& bias = operands[static_cast<size_t>(12 + gate)];
  if (!p.integers()) {
    bias = writer.AddTensor({p.units}, Constant(kFloat32, p.bias[gate]));
    return;
  }
  const float scale = kInputScale * ToBytes(p.kernel[gate]).scale;
  bias = writer.AddTensor({p.units}, Constant(kInt32, ToIntegers<int32_t>(p.bias[gate], scale), scale));
}

std::string WriteModel(const LstmProblem& p) {
  ModelWriter writer;
  const bool integers = p.integers();
  const auto activation = [&](int type, float scale, bool variable) {
    return integers ? Contents{.type = type, .scale = scale, .variable = variable}
                    : Contents{.variable = variable};
  };
  std::vector<int32_t> operands(24, -1), intermediates;
  operands[0] = writer.AddTensor({1, p.steps, p.inputs}, activation(kInt8, kInputScale, false));
  for (int gate = 0; gate < 4; ++gate) AddGate(writer, p, gate, operands);
  operands[18] = writer.AddTensor({1, p.units}, activation(kInt8, kOutputScale, true));
  operands[19] = writer.AddTensor({1, p.units}, activation(kInt16, kCellScale, true));
  // Adds intermediates of the gates, which only layer normalization uses, and of the hidden values.
  for (int i = 0; integers && i < 5; ++i)
    intermediates.push_back(i < 4 ? writer.AddTensor({}, activation(kInt16, 1.0F / 4096, false))
                                  : writer.AddTensor({}, activation(kInt8, kOutputScale, false)));
  const int output = writer.AddTensor({1, p.steps, p.units}, activation(kInt8, kOutputScale, false));
  return writer.Finish(operands, output, intermediates);
}

class TfLite : public LstmEngine {
 public:
  TfLite(const LstmProblem& problem, const std::string& library)
      : library_(OpenLibrary(library)),
        file_(WriteModel(problem)),
        integers_(problem.integers()),
        count_(static_cast<size_t>(problem.steps * problem.units)) {
    void* const model = Function<void*(const void*, size_t)>("TfLiteModelCreate")(file_.data(), file_.size());
    if (!model) throw std::runtime_error("TFLite refuses the model");
    void* const options = Function<void*()>("TfLiteInterpreterOptionsCreate")();
    Function<void(void*, int32_t)>("TfLiteInterpreterOptionsSetNumThreads")(options, 1);
    interpreter_ = Function<void*(void*, void*)>("TfLiteInterpreterCreate")(model, options);
    if (!interpreter_ || Function<int(void*)>("TfLiteInterpreterAllocateTensors")(interpreter_) != 0) {
      throw std::runtime_error("TFLite cannot allocate the tensors");
    }
    void* const input = Function<void*(void*, int32_t)>("TfLiteInterpreterGetInputTensor")(interpreter_, 0);
    const auto copy = Function<int(void*, const void*, size_t)>("TfLiteTensorCopyFromBuffer");
    const auto bytes = ToIntegers<int8_t>(problem.x, kInputScale);
    if (integers_) copy(input, bytes.data(), bytes.size());
    else copy(input, problem.x.data(), problem.x.size() * 4);
    invoke_ = Function<int(void*)>("TfLiteInterpreterInvoke");
    const void* const output =
        Function<const void*(void*, int32_t)>("TfLiteInterpreterGetOutputTensor")(interpreter_, 0);
    output_ = Function<void*(const void*)>("TfLiteTensorData")(output);
  }
  ~TfLite() override { Function<void(void*)>("TfLiteInterpreterDelete")(interpreter_); }

  void Run() override {
    if (invoke_(interpreter_) != 0) throw std::runtime_error("TFLite fails in Invoke");
  }
  std::vector<float> output() const override {
    if (integers_) return FromBytes(static_cast<const int8_t*>(output_), count_);
    return {static_cast<const float*>(output_), static_cast<const float*>(output_) + count_};
  }

 private:
  template <class F>
  F* Function(const char* name) const {
    return reinterpret_cast<F*>(FindSymbol(library_, name));
  }
  void* library_;
  std::string file_;
  bool integers_;
  size_t count_;  // of outputs
  void* interpreter_ = nullptr;
  int (*invoke_)(void*) = nullptr;
  const void* output_ = nullptr;
};

}  // namespace

std::unique_ptr<LstmEngine> TfLiteEngine(const LstmProblem& problem, const std::string& library) {
  return std::make_unique<TfLite>(problem, library);
}

}  // namespace fusebox::bench
