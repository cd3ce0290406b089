// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "host/graph/npy.h"
#include "host/tflite/options.h"
#include "host/tflite/tflite.h"

namespace fusebox::fuzz {
namespace {

constexpr int64_t kIntegers[] = {
    0,         1,        2,   3,   4,   5,    7,    8,     16,      -1,        -2,        -3,
    -128,      127,      128, 255, 256, 1000, 4096, 65536, 1 << 24, INT32_MAX, INT32_MIN, int64_t{1} << 32,
    INT64_MAX, INT64_MIN};
constexpr double kReals[] = {0,     -0.0,  1,       -1,    0.5,      2,         1e-45,       1.2e-38,
                             1e-37, 1e-30, 0x1p-33, 1e-10, 1e-5,     0.1,       255,         256,
                             1e10,  1e30,  3.4e38,  1e300, HUGE_VAL, -HUGE_VAL, std::nan("")};
constexpr int64_t kDims[] = {0, 1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 64, 255, 1024, 1 << 20, INT32_MAX};
constexpr size_t kLargest = 1 << 14;  // bytes of a constant

class Mutator {
 public:
  Mutator(Module& module, std::mt19937_64& random) : module_(module), random_(random) {}

  void Change() {
    f_ = module_.functions[Below(module_.functions.size())].get();
    if (f_->value_count() == 0 || f_->nodes.empty()) return;
    switch (Below(14)) {
      case 0:
      case 1:
      case 2: return ChangeShape(AnyValue());
      case 3: return ChangeDType(AnyValue());
      case 4:
      case 5: return ChangeQuant(AnyValue());
      case 6:
      case 7: return ChangeData(AnyValue());
      case 8: return ChangeOperands(AnyNode());
      case 9: return SwapConstant(AnyId());
      case 10: return AddNode();
      case 11: return ChangeNode(AnyNode());
      default: return ChangeAttrs(AnyNode());
    }
  }

 private:
  size_t Below(size_t n) { return n == 0 ? 0 : static_cast<size_t>(random_() % n); }
  bool Once(size_t in) { return Below(in) == 0; }
  template <class T, size_t n>
  const T& Any(const T (&list)[n]) {
    return list[Below(n)];
  }
  ValueId AnyId() { return static_cast<ValueId>(Below(static_cast<size_t>(f_->value_count()))); }
  Value& AnyValue() { return f_->value(AnyId()); }
  Node& AnyNode() { return *f_->nodes[Below(f_->nodes.size())]; }
  DType AnyDType() { return static_cast<DType>(1 + Below(FBX_VARIANT)); }
  Op AnyOp() { return AllOps()[Below(AllOps().size())].op; }

  // Makes the data of a constant fit its type.
  void Refit(Value& value) {
    if (!value.is_const()) return;
    const Buffer old = value.data;
    if (value.type.dtype == DType::kString) {
      const auto count = value.type.shape.element_count().value_or(0);
      value.data =
          PackStrings(std::vector<std::string>(static_cast<size_t>(std::min<int64_t>(count, 64)), "a b"));
      return;
    }
    const auto size = ByteSize(value.type);
    if (!size || *size > kLargest) return;
    const bool boolean = value.type.dtype == DType::kBool;
    value.data = Buffer::Make(*size, [&](std::span<std::byte> out) {
      for (size_t i = 0; i < out.size() && old.size() > 0; ++i)
        out[i] = old.data()[i % old.size()] & std::byte(boolean ? 1 : 0xFF);
    });
  }

  void ChangeShape(Value& value) {
    Shape& shape = value.type.shape;
    auto& dims = shape.dims();
    const auto dim = [&]() -> int64_t { return !value.is_const() && Once(4) ? -1 : Any(kDims); };
    if (Once(8) && !value.is_const()) shape = Shape();
    else if (!shape.ranked() || (Once(4) && dims.size() < 9)) {
      std::vector<int64_t> more(dims.begin(), dims.end());
      more.insert(more.begin() + static_cast<ptrdiff_t>(Below(more.size() + 1)), dim());
      shape = Shape(more);
    } else if (!dims.empty() && Once(4)) {
      dims.erase(dims.begin() + static_cast<ptrdiff_t>(Below(dims.size())));
    } else if (!dims.empty()) {
      dims[Below(dims.size())] = dim();
    }
    Refit(value);
  }

