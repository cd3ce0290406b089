// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/products/gemm_product.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>

#include "plugins/cpu/base/half.h"
#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/products/dots.h"
#include "plugins/cpu/quantized/quant.h"
#include "plugins/math/costs.h"
#include "plugins/math/gemm/run.h"
#include "plugins/math/parallel.h"
#include "plugins/math/simd/functions.h"
#include "plugins/math/simd/lanes.h"
#include "plugins/math/simd/quantize.h"

namespace fusebox::cpu {
namespace {

constexpr int64_t kTileRows = math::kTaskRows;
constexpr int64_t kTileColumns = math::kTaskOutputs;
constexpr int64_t kMostGroup = math::kBytePanels * math::kMaxLanes;
constexpr int64_t kPackedFormat = 1;  // raised when packed bytes change

size_t Aligned(int64_t bytes) { return static_cast<size_t>((Product(bytes, 1) + 63) / 64 * 64); }

void ActivateRow(fbx_gemm_activation activation, float* y, int64_t count) {
  const auto map = [&](math::Function f) { math::Map(f, y, y, static_cast<size_t>(count)); };
  switch (activation) {
    case FBX_GEMM_TANH: return map(math::Function::kTanh);
    case FBX_GEMM_SIGMOID: return map(math::Function::kSigmoid);
    case FBX_GEMM_SILU: return map(math::Function::kSilu);
    case FBX_GEMM_GELU_TANH: return map(math::Function::kGelu);
    default: return;  // the product has clamped
  }
}

// Throws Reject unless there is one scale with one zero point. Returns the zero point.
int32_t RequireOneScale(const fbx_quant* q, const char* subject) {
  if (q == nullptr || q->count != 1 || q->scales == nullptr || !scales_are_positive(*q))
    throw Reject{"QUANT", "is not one positive scale", subject};
  const int64_t zero = q->zero_points ? q->zero_points[0] : 0;
  if (zero < -128 || zero > 127) throw Reject{"QUANT", "a zero point of " + std::to_string(zero), subject};
  return static_cast<int32_t>(zero);
}

}  // namespace

// A quantized to bytes: [m][k], scales, and what sums of weights are multiplied by.
struct GemmProduct::QuantizedRows {
  int8_t* values;
  float* scales;
  int32_t* terms;
};

GemmProduct::GemmProduct(const fbx_gemm_spec& spec) {
  if (spec.head.size < sizeof spec || spec.weights == nullptr) throw Reject{"ABI", "a spec without weights"};
  CheckWeights(*spec.weights);
  order_ = spec.order;
  if (order_ != FBX_GEMM_NK && order_ != FBX_GEMM_KN)
    throw Reject{"ATTR", "order " + std::to_string(order_), "attr order"};
  const std::span<const int64_t> dims = Tensor(spec.weights).dims();
  const int64_t last = dims.back();
  const int64_t others = Count(dims.first(dims.size() - 1));
  n_ = order_ == FBX_GEMM_NK ? others : last;
  k_ = order_ == FBX_GEMM_NK ? last : others;
  const bool bytes = weights_dtype_ == FBX_I8;
  if (bytes) CheckScales(*spec.weights);
  if (spec.input != nullptr && !bytes) throw Reject{"DTYPE", "i8 rows need i8 weights", "weights"};
  kind_ = spec.input != nullptr ? Kind::kBytes : bytes ? Kind::kHybrid : Kind::kFloat;
  CheckBias(spec.bias);
  SetActivation(spec);
  if (kind_ == Kind::kBytes) SetResultScales(spec);
}

void GemmProduct::CheckWeights(const fbx_tensor& w) {
  if (w.dtype != FBX_F32 && w.dtype != FBX_F16 && w.dtype != FBX_I8)
    throw Reject{"DTYPE", std::string(dtype_name(w.dtype)) + " is none of f32, f16, i8", "weights"};
  if (w.rank < 2 || !Tensor(&w).is_static())
    throw Reject{"SHAPE", "are no matrix of a known size", "weights"};
  if ((w.flags & FBX_TENSOR_CONST) == 0 || (w.data == nullptr && Count(Tensor(&w)) > 0))
    throw Reject{"NONCONST", "are not constant", "weights"};
  weights_dtype_ = w.dtype;
  weights_ = w.data;
}

void GemmProduct::CheckScales(const fbx_tensor& w) {
  const int axis = order_ == FBX_GEMM_NK ? 0 : w.rank - 1;
  const fbx_quant* const q = w.quant;
  if (q == nullptr || q->scales == nullptr || q->kind == FBX_QUANT_BLOCKWISE ||
      (q->count != 1 && (q->count != n_ || q->axis != axis)))
    throw Reject{"QUANT", "have neither one scale nor one for each output", "weights"};
  if (!scales_are_positive(*q)) throw Reject{"QUANT", "have a scale that is not positive", "weights"};
  if (q->zero_points != nullptr && !is_symmetric(*q)) throw Reject{"QUANT", "have a zero point", "weights"};
  scales_.assign(q->scales, q->scales + q->count);
}

void GemmProduct::CheckBias(const fbx_tensor* bias) {
  if (bias == nullptr || (bias->flags & FBX_TENSOR_ABSENT) != 0) return;
  const fbx_dtype dtype = kind_ == Kind::kBytes ? FBX_I32 : FBX_F32;
  if (bias->dtype != dtype) throw Reject{"DTYPE", std::string("is not ") + dtype_name(dtype), "bias"};
  if ((bias->flags & FBX_TENSOR_CONST) == 0) throw Reject{"NONCONST", "is not constant", "bias"};
  if (Count(Tensor(bias)) != n_) throw Reject{"SHAPE", "is not one value for each output", "bias"};
  bias_ = bias->data;
}

void GemmProduct::SetActivation(const fbx_gemm_spec& spec) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  activation_ = spec.activation;
  if (activation_ < FBX_GEMM_NONE || activation_ > FBX_GEMM_GELU_TANH)
    throw Reject{"ATTR", "is unknown", "activation"};
  if (kind_ == Kind::kBytes && activation_ >= FBX_GEMM_TANH)
    throw Reject{"ATTR", "is unsupported for i8", "activation"};
  const bool relu = activation_ == FBX_GEMM_RELU || activation_ == FBX_GEMM_RELU6;
  const bool clamp = activation_ == FBX_GEMM_CLAMP;
  lowest_ = clamp ? spec.lowest : relu ? 0 : -kInfinity;
  highest_ = clamp ? spec.highest : activation_ == FBX_GEMM_RELU6 ? 6 : kInfinity;
  if (!(lowest_ <= highest_)) throw Reject{"ATTR", "clamps to no range", "activation"};
}

