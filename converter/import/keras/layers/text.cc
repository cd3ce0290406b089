// SPDX-License-Identifier: Apache-2.0
// TextVectorization, StringLookup, IntegerLookup and Hashing, as TensorFlow's string ops.
#include <algorithm>

#include "converter/import/keras/layers/encoding.h"
#include "converter/import/keras/layers/vocabulary.h"
#include "host/graph/npy.h"

namespace fusebox::keras {
namespace {

using nlohmann::json;

ValueId Text(LayerCall& c, const std::string& text) {
  return c.emit().Const({{DType::kString, Shape::Scalar()}, PackStrings(std::vector<std::string>{text})});
}

// Older versions call presence "binary".
std::string ModeOf(LayerCall& c) {
  const std::string mode = c.Str("output_mode", "int");
  return mode == "binary" ? "multi_hot" : mode == "tf-idf" ? "tf_idf" : mode;
}

// Tokens of all rows, and where each row ends (i64).
struct Ragged {
  ValueId values = kNoValue;
  ValueId splits = kNoValue;
};

ValueId Standardized(LayerCall& c, ValueId text) {
  const json how = c.config().value("standardize", json());
  const std::string name = how.is_string() ? how.get<std::string>() : "";
  if (how.is_null() || name == "none") return text;
  const bool both = name == "lower_and_strip_punctuation";
  if (!both && name != "lower" && name != "strip_punctuation") {
    c.emit().Refuse("a function of its own to standardize text");
    return kNoValue;
  }
  if (both || name == "lower") text = c.emit().Op("StringLower", {text}, MakeAttrs("encoding", ""));
  if (!both && name == "lower") return text;
  return c.emit().Op("StaticRegexReplace", {text},
                     MakeAttrs("pattern", R"([!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\'])", "rewrite", "",
                               "replace_global", true));
}

// [n] as row splits of [0, 1, 2, ...]: the tokens per row, summed.
ValueId SplitsOf(LayerCall& c, ValueId rows, ValueId row_count) {
  Emitter& e = c.emit();
  const ValueId ids = e.Cast(rows, DType::kI32);
  const ValueId ones = e.Op("Fill", {e.Op("Shape", {ids}, MakeAttrs("out_type", DType::kI32)), e.I32(1)});
  const ValueId counts = e.Op("UnsortedSegmentSum", {ones, ids, e.Cast(row_count, DType::kI32)});
  const ValueId ends = e.Op("Cumsum", {counts, e.I32(0)});
  return e.Cast(e.Concat({e.I32s({0}), ends}, 0), DType::kI64);
}

Ragged AtSpaces(LayerCall& c, ValueId text) {
  const auto parts = c.emit().Ops("StringSplitV2", {text, Text(c, "")}, MakeAttrs("maxsplit", -1), 3);
  const ValueId rows = c.emit().Op(
      "StridedSlice", {parts[0], c.emit().I32s({0, 0}), c.emit().I32s({0, 1}), c.emit().I32s({1, 1})},
      MakeAttrs("begin_mask", 1, "end_mask", 1, "shrink_axis_mask", 2));
  const ValueId count =
      c.emit().Op("StridedSlice", {parts[2], c.emit().I32s({0}), c.emit().I32s({1}), c.emit().I32s({1})},
                  MakeAttrs("shrink_axis_mask", 1));
  return {parts[1], SplitsOf(c, rows, count)};
}

Ragged IntoCharacters(LayerCall& c, ValueId text) {
  Emitter& e = c.emit();
  const auto codes = e.Ops("UnicodeDecode", {text}, MakeAttrs("input_encoding", "UTF-8"), 2);
  const ValueId count = e.SizeValue(e.size(codes[1], 0));
  const ValueId each = e.Op("Range", {e.I32(0), e.Op("AddV2", {count, e.I32(1)}), e.I32(1)});
  return {e.Op("UnicodeEncode", {codes[1], each}, MakeAttrs("output_encoding", "UTF-8")), codes[0]};
}

// The sizes of n-grams: all up to a number, or a list.
std::vector<int64_t> Widths(LayerCall& c) {
  const json given = c.config().value("ngrams", json());
  if (given.is_null()) return {};
  if (given.is_object() && given.value("items", json()).is_array())  // a tuple
    return given["items"].get<std::vector<int64_t>>();
  std::vector<int64_t> widths = c.Ints("ngrams");
  if (!given.is_number() || widths.empty()) return widths;
  const int64_t most = widths[0];
  widths.clear();
  for (int64_t width = 1; width <= std::min<int64_t>(most, 64); ++width) widths.push_back(width);
  return widths;
}

Ragged Tokens(LayerCall& c, ValueId text) {
  const std::string how = c.config()["split"].is_string() ? c.Str("split", "") : "";
  Ragged tokens;
  if (how == "whitespace") {
    tokens = AtSpaces(c, text);
  } else if (how == "character") {
    tokens = IntoCharacters(c, text);
  } else {
    c.emit().Refuse("a function of its own to split text");
    return tokens;
  }
  const std::vector<int64_t> widths = Widths(c);
  if (widths.empty()) return tokens;
  const auto grams = c.emit().Ops("StringNGrams", {tokens.values, tokens.splits},
                                  MakeAttrs("separator", " ", "ngram_widths", widths, "pad_width", 0), 2);
  return {grams[0], grams[1]};
}

// The size of the encodings.
int64_t DepthOf(LayerCall& c, const Vocabulary& v) {
  return c.Bool("pad_to_max_tokens", false) && c.Has("max_tokens") ? c.Int("max_tokens") : v.size();
}

ValueId Weighted(LayerCall& c, const Vocabulary& v, ValueId counts, int64_t depth) {
  std::vector<float> weights = v.weights;
  if (static_cast<int64_t>(weights.size()) > depth) c.emit().Reject("it has more idf_weights than words");
  weights.resize(static_cast<size_t>(depth), 0);
  return c.emit().Op("Mul", {counts, c.emit().Const({{DType::kF32, {depth}}, Buffer::Of<float>(weights)})});
}

// Rejects encodings without a word or with too many, and sparse ones.
bool AcceptsDepth(LayerCall& c, int64_t depth) {
  const bool fits = depth >= 1 && depth <= (1 << 24);
  const bool sparse = c.Bool("sparse", false);
  if (!fits) c.emit().Reject("its max_tokens is " + std::to_string(depth));
  else if (sparse) c.emit().Refuse("a sparse result");
  return fits && !sparse;
}

// Numbers [...] in mode int; else an encoding of the last axis.
ValueId Output(LayerCall& c, const Vocabulary& v, ValueId numbers, const std::string& mode) {
  if (mode == "int") return numbers;
  const int64_t depth = DepthOf(c, v);
  if (!AcceptsDepth(c, depth)) return kNoValue;
  const ValueId small = c.emit().Cast(numbers, DType::kI32);
  if (mode != "tf_idf") return Encoded(c, small, depth, mode);
  return Weighted(c, v, Encoded(c, small, depth, "count"), depth);
}

ValueId Padded(LayerCall& c, const Ragged& numbers, const Extent& rows) {
  const int64_t length = c.Has("output_sequence_length") ? c.Int("output_sequence_length") : -1;
  if (length < -1 || length > INT32_MAX)
    c.emit().Reject("its output_sequence_length is " + std::to_string(length));
  const ValueId zero =
      c.emit().Const({{DType::kI64, Shape::Scalar()}, Buffer::Of<int64_t>(std::vector<int64_t>{0})});
  const ValueId dense =
      c.emit().Op("RaggedTensorToTensor", {c.emit().I32s({-1, length}), numbers.values, zero, numbers.splits},
                  MakeAttrs("row_partition_types", std::vector<std::string>{"ROW_SPLITS"}));
  return rows.size >= 0 && length >= 0 ? c.emit().Reshape(dense, {rows, Extent{length}}) : dense;
}

ValueId Counted(LayerCall& c, const Vocabulary& v, const Ragged& numbers, const Extent& rows,
                const std::string& mode) {
  const int64_t depth = DepthOf(c, v);
  if (!AcceptsDepth(c, depth)) return kNoValue;
  if (mode != "multi_hot" && mode != "count" && mode != "tf_idf") {
    c.emit().Refuse("output_mode " + mode);
    return kNoValue;
  }
  const ValueId size =
      c.emit().Const({{DType::kI64, Shape::Scalar()}, Buffer::Of<int64_t>(std::vector<int64_t>{depth})});
  const ValueId none = c.emit().Const({{DType::kF32, {0}}, Buffer::Of<float>(std::vector<float>())});
  ValueId counts = c.emit().Op("RaggedBincount", {numbers.splits, numbers.values, size, none},
                               MakeAttrs("binary_output", mode == "multi_hot"));
  if (rows.size >= 0) counts = c.emit().Reshape(counts, {rows, Extent{depth}});
  return mode == "tf_idf" ? Weighted(c, v, counts, depth) : counts;
}

// Dense numbers, cut or padded along the last axis.
ValueId Cut(LayerCall& c, ValueId numbers) {
  if (!c.Has("output_sequence_length")) return numbers;
  const int64_t length = c.Int("output_sequence_length");
  const int64_t own = c.emit().dim(numbers, -1);
  if (own == length) return numbers;
  c.emit().Refuse("output_sequence_length without split");
  return kNoValue;
}

void TextVectorization(LayerCall& c) {
  if (c.Bool("ragged", false)) return c.emit().Refuse("a ragged result; set output_sequence_length instead");
  const std::string mode = ModeOf(c);
  if (!c.Has("output_mode") && c.config().contains("output_mode"))
    return c.emit().Refuse("output_mode None, whose result is strings");
  const Vocabulary v = ReadVocabulary(c, mode, 1, "");
  ValueId text = Standardized(c, c.in());
  if (!c.emit().ok()) return;
  if (c.config().value("split", json()).is_null()) {
    if (!Widths(c).empty()) return c.emit().Refuse("ngrams without split");
    const ValueId numbers = NumbersOf(c, v, text);
    return c.AddOutput(mode == "int" ? Cut(c, numbers) : Output(c, v, numbers, mode));
  }
  const int rank = c.emit().rank(c.in());
  if (rank == 2 && c.emit().dim(c.in(), 1) == 1)
    text = c.emit().Op("Squeeze", {text}, MakeAttrs("squeeze_dims", std::vector<int64_t>{-1}));
  else if (rank != 1)
    return c.emit().Reject("its input is " + ToString(c.emit().type(c.in())) + ", expected one text per row");
  Ragged tokens = Tokens(c, text);
  const Extent rows = c.emit().size(c.in(), 0);
  tokens.values = NumbersOf(c, v, tokens.values);
  if (c.emit().ok()) c.AddOutput(mode == "int" ? Padded(c, tokens, rows) : Counted(c, v, tokens, rows, mode));
}

template <bool kIntegers>
void Lookup(LayerCall& c) {
  const std::string mode = ModeOf(c);
  std::optional<std::string> mask;
  if (c.Has("mask_token")) mask = kIntegers ? std::to_string(c.Int("mask_token")) : c.Str("mask_token", "");
  const Vocabulary v = ReadVocabulary(c, mode, c.Int("num_oov_indices", 1), mask, kIntegers);
  if (!c.emit().ok()) return;
  if (!c.Bool("invert", false)) return c.AddOutput(Output(c, v, NumbersOf(c, v, c.in()), mode));
  if (mode != "int") return c.emit().Reject("it inverts with output_mode " + mode);
  c.AddOutput(WordsOf(c, v, c.in()));
}

// Numbers of buckets; the mask value has bucket 0.
void Hashing(LayerCall& c) {
  const int64_t bins = c.Int("num_bins");
  const bool masked = c.Has("mask_value");
  if (bins < 1 || (masked && bins < 2)) return c.emit().Reject("its num_bins is " + std::to_string(bins));
  const ValueId in = c.in();
  const bool text = c.emit().dtype(in) == DType::kString;
  ValueId numbers = HashedBuckets(c, in, bins - (masked ? 1 : 0));
  if (masked) {
    const auto scalar = [&](int64_t number) {
      return c.emit().Const(
          {{DType::kI64, Shape::Scalar()}, Buffer::Of<int64_t>(std::vector<int64_t>{number})});
    };
    const ValueId is_mask =
        text ? c.emit().Op("Equal", {in, Text(c, c.Str("mask_value", ""))})
             : c.emit().Op("Equal", {c.emit().Cast(in, DType::kI64), scalar(c.Int("mask_value"))});
    numbers = c.emit().Op("SelectV2", {is_mask, scalar(0), c.emit().Op("AddV2", {numbers, scalar(1)})});
  }
  const std::string mode = ModeOf(c);
  if (mode != "int" && c.Bool("sparse", false)) return c.emit().Refuse("a sparse result");
  c.AddOutput(mode == "int" ? numbers : Encoded(c, c.emit().Cast(numbers, DType::kI32), bins, mode));
}

}  // namespace

std::span<const LayerRow> TextLayers() {
  static constexpr LayerRow kTable[] = {
      {"TextVectorization", TextVectorization, nullptr, MaskRule::kStop},
      {"StringLookup", Lookup<false>, nullptr, MaskRule::kStop},
      {"IntegerLookup", Lookup<true>, nullptr, MaskRule::kStop},
      {"Hashing", Hashing, nullptr, MaskRule::kStop},
  };
  return kTable;
}

}  // namespace fusebox::keras
