// SPDX-License-Identifier: Apache-2.0
// Text layers of Keras files, against Keras' documented examples and definitions.
#include "tests/testing/keras_cases.h"
#include "tests/text/text_run.h"

namespace fusebox::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// A model of this layer alone, in a .h5 file.
Result<Tensors> RunLayer(const std::string& class_name, const json& config, const Tensor& input,
                         const std::string& dtype = "string") {
  const std::string file = TestDir() + "/text.h5";
  json shape = json::array();
  for (const int64_t dim : input.type.shape.dims()) shape.push_back(dim);
  shape[0] = nullptr;
  json model = SequentialConfig({1}, json::array({LayerEntry(class_name, config)}), dtype);
  for (json& layer : model["config"]["layers"])
    for (const char* key : {"batch_shape", "batch_input_shape"})
      if (layer["config"].contains(key)) layer["config"][key] = shape;
  WriteH5(file, {model, {}});
  return RunText(file, {input});
}

json Vectorization(json more) {
  json config = {{"max_tokens", 5000},         {"standardize", "lower_and_strip_punctuation"},
                 {"split", "whitespace"},      {"ngrams", nullptr},
                 {"output_mode", "int"},       {"output_sequence_length", nullptr},
                 {"pad_to_max_tokens", false}, {"vocabulary", {"earth", "wind", "and", "fire"}}};
  config.update(more);
  return config;
}

void ExpectNumbers(const Result<Tensors>& got, const Shape& shape, const std::vector<int64_t>& numbers) {
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ((*got)[0].type, (Type{DType::kI64, shape}));
  EXPECT_THAT(ListOf<int64_t>((*got)[0]), ElementsAreArray(numbers));
}
void ExpectFloats(const Result<Tensors>& got, const Shape& shape, const std::vector<float>& numbers) {
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ((*got)[0].type, (Type{DType::kF32, shape}));
  EXPECT_THAT(ListOf<float>((*got)[0]), ::testing::Pointwise(::testing::FloatEq(), numbers));
}

TEST(TextVectorization, NumbersWords) {
  const Tensor texts = Texts({2, 1}, {"Earth, wind and FIRE!", "fire?  water"});
  ExpectNumbers(RunLayer("TextVectorization", Vectorization(json::object()), texts), {2, 4},
                {2, 3, 4, 5, 5, 1, 0, 0});
  ExpectNumbers(RunLayer("TextVectorization", Vectorization({{"output_sequence_length", 3}}), texts), {2, 3},
                {2, 3, 4, 5, 1, 0});
  ExpectNumbers(
      RunLayer("TextVectorization", Vectorization({{"output_sequence_length", 6}}), Texts({1}, {"wind"})),
      {1, 6}, {3, 0, 0, 0, 0, 0});
  ExpectNumbers(RunLayer("TextVectorization", Vectorization(json::object()), Texts({2, 1}, {"", " "})),
                {2, 0}, {});
}

TEST(TextVectorization, StandardizesAsConfigured) {
  const Tensor text = Texts({1, 1}, {"Fire fire, fire"});
  const auto numbers = [&](const json& how) {
    return RunLayer("TextVectorization", Vectorization({{"standardize", how}}), text);
  };
  ExpectNumbers(numbers(nullptr), {1, 3}, {1, 1, 5});
  ExpectNumbers(numbers("lower"), {1, 3}, {5, 1, 5});
  ExpectNumbers(numbers("strip_punctuation"), {1, 3}, {1, 5, 5});
}

