// SPDX-License-Identifier: Apache-2.0
// Implements fbx_builder. Arguments come from plugins, so all of them are validated.
#include <algorithm>
#include <cstring>

#include "host/base/no_throw.h"
#include "host/eval/eval.h"
#include "host/fusion/transaction.h"
#include "host/graph/npy.h"
#include "host/tflite/tflite.h"

namespace fusebox {

struct BuilderFunctions {
  static Transaction& Self(const fbx_builder* b) {
    return *reinterpret_cast<const Transaction::Table*>(b)->self;
  }

  static constexpr int32_t kMostDims = 64;

  // The results of functions without memory.
  struct NoMemoryResult {
    operator fbx_value() const { return FBX_NO_VALUE; }
    operator fbx_status() const { return FBX_OUT_OF_MEMORY; }
    operator const fbx_tensor*() const {
      static const fbx_tensor absent{.head = FBX_HEAD(fbx_tensor), .flags = FBX_TENSOR_ABSENT};
      return &absent;
    }
  };
  static NoMemoryResult Failed(const fbx_builder* b) {
    Self(b).no_memory_ = true;
    return {};
  }

  static fbx_value Operand(const fbx_builder* b, uint32_t index) {
    Transaction& t = Self(b);
    if (index >= t.operands_.size()) {
      t.Refuse("operand " + std::to_string(index) + " does not exist");
      return FBX_NO_VALUE;
    }
    const ValueId v = t.operands_[index];
    return v == kNoValue || t.function_->value(v).type.dtype == DType::kNone ? FBX_NO_VALUE : t.Add(v);
  }

  static Result<Tensor> Copy(const fbx_tensor* from) {
    if (!from || !from->data || from->rank > kMostDims) return Invalid("a tensor without data");
    Tensor tensor{fusebox::TypeOf(*from),
                  Buffer::Copy({static_cast<const std::byte*>(from->data), from->bytes})};
    if (tensor.type.dtype != DType::kString) {
      if (ByteSize(tensor.type) != from->bytes) return Invalid("a tensor without data");
      return tensor;
    }
    FUSEBOX_ASSIGN(const auto strings, UnpackStrings(tensor.data));
    if (tensor.type.shape.element_count() != static_cast<int64_t>(strings.size()))
      return Invalid("a tensor with " + std::to_string(strings.size()) + " strings");
    return tensor;
  }

  static fbx_value AddConst(const fbx_builder* b, fbx_dtype dtype, const int64_t* dims, int32_t rank,
                            void** data) {
    Transaction& t = Self(b);
    if (data) *data = nullptr;
    if (rank < 0 || rank > 8 || (rank > 0 && !dims) || !data) {
      t.Refuse("a constant has an invalid rank");
      return FBX_NO_VALUE;
    }
    const Type type{static_cast<DType>(dtype), Shape(std::vector<int64_t>(dims, dims + rank))};
    const auto bytes = ByteSize(type);
    if (!bytes) {
      t.Refuse("a constant cannot have type " + ToString(type) + "");
      return FBX_NO_VALUE;
    }
    std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[*bytes + kOverread]());
    if (!memory) {
      t.Refuse("a constant of type " + ToString(type) + " does not fit into memory");
      return FBX_NO_VALUE;
    }
    // Until Finish copies what the rule wrote.
    std::byte* const bytes_of_rule = memory.get();
    const ValueId v = t.function_->AddConst(
        type,
        Buffer(std::shared_ptr<const void>(bytes_of_rule, [](const void*) {}), {bytes_of_rule, *bytes}));
    t.filled_.push_back({v, std::move(memory), *bytes});
    *data = bytes_of_rule;
    return t.Add(v);
  }

