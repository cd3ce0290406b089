// SPDX-License-Identifier: Apache-2.0
// Who can change a plugin's files, and whether they are those that were sealed, pinned or signed.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "host/plugin/crypto.h"
#include "host/plugin/seal.h"
#include "host/plugin/steps.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10U  // since Linux 6.3
#endif

namespace fusebox {
namespace {

namespace fs = std::filesystem;

// In a user namespace, files of users who are not mapped into it, among them often root, show this owner.
bool IsUnmapped(uid_t user) {
  std::ifstream overflow("/proc/sys/kernel/overflowuid");
  std::ifstream map("/proc/self/uid_map");
  uint64_t unmapped = 0;
  uint64_t inside = 0;
  uint64_t outside = 0;
  uint64_t count = 0;
  if (!(overflow >> unmapped) || !(map >> inside >> outside >> count)) return false;
  return user == unmapped && count < UINT32_MAX;
}

// Calls f(path) with the root, and then with one more name of the absolute path each time, until f returns
// true. Slashes side by side count as one. Leaves out what the first `known` characters name.
template <class F>
void ForComponents(const std::string& path, size_t known, const F& f) {
  std::string at = known > 0 ? path.substr(0, known) : "/";
  bool look = known == 0;
  for (size_t begin = known; !look || !f(at); look = true) {
    begin = path.find_first_not_of('/', begin);
    if (begin == std::string::npos) return;
    const size_t end = std::min(path.find('/', begin), path.size());
    if (at.size() > 1) at += '/';
    at.append(path, begin, end - begin);
    begin = end;
  }
}

std::string WithSingleSlashes(std::string path) {
  const auto both = [](char a, char b) { return a == '/' && b == '/'; };
  path.erase(std::unique(path.begin(), path.end(), both), path.end());
  if (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::string Absolute(const std::string& path) {
  return path.starts_with('/') ? path : fs::absolute(path).string();
}

bool IsWithin(const std::string& path, const std::string& folder) {
  if (folder.empty() || !path.starts_with(folder)) return false;
  return folder == "/" || path.size() == folder.size() || path[folder.size()] == '/';
}

std::unexpected<Error> SystemError(const std::string& path) {
  return IoError(path + ": " + std::strerror(errno));
}

Status CopyBytes(int from, int to, const std::string& path) {
  std::vector<char> block(1 << 16);
  for (;;) {
    const ssize_t count = read(from, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(path);
    if (count == 0) return {};
    for (ssize_t done = 0; done < count;) {
      const ssize_t written = write(to, block.data() + done, static_cast<size_t>(count - done));
      if (written < 0 && errno != EINTR) return SystemError("the copy of " + path + " in memory");
      if (written > 0) done += written;
    }
  }
}

int AnonymousFile(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int fd = memfd_create(name.c_str(), flags | MFD_EXEC);
  return fd >= 0 || errno != EINVAL ? fd : memfd_create(name.c_str(), flags);
}

}  // namespace

std::string FolderOfFile(const std::string& path) {
  const std::string absolute = Absolute(path);
  return absolute.substr(0, std::max<size_t>(1, absolute.rfind('/')));
}

// One component of a path. Folders above the plugin's own may belong to another user: in a container, the
// folders of a mounted source tree do.
std::string Owners::WhoReplaces(const std::string& path, const struct stat& status, bool own,
                                const char* what) const {
  if (own && status.st_uid != 0 && status.st_uid != user_ && !IsUnmapped(status.st_uid))
    return "user " + std::to_string(status.st_uid) + " can replace " + what + "; run chown " +
           std::to_string(user_) + " " + path;
  // In a folder with the sticky bit, only owners replace files.
  const bool sticky = S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0;
  // Everything else is refused when it is read.
  const bool file = S_ISREG(status.st_mode) || S_ISDIR(status.st_mode);
  if (file && (status.st_mode & S_IWOTH) != 0 && !sticky)
    return std::string("every user can replace ") + what + "; run chmod o-w " + path;
  return {};
}

// The length of the beginning of the path that was looked at already.
size_t Owners::KnownSafe(const std::string& path, const std::string& own) const {
  if (!IsWithin(path, own)) return 0;
  if (safe_[true].contains(own)) return own.size();
  const std::string above = own.substr(0, own.rfind('/'));
  return safe_[false].contains(above) ? above.size() : 0;
}

std::string Owners::WhoReplacesAny(const std::string& path, const std::string& own, const char* what,
                                   int links) {
  std::string who;
  ForComponents(path, KnownSafe(path, own), [&](const std::string& at) {
    const bool is_own = IsWithin(at, own);
    if (safe_[is_own].contains(at)) return false;
    struct stat status;
    if (lstat(at.c_str(), &status) != 0) return true;  // opening it reports that
    who = WhoReplaces(at, status, is_own, what);
    if (who.empty() && S_ISLNK(status.st_mode) && links > 0) {
      std::error_code error;
      const std::string target = fs::path(at).parent_path() / fs::read_symlink(at, error);
      who = WhoReplacesAny(target, is_own ? WithSingleSlashes(target) : "", what, links - 1);
    }
    if (who.empty()) safe_[is_own].insert(at);
    return !who.empty();
  });
  return who;
}

Status Owners::Check(const std::string& path, const std::string& folder, const char* what) {
  constexpr int kLinks = 40;
  std::string who = WhoReplacesAny(Absolute(path), WithSingleSlashes(Absolute(folder)), what, kLinks);
  if (who.empty()) return {};
  return Invalid(std::move(who));
}

Status Owners::Check(const std::string& manifest) { return Check(manifest, FolderOfFile(manifest)); }

bool IsInstalledByRoot(const Manifest& manifest) {
  std::error_code error;
  const fs::path path = fs::absolute(manifest.path);
  return std::ranges::any_of(InstalledPlugins(), [&](const std::string& folder) {
    Owners owners(0);
    return IsWithin(fs::weakly_canonical(path, error), fs::weakly_canonical(folder, error)) &&
           owners.Check(path, "/") && (manifest.library.empty() || owners.Check(manifest.library, "/"));
  });
}

Result<Buffer> MapShortFile(const std::string& path) {
  constexpr size_t kMost = 1'000'000;
  FUSEBOX_ASSIGN(Buffer file, MapFile(path));
  if (file.size() > kMost)
    return Invalid(path + ": has " + std::to_string(file.size()) + " bytes, more than 1 MB");
  return file;
}

Result<std::string> ReadShortFile(const std::string& path) {
  FUSEBOX_ASSIGN(const Buffer file, MapShortFile(path));
  return std::string(reinterpret_cast<const char*>(file.data()), file.size());
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Result<PrivateCopy> CopyPrivately(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return SystemError(path);
  PrivateCopy copy{Descriptor(AnonymousFile(path)), {}, {}};
  if (copy.file.get() < 0) return SystemError("the copy of " + path + " in memory");
  FUSEBOX_TRY(CopyBytes(file.get(), copy.file.get(), path));
  if (fcntl(copy.file.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0)
    return SystemError("the copy of " + path + " in memory");
  copy.path = "/proc/self/fd/" + std::to_string(copy.file.get());
  FUSEBOX_ASSIGN(copy.sha256, HashOfFile(copy.path));
  return copy;
}

Result<std::string> HashOfFile(const std::string& path) {
  FUSEBOX_ASSIGN(const Buffer bytes, MapFile(path));
  return Sha256(bytes.bytes());
}

LibraryDemand SealedWith(const Manifest& manifest, const std::string& sha256) {
  return {{sha256},
          "it is not the library that its manifest was sealed with; install the plugin again, or, "
          "if this library is yours, run fusebox plugin seal " +
              manifest.path};
}

std::vector<LibraryDemand> DemandsOf(const Manifest& manifest, const Policy& policy) {
  std::vector<LibraryDemand> demands;
  const ManifestLibrary* const chosen = manifest.Chosen();
  if (chosen != nullptr && !chosen->sha256.empty()) demands.push_back(SealedWith(manifest, chosen->sha256));
  for (const Policy::Pin& pin : policy.PinsOf(manifest.id)) {
    const std::string config = pin.source == UserPolicyFile() ? "" : " --config " + pin.source;
    demands.push_back({pin.hashes, "it is not what " + pin.source +
                                       " pins; if you trust it, run fusebox plugin pin " + manifest.id +
                                       config});
  }
  return demands;
}

Status CheckDemands(const std::vector<LibraryDemand>& demands, const std::string& path,
                    const std::string& sha256) {
  for (const LibraryDemand& demand : demands) {
    if (std::find(demand.hashes.begin(), demand.hashes.end(), sha256) == demand.hashes.end())
      return Invalid(path + ": " + demand.otherwise);
  }
  return {};
}

Status CheckManifest(const Manifest& manifest, const Policy& policy, Owners& owners) {
  if (!manifest.library.empty()) FUSEBOX_TRY(owners.Check(manifest.library, FolderOfFile(manifest.path)));
  FUSEBOX_TRY(policy.CheckSignature(manifest));
  if (!manifest.libraries.empty() || policy.PinsOf(manifest.id).empty()) return {};
  FUSEBOX_ASSIGN(const std::string sha256, Sha256(std::as_bytes(std::span(manifest.text))));
  return CheckDemands(DemandsOf(manifest, policy), manifest.path, sha256);
}

}  // namespace fusebox