  void ChangeDType(Value& value) {
    value.type.dtype = AnyDType();
    Refit(value);
  }

  void ChangeQuant(Value& value) {
    if (value.quant != nullptr && Once(6)) return value.quant.reset();
    Quant quant = value.quant != nullptr ? *value.quant : Quant();
    std::vector<float> scales(quant.scales.begin(), quant.scales.end());
    std::vector<int64_t> zeros(quant.zero_points.begin(), quant.zero_points.end());
    const auto& dims = value.type.shape.dims();
    if (scales.empty() || Once(4)) {
      quant.axis = static_cast<int32_t>(Once(8) ? Any(kIntegers) : static_cast<int64_t>(Below(dims.size())));
      const bool channels = Once(2) && static_cast<size_t>(quant.axis) < dims.size();
      const int64_t count = channels ? dims[static_cast<size_t>(quant.axis)] : 1;
      scales.assign(static_cast<size_t>(std::clamp<int64_t>(count, 1, 64)), 0.5f);
      zeros.assign(scales.size(), 0);
    }
    switch (Below(4)) {
      case 0: std::ranges::fill(scales, static_cast<float>(Any(kReals))); break;
      case 1: scales[Below(scales.size())] = static_cast<float>(Any(kReals)); break;
      case 2: std::ranges::fill(zeros, Any(kIntegers)); break;
      default: quant.block_size = Once(4) ? static_cast<int32_t>(Any(kIntegers)) : 0; break;
    }
    quant.scales = scales;
    quant.zero_points = zeros;
    value.quant = std::make_shared<const Quant>(std::move(quant));
  }

  template <class T>
  void Put(std::span<std::byte> out, size_t at, T number) {
    std::memcpy(out.data() + at * sizeof(T), &number, sizeof(T));
  }
  void PutElement(DType dtype, std::span<std::byte> out, size_t at) {
    const int64_t whole = Once(2) ? static_cast<int64_t>(Below(6)) - 1 : Any(kIntegers);
    switch (BitsOf(dtype)) {
      case 32:
        if (dtype == DType::kF32) return Put(out, at, static_cast<float>(Any(kReals)));
        return Put(out, at, static_cast<int32_t>(whole));
      case 64:
        if (dtype == DType::kF64) return Put(out, at, Any(kReals));
        return Put(out, at, whole);
      case 16: return Put(out, at, static_cast<int16_t>(whole));
      case 8: return Put(out, at, static_cast<int8_t>(dtype == DType::kBool ? whole & 1 : whole));
      default: out[Below(out.size())] = static_cast<std::byte>(random_());
    }
  }
  void ChangeData(Value& value) {
    if (!value.is_const() || value.data.size() == 0 || value.type.dtype == DType::kString) return;
    const Buffer old = value.data;
    const size_t bits = BitsOf(value.type.dtype), count = bits < 8 ? 1 : old.size() / (bits / 8);
    value.data = Buffer::Make(old.size(), [&](std::span<std::byte> out) {
      std::memcpy(out.data(), old.data(), out.size());
      for (size_t i = 0, changes = 1 + Below(3); i < changes && count > 0; ++i)
        PutElement(value.type.dtype, out, Below(count));
    });
  }

  // Makes an input of a constant, or a constant of an input.
  void SwapConstant(ValueId id) {
    Value& value = f_->value(id);
    if (value.is_const()) {
      value.data = Buffer();
      f_->inputs.push_back(id);
      return;
    }
    const auto at = std::ranges::find(f_->inputs, id);
    const auto size = ByteSize(value.type);
    if (at == f_->inputs.end() || !size || *size > kLargest) return;
    f_->inputs.erase(at);
    value.data = Buffer::Make(*size, [](std::span<std::byte>) {});
  }

