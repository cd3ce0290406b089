// SPDX-License-Identifier: Apache-2.0
// String ops beside TensorFlow.js, on seeded text.
#include <random>

#include "tests/peers/tfjs.h"
#include "tests/testing/peer.h"
#include "tests/text/text_run.h"

namespace fusebox::testing {
namespace {

using nlohmann::json;

// One op, for both implementations.
struct Both {
  json job;  // for tests/peers/tfjs_strings.js
  std::string op;
  Attrs attrs;
  std::vector<Tensor> operands;
  std::vector<DType> results;
};

class Words {
 public:
  size_t Below(size_t n) { return random_() % n; }
  std::string Word() {
    static const std::vector<std::string> parts = {"a", "b",        "ab", "-",   " ",
                                                   ",", "\xC3\xA9", "1",  "<b>", "\xE2\x82\xAC"};
    std::string word;
    for (size_t i = 0, n = Below(12); i < n; ++i) word += parts[Below(parts.size())];
    return word;
  }
  std::vector<std::string> List() {
    std::vector<std::string> words(1 + Below(6));
    for (std::string& word : words) word = Word();
    return words;
  }

 private:
  std::mt19937 random_{5};
};

Tensor List(const std::vector<std::string>& words) {
  return Texts({static_cast<int64_t>(words.size())}, words);
}

Both RegexCase(Words& words, size_t i) {
  static const std::vector<std::pair<std::string, std::string>> patterns = {
      {"[ab]+", "x"},   {"(a)(b)", "-"},  // TensorFlow.js does not rewrite groups
      {"<[^>]+>", " "}, {"\\d", ""},     {"^a|b$", "-"}, {"[!\"#$%&()*+,-./]", ""}};
  const auto& [pattern, rewrite] = patterns[i % patterns.size()];
  const bool all = words.Below(2) == 0;
  const auto in = words.List();
  return {{{"in", in}, {"pattern", pattern}, {"rewrite", rewrite}, {"all", all}},
          "StaticRegexReplace",
          MakeAttrs("pattern", pattern, "rewrite", rewrite, "replace_global", all),
          {List(in)},
          {DType::kString}};
}

Both NGramCase(Words& words, size_t) {
  const auto in = words.List();
  const auto count = static_cast<int64_t>(in.size());
  const int64_t middle = static_cast<int64_t>(words.Below(in.size() + 1));
  const std::vector<int64_t> splits = {0, middle, middle, count};
  std::vector<int64_t> widths(1 + words.Below(2));
  for (int64_t& width : widths) width = 1 + static_cast<int64_t>(words.Below(4));
  const int64_t pad = static_cast<int64_t>(words.Below(4)) - 1;
  const bool keep = pad >= 0 && words.Below(2) == 0;
  return {{{"in", in},
           {"splits", splits},
           {"separator", "|"},
           {"widths", widths},
           {"left", "<"},
           {"right", ">"},
           {"pad", pad},
           {"short", keep}},
          "StringNGrams",
          MakeAttrs("separator", "|", "ngram_widths", widths, "left_pad", "<", "right_pad", ">", "pad_width",
                    pad, "preserve_short_sequences", keep),
          {List(in), {{DType::kI64, {4}}, Buffer::Of<int64_t>(splits)}},
          {DType::kString, DType::kI64}};
}

Both SplitCase(Words& words, size_t i) {
  static const std::vector<std::string> delimiters = {" ", ",", "-", ", ", "ab", ""};
  const std::string& delimiter = delimiters[i % delimiters.size()];
  const bool skip = words.Below(2) == 0;
  std::vector<std::string> in = words.List();
  if (delimiter.empty())  // TensorFlow.js has no strings of single bytes that are no UTF-8
    for (std::string& word : in) std::erase_if(word, [](char c) { return (c & 0x80) != 0; });
  return {{{"in", in}, {"delimiter", delimiter}, {"skip", skip}},
          "StringSplit",
          MakeAttrs("skip_empty", skip),
          {List(in), Texts(Shape::Scalar(), {delimiter})},
          {DType::kI64, DType::kString, DType::kI64}};
}

Both HashCase(Words& words, size_t) {
  std::vector<std::string> in = words.List();
  in.push_back(words.Word() + words.Word() + words.Word() + words.Word() + words.Word());
  const auto buckets = static_cast<int64_t>(1 + words.Below(1000));
  return {{{"in", in}, {"buckets", buckets}},
          "StringToHashBucketFast",
          MakeAttrs("num_buckets", buckets),
          {List(in)},
          {DType::kI64}};
}

Result<json> Ours(const Both& both) {
  auto module = std::make_unique<Module>();
  Function& main = module->Add("main");
  std::vector<ValueId> inputs;
  for (const Tensor& t : both.operands)
    inputs.push_back(main.AddInput(t.type, "in" + std::to_string(inputs.size())));
  std::vector<Type> types;
  for (const DType dtype : both.results) types.push_back({dtype, Shape()});
  Node& node = main.AddNode(Op::kCustom, inputs, types, both.attrs);
  node.name = both.op;
  node.version = 1;
  main.outputs = node.results;
  FUSEBOX_ASSIGN(const auto model, Model::FromModule(std::move(module), {.registry = StringsPlugin()}));
  FUSEBOX_ASSIGN(const auto session, Session::Create(model));
  FUSEBOX_ASSIGN(const Tensors outputs, Invoke(*session, both.operands));
  json lists = json::array();
  for (const Tensor& t : outputs) {
    if (t.type.dtype == DType::kString) lists.push_back(UnpackStrings(t.data).value());
    else lists.push_back(ListOf<int64_t>(t));
  }
  return lists;
}

TEST(TfjsStrings, AgreeWithTensorFlowJs) {
  FUSEBOX_NEEDS_TFJS();
  std::string why;
  json job = {{"package", PeerFile("node_modules/@tensorflow/tfjs", &why)}, {"cases", json::array()}};
  Words words;
  std::vector<Both> cases;
  for (size_t i = 0; i < 150; ++i)
    for (const auto make : {RegexCase, NGramCase, SplitCase, HashCase}) {
      cases.push_back(make(words, i));
      cases.back().job["op"] = cases.back().op;
      job["cases"].push_back(cases.back().job);
    }
  const auto theirs = RunTfjsScript("tfjs_strings.js", job, "");
  ASSERT_TRUE(theirs) << theirs.error().message;
  ASSERT_EQ(theirs->size(), cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto ours = Ours(cases[i]);
    ASSERT_TRUE(ours) << cases[i].job << ": " << ours.error().message;
    EXPECT_EQ(*ours, (*theirs)[i]) << cases[i].job;
  }
}

}  // namespace
}  // namespace fusebox::testing
