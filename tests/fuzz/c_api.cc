// SPDX-License-Identifier: Apache-2.0
// The C API: the bytes choose a sequence of calls with valid and invalid arguments on a small model. A
// failure has a status and a text, no call crashes, and no status is FUSEBOX_INTERNAL.
#include "fusebox/c.h"

#include <array>
#include <cstring>

#include "host/tflite/tflite.h"
#include "tests/fuzz/targets.h"

namespace fusebox::fuzz {
namespace {

// Signatures: numbers (x f32[?,3] -> x + 1), words (s string[?] -> s as [1,?]).
std::string SmallModel() {
  Module module;
  Function& numbers = module.Add("main");
  const Type type{DType::kF32, {-1, 3}};
  const ValueId x = numbers.AddInput(type, "x");
  const ValueId one = numbers.AddConst<float>(DType::kF32, {1}, {1}, "one");
  numbers.outputs = numbers.AddNode(Op::kAdd, {x, one}, {type}).results;
  numbers.value(numbers.outputs[0]).name = "y";
  Function& words = module.Add("words");
  const ValueId s = words.AddInput({DType::kString, {-1}}, "s");
  const ValueId axis = words.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {0}, "axis");
  words.outputs = words.AddNode(Op::kExpandDims, {s, axis}, {Type{DType::kString, {1, -1}}}).results;
  module.signatures = {{"numbers", "main", {"x"}, {"y"}}, {"words", "words", {"s"}, {"t"}}};
  const auto bytes = tflite::Write(module);
  FUSEBOX_CHECK(bytes.has_value());
  return *bytes;
}

class Calls {
 public:
  explicit Calls(std::span<const std::byte> bytes) : bytes_(bytes) {
    static const std::string model = SmallModel();
    Expect(fusebox_registry_create(nullptr, nullptr, &registry_, &error_));
    Expect(fusebox_model_from_copy(model.data(), model.size(), R"({"delegates": []})", registry_, &model_,
                                   &error_));
    FUSEBOX_CHECK(model_ != nullptr);
    Create(R"({"signature": "numbers", "memory_limit": 1000000})");
  }
  ~Calls() {
    fusebox_session_free(session_);
    fusebox_model_free(model_);
    fusebox_registry_free(registry_);
  }

  Status Run() {
    while (!bytes_.empty()) One(Next() % 20);
    return first_;
  }

 private:
  static constexpr std::array kKeys = {"numbers", "words", "", "main", "none"};
  static constexpr std::array kNames = {"x", "y", "s", "", "z"};

  uint8_t Next() {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(bytes_[0]);
    bytes_ = bytes_.subspan(1);
    return byte;
  }
  // A number of bytes that are left.
  size_t Length(size_t end) {
    const size_t length = Next() % end;
    return std::min(length, bytes_.size());
  }
  int32_t Index() { return static_cast<int8_t>(Next() % 5) - 1; }  // mostly 0, also -1, 1, 2, 3
  // The session, or sometimes NULL.
  fusebox_session* Session() { return Next() % 16 == 15 ? nullptr : session_; }

  // Checks the contract of errors, and frees the text.
  void Expect(fusebox_status status) {
    FUSEBOX_CHECK((status == FUSEBOX_OK) == (error_ == nullptr));
    if (status == FUSEBOX_INTERNAL) first_ = Internal(error_);
    else if (status != FUSEBOX_OK && first_) first_ = Invalid(error_);
    FUSEBOX_CHECK(std::strcmp(fusebox_status_name(status), "unknown") != 0);
    fusebox_text_free(error_);
    error_ = nullptr;
  }
  void Create(const char* options) {
    fusebox_session_free(session_);
    session_ = nullptr;
    Expect(fusebox_session_create(model_, options, nullptr, &session_, &error_));
  }

  // Reads every byte of a tensor, where a sanitizer sees it.
  void Read(const fusebox_tensor& tensor) {
    volatile char sum = tensor.name == nullptr ? 0 : tensor.name[0];
    for (int32_t i = 0; i < tensor.rank; ++i) sum = sum ^ static_cast<char>(tensor.dims[i]);
    for (size_t i = 0; tensor.data != nullptr && i < tensor.bytes; ++i)
      sum = sum ^ static_cast<const char*>(tensor.data)[i];
    for (size_t i = 0; i < tensor.scale_count; ++i) sum = sum ^ static_cast<char>(tensor.zero_points[i]);
    const char* text = nullptr;
    size_t length = 0;
    const fusebox_status status = fusebox_tensor_string(&tensor, Next() % 4, &text, &length, &error_);
    for (size_t i = 0; status == FUSEBOX_OK && i < length; ++i) sum = sum ^ text[i];
    if (tensor.dtype != FBX_STRING) FUSEBOX_CHECK(status != FUSEBOX_OK);
    Expect(tensor.dtype == FBX_STRING ? status : Forget());
  }
  // An error that the caller provokes.
  fusebox_status Forget() {
    fusebox_text_free(error_);
    error_ = nullptr;
    return FUSEBOX_OK;
  }