  static fbx_value AddVariable(const fbx_builder* b, fbx_dtype dtype, const int64_t* dims, int32_t rank,
                               const void* initial) {
    Transaction& t = Self(b);
    if (rank < 0 || rank > 8 || (rank > 0 && !dims)) {
      t.Refuse("a variable has an invalid rank");
      return FBX_NO_VALUE;
    }
    const Type type{static_cast<DType>(dtype), Shape(std::vector<int64_t>(dims, dims + rank))};
    const auto bytes = ByteSize(type);
    if (!bytes) {
      t.Refuse("a variable cannot have type " + ToString(type) + ": a session keeps values of known size");
      return FBX_NO_VALUE;
    }
    const ValueId v = t.function_->AddValue(type, "state");
    Value& value = t.function_->value(v);
    value.is_variable = true;
    if (initial) value.initial = Buffer::Copy({static_cast<const std::byte*>(initial), *bytes});
    return t.Add(v);
  }

  static fbx_value AddTensor(const fbx_builder* b, const fbx_tensor* from) {
    Transaction& t = Self(b);
    auto tensor = Copy(from);
    auto quant = tensor && from->quant ? FromAbi(from->quant) : nullptr;
    if (!tensor || !quant) {
      t.Refuse("a constant is " + (tensor ? quant.error() : tensor.error()).message);
      return FBX_NO_VALUE;
    }
    const ValueId v = t.function_->AddConst(tensor->type, std::move(tensor->data));
    t.function_->value(v).quant = *std::move(quant);
    return t.Add(v);
  }

  static fbx_status AddNode(const fbx_builder* b, fbx_op_kind kind, fbx_str name, int32_t version,
                            const fbx_value* operands, uint32_t operand_count, fbx_value* results,
                            uint32_t result_count) {
    Transaction& t = Self(b);
    const auto refuse = [&](std::string why) -> fbx_status {
      t.Refuse(std::move(why));
      return FBX_INVALID;
    };
    if ((!operands && operand_count) || (!results && result_count))
      return refuse("a node with null operands or results");
    for (uint32_t i = 0; i < result_count; ++i) results[i] = FBX_NO_VALUE;
    if (!t.Flush() || !t.failure_.empty()) return FBX_INVALID;
    const std::string op(FromAbi(name));
    Op emitted = Op::kCustom;
    if (kind == FBX_OP_BUILTIN) {
      const auto found = FindOp(op);
      if (!found || Info(*found).code < 0) return refuse("unknown builtin op " + op);
      if (Info(*found).effects == Effects::kControl)
        return refuse(op + " calls functions, which a rewrite cannot emit");
      emitted = *found;
    }
    if (kind != FBX_OP_BUILTIN && (kind != FBX_OP_CUSTOM || op.empty()))
      return refuse("an op must be builtin or have a custom name");
    if (operand_count > 1024 || result_count > 1024) return refuse(op + " has too many operands or results");
    std::vector<ValueId> ins;
    for (uint32_t i = 0; i < operand_count; ++i) {
      if (operands[i] != FBX_NO_VALUE && !t.KnownValue(operands[i]))
        return refuse(op + ": operand " + std::to_string(i) + " is not a value of this rewrite");
      ins.push_back(operands[i] == FBX_NO_VALUE ? kNoValue : static_cast<ValueId>(operands[i]));
    }
    Node& node = t.function_->AddNode(emitted, std::move(ins), std::vector<Type>(result_count));
    if (emitted == Op::kCustom) node.name = op;
    node.version = version;
    for (uint32_t i = 0; i < result_count; ++i) results[i] = t.Add(node.results[i]);
    t.pending_ = &node;
    return FBX_OK;
  }