  void ChangeOperands(Node& node) {
    const ValueId id = Once(4) ? kNoValue : AnyId();
    const size_t at = Below(node.operands.size());
    if (node.operands.empty() || Once(4)) node.operands.push_back(id);
    else if (Once(4)) node.operands.erase(node.operands.begin() + static_cast<ptrdiff_t>(at));
    else node.operands[at] = id;
  }

  void ChangeNode(Node& node) {
    if (Once(2)) node.version = static_cast<int32_t>(Below(8));
    else if (node.is(Op::kCustom) || Once(4)) f_->outputs.push_back(AnyId());
    else node.op = AnyOp();
  }

  void AddNode() {
    if (f_->nodes.size() > 8) return;
    const Op op = AnyOp();
    const OperandList& list = Info(op).operands;
    ValueIds operands;
    for (int i = 0; i < std::max(list.min, 1); ++i) operands.push_back(AnyId());
    const Type type = f_->value(operands[0]).type;
    const auto quant = f_->value(operands[0]).quant;
    const ValueId result = f_->AddNode(op, operands, {type}).results[0];
    f_->value(result).quant = quant;
    f_->outputs.push_back(result);
    for (int i = 0; i < 3; ++i) ChangeAttrs(*f_->nodes.back());
  }

  AttrValue AnyAttr(const tflite::OptionField& field) {
    if (field.is_dtype) return AnyDType();
    if (field.names != nullptr && field.type != reflection::Vector) {
      const auto& names = *field.names->values();
      return names.Get(static_cast<unsigned>(Below(names.size())))->name()->str();
    }
    switch (field.type) {
      case reflection::Bool: return Once(2);
      case reflection::String: return std::string(Below(4), 'x');
      case reflection::Float:
      case reflection::Double: return Any(kReals);
      case reflection::Vector: {
        std::vector<int64_t> list(Below(6));
        for (int64_t& number : list) number = Once(3) ? Any(kIntegers) : static_cast<int64_t>(Below(4));
        return list;
      }
      default: return Once(2) ? static_cast<int64_t>(1 + Below(3)) : Any(kIntegers);
    }
  }
  // Options of a custom op have the kinds that the file gives them.
  void ChangeCustom(Node& node) {
    auto& [key, value] = *(node.attrs.begin() + static_cast<ptrdiff_t>(Below(node.attrs.size())));
    if (Once(8)) return node.attrs.Erase(std::string(key));
    if (auto* number = std::get_if<int64_t>(&value)) *number = Any(kIntegers);
    else if (auto* real = std::get_if<double>(&value)) *real = Any(kReals);
    else if (auto* flag = std::get_if<bool>(&value)) *flag = !*flag;
    else if (auto* list = std::get_if<std::vector<int64_t>>(&value)) list->push_back(Any(kIntegers));
    else value = Once(2) ? AttrValue(Any(kIntegers)) : AttrValue(std::string(Below(4), 'x'));
  }
  void ChangeAttrs(Node& node) {
    if (node.is(Op::kCustom) && node.attrs.size() > 0) return ChangeCustom(node);
    const tflite::OptionTable* const table = tflite::TableOf(node.op);
    if (table == nullptr || table->fields.empty()) return;
    const tflite::OptionField& field = table->fields[Below(table->fields.size())];
    if (field.is_function) return;
    if (Once(8)) node.attrs.Erase(field.name);
    else node.attrs.Set(field.name, AnyAttr(field));
  }

  Module& module_;
  std::mt19937_64& random_;
  Function* f_ = nullptr;
};

}  // namespace

std::string Mutated(std::string_view file, std::mt19937_64& random) {
  const auto module = tflite::Read(Buffer::Copy(std::as_bytes(std::span(file))), "fuzz.tflite");
  if (!module) return "";
  Mutator mutator(**module, random);
  for (size_t i = 0, changes = 1 + random() % 4; i < changes; ++i) mutator.Change();
  const auto written = tflite::Write(**module);
  return written ? *written : "";
}

}  // namespace fusebox::fuzz