// The factors of TFLite's FULLY_CONNECTED, which multiplies one scale as float.
void GemmProduct::SetResultScales(const fbx_gemm_spec& spec) {
  input_zero_ = RequireOneScale(spec.input, "input");
  const int32_t zero = RequireOneScale(spec.output, "output");
  const float in = spec.input->scales[0];
  const float out = spec.output->scales[0];
  std::vector<FixedPoint> factors;
  for (const float scale : scales_)
    factors.emplace_back((scales_.size() > 1 ? double{in} * scale : double{in * scale}) / out);
  const auto quantized = [&](float real) {
    return static_cast<int32_t>(
        std::clamp(std::round(real / out) + static_cast<float>(zero), -128.0f, 127.0f));
  };
  result_scales_ = ByteScales(factors, {zero, quantized(lowest_), quantized(highest_), true});
}

math::F32Layout GemmProduct::FloatLayout() const {
  return {math::BestF32Kernels().lanes, static_cast<size_t>(n_), static_cast<size_t>(k_)};
}

ByteLayout GemmProduct::Layout() const {
  return {
      .lanes = code_.lanes, .n = static_cast<size_t>(n_), .k = static_cast<size_t>(k_), .unit = code_.unit};
}

size_t GemmProduct::PackedBytes() const {
  const auto size = [](int64_t count) { return static_cast<size_t>(Product(count, sizeof(float))); };
  if (kind_ == Kind::kFloat) return size(Product(static_cast<int64_t>(FloatLayout().padded()), k_));
  return Layout().bytes() + Layout().padded() * sizeof(int32_t);
}

void GemmProduct::Pack(void* to) const {
  const int64_t count = n_ * k_;
  if (kind_ == Kind::kFloat) {
    std::vector<float> wide;
    if (weights_dtype_ == FBX_F16) {
      wide.resize(static_cast<size_t>(count));
      std::transform(static_cast<const uint16_t*>(weights_), static_cast<const uint16_t*>(weights_) + count,
                     wide.begin(), [](uint16_t half) { return FloatFromHalf(half); });
    }
    const float* const rows = weights_dtype_ == FBX_F16 ? wide.data() : static_cast<const float*>(weights_);
    if (count == 0) return;
    if (order_ == FBX_GEMM_NK) return math::PackF32(FloatLayout(), rows, static_cast<float*>(to));
    return math::PackF32Transposed(FloatLayout(), rows, static_cast<float*>(to));
  }
  std::fill_n(static_cast<std::byte*>(to), PackedBytes(), std::byte{0});
  const ByteLayout layout = Layout();
  auto* const values = static_cast<int8_t*>(to);
  auto* const sums = reinterpret_cast<int32_t*>(values + layout.bytes());
  const auto* rows = static_cast<const int8_t*>(weights_);
  std::vector<int8_t> transposed;
  if (order_ == FBX_GEMM_KN && count > 0) {
    transposed.resize(static_cast<size_t>(count));
    TransposeMatrix(rows, k_, n_, transposed.data());
    rows = transposed.data();
  }
  for (size_t i = 0; i < layout.n && k_ > 0; ++i, rows += k_) {
    math::PackByteRow(layout, i, rows, values);
    sums[i] = math::SumOfBytes(rows, layout.k);
  }
}