  template <class T>
  static void Set(const fbx_builder* b, fbx_str key, T value) {
    if (Attrs* attrs = Self(b).OpenAttrs()) attrs->Set(std::string(FromAbi(key)), std::move(value));
  }
  static void AttrBool(const fbx_builder* b, fbx_str key, int32_t v) { Set(b, key, v != 0); }
  static void AttrI64(const fbx_builder* b, fbx_str key, int64_t v) { Set(b, key, v); }
  static void AttrF64(const fbx_builder* b, fbx_str key, double v) { Set(b, key, v); }
  // If an op's option is an element type, its name ("i32") becomes that type.
  static void AttrStr(const fbx_builder* b, fbx_str key, fbx_str v) {
    const Node* node = Self(b).Last();
    const auto dtype = node && Self(b).maps_.empty() ? ParseDType(FromAbi(v)) : std::nullopt;
    if (dtype && std::holds_alternative<DType>(tflite::OptionDefault(Info(node->op).options, FromAbi(key))))
      return Set(b, key, *dtype);
    Set(b, key, std::string(FromAbi(v)));
  }
  static void AttrI64s(const fbx_builder* b, fbx_str key, const int64_t* v, size_t n) {
    Set(b, key, std::vector<int64_t>(v, v + n));
  }
  static void AttrF64s(const fbx_builder* b, fbx_str key, const double* v, size_t n) {
    Set(b, key, std::vector<double>(v, v + n));
  }
  static void AttrStrs(const fbx_builder* b, fbx_str key, const fbx_str* v, size_t n) {
    std::vector<std::string> strings;
    for (size_t i = 0; i < n; ++i) strings.emplace_back(FromAbi(v[i]));
    Set(b, key, std::move(strings));
  }
  static void AttrDType(const fbx_builder* b, fbx_str key, fbx_dtype v) {
    if (v <= FBX_DTYPE_NONE || v > FBX_VARIANT)
      return Self(b).Refuse("attribute " + std::string(FromAbi(key)) + " has an unknown element type");
    Set(b, key, static_cast<DType>(v));
  }
  static void AttrShape(const fbx_builder* b, fbx_str key, const int64_t* dims, int32_t rank) {
    if (rank > kMostDims || (rank > 0 && !dims))
      return Self(b).Refuse("attribute " + std::string(FromAbi(key)) + " has an invalid rank");
    Set(b, key, rank < 0 ? Shape() : Shape::Of({dims, static_cast<size_t>(rank)}));
  }
  static void AttrTensor(const fbx_builder* b, fbx_str key, const fbx_tensor* v) {
    auto tensor = Copy(v);
    if (!tensor)
      return Self(b).Refuse("attribute " + std::string(FromAbi(key)) + " is " + tensor.error().message);
    Set(b, key, *std::move(tensor));
  }
  static void BeginMap(const fbx_builder* b, fbx_str key) {
    if (Self(b).Last()) Self(b).maps_.emplace_back(std::string(FromAbi(key)), Attrs());
  }
  static void EndMap(const fbx_builder* b) {
    Transaction& t = Self(b);
    if (t.maps_.empty()) return t.Refuse("a map ends that does not begin");
    auto [key, map] = std::move(t.maps_.back());
    t.maps_.pop_back();
    Set(b, AsAbi(key), std::shared_ptr<const Attrs>(std::make_shared<Attrs>(std::move(map))));
  }
  static void AttrCopy(const fbx_builder* b, const fbx_attrs* from, fbx_str key) {
    const AttrValue* value = from ? FromAbi(from).Find(FromAbi(key)) : nullptr;
    if (!value) return Self(b).Refuse("attribute " + std::string(FromAbi(key)) + " to copy does not exist");
    Set(b, key, *value);
  }

  static const fbx_tensor* TypeOf(const fbx_builder* b, fbx_value v) {
    Transaction& t = Self(b);
    (void)t.Flush();
    t.shown_.push_back(t.KnownValue(v)
                           ? std::make_unique<TensorView>(t.function_->value(static_cast<ValueId>(v)))
                           : std::make_unique<TensorView>());
    t.shown_.back()->edit().name = {};  // adding values invalidates the function's names
    return t.shown_.back()->abi();
  }

  static void SetResult(const fbx_builder* b, uint32_t index, fbx_value v) {
    Transaction& t = Self(b);
    (void)t.Flush();
    if (index >= t.results_.size()) return t.Refuse("the composite has no result " + std::to_string(index));
    if (!t.KnownValue(v))
      return t.Refuse("result " + std::to_string(index) + " is not a value of this rewrite");
    t.results_[index] = static_cast<ValueId>(v);
  }

