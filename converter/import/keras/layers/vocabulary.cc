// SPDX-License-Identifier: Apache-2.0
#include "converter/import/keras/layers/vocabulary.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>

#include "host/graph/npy.h"

namespace fusebox::keras {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

Words Lines(std::string_view text) {
  Words lines;
  for (size_t end = 0; end != std::string_view::npos;) {
    end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    if (end != std::string_view::npos) text.remove_prefix(end + 1);
  }
  return lines;
}

std::optional<int64_t> Integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A list of the configuration.
Words Listed(LayerCall& c, const json& listed, bool integers) {
  Words words;
  for (const json& item : listed)
    if (!integers && item.is_string()) words.push_back(item.get<std::string>());
    else if (integers && item.is_number_integer()) words.push_back(std::to_string(item.get<int64_t>()));
  if (words.size() != listed.size())
    c.emit().Refuse("a vocabulary that is not a list of " + std::string(integers ? "integers" : "strings"));
  return words;
}

// The lines of an asset.
Words Written(LayerCall& c, std::string_view text, bool integers) {
  Words words = Lines(text);
  for (std::string& word : words) {
    if (!integers) break;
    const auto value = Integer(word);
    if (!value) {
      c.emit().Reject("\"" + word.substr(0, 40) + "\" in its vocabulary is no integer");
      return {};
    }
    word = std::to_string(*value);
  }
  return words;
}

// The list that the file stores; empty after an error.
Words Stored(LayerCall& c, bool integers) {
  const json listed = c.config().value("vocabulary", json());
  if (listed.is_array() && !listed.empty()) return Listed(c, listed, integers);
  if (!listed.is_null() && !listed.is_array()) {
    c.emit().Refuse("a vocabulary that is not in the file; pass the layer a list");
    return {};
  }
  for (const char* part : {"", "_lookup_layer/"}) {
    const auto text = c.state().archive.Asset(c.layer().group + part + "vocabulary.txt");
    if (!text) {
      c.emit().Fail(text.error());
      return {};
    }
    if (*text) return Written(c, **text, integers);
  }
  c.emit().Reject(
      "the file has no vocabulary of it; adapt the layer, or pass it a list, before saving the "
      "model as .keras");
  return {};
}

// Weights of the tokens in front of their average for unknown words.
std::vector<float> StoredWeights(LayerCall& c, size_t listed, const Vocabulary& v) {
  std::vector<float> weights;
  const json given = c.config().value("idf_weights", json());
  if (given.is_array())
    for (const json& item : given)
      if (item.is_number()) weights.push_back(item.get<float>());
  if (!weights.empty()) {
    if (weights.size() != listed) c.emit().Reject("its idf_weights are not one per word");
    if (listed == v.tokens.size() && v.oov_end > 0) {
      const float mean =
          std::accumulate(weights.begin(), weights.end(), 0.0F) / static_cast<float>(weights.size());
      weights.insert(weights.begin(), static_cast<size_t>(v.oov_end), mean);
    }
    return weights;
  }
  if (!c.state().archive.by_object()) {
    c.emit().Reject("the file has no idf_weights of it");
    return weights;
  }
  for (const char* part : {"", "_lookup_layer/"}) {
    const std::string dataset = c.state().archive.FindWeight(c.layer().group + part + "vars/idf_weights");
    if (dataset.empty()) continue;
    const auto stored = c.state().archive.Read(dataset);
    if (!stored) {
      c.emit().Fail(stored.error());
      return weights;
    }
    if (stored->type.dtype != DType::kF32) {
      c.emit().Reject("its idf_weights are no floats");
      return weights;
    }
    const auto values = stored->data.As<float>();
    return {values.begin(), values.end()};
  }
  c.emit().Reject("the file has no idf_weights of it");
  return weights;
}

Tensor Numbers(const std::vector<int64_t>& numbers) {
  return {{DType::kI64, {static_cast<int64_t>(numbers.size())}}, Buffer::Of<int64_t>(numbers)};
}
Tensor Texts(const Words& words) {
  return {{DType::kString, {static_cast<int64_t>(words.size())}}, PackStrings(words)};
}
Tensor TokensOf(const Vocabulary& v, const Words& words) {
  if (!v.integers) return Texts(words);
  std::vector<int64_t> integers;
  for (const std::string& word : words) integers.push_back(Integer(word).value_or(0));
  return Numbers(integers);
}
ValueId Scalar(LayerCall& c, int64_t number) {
  return c.emit().Const({{DType::kI64, Shape::Scalar()}, Buffer::Of<int64_t>(std::vector<int64_t>{number})});
}

ValueId Find(LayerCall& c, const Tensor& keys, const Tensor& values, ValueId key, ValueId otherwise) {
  const ValueId table = c.emit().Op(
      "HashTableV2", {}, MakeAttrs("table_id", c.state().tables++, "keys", keys, "values", values));
  return c.emit().Op("LookupTableFindV2", {table, key, otherwise});
}

// The numbers of unknown words, from 0 on.
ValueId BucketsOf(LayerCall& c, const Vocabulary& v, ValueId words, int64_t buckets) {
  if (v.integers && c.Str("oov_method", "floormod") != "farmhash")
    return c.emit().Op("FloorMod", {words, Scalar(c, buckets)});
  return HashedBuckets(c, words, buckets);
}

// The key of a salted hash: two integers, or one that is used twice.
std::vector<int64_t> KeyOf(LayerCall& c) {
  const json salt = c.config().value("salt", json());
  if (salt.is_number_integer()) return std::vector<int64_t>(2, salt.get<int64_t>());
  std::vector<int64_t> key = c.Ints("salt");
  if (key.size() != 2) c.emit().Reject("its salt is not one or two integers");
  return key;
}

}  // namespace

