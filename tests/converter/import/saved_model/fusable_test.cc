// SPDX-License-Identifier: Apache-2.0
// Functions that carry a composite's name: attributes of every kind reach the file, and a body that computes
// nothing says why it is needed.
#include <gmock/gmock.h>

#include <limits>

#include "models/saved_model/saved_model_builder.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace fusebox::models;

std::string WriteFunction(const Attr& implements, const Shape& shape, bool placeholder) {
  SavedModelBuilder model;
  FunctionBuilder& inner = model.AddFunction("__inference_inner");
  inner.SetAttr(implements);
  const Ref a = inner.Arg("a", tf::DT_FLOAT, shape), b = inner.Arg("b", tf::DT_INT32, {2});
  inner.Return({placeholder ? inner.Const(Zeros({1})) : inner.Op("Neg", {a}, shape)});
  FunctionBuilder& f = model.AddFunction("__inference_call");
  f.Return(f.Call(inner, {f.Arg("a", tf::DT_FLOAT, shape), f.Arg("b", tf::DT_INT32, {2})}));
  model.AddSignature("serving_default", f, {"a", "b"}, {"y"});
  const std::string dir = TestDir() + "/model";
  const Status written = model.Write(dir);
  EXPECT_TRUE(written) << written.error().message;
  return dir;
}

TEST(Fusable, AttributesOfEveryKindAreWrittenAndReadBack) {
  const std::string dir = WriteFunction(
      Attr("_implements", "my_op",
           {Attr("tfl_fusable_op", true), Attr("type", tf::DT_FLOAT), Attr("shape", Shape{1, 2}),
            Attr("tensor", Ints({3, 4})), Attr("nan", std::numeric_limits<double>::quiet_NaN()),
            Attr("list", std::vector<int64_t>{5, 6})}),
      {3}, false);
  for (const auto composites : {converter::Composites::kFuse, converter::Composites::kKeep}) {
    converter::Options options;
    options.composites = composites;
    options.registry = *Plugins({});
    const auto written = Convert(dir, options, "out");
    ASSERT_TRUE(written) << written.error().message;
    const auto model = Model::Open(written->path, {.registry = *Plugins({})});
    ASSERT_TRUE(model) << model.error().message;
  }
  const CommandResult shown = Fusebox({"inspect", TestDir() + "/model-out.tflite"});
  EXPECT_THAT(shown.out, AllOf(HasSubstr("list=[5,6]"), HasSubstr("nan=nan"), HasSubstr("shape=[1,2]"),
                               HasSubstr("tensor={data=[3,4], dtype=i32, shape=[2]}"), HasSubstr("type=f32")))
      << shown.err;
}

TEST(Fusable, ParsesANameAttrListThatIsStoredAsText) {
  const auto inspect = [](const std::string& implements) {
    converter::Options options;
    options.composites = converter::Composites::kKeep;
    options.registry = *Plugins({});
    const auto written = Convert(WriteFunction(Attr("_implements", implements), {3}, false), options, "text");
    EXPECT_TRUE(written) << written.error().message;
    return Fusebox({"inspect", TestDir() + "/model-text.tflite"}).out;
  };
  EXPECT_THAT(
      inspect(
          R"(name: "my_op" attr { key: "tfl_fusable_op" value { b: true } } attr { key: 'scale' value { f: 0.5 } },
              attr { key: "sizes" value { list { i: [2, 3] } } } attr { key: "type" value { type: DT_FLOAT } })"),
      AllOf(HasSubstr("my_op"), HasSubstr("scale=0.5"), HasSubstr("sizes=[2,3]"),
            HasSubstr("tfl_fusable_op=true"), HasSubstr("type=f32"), Not(HasSubstr("key"))));
  // Neither is the text form of a list: a plain name, and one with a colon.
  EXPECT_THAT(inspect("my_op"), HasSubstr("my_op"));
  EXPECT_THAT(inspect("acme:my_op"), HasSubstr("acme:my_op"));
}

TEST(Fusable, ABodyThatComputesNothingSaysWhyItIsNeeded) {
  const auto why = [](const char* name) {
    converter::Options options;
    options.registry = *Plugins({"fusebox.embedding"});
    const auto written = Convert(WriteFunction(Attr("_implements", name), {7}, true), options, "out");
    return written ? std::string() : written.error().message;
  };
  EXPECT_THAT(why("embedding_lookup"),
              HasSubstr("fusebox.embedding_lookup: RANK: has rank 1, expected 2 or more (operand 0 (table)); "
                        "its body is a placeholder"));
  EXPECT_THAT(why("nobodys"), HasSubstr("no plugin has a rule for this name; its body is a placeholder"));
}

}  // namespace
}  // namespace fusebox::testing
