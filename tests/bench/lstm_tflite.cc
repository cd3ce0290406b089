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
constexpr int kLstmCode = 44, kLstmOptions = 71, kTanh = 4, kInt8 = 9;

class ModelWriter {
 public:
  // Returns the tensor's number. Without data: an activation, or a variable tensor.
  int AddTensor(const std::vector<int32_t>& shape, const std::vector<float>* data, bool variable = false) {
    const uint32_t buffer = data ? AddData(data->data(), data->size() * 4) : 0;
    const auto dims = b_.CreateVector(shape);
    const auto start = b_.StartTable();
    b_.AddOffset(Field(0), dims);
    b_.AddElement<uint32_t>(Field(2), buffer, 0);
    b_.AddElement<uint8_t>(Field(5), variable, 0);
    return EndTensor(start);
  }
  int AddTensor(const std::vector<int32_t>& shape, const ByteWeights& weights) {
    const uint32_t buffer = AddData(weights.values.data(), weights.values.size());
    const auto scale = b_.CreateVector(std::vector<float>{weights.scale});
    const auto zero = b_.CreateVector(std::vector<int64_t>{0});
    auto start = b_.StartTable();
    b_.AddOffset(Field(2), scale);
    b_.AddOffset(Field(3), zero);
    const Table quantization = b_.EndTable(start);
    const auto dims = b_.CreateVector(shape);
    start = b_.StartTable();
    b_.AddOffset(Field(0), dims);
    b_.AddElement<int8_t>(Field(1), kInt8, 0);
    b_.AddElement<uint32_t>(Field(2), buffer, 0);
    b_.AddOffset(Field(4), quantization);
    return EndTensor(start);
  }

  std::string Finish(const std::vector<int32_t>& operands, int input, int output) {
    auto start = b_.StartTable();
    b_.AddElement<int8_t>(Field(0), kTanh, 0);
    const Table options = b_.EndTable(start);
    const auto ins = b_.CreateVector(operands), outs = b_.CreateVector(std::vector<int32_t>{output});
    start = b_.StartTable();
    b_.AddOffset(Field(1), ins);
    b_.AddOffset(Field(2), outs);
    b_.AddElement<uint8_t>(Field(3), kLstmOptions, 0);
    b_.AddOffset(Field(4), options);
    const Table node = b_.EndTable(start);
    const auto tensors = b_.CreateVector(tensors_), nodes = b_.CreateVector(std::vector<Table>{node});
    const auto inputs = b_.CreateVector(std::vector<int32_t>{input}),
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
  int EndTensor(flatbuffers::uoffset_t start) {
    tensors_.push_back(b_.EndTable(start));
    return static_cast<int>(tensors_.size()) - 1;
  }
  void AddBuffer(Offset<Vector<uint8_t>> bytes) {
    const auto start = b_.StartTable();
    if (!bytes.IsNull()) b_.AddOffset(Field(0), bytes);
    buffers_.push_back(b_.EndTable(start));
  }

  FlatBufferBuilder b_;
  std::vector<Table> buffers_, tensors_;
};

std::string WriteModel(const LstmProblem& p) {
  ModelWriter writer;
  std::vector<int32_t> operands(24, -1);
  const int input = operands[0] = writer.AddTensor({1, p.steps, p.inputs}, nullptr);
  for (int k = 0; k < 4; ++k) {
    const auto weights = [&](int columns, const std::vector<float>& values) {
      const std::vector<int32_t> shape = {p.units, columns};
      return p.bytes ? writer.AddTensor(shape, ToBytes(values)) : writer.AddTensor(shape, &values);
    };
    operands[1 + k] = weights(p.inputs, p.kernel[k]);
    operands[5 + k] = weights(p.units, p.recurrent[k]);
    operands[12 + k] = writer.AddTensor({p.units}, &p.bias[k]);
  }
  for (const int state : {18, 19}) operands[state] = writer.AddTensor({1, p.units}, nullptr, true);
  return writer.Finish(operands, input, writer.AddTensor({1, p.steps, p.units}, nullptr));
}

class TfLite : public LstmEngine {
 public:
  TfLite(const LstmProblem& problem, const std::string& library)
      : library_(OpenLibrary(library)), file_(WriteModel(problem)) {
    void* const model = Function<void*(const void*, size_t)>("TfLiteModelCreate")(file_.data(), file_.size());
    if (!model) throw std::runtime_error("TFLite refuses the model");
    void* const options = Function<void*()>("TfLiteInterpreterOptionsCreate")();
    Function<void(void*, int32_t)>("TfLiteInterpreterOptionsSetNumThreads")(options, 1);
    interpreter_ = Function<void*(void*, void*)>("TfLiteInterpreterCreate")(model, options);
    if (!interpreter_ || Function<int(void*)>("TfLiteInterpreterAllocateTensors")(interpreter_) != 0) {
      throw std::runtime_error("TFLite cannot allocate the tensors");
    }
    void* const input = Function<void*(void*, int32_t)>("TfLiteInterpreterGetInputTensor")(interpreter_, 0);
    Function<int(void*, const void*, size_t)>("TfLiteTensorCopyFromBuffer")(input, problem.x.data(),
                                                                            problem.x.size() * 4);
    invoke_ = Function<int(void*)>("TfLiteInterpreterInvoke");
    const void* const output =
        Function<const void*(void*, int32_t)>("TfLiteInterpreterGetOutputTensor")(interpreter_, 0);
    output_ = static_cast<const float*>(Function<void*(const void*)>("TfLiteTensorData")(output));
  }
  ~TfLite() override { Function<void(void*)>("TfLiteInterpreterDelete")(interpreter_); }

  void Run() override {
    if (invoke_(interpreter_) != 0) throw std::runtime_error("TFLite fails in Invoke");
  }
  const float* output() const override { return output_; }

 private:
  template <class F>
  F* Function(const char* name) const {
    return reinterpret_cast<F*>(FindSymbol(library_, name));
  }
  void* library_;
  std::string file_;
  void* interpreter_ = nullptr;
  int (*invoke_)(void*) = nullptr;
  const float* output_ = nullptr;
};

}  // namespace

std::unique_ptr<LstmEngine> TfLiteEngine(const LstmProblem& problem, const std::string& library) {
  return std::make_unique<TfLite>(problem, library);
}

}  // namespace fusebox::bench
