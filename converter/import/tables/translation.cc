// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "converter/import/tables/translate.h"

namespace fusebox::converter {

Status Translation::Arity(size_t n) const {
  if (count() == n) return {};
  return Invalid("it has " + std::to_string(count()) + " operands, expected " + std::to_string(n));
}

Result<std::vector<int64_t>> Translation::Ints(size_t i) const {
  if (i >= count()) return Invalid("operand " + std::to_string(i) + " is missing");
  const fusebox::Value& v = f_.value(in(i));
  if (!v.is_const()) return Unsupported("operand " + std::to_string(i) + " is not constant");
  std::vector<int64_t> out;
  if (v.type.dtype == DType::kI32) {
    for (int32_t x : v.data.As<int32_t>()) out.push_back(x);
  } else if (v.type.dtype == DType::kI64) {
    for (int64_t x : v.data.As<int64_t>()) out.push_back(x);
  } else {
    return Unsupported("operand " + std::to_string(i) + " is " + std::string(Name(v.type.dtype)) +
                       ", expected integers");
  }
  return out;
}

Result<int64_t> Translation::Int(size_t i) const {
  FUSEBOX_ASSIGN(const auto values, Ints(i));
  if (values.size() != 1) return Invalid("operand " + std::to_string(i) + " is no scalar");
  return values[0];
}

Result<double> Translation::Float(size_t i) const {
  if (i >= count()) return Invalid("operand " + std::to_string(i) + " is missing");
  const fusebox::Value& v = f_.value(in(i));
  if (!v.is_const()) return Unsupported("operand " + std::to_string(i) + " is not constant");
  const bool single = v.type.dtype == DType::kF32;
  if (!single && v.type.dtype != DType::kF64)
    return Unsupported("operand " + std::to_string(i) + " is " + std::string(Name(v.type.dtype)) +
                       ", expected a float");
  if (v.type.shape.element_count() != 1) return Invalid("operand " + std::to_string(i) + " is no scalar");
  return single ? static_cast<double>(v.data.As<float>()[0]) : v.data.As<double>()[0];
}

Result<int> Translation::Rank(ValueId v) const {
  if (!type(v).shape.ranked()) return Unsupported("the rank of its operand is not known");
  return type(v).shape.rank();
}

Node& Translation::Emit(Op op, std::vector<ValueId> operands, Attrs attrs, size_t results) {
  Node& made = f_.AddNode(op, std::move(operands), std::vector<Type>(results), std::move(attrs));
  made.location = node_.location;
  for (ValueId v : made.results) f_.value(v).name = node_.location.name;
  // What cannot be inferred yet is inferred when more is known; a real contradiction shows in the next type
  // pass.
  (void)InferNode(registry_, module_, f_, made);
  return made;
}

ValueId Translation::Typed(Op op, std::vector<ValueId> operands, fusebox::Type type, Attrs attrs) {
  Node& made = f_.AddNode(op, std::move(operands), {std::move(type)}, std::move(attrs));
  made.location = node_.location;
  f_.value(made.results[0]).name = node_.location.name;
  return made.results[0];
}

const Node* Translation::Producer(ValueId v) const {
  for (auto node = f_.nodes.rbegin(); node != f_.nodes.rend(); ++node)
    if (*node && std::ranges::find((*node)->results, v) != (*node)->results.end()) return node->get();
  return nullptr;
}

ValueId Translation::I32(std::vector<int32_t> values) {
  const auto n = static_cast<int64_t>(values.size());
  return f_.AddConst(DType::kI32, Shape{n}, std::move(values));
}
ValueId Translation::I32Scalar(int32_t value) {
  return f_.AddConst(DType::kI32, Shape::Scalar(), std::vector<int32_t>{value});
}

ValueId Translation::ShapeOf(ValueId v) {
  Attrs attrs;
  attrs.Set("out_type", DType::kI32);
  return Value(Op::kShape, {v}, std::move(attrs));
}

ValueId Translation::Scalar(DType dtype, double value) {
  const auto of = [&]<class T>(T typed) {
    return f_.AddConst(dtype, Shape::Scalar(), std::vector<T>{typed});
  };
  switch (dtype) {
    case DType::kF32: return of(static_cast<float>(value));
    case DType::kF64: return of(value);
    case DType::kI8: return of(static_cast<int8_t>(value));
    case DType::kI16: return of(static_cast<int16_t>(value));
    case DType::kI32: return of(static_cast<int32_t>(value));
    case DType::kI64: return of(static_cast<int64_t>(value));
    case DType::kU8: return of(static_cast<uint8_t>(value));
    case DType::kBool: return of(static_cast<uint8_t>(value != 0));
    default: break;
  }
  const ValueId single =
      f_.AddConst(DType::kF32, Shape::Scalar(), std::vector<float>{static_cast<float>(value)});
  if (dtype == DType::kNone) return single;
  Attrs attrs;
  attrs.Set("in_data_type", DType::kF32);
  attrs.Set("out_data_type", dtype);
  const ValueId cast = Value(Op::kCast, {single}, std::move(attrs));
  f_.value(cast).type = {dtype, Shape::Scalar()};
  return cast;
}

ValueId Translation::ToI32(ValueId v) {
  if (type(v).dtype != DType::kI64) return v;
  if (f_.value(v).is_const()) {
    std::vector<int32_t> narrow;
    for (int64_t x : f_.value(v).data.As<int64_t>()) {
      narrow.push_back(static_cast<int32_t>(std::clamp<int64_t>(x, INT32_MIN, INT32_MAX)));
    }
    return f_.AddConst(DType::kI32, type(v).shape, std::move(narrow));
  }
  return Cast(v, DType::kI32);
}

ValueId Translation::Cast(ValueId v, DType to) {
  if (type(v).dtype == to) return v;
  Attrs attrs;
  attrs.Set("in_data_type", type(v).dtype);
  attrs.Set("out_data_type", to);
  return Value(Op::kCast, {v}, std::move(attrs));
}

std::span<const std::span<const TranslateRow>> TranslationTables() {
  static const std::span<const TranslateRow> kTables[] = {
      ElementwiseTable(), ComposedTable(), BuiltinTable(), SuppressionTable(), ShapeTable(), MatrixTable(),
      VolumeTable(),      EinsumTable(),   StateTable(),   FunctionTable(),    BitTable(),   SegmentTable(),
      FormTable(),        RandomTable(),   LookupRows(),   ImageTable(),       PatchTable()};
  return kTables;
}

Translate FindTranslation(std::string_view op) {
  static const auto* all = [] {
    auto* map = new std::unordered_map<std::string_view, Translate>;
    for (const auto& table : TranslationTables())
      for (const TranslateRow& row : table) map->emplace(row.op, row.translate);
    return map;
  }();
  const auto it = all->find(op);
  return it == all->end() ? nullptr : it->second;
}

}  // namespace fusebox::converter
