// SPDX-License-Identifier: Apache-2.0
// A complex value becomes two real ones. TFLite knows complex numbers by name, but has hardly an op that
// takes them. Fourier transforms become products with matrices of cosines and sines, which every runtime and
// delegate has.
#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "converter/passes/pass.h"
#include "converter/passes/rewrite.h"
#include "host/graph/values.h"

namespace fusebox::converter {
namespace {

constexpr int64_t kLongest = 4096;  // of a transform; its matrices grow with the square

// A part that is zero everywhere may be absent (kNoValue), not both.
struct Parts {
  ValueId real, imaginary;
};

class Lowering {
 public:
  Lowering(Module& module, Function& function, Registry& registry)
      : f_(function), t_(module, function, registry) {}

  Status Run() {
    FUSEBOX_TRY(t_.Each([&](Node& node) -> Status {
      const Rule* rule = Find(node);
      if (rule == nullptr) return {};
      FUSEBOX_TRY((this->**rule)());
      t_.Drop(node);
      return {};
    }));
    for (size_t i = 0; i < f_.outputs.size(); ++i) {
      if (parts_.contains(f_.outputs[i]))
        return Unsupported("function " + f_.name + ": output " + std::to_string(i) + " is a complex number");
    }
    return {};
  }

 private:
  using Rule = Status (Lowering::*)();

  bool HoldsComplex(ValueId id) const {
    return id != kNoValue && (parts_.contains(id) || IsComplex(f_.value(id).type.dtype));
  }

  const Rule* Find(const Node& node) const {
    static const std::map<std::string_view, Rule> kSource = {
        {"RFFT", &Lowering::Rfft},     {"IRFFT", &Lowering::Irfft},        {"FFT", &Lowering::Fft},
        {"IFFT", &Lowering::Fft},      {"ComplexAbs", &Lowering::Size},    {"Angle", &Lowering::Angle},
        {"Real", &Lowering::RealPart}, {"Imag", &Lowering::ImaginaryPart}, {"Conj", &Lowering::Conj},
        {"Complex", &Lowering::Join}};
    static const std::map<Op, Rule> kComplex = {
        {Op::kCast, &Lowering::Cast}, {Op::kMul, &Lowering::Mul}, {Op::kExp, &Lowering::Exp}};
    static constexpr Rule kEachPart = &Lowering::EachPart;
    static constexpr Rule kSize = &Lowering::Size;
    static constexpr Rule kRefuse = &Lowering::Refuse;
    bool lowered = false;
    bool complex = false;
    for (const ValueId id : node.operands) {
      lowered = lowered || parts_.contains(id);
      complex = complex || HoldsComplex(id);
    }
    for (const ValueId id : node.results) complex = complex || HoldsComplex(id);
    if (node.is(Op::kOpaque)) {
      if (const auto found = kSource.find(node.name); found != kSource.end()) return &found->second;
      if (node.name == "Cast" && complex) return &kComplex.at(Op::kCast);
      return lowered ? &kRefuse : nullptr;
    }
    if (!complex) return nullptr;
    if (node.is(Op::kAbs)) return &kSize;
    if (Has(node.op, kLinear)) return &kEachPart;
    const auto found = kComplex.find(node.op);
    return found == kComplex.end() ? &kRefuse : &found->second;
  }

  Status Refuse() {
    const Node& node = t_.node();
    const std::string op = node.is(Op::kOpaque) ? node.name : std::string(Name(node.op));
    return Unsupported(op + " of complex numbers is not lowered to real ones");
  }

  // Returns the parts of an operand. A constant is split into its parts; a real number has one part.
  Result<Parts> In(size_t i) {
    if (i >= t_.count()) return Invalid("operand " + std::to_string(i) + " is missing");
    const ValueId id = t_.in(i);
    if (const auto found = parts_.find(id); found != parts_.end()) return found->second;
    const Value& value = f_.value(id);
    if (!IsComplex(value.type.dtype)) return Parts{id, kNoValue};
    if (value.type.dtype == DType::kComplex128)
      return Unsupported("operand " + std::to_string(i) +
                         " is complex128; complex numbers are lowered to f32");
    if (!value.is_const())
      return Unsupported("operand " + std::to_string(i) + " is a complex number from outside the function");
    std::vector<float> real;
    std::vector<float> imaginary;
    const auto numbers = value.data.As<float>();
    for (size_t k = 0; k + 1 < numbers.size(); k += 2) {
      real.push_back(numbers[k]);
      imaginary.push_back(numbers[k + 1]);
    }
    const Shape shape = value.type.shape;
    const auto part = [&](std::vector<float> numbers, bool needed) {
      const bool zero = std::ranges::all_of(numbers, [](float number) { return number == 0; });
      return zero && !needed ? kNoValue : f_.AddConst(DType::kF32, shape, std::move(numbers));
    };
    Parts parts{kNoValue, part(std::move(imaginary), false)};
    parts.real = part(std::move(real), parts.imaginary == kNoValue);
    parts_[id] = parts;
    return parts;
  }
  // The same with both parts there.
  Result<Parts> Whole(size_t i) {
    FUSEBOX_ASSIGN(Parts parts, In(i));
    if (!HoldsComplex(t_.in(i))) parts.imaginary = t_.Scalar(t_.type(parts.real).dtype, 0);
    if (parts.real == kNoValue) parts.real = t_.Value(Op::kZerosLike, {parts.imaginary});
    if (parts.imaginary == kNoValue) parts.imaginary = t_.Value(Op::kZerosLike, {parts.real});
    return parts;
  }

