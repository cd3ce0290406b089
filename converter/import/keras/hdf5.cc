// SPDX-License-Identifier: Apache-2.0
#include "converter/import/keras/hdf5.h"

#include <hdf5.h>

#include <algorithm>
#include <mutex>
#include <string_view>
#include <utility>

namespace fusebox::keras {
namespace {

constexpr size_t kMaxText = size_t{1} << 30;    // bytes of one attribute
constexpr size_t kMaxEntries = 1 << 20;         // children of a group, strings of a list
constexpr size_t kMaxTensor = size_t{1} << 32;  // bytes of one dataset
constexpr hsize_t kMaxExpansion = 1 << 16;      // of a compressed dataset

std::recursive_mutex& Lock() {
  static std::recursive_mutex mutex;
  return mutex;
}
using Turn = std::lock_guard<std::recursive_mutex>;

// An identifier of the library with the call that gives it back.
class Id {
 public:
  Id(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Id(Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Id& operator=(Id&&) = delete;
  ~Id() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }  // NOLINT(google-explicit-constructor)
  bool ok() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

void Prepare() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // it would print to stderr
  H5PLset_loading_state(0);
}

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
  return {};
}

// What the library converts to while it reads; f16 has no native form and is read as f32.
hid_t NativeType(DType dtype) {
  switch (dtype) {
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

// All strings of an attribute. Fixed lengths may be padded with zeros.
Result<std::vector<std::string>> Strings(hid_t attribute) {
  const Id type(H5Aget_type(attribute), H5Tclose), space(H5Aget_space(attribute), H5Sclose);
  if (!type.ok() || !space.ok()) return Invalid("it cannot be read");
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  if (count < 0 || static_cast<size_t>(count) > kMaxEntries) return Invalid("it has too many strings");
  std::vector<std::string> out;
  if (count == 0) return out;  // an empty list is written with numbers for elements
  if (H5Tget_class(type) != H5T_STRING) return Invalid("it is no text");
  if (H5Tis_variable_str(type) > 0) {
    std::vector<char*> texts(static_cast<size_t>(count), nullptr);
    if (H5Aread(attribute, type, texts.data()) < 0) return Invalid("it cannot be read");
    for (const char* text : texts) out.emplace_back(text ? text : "");
    H5Dvlen_reclaim(type, space, H5P_DEFAULT, texts.data());
    return out;
  }
  const size_t size = H5Tget_size(type);
  if (size == 0 || size > kMaxText / static_cast<size_t>(count)) return Invalid("its text is too long");
  // What is stored is asked first: a file of a few bytes may claim any length.
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

uint64_t Little64(std::span<const std::byte> bytes, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value |= std::to_integer<uint64_t>(bytes[at + i]) << 8 * i;
  return value;
}

// Group names lie in local heaps, whose free blocks are a list. Library 1.10 follows a list that runs in a circle until memory is
// used up, so that it is walked here first. (File format, "Local Heaps": signature, version 0 and three zeros; size of the data,
// head of the list, address of the data. A free block begins with the offset of the next, 1 at the end.)
Status CheckHeaps(std::span<const std::byte> file) {
  constexpr std::string_view kHeap("HEAP\0\0\0\0", 8);
  constexpr uint64_t kEnd = 1;
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  uint64_t left = file.size() / 16;  // as many free blocks as all heaps together can have
  for (size_t at = text.find(kHeap); at != text.npos && at + 32 <= file.size();
       at = text.find(kHeap, at + 1)) {
    const uint64_t size = Little64(file, at + 8), address = Little64(file, at + 24);
    if (address > file.size() || size > file.size() - address) continue;  // the library says so itself
    for (uint64_t block = Little64(file, at + 16); block != kEnd; --left) {
      if (size < 16 || block > size - 16) break;
      if (left == 0) return Invalid("a broken HDF5 file: the free blocks of its names run in a circle");
      block = Little64(file, address + block);
    }
  }
  return {};
}

// The bytes that a dataset's elements take in the file must be there, at least in a compressed form.
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

// Where the values stand in the file as they are needed: little-endian, in one piece, aligned. HADDR_UNDEF: nowhere.
haddr_t InPlace(hid_t dataset, hid_t stored, DType dtype) {
  const Id properties(H5Dget_create_plist(dataset), H5Pclose);
  if (!properties.ok() || H5Pget_layout(properties) != H5D_CONTIGUOUS) return HADDR_UNDEF;
  if (H5Tequal(stored, NativeType(dtype)) <= 0) return HADDR_UNDEF;
  const haddr_t offset = H5Dget_offset(dataset);
  return offset % (BitsOf(dtype) / 8) == 0 ? offset : HADDR_UNDEF;
}

}  // namespace

struct Hdf5File::Impl {
  std::string name;  // begins messages: empty, or "name: "
  Buffer bytes;      // of the file
  hid_t file = -1;

  ~Impl() {
    if (file >= 0) H5Fclose(file);
  }

  // An object by its path, where every step is a hard link.
  Id Object(const std::string& path) const {
    std::string so_far;
    for (size_t at = 0; at < path.size();) {
      const size_t slash = std::min(path.find('/', at), path.size());
      if (slash > at) {
        so_far += "/" + path.substr(at, slash - at);
        H5L_info_t info;
        if (H5Lget_info(file, so_far.c_str(), &info, H5P_DEFAULT) < 0 || info.type != H5L_TYPE_HARD)
          return {-1, H5Oclose};
      }
      at = slash + 1;
    }
    return {H5Oopen(file, so_far.empty() ? "/" : so_far.c_str(), H5P_DEFAULT), H5Oclose};
  }
  bool Is(const std::string& path, H5I_type_t kind) const {
    const Id object = Object(path);
    return object.ok() && H5Iget_type(object) == kind;
  }
};

Hdf5File::Hdf5File(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Hdf5File::Hdf5File(Hdf5File&&) noexcept = default;
Hdf5File& Hdf5File::operator=(Hdf5File&&) noexcept = default;
Hdf5File::~Hdf5File() {
  const Turn turn(Lock());
  impl_.reset();
}

Result<Hdf5File> Hdf5File::Open(const std::string& path) {
  auto impl = std::make_unique<Impl>();
  FUSEBOX_ASSIGN(impl->bytes, MapFile(path));
  FUSEBOX_TRY(CheckHeaps(impl->bytes.bytes()));
  const Turn turn(Lock());
  Prepare();
  impl->file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (impl->file < 0) return Invalid("a broken HDF5 file (truncated?)");
  return Hdf5File(std::move(impl));
}

Result<Hdf5File> Hdf5File::FromBytes(Buffer bytes, std::string name) {
  const Turn turn(Lock());
  Prepare();
  auto impl = std::make_unique<Impl>();
  impl->name = name.empty() ? name : name + ": ";
  impl->bytes = std::move(bytes);
  FUSEBOX_TRY(CheckHeaps(impl->bytes.bytes()).At(name.empty() ? "HDF5" : name));
  const Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  // The core driver reads the file from memory and writes nothing back.
  if (!access.ok() || H5Pset_fapl_core(access, size_t{1} << 20, 0) < 0 ||
      H5Pset_file_image(access, const_cast<std::byte*>(impl->bytes.data()), impl->bytes.size()) < 0)
    return Invalid(impl->name + "its " + std::to_string(impl->bytes.size()) + " bytes are no HDF5 file");
  static int number = 0;  // files of one name would be taken for the same
  const std::string label = "fusebox-image-" + std::to_string(++number);
  impl->file = H5Fopen(label.c_str(), H5F_ACC_RDONLY, access);
  if (impl->file < 0) return Invalid(impl->name + "a broken HDF5 file (truncated?)");
  return Hdf5File(std::move(impl));
}

bool Hdf5File::IsGroup(const std::string& path) const {
  const Turn turn(Lock());
  return impl_->Is(path, H5I_GROUP);
}
bool Hdf5File::IsDataset(const std::string& path) const {
  const Turn turn(Lock());
  return impl_->Is(path, H5I_DATASET);
}

Result<std::vector<std::string>> Hdf5File::Children(const std::string& group) const {
  const Turn turn(Lock());
  const Id object = impl_->Object(group);
  H5G_info_t info;
  if (!object.ok() || H5Gget_info(object, &info) < 0) return NotFound(impl_->name + "no group " + group);
  if (info.nlinks > kMaxEntries) return Invalid(impl_->name + "group " + group + " has too many members");
  std::vector<std::string> out;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    char text[1024];
    const ssize_t length =
        H5Lget_name_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_INC, i, text, sizeof text, H5P_DEFAULT);
    if (length < 0 || static_cast<size_t>(length) >= sizeof text)
      return Invalid(impl_->name + "group " + group + " cannot be read");
    out.emplace_back(text, static_cast<size_t>(length));
  }
  return out;
}

Result<std::vector<std::string>> Hdf5File::Texts(const std::string& group,
                                                 const std::string& attribute) const {
  const Turn turn(Lock());
  const Id object = impl_->Object(group);
  if (!object.ok()) return NotFound(impl_->name + "no group " + group);
  std::vector<std::string> out;
  const bool whole = H5Aexists(object, attribute.c_str()) > 0;
  for (size_t piece = 0; piece < kMaxEntries; ++piece) {
    const std::string key = whole ? attribute : attribute + std::to_string(piece);
    if (H5Aexists(object, key.c_str()) <= 0) break;
    const Id opened(H5Aopen(object, key.c_str(), H5P_DEFAULT), H5Aclose);
    const std::string place = impl_->name + "attribute " + key + " of " + group;
    if (!opened.ok()) return Invalid(place + ": it cannot be read");
    FUSEBOX_ASSIGN(auto more, Strings(opened).At(place));
    out.insert(out.end(), more.begin(), more.end());
    if (whole) break;
  }
  return out;
}

Result<std::optional<std::string>> Hdf5File::Text(const std::string& group,
                                                  const std::string& attribute) const {
  FUSEBOX_ASSIGN(auto texts, Texts(group, attribute));
  if (texts.empty()) return std::optional<std::string>();
  return std::optional(std::move(texts.front()));
}

Result<Type> Hdf5File::TypeOf(const std::string& dataset) const {
  const Turn turn(Lock());
  const Id object = impl_->Object(dataset);
  if (!object.ok() || H5Iget_type(object) != H5I_DATASET)
    return NotFound(impl_->name + "no dataset " + dataset);
  const Id type(H5Dget_type(object), H5Tclose), space(H5Dget_space(object), H5Sclose);
  const std::string place = impl_->name + "dataset " + dataset;
  const auto dtype = DTypeOf(type);
  if (!dtype) return Unsupported(place + ": its elements are no floats or integers of a usual size");
  hsize_t dims[H5S_MAX_RANK];
  const int rank = H5Sget_simple_extent_dims(space, dims, nullptr);
  if (rank < 0 || H5Sget_simple_extent_type(space) == H5S_NULL) return Invalid(place + ": it has no shape");
  std::vector<int64_t> shape;
  for (int i = 0; i < rank; ++i) {
    if (dims[i] > INT32_MAX) return Invalid(place + ": dimension " + std::to_string(i) + " is too large");
    shape.push_back(static_cast<int64_t>(dims[i]));
  }
  return Type{*dtype == DType::kF16 ? DType::kF32 : *dtype, Shape(std::move(shape))};
}

Result<Buffer> Hdf5File::Read(const std::string& dataset) const {
  FUSEBOX_ASSIGN(const Type type, TypeOf(dataset));
  const Turn turn(Lock());
  const std::string place = impl_->name + "dataset " + dataset;
  const Id object = impl_->Object(dataset);
  const Id stored(H5Dget_type(object), H5Tclose);
  const auto bytes = ByteSize(type);
  if (!bytes || *bytes > kMaxTensor) return Invalid(place + ": " + ToString(type) + " is too large");
  const size_t elements = *bytes / (BitsOf(type.dtype) / 8);
  FUSEBOX_TRY(CheckStorage(object, elements * H5Tget_size(stored)).At(place));
  if (const haddr_t at = InPlace(object, stored, type.dtype); at != HADDR_UNDEF && *bytes > 0) {
    const size_t size = impl_->bytes.size();
    if (at > size || *bytes > size - at) return Invalid(place + ": the file ends before its values");
    return impl_->bytes.Slice(at, *bytes);
  }
  bool read = *bytes == 0;
  Buffer out = Buffer::Make(*bytes, [&](std::span<std::byte> to) {
    if (!read) read = H5Dread(object, NativeType(type.dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT, to.data()) >= 0;
  });
  if (!read) return Invalid(place + ": its values cannot be read (a truncated file?)");
  return out;
}

}  // namespace fusebox::keras