void GemmProduct::PackForStore(const fbx_host* host, const fbx_tensor& weights) const {
  if (keeps_weights(host)) PackOnce(host, &weights);
}

// `weights`: for a store; null in invoke, where there is none.
void GemmProduct::PackOnce(const fbx_host* host, const fbx_tensor* weights) const {
  packed_.make_once([&] {
    PackedWeights::Recipe recipe{.what = "gemm", .layout = to_string_view(host->version)};
    recipe.numbers = {kPackedFormat,
                      static_cast<int64_t>(FloatLayout().lanes),
                      static_cast<int64_t>(code_.lanes),
                      static_cast<int64_t>(code_.unit),
                      order_,
                      n_,
                      k_};
    if (weights != nullptr) recipe.sources = {Tensor(weights)};
    recipe.size = PackedBytes();
    return PackedWeights(Node(host, nullptr), recipe, [&](void* to) { Pack(to); });
  });
}

const int32_t* GemmProduct::RowSums() const {
  return reinterpret_cast<const int32_t*>(packed_->data<int8_t>() + Layout().bytes());
}

size_t GemmProduct::ScratchBytes(int64_t m) const {
  if (m < 0) Fail("a negative number of rows");
  if (kind_ == Kind::kFloat || (kind_ == Kind::kBytes && !code_.signs.Flips(false))) return 0;
  if (kind_ == Kind::kBytes) return Aligned(Product(m, k_));
  return Aligned(Product(m, k_)) + 2 * Aligned(Product(m, sizeof(float)));
}

GemmProduct::QuantizedRows GemmProduct::RowsAt(void* scratch, int64_t m) const {
  auto* const at = static_cast<std::byte*>(scratch) + Aligned(m * k_);
  return {static_cast<int8_t*>(scratch), reinterpret_cast<float*>(at),
          reinterpret_cast<int32_t*>(at + Aligned(m * static_cast<int64_t>(sizeof(float))))};
}

void GemmProduct::Quantize(const fbx_host* host, const fbx_gemm_call& call, const QuantizedRows& to) const {
  const auto quantize = [&](size_t begin, size_t end, uint32_t) {
    for (auto i = static_cast<int64_t>(begin); i < static_cast<int64_t>(end); ++i) {
      const float* const row = static_cast<const float*>(call.a) + i * call.a_stride;
      int8_t* const values = to.values + i * k_;
      to.scales[i] = math::QuantizeRow(row, static_cast<size_t>(k_), false, values).scale;
      if (code_.signs.Flips(false)) code_.flip(values, 1, 0, static_cast<size_t>(k_), values);
      to.terms[i] = -code_.signs.Offset(false);
    }
  };
  math::ParallelFor(host, static_cast<size_t>(call.m), math::Grain(k_), quantize);
}

void GemmProduct::Run(const fbx_host* host, const fbx_gemm_call& given) const {
  if (given.head.size < sizeof given || given.m < 0) Fail("a call with " + std::to_string(given.m) + " rows");
  if (given.times != nullptr && kind_ == Kind::kBytes) Fail("`times` of a product of i8");
  if (given.m == 0 || n_ == 0) return;
  fbx_gemm_call call = given;
  if (call.a_stride == 0) call.a_stride = k_;
  if (call.c_stride == 0) call.c_stride = n_;
  if (call.times_stride == 0) call.times_stride = n_;
  PackOnce(host, nullptr);
  QuantizedRows quantized{};
  if (kind_ == Kind::kHybrid) Quantize(host, call, quantized = RowsAt(call.scratch, call.m));
  if (kind_ == Kind::kBytes && code_.signs.Flips(false)) {
    code_.flip(call.a, static_cast<size_t>(call.m), static_cast<size_t>(call.a_stride),
               static_cast<size_t>(k_), call.scratch);
    call.a = call.scratch;
    call.a_stride = k_;
  }

  const int64_t blocks = (n_ + kTileColumns - 1) / kTileColumns;
  const int64_t tiles = (call.m + kTileRows - 1) / kTileRows * blocks;
  const int64_t work = std::min(call.m, kTileRows) * std::min(n_, kTileColumns) * std::max<int64_t>(1, k_);
  math::ParallelFor(host, static_cast<size_t>(tiles), math::Grain(work),
                    [&](size_t begin, size_t end, uint32_t) {
                      for (auto i = static_cast<int64_t>(begin); i < static_cast<int64_t>(end); ++i) {
                        const int64_t row = i / blocks * kTileRows;
                        const int64_t column = i % blocks * kTileColumns;
                        const Tile tile{row, std::min(kTileRows, call.m - row), column,
                                        std::min(kTileColumns, n_ - column)};
                        if (kind_ == Kind::kBytes) RunBytes(call, tile);
                        else if (kind_ == Kind::kHybrid) RunHybrid(call, quantized, tile);
                        else RunFloat(call, tile);
                      }
                    });
}

