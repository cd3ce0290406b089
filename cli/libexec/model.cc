// SPDX-License-Identifier: Apache-2.0
// fusebox model write: a test model with one composite.
#include <CLI/CLI.hpp>

#include "cli/base/checks.h"
#include "cli/base/command.h"
#include "host/base/json.h"
#include "host/plugin/steps.h"
#include "models/build/tensor_text.h"
#include "models/composite.h"

namespace fusebox::cli {
namespace {

constexpr const char* kWriteFooter = R"(The body computes the composite in ops of TensorFlow:
  {"inputs": ["x"], "constants": {"two": {"type": "f32[]", "values": [2]}},
   "ops": [{"op": "Mul", "inputs": ["x", "two"], "results": ["y"]}], "outputs": ["y"]}
Inputs that are listed under "weights" are variables of the model; the others have the types of --input, in order.
share/fusebox/schema/model-body-1.json describes all keys.

Examples:
  fusebox model write --composite acme.double --input f32[2,3] --body body.json -o model
  fusebox model write --composite acme.norm --attr epsilon=1e-5 --attr 'axes=[1,2]' --input f32[?,8] --body norm.json -o norm.tflite)";

struct WriteFlags {
  std::string composite, body, output;
  std::vector<std::string> attrs, inputs;
};

// The value is JSON, or else text.
Status AddAttr(const std::string& text, nlohmann::json& attrs) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == text.npos)
    return Invalid("--attr " + text + ": is not KEY=VALUE; write for example epsilon=1e-5");
  const std::string key = text.substr(0, equals);
  const std::string value = text.substr(equals + 1);
  if (attrs.contains(key)) return Invalid("--attr " + text + ": " + key + " is given twice");
  auto parsed = ParseJson(value, "--attr");
  attrs[key] = parsed ? *std::move(parsed) : nlohmann::json(value);
  return {};
}

Result<Exit> Write(const WriteFlags& flags) {
  models::CompositeModel model{.name = flags.composite, .body = flags.body};
  nlohmann::json json = nlohmann::json::object();
  for (const std::string& text : flags.attrs) FUSEBOX_TRY(AddAttr(text, json));
  auto attrs = AttrsFromJson(json);
  if (!attrs) return Invalid("--attr " + attrs.error().pointer.substr(1) + ": " + attrs.error().what);
  model.attrs = *std::move(attrs);
  for (const std::string& text : flags.inputs) {
    FUSEBOX_ASSIGN(Type type, ParseType(text).At("--input"));
    model.inputs.push_back(std::move(type));
  }
  FUSEBOX_TRY(models::Write(model, flags.output));
  return Exit::kDone;
}

}  // namespace

void AddModel(CLI::App& root, Action& action) {
  CLI::App* model = root.add_subcommand("model", kModelPurpose);
  model->require_subcommand(1);
  model->footer(kWriteFooter);
  CLI::App* app = model->add_subcommand("write", "Write a model that calls one composite");
  auto flags = std::make_shared<WriteFlags>();
  app->add_option("--composite", flags->composite, "Name of the composite, which rules implement")
      ->type_name("NAME")
      ->check(CheckNotEmpty)
      ->required();
  app->add_option(
         "--attr", flags->attrs,
         "Attribute of the composite; the value is a number, true, false, a list, or else text (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app->add_option("--input", flags->inputs, "Type of an input of the model; ? is an unknown dim (repeatable)")
      ->type_name("f32[2,3]")
      ->allow_extra_args(false);
  app->add_option("--body", flags->body, "What the composite computes")->type_name("BODY.json")->required();
  app->add_option("-o,--output", flags->output,
                  "Folder of the SavedModel; a name that ends in .tflite: a .tflite file with the composite")
      ->type_name("DIR|OUT.tflite")
      ->check(CheckNotEmpty)
      ->required();
  app->footer(kWriteFooter);
  app->callback([flags, &action] { action = [flags] { return Write(*flags); }; });
}

}  // namespace fusebox::cli
