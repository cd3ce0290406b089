// SPDX-License-Identifier: Apache-2.0
#include "plugins/nn/ops/one_op.h"

#include <algorithm>
#include <string>
#include <vector>

namespace fusebox::nn {
namespace {

bool IsInteger(fbx_dtype dtype) { return dtype == FBX_I32 || dtype == FBX_I64; }

// litert-torch writes the name of an approximation, JAX whether there is one.
bool IsApproximate(const Site& s) {
  s.attr("approximate");
  if (s.attrs().kind("approximate") != FBX_ATTR_STR) return s.attrs().b("approximate");
  const std::string_view name = s.attrs().s("approximate");
  s.require(name == "none" || name == "tanh", "ATTR", "is " + std::string(name) + ", expected none or tanh",
            "attr approximate");
  return name == "tanh";
}

void HardSwish(const Site& s, Build& b) {
  const Operands in(s, 1);
  in.RequireFloats(0);
  b.result(0, b.builtin("HARD_SWISH", in.values(b))[0]);
}

void Gelu(const Site& s, Build& b) {
  const Operands in(s, 1);
  in.RequireFloats(0);
  b.result(0, b.builtin("GELU", in.values(b)).attr("approximate", IsApproximate(s))[0]);
}

// The composite has no attribute for its dimension; reductions of the body show it.
void RequireLastDimension(const Site& s, int rank) {
  const auto body = s.body();
  for (uint32_t i = 0; body && i < body->node_count(); ++i) {
    const GraphNode node = body->node(i);
    if ((node.op() != "SUM" && node.op() != "REDUCE_MAX") || !node.in(1).has_value()) continue;
    for (const int32_t axis : node.in(1).values<const int32_t>())
      s.require(axis == -1 || axis == rank - 1, "BODY",
                "reduces dimension " + std::to_string(axis) + ", the op only the last one", "body");
  }
}

void Softmax(const Site& s, Build& b) {
  const Operands in(s, 1);
  in.RequireFloats(0);
  s.require(in[0].rank() >= 1, "RANK", "has no known last dimension", "operand 0");
  RequireLastDimension(s, in[0].rank());
  b.result(0, b.builtin("SOFTMAX", in.values(b)).attr("beta", 1.0)[0]);
}

void Mean(const Site& s, Build& b) {
  const Operands in(s, 1);
  in.RequireFloats(0);
  s.attr("axis");
  const Attrs attrs = s.attrs();
  const bool one = attrs.kind("axis") == FBX_ATTR_I64;
  const std::vector<int64_t> listed = one ? std::vector{attrs.i64("axis")}
                                          : std::vector(attrs.i64s("axis").begin(), attrs.i64s("axis").end());
  const int rank = in[0].rank();
  s.require(rank >= 0, "RANK", "has an unknown rank", "operand 0");
  std::vector<int32_t> axes;
  for (const int64_t axis : listed) {
    s.require(axis >= -rank && axis < rank, "AXIS",
              "is " + std::to_string(axis) + " for rank " + std::to_string(rank), "attr axis");
    axes.push_back(static_cast<int32_t>(axis));
  }
  const auto count = static_cast<int64_t>(axes.size());
  b.result(0, b.builtin("MEAN", {in.value(b, 0), b.constant<int32_t>(axes, {&count, 1})})
                  .attr("keep_dims", attrs.b("keep_dims", false))[0]);
}

void Product(const Site& s, Build& b) {
  const Operands in(s, 2);
  in.RequireFloats(0, 4);
  in.RequireFloats(1, 4);
  b.result(0, b.builtin("BATCH_MATMUL", in.values(b)).attr("adj_x", false).attr("adj_y", true)[0]);
}

void Pack(const Site& s, Build& b) {
  s.attr("values_count");
  s.attr("axis");
  const int64_t count = s.attrs().i64("values_count");
  s.require(count >= 1 && count <= s.in_count(), "ATTR", "is no number of operands", "attr values_count");
  const Operands in(s, static_cast<uint32_t>(count));
  for (uint32_t i = 0; i < count; ++i) in.RequireUnscaled(i);
  b.result(
      0, b.builtin("PACK", in.values(b)).attr("values_count", count).attr("axis", s.attrs().i64("axis"))[0]);
}

void Unpack(const Site& s, Build& b) {
  s.attr("num");
  s.attr("axis");
  s.require(s.attrs().i64("num") == s.out_count(), "ARITY", "is not the number of results", "attr num");
  const Operands in(s, 1, s.out_count());
  in.RequireUnscaled(0);
  const auto node = b.builtin("UNPACK", in.values(b), s.out_count())
                        .attr("num", s.attrs().i64("num"))
                        .attr("axis", s.attrs().i64("axis"));
  for (uint32_t i = 0; i < s.out_count(); ++i) b.result(i, node[i]);
}

// The op fails outside of the input, where a DYNAMIC_SLICE of the body would move the slice inside.
bool BodyMovesSlices(const Site& s) {
  const auto body = s.body();
  for (uint32_t i = 0; body && i < body->node_count(); ++i)
    if (body->node(i).op() == "STABLEHLO_DYNAMIC_SLICE") return true;
  return false;
}

void Slice(const Site& s, Build& b) {
  const Operands in(s, 3);
  in.RequireUnscaled(0);
  in.RequireIntegers(1);
  in.RequireIntegers(2);
  s.require(in[1].is_const() || !BodyMovesSlices(s), "BODY",
            "moves a slice inside of the input, where the op fails", "body");
  b.result(0, b.builtin("SLICE", in.values(b))[0]);
}

void UpdateSlice(const Site& s, Build& b) {
  const Operands in(s, 3);
  in.RequireUnscaled(0);
  in.RequireUnscaled(1);
  in.RequireIntegers(2);
  b.result(0, b.builtin("DYNAMIC_UPDATE_SLICE", in.values(b))[0]);
}

// Bodies hold numbers that were drawn when the model was exported.
void Random(const Site& s, Build& b, std::string_view op) {
  const Operands in(s, 1);
  in.RequireIntegers(0);
  s.require(s.out(0).dtype() == FBX_F32, "DTYPE",
            std::string("is ") + dtype_name(s.out(0).dtype()) + ", expected f32", "result 0");
  s.attr("seed");
  s.attr("seed2");
  const Value numbers = b.builtin(op, in.values(b))
                            .attr("seed", s.attrs().i64("seed"))
                            .attr("seed2", s.attrs().i64("seed2"))[0];
  b.dtype(numbers, FBX_F32);
  b.result(0, numbers);
}

struct Row {
  std::string_view name;
  void (*rewrite)(const Site&, Build&);
};
constexpr Row kRows[] = {
    {"aten.hardswish.default", HardSwish},
    {"aten.gelu.default", Gelu},
    {"tfl.gelu", Gelu},
    {"odml.softmax", Softmax},
    {"tfl.mean", Mean},
    {"tfl.bmm_4d_adj_y", Product},
    {"tfl.pack", Pack},
    {"tfl.unpack", Unpack},
    {"tfl.slice", Slice},
    {"tfl.dynamic_update_slice", UpdateSlice},
    {"odml.runtime_bmm", RuntimeProduct},
    {"odml.cache_update", CacheUpdate},
    {"odml.random_uniform", [](const Site& s, Build& b) { Random(s, b, "RANDOM_UNIFORM"); }},
    {"odml.random_standard_normal", [](const Site& s, Build& b) { Random(s, b, "RANDOM_STANDARD_NORMAL"); }},
    {"aten.avg_pool2d.default", AveragePool},
    {"odml.upsample_bilinear2d", ResizeBilinear},
    {"tfl.resize_nearest_neighbor", ResizeNearest},
    {"tfl.mirror_pad", MirrorPad},
};

const Row* Find(std::string_view name) {
  const auto* const row = std::ranges::find(kRows, name, &Row::name);
  return row == std::end(kRows) ? nullptr : row;
}

}  // namespace

Operands::Operands(const Site& site, uint32_t count, uint32_t results) : site_(site), first_(0) {
  site.require(site.in_count() >= count, "ARITY",
               "has " + std::to_string(site.in_count()) + " operands, expected " + std::to_string(count));
  site.require(site.out_count() == results, "ARITY",
               "has " + std::to_string(site.out_count()) + " results, expected " + std::to_string(results));
  first_ = site.in_count() - count;
  for (uint32_t i = 0; i < first_; ++i)
    site.require(site.in(i).present() && IsInteger(site.in(i).dtype()) && site.in(i).rank() == 0, "ARITY",
                 "is no size before " + std::to_string(count) + " operands", "operand " + std::to_string(i));
}

std::vector<Value> Operands::values(const Build& b) const {
  std::vector<Value> values;
  for (uint32_t i = first_; i < site_.in_count(); ++i) values.push_back(b.in(i));
  return values;
}

std::string Operands::Subject(uint32_t i) const { return "operand " + std::to_string(first_ + i); }

void Operands::RequireUnscaled(uint32_t i) const {
  const Tensor t = (*this)[i];
  site_.require(t.present(), "ARITY", "is absent", Subject(i));
  site_.require(t.rank() >= 0, "RANK", "has an unknown rank", Subject(i));
  site_.require(t.quant() == nullptr || t.quant()->kind == FBX_QUANT_NONE, "QUANT", "is quantized",
                Subject(i));
}

void Operands::RequireIntegers(uint32_t i) const {
  const Tensor t = (*this)[i];
  site_.require(t.present() && IsInteger(t.dtype()) && t.rank() == 1, "DTYPE", "is no list of i32 or i64",
                Subject(i));
}

void OneOpRule::match(const Site& s) {
  s.require(Find(s.name()) != nullptr, "NAME", "is not in the table", s.name());
}

void OneOpRule::rewrite(const Site& s, Build& b) { Find(s.name())->rewrite(s, b); }

}  // namespace fusebox::nn
