// SPDX-License-Identifier: Apache-2.0
// fusebox-hdf5-check: reads the HDF5 file on standard input and prints one byte if the HDF5 library survives
// within its memory and CPU time limits. The converter runs it before it reads a file itself
// (converter/import/keras/hdf5_check.h).
#include <hdf5.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "converter/import/keras/hdf5_calls.h"
#include "converter/import/keras/hdf5_check.h"

namespace fusebox::keras {
namespace {

constexpr int kMaxDepth = 64;
// Above the maximum size of a dataset, plus memory to decompress it.
constexpr rlim_t kLargestValues = rlim_t{1} << 33;

// Memory for the library itself: an image of the file, its groups and attributes.
rlim_t Allowed(const Buffer& file) { return (rlim_t{1} << 29) + 2 * rlim_t{file.size()}; }

struct Walk {
  const Buffer& file;
  bool values;       // also read datasets
  size_t left;       // remaining members: hard links may form cycles
  rlim_t taken = 0;  // bytes of the largest values
};

void ReadAll(hid_t object, int depth, Walk& walk) {
  const auto read_attribute = [](hid_t owner, const char* name, const H5A_info_t*, void*) -> herr_t {
    const Id attribute(H5Aopen(owner, name, H5P_DEFAULT), H5Aclose);
    if (attribute.ok()) (void)Strings(attribute);
    return 0;
  };
  H5Aiterate(object, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, read_attribute, nullptr);
  if (H5Iget_type(object) == H5I_DATASET) {
    const auto type = TypeOf(object);
    if (!type.has_value() || !walk.values) return;
    walk.taken = std::max(walk.taken, rlim_t{ByteSize(*type).value_or(0)});
    (void)Values(object, *type, walk.file);
    return;
  }
  if (H5Iget_type(object) != H5I_GROUP || depth == 0) return;
  const auto names = Names(object);
  if (!names.has_value()) return;
  for (const std::string& name : *names) {
    H5L_info_t link;
    if (walk.left == 0 || H5Lget_info(object, name.c_str(), &link, H5P_DEFAULT) < 0) return;
    --walk.left;
    if (link.type != H5L_TYPE_HARD) continue;
    const Id member(H5Oopen(object, name.c_str(), H5P_DEFAULT), H5Oclose);
    if (member.ok()) ReadAll(member, depth - 1, walk);
  }
}

void Limit(int resource, rlim_t value) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_max, value);
  setrlimit(resource, &limit);
}

// Bytes of private mapped memory of this process.
rlim_t Mapped() {
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  for (int field = 0; field < 6; ++field) statm >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

rlim_t Peak() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<rlim_t>(usage.ru_maxrss) * 1024;
}

// Returns whether the library stays within its limits. A resource limit alone does not show it: the library
// continues when an allocation fails.
bool Survives(Walk walk) {
  const rlim_t before = Peak();
  {
    const Id opened(H5Fopen("/proc/self/fd/0", H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    const Id root(opened.ok() ? H5Oopen(opened, "/", H5P_DEFAULT) : -1, H5Oclose);
    if (root.ok()) ReadAll(root, kMaxDepth, walk);
  }
  return Peak() - before <= walk.taken + Allowed(walk.file) / 2;
}

int Check() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // disables messages to stderr
  H5PLset_loading_state(0);
  const Result<Buffer> file = MapFile("/proc/self/fd/0");
  if (!file) return 1;
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_CPU, SecondsToRead(file->size()));
  const rlim_t mapped = Mapped();
  const size_t members = file->size() / 16;  // a member takes more than 16 bytes
  for (const bool values : {false, true}) {
    Limit(RLIMIT_DATA, mapped + Allowed(*file) + (values ? kLargestValues : 0));
    if (!Survives({*file, values, members})) return 1;
  }
  return write(STDOUT_FILENO, "d", 1) == 1 ? 0 : 1;
}

}  // namespace
}  // namespace fusebox::keras

int main() { return fusebox::keras::Check(); }
