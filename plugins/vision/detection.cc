// SPDX-License-Identifier: Apache-2.0
#include "plugins/vision/detection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "plugins/common/text.h"

namespace fusebox::vision {
namespace {

constexpr int64_t kLargest = 1 << 24;  // limit for all counts

int64_t Count(const Node& n, std::string_view key, int64_t otherwise) {
  const int64_t value = n.attrs().i64(key, otherwise);
  if (value < 1 || value > kLargest)
    throw Error{FBX_INVALID, std::string(key) + " is " + std::to_string(value), "attr " + std::string(key)};
  return value;
}

float Scale(const Node& n, std::string_view key) {
  const auto value = static_cast<float>(n.attrs().f64(key));
  if (!(value > 0) || !std::isfinite(value))
    throw Error{FBX_INVALID, std::string(key) + " is not a positive number", "attr " + std::string(key)};
  return value;
}

// TensorFlow's converter writes true as the integer -1.
bool Flag(const Node& n, std::string_view key) {
  try {
    return n.attrs().b(key, false);
  } catch (const Error&) {
    return n.attrs().i64(key) != 0;
  }
}

// NaN only if all values are NaN.
float Largest(std::span<const float> values) {
  float largest = std::numeric_limits<float>::quiet_NaN();
  for (const float value : values)
    if (value > largest || largest != largest) largest = value;
  return largest;
}

void RequireNumbers(const Node& n, uint32_t i) {
  const Tensor t = n.in(i);
  if (t.dtype() == FBX_F32) return;
  if (t.dtype() != FBX_U8 && t.dtype() != FBX_I8)
    throw Reject{"DTYPE", std::string("dtype ") + dtype_name(t.dtype()), common::Subject(i)};
  const fbx_quant* q = t.quant();
  if (q == nullptr || q->count != 1 || !(q->scales[0] > 0) || !std::isfinite(q->scales[0]))
    throw Reject{"QUANT", "not one scale", common::Subject(i)};
}

void RequireDims(const Node& n, uint32_t i, int rank) {
  const Tensor t = n.in(i);
  if (t.rank() >= 0 && t.rank() != rank)
    throw Error{FBX_INVALID, "rank " + std::to_string(t.rank()) + ", expected " + std::to_string(rank),
                common::Subject(i)};
}

// Element access as float.
class Numbers {
 public:
  explicit Numbers(Tensor t) : data_(t.data<const void>()), dtype_(t.dtype()) {
    if (dtype_ == FBX_F32) return;
    scale_ = t.quant()->scales[0];
    zero_ = static_cast<int32_t>(t.quant()->zero_points[0]);
  }
  float operator[](int64_t at) const {
    if (dtype_ == FBX_F32) return static_cast<const float*>(data_)[at];
    const int32_t stored =
        dtype_ == FBX_U8 ? static_cast<const uint8_t*>(data_)[at] : static_cast<const int8_t*>(data_)[at];
    return scale_ * static_cast<float>(stored - zero_);
  }

 private:
  const void* data_;
  fbx_dtype dtype_;
  float scale_ = 1;
  int32_t zero_ = 0;
};

}  // namespace

// One invoke: operands as numbers, scratch, and partial results.
struct DetectionPostProcess::Job {
  int64_t anchors = 0;
  int64_t background = 0;
  std::span<Box> boxes;
  std::span<float> scores;    // [anchors, classes], without the background
  std::span<float> of_class;  // [anchors]
  int32_t* order = nullptr;
  int32_t* kept = nullptr;
  int32_t* classes = nullptr;
  Found* merged = nullptr;
  int64_t found = 0;
  float* out_boxes = nullptr;
  float* out_classes = nullptr;
  float* out_scores = nullptr;