  void SetParts(ValueId real, ValueId imaginary) { parts_[t_.node().results[0]] = {real, imaginary}; }
  void SetReal(ValueId value) { t_.Forward(t_.node().results[0], value); }

  Status Results() {
    return t_.node().results.size() == 1 ? Status() : Invalid("it has more than one result");
  }

  Status EachPart() {
    FUSEBOX_TRY(Results());
    std::vector<ValueId> real = t_.node().operands;
    std::vector<ValueId> imaginary = real;
    for (size_t i = 0; i < real.size(); ++i) {
      const bool all = t_.node().is(Op::kAdd) || t_.node().is(Op::kSub);
      if (!HoldsComplex(real[i]) && !all) continue;
      FUSEBOX_ASSIGN(const Parts parts, Whole(i));
      real[i] = parts.real;
      imaginary[i] = parts.imaginary;
    }
    const ValueId first = t_.Value(t_.node().op, std::move(real), t_.attrs());
    SetParts(first, t_.Value(t_.node().op, std::move(imaginary), t_.attrs()));
    return {};
  }

  Status Cast() {
    FUSEBOX_TRY(Results());
    const bool to_complex = HoldsComplex(t_.node().results[0]);
    if (!to_complex) return RealPart();
    FUSEBOX_ASSIGN(const Parts x, In(0));
    SetParts(x.real, x.imaginary);
    return {};
  }

  ValueId Product(ValueId x, ValueId y) {
    return x == kNoValue || y == kNoValue ? kNoValue : t_.Value(Op::kMul, {x, y});
  }

  Status Mul() {
    FUSEBOX_ASSIGN(const Parts a, In(0));
    FUSEBOX_ASSIGN(const Parts b, In(1));
    ValueId real = Product(a.real, b.real);
    ValueId imaginary = Product(a.real, b.imaginary);
    if (const ValueId minus = Product(a.imaginary, b.imaginary); minus != kNoValue)
      real = real == kNoValue ? t_.Value(Op::kNeg, {minus}) : t_.Value(Op::kSub, {real, minus});
    if (const ValueId more = Product(a.imaginary, b.real); more != kNoValue)
      imaginary = imaginary == kNoValue ? more : t_.Value(Op::kAdd, {imaginary, more});
    SetParts(real, imaginary);
    return {};
  }

  Status Exp() {
    FUSEBOX_ASSIGN(const Parts x, In(0));
    const ValueId size = x.real == kNoValue ? kNoValue : t_.Value(Op::kExp, {x.real});
    if (x.imaginary == kNoValue) {
      SetParts(size, kNoValue);
      return {};
    }
    const ValueId cosine = t_.Value(Op::kCos, {x.imaginary});
    const ValueId sine = t_.Value(Op::kSin, {x.imaginary});
    if (size == kNoValue) SetParts(cosine, sine);
    else SetParts(Product(size, cosine), Product(size, sine));
    return {};
  }

  Status Size() {
    FUSEBOX_ASSIGN(const Parts x, In(0));
    if (x.real == kNoValue || x.imaginary == kNoValue) {
      SetReal(t_.Value(Op::kAbs, {x.real == kNoValue ? x.imaginary : x.real}));
      return {};
    }
    const ValueId sum =
        t_.Value(Op::kAdd, {t_.Value(Op::kSquare, {x.real}), t_.Value(Op::kSquare, {x.imaginary})});
    SetReal(t_.Value(Op::kSqrt, {sum}));
    return {};
  }

  Status Angle() {
    FUSEBOX_ASSIGN(const Parts x, Whole(0));
    SetReal(t_.Value(Op::kAtan2, {x.imaginary, x.real}));
    return {};
  }

  Status RealPart() {
    FUSEBOX_ASSIGN(const Parts x, Whole(0));
    SetReal(x.real);
    return {};
  }

  Status ImaginaryPart() {
    FUSEBOX_ASSIGN(const Parts x, Whole(0));
    SetReal(x.imaginary);
    return {};
  }

  Status Conj() {
    FUSEBOX_ASSIGN(const Parts x, In(0));
    SetParts(x.real, x.imaginary == kNoValue ? kNoValue : t_.Value(Op::kNeg, {x.imaginary}));
    return {};
  }

  Status Join() {
    FUSEBOX_TRY(t_.Arity(2));
    SetParts(t_.in(0), t_.in(1));
    return {};
  }

