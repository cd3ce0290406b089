// SPDX-License-Identifier: Apache-2.0
#include "tests/allocations/failing.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace fusebox::allocations {
namespace {

thread_local bool armed = false, failed = false;
thread_local uint64_t count = 0, fail_at = 0;
thread_local Then then_what = Then::kRecover;
thread_local int64_t living = 0;
thread_local int site_depth = 0;
thread_local std::vector<uint64_t>* sites = nullptr;
thread_local std::unordered_map<uint64_t, bool>* known = nullptr;

// Libraries that do not survive an exception out of operator new.
bool IsForeign(const void* caller) {
  Dl_info info;
  if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return false;
  const std::string_view file = info.dli_fname;
  return file.find("libprotobuf") != file.npos || file.find("libabsl") != file.npos;
}

// Code of libraries that does not survive a failure: the JSON library allocates in its destructor, which may
// not throw, copies of protobuf messages leak, and valijson does not look at what its allocator returns.
struct Code {
  uintptr_t begin, end;
};
std::vector<Code>* unsafe_code = nullptr;

// Symbols of a program are only in its file.
void FindUnsafeCode() {
  unsafe_code = new std::vector<Code>;
  Dl_info self;
  FILE* const symbols =
      popen(("nm -SC --defined-only /proc/" + std::to_string(getpid()) + "/exe").c_str(), "r");
  if (symbols == nullptr || dladdr(reinterpret_cast<void*>(&FindUnsafeCode), &self) == 0) return;
  const auto base = reinterpret_cast<uintptr_t>(self.dli_fbase);
  char line[4096];
  while (std::fgets(line, sizeof line, symbols) != nullptr) {
    uintptr_t begin = 0, size = 0;
    const bool unsafe = std::ranges::any_of(
        std::initializer_list<const char*>{"json_value::destroy(",
                                           " valijson::", " fusebox::tf::", " google::protobuf::"},
        [&](const char* name) { return std::strstr(line, name) != nullptr; });
    if (unsafe && std::sscanf(line, "%lx %lx", &begin, &size) == 2)
      unsafe_code->push_back({base + begin, base + begin + size});
  }
  pclose(symbols);
}

bool InUnsafeCode() {
  void* frames[32];
  const int found = unsafe_code == nullptr ? 0 : backtrace(frames, 32);
  return std::any_of(frames, frames + found, [](void* frame) {
    // Its constructor calls functions of libstdc++ that may not throw.
    Dl_info info;
    if (dladdr(frame, &info) != 0 && info.dli_sname != nullptr &&
        std::string_view(info.dli_sname).find("18directory_iterator") != std::string_view::npos)
      return true;
    const auto at = reinterpret_cast<uintptr_t>(frame);
    return std::ranges::any_of(*unsafe_code,
                               [at](const Code& code) { return at > code.begin && at <= code.end; });
  });
}

void NoteSite() {
  void* frames[24];
  const int found = backtrace(frames, std::min(24, site_depth + 3));
  uint64_t hash = 1469598103934665603u;
  for (int i = 3; i < found; ++i) hash = (hash ^ reinterpret_cast<uint64_t>(frames[i])) * 1099511628211u;
  if (known->emplace(hash, true).second) sites->push_back(count);
}

}  // namespace

bool Fails(const void* caller) {
  if (!armed) return false;
  armed = false;  // what follows may allocate
  bool fails = false;
  if (!IsForeign(caller)) {
    ++count;
    if (sites != nullptr) NoteSite();
    fails = fail_at != 0 && (count == fail_at || (count > fail_at && then_what == Then::kKeepFailing));
    fails = fails && !InUnsafeCode();
    failed = failed || fails;
  }
  armed = true;
  return fails;
}

void Note(int64_t change) { living += change; }

void Arm(uint64_t fail, Then then) {
#ifdef FUSEBOX_HAS_SYMBOLS
  if (unsafe_code == nullptr) FindUnsafeCode();
#endif
  count = 0;
  fail_at = fail;
  then_what = then;
  failed = false;
  armed = true;
}

uint64_t Disarm() {
  armed = false;
  return count;
}

bool Failed() { return failed; }
int64_t Living() { return living; }

void ArmSites(int depth) {
  void* frame = nullptr;
  backtrace(&frame, 1);  // loads its library
  site_depth = depth;
  sites = new std::vector<uint64_t>;
  known = new std::unordered_map<uint64_t, bool>;
  Arm(0);
}

std::vector<uint64_t> DisarmSites() {
  Disarm();
  std::vector<uint64_t> found = *sites;
  delete sites;
  delete known;
  sites = nullptr;
  known = nullptr;
  return found;
}

}  // namespace fusebox::allocations

namespace {

void* New(std::size_t size, std::size_t alignment, const void* caller) {
  if (fusebox::allocations::Fails(caller)) return nullptr;
  const bool was_armed = std::exchange(fusebox::allocations::armed, false);  // malloc may be counted too
  void* block = nullptr;
  const std::size_t wanted = size == 0 ? 1 : size;
  if (alignment == 0) block = std::malloc(wanted);
  else block = std::aligned_alloc(alignment, (wanted + alignment - 1) / alignment * alignment);
  fusebox::allocations::armed = was_armed;
  if (block != nullptr) fusebox::allocations::Note(1);
  return block;
}

void* NewOrThrow(std::size_t size, std::size_t alignment, const void* caller) {
  if (void* const block = New(size, alignment, caller)) return block;
  throw std::bad_alloc();
}

void Delete(void* block) {
  if (block == nullptr) return;
  fusebox::allocations::Note(-1);
  std::free(block);
}

}  // namespace

#define FUSEBOX_CALLER __builtin_return_address(0)
void* operator new(std::size_t size) { return NewOrThrow(size, 0, FUSEBOX_CALLER); }
void* operator new[](std::size_t size) { return NewOrThrow(size, 0, FUSEBOX_CALLER); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return NewOrThrow(size, static_cast<std::size_t>(alignment), FUSEBOX_CALLER);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return NewOrThrow(size, static_cast<std::size_t>(alignment), FUSEBOX_CALLER);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return New(size, 0, FUSEBOX_CALLER); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return New(size, 0, FUSEBOX_CALLER);
}
void operator delete(void* block) noexcept { Delete(block); }
void operator delete[](void* block) noexcept { Delete(block); }
void operator delete(void* block, std::size_t) noexcept { Delete(block); }
void operator delete[](void* block, std::size_t) noexcept { Delete(block); }
void operator delete(void* block, std::align_val_t) noexcept { Delete(block); }
void operator delete[](void* block, std::align_val_t) noexcept { Delete(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { Delete(block); }
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept { Delete(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { Delete(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { Delete(block); }