  std::array<int64_t, 4> Dims() {
    static constexpr std::array<int64_t, 8> kSizes = {1, 2, 3, 0, 7, -1, INT64_MAX, 1 << 20};
    std::array<int64_t, 4> dims{};
    for (int64_t& dim : dims) dim = kSizes[Next() % 8];
    return dims;
  }

  void Resize() {
    const int32_t index = Index(), rank = static_cast<int32_t>(Next() % 6) - 1;
    const auto dims = Dims();
    fusebox_session* const session = Session();
    Expect(fusebox_session_resize_input(session, index, Next() % 16 == 15 ? nullptr : dims.data(),
                                        std::min<int32_t>(rank, 4), &error_));
  }
  void SetInput() {
    const int32_t index = Index();
    const size_t bytes = Length(64);
    const char* const data = reinterpret_cast<const char*>(bytes_.data());
    bytes_ = bytes_.subspan(bytes);
    Expect(fusebox_session_set_input(Session(), index, data, bytes, &error_));
  }
  void SetStrings() {
    const int32_t index = Index();
    const std::string text(Next() % 9, 'a');
    const std::array<const char*, 3> strings = {text.c_str(), "", "word"};
    const std::array<size_t, 3> lengths = {text.size(), 0, 4};
    const int64_t count = static_cast<int64_t>(Next() % 5) - 1;
    const int64_t dims[] = {std::min<int64_t>(count, 3)};
    const size_t* const sizes = Next() % 2 ? lengths.data() : nullptr;
    Expect(fusebox_session_set_strings(Session(), index, strings.data(), sizes, dims, 1, &error_));
  }
  void InputData() {
    void* data = nullptr;
    size_t bytes = 0;
    const int32_t index = Index();
    const fusebox_status status = fusebox_session_input_data(Session(), index, &data, &bytes, &error_);
    fusebox_tensor tensor = FUSEBOX_TENSOR;
    if (status == FUSEBOX_OK && fusebox_session_input(session_, index, &tensor, nullptr) == FUSEBOX_OK &&
        tensor.dtype == FBX_F32)
      std::memset(data, Next(), bytes);
    Expect(status);
  }
  void Output() {
    fusebox_tensor tensor = FUSEBOX_TENSOR;
    if (Next() % 8 == 7) tensor.struct_size = Next();
    const uint32_t size = tensor.struct_size;
    const int32_t index = Index();
    const fusebox_status status = fusebox_session_output(Session(), index, &tensor, &error_);
    Expect(status);
    if (status == FUSEBOX_OK && size == sizeof(fusebox_tensor)) Read(tensor);
  }
  void Find() {
    int32_t index = 0;
    const auto find = Next() % 2 ? fusebox_session_find_output : fusebox_session_find_input;
    const char* const name = kNames[Next() % kNames.size()];
    fusebox_session* const session = Session();
    Expect(find(session, name, Next() % 16 == 15 ? nullptr : &index, &error_));
  }
  // Memory that lives as long as the calls, in pieces that do not overlap.
  void Bind() {
    const bool input = Next() % 2;
    const int32_t index = Index();
    const size_t bytes = std::min<size_t>(Next() * size_t{4}, kPiece);
    char* const memory = bytes == 0 ? nullptr : bound_.data() + (input ? kPiece : 0) + Next() % 2;
    fusebox_session* const session = Session();
    Expect(input ? fusebox_session_bind_input(session, index, memory, bytes, &error_)
                 : fusebox_session_bind_output(session, index, memory, bytes, &error_));
  }
  void Value() {
    fusebox_tensor tensor = FUSEBOX_TENSOR;
    fusebox_session* const session = Session();
    const fusebox_status status =
        fusebox_session_value(session, kNames[Next() % kNames.size()], &tensor, &error_);
    Expect(status);
    if (status == FUSEBOX_OK) Read(tensor);
  }
  // The next run ends; its state is reset.
  void Cancel() {
    fusebox_session* const session = Session();
    const fusebox_status cancelled = fusebox_session_cancel(session);
    FUSEBOX_CHECK((cancelled == FUSEBOX_OK) == (session != nullptr));
  }
  // A file that may be damaged.
  void Open() {
    const size_t bytes = Length(256);
    fusebox_model* model = nullptr;
    const fusebox_status status =
        fusebox_model_from_copy(bytes_.data(), bytes, nullptr, registry_, &model, &error_);
    FUSEBOX_CHECK((status == FUSEBOX_OK) == (model != nullptr));
    Expect(status);
    fusebox_model_free(model);
  }
  void Input() {
    fusebox_tensor tensor = FUSEBOX_TENSOR;
    const int32_t index = Index();
    const fusebox_status status = fusebox_session_input(Session(), index, &tensor, &error_);
    Expect(status);
    if (status == FUSEBOX_OK) FUSEBOX_CHECK(tensor.data == nullptr);
  }
  void Reports() {
    char* text = nullptr;
    fusebox_status status = FUSEBOX_OK;
    switch (Next() % 5) {
      case 0: status = fusebox_session_report(Session(), &text, &error_); break;
      case 1: status = fusebox_session_explain(Session(), &text, &error_); break;
      case 2: status = fusebox_model_report(model_, &text, &error_); break;
      case 3: status = fusebox_registry_plugins(registry_, &text, &error_); break;
      default: status = fusebox_session_times_json(Session(), &text, &error_); break;
    }
    FUSEBOX_CHECK((status == FUSEBOX_OK) == (text != nullptr));
    fusebox_text_free(text);
    Expect(status);
  }