ValueId HashedBuckets(LayerCall& c, ValueId values, int64_t buckets) {
  if (c.emit().dtype(values) != DType::kString)
    values = c.emit().Op("AsString", {c.emit().Cast(values, DType::kI64)});
  if (!c.Has("salt"))
    return c.emit().Op("StringToHashBucketFast", {values}, MakeAttrs("num_buckets", buckets));
  return c.emit().Op("StringToHashBucketStrong", {values},
                     MakeAttrs("num_buckets", buckets, "key", KeyOf(c)));
}

Vocabulary ReadVocabulary(LayerCall& c, const std::string& mode, int64_t oov_count,
                          const std::optional<std::string>& mask, bool integers) {
  Vocabulary v;
  v.integers = integers;
  v.masked = mask.has_value();
  v.mask = mask.value_or("");
  v.oov = integers ? std::to_string(c.Int("oov_token", -1)) : c.Str("oov_token", "[UNK]");
  if (oov_count < 0 || oov_count > INT32_MAX) {
    c.emit().Reject("its num_oov_indices is " + std::to_string(oov_count));
    return v;
  }
  v.oov_begin = mode == "int" && v.masked ? 1 : 0;
  v.oov_end = v.oov_begin + oov_count;
  Words words = Stored(c, integers);
  if (!c.emit().ok()) return v;
  // Files store the vocabulary with or without the special tokens in front.
  Words special(static_cast<size_t>(v.oov_begin), v.mask);
  if (words.size() >= static_cast<size_t>(v.oov_end)) special.resize(static_cast<size_t>(v.oov_end), v.oov);
  const size_t listed = words.size();
  if (special.size() == static_cast<size_t>(v.oov_end) &&
      std::ranges::equal(special, std::span(words).first(special.size())))
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(special.size()));
  v.tokens = std::move(words);
  if (std::set<std::string_view>(v.tokens.begin(), v.tokens.end()).size() != v.tokens.size())
    c.emit().Reject("a word is in its vocabulary twice");
  if (mode == "tf_idf" && c.emit().ok()) v.weights = StoredWeights(c, listed, v);
  return v;
}

ValueId NumbersOf(LayerCall& c, const Vocabulary& v, ValueId words) {
  if (v.integers) words = c.emit().Cast(words, DType::kI64);
  Words keys;
  std::vector<int64_t> numbers;
  if (v.masked) {
    keys.push_back(v.mask);
    numbers.push_back(v.oov_begin == 1 ? 0 : INT32_MAX);  // without a number, it is not counted
  }
  for (size_t i = 0; i < v.tokens.size(); ++i) {
    if (v.masked && v.tokens[i] == v.mask) continue;
    keys.push_back(v.tokens[i]);
    numbers.push_back(v.oov_end + static_cast<int64_t>(i));
  }
  const int64_t buckets = v.oov_end - v.oov_begin;
  const ValueId unknown = Scalar(c, buckets == 1 ? v.oov_begin : -1);
  const ValueId found = Find(c, TokensOf(v, keys), Numbers(numbers), words, unknown);
  if (buckets <= 1) return found;
  const ValueId hashed = c.emit().Op("AddV2", {BucketsOf(c, v, words, buckets), Scalar(c, v.oov_begin)});
  return c.emit().Op("SelectV2", {c.emit().Op("Equal", {found, unknown}), hashed, found});
}

ValueId WordsOf(LayerCall& c, const Vocabulary& v, ValueId numbers) {
  Words words(static_cast<size_t>(v.oov_begin), v.mask);
  words.resize(static_cast<size_t>(v.oov_end), v.oov);
  words.insert(words.end(), v.tokens.begin(), v.tokens.end());
  std::vector<int64_t> keys(words.size());
  std::iota(keys.begin(), keys.end(), 0);
  Tensor unknown = TokensOf(v, {v.oov});
  unknown.type.shape = Shape::Scalar();
  return Find(c, Numbers(keys), TokensOf(v, words), c.emit().Cast(numbers, DType::kI64),
              c.emit().Const(unknown));
}

}  // namespace fusebox::keras
