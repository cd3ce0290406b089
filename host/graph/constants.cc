// SPDX-License-Identifier: Apache-2.0
#include "host/graph/constants.h"

namespace fusebox {
namespace {

template <class To, class Narrow, class Wide>
std::optional<std::vector<To>> Read(const Type& type, const Buffer& data, DType narrow, DType wide) {
  const auto copy = [](const auto& values) { return std::vector<To>(values.begin(), values.end()); };
  if (!data) return std::nullopt;
  if (type.dtype == narrow) return copy(data.As<Narrow>());
  if (type.dtype == wide) return copy(data.As<Wide>());
  return std::nullopt;
}

const Value* Constant(const Function& f, ValueId v) {
  return v != kNoValue && f.value(v).is_const() ? &f.value(v) : nullptr;
}

template <class T>
std::optional<T> Single(const std::optional<std::vector<T>>& values) {
  return values && values->size() == 1 ? std::optional(values->front()) : std::nullopt;
}

}  // namespace

std::optional<std::vector<int64_t>> ConstInts(const Type& type, const Buffer& data) {
  return Read<int64_t, int32_t, int64_t>(type, data, DType::kI32, DType::kI64);
}

std::optional<std::vector<int64_t>> ConstInts(const Function& f, ValueId v) {
  const Value* value = Constant(f, v);
  return value ? ConstInts(value->type, value->data) : std::nullopt;
}

std::optional<int64_t> ConstInt(const Function& f, ValueId v) { return Single(ConstInts(f, v)); }

std::optional<std::vector<double>> ConstFloats(const Function& f, ValueId v) {
  const Value* value = Constant(f, v);
  return value ? Read<double, float, double>(value->type, value->data, DType::kF32, DType::kF64)
               : std::nullopt;
}

std::optional<double> ConstScalar(const Function& f, ValueId v) {
  const Value* value = Constant(f, v);
  if (!value || value->data.size() > sizeof(double)) return std::nullopt;  // a large one is not copied
  return Single(ConstFloats(f, v));
}

}  // namespace fusebox
