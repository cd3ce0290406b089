// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/rules/lingvo_cell.h"

#include <string>

#include "plugins/common/text.h"
#include "plugins/rnn/rules/body_clips.h"

namespace fusebox::rnn {
namespace {

using common::ShapeText;

constexpr int64_t kLargest = (int64_t{1} << 31) - 1;

std::string SubjectOfCell(uint32_t operand) {
  static constexpr const char* kNames[] = {" (input)", " (weight)", " (bias)", " (projection)"};
  return common::Subject(operand) + (operand < 4 ? kNames[operand] : "");
}

std::string_view CutToken(std::string_view* text) {
  const size_t comma = text->find(',');
  std::string_view token = text->substr(0, comma);
  *text = comma == text->npos ? std::string_view() : text->substr(comma + 1);
  while (token.starts_with(' ')) token.remove_prefix(1);
  while (token.ends_with(' ')) token.remove_suffix(1);
  return token;
}

void CheckF32(const Site& site, uint32_t i) {
  const Tensor t = site.in(i);
  site.require(t.present(), "ARITY", "is absent", SubjectOfCell(i));
  site.require(t.dtype() == FBX_F32, "DTYPE",
               std::string("is ") + dtype_name(t.dtype()) + ", only f32 is supported", SubjectOfCell(i));
  site.require(t.rank() >= 0, "RANK", "has an unknown rank", SubjectOfCell(i));
}

void CheckRank(const Site& site, uint32_t i, int rank) {
  CheckF32(site, i);
  site.require(site.in(i).rank() == rank, "RANK",
               "has shape " + ShapeText(site.in(i)) + ", expected rank " + std::to_string(rank),
               SubjectOfCell(i));
}

void CheckConstant(const Site& site, uint32_t i, int rank) {
  CheckRank(site, i, rank);
  const Tensor t = site.in(i);
  site.require(t.is_const(), "NONCONST", "is computed, not constant", SubjectOfCell(i));
  for (const int64_t d : t.dims())
    site.require(d >= 0 && d <= kLargest, "SHAPE", "has shape " + ShapeText(t), SubjectOfCell(i));
}

void CheckSize(const Site& site, uint32_t i, int dimension, int64_t size, const std::string& what) {
  const int64_t is = site.in(i).dim(dimension);
  site.require(is < 0 || is == size, "SHAPE",
               "has shape " + ShapeText(site.in(i)) + ", but " + what + " " + std::to_string(size),
               SubjectOfCell(i));
}

}  // namespace

LingvoCell::LingvoCell(const Site& site) {
  ParseName(site);
  CheckArity(site);
  CheckWeights(site);
  CheckInput(site);
  FindClips(site);
}

void LingvoCell::ParseName(const Site& site) {
  std::string_view rest = site.name();
  std::string_view base = CutToken(&rest);
  if (base.starts_with("lingvo.")) base.remove_prefix(7);
  layer_norm = base.starts_with("LayerNormalized");
  if (layer_norm) base.remove_prefix(15);
  site.require(base == "LSTMCellSimple" || (layer_norm && base == "LstmCellSimple"), "NAME",
               "is not a Lingvo cell", std::string(site.name()));
  while (!rest.empty()) {
    const std::string_view token = CutToken(&rest);
    site.require(token == "CoupleInputForgetGates", "NAME", "\"" + std::string(token) + "\" is unknown",
                 std::string(site.name()));
    coupled = true;
  }
  gates = coupled ? 3 : 4;
}

void LingvoCell::CheckArity(const Site& site) {
  const uint32_t count = site.in_count();
  const uint32_t shortest = layer_norm ? 5 : 4;
  site.require(count >= shortest && count <= 7 && (!layer_norm || count != 6), "ARITY",
               "has " + std::to_string(count) + " operands, expected " +
                   (layer_norm ? "5, or 7 with states" : "4 or 5, or two more with states"));
  states = count >= 6;
  m0 = count - 2;
  c0 = count - 1;
  const uint32_t results = states ? 2 : 1;
  site.require(site.out_count() == results, "ARITY",
               "has " + std::to_string(site.out_count()) + " results, expected " + std::to_string(results));
}

void LingvoCell::CheckWeights(const Site& site) {
  CheckConstant(site, kWeight, 2);
  const Tensor weight = site.in(kWeight);
  site.require(weight.dim(1) > 0 && weight.dim(1) % gates == 0, "SHAPE",
               "has shape " + ShapeText(weight) + ", expected " + std::to_string(gates) + " gates of columns",
               SubjectOfCell(kWeight));
  cells = static_cast<int32_t>(weight.dim(1) / gates);
  CheckF32(site, kProjection);
  projection = site.in(kProjection).rank() >= 2;
  outputs = cells;
  if (projection) {
    CheckConstant(site, kProjection, 2);
    CheckSize(site, kProjection, 0, cells, "the cells are");
    outputs = static_cast<int32_t>(site.in(kProjection).dim(1));
    site.require(outputs > 0, "SHAPE", "has no outputs", SubjectOfCell(kProjection));
  }
  site.require(weight.dim(0) > outputs, "SHAPE",
               "has shape " + ShapeText(weight) + ", but " + std::to_string(outputs) +
                   " rows belong to the outputs, so none is left for the input",
               SubjectOfCell(kWeight));
  inputs = static_cast<int32_t>(weight.dim(0)) - outputs;
  CheckConstant(site, kBias, 1);
  CheckSize(site, kBias, 0, weight.dim(1), "the gates need");
  if (!layer_norm) return;
  CheckConstant(site, kScale, 1);
  CheckSize(site, kScale, 0, 4 * int64_t{cells}, "four gates need");
}

void LingvoCell::CheckInput(const Site& site) const {
  CheckRank(site, kInput, 2);
  CheckSize(site, kInput, 1, inputs, "the input rows of the weight are");
  if (!states) return;
  const int64_t batch = site.in(kInput).dim(0);
  for (const uint32_t i : {m0, c0}) {
    CheckRank(site, i, 2);
    CheckSize(site, i, 1, i == m0 ? outputs : cells, "this state has");
    if (batch >= 0) CheckSize(site, i, 0, batch, "the batch is");
  }
}

void LingvoCell::FindClips(const Site& site) {
  const BodyClips in_body = site.body() ? ClipsOf(*site.body()) : BodyClips{};
  cell_clip = site.attrs().f64("cell_clip", in_body.inner);
  projection_clip = site.attrs().f64("proj_clip", in_body.output);
  site.require(cell_clip >= 0, "ATTR", "is negative or not a number", "attr cell_clip");
  site.require(projection_clip >= 0, "ATTR", "is negative or not a number", "attr proj_clip");
  site.require(projection || projection_clip == 0, "CLIP",
               "the output is clipped, which the op supports with a projection only");
}

}  // namespace fusebox::rnn
