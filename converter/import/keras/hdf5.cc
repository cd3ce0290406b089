// SPDX-License-Identifier: Apache-2.0
#include "converter/import/keras/hdf5.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "converter/import/keras/hdf5_calls.h"
#include "converter/import/keras/hdf5_check.h"

namespace fusebox::keras {
namespace {

constexpr size_t kMaxPieces = 1 << 20;  // of a list of texts

std::recursive_mutex& Mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}
using LibraryLock = std::lock_guard<std::recursive_mutex>;

void Prepare() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // it would print to stderr
  H5PLset_loading_state(0);
}

}  // namespace

struct Hdf5File::Impl {
  std::string name;  // begins messages: empty, or "name: "
  Buffer bytes;      // of the file
  hid_t file = -1;

  ~Impl() {
    if (file >= 0) H5Fclose(file);
  }

  // Opens an object by its path; every component must be a hard link.
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
  const LibraryLock lock(Mutex());
  impl_.reset();
}

Result<Hdf5File> Hdf5File::Open(const std::string& path) {
  auto impl = std::make_unique<Impl>();
  FUSEBOX_ASSIGN(impl->bytes, MapFile(path));
  FUSEBOX_TRY(CheckHdf5(impl->bytes, path));
  const LibraryLock lock(Mutex());
  Prepare();
  impl->file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (impl->file < 0) return Invalid("a broken HDF5 file (truncated?)");
  return Hdf5File(std::move(impl));
}

Result<Hdf5File> Hdf5File::FromBytes(Buffer bytes, std::string name) {
  FUSEBOX_TRY(CheckHdf5(bytes, {}).At(name.empty() ? "HDF5" : name));
  const LibraryLock lock(Mutex());
  Prepare();
  auto impl = std::make_unique<Impl>();
  impl->name = name.empty() ? name : name + ": ";
  impl->bytes = std::move(bytes);
  const Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  // The core driver reads the file from memory and writes nothing back.
  if (!access.ok() || H5Pset_fapl_core(access, size_t{1} << 20, 0) < 0 ||
      H5Pset_file_image(access, const_cast<std::byte*>(impl->bytes.data()), impl->bytes.size()) < 0)
    return Invalid(impl->name + "its " + std::to_string(impl->bytes.size()) + " bytes are not an HDF5 file");
  static int number = 0;  // HDF5 treats files with equal names as one file
  const std::string label = "fusebox-image-" + std::to_string(++number);
  impl->file = H5Fopen(label.c_str(), H5F_ACC_RDONLY, access);
  if (impl->file < 0) return Invalid(impl->name + "a broken HDF5 file (truncated?)");
  return Hdf5File(std::move(impl));
}

bool Hdf5File::IsGroup(const std::string& path) const {
  const LibraryLock lock(Mutex());
  return impl_->Is(path, H5I_GROUP);
}
bool Hdf5File::IsDataset(const std::string& path) const {
  const LibraryLock lock(Mutex());
  return impl_->Is(path, H5I_DATASET);
}

Result<std::vector<std::string>> Hdf5File::Children(const std::string& group) const {
  const LibraryLock lock(Mutex());
  const Id object = impl_->Object(group);
  if (!object.ok()) return NotFound(impl_->name + "no group " + group);
  return Names(object).At(impl_->name + "group " + group);
}

Result<std::vector<std::string>> Hdf5File::Texts(const std::string& group,
                                                 const std::string& attribute) const {
  const LibraryLock lock(Mutex());
  const Id object = impl_->Object(group);
  if (!object.ok()) return NotFound(impl_->name + "no group " + group);
  std::vector<std::string> out;
  const bool whole = H5Aexists(object, attribute.c_str()) > 0;
  for (size_t piece = 0; piece < kMaxPieces; ++piece) {
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
  const LibraryLock lock(Mutex());
  const Id object = impl_->Object(dataset);
  if (!object.ok() || H5Iget_type(object) != H5I_DATASET)
    return NotFound(impl_->name + "no dataset " + dataset);
  return keras::TypeOf(object).At(impl_->name + "dataset " + dataset);
}

Result<Buffer> Hdf5File::Read(const std::string& dataset) const {
  FUSEBOX_ASSIGN(const Type type, TypeOf(dataset));
  const LibraryLock lock(Mutex());
  const Id object = impl_->Object(dataset);
  return Values(object, type, impl_->bytes).At(impl_->name + "dataset " + dataset);
}

}  // namespace fusebox::keras
