// SPDX-License-Identifier: Apache-2.0
#include "doors/tflite/strings.h"

#include <cstring>
#include <limits>
#include <new>

#include "doors/tflite/tensors.h"

namespace fusebox::tflite {
namespace {

constexpr size_t kNumber = sizeof(int32_t);

int32_t NumberAt(const char* data, size_t index) {
  int32_t number;
  std::memcpy(&number, data + kNumber * index, kNumber);
  return number;
}

void SetNumber(char* data, size_t index, size_t number) {
  const auto stored = static_cast<int32_t>(number);
  std::memcpy(data + kNumber * index, &stored, kNumber);
}

int64_t ElementsOf(const TfLiteIntArray& dims) {
  int64_t count = 1;
  for (int i = 0; i < dims.size; ++i) {
    if (__builtin_mul_overflow(count, int64_t{dims.data[i]}, &count)) return -1;
  }
  return count;
}

}  // namespace

std::optional<std::vector<std::string_view>> StringsOf(const TfLiteTensor& tensor) {
  std::vector<std::string_view> strings;
  if (tensor.data.raw == nullptr || tensor.bytes == 0) return strings;
  if (tensor.bytes < kNumber) return std::nullopt;
  const int32_t count = NumberAt(tensor.data.raw, 0);
  if (count < 0 || (count > 0 && tensor.bytes / kNumber < static_cast<size_t>(count) + 2))
    return std::nullopt;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const int64_t begin = NumberAt(tensor.data.raw, i + 1);
    const int64_t end = NumberAt(tensor.data.raw, i + 2);
    if (begin < 0 || begin > end || static_cast<size_t>(end) > tensor.bytes) return std::nullopt;
    strings.emplace_back(tensor.data.raw + begin, static_cast<size_t>(end - begin));
  }
  return strings;
}

void SetStrings(TfLiteTensor& tensor, const std::vector<std::string_view>& strings) {
  size_t bytes = kNumber * (strings.size() + 2);
  const size_t first = bytes;
  for (const std::string_view text : strings) bytes += text.size();
  if (bytes > static_cast<size_t>(std::numeric_limits<int32_t>::max())) throw std::bad_alloc();
  char* data = static_cast<char*>(std::malloc(bytes));
  if (data == nullptr) throw std::bad_alloc();
  SetNumber(data, 0, strings.size());
  size_t at = first;
  for (size_t i = 0; i < strings.size(); ++i) {
    SetNumber(data, i + 1, at);
    if (!strings[i].empty()) std::memcpy(data + at, strings[i].data(), strings[i].size());
    at += strings[i].size();
  }
  SetNumber(data, strings.size() + 1, at);
  TfLiteTensorDataFree(&tensor);
  tensor.allocation_type = kTfLiteDynamic;
  tensor.data.raw = data;
  tensor.bytes = bytes;
  const auto count = static_cast<int64_t>(strings.size());
  if (tensor.dims == nullptr || ElementsOf(*tensor.dims) != count) SetDims(tensor, std::span(&count, 1));
}

TfLiteStatus PushStrings(fusebox_session* session, int32_t input, const TfLiteTensor& tensor,
                         const Reporter& reporter) {
  auto strings = StringsOf(tensor);
  const int64_t expected = ElementsOf(*tensor.dims);
  if (strings && strings->empty() && expected > 0 && expected < (1 << 24))
    strings->resize(static_cast<size_t>(expected), "");
  if (!strings || static_cast<int64_t>(strings->size()) != expected) {
    reporter.Report("%s: its strings are damaged, or not as many as its dims say", tensor.name);
    return kTfLiteError;
  }
  std::vector<const char*> texts;
  std::vector<size_t> lengths;
  for (const std::string_view text : *strings) {
    texts.push_back(text.data());
    lengths.push_back(text.size());
  }
  const std::vector<int64_t> dims(tensor.dims->data, tensor.dims->data + tensor.dims->size);
  ErrorText error;
  if (fusebox_session_set_strings(session, input, texts.data(), lengths.data(), dims.data(),
                                  tensor.dims->size, error) == FUSEBOX_OK)
    return kTfLiteOk;
  reporter.Report("%s", error.text());
  return kTfLiteError;
}

}  // namespace fusebox::tflite