  // Element (k, n) of a matrix [rows, columns]: `scale(k, n)` times the cosine or sine of 2 pi k n / length.
  template <class Scale>
  ValueId Matrix(int64_t rows, int64_t columns, int64_t length, bool sine, const Scale& scale) {
    std::vector<float> values;
    values.reserve(static_cast<size_t>(rows * columns));
    for (int64_t k = 0; k < rows; ++k) {
      for (int64_t n = 0; n < columns; ++n) {
        // The product is taken modulo the length, so that the angle is exact.
        const double angle =
            2 * std::numbers::pi * static_cast<double>(k * n % length) / static_cast<double>(length);
        values.push_back(static_cast<float>(scale(k, n) * (sine ? std::sin(angle) : std::cos(angle))));
      }
    }
    return f_.AddConst(DType::kF32, Shape({rows, columns}), std::move(values));
  }

  ValueId Transformed(ValueId x, ValueId matrix) {
    Attrs attrs;
    if (t_.type(x).shape.rank() > 2) attrs.Set("keep_num_dims", true);
    return t_.Value(Op::kFullyConnected, {x, matrix, kNoValue}, std::move(attrs));
  }

  Result<int64_t> LastSize(ValueId x) {
    const Shape& shape = t_.type(x).shape;
    if (shape.rank() < 2) return Unsupported("a transform of fewer than 2 known dimensions");
    if (shape.dims().back() <= 0) return Unsupported("the length of what is transformed is not known");
    if (shape.dims().back() > kLongest)
      return Unsupported("a transform of " + std::to_string(shape.dims().back()) + " values");
    return shape.dims().back();
  }

  Result<int64_t> Length() {
    FUSEBOX_ASSIGN(const auto lengths, t_.Ints(1));
    if (lengths.size() != 1 || lengths[0] < 1) return Invalid("fft_length is no positive number");
    if (lengths[0] > kLongest) return Unsupported("a transform of length " + std::to_string(lengths[0]));
    return lengths[0];
  }

  Status Rfft() {
    FUSEBOX_ASSIGN(const Parts x, In(0));
    FUSEBOX_ASSIGN(const int64_t length, Length());
    FUSEBOX_ASSIGN(const int64_t given, LastSize(x.real));
    const int64_t kept = length / 2 + 1;
    // Elements beyond `length` get factors of 0.
    const ValueId cosines =
        Matrix(kept, given, length, false, [&](int64_t, int64_t n) { return n < length ? 1.0 : 0.0; });
    const ValueId sines =
        Matrix(kept, given, length, true, [&](int64_t, int64_t n) { return n < length ? -1.0 : 0.0; });
    SetParts(Transformed(x.real, cosines), Transformed(x.real, sines));
    return {};
  }

  // All but the first and, of an even length, the middle frequency stand for their mirror image too.
  Status Irfft() {
    FUSEBOX_ASSIGN(const Parts x, Whole(0));
    FUSEBOX_ASSIGN(const int64_t length, Length());
    FUSEBOX_ASSIGN(const int64_t given, LastSize(x.real));
    const auto weight = [&](int64_t k) {
      if (k > length / 2) return 0.0;
      return (k == 0 || 2 * k == length ? 1.0 : 2.0) / static_cast<double>(length);
    };
    const ValueId cosines =
        Matrix(length, given, length, false, [&](int64_t, int64_t k) { return weight(k); });
    const ValueId sines = Matrix(length, given, length, true, [&](int64_t, int64_t k) { return -weight(k); });
    SetReal(t_.Value(Op::kAdd, {Transformed(x.real, cosines), Transformed(x.imaginary, sines)}));
    return {};
  }

  Status Fft() {
    FUSEBOX_ASSIGN(const Parts x, Whole(0));
    FUSEBOX_ASSIGN(const int64_t length, LastSize(x.real));
    if (length > kLongest) return Unsupported("a transform of length " + std::to_string(length));
    const bool inverse = t_.node().name == "IFFT";
    const double scale = inverse ? 1.0 / static_cast<double>(length) : 1.0;
    const ValueId cosines = Matrix(length, length, length, false, [&](int64_t, int64_t) { return scale; });
    const ValueId sines =
        Matrix(length, length, length, true, [&](int64_t, int64_t) { return inverse ? scale : -scale; });
    SetParts(t_.Value(Op::kSub, {Transformed(x.real, cosines), Transformed(x.imaginary, sines)}),
             t_.Value(Op::kAdd, {Transformed(x.real, sines), Transformed(x.imaginary, cosines)}));
    return {};
  }

  Function& f_;
  Translation t_;
  std::map<ValueId, Parts> parts_;  // of complex values
};

}  // namespace

Status LowerComplex(Context& context) {
  return ForEachSignature(context, [&](const Signature& s) -> Status {
    // Only converted files have this op, and their complex numbers already have the form that TFLite runs.
    for (const auto& node : context.module.Find(s.function)->nodes)
      if (node->is(Op::kRfft2D)) return {};
    return Lowering(context.module, *context.module.Find(s.function), context.registry).Run();
  });
}

}  // namespace fusebox::converter