  void One(uint8_t call) {
    switch (call) {
      case 0: return Create(R"({"signature": "numbers", "memory_limit": 1000000})");
      case 1: return Create(R"({"signature": "words", "threads": 2, "memory_limit": 1000000})");
      case 2: {
        const size_t length = Length(256);
        const std::string options(reinterpret_cast<const char*>(bytes_.data()), length);
        return Create(options.c_str());
      }
      case 3: {
        const char* const key = kKeys[Next() % kKeys.size()];
        return Expect(fusebox_session_select(Session(), key, &error_));
      }
      case 4: return Resize();
      case 5: return SetInput();
      case 6: return SetStrings();
      case 7: return InputData();
      case 8: return Output();
      case 9: return Find();
      case 10: return Input();
      case 11: return Expect(fusebox_session_prepare(Session(), &error_));
      case 12: return Expect(fusebox_session_reset_state(Session(), &error_));
      case 13: return Reports();
      case 14: return Bind();
      case 15: return Value();
      case 16: return Open();
      case 17: return Create(R"({"signature": "numbers", "keep_values": true, "profile": true})");
      case 18: return Cancel();
      default: return Expect(fusebox_session_run(Session(), &error_));
    }
  }

  static constexpr size_t kPiece = 1024;

  std::span<const std::byte> bytes_;
  alignas(64) std::array<char, 2 * kPiece + 64> bound_ = {};
  fusebox_registry* registry_ = nullptr;
  fusebox_model* model_ = nullptr;
  fusebox_session* session_ = nullptr;
  char* error_ = nullptr;
  Status first_;
};

}  // namespace

Status RunCApi(std::span<const std::byte> bytes) {
  if (bytes.empty()) return Invalid("no calls");
  return Calls(bytes).Run();
}

// Sequences without an error. Index 0 is the byte 1, and a session is not NULL with the byte 0.
std::vector<std::string> CApiSeeds() {
  using namespace std::literals;
  const std::string resize = "\x04\x01\x03\x01\x02\0\0\0\0"s;  // input 0 to [2,3]
  const std::string set = "\x05\x01\x18\0\0\x80?\0\0\0@\0\0@@\0\0\x80@\0\0\xa0@\0\0\xc0@\0"s;
  const std::string run = "\x13\0"s, output = "\x08\0\x01\0\0"s, prepare = "\x0b\0"s, reset = "\x0c\0"s;
  const std::string reports = "\x0d\0\0\x0d\x01\0\x0d\x02\x0d\x03"s;
  const std::string strings = "\x01\x06\x01\x03\x04\x01\0"s;  // of the signature words, in a new session
  const std::string kept = "\x11"s, value = "\x0f\0\x01\0"s, times = "\x0d\x04\0"s;
  const std::string bind = "\x0e\0\x01\x06\0\0"s;  // output 0
  return {resize + set + run + output, strings + run + output + reports + prepare + reset,
          kept + resize + run + value + times + bind + run + "\x12\0"s};
}

}  // namespace fusebox::fuzz
