// SPDX-License-Identifier: Apache-2.0
// Einsum of one or two operands. A label occurs in both operands and the result (batch), in both operands
// only (contracted), or in one operand and the result. Operands become [batch..., rows, contracted] and
// [batch..., contracted, columns]; the product is one BATCH_MATMUL (FULLY_CONNECTED without batch), whose
// result is reshaped and transposed.
#include <algorithm>

#include "converter/import/tables/equation.h"
#include "converter/import/tables/translate.h"

namespace fusebox::converter {
namespace {

bool Has(const std::string& labels, char c) { return labels.find(c) != std::string::npos; }

// A tensor with a label per dimension.
struct Labeled {
  ValueId value;
  std::string labels;
};

class Product {
 public:
  explicit Product(Translation& t) : t_(t) {}

  Status Run() {
    if (t_.count() < 1) return Invalid("it has no operands");
    if (t_.in_type(0).dtype != DType::kNone && !IsFloat(t_.in_type(0).dtype))
      return Unsupported("a product of " + std::string(Name(t_.in_type(0).dtype)));
    std::vector<int> ranks;
    for (const ValueId operand : t_.node().operands) {
      FUSEBOX_ASSIGN(const int rank, t_.Rank(operand));
      ranks.push_back(rank);
    }
    FUSEBOX_ASSIGN(const Equation equation, ParseEquation(t_.attrs().str("equation", ""), ranks));
    FUSEBOX_TRY(t_.Arity(equation.one ? 1 : 2));
    FUSEBOX_TRY(Check(0, equation.left));
    if (!equation.one) {
      FUSEBOX_TRY(Check(1, equation.right));
      FUSEBOX_TRY(CheckShared(equation));
    }
    Labeled left = Summed({t_.in(0), equation.left}, equation.right + equation.result);
    if (equation.one) {
      return t_.Return(Ordered(left, equation.result).value);
    }
    const Labeled right = Summed({t_.in(1), equation.right}, equation.left + equation.result);
    return t_.Return(Ordered(Multiply(left, right, equation.result), equation.result).value);
  }

 private:
  Status Check(size_t operand, const std::string& labels) {
    FUSEBOX_ASSIGN(const int rank, t_.Rank(t_.in(operand)));
    if (rank == static_cast<int>(labels.size())) return CheckSize(operand);
    return Invalid("operand " + std::to_string(operand) + " has rank " + std::to_string(rank) + ", but \"" +
                   labels + "\" in the equation");
  }

  // Size 1 is not broadcast: products and merged dimensions would get another size.
  Status CheckShared(const Equation& equation) {
    for (size_t i = 0; i < equation.left.size(); ++i) {
      const size_t j = equation.right.find(equation.left[i]);
      if (j == std::string::npos) continue;
      const int64_t left = t_.in_type(0).shape[i];
      const int64_t right = t_.in_type(1).shape[j];
      if (left >= 0 && right >= 0 && left != right)
        return Unsupported("dimension " + std::to_string(i) + " of operand 0 is " + std::to_string(left) +
                           ", dimension " + std::to_string(j) + " of operand 1 is " + std::to_string(right));
    }
    return {};
  }

  // Sizes of merged dimensions are multiplied.
  Status CheckSize(size_t operand) {
    int64_t product = 1;
    for (const int64_t dim : t_.in_type(operand).shape.dims()) {
      if (dim <= 0) continue;
      if (dim > INT32_MAX / product)
        return Unsupported("operand " + std::to_string(operand) + " has too many elements");
      product *= dim;
    }
    return {};
  }

  // Sums over labels that occur nowhere else.
  Labeled Summed(Labeled x, const std::string& wanted) {
    std::vector<int32_t> axes;
    std::string kept;
    for (size_t i = 0; i < x.labels.size(); ++i) {
      if (Has(wanted, x.labels[i])) kept += x.labels[i];
      else axes.push_back(static_cast<int32_t>(i));
    }
    if (axes.empty()) return x;
    return {t_.Value(Op::kSum, {x.value, t_.I32(std::move(axes))}), kept};
  }

  Labeled Ordered(const Labeled& x, const std::string& order) {
    if (x.labels == order) return x;
    std::vector<int32_t> perm;
    for (const char c : order) perm.push_back(static_cast<int32_t>(x.labels.find(c)));
    return {t_.Transpose(x.value, std::move(perm)), order};
  }

