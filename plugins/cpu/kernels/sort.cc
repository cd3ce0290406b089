// SPDX-License-Identifier: Apache-2.0
// TOPK_V2, UNIQUE, BUCKETIZE.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/quantized/quant.h"

namespace fusebox::cpu {
namespace {

// The k largest along the last dim in descending order (stable), and their indices (i32). NaN is last.
struct TopK {
  static constexpr std::string_view builtin = "TOPK_V2";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  // A positive scale preserves the order of quantized values.
  static void supports(const Node& n) {
    if (!IsQuantized(n, 0)) return RequireDtype(n, 0, kAllNumbers);
    RequireQuantized(n, 0);
    RequireSameQuant(n, 0);
  }

  static int64_t Count(const Node& n) {
    const Tensor t = n.in(1);
    if (t.dtype() == FBX_I16 && t.is_static() && t.count() == 1) return *t.data<const int16_t>();
    return IntScalar(t, 1);
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2, 2);
    const Tensor in = n.in(0);
    if (!n.in(1).has_value()) out.needs_value(1);
    if (in.rank() < 0) {
      out.unranked(0, in.dtype());
      return out.unranked(1, FBX_I32);
    }
    Shape dims(in);
    if (dims.rank() == 0) Fail("is a scalar", Operand(0));
    int64_t& last = dims[dims.rank() - 1];
    const int64_t k = n.in(1).has_value() ? Count(n) : -1;
    if (n.in(1).has_value() && (k < 0 || (last >= 0 && k > last)))
      Fail("k is " + std::to_string(k) + " of " + std::to_string(last), Operand(1));
    if (last > INT32_MAX) Fail("more elements in a row than an i32 can count", Operand(0));
    last = k;
    out.set(0, in.dtype(), dims);
    out.set(1, FBX_I32, dims);
  }

  struct State {
    uint32_t order;  // scratch: one row of indices per worker
  };
  State prepare(const Node& n, Plan& plan) const {
    return {plan.scratch(
        static_cast<size_t>(Product(n.in(0).dim(-1), 4 * static_cast<int64_t>(plan.threads()))))};
  }

  void invoke(const Node& n, State& state) const {
    const int64_t size = n.in(0).dim(-1);
    const int64_t k = n.out(0).dim(-1);
    if (Count(n) != k) Fail("k differs from the planned one", Operand(1));
    const int64_t rows = CountBefore(Shape(n.in(0)), n.in(0).rank() - 1);
    if (k == 0 || rows == 0) return;
    Dispatch(kAllNumbers, n.in(0).dtype(), [&]<class T>() {
      ParallelFor(n.host(), static_cast<size_t>(rows), Grain(8 * size),
                  [&](size_t begin, size_t end, uint32_t worker) {
                    int32_t* order = n.scratch<int32_t>(state.order) + worker * size;
                    for (int64_t row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row) {
                      const T* x = n.in(0).data<const T>() + row * size;
                      std::iota(order, order + size, 0);
                      std::partial_sort(order, order + k, order + size,
                                        [x](int32_t a, int32_t b) { return Before(x[a], a, x[b], b); });
                      for (int64_t i = 0; i < k; ++i) {
                        n.out(0).data<T>()[row * k + i] = x[order[i]];
                        n.out(1).data<int32_t>()[row * k + i] = order[i];
                      }
                    }
                  });
    });
  }
  template <class T>
  static bool Before(T a, int32_t at_a, T b, int32_t at_b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a) || std::isnan(b)) return std::isnan(a) == std::isnan(b) ? at_a < at_b : std::isnan(b);
    }
    return a != b ? a > b : at_a < at_b;
  }
};