void GemmProduct::RunFloat(const fbx_gemm_call& call, const Tile& t) const {
  const math::F32Product product{
      math::MatrixRows(static_cast<const float*>(call.a) + t.row * call.a_stride, static_cast<size_t>(t.rows),
                       static_cast<size_t>(call.a_stride), static_cast<size_t>(k_)),
      {.layout = FloatLayout(),
       .weights = packed_->data<float>(),
       .start = static_cast<const float*>(bias_),
       .low = lowest_,
       .high = highest_},
      static_cast<float*>(call.c) + t.row * call.c_stride,
      static_cast<size_t>(call.c_stride)};
  const auto width = static_cast<int64_t>(math::kGroupPanels * product.task.layout.lanes);
  math::Multiply(product, static_cast<size_t>(t.column / width),
                 static_cast<size_t>((t.column + t.columns + width - 1) / width));
  Finish(call, t);
}

void GemmProduct::RunHybrid(const fbx_gemm_call& call, const QuantizedRows& rows, const Tile& t) const {
  alignas(64) int32_t sums[kTileRows * kMostGroup];
  const auto width = static_cast<int64_t>(math::kBytePanels * code_.lanes);
  ByteTask task{.rows = rows.values + t.row * k_,
                .count = static_cast<size_t>(t.rows),
                .stride = static_cast<size_t>(k_),
                .layout = Layout(),
                .weights = packed_->data<int8_t>()};
  task.terms[0] = {RowSums(), rows.terms + t.row};
  const FloatResults results{scales_.data(), scales_.size() > 1, static_cast<const float*>(bias_), lowest_,
                             highest_};
  for (int64_t first = t.column; first < t.column + t.columns; first += width) {
    const auto group = static_cast<size_t>(first / width);
    code_.multiply(task, sums, static_cast<size_t>(width), group, group + 1);
    const int64_t count = std::min(width, n_ - first);
    for (int64_t r = 0; r < t.rows; ++r)
      code_.store_floats(results, rows.scales[t.row + r], static_cast<size_t>(first),
                         static_cast<size_t>(count), sums + r * width,
                         static_cast<float*>(call.c) + (t.row + r) * call.c_stride + first);
  }
  Finish(call, t);
}

void GemmProduct::RunBytes(const fbx_gemm_call& call, const Tile& t) const {
  int32_t terms[kTileRows];
  std::fill_n(terms, t.rows, -(input_zero_ + code_.signs.Offset(false)));
  const ByteResults results{&result_scales_, static_cast<const int32_t*>(bias_)};
  ByteStoreTask task{.product = {.rows = static_cast<const int8_t*>(call.a) + t.row * call.a_stride,
                                 .count = static_cast<size_t>(t.rows),
                                 .stride = static_cast<size_t>(call.a_stride),
                                 .layout = Layout(),
                                 .weights = packed_->data<int8_t>()},
                     .results = &results,
                     .first_channel = 0,
                     .out = static_cast<uint8_t*>(call.c) + t.row * call.c_stride,
                     .out_stride = static_cast<size_t>(call.c_stride)};
  task.product.terms[0] = {RowSums(), terms};
  const auto width = static_cast<int64_t>(math::kBytePanels * code_.lanes);
  code_.multiply_and_store(task, static_cast<size_t>(t.column / width),
                           static_cast<size_t>((t.column + t.columns + width - 1) / width));
}

void GemmProduct::Finish(const fbx_gemm_call& call, const Tile& t) const {
  for (int64_t r = t.row; r < t.row + t.rows; ++r) {
    float* const y = static_cast<float*>(call.c) + r * call.c_stride + t.column;
    const float* times = call.times ? call.times + r * call.times_stride + t.column : nullptr;
    if (activation_ >= FBX_GEMM_TANH) ActivateRow(activation_, y, t.columns);
    for (int64_t i = 0; times != nullptr && i < t.columns; ++i) y[i] *= times[i];
  }
}

}  // namespace fusebox::cpu