  static void RawOptions(const fbx_builder* b, fbx_bytes bytes) {
    Node* const node = Self(b).Last();
    if (!node) return;
    if (!node->is(Op::kCustom)) return Self(b).Refuse("only a custom op has option bytes");
    node->raw_options.assign(static_cast<const char*>(bytes.ptr), bytes.len);
  }

  static bool IsPendingResult(const Transaction& t, fbx_value v) {
    return t.KnownValue(v) && t.pending_ &&
           std::ranges::find(t.pending_->results, static_cast<ValueId>(v)) != t.pending_->results.end();
  }

  static void SetDType(const fbx_builder* b, fbx_value v, fbx_dtype dtype) {
    Transaction& t = Self(b);
    if (!IsPendingResult(t, v)) return t.Refuse("an element type is of a result of the last node only");
    if (dtype <= FBX_DTYPE_NONE || dtype > FBX_VARIANT)
      return t.Refuse("a result has an unknown element type");
    t.function_->value(static_cast<ValueId>(v)).type.dtype = static_cast<DType>(dtype);
  }

  static void SetQuant(const fbx_builder* b, fbx_value v, const fbx_quant* from) {
    Transaction& t = Self(b);
    const auto id = static_cast<ValueId>(v);
    const auto fits = [&] {
      if (!t.KnownValue(v)) return false;
      const Value& value = t.function_->value(id);
      const bool added = value.is_const() && std::ranges::find(t.operands_, id) == t.operands_.end();
      return IsPendingResult(t, v) || added || value.is_variable;
    };
    if (!fits()) return t.Refuse("scales are of a constant, a variable, or a result of the last node only");
    auto quant = FromAbi(from);
    if (!quant) return t.Refuse(quant.error().message);
    Value& value = t.function_->value(id);
    value.quant = *std::move(quant);
    if (value.type.dtype != DType::kNone) return;
    // Kernels decline a result with scales and without a type, so it gets the type of the first quantized
    // operand.
    for (const ValueId operand : t.pending_->operands) {
      if (operand == kNoValue || !t.function_->value(operand).quant) continue;
      value.type.dtype = t.function_->value(operand).type.dtype;
      return;
    }
  }
};

template <auto kBody>
constexpr auto kSafe = kNoThrow<kBody, BuilderFunctions::Failed>;

void FillBuilder(fbx_builder& b) {
  using F = BuilderFunctions;
  b = {.head = FBX_HEAD(fbx_builder),
       .operand = kSafe<F::Operand>,
       .add_const = kSafe<F::AddConst>,
       .add_node = kSafe<F::AddNode>,
       .attr_bool = kSafe<F::AttrBool>,
       .attr_i64 = kSafe<F::AttrI64>,
       .attr_f64 = kSafe<F::AttrF64>,
       .attr_str = kSafe<F::AttrStr>,
       .attr_i64s = kSafe<F::AttrI64s>,
       .attr_f64s = kSafe<F::AttrF64s>,
       .attr_strs = kSafe<F::AttrStrs>,
       .attr_copy = kSafe<F::AttrCopy>,
       .type = kSafe<F::TypeOf>,
       .set_result = kSafe<F::SetResult>,
       .raw_options = kSafe<F::RawOptions>,
       .set_quant = kSafe<F::SetQuant>,
       .attr_dtype = kSafe<F::AttrDType>,
       .attr_shape = kSafe<F::AttrShape>,
       .attr_tensor = kSafe<F::AttrTensor>,
       .begin_map = kSafe<F::BeginMap>,
       .end_map = kSafe<F::EndMap>,
       .add_tensor = kSafe<F::AddTensor>,
       .set_dtype = kSafe<F::SetDType>,
       .add_variable = kSafe<F::AddVariable>};
}

}  // namespace fusebox
