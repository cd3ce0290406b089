// SPDX-License-Identifier: Apache-2.0
// Basic types of the graph: element types, shapes, quantization, attributes. Plain data, any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "fusebox/abi/tensor.h"
#include "host/base/buffer.h"
#include "host/base/inline_vector.h"
#include "host/base/shared_array.h"

namespace fusebox {

// Element types; values as in the ABI.
enum class DType : fbx_dtype {
  kNone = FBX_DTYPE_NONE,
  kF32 = FBX_F32,
  kF16 = FBX_F16,
  kBF16 = FBX_BF16,
  kF64 = FBX_F64,
  kI8 = FBX_I8,
  kI16 = FBX_I16,
  kI32 = FBX_I32,
  kI64 = FBX_I64,
  kU8 = FBX_U8,
  kU16 = FBX_U16,
  kU32 = FBX_U32,
  kU64 = FBX_U64,
  kBool = FBX_BOOL,
  kString = FBX_STRING,
  kComplex64 = FBX_COMPLEX64,
  kComplex128 = FBX_COMPLEX128,
  kI4 = FBX_I4,
  kU4 = FBX_U4,
  kI2 = FBX_I2,
  kF8E4M3FN = FBX_F8E4M3FN,
  kF8E5M2 = FBX_F8E5M2,
  kResource = FBX_RESOURCE,
  kVariant = FBX_VARIANT,
};

std::string_view Name(DType);  // "f32"
std::optional<DType> ParseDType(std::string_view);
size_t BitsOf(DType);  // 32 for f32, 4 for i4; 0: no fixed size
inline bool IsFloat(DType t) {
  return t == DType::kF32 || t == DType::kF16 || t == DType::kBF16 || t == DType::kF64;
}

using Dims = InlineVector<int64_t, 4>;

// Dimensions, -1 if unknown; or unknown rank.
class Shape {
 public:
  static constexpr int64_t kUnknown = -1;
  Shape() = default;  // unranked, like {}; a scalar is Scalar()
  static Shape Scalar() { return Of({}); }
  static Shape Of(std::span<const int64_t> dims) { return {true, Dims(dims.begin(), dims.end())}; }
  Shape(const std::vector<int64_t>& dims)  // NOLINT(google-explicit-constructor)
      : ranked_(true), dims_(dims) {}
  Shape(std::initializer_list<int64_t> dims) : ranked_(true), dims_(dims) {}
  bool ranked() const { return ranked_; }
  int rank() const { return ranked_ ? static_cast<int>(dims_.size()) : -1; }
  const Dims& dims() const { return dims_; }
  Dims& dims() { return dims_; }
  int64_t operator[](size_t i) const { return dims_[i]; }
  bool is_static() const;                        // ranked, and every dimension known
  std::optional<int64_t> element_count() const;  // nothing: not static, int64 overflow, or 0 x 2^28
  bool operator==(const Shape&) const = default;

 private:
  Shape(bool ranked, Dims dims) : ranked_(ranked), dims_(std::move(dims)) {}

  bool ranked_ = false;
  Dims dims_;
};
std::string ToString(const Shape&);  // "[1,?,3]", "[*]" when unranked

struct Type {
  DType dtype = DType::kNone;
  Shape shape;
  bool operator==(const Type&) const = default;
};
std::string ToString(const Type&);  // "f32[1,?,3]"
// Bytes of a dense tensor of this type; nothing if not static, not fixed-size (strings), or on overflow.
std::optional<size_t> ByteSize(const Type&);
// True if a value of type `is` may be used where `expected` is declared: equal dtype, and no known dimension
// differs.
bool Compatible(const Type& is, const Type& expected);

struct Quant {
  SharedArray<float> scales, min, max;
  SharedArray<int64_t> zero_points;
  int32_t axis = 0;
  int32_t block_size = 0;  // 0: not blockwise
  bool operator==(const Quant&) const = default;
};

// A tensor with data: an attribute's value, a test's input, a session's output.
struct Tensor {
  Type type;
  Buffer data;
  bool operator==(const Tensor&) const;  // by content
};

struct FunctionRef {
  std::string name;
  bool operator==(const FunctionRef&) const = default;
};

class Attrs;
using AttrValue = std::variant<std::monostate, bool, int64_t, double, std::string, DType, Shape, Tensor,
                               std::vector<int64_t>, std::vector<double>, std::vector<std::string>,
                               FunctionRef, std::shared_ptr<const Attrs>>;

// Attributes of a node, sorted by name. Enumerated options are their names ("SAME", "RELU"). A missing field
// means its schema default. Bytes fields are strings. Set and Erase invalidate iterators and pointers to
// values.
class Attrs {
 public:
  const AttrValue* Find(std::string_view name) const;
  // Stores integers as int64_t and text as std::string.
  template <class T>
  void Set(std::string name, T&& value) {
    using V = std::remove_cvref_t<T>;
    AttrValue& slot = Slot(std::move(name));
    if constexpr (std::is_same_v<V, bool>) slot.emplace<bool>(value);
    else if constexpr (std::is_integral_v<V>) slot.emplace<int64_t>(static_cast<int64_t>(value));
    else if constexpr (std::is_floating_point_v<V>) slot.emplace<double>(static_cast<double>(value));
    else if constexpr (std::is_convertible_v<T, std::string_view> && !std::is_same_v<V, std::string>)
      slot.emplace<std::string>(std::string_view(value));
    else slot = std::forward<T>(value);
  }
  void Erase(std::string_view name);
  // The value; `otherwise` if the attribute is missing or has another kind.
  int64_t i64(std::string_view name, int64_t otherwise) const;
  double f64(std::string_view name, double otherwise) const;
  bool b(std::string_view name, bool otherwise) const;
  std::string str(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> i64s(std::string_view name) const;  // empty if missing; accepts a Shape
  const FunctionRef* function(std::string_view name) const;

  bool empty() const { return values_.empty(); }
  size_t size() const { return values_.size(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  auto begin() { return values_.begin(); }
  auto end() { return values_.end(); }
  bool operator==(const Attrs&) const;

 private:
  AttrValue& Slot(std::string name);

  std::vector<std::pair<std::string, AttrValue>> values_;
};
std::string ToString(const AttrValue&);
std::string ToString(const Attrs&);  // "{axis=1, padding=SAME}"

}  // namespace fusebox