  void Put(const Box& box, int32_t class_number, float score) {
    const float corners[] = {box.top, box.left, box.bottom, box.right};
    std::copy_n(corners, 4, out_boxes + 4 * found);
    out_classes[found] = static_cast<float>(class_number);
    out_scores[found++] = score;
  }
};

void DetectionPostProcess::supports(const Node& n) {
  for (uint32_t i = 0; i < 3 && i < n.in_count(); ++i) RequireNumbers(n, i);
}

void DetectionPostProcess::infer(const Node& n, Infer& out) {
  if (n.in_count() != 3 || n.out_count() != 4)
    throw Error{FBX_INVALID, std::to_string(n.in_count()) + " operands and " + std::to_string(n.out_count()) +
                                 " results, expected 3 and 4"};
  for (uint32_t i = 0; i < 3; ++i) RequireDims(n, i, i < 2 ? 3 : 2);
  const Tensor boxes = n.in(0);
  const Tensor scores = n.in(1);
  const Tensor anchors = n.in(2);
  if (boxes.is_static() && scores.is_static() && anchors.is_static()) {
    const int64_t count = anchors.dim(0);
    const int64_t classes = scores.dim(2) - Count(n, "num_classes", 0);
    if (boxes.dim(0) != 1 || scores.dim(0) != 1)
      throw Error{FBX_INVALID, "more than one image at a time", common::Subject(0)};
    if (boxes.dim(1) != count || scores.dim(1) != count)
      throw Error{FBX_INVALID, "not one row per anchor", common::Subject(boxes.dim(1) != count ? 0 : 1)};
    if (boxes.dim(2) < 4 || anchors.dim(1) != 4)
      throw Error{FBX_INVALID, "not four numbers per box", common::Subject(boxes.dim(2) < 4 ? 0 : 2)};
    if (classes != 0 && classes != 1)
      throw Error{FBX_INVALID, "num_classes is not the number of scores, with or without a background",
                  common::Subject(1)};
    if (count > kLargest || scores.dim(2) > kLargest)
      throw Error{FBX_INVALID, "too many anchors or classes", common::Subject(1)};
  }
  const int64_t most = Count(n, "max_detections", 0) * Count(n, "max_classes_per_detection", 1);
  out.set(0, FBX_F32, {1, most, 4});
  out.set(1, FBX_F32, {1, most});
  out.set(2, FBX_F32, {1, most});
  out.set(3, FBX_F32, {1});
}

DetectionPostProcess::DetectionPostProcess(const Node& n)
    : classes_(Count(n, "num_classes", 0)),
      most_(Count(n, "max_detections", 0)),
      most_per_box_(Count(n, "max_classes_per_detection", 1)),
      most_per_class_(std::min(Count(n, "detections_per_class", 100), most_)),
      regular_(Flag(n, "use_regular_nms")),
      least_score_(static_cast<float>(n.attrs().f64("nms_score_threshold"))),
      most_overlap_(Scale(n, "nms_iou_threshold")),
      y_scale_(Scale(n, "y_scale")),
      x_scale_(Scale(n, "x_scale")),
      height_scale_(Scale(n, "h_scale")),
      width_scale_(Scale(n, "w_scale")) {
  if (most_overlap_ > 1) throw Error{FBX_INVALID, "is above 1", "attr nms_iou_threshold"};
}

int64_t DetectionPostProcess::PerBox() const { return std::min(most_per_box_, classes_); }

DetectionPostProcess::State DetectionPostProcess::prepare(const Node& n, Plan& plan) const {
  const auto anchors = static_cast<size_t>(n.in(2).dim(0));
  const auto classes = static_cast<size_t>(classes_);
  const auto most = static_cast<size_t>(most_);
  if (anchors > 0 && classes > SIZE_MAX / 16 / anchors) throw Error{FBX_OUT_OF_MEMORY, "too many scores"};
  State state;
  state.boxes = plan.scratch(anchors * sizeof(Box));
  state.scores = plan.scratch(anchors * classes * sizeof(float));
  state.of_class = plan.scratch(anchors * sizeof(float));
  state.order = plan.scratch(anchors * sizeof(int32_t));
  state.kept = plan.scratch(most * sizeof(int32_t));
  state.classes = plan.scratch(classes * sizeof(int32_t));
  state.merged = plan.scratch(2 * most * sizeof(Found));
  return state;
}

void DetectionPostProcess::Decode(const Node& n, Job& job) const {
  const Numbers encoded(n.in(0));
  const Numbers scores(n.in(1));
  const Numbers anchors(n.in(2));
  const int64_t width = n.in(0).dim(2);
  for (int64_t i = 0; i < job.anchors; ++i) {
    const int64_t b = i * width;
    const int64_t a = i * 4;
    const float y = encoded[b] / y_scale_ * anchors[a + 2] + anchors[a];
    const float x = encoded[b + 1] / x_scale_ * anchors[a + 3] + anchors[a + 1];
    const float half_height = 0.5f * std::exp(encoded[b + 2] / height_scale_) * anchors[a + 2];
    const float half_width = 0.5f * std::exp(encoded[b + 3] / width_scale_) * anchors[a + 3];
    job.boxes[static_cast<size_t>(i)] = {y - half_height, x - half_width, y + half_height, x + half_width};
    for (int64_t c = 0; c < classes_; ++c)
      job.scores[static_cast<size_t>(i * classes_ + c)] =
          scores[i * (classes_ + job.background) + job.background + c];
  }
}

void DetectionPostProcess::RunFast(Job& job) const {
  const auto of_box = [&](int64_t i) {
    return job.scores.subspan(static_cast<size_t>(i * classes_), static_cast<size_t>(classes_));
  };
  for (int64_t i = 0; i < job.anchors; ++i) job.of_class[static_cast<size_t>(i)] = Largest(of_box(i));
  const int64_t count =
      Suppress(job.boxes, job.of_class, {least_score_, most_overlap_, most_}, job.order, job.kept);
  for (int64_t k = 0; k < count; ++k) {
    const int32_t box = job.kept[k];
    SortLargest(of_box(box), PerBox(), job.classes);
    // Each box reserves results for the requested number of classes, even if there are fewer.
    job.found = k * most_per_box_;
    for (int64_t c = 0; c < PerBox(); ++c)
      job.Put(job.boxes[static_cast<size_t>(box)], job.classes[c],
              of_box(box)[static_cast<size_t>(job.classes[c])]);
  }
  job.found = count;
}

void DetectionPostProcess::RunRegular(Job& job) const {
  int64_t count = 0;
  for (int64_t c = 0; c < classes_; ++c) {
    for (int64_t i = 0; i < job.anchors; ++i)
      job.of_class[static_cast<size_t>(i)] = job.scores[static_cast<size_t>(i * classes_ + c)];
    const int64_t more = Suppress(job.boxes, job.of_class, {least_score_, most_overlap_, most_per_class_},
                                  job.order, job.kept);
    for (int64_t k = 0; k < more; ++k) {
      const int32_t box = job.kept[k];
      job.merged[count++] = {job.of_class[static_cast<size_t>(box)], box, static_cast<int32_t>(c)};
    }
    std::sort(job.merged, job.merged + count, [](const Found& a, const Found& b) {
      if (a.score != b.score) return a.score > b.score;
      return a.class_number != b.class_number ? a.class_number < b.class_number : a.box < b.box;
    });
    count = std::min(count, most_);
  }
  for (int64_t k = 0; k < count; ++k)
    job.Put(job.boxes[static_cast<size_t>(job.merged[k].box)], job.merged[k].class_number,
            job.merged[k].score);
}

void DetectionPostProcess::invoke(const Node& n, const State& state) const {
  Job job;
  job.anchors = n.in(2).dim(0);
  job.background = n.in(1).dim(2) - classes_;
  const auto anchors = static_cast<size_t>(job.anchors);
  job.boxes = {n.scratch<Box>(state.boxes), anchors};
  job.scores = {n.scratch<float>(state.scores), anchors * static_cast<size_t>(classes_)};
  job.of_class = {n.scratch<float>(state.of_class), anchors};
  job.order = n.scratch<int32_t>(state.order);
  job.kept = n.scratch<int32_t>(state.kept);
  job.classes = n.scratch<int32_t>(state.classes);
  job.merged = n.scratch<Found>(state.merged);
  job.out_boxes = n.out(0).data<float>();
  job.out_classes = n.out(1).data<float>();
  job.out_scores = n.out(2).data<float>();
  for (uint32_t i = 0; i < 3; ++i) std::fill_n(n.out(i).data<float>(), n.out(i).count(), 0.0f);
  Decode(n, job);
  regular_ ? RunRegular(job) : RunFast(job);
  n.out(3).data<float>()[0] = static_cast<float>(job.found);
}

}  // namespace fusebox::vision
