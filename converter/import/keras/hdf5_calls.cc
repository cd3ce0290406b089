// SPDX-License-Identifier: Apache-2.0
#include "converter/import/keras/hdf5_calls.h"

#include <algorithm>
#include <optional>

namespace fusebox::keras {
namespace {

constexpr size_t kMaxText = size_t{1} << 30;    // bytes of one attribute
constexpr size_t kMaxEntries = 1 << 20;         // children of a group, strings of a list
constexpr size_t kMaxTensor = size_t{1} << 32;  // bytes of one dataset
constexpr hsize_t kMaxExpansion = 1 << 16;      // of a compressed dataset

std::optional<DType> DTypeOf(hid_t type) {
  const size_t size = H5Tget_size(type);
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_FLOAT) {
    if (size == 2) return DType::kF16;
    if (size == 4) return DType::kF32;
    if (size == 8) return DType::kF64;
  }
  if (kind == H5T_INTEGER) {
    const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
    if (size == 1) return is_signed ? DType::kI8 : DType::kU8;
    if (size == 4 && is_signed) return DType::kI32;
    if (size == 8 && is_signed) return DType::kI64;
    if (size == 4) return DType::kU32;
    if (size == 8) return DType::kU64;
  }
  // h5py stores bf16 as an opaque type of 2 bytes.
  if (kind == H5T_OPAQUE && size == 2) return DType::kBF16;
  return {};
}

// Type that the library converts to; f16 has no native type and is read as f32, bf16 is read as stored.
hid_t NativeType(DType dtype, hid_t stored) {
  switch (dtype) {
    case DType::kBF16: return stored;
    case DType::kF64: return H5T_NATIVE_DOUBLE;
    case DType::kI8: return H5T_NATIVE_INT8;
    case DType::kU8: return H5T_NATIVE_UINT8;
    case DType::kI32: return H5T_NATIVE_INT32;
    case DType::kI64: return H5T_NATIVE_INT64;
    case DType::kU32: return H5T_NATIVE_UINT32;
    case DType::kU64: return H5T_NATIVE_UINT64;
    default: return H5T_NATIVE_FLOAT;
  }
}

// The file must contain the bytes that a dataset declares, at least in compressed form.
Status CheckStorage(hid_t dataset, size_t bytes) {
  const Id properties(H5Dget_create_plist(dataset), H5Pclose);
  if (!properties.ok()) return Invalid("it cannot be read");
  const H5D_layout_t layout = H5Pget_layout(properties);
  if (layout == H5D_VIRTUAL || H5Pget_external_count(properties) > 0)
    return Unsupported("its values are in another file");
  const hsize_t stored = H5Dget_storage_size(dataset);
  const bool packed = layout == H5D_CHUNKED && H5Pget_nfilters(properties) > 0;
  if (packed ? stored < bytes / kMaxExpansion || (stored == 0 && bytes > 0) : stored < bytes)
    return Invalid("it has " + std::to_string(stored) + " bytes in the file, but should have " +
                   std::to_string(bytes));
  return {};
}

// Offset of values stored little-endian, contiguous and aligned; HADDR_UNDEF: they need conversion.
haddr_t InPlace(hid_t dataset, hid_t stored, DType dtype) {
  const Id properties(H5Dget_create_plist(dataset), H5Pclose);
  if (!properties.ok() || H5Pget_layout(properties) != H5D_CONTIGUOUS) return HADDR_UNDEF;
  if (H5Tequal(stored, NativeType(dtype, stored)) <= 0) return HADDR_UNDEF;
  const haddr_t offset = H5Dget_offset(dataset);
  return offset % (BitsOf(dtype) / 8) == 0 ? offset : HADDR_UNDEF;
}

}  // namespace

Result<std::vector<std::string>> Names(hid_t group) {
  H5G_info_t info;
  if (H5Gget_info(group, &info) < 0) return Invalid("it cannot be read");
  if (info.nlinks > kMaxEntries) return Invalid("it has too many members");
  std::vector<std::string> out;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    char text[1024];
    const ssize_t length =
        H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, text, sizeof text, H5P_DEFAULT);
    if (length < 0 || static_cast<size_t>(length) >= sizeof text) return Invalid("it cannot be read");
    out.emplace_back(text, static_cast<size_t>(length));
  }
  return out;
}