TEST(TextVectorization, SplitsIntoCharactersAndNGrams) {
  const json letters = {{"split", "character"}, {"vocabulary", {"a", "\xC3\xA9"}}};
  ExpectNumbers(RunLayer("TextVectorization", Vectorization(letters), Texts({2, 1}, {"a\xC3\xA9z", "a"})),
                {2, 3}, {2, 3, 1, 2, 0, 0});
  const json pairs = {{"ngrams", {1, 2}}, {"vocabulary", {"and", "wind and", "and fire"}}};
  ExpectNumbers(RunLayer("TextVectorization", Vectorization(pairs), Texts({1, 1}, {"wind and fire"})), {1, 5},
                {1, 2, 1, 3, 4});
  const json up_to_two = {{"ngrams", 2}, {"vocabulary", {"and", "wind and", "and fire"}}};
  ExpectNumbers(RunLayer("TextVectorization", Vectorization(up_to_two), Texts({1, 1}, {"wind and fire"})),
                {1, 5}, {1, 2, 1, 3, 4});
  const json whole = {{"split", nullptr}, {"vocabulary", {"wind and fire"}}};
  ExpectNumbers(
      RunLayer("TextVectorization", Vectorization(whole), Texts({2, 1}, {"Wind and fire.", "fire"})), {2, 1},
      {2, 1});
}

TEST(TextVectorization, CountsWords) {
  const Tensor texts = Texts({2, 1}, {"wind wind fire", "water"});
  ExpectFloats(RunLayer("TextVectorization", Vectorization({{"output_mode", "multi_hot"}}), texts), {2, 5},
               {0, 0, 1, 0, 1, 1, 0, 0, 0, 0});
  ExpectFloats(RunLayer("TextVectorization", Vectorization({{"output_mode", "count"}}), texts), {2, 5},
               {0, 0, 2, 0, 1, 1, 0, 0, 0, 0});
  const json padded = {{"output_mode", "count"}, {"pad_to_max_tokens", true}, {"max_tokens", 6}};
  ExpectFloats(RunLayer("TextVectorization", Vectorization(padded), texts), {2, 6},
               {0, 0, 2, 0, 1, 0, 1, 0, 0, 0, 0, 0});
  const json weighted = {{"output_mode", "tf_idf"}, {"idf_weights", {0.25, 0.75, 0.5, 0.5}}};
  ExpectFloats(RunLayer("TextVectorization", Vectorization(weighted), texts), {2, 5},
               {0, 0, 1.5, 0, 0.5, 0.5, 0, 0, 0, 0});
}

TEST(TextVectorization, RefusesWhatItCannotDo) {
  const auto why = [&](json more) {
    const auto got = RunLayer("TextVectorization", Vectorization(std::move(more)), Texts({1, 1}, {"a"}));
    return got ? "" : got.error().message;
  };
  EXPECT_THAT(why({{"ragged", true}}), HasSubstr("a ragged result; set output_sequence_length instead"));
  EXPECT_THAT(why({{"sparse", true}, {"output_mode", "count"}}), HasSubstr("a sparse result"));
  EXPECT_THAT(why({{"output_mode", nullptr}}), HasSubstr("whose result is strings"));
  EXPECT_THAT(why({{"standardize", "mine"}}), HasSubstr("a function of its own to standardize"));
  EXPECT_THAT(why({{"split", {{"class_name", "function"}}}}), HasSubstr("a function of its own to split"));
  EXPECT_THAT(why({{"vocabulary", nullptr}}), HasSubstr("the file has no vocabulary of it"));
  EXPECT_THAT(why({{"vocabulary", "words.txt"}}), HasSubstr("a vocabulary that is not in the file"));
  EXPECT_THAT(why({{"vocabulary", {"a", "b", "a"}}}), HasSubstr("twice"));
  EXPECT_THAT(why({{"output_mode", "tf_idf"}}), HasSubstr("no idf_weights"));
  EXPECT_THAT(why({{"output_mode", "tf_idf"}, {"idf_weights", {1.0}}}), HasSubstr("not one per word"));
  const auto matrix = RunLayer("TextVectorization", Vectorization(json::object()), Texts({1, 2}, {"a", "b"}));
  ASSERT_FALSE(matrix);
  EXPECT_THAT(matrix.error().message, HasSubstr("expected one text per row"));
}

