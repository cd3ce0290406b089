// SPDX-License-Identifier: Apache-2.0
#include "converter/import/keras/hdf5_trial.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>

#include "converter/import/keras/hdf5_calls.h"

namespace fusebox::keras {
namespace {

constexpr int kMaxDepth = 64;
constexpr rlim_t kLargestValues = rlim_t{1}
                                  << 33;  // more than a dataset may have, and what is unpacked beside it
constexpr char kDone = 'd';

// What the library may take for itself: an image of the file, and what it keeps of groups and attributes.
rlim_t Allowed(const Buffer& file) { return (rlim_t{1} << 29) + 2 * rlim_t{file.size()}; }

struct Walk {
  const Buffer& file;
  bool values;       // of datasets, too
  size_t left;       // members: hard links may lead back to a group that is being read
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

// Bytes of private memory that this process has mapped.
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

// Whether the library stays within what it may take. A limit alone does not tell: it goes on where memory is refused.
bool Survives(const std::function<hid_t()>& open, Walk walk) {
  const rlim_t before = Peak();
  {
    const Id opened(open(), H5Fclose);
    const Id root(opened.ok() ? H5Oopen(opened, "/", H5P_DEFAULT) : -1, H5Oclose);
    if (root.ok()) ReadAll(root, kMaxDepth, walk);
  }
  return Peak() - before <= walk.taken + Allowed(walk.file) / 2;
}

[[noreturn]] void ReadInChild(const std::function<hid_t()>& open, const Buffer& file, int done) {
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGXCPU}) signal(number, SIG_DFL);
  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null >= 0) dup2(null, STDERR_FILENO);
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_CPU, 20 + file.size() / (rlim_t{1} << 26));
  const rlim_t mapped = Mapped();
  const size_t members = file.size() / 16;  // one takes more than that
  bool survives = true;
  for (const bool values : {false, true}) {
    Limit(RLIMIT_DATA, mapped + Allowed(file) + (values ? kLargestValues : 0));
    survives = survives && Survives(open, {file, values, members});
  }
  if (survives) survives = write(done, &kDone, 1) == 1;
  _exit(survives ? 0 : 1);
}

}  // namespace

Status TryReading(const std::function<hid_t()>& open, const Buffer& file) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t child = fork();
  if (child == 0) ReadInChild(open, file, ends[1]);
  close(ends[1]);
  char said = child < 0 ? kDone : 0;
  if (child > 0) {
    while (read(ends[0], &said, 1) < 0 && errno == EINTR) {
    }
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  close(ends[0]);
  if (said == kDone) return {};
  return Invalid(
      "a broken HDF5 file: the HDF5 library crashes, finds no end or takes too much memory when it reads it");
}

}  // namespace fusebox::keras