Result<std::vector<std::string>> Strings(hid_t attribute) {
  const Id type(H5Aget_type(attribute), H5Tclose);
  const Id space(H5Aget_space(attribute), H5Sclose);
  if (!type.ok() || !space.ok()) return Invalid("it cannot be read");
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  if (count < 0 || static_cast<size_t>(count) > kMaxEntries) return Invalid("it has too many strings");
  std::vector<std::string> out;
  if (count == 0) return out;  // an empty list is stored with a numeric type
  if (H5Tget_class(type) != H5T_STRING) return Invalid("it is not text");
  if (H5Tis_variable_str(type) > 0) {
    std::vector<char*> texts(static_cast<size_t>(count), nullptr);
    if (H5Aread(attribute, type, texts.data()) < 0) return Invalid("it cannot be read");
    for (const char* text : texts) out.emplace_back(text ? text : "");
    H5Dvlen_reclaim(type, space, H5P_DEFAULT, texts.data());
    return out;
  }
  const size_t size = H5Tget_size(type);
  if (size == 0 || size > kMaxText / static_cast<size_t>(count)) return Invalid("its text is too long");
  // Check the stored size first: a file of a few bytes may declare any length.
  if (H5Aget_storage_size(attribute) != size * static_cast<size_t>(count))
    return Invalid("its text is not stored");
  std::vector<char> bytes(size * static_cast<size_t>(count));
  if (H5Aread(attribute, type, bytes.data()) < 0) return Invalid("it cannot be read");
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(i * size);
    out.emplace_back(begin, std::find(begin, begin + static_cast<std::ptrdiff_t>(size), '\0'));
  }
  return out;
}

Result<Type> TypeOf(hid_t dataset) {
  const Id type(H5Dget_type(dataset), H5Tclose);
  const Id space(H5Dget_space(dataset), H5Sclose);
  const auto dtype = DTypeOf(type);
  if (!dtype) return Unsupported("its elements have an unsupported type");
  hsize_t dims[H5S_MAX_RANK];
  const int rank = H5Sget_simple_extent_dims(space, dims, nullptr);
  if (rank < 0 || H5Sget_simple_extent_type(space) == H5S_NULL) return Invalid("it has no shape");
  std::vector<int64_t> shape;
  for (int i = 0; i < rank; ++i) {
    if (dims[i] > INT32_MAX) return Invalid("dimension " + std::to_string(i) + " is too large");
    shape.push_back(static_cast<int64_t>(dims[i]));
  }
  return Type{*dtype == DType::kF16 ? DType::kF32 : *dtype, Shape(std::move(shape))};
}

Result<Buffer> Values(hid_t dataset, const Type& type, const Buffer& file) {
  const Id stored(H5Dget_type(dataset), H5Tclose);
  const auto bytes = ByteSize(type);
  if (!bytes || *bytes > kMaxTensor) return Invalid(ToString(type) + " is too large");
  const size_t elements = *bytes / (BitsOf(type.dtype) / 8);
  FUSEBOX_TRY(CheckStorage(dataset, elements * H5Tget_size(stored)));
  if (const haddr_t at = InPlace(dataset, stored, type.dtype); at != HADDR_UNDEF && *bytes > 0) {
    if (at > file.size() || *bytes > file.size() - at) return Invalid("the file ends before its values");
    return file.Slice(at, *bytes);
  }
  bool read = *bytes == 0;
  Buffer out = Buffer::Make(*bytes, [&](std::span<std::byte> to) {
    if (!read)
      read = H5Dread(dataset, NativeType(type.dtype, stored), H5S_ALL, H5S_ALL, H5P_DEFAULT, to.data()) >= 0;
  });
  if (!read) return Invalid("its values cannot be read (truncated file?)");
  return out;
}

}  // namespace fusebox::keras
