// SPDX-License-Identifier: Apache-2.0
// RFFT2D, COMPLEX_ABS, REAL, IMAG.
#include <algorithm>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/elements/fourier.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

fbx_dtype ComplexOf(fbx_dtype real) { return real == FBX_F64 ? FBX_COMPLEX128 : FBX_COMPLEX64; }

// The last two dims of the input, cropped or zero-padded to the lengths in operand 1, which are powers of
// two. The last dim of the result is length / 2 + 1.
struct Rfft2D {
  static constexpr std::string_view builtin = "RFFT2D";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  struct State {
    std::vector<std::complex<float>> rows, columns;
    std::vector<std::complex<double>> wide_rows, wide_columns;
    uint32_t slot = 0;  // scratch: one column per worker
    uint32_t workers = 1;

    template <class T>
    const std::complex<T>* RootsOf(bool of_rows) const {
      if constexpr (std::is_same_v<T, double>) return (of_rows ? wide_rows : wide_columns).data();
      else return (of_rows ? rows : columns).data();
    }
  };
  struct Lengths {
    int64_t rows, columns;
  };

  static void supports(const Node& n) { RequireDtype(n, 0, kFloats); }
  static Lengths LengthsOf(const Node& n) {
    const Shape lengths = IntList(n.in(1), 1);
    if (lengths.rank() != 2) Fail("expected two lengths", Operand(1));
    for (const int64_t l : lengths)
      if (!IsPowerOfTwo(l) || l > 1 << 24)
        Fail("a length of " + std::to_string(l) + ", which is not a supported power of two", Operand(1));
    return {lengths[0], lengths[1]};
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    const fbx_dtype dtype = ComplexOf(n.in(0).dtype());
    const bool known = n.in(1).has_value();
    if (!known) out.needs_value(1);
    const Lengths lengths = known ? LengthsOf(n) : Lengths{-1, -1};
    if (n.in(0).rank() < 0) return out.unranked(0, dtype);
    Shape dims(n.in(0));
    if (dims.rank() < 2) Fail("has less than two dimensions", Operand(0));
    dims[dims.rank() - 2] = lengths.rows;
    dims[dims.rank() - 1] = known ? lengths.columns / 2 + 1 : -1;
    out.set(0, dtype, dims);
  }

  State prepare(const Node& n, Plan& plan) const {
    const Lengths lengths = LengthsOf(n);
    State state;
    const bool wide = n.in(0).dtype() == FBX_F64;
    if (wide) {
      state.wide_rows = Roots<double>(lengths.columns);
      state.wide_columns = Roots<double>(lengths.rows);
    } else {
      state.rows = Roots<float>(lengths.columns);
      state.columns = Roots<float>(lengths.rows);
    }
    state.workers = std::max(1u, plan.threads());
    const size_t each = wide ? sizeof(std::complex<double>) : sizeof(std::complex<float>);
    state.slot = plan.scratch(static_cast<size_t>(lengths.rows) * each * state.workers);
    return state;
  }

  void invoke(const Node& n, const State& state) const {
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() { Run<T>(n, state); });
  }

 private:
  template <class T>
  static void Run(const Node& n, const State& state) {
    const Lengths lengths = LengthsOf(n);
    const Shape in(n.in(0));
    const int64_t height = in[in.rank() - 2];
    const int64_t width = in[in.rank() - 1];
    const int64_t half = lengths.columns / 2 + 1;
    const int64_t images = CountBefore(in, in.rank() - 2);
    const auto run = [&](size_t begin, size_t end, uint32_t worker) {
      std::complex<T>* column = n.scratch<std::complex<T>>(state.slot) + worker * lengths.rows;
      for (int64_t image = static_cast<int64_t>(begin); image < static_cast<int64_t>(end); ++image) {
        std::complex<T>* out = n.out(0).data<std::complex<T>>() + image * lengths.rows * half;
        const T* from = n.in(0).data<const T>() + image * height * width;
        for (int64_t y = 0; y < lengths.rows; ++y) {
          T* row = reinterpret_cast<T*>(out + y * half);
          const int64_t given = y < height ? std::min(width, lengths.columns) : 0;
          std::copy_n(from + y * width, given, row);
          std::fill(row + given, row + 2 * half, T(0));
          TransformReal(out + y * half, lengths.columns, state.RootsOf<T>(true));
        }
        for (int64_t x = 0; x < half && lengths.rows > 1; ++x) {
          for (int64_t y = 0; y < lengths.rows; ++y) column[y] = out[y * half + x];
          Transform(column, lengths.rows, state.RootsOf<T>(false), lengths.rows);
          for (int64_t y = 0; y < lengths.rows; ++y) out[y * half + x] = column[y];
        }
      }
    };
    if (thread_count(n.host()) > state.workers) return run(0, static_cast<size_t>(images), 0);
    ParallelFor(n.host(), static_cast<size_t>(images), Grain(8 * lengths.rows * lengths.columns), run);
  }
};

enum class Part { kMagnitude, kReal, kImaginary };

template <Part part>
struct Apart {
  static constexpr std::string_view builtin = part == Part::kMagnitude ? "COMPLEX_ABS"
                                              : part == Part::kReal    ? "REAL"
                                                                       : "IMAG";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n) {
    if (n.has_in(0) && n.in(0).dtype() != FBX_COMPLEX64 && n.in(0).dtype() != FBX_COMPLEX128)
      RejectDtype(n.in(0).dtype(), 0);
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1);
    const fbx_dtype dtype = n.in(0).dtype() == FBX_COMPLEX128 ? FBX_F64 : FBX_F32;
    out.like(0, n.in(0), dtype);
  }
  void invoke(const Node& n) const {
    Dispatch(kFloats, n.out(0).dtype(), [&]<class T>() {
      const auto* x = n.in(0).data<const std::complex<T>>();
      T* y = n.out(0).data<T>();
      ParallelFor(n.host(), static_cast<size_t>(n.in(0).count()), Grain(8),
                  [&](size_t begin, size_t end, uint32_t) {
                    for (size_t i = begin; i < end; ++i) y[i] = Take(x[i]);
                  });
    });
  }

 private:
  template <class T>
  static T Take(const std::complex<T>& x) {
    if constexpr (part == Part::kMagnitude) return std::abs(x);
    else return part == Part::kReal ? x.real() : x.imag();
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<Rfft2D>, &kernel_of<Apart<Part::kMagnitude>>,
                                        &kernel_of<Apart<Part::kReal>>, &kernel_of<Apart<Part::kImaginary>>};

}  // namespace

constinit const KernelTable kSpectrumKernels = kTable;

}  // namespace fusebox::cpu
