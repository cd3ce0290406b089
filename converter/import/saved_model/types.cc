// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "converter/import/saved_model/import.h"
#include "converter/import/saved_model/tensor_data.h"

namespace fusebox::saved_model {

DType ToDType(tf::DataType t) {
  switch (t) {
    case tf::DT_FLOAT: return DType::kF32;
    case tf::DT_DOUBLE: return DType::kF64;
    case tf::DT_HALF: return DType::kF16;
    case tf::DT_BFLOAT16: return DType::kBF16;
    case tf::DT_INT8:
    case tf::DT_QINT8: return DType::kI8;
    case tf::DT_INT16:
    case tf::DT_QINT16: return DType::kI16;
    case tf::DT_INT32:
    case tf::DT_QINT32: return DType::kI32;
    case tf::DT_INT64: return DType::kI64;
    case tf::DT_UINT8:
    case tf::DT_QUINT8: return DType::kU8;
    case tf::DT_UINT16:
    case tf::DT_QUINT16: return DType::kU16;
    case tf::DT_UINT32: return DType::kU32;
    case tf::DT_UINT64: return DType::kU64;
    case tf::DT_BOOL: return DType::kBool;
    case tf::DT_STRING: return DType::kString;
    case tf::DT_COMPLEX64: return DType::kComplex64;
    case tf::DT_COMPLEX128: return DType::kComplex128;
    case tf::DT_RESOURCE: return DType::kResource;
    case tf::DT_VARIANT: return DType::kVariant;
    default: return DType::kNone;
  }
}

Shape ToShape(const tf::TensorShape& shape) {
  if (shape.unknown_rank()) return Shape();
  std::vector<int64_t> dims;
  for (const auto& dim : shape.dim()) dims.push_back(dim.size() < 0 ? Shape::kUnknown : dim.size());
  return Shape(std::move(dims));
}

Buffer PackStrings(const std::vector<std::string>& strings) {
  const size_t head = sizeof(int32_t) * (strings.size() + 2);
  size_t total = head;
  for (const auto& s : strings) total += s.size();
  return Buffer::Make(total, [&](std::span<std::byte> out) {
    auto* ints = reinterpret_cast<int32_t*>(out.data());
    ints[0] = static_cast<int32_t>(strings.size());
    size_t at = head;
    for (size_t i = 0; i < strings.size(); ++i) {
      ints[i + 1] = static_cast<int32_t>(at);
      std::memcpy(out.data() + at, strings[i].data(), strings[i].size());
      at += strings[i].size();
    }
    ints[strings.size() + 1] = static_cast<int32_t>(at);
  });
}

namespace {

// Interleaved real and imaginary parts, else like Spread.
template <class T, class Values>
Buffer SpreadPairs(const Values& values, int64_t count) {
  return Buffer::Make(static_cast<size_t>(count) * 2 * sizeof(T), [&](std::span<std::byte> out) {
    auto* to = reinterpret_cast<T*>(out.data());
    const int n = values.size() / 2;
    for (int64_t i = 0; i < count && n > 0; ++i) {
      const int from = 2 * static_cast<int>(std::min<int64_t>(i, n - 1));
      to[2 * i] = values.Get(from);
      to[2 * i + 1] = values.Get(from + 1);
    }
  });
}

// The *_val form: if there are fewer values than elements, the last one repeats; no values mean zeros.
template <class T, class Values>
Buffer Spread(const Values& values, int64_t count) {
  return Buffer::Make(static_cast<size_t>(count) * sizeof(T), [&](std::span<std::byte> out) {
    auto* to = reinterpret_cast<T*>(out.data());
    const int n = values.size();
    for (int64_t i = 0; i < count && n > 0; ++i)
      to[i] = static_cast<T>(values.Get(static_cast<int>(std::min<int64_t>(i, n - 1))));
  });
}

Result<Buffer> Values(const tf::Tensor& t, DType dtype, int64_t count) {
  switch (dtype) {
    case DType::kF32: return Spread<float>(t.float_val(), count);
    case DType::kF64: return Spread<double>(t.double_val(), count);
    case DType::kI8: return Spread<int8_t>(t.int_val(), count);
    case DType::kI16: return Spread<int16_t>(t.int_val(), count);
    case DType::kI32: return Spread<int32_t>(t.int_val(), count);
    case DType::kU8: return Spread<uint8_t>(t.int_val(), count);
    case DType::kU16: return Spread<uint16_t>(t.int_val(), count);
    case DType::kI64: return Spread<int64_t>(t.int64_val(), count);
    case DType::kU32: return Spread<uint32_t>(t.uint32_val(), count);
    case DType::kU64: return Spread<uint64_t>(t.uint64_val(), count);
    case DType::kBool: return Spread<bool>(t.bool_val(), count);
    case DType::kComplex64: return SpreadPairs<float>(t.scomplex_val(), count);
    case DType::kComplex128: return SpreadPairs<double>(t.dcomplex_val(), count);
    case DType::kF16:
    case DType::kBF16: return Spread<uint16_t>(t.half_val(), count);
    default: return Unsupported("a constant of type " + DataTypeName(t.dtype()));
  }
}

Buffer Strings(const tf::Tensor& t, int64_t count) {
  std::vector<std::string> out;
  const int n = t.string_val_size();
  for (int64_t i = 0; i < count; ++i)
    out.push_back(n ? t.string_val(static_cast<int>(std::min<int64_t>(i, n - 1))) : "");
  return PackStrings(out);
}

}  // namespace

Result<Tensor> ToTensor(const tf::Tensor& t) {
  const DType dtype = ToDType(t.dtype());
  const Shape shape = ToShape(t.tensor_shape());
  const auto count = shape.element_count();
  if (!count) return Invalid("a constant of shape " + ToString(shape));
  // A declared count without stored bytes must not cause a large allocation.
  constexpr int64_t kMaxSplat = int64_t{1} << 28;
  if (dtype == DType::kString) {
    const int64_t longest =
        t.string_val_size() ? static_cast<int64_t>(t.string_val(t.string_val_size() - 1).size()) : 0;
    if (*count > t.string_val_size() && *count > kMaxSplat / (longest + 4))
      return Unsupported("a constant of " + std::to_string(*count) + " strings");
    return Tensor{{dtype, shape}, Strings(t, *count)};
  }
  if (t.tensor_content().empty()) {
    const auto size = ByteSize({dtype, shape});
    if (size && static_cast<int64_t>(*size) > kMaxSplat && *size / 16 > t.ByteSizeLong()) {
      return Unsupported("a constant of " + std::to_string(*count) + " elements that are not stored in full");
    }
    FUSEBOX_ASSIGN(Buffer data, Values(t, dtype, *count));
    return Tensor{{dtype, shape}, std::move(data)};
  }
  const auto bytes = ByteSize({dtype, shape});
  if (!bytes || *bytes != t.tensor_content().size()) {
    return Invalid("a constant " + ToString(Type{dtype, shape}) + " with " +
                   std::to_string(t.tensor_content().size()) + " bytes");
  }
  return Tensor{{dtype, shape}, Buffer::Copy(std::as_bytes(std::span(t.tensor_content())))};
}

Result<AttrValue> ToAttr(const tf::AttrValue& v) {
  switch (v.value_case()) {
    case tf::AttrValue::kS: return AttrValue(v.s());
    case tf::AttrValue::kI: return AttrValue(static_cast<int64_t>(v.i()));
    case tf::AttrValue::kF: return AttrValue(static_cast<double>(v.f()));
    case tf::AttrValue::kB: return AttrValue(v.b());
    case tf::AttrValue::kType: return AttrValue(ToDType(v.type()));
    case tf::AttrValue::kShape: return AttrValue(ToShape(v.shape()));
    case tf::AttrValue::kFunc: return AttrValue(FunctionRef{v.func().name()});
    case tf::AttrValue::kTensor: {
      FUSEBOX_ASSIGN(Tensor tensor, ToTensor(v.tensor()));
      return AttrValue(std::move(tensor));
    }
    case tf::AttrValue::kList: {
      const auto& list = v.list();
      if (list.s_size()) return AttrValue(std::vector<std::string>(list.s().begin(), list.s().end()));
      if (list.f_size()) return AttrValue(std::vector<double>(list.f().begin(), list.f().end()));
      if (list.b_size()) return AttrValue(std::vector<int64_t>(list.b().begin(), list.b().end()));
      if (list.type_size()) {
        std::vector<int64_t> types;
        for (int t : list.type())
          types.push_back(static_cast<int64_t>(ToDType(static_cast<tf::DataType>(t))));
        return AttrValue(std::move(types));
      }
      if (list.shape_size() || list.tensor_size() || list.func_size()) return AttrValue();
      return AttrValue(std::vector<int64_t>(list.i().begin(), list.i().end()));
    }
    default: return AttrValue();
  }
}

}  // namespace fusebox::saved_model
