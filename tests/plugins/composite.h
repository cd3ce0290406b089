// SPDX-License-Identifier: Apache-2.0
// A model with one composite, which a plugin fuses when the model is opened.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "host/fusion/fusion.h"
#include "host/graph/npy.h"
#include "host/session.h"

namespace fusebox::testing {

inline std::shared_ptr<Registry> OnlyPlugin(const std::string& path) {
  Config config;
  config.plugins = {path};
  config.search_default_path = false;
  auto registry = Registry::Create(config);
  EXPECT_TRUE(registry) << registry.error().message;
  return registry ? *registry : nullptr;
}

// The body ignores its inputs, so the composite needs a rule. Operands are model inputs, unless `constants`
// has a value.
struct Composite {
  std::string name;
  std::vector<Type> inputs, results;
  Attrs attrs = {};
  std::vector<Tensor> constants = {};

  std::unique_ptr<Module> Build() const {
    auto module = std::make_unique<Module>();
    module->source = "composite.tflite";
    Function& main = module->Add("main");
    Function& body = module->Add("body");
    std::vector<ValueId> operands;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool constant = i < constants.size() && constants[i].type.dtype != DType::kNone;
      operands.push_back(constant ? main.AddConst(constants[i])
                                  : main.AddInput(inputs[i], "in" + std::to_string(i)));
      body.AddInput(inputs[i]);
    }
    for (const Type& type : results) body.outputs.push_back(Nothing(body, type));
    Node& node = main.AddNode(Op::kStablehloComposite, operands, results, attrs);
    node.name = name;
    node.version = 1;
    node.body = "body";
    main.outputs = node.results;
    return module;
  }

  // Empty: fused; else all reasons.
  std::string WhyNot(const std::string& plugin) const {
    const auto registry = OnlyPlugin(plugin);
    const auto module = Build();
    const auto sites = Fuse(*module, *registry);
    if (!sites) return "error " + sites.error().message;
    const SiteReport& site = sites->at(0);
    if (site.fused) return "";
    std::string why = site.why;
    for (const RuleReport& rule : site.rules) {
      for (const std::string& reason : rule.reasons) why += "; " + rule.rule + ": " + reason;
    }
    return why;
  }

  Result<std::vector<Tensor>> Run(const std::string& plugin, const std::vector<Tensor>& values) const {
    FUSEBOX_ASSIGN(const auto model, Model::FromModule(Build(), {.registry = OnlyPlugin(plugin)}));
    if (!model->fusions().at(0).fused) return Invalid(model->fusions()[0].why);
    FUSEBOX_ASSIGN(const auto session, Session::Create(model));
    for (size_t i = 0; i < values.size(); ++i) FUSEBOX_TRY(session->SetInput(static_cast<int>(i), values[i]));
    FUSEBOX_TRY(session->Run());
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < results.size(); ++i) {
      FUSEBOX_ASSIGN(const Tensor out, session->output(static_cast<int>(i)));
      outputs.push_back({out.type, Buffer::Copy(out.data.bytes())});
    }
    return outputs;
  }

 private:
  static ValueId Nothing(Function& body, Type type) {
    size_t count = 1;
    for (int64_t& d : type.shape.dims()) count *= static_cast<size_t>(d = d < 0 ? 1 : d);
    if (type.dtype == DType::kString)
      return body.AddConst(type, PackStrings(std::vector<std::string>(count)));
    return body.AddConst(type, Buffer::Of<uint8_t>(std::vector<uint8_t>(count * BitsOf(type.dtype) / 8)));
  }
};

}  // namespace fusebox::testing
