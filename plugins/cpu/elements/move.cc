// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/elements/move.h"

#include <algorithm>

namespace fusebox::cpu {
namespace {

struct Box {
  Shape dims, src, dst;

  void Push(int64_t dim, int64_t from, int64_t to) {
    dims.push_back(dim);
    src.push_back(from);
    dst.push_back(to);
  }
};

// Drops dims of size 1 and merges adjacent dims that are contiguous on both sides.
Box Simplified(const Shape& dims, const Shape& src, const Shape& dst) {
  Box box;
  for (int i = 0; i < dims.rank(); ++i) {
    if (dims[i] == 1) continue;
    const int last = box.dims.rank() - 1;
    if (last >= 0 && box.src[last] == src[i] * dims[i] && box.dst[last] == dst[i] * dims[i]) {
      box.dims[last] *= dims[i];
      box.src[last] = src[i];
      box.dst[last] = dst[i];
    } else {
      box.Push(dims[i], src[i], dst[i]);
    }
  }
  return box;
}

// The box without dim `i`.
Box Without(const Box& box, int i) {
  Box rest;
  for (int k = 0; k < box.dims.rank(); ++k)
    if (k != i) rest.Push(box.dims[k], box.src[k], box.dst[k]);
  return rest;
}

// Calls f(source, destination) for all elements of the outer index space.
template <class F>
void ForOuter(const fbx_host* host, const Box& outer, int64_t inner, const F& f) {
  const int last = outer.dims.rank() - 1;
  if (last < 0) return f(0, 0);
  const int64_t rows = outer.dims[last];
  const int64_t from_step = outer.src[last];
  const int64_t to_step = outer.dst[last];
  const Box rest = Without(outer, last);
  ParallelFor(host, static_cast<size_t>(Count(outer.dims)), Grain(inner),
              [&](size_t begin, size_t end, uint32_t) {
                Walk<2> walk(rest.dims, {rest.src, rest.dst});
                auto at = static_cast<int64_t>(begin);
                walk.Seek(at / rows);
                for (int64_t first = at % rows; at < static_cast<int64_t>(end); first = 0, walk.Next()) {
                  const int64_t count = std::min(rows - first, static_cast<int64_t>(end) - at);
                  int64_t from = walk.offset(0) + first * from_step;
                  int64_t to = walk.offset(1) + first * to_step;
                  for (int64_t i = 0; i < count; ++i, from += from_step, to += to_step) f(from, to);
                  at += count;
                }
              });
}

// Rows contiguous on both sides.
void CopyRows(const fbx_host* host, size_t width, const Box& box, const std::byte* src, std::byte* dst) {
  const int last = box.dims.rank() - 1;
  const auto w = static_cast<int64_t>(width);
  const size_t bytes = static_cast<size_t>(box.dims[last]) * width;
  ForOuter(host, Without(box, last), box.dims[last],
           [=](int64_t from, int64_t to) { CopyBytes(dst + to * w, src + from * w, bytes); });
}

// The destination is contiguous along the last dim, the source along `along`. Square blocks use whole cache
// lines of both; blocks of few columns have long rows.
template <class T>
void CopyTransposed(const fbx_host* host, const Box& box, int along, const T* src, T* dst) {
  constexpr int64_t kBlock = 16;
  constexpr int64_t kLong = 256;
  const int last = box.dims.rank() - 1;
  const int64_t columns = box.dims[last];
  const int64_t from_step = box.src[last];
  const int64_t rows = box.dims[along];
  const int64_t to_step = box.dst[along];
  Box outer = Without(Without(box, last), along);
  const bool few = columns < kBlock;
  const int64_t block = few ? kLong : kBlock;
  const int64_t blocks = (rows + block - 1) / block;
  outer.Push(blocks, block, block * to_step);
  // The step number determines the block, because blocks are the innermost outer dim.
  ParallelFor(host, static_cast<size_t>(Count(outer.dims)), Grain(columns * block),
              [&](size_t begin, size_t end, uint32_t) {
                Walk<2> walk(outer.dims, {outer.src, outer.dst});
                walk.Seek(static_cast<int64_t>(begin));
                for (size_t i = begin; i < end; ++i, walk.Next()) {
                  const int64_t height = std::min(block, rows - static_cast<int64_t>(i) % blocks * block);
                  for (int64_t c0 = 0; c0 < columns; c0 += kBlock) {
                    const int64_t c1 = std::min(columns, c0 + kBlock);
                    const T* from = src + walk.offset(0);
                    T* to = dst + walk.offset(1);
                    if (few) {
                      for (int64_t c = 0; c < columns; ++c)
                        for (int64_t r = 0; r < height; ++r) to[r * to_step + c] = from[c * from_step + r];
                      break;
                    }
                    for (int64_t r = 0; r < height; ++r, to += to_step)
                      for (int64_t c = c0; c < c1; ++c) to[c] = from[c * from_step + r];
                  }
                }
              });
}

template <class T>
void CopyStrided(const fbx_host* host, const Box& box, const T* src, T* dst) {
  const int last = box.dims.rank() - 1;
  const int64_t count = box.dims[last];
  const int64_t from_step = box.src[last];
  const int64_t to_step = box.dst[last];
  ForOuter(host, Without(box, last), count, [&](int64_t from, int64_t to) {
    const T* x = src + from;
    T* y = dst + to;
    if (to_step == 1 && from_step == 0) {
      std::fill(y, y + count, *x);
    } else {
      for (int64_t i = 0; i < count; ++i) y[i * to_step] = x[i * from_step];
    }
  });
}

}  // namespace

void CopyBox(const fbx_host* host, size_t width, const Shape& dims, const void* src, const Shape& src_strides,
             void* dst, const Shape& dst_strides) {
  if (Count(dims) == 0) return;
  Box box = Simplified(dims, src_strides, dst_strides);
  if (box.dims.rank() == 0) box.Push(1, 1, 1);
  const int last = box.dims.rank() - 1;
  if (box.src[last] == 1 && box.dst[last] == 1)
    return CopyRows(host, width, box, static_cast<const std::byte*>(src), static_cast<std::byte*>(dst));
  int along = -1;
  for (int i = 0; i < last; ++i)
    if (box.src[i] == 1) along = i;
  DispatchWidth(width, [&]<class T>() {
    if (along >= 0 && box.dst[last] == 1)
      CopyTransposed(host, box, along, static_cast<const T*>(src), static_cast<T*>(dst));
    else CopyStrided(host, box, static_cast<const T*>(src), static_cast<T*>(dst));
  });
}

void CopyEach(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step, int64_t count,
              size_t bytes) {
  const auto each = [&](const auto& copy) {
    for (int64_t i = 0; i < count; ++i) copy(to + i * to_step, from + i * from_step);
  };
  const auto ends = [&]<size_t kBytes>() {
    each([bytes](std::byte* t, const std::byte* f) { CopyEnds<kBytes>(t, f, bytes); });
  };
  if (bytes > 32 || bytes < 2)
    return each([bytes](std::byte* t, const std::byte* f) { std::memcpy(t, f, bytes); });
  if (bytes >= 16) return ends.template operator()<16>();
  if (bytes >= 8) return ends.template operator()<8>();
  if (bytes >= 4) return ends.template operator()<4>();
  ends.template operator()<2>();
}

void FillElements(size_t width, const void* value, void* dst, int64_t count) {
  DispatchWidth(width, [&]<class T>() {
    T element;
    std::memcpy(&element, value, sizeof(T));
    std::fill_n(static_cast<T*>(dst), count, element);
  });
}

const void* ZeroOf(Tensor t, Bits128& storage) {
  storage = {};
  const fbx_quant* q = t.quant();
  // Little-endian: the low bytes of the zero point are its value in narrower integers.
  if (!IsPlain(t.dtype()) && q && q->kind == FBX_QUANT_PER_TENSOR && q->count > 0)
    storage.low = static_cast<uint64_t>(q->zero_points[0]);
  return &storage;
}

}  // namespace fusebox::cpu