// The distinct elements of a list in order of appearance, and the index of each element's value.
struct Unique {
  static constexpr std::string_view builtin = "UNIQUE";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireDtype(n, 0, kAllNumbers); }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1, 2);
    const Tensor in = n.in(0);
    if (in.rank() >= 0 && in.rank() != 1)
      Fail("expected a list, got rank " + std::to_string(in.rank()), Operand(0));
    const fbx_dtype index = n.attrs().dtype("idx_out_type", FBX_I32);
    if (index != FBX_I32 && index != FBX_I64)
      Fail("cannot be " + std::string(dtype_name(index)), "attr idx_out_type");
    if (in.rank() == 1 && in.dim(0) > INT32_MAX) Fail("more than 2^31 elements", Operand(0));
    out.set(0, in.dtype(), {-1});
    out.set(1, index, {in.rank() < 0 ? -1 : in.dim(0)});
  }

  struct State {
    uint32_t slots;   // scratch: an open-addressing hash table of indices into `first`; -1: free
    uint32_t first;   // scratch: first position of each distinct element
    size_t capacity;  // a power of two, at least twice the elements
  };
  State prepare(const Node& n, Plan& plan) const {
    const auto count = static_cast<size_t>(n.in(0).count());
    const size_t capacity = std::bit_ceil(2 * count + 1);
    return {plan.scratch(capacity * sizeof(int32_t)), plan.scratch(count * sizeof(int32_t)), capacity};
  }

  template <class T>
  static size_t Hash(T x) {
    if (x == T(0)) return 0;  // 0 and -0
    uint64_t bits = 0;
    std::memcpy(&bits, &x, sizeof(T));
    bits *= 0x9E3779B97F4A7C15u;
    return static_cast<size_t>(bits ^ bits >> 32);
  }

  void invoke(const Node& n, State& state) const {
    Dispatch(kAllNumbers, n.in(0).dtype(), [&]<class T>() {
      Dispatch(kIndices, n.out(1).dtype(), [&]<class I>() {
        const T* x = n.in(0).data<const T>();
        auto* slots = n.scratch<int32_t>(state.slots);
        auto* first = n.scratch<int32_t>(state.first);
        std::fill_n(slots, state.capacity, -1);
        int32_t distinct = 0;
        const auto count = static_cast<int32_t>(n.in(0).count());
        for (int32_t i = 0; i < count; ++i) {
          size_t at = Hash(x[i]) & (state.capacity - 1);
          while (slots[at] >= 0 && x[first[slots[at]]] != x[i]) at = (at + 1) & (state.capacity - 1);
          if (slots[at] < 0) {
            slots[at] = distinct;
            first[distinct++] = i;
          }
          n.out(1).data<I>()[i] = static_cast<I>(slots[at]);
        }
        const Shape size{distinct};
        T* values = n.resize(0, size).data<T>();
        for (int32_t i = 0; i < distinct; ++i) values[i] = x[first[i]];
      });
    });
  }
};

// The number of (ascending) boundaries that are not above an element. NaN is above all.
struct Bucketize {
  static constexpr std::string_view builtin = "BUCKETIZE";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  explicit Bucketize(const Node& n) {
    const auto boundaries = n.attrs().f64s("boundaries");
    boundaries_.assign(boundaries.begin(), boundaries.end());
    if (!std::is_sorted(boundaries_.begin(), boundaries_.end())) Fail("are not ascending", "attr boundaries");
  }
  static void supports(const Node& n) { RequireDtype(n, 0, kNumbers); }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1);
    out.like(0, n.in(0), FBX_I32);
  }
  void invoke(const Node& n) const {
    Dispatch(kNumbers, n.in(0).dtype(), [&]<class T>() {
      std::transform(n.in(0).data<const T>(), n.in(0).data<const T>() + n.in(0).count(),
                     n.out(0).data<int32_t>(), [&](T x) {
                       return static_cast<int32_t>(
                           std::upper_bound(boundaries_.begin(), boundaries_.end(), static_cast<double>(x)) -
                           boundaries_.begin());
                     });
    });
  }

 private:
  std::vector<double> boundaries_;
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<TopK>, &kernel_of<Unique>, &kernel_of<Bucketize>};

}  // namespace

constinit const KernelTable kSortKernels = kTable;

}  // namespace fusebox::cpu