// In archives, the vocabulary that `adapt` found is an asset, with its special tokens.
TEST(TextVectorization, ReadsTheVocabularyOfAnArchive) {
  json config = Vectorization(json::object());
  config.erase("vocabulary");
  const json model =
      SequentialConfig({1, 1}, json::array({LayerEntry("TextVectorization", config)}), "string");
  // As Keras 3 and Keras 2.15 name the groups.
  for (const auto& [container, version] :
       {std::pair<std::string, std::string>{"layers", "3.3.3"}, {"_layer_checkpoint_dependencies", "2.15.0"}})
    for (const std::string part : {"", "_lookup_layer/"}) {
      const std::string file = TestDir() + "/text.keras", group = container + "/text_vectorization/";
      WriteKeras(file, model,
                 {{group + "vars/0", {{DType::kF32, {1}}, Buffer::Of<float>(std::vector<float>{0})}}},
                 version, {{"assets/" + group + part + "vocabulary.txt", "\n[UNK]\nearth\nwind\xC3\xA9"}});
      ExpectNumbers(RunText(file, {Texts({1, 1}, {"wind\xC3\xA9 earth water"})}), {1, 3}, {3, 2, 1});
    }
}

TEST(StringLookup, NumbersStringsOfAnyShape) {
  // The example of the layer's documentation.
  const Tensor data = Texts({2, 3}, {"a", "c", "d", "d", "z", "b"});
  const json words = {"a", "b", "c", "d"};
  ExpectNumbers(RunLayer("StringLookup", {{"vocabulary", words}, {"mask_token", nullptr}}, data), {2, 3},
                {1, 3, 4, 4, 0, 2});
  ExpectNumbers(RunLayer("StringLookup", {{"vocabulary", words}, {"mask_token", "a"}}, data), {2, 3},
                {0, 4, 5, 5, 1, 3});
  // FarmHash puts "m" into bucket 0 and "z" into bucket 1 of 2.
  const auto hashed =
      RunLayer("StringLookup", {{"vocabulary", words}, {"mask_token", nullptr}, {"num_oov_indices", 2}},
               Texts({2, 3}, {"a", "c", "d", "m", "z", "b"}));
  ExpectNumbers(hashed, {2, 3}, {2, 4, 5, 0, 1, 3});
  ExpectNumbers(RunLayer("StringLookup", {{"vocabulary", {"[UNK]", "a"}}, {"mask_token", nullptr}},
                         Texts({1, 1}, {"a"})),
                {1, 1}, {1});
}

TEST(StringLookup, Encodes) {
  const json words = {"a", "b"};
  const auto with = [&](const char* mode, const Tensor& data) {
    return RunLayer("StringLookup", {{"vocabulary", words}, {"mask_token", nullptr}, {"output_mode", mode}},
                    data);
  };
  ExpectFloats(with("one_hot", Texts({3, 1}, {"b", "z", "a"})), {3, 3}, {0, 0, 1, 1, 0, 0, 0, 1, 0});
  ExpectFloats(with("multi_hot", Texts({1, 3}, {"b", "z", "b"})), {1, 3}, {1, 0, 1});
  ExpectFloats(with("count", Texts({1, 3}, {"b", "z", "b"})), {1, 3}, {1, 0, 2});
}

TEST(StringLookup, Inverts) {
  const Tensor numbers{{DType::kI64, {1, 4}}, Buffer::Of<int64_t>(std::vector<int64_t>{1, 2, 0, 9})};
  const auto words =
      RunLayer("StringLookup", {{"vocabulary", {"a", "b"}}, {"mask_token", nullptr}, {"invert", true}},
               numbers, "int64");
  ASSERT_TRUE(words) << words.error().message;
  EXPECT_THAT(UnpackStrings((*words)[0].data).value(), ElementsAre("a", "b", "[UNK]", "[UNK]"));
}

Tensor Integers(Shape shape, const std::vector<int64_t>& values) {
  return {{DType::kI64, std::move(shape)}, Buffer::Of<int64_t>(values)};
}

