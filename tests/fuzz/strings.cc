// SPDX-License-Identifier: Apache-2.0
// One op of plugins/strings per input: the op, its attributes and its operands are read from the bytes, and
// the node runs through the host. Numbers are small: time goes into many inputs, not into a large one.
#include <array>

#include "host/graph/npy.h"
#include "host/model.h"
#include "host/session.h"
#include "tests/fuzz/targets.h"

extern "C" const fbx_static_plugin fusebox_plugin_strings_static;

namespace fusebox::fuzz {
namespace {

// Attributes by kind: b bool, n number, l numbers, t text, or a choice: "|a|b". Operands and results by type:
// s strings, t one string, i i64, k i32, f f32.
struct OpSpec {
  const char* op;
  std::vector<std::pair<const char*, const char*>> attrs;
  const char *operands, *results;
};

constexpr const char *kEncodings = "|UTF-8|UTF-16-BE|UTF-32-BE|US-ASCII", *kErrors = "|replace|ignore|strict",
                     *kUnits = "|BYTE|UTF8_CHAR", *kForms = "|NFKC|NFC|NFD|NFKD";

const std::vector<OpSpec>& Ops() {
  static const std::vector<OpSpec> ops = {
      {"StringLower", {{"encoding", "||utf-8"}}, "s", "s"},
      {"StringUpper", {{"encoding", "||utf-8"}}, "s", "s"},
      {"NormalizeUTF8", {{"normalization_form", kForms}}, "s", "s"},
      {"CaseFoldUTF8", {}, "s", "s"},
      {"StringStrip", {}, "s", "s"},
      {"StaticRegexReplace", {{"pattern", "t"}, {"rewrite", "t"}, {"replace_global", "b"}}, "s", "s"},
      {"RegexReplace", {{"replace_global", "b"}}, "stt", "s"},
      {"StaticRegexFullMatch", {{"pattern", "t"}}, "s", "b"},
      {"RegexFullMatch", {}, "st", "b"},
      {"UnicodeTranscode",
       {{"input_encoding", kEncodings},
        {"output_encoding", kEncodings},
        {"errors", kErrors},
        {"replacement_char", "n"},
        {"replace_control_characters", "b"}},
       "s",
       "s"},
      {"UnicodeDecode", {{"input_encoding", kEncodings}, {"errors", kErrors}}, "s", "ik"},
      {"UnicodeDecodeWithOffsets", {{"input_encoding", kEncodings}, {"errors", kErrors}}, "s", "iki"},
      {"UnicodeEncode", {{"output_encoding", kEncodings}, {"errors", kErrors}}, "ki", "s"},
      {"StringLength", {{"unit", kUnits}}, "s", "k"},
      {"Substr", {{"unit", kUnits}}, "sii", "s"},
      {"StringJoin", {{"separator", "t"}}, "sss", "s"},
      {"StringSplit", {{"skip_empty", "b"}}, "st", "isi"},
      {"StringSplitV2", {{"maxsplit", "n"}}, "st", "isi"},
      {"StringNGrams",
       {{"separator", "t"},
        {"ngram_widths", "l"},
        {"left_pad", "t"},
        {"right_pad", "t"},
        {"pad_width", "n"},
        {"preserve_short_sequences", "b"}},
       "si",
       "si"},
      {"StringToHashBucketFast", {{"num_buckets", "n"}}, "s", "i"},
      {"StringToHashBucketStrong", {{"num_buckets", "n"}, {"key", "l"}}, "s", "i"},
      {"ReduceJoin", {{"keep_dims", "b"}, {"separator", "t"}}, "si", "s"},
      {"StringToNumber", {{"out_type", "|f32"}}, "s", "f"},
      {"StringToNumber", {{"out_type", "|i64"}}, "s", "i"},
      {"AsString",
       {{"precision", "n"}, {"scientific", "b"}, {"shortest", "b"}, {"width", "n"}, {"fill", "||0| |+|-"}},
       "f",
       "s"},
      {"AsString", {{"width", "n"}, {"fill", "||0| |+|-"}}, "i", "s"},
      {"RaggedTensorToTensor", {{"row_partition_types", "|ROW_SPLITS"}}, "isti", "s"},
      {"RaggedTensorToTensor", {{"row_partition_types", "|ROW_SPLITS,ROW_SPLITS"}}, "ifgii", "f"},
      {"RaggedTensorToTensor", {{"row_partition_types", "|FIRST_DIM_SIZE,VALUE_ROWIDS"}}, "ifgii", "f"},
      {"RaggedBincount", {{"binary_output", "b"}}, "iiif", "f"},
  };
  return ops;
}

// The bytes, from front to back; zeros after their end.
class Source {
 public:
  explicit Source(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t Below(size_t n) { return Byte() % n; }
  uint8_t Byte() {
    if (bytes_.empty()) return 0;
    const auto byte = std::to_integer<uint8_t>(bytes_[0]);
    bytes_ = bytes_.subspan(1);
    return byte;
  }
  int64_t Number() { return static_cast<int8_t>(Byte()); }
  std::string Text() {
    const size_t wanted = Byte(), size = std::min(wanted, bytes_.size());
    std::string text(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
    return text;
  }

 private:
  std::span<const std::byte> bytes_;
};

std::vector<std::string> Split(std::string_view text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at) parts.emplace_back();
    else parts.back() += c;
  }
  return parts;
}

AttrValue ReadAttr(Source& source, const std::string& key, std::string_view kind) {
  if (kind == "b") return source.Below(2) == 1;
  if (kind == "n") return source.Number();
  if (kind == "t") return source.Text();
  if (kind == "l") {
    std::vector<int64_t> list(source.Below(4));
    for (int64_t& value : list) value = source.Number();
    return list;
  }
  const auto choices = Split(kind.substr(1), '|');
  const std::string& choice = choices[source.Below(choices.size())];
  if (key == "row_partition_types") return Split(choice, ',');
  return choice;
}

Tensor ReadTensor(Source& source, char kind) {
  Shape shape = Shape::Scalar();
  if (kind != 't' && kind != 'g') {
    std::vector<int64_t> dims(source.Below(4));
    for (int64_t& dim : dims) dim = static_cast<int64_t>(source.Below(5));
    shape = Shape(dims);
  }
  const auto count = static_cast<size_t>(*shape.element_count());
  const auto numbers = [&]<class T>(DType dtype, T) {
    std::vector<T> values(count);
    for (T& value : values) value = static_cast<T>(source.Number());
    return Tensor{{dtype, shape}, Buffer::Of<T>(values)};
  };
  if (kind == 'i') return numbers(DType::kI64, int64_t{});
  if (kind == 'k') return numbers(DType::kI32, int32_t{});
  if (kind == 'f' || kind == 'g') return numbers(DType::kF32, float{});
  std::vector<std::string> strings(count);
  for (std::string& text : strings) text = source.Text();
  return {{DType::kString, shape}, PackStrings(strings)};
}

DType ResultType(char kind) {
  switch (kind) {
    case 's': return DType::kString;
    case 'b': return DType::kBool;
    case 'i': return DType::kI64;
    case 'k': return DType::kI32;
    default: return DType::kF32;
  }
}

const std::shared_ptr<Registry>& Kernels() {
  static const auto registry = [] {
    Config config;
    config.search_default_path = false;
    auto made = *Registry::Create(config);
    FUSEBOX_CHECK(made->Add(fusebox_plugin_strings_static).has_value());
    return made;
  }();
  return registry;
}

}  // namespace

Status RunStrings(std::span<const std::byte> bytes) {
  if (bytes.empty()) return Invalid("no op");
  Source source(bytes);
  const OpSpec& spec = Ops()[source.Below(Ops().size())];
  Attrs attrs;
  for (const auto& [key, kind] : spec.attrs) attrs.Set(key, ReadAttr(source, key, kind));
  auto module = std::make_unique<Module>();
  Function& main = module->Add("main");
  std::vector<Tensor> inputs;
  std::vector<ValueId> operands;
  for (const char kind : std::string_view(spec.operands)) {
    inputs.push_back(ReadTensor(source, kind));
    operands.push_back(main.AddInput(inputs.back().type, "in" + std::to_string(inputs.size())));
  }
  std::vector<Type> types;
  for (const char kind : std::string_view(spec.results)) types.push_back({ResultType(kind), Shape()});
  Node& node = main.AddNode(Op::kCustom, operands, types, attrs);
  node.name = spec.op;
  node.version = 1;
  main.outputs = node.results;
  FUSEBOX_ASSIGN(const auto model,
                 Model::FromModule(std::move(module),
                                   {.registry = Kernels(), .delegates = std::vector<Config::Delegate>{}}));
  FUSEBOX_ASSIGN(const auto session, Session::Create(model));
  for (size_t i = 0; i < inputs.size(); ++i) FUSEBOX_TRY(session->SetInput(static_cast<int>(i), inputs[i]));
  FUSEBOX_TRY(session->Run());
  for (size_t i = 0; i < types.size(); ++i) {
    FUSEBOX_ASSIGN(const Tensor out, session->output(static_cast<int>(i)));
    if (out.type.dtype == DType::kString) FUSEBOX_CHECK(UnpackStrings(out.data).has_value());
  }
  return {};
}

// A text is its size and its bytes; a tensor its rank, its sizes and its elements.
std::vector<std::string> StringSeeds() {
  const auto op = [](const char* name, int which = 0) {
    size_t number = 0;
    while (std::string_view(Ops()[number].op) != name || which-- > 0) ++number;
    return std::string(1, static_cast<char>(number));
  };
  const std::string two("\1\2\5Earth\6wi\xC3\xA9nd", 15), delimiter("\1 ", 2);
  const auto bytes = []<size_t n>(const char(&text)[n]) { return std::string(text, n - 1); };
  return {
      op("StringLower") + "\1" + two,
      op("StringUpper") + "\1" + two,
      op("NormalizeUTF8") + bytes("\0") + two,
      op("CaseFoldUTF8") + two,
      op("StringStrip") + two,
      op("StaticRegexReplace") + bytes("\5(\\w)+\3<\\1\1") + two,
      op("RegexReplace") + bytes("\1") + two + bytes("\3[a]\1b"),
      op("StaticRegexFullMatch") + bytes("\4.*th") + two,
      op("RegexFullMatch") + two + bytes("\4.*th"),
      op("UnicodeTranscode") + bytes("\0\1\0\x20\1") + two,
      op("UnicodeDecode") + bytes("\0\0") + two,
      op("UnicodeDecodeWithOffsets") + bytes("\0\0") + two,
      op("UnicodeEncode") + bytes("\0\0\1\2\x41\x42\1\2\0\2"),
      op("StringLength") + bytes("\1") + two,
      op("Substr") + bytes("\1") + two + bytes("\0\1\0\2"),
      op("StringJoin") + bytes("\1-") + two + bytes("\0\1x\0\1y"),
      op("StringSplit") + bytes("\1") + two + delimiter,
      op("StringSplitV2") + bytes("\xFF") + two + delimiter,
      op("StringNGrams") + bytes("\1 \2\1\2\1<\1>\xFF\1") + two + bytes("\1\2\0\2"),
      op("StringToHashBucketFast") + bytes("\x7F") + two,
      op("StringToHashBucketStrong") + bytes("\x7F\2\1\2") + two,
      op("ReduceJoin") + bytes("\1\1-") + two + bytes("\0\0"),
      op("StringToNumber") + bytes("\0\1\2\3"
                                   "1.5\2-7"),
      op("StringToNumber", 1) + bytes("\0\1\2\3"
                                      "150\2-7"),
      op("AsString") + bytes("\2\0\0\x0A\1\1\2\1\2"),
      op("AsString", 1) + bytes("\x0A\1\1\2\1\2"),
      op("RaggedTensorToTensor") + bytes("\0\1\2\xFF\xFF") + two + bytes("\1-\1\3\0\1\2"),
      op("RaggedTensorToTensor", 1) + bytes("\0\0\xFF\1\2\5\6\0\1\3\0\1\2\1\3\0\1\2"),
      op("RaggedTensorToTensor", 2) + bytes("\0\0\xFF\1\2\5\6\0\0\3\1\2\0\2"),
      op("RaggedBincount") + bytes("\0\1\3\0\1\2\1\2\0\3\0\4\1\0"),
  };
}

}  // namespace fusebox::fuzz
