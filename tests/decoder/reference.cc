// SPDX-License-Identifier: Apache-2.0
#include "tests/decoder/reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fusebox::decoder_test {
namespace {

using bench::DecoderLayer;
using bench::DecoderSizes;
using bench::Weights;
using Row = std::vector<double>;

Row Times(const Weights& w, const Row& x) {
  Row y(static_cast<size_t>(w.type.shape[0]));
  for (size_t i = 0, at = 0; i < y.size(); ++i)
    for (const double v : x) y[i] += v * static_cast<double>(bench::ValueAt(w, at++));
  return y;
}

Row Norm(const Row& x, const Weights& scale) {
  const double mean = std::inner_product(x.begin(), x.end(), x.begin(), 0.0) / static_cast<double>(x.size());
  Row y(x);
  for (size_t i = 0; i < y.size(); ++i)
    y[i] *= static_cast<double>(bench::ValueAt(scale, i)) / std::sqrt(mean + bench::kDecoderEpsilon);
  return y;
}

void Rotate(Row& heads, size_t position, const DecoderSizes& s) {
  const auto size = static_cast<size_t>(s.head), half = size / 2;
  for (size_t first = 0; first < heads.size(); first += size)
    for (size_t i = 0; i < half; ++i) {
      const double angle =
          bench::RotaryAngle(static_cast<int64_t>(position), static_cast<int64_t>(i), s.head);
      double &a = heads[first + i], &b = heads[first + half + i];
      const double x = a, y = b;
      a = x * std::cos(angle) - y * std::sin(angle);
      b = y * std::cos(angle) + x * std::sin(angle);
    }
}

void Add(Row& x, const Row& y) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

// Of one position, with the keys and values up to it.
Row Attention(const Row& q, const std::vector<Row>& k, const std::vector<Row>& v, const DecoderSizes& s) {
  const auto size = static_cast<size_t>(s.head), group = static_cast<size_t>(s.heads / s.kv_heads);
  Row out(q.size());
  for (size_t head = 0; head < static_cast<size_t>(s.heads); ++head) {
    const size_t at = head * size, shared = head / group * size;
    Row weights;
    for (const Row& key : k)
      weights.push_back(std::exp(std::inner_product(&q[at], &q[at] + size, &key[shared], 0.0) /
                                 std::sqrt(static_cast<double>(size))));
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (size_t key = 0; key < weights.size(); ++key)
      for (size_t i = 0; i < size; ++i) out[at + i] += weights[key] / sum * v[key][shared + i];
  }
  return out;
}

Row FeedForward(const Row& x, const DecoderLayer& layer) {
  Row gate = Times(layer.gate, x);
  const Row up = Times(layer.up, x);
  for (size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
  return Times(layer.down, gate);
}

}  // namespace

std::vector<double> Logits(const bench::Decoder& d, const std::vector<int32_t>& tokens) {
  const auto width = static_cast<size_t>(d.sizes.width);
  std::vector<Row> rows;
  for (const int32_t token : tokens) {
    Row& row = rows.emplace_back(width);
    for (size_t i = 0; i < width; ++i)
      row[i] = bench::ValueAt(d.table, static_cast<size_t>(token) * width + i);
  }
  for (const DecoderLayer& layer : d.layers) {
    std::vector<Row> k, v;
    for (size_t position = 0; position < rows.size(); ++position) {
      Row& x = rows[position];
      const Row normed = Norm(x, layer.attention_norm);
      Row q = Times(layer.q, normed);
      Rotate(q, position, d.sizes);
      Rotate(k.emplace_back(Times(layer.k, normed)), position, d.sizes);
      v.push_back(Times(layer.v, normed));
      Add(x, Times(layer.o, Attention(q, k, v, d.sizes)));
      Add(x, FeedForward(Norm(x, layer.ffn_norm), layer));
    }
  }
  return Times(d.logits, Norm(rows.back(), d.last_norm));
}

}  // namespace fusebox::decoder_test