// The examples of the layer's documentation.
TEST(IntegerLookup, NumbersIntegers) {
  const Tensor data = Integers({2, 3}, {12, 1138, 42, 42, 1000, 36});
  const auto with = [](json config, const Tensor& in, const char* dtype = "int64") {
    config["vocabulary"] = {12, 36, 1138, 42};
    return RunLayer("IntegerLookup", config, in, dtype);
  };
  ExpectNumbers(with({{"mask_token", nullptr}}, data), {2, 3}, {1, 3, 4, 4, 0, 2});
  ExpectNumbers(with({{"mask_token", 0}}, Integers({1, 4}, {0, 12, 7, 42})), {1, 4}, {0, 2, 1, 5});
  ExpectNumbers(with({{"num_oov_indices", 2}}, Integers({2, 3}, {12, 1138, 42, 37, 1000, 36})), {2, 3},
                {2, 4, 5, 1, 0, 3});
  ExpectNumbers(with({{"num_oov_indices", 2}, {"mask_token", 0}}, Integers({1, 4}, {0, 12, 7, -8})), {1, 4},
                {0, 3, 2, 1});
  ExpectNumbers(with({{"num_oov_indices", 0}}, data), {2, 3}, {0, 2, 3, 3, -1, 1});
  const Tensor small{{DType::kI32, {1, 2}}, Buffer::Of<int32_t>(std::vector<int32_t>{36, -1})};
  ExpectNumbers(with(json::object(), small, "int32"), {1, 2}, {2, 0});
  ExpectNumbers(with({{"invert", true}}, Integers({2, 3}, {1, 3, 4, 4, 0, 2})), {2, 3},
                {12, 1138, 42, 42, -1, 36});
  ExpectNumbers(with({{"invert", true}, {"oov_token", -7}}, Integers({1, 2}, {0, 9})), {1, 2}, {-7, -7});
}

TEST(IntegerLookup, Encodes) {
  const json config = {{"vocabulary", {12, 36, 1138, 42}}, {"num_oov_indices", 1}};
  const auto with = [&](const char* mode, const Tensor& in) {
    json more = config;
    more["output_mode"] = mode;
    if (std::string(mode) == "tf_idf") more["idf_weights"] = {0.25, 0.75, 0.6, 0.4};
    return RunLayer("IntegerLookup", more, in, "int64");
  };
  ExpectFloats(with("one_hot", Integers({5, 1}, {12, 36, 1138, 42, 7})), {5, 5},
               {0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0});
  const Tensor data = Integers({2, 4}, {12, 1138, 42, 42, 42, 7, 36, 7});
  ExpectFloats(with("multi_hot", data), {2, 5}, {0, 1, 0, 1, 1, 1, 0, 1, 0, 1});
  ExpectFloats(with("count", data), {2, 5}, {0, 1, 0, 1, 2, 2, 0, 1, 0, 1});
  ExpectFloats(with("tf_idf", data), {2, 5}, {0, 0.25F, 0, 0.6F, 0.8F, 1, 0, 0.75F, 0, 0.4F});
}

// Hashed numbers of unknown integers (Keras 3.15): those of their decimal text.
TEST(IntegerLookup, HashesUnknownIntegers) {
  const json config = {{"vocabulary", {12}}, {"num_oov_indices", 3}, {"oov_method", "farmhash"}};
  const auto hashed = RunLayer("IntegerLookup", config, Integers({1, 3}, {12, 7, -8}), "int64");
  const auto text = RunLayer("Hashing", {{"num_bins", 3}}, Texts({1, 2}, {"7", "-8"}));
  ASSERT_TRUE(hashed && text);
  const auto got = ListOf<int64_t>((*hashed)[0]), buckets = ListOf<int64_t>((*text)[0]);
  EXPECT_THAT(got, ElementsAre(3, buckets[0], buckets[1]));
}

