// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "host/base/pages.h"
#include "host/eval/budget.h"
#include "host/eval/eval.h"

namespace fusebox {

namespace {

// Precedes the data of a block.
struct Taken {
  MemoryBudget* budget;
  size_t bytes;
  bool mapped;  // from the system, not from malloc
};

void Free(void* memory) {
  if (memory == nullptr) return;
  const Taken taken = *static_cast<Taken*>(memory);
  if (taken.mapped) munmap(memory, taken.bytes);
  else std::free(memory);
  if (taken.budget != nullptr) taken.budget->Return(taken.bytes);
}

// Zeros that are created when they are touched. From its heap, calloc clears what was in use before.
void* Map(size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void* Allocate(size_t bytes, bool zeroed) {
  constexpr size_t kMapped = size_t{128} << 10;  // as glibc begins with
  const bool mapped = zeroed && bytes >= kMapped;
  MemoryBudget* const budget = MemoryBudget::Current();
  if (budget != nullptr) budget->Take(bytes);
  // Faster than aligned_alloc.
  void* const memory = mapped ? Map(bytes) : zeroed ? std::calloc(bytes, 1) : std::malloc(bytes);
  if (memory != nullptr) {
    PreferHugePages(memory, bytes);
    return new (memory) Taken{budget, bytes, mapped};
  }
  if (budget != nullptr) budget->Return(bytes);
  throw NoMemory(fmt::format("{} bytes are needed, more than the system provides", bytes));
}

}  // namespace

void Block::Free() {
  fusebox::Free(std::exchange(memory_, nullptr));
  data_ = nullptr;
  capacity_ = 0;
}

bool Block::Reserve(size_t bytes, bool zeroed) {
  if (data_ != nullptr && bytes <= capacity_) return false;
  Free();
  constexpr size_t kAround = sizeof(Taken) + kAlignment + kOverread;
  if (bytes > SIZE_MAX - kAround) throw std::bad_alloc();
  memory_ = Allocate(bytes + kAround, zeroed);
  const auto address = reinterpret_cast<uintptr_t>(memory_) + sizeof(Taken);
  data_ = static_cast<std::byte*>(memory_) + sizeof(Taken) + (kAlignment - address % kAlignment) % kAlignment;
  if (!zeroed) std::memset(data_ + bytes, 0, kOverread);  // touches a page, and a huge one takes its time
  capacity_ = bytes;
  return true;
}

bool Growable::Resize(fbx_tensor& tensor, const int64_t* dims, int32_t rank, size_t bytes, bool zeroed) {
  const bool moved = memory_.Reserve(bytes, zeroed);
  dims_.assign(dims, dims + rank);
  dims_.reserve(1);  // non-null dims for a scalar too
  tensor.dims = dims_.data();
  tensor.rank = rank;
  tensor.data = memory_.data();
  tensor.bytes = bytes;
  return moved;
}

void Growable::Assign(fbx_tensor& tensor, const fbx_tensor& from) {
  tensor.dtype = from.dtype;
  Resize(tensor, from.dims, from.rank, from.bytes);
  if (from.bytes > 0 && from.data != tensor.data) std::memcpy(tensor.data, from.data, from.bytes);
}

std::optional<size_t> StorageSize(const Type& type) {
  if (type.dtype != DType::kResource) return ByteSize(type);
  const auto count = type.shape.element_count();
  if (!count || *count > 1024) return std::nullopt;
  return static_cast<size_t>(*count) * sizeof(int64_t);
}

Type TypeOf(const fbx_tensor& tensor) {
  const auto dtype = static_cast<DType>(tensor.dtype);
  if (tensor.rank < 0) return {dtype, Shape()};
  return {dtype, Shape::Of({tensor.dims, static_cast<size_t>(tensor.rank)})};
}

}  // namespace fusebox
