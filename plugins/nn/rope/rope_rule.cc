// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "plugins/nn/body/body.h"
#include "plugins/nn/rope/rope.h"

namespace fusebox::nn {
namespace {

constexpr uint32_t kInput = 0;
constexpr uint32_t kPosition = 1;
constexpr char kNoRotation[] = "it is no rotation of two halves";

// A half of x times a cosine or a sine.
struct Turned {
  bool second;  // which half
  bool sine;
  fbx_value whole;   // x, maybe transposed
  fbx_value factor;  // the cosines or sines, before they are broadcast
  fbx_value angle;
};

struct Rotation {
  int64_t axis;
  bool divides;
  std::vector<float> rates;
};

class RopeReader {
 public:
  RopeReader(const Site& s, const Body& body) : body_(body), x_(s.in(kInput)), positions_(s.in(kPosition)) {}

  Rotation Read() const {
    const fbx_value joined = body_.Origin(body_.result(0));
    const GraphNode concat = body_.Producer(joined, "CONCATENATION", "its result is no concatenation");
    if (concat.in_count() != 2) DeclineBody("it rotates a part of the features only");
    const int64_t joined_axis = concat.attrs().i64("axis", 0);
    if (joined_axis != -1 && joined_axis != static_cast<int64_t>(body_.Dims(joined).size()) - 1)
      DeclineBody(kNoRotation);
    const GraphNode left = body_.Producer(concat.in_id(0), "SUB", kNoRotation);
    const GraphNode right = body_.Producer(concat.in_id(1), "ADD", kNoRotation);
    Turned products[] = {Product(left.in_id(0)), Product(left.in_id(1)), Product(right.in_id(0)),
                         Product(right.in_id(1))};
    if (!products[2].second) std::swap(products[2], products[3]);
    const bool second[] = {false, true, true, false};
    const bool sine[] = {false, true, false, true};
    for (size_t i = 0; i < 4; ++i) {
      const Turned& p = products[i];
      if (p.second != second[i] || p.sine != sine[i] || p.whole != products[0].whole ||
          p.angle != products[0].angle)
        DeclineBody(kNoRotation);
    }
    Rotation rotation = Rates(products[0].angle);
    rotation.axis = AxisOf(products[0]);
    for (const Turned& p : products)
      if (AxisOf(p) != rotation.axis) DeclineBody(kNoRotation);
    RequireOrder(joined, products[0].whole);
    return rotation;
  }

 private:
  Turned Product(fbx_value v) const {
    const GraphNode node = body_.Producer(v, "MUL", kNoRotation);
    for (const uint32_t i : {0u, 1u}) {
      Turned out{};
      if (!IsTrigonometric(node.in_id(i), out)) continue;
      ReadHalf(node.in_id(1 - i), out);
      return out;
    }
    DeclineBody(kNoRotation);
  }

  bool IsTrigonometric(fbx_value v, Turned& out) const {
    auto node = body_.Producer(v);
    for (; node && node->op() == "BROADCAST_TO"; node = body_.Producer(v)) v = node->in_id(0);
    out.factor = v;
    node = body_.Producer(body_.Origin(v));
    if (!node || (node->op() != "COS" && node->op() != "SIN")) return false;
    out.sine = node->op() == "SIN";
    out.angle = node->in_id(0);
    // The last dimension stays the last one.
    const std::vector<int> dims = body_.DimsFrom(v, node->out_id(0));
    const int last = dims.empty() ? -1 : dims.back();
    if (last < 0 ? x_.dim(-1) != 2 : last != static_cast<int>(body_.Dims(node->out_id(0)).size()) - 1)
      DeclineBody(kNoRotation);
    return true;
  }

  void ReadHalf(fbx_value v, Turned& out) const {
    const auto node = body_.Producer(v);
    if (!node) DeclineBody(kNoRotation);
    const int64_t half = x_.dim(-1) / 2;
    const auto dims = body_.Dims(v);
    if (dims.empty() || dims.back() != half) DeclineBody("it rotates a part of the features only");
    if (node->op() == "SPLIT") {
      const auto axis = Integers(*node, 0);
      const auto rank = static_cast<int64_t>(dims.size());
      if (!axis || axis->size() != 1 || (axis->front() != -1 && axis->front() != rank - 1))
        DeclineBody(kNoRotation);
      out.whole = node->in_id(1);
      out.second = node->out_id(0) != v;
    } else {
      const std::vector<int64_t> begin = BeginOf(*node);
      out.whole = node->in_id(0);
      out.second = begin.back() == half;
      if (!out.second && begin.back() != 0) DeclineBody(kNoRotation);
      RequireWhole(*node, begin);
    }
    const auto whole = body_.Dims(out.whole);
    if (whole.size() != dims.size() || whole.back() != 2 * half) DeclineBody(kNoRotation);
  }

  // The place where a slice with steps of 1 begins.
  std::vector<int64_t> BeginOf(const GraphNode& node) const {
    const bool strided = node.op() == "STRIDED_SLICE";
    auto begin = strided || node.op() == "SLICE" ? Integers(node, 1) : std::nullopt;
    if (!begin || begin->empty()) DeclineBody("it computes with " + std::string(node.op()));
    if (!strided) return *begin;
    const auto steps = Integers(node, 3);
    if (!steps || std::ranges::any_of(*steps, [](int64_t step) { return step != 1; }))
      DeclineBody(kNoRotation);
    const auto mask = static_cast<uint64_t>(node.attrs().i64("begin_mask", 0));
    if (node.attrs().i64("ellipsis_mask", 0) != 0 || node.attrs().i64("new_axis_mask", 0) != 0)
      DeclineBody(kNoRotation);
    for (size_t d = 0; d < begin->size() && d < 64; ++d)
      if (mask >> d & 1) (*begin)[d] = 0;
    return *begin;
  }