TEST(IntegerLookup, ReadsTheVocabularyOfAnArchive) {
  const json model = SequentialConfig(
      {1, 2}, json::array({LayerEntry("IntegerLookup", {{"mask_token", 0}, {"num_oov_indices", 1}})}),
      "int64");
  const auto run = [&](const std::string& lines) {
    const std::string file = TestDir() + "/integers.keras";
    WriteKeras(file, model, {{"vars/0", {{DType::kF32, {1}}, Buffer::Of<float>(std::vector<float>{0})}}},
               "3.3.3", {{"assets/layers/integer_lookup/vocabulary.txt", lines}});
    return RunText(file, {Integers({1, 2}, {1138, 5})});
  };
  ExpectNumbers(run("0\n-1\n12\n1138"), {1, 2}, {3, 1});
  const auto wrong = run("0\n-1\ntwelve");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("\"twelve\" in its vocabulary is no integer"));
}

TEST(IntegerLookup, RefusesOtherVocabularies) {
  const auto why = [](const json& config) {
    const auto got = RunLayer("IntegerLookup", config, Integers({1, 1}, {1}), "int64");
    return got ? "" : got.error().message;
  };
  EXPECT_THAT(why({{"vocabulary", {"a"}}}), HasSubstr("a vocabulary that is not a list of integers"));
  EXPECT_THAT(why({{"vocabulary", {1, 2, 1}}}), HasSubstr("twice"));
  EXPECT_THAT(why({{"vocabulary", {1}}, {"sparse", true}, {"output_mode", "count"}}),
              HasSubstr("a sparse result"));
}

TEST(Hashing, PutsValuesIntoBuckets) {
  // The examples of the layer's documentation.
  const Tensor texts = Texts({5, 1}, {"A", "B", "C", "D", "E"});
  ExpectNumbers(RunLayer("Hashing", {{"num_bins", 3}}, texts), {5, 1}, {1, 0, 1, 1, 2});
  ExpectNumbers(
      RunLayer("Hashing", {{"num_bins", 3}, {"mask_value", ""}}, Texts({5, 1}, {"A", "B", "", "C", "D"})),
      {5, 1}, {1, 1, 0, 2, 2});
}

// The examples of the layer's documentation.
TEST(Hashing, HashesWithASalt) {
  const Tensor texts = Texts({5, 1}, {"A", "B", "C", "D", "E"});
  ExpectNumbers(RunLayer("Hashing", {{"num_bins", 3}, {"salt", {133, 137}}}, texts), {5, 1}, {1, 2, 1, 0, 2});
  ExpectNumbers(RunLayer("Hashing", {{"num_bins", 3}, {"salt", 133}}, texts), {5, 1}, {0, 0, 2, 1, 0});
  const auto wrong = RunLayer("Hashing", {{"num_bins", 3}, {"salt", {1, 2, 3}}}, texts);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("its salt is not one or two integers"));
  const auto sparse =
      RunLayer("Hashing", {{"num_bins", 3}, {"sparse", true}, {"output_mode", "one_hot"}}, texts);
  ASSERT_FALSE(sparse);
  EXPECT_THAT(sparse.error().message, HasSubstr("a sparse result"));
}

// Floats are cut to integers, then written in decimal.
TEST(Hashing, HashesNumbers) {
  const auto text = RunLayer("Hashing", {{"num_bins", 1000}}, Texts({3, 1}, {"5", "-7", "0"}));
  ASSERT_TRUE(text) << text.error().message;
  const auto want = ListOf<int64_t>((*text)[0]);
  ExpectNumbers(RunLayer("Hashing", {{"num_bins", 1000}}, Integers({3, 1}, {5, -7, 0}), "int64"), {3, 1},
                want);
  const Tensor reals{{DType::kF32, {3, 1}}, Buffer::Of<float>(std::vector<float>{5.9F, -7.2F, 0.4F})};
  ExpectNumbers(RunLayer("Hashing", {{"num_bins", 1000}}, reals, "float32"), {3, 1}, want);
}

}  // namespace
}  // namespace fusebox::testing
