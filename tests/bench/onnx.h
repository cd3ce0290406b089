// SPDX-License-Identifier: Apache-2.0
// ONNX models as protobuf, written field by field, and ONNX Runtime through its C API.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fusebox::bench::onnx {

enum Type : uint64_t { kFloat = 1, kUint8 = 2, kInt8 = 3, kInt32 = 6, kInt64 = 7, kBool = 9, kFloat16 = 10 };

// Protobuf fields, as strings of bytes.
std::string Number(int field, uint64_t v);
std::string Bytes(int field, const std::string& s);

// Parts of a GraphProto: nodes, initializers, inputs and outputs, in any order. -1: a dim of any size.
std::string Node(const std::string& op, const std::vector<std::string>& inputs,
                 const std::vector<std::string>& outputs, const std::string& attributes = {},
                 const char* domain = "");
std::string IntAttribute(const std::string& name, int64_t value);
std::string IntsAttribute(const std::string& name, const std::vector<int64_t>& values);
std::string FloatAttribute(const std::string& name, float value);
std::string TextAttribute(const std::string& name, const std::string& value);
std::string Initializer(const std::string& name, const std::vector<int64_t>& dims, Type type,
                        const void* data, size_t bytes);
template <class T>
std::string Initializer(const std::string& name, const std::vector<int64_t>& dims,
                        const std::vector<T>& data) {
  constexpr Type type = sizeof(T) == 8             ? kInt64
                        : static_cast<T>(0.5) != 0 ? kFloat
                        : sizeof(T) == 4           ? kInt32
                        : T(-1) < T(0)             ? kInt8
                                                   : kUint8;
  return Initializer(name, dims, type, data.data(), data.size() * sizeof(T));
}
std::string Input(const std::string& name, Type type, const std::vector<int64_t>& dims);
std::string Output(const std::string& name, Type type, const std::vector<int64_t>& dims);
std::string Model(const std::string& graph);

// A session of ONNX Runtime with all its optimizations. Errors are std::runtime_error.
class Session {
 public:
  // `optimized`: a file for the model after the optimizations; empty: none.
  Session(const std::string& library, const std::string& model, int threads,
          const std::string& optimized = {});
  ~Session();
  Session(const Session&) = delete;

  // A tensor in the caller's memory, which outlives the session.
  void* Tensor(void* data, size_t bytes, const std::vector<int64_t>& dims, Type type);
  void Release(void* tensor);
  void Run(const std::vector<const char*>& input_names, const std::vector<void*>& inputs,
           const std::vector<const char*>& output_names, std::vector<void*>& outputs);

 private:
  template <class... Args>
  void Call(int entry, Args... args) const;

  void* const* api_ = nullptr;
  void *session_ = nullptr, *memory_ = nullptr;
  std::vector<void*> tensors_;
};

}  // namespace fusebox::bench::onnx