  // Sizes as constants or as values computed at run time.
  void Measure(const Labeled& x) {
    for (size_t i = 0; i < x.labels.size(); ++i) {
      auto& size = sizes_[static_cast<unsigned char>(x.labels[i])];
      if (size.known >= 0) continue;
      size = {t_.type(x.value).shape[i], x.value, static_cast<int32_t>(i)};
    }
  }

  // Each group of labels becomes one dimension. One unknown size becomes -1; others are read at run time.
  ValueId Reshaped(ValueId x, const std::vector<std::string>& groups) {
    std::vector<int32_t> known;
    int open = 0;
    for (const std::string& group : groups) {
      int64_t size = 1;
      for (const char c : group) {
        const int64_t one = sizes_[static_cast<unsigned char>(c)].known;
        size = one < 0 || size < 0 ? -1 : size * one;
      }
      known.push_back(static_cast<int32_t>(size));
      open += size < 0;
    }
    if (open <= 1) return t_.Reshape(x, std::move(known));
    std::vector<ValueId> sizes;
    for (const std::string& group : groups) {
      ValueId size = group.empty() ? t_.I32({1}) : SizeOf(group[0]);
      for (size_t i = 1; i < group.size(); ++i) size = t_.Value(Op::kMul, {size, SizeOf(group[i])});
      sizes.push_back(size);
    }
    return t_.Value(Op::kReshape, {x, t_.Value(Op::kConcatenation, sizes, MakeAttrs("axis", int64_t{0}))});
  }

  ValueId Folded(ValueId x, const std::vector<std::string>& groups) {
    const bool singles = std::ranges::all_of(groups, [](const std::string& g) { return g.size() == 1; });
    return singles ? x : Reshaped(x, groups);
  }

  ValueId SizeOf(char label) {
    const Size& size = sizes_[static_cast<unsigned char>(label)];
    if (size.known >= 0) return t_.I32({static_cast<int32_t>(size.known)});
    return t_.Slice(t_.ShapeOf(size.of), {size.axis}, {1});
  }

  static std::vector<std::string> Singles(const std::string& labels) {
    std::vector<std::string> out;
    for (const char c : labels) out.emplace_back(1, c);
    return out;
  }

  Labeled Multiply(const Labeled& left, const Labeled& right, const std::string& result) {
    Measure(left);
    Measure(right);
    std::string batch;
    std::string rows;
    std::string columns;
    std::string contracted;
    for (const char c : result) {
      if (Has(left.labels, c) && Has(right.labels, c)) batch += c;
      else (Has(left.labels, c) ? rows : columns) += c;
    }
    for (const char c : left.labels) {
      if (Has(right.labels, c) && !Has(result, c)) contracted += c;
    }
    const std::string all = batch + rows + columns;
    const ValueId a = Ordered(left, batch + rows + contracted).value;
    const bool flat = rows.size() == 1 && columns.size() == 1;
    if (batch.empty() && !rows.empty() && t_.is_const(right.value)) {
      const ValueId product = WithWeights(a, right, rows, columns, contracted);
      return {columns.size() == 1 ? product : Reshaped(product, Singles(all)), all};
    }
    std::vector<std::string> of_left = Singles(batch);
    std::vector<std::string> of_right = of_left;
    of_left.insert(of_left.end(), {rows, contracted});
    of_right.insert(of_right.end(), {contracted, columns});
    const ValueId x = Folded(a, of_left);
    const ValueId y = Folded(Ordered(right, batch + contracted + columns).value, of_right);
    const ValueId product = t_.Value(Op::kBatchMatmul, {x, y});
    return {flat ? product : Reshaped(product, Singles(all)), all};
  }

  // Rows are kept; weights are [columns, contracted].
  ValueId WithWeights(ValueId a, const Labeled& right, const std::string& rows, const std::string& columns,
                      const std::string& contracted) {
    std::vector<std::string> groups = Singles(rows);
    groups.push_back(contracted);
    const ValueId x = Folded(a, groups);
    const ValueId weights = Folded(Ordered(right, columns + contracted).value, {columns, contracted});
    Attrs attrs;
    if (rows.size() > 1) attrs.Set("keep_num_dims", true);
    return t_.Value(Op::kFullyConnected, {x, weights, kNoValue}, std::move(attrs));
  }

  struct Size {
    int64_t known = -1;
    ValueId of = kNoValue;
    int32_t axis = 0;
  };
  Translation& t_;
  Size sizes_[256];
};

Status Einsum(Translation& t) { return Product(t).Run(); }

}  // namespace

std::span<const TranslateRow> EinsumTable() {
  static constexpr TranslateRow kTable[] = {{"Einsum", Einsum}};
  return kTable;
}

}  // namespace fusebox::converter