  // All dimensions but the last are sliced from their begin to their end.
  void RequireWhole(const GraphNode& node, const std::vector<int64_t>& begin) const {
    const auto in = body_.Dims(node.in_id(0));
    const auto out = body_.Dims(node.out_id(0));
    if (in.size() != out.size() || begin.size() != in.size()) DeclineBody(kNoRotation);
    for (size_t d = 0; d + 1 < in.size(); ++d)
      if (begin[d] != 0 || in[d] != out[d]) DeclineBody(kNoRotation);
  }

  // angle = position * rates, or position / rates
  Rotation Rates(fbx_value angle) const {
    const auto node = body_.Producer(angle);
    if (!node || (node->op() != "MUL" && node->op() != "DIV"))
      DeclineBody("it computes its angles otherwise");
    Rotation rotation{.axis = 0, .divides = node->op() == "DIV", .rates = {}};
    const uint32_t i = rotation.divides || node->in(1).is_const() ? 1 : 0;
    const Tensor rates = node->in(i);
    if (!rates.is_const() || !rates.has_value() || rates.dtype() != FBX_F32)
      DeclineBody("its frequencies are no constant");
    if (rates.rank() < 1 || rates.count() != x_.dim(-1) / 2 || rates.dim(-1) != rates.count())
      DeclineBody("it does not have one frequency per pair of features");
    rotation.rates = {rates.values<const float>().begin(), rates.values<const float>().end()};
    RequirePositions(node->in_id(1 - i));
    return rotation;
  }

  // The operand as floats, or its first row.
  void RequirePositions(fbx_value v) const {
    while (v != body_.operand(kPosition)) {
      const auto node = body_.Producer(v);
      if (!node) DeclineBody("it does not compute its angles from the positions");
      const std::string_view op = node->op();
      if (op == "SLICE" || op == "STRIDED_SLICE") {
        const std::vector<int64_t> begin = BeginOf(*node);
        const auto in = body_.Dims(node->in_id(0));
        if (std::ranges::any_of(begin, [](int64_t b) { return b != 0; }) || in.empty() ||
            body_.Dims(v).empty() || in.back() != body_.Dims(v).back())
          DeclineBody("it takes a part of the positions");
      } else if (op != "CAST" && op != "RESHAPE" && op != "EXPAND_DIMS" && op != "SQUEEZE") {
        DeclineBody("it changes the positions by " + std::string(op));
      }
      v = node->in_id(0);
    }
  }

  // The dimension of x along which the angles differ.
  int64_t AxisOf(const Turned& p) const {
    const auto factor = body_.Dims(p.factor);
    const auto whole = body_.Dims(p.whole);
    const std::vector<int> dims = body_.DimsFrom(p.whole, body_.operand(kInput));
    if (factor.size() > whole.size() || dims.back() != x_.rank() - 1) DeclineBody(kNoRotation);
    int64_t axis = -1;
    const size_t missing = whole.size() - factor.size();
    for (size_t d = 0; d + 1 < factor.size(); ++d) {
      if (factor[d] == 1) continue;
      if (axis >= 0) DeclineBody("it has a position per batch item");
      if (factor[d] != whole[d + missing]) DeclineBody("it has a number of positions that x does not have");
      axis = dims[d + missing];
      if (axis < 0) DeclineBody(kNoRotation);
    }
    for (int d = x_.rank() - 2; axis < 0 && d >= 0; --d)
      if (x_.dim(d) == 1 && positions_.dim(-1) == 1) axis = d;
    if (axis < 0) DeclineBody("it has one position for all rows");
    if (const int64_t count = positions_.dim(-1);
        count >= 0 && x_.dim(static_cast<int>(axis)) >= 0 && count != x_.dim(static_cast<int>(axis)))
      DeclineBody("it has a number of positions that x does not have");
    return axis;
  }

  // Declines unless the result has the dimensions of x in their order.
  void RequireOrder(fbx_value joined, fbx_value whole) const {
    const std::vector<int> after = body_.DimsFrom(body_.result(0), joined);
    const std::vector<int> before = body_.DimsFrom(whole, body_.operand(kInput));
    for (size_t d = 0; d < after.size(); ++d) {
      const int at = after[d] < 0 ? -1 : before.at(static_cast<size_t>(after[d]));
      if (at >= 0 && at != static_cast<int>(d)) DeclineBody("its result has other dimensions than x");
    }
    if (static_cast<int>(after.size()) != x_.rank()) DeclineBody("its result has other dimensions than x");
  }

  const Body& body_;
  Tensor x_, positions_;
};

Rotation RotationOf(const Site& s) { return RopeReader(s, BodyOf(s)).Read(); }

}  // namespace

void RopeRule::match(const Site& s) {
  s.arity(2, 1);
  s.operand(kInput, FBX_F32);
  RequireRotatable(s);
  const int64_t features = s.in(kInput).dim(-1);
  s.require(features > 0 && features % 2 == 0, "SHAPE", "has no even number of features", "operand 0");
  RotationOf(s);
}

void RopeRule::rewrite(const Site& s, Build& b) {
  const Rotation rotation = RotationOf(s);
  const auto count = static_cast<int64_t>(rotation.rates.size());
  const Value rates = b.constant<float>(rotation.rates, {&count, 1});
  b.result(0, b.custom(Rope::custom, {b.in(kInput), b.in(kPosition), rates})
                  .attr("axis", rotation.axis)
                  .attr("divides", rotation.divides)[0]);
}

}  // namespace fusebox::nn
