// SPDX-License-Identifier: Apache-2.0
#include "plugins/vision/non_max.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "plugins/common/text.h"

namespace fusebox::vision {
namespace {

enum : uint32_t { kBoxes, kScores, kMost, kOverlap, kLeastScore, kSigma };
constexpr int64_t kMostBoxes = int64_t{1} << 24;

[[noreturn]] void Fail(std::string why, std::string subject) {
  throw Error{FBX_INVALID, std::move(why), std::move(subject)};
}

template <class T>
struct Candidate {
  T score;
  int32_t box;
  int32_t compared;  // number of kept boxes it was compared with
};
// The heap's top is the best score; of equal scores, the first box.
struct Worse {
  template <class T>
  bool operator()(const Candidate<T>& a, const Candidate<T>& b) const {
    return a.score != b.score ? a.score < b.score : a.box > b.box;
  }
};

// Intersection over union of boxes given by two opposite corners; 0 for an empty box. In the boxes' dtype, so
// that an overlap equal to the threshold in f32 counts as reaching it.
template <class T>
T Overlap(const T* a, const T* b) {
  struct Sides {
    T top, left, bottom, right;
    explicit Sides(const T* c)
        : top(std::min(c[0], c[2])),
          left(std::min(c[1], c[3])),
          bottom(std::max(c[0], c[2])),
          right(std::max(c[1], c[3])) {}
    T area() const { return (bottom - top) * (right - left); }
  };
  const Sides x(a);
  const Sides y(b);
  if (!(x.area() > 0) || !(y.area() > 0)) return 0;
  const T height = std::max(std::min(x.bottom, y.bottom) - std::max(x.top, y.top), T(0));
  const T width = std::max(std::min(x.right, y.right) - std::max(x.left, y.left), T(0));
  return height * width / (x.area() + y.area() - height * width);
}

template <class T>
T Scalar(const Node& n, uint32_t i) {
  if (n.in(i).count() != 1) Fail("is not a scalar", common::Subject(i));
  return *n.in(i).data<const T>();
}

// Compares a candidate with the kept boxes that it was not compared with yet, last one first; sigma lowers
// its score.
template <class T>
bool Stays(const T* boxes, const int32_t* kept, int32_t count, T overlap, T least, T sigma,
           Candidate<T>& candidate) {
  for (int32_t k = count - 1; k >= candidate.compared; --k) {
    const T by = Overlap(boxes + 4 * int64_t{candidate.box}, boxes + 4 * int64_t{kept[k]});
    if (by >= overlap) return false;
    if (sigma > 0) candidate.score *= std::exp(T(-0.5) / sigma * by * by);
    if (candidate.score <= least) return true;
  }
  return true;
}

template <class T, bool kSoft>
void Select(const Node& n, Candidate<T>* heap) {
  const T* const boxes = n.in(kBoxes).data<const T>();
  const T* const scores = n.in(kScores).data<const T>();
  const T overlap = Scalar<T>(n, kOverlap);
  const T least = Scalar<T>(n, kLeastScore);
  const T sigma = kSoft ? Scalar<T>(n, kSigma) : T(0);
  if (!(overlap >= 0 && overlap <= 1)) Fail("is not between 0 and 1", common::Subject(kOverlap));
  if (!(sigma >= 0)) Fail("is negative or NaN", common::Subject(kSigma));
  int64_t waiting = 0;
  for (int64_t i = 0; i < n.in(kScores).count(); ++i) {
    if (scores[i] > least) heap[waiting++] = {scores[i], static_cast<int32_t>(i), 0};
  }
  std::make_heap(heap, heap + waiting, Worse{});
  auto* const kept = n.out(0).data<int32_t>();
  const int64_t most = n.out(0).count();
  int32_t count = 0;
  while (waiting > 0 && count < most) {
    std::pop_heap(heap, heap + waiting, Worse{});
    Candidate<T>& next = heap[--waiting];
    const T before = next.score;
    if (!Stays(boxes, kept, count, overlap, least, sigma, next)) continue;
    if (next.score == before) {
      if constexpr (kSoft) n.out(1).data<T>()[count] = next.score;
      kept[count++] = next.box;
    } else if (next.score > least) {
      next.compared = count;
      std::push_heap(heap, heap + ++waiting, Worse{});
    }
  }
  *n.out(n.out_count() - 1).data<int32_t>() = count;
}

void Supports(const Node& n) {
  const fbx_dtype dtype = n.in(kBoxes).dtype();
  for (uint32_t i = 0; i < n.in_count() && i <= kSigma; ++i) {
    const fbx_dtype wanted = i == kMost ? FBX_I32 : dtype == FBX_F64 ? FBX_F64 : FBX_F32;
    if (n.in(i).dtype() != wanted)
      throw Reject{"DTYPE",
                   std::string("is ") + dtype_name(n.in(i).dtype()) + ", expected " + dtype_name(wanted),
                   common::Subject(i)};
  }
}

void CheckShapes(const Node& n, uint32_t operands, uint32_t results) {
  if (n.in_count() != operands || n.out_count() != results)
    Fail(std::to_string(n.in_count()) + " operands and " + std::to_string(n.out_count()) +
             " results, expected " + std::to_string(operands) + " and " + std::to_string(results),
         "");
  const Tensor boxes = n.in(kBoxes);
  const Tensor scores = n.in(kScores);
  if (boxes.rank() >= 0 && boxes.rank() != 2) Fail("expected rank 2", common::Subject(kBoxes));
  if (scores.rank() >= 0 && scores.rank() != 1) Fail("expected rank 1", common::Subject(kScores));
  if (boxes.rank() == 2 && boxes.dim(1) >= 0 && boxes.dim(1) != 4)
    Fail("not four numbers per box", common::Subject(kBoxes));
  if (boxes.rank() == 2 && boxes.dim(0) > kMostBoxes) Fail("too many boxes", common::Subject(kBoxes));
  if (boxes.is_static() && scores.is_static() && boxes.dim(0) != scores.dim(0))
    Fail("not one score per box", common::Subject(kScores));
}

void InferResults(const Node& n, Infer& out, bool soft) {
  CheckShapes(n, soft ? 6 : 5, soft ? 3 : 2);
  int64_t most = -1;
  if (n.in(kMost).has_value()) {
    if (n.in(kMost).count() != 1) Fail("is not a scalar", common::Subject(kMost));
    most = *n.in(kMost).data<const int32_t>();
    if (most < 0 || most > kMostBoxes)
      Fail("the number of boxes is " + std::to_string(most) + ", expected 0 to " + std::to_string(kMostBoxes),
           common::Subject(kMost));
  } else {
    out.needs_value(kMost);
  }
  out.set(0, FBX_I32, {most});
  if (soft) out.set(1, n.in(kBoxes).dtype(), {most});
  out.set(soft ? 2 : 1, FBX_I32, std::initializer_list<int64_t>{});
}

NonMaxShape Prepare(const Node& n, Plan& plan) {
  return {plan.scratch(static_cast<size_t>(n.in(kScores).count()) * sizeof(Candidate<double>))};
}

template <bool kSoft>
void Run(const Node& n, const NonMaxShape& shape) {
  for (uint32_t i = 0; i + 1 < n.out_count(); ++i)
    std::fill_n(n.out(i).data<uint8_t>(), n.out(i).bytes(), uint8_t{0});
  const bool wide = n.in(kBoxes).dtype() == FBX_F64;
  wide ? Select<double, kSoft>(n, n.scratch<Candidate<double>>(shape.heap))
       : Select<float, kSoft>(n, n.scratch<Candidate<float>>(shape.heap));
}

}  // namespace

void NonMaxSuppressionV4::supports(const Node& n) { Supports(n); }
void NonMaxSuppressionV4::infer(const Node& n, Infer& out) { InferResults(n, out, false); }
NonMaxShape NonMaxSuppressionV4::prepare(const Node& n, Plan& plan) const { return Prepare(n, plan); }
void NonMaxSuppressionV4::invoke(const Node& n, NonMaxShape& shape) const { Run<false>(n, shape); }

void NonMaxSuppressionV5::supports(const Node& n) { Supports(n); }
void NonMaxSuppressionV5::infer(const Node& n, Infer& out) { InferResults(n, out, true); }
NonMaxShape NonMaxSuppressionV5::prepare(const Node& n, Plan& plan) const { return Prepare(n, plan); }
void NonMaxSuppressionV5::invoke(const Node& n, NonMaxShape& shape) const { Run<true>(n, shape); }

}  // namespace fusebox::vision
