// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "host/fusion/fusion.h"
#include "host/run/run.h"

namespace fusebox::run {

// Visits functions from the entries down and finds a unit for each node.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(Program& program)
      : program_(program), threads_(0), services_(threads_), calls_(services_) {}

  Result<const plan::Code*> Add(const std::string& name, int depth) {
    if (const auto found = program_.by_name_.find(name); found != program_.by_name_.end())
      return found->second;
    if (depth > kMaxDepth) return Invalid(fmt::format("function {}: calls are nested too deep", name));
    const Function* function = program_.module_.Find(name);
    if (function == nullptr) return Invalid(fmt::format("function {} does not exist", name));
    program_.codes_.push_back(std::make_unique<plan::Code>(plan::Analyse(program_.module_, *function)));
    plan::Code& code = *program_.codes_.back();
    program_.by_name_.emplace(name, &code);
    for (size_t i = 0; i < function->nodes.size(); ++i) {
      FUSEBOX_TRY(Fill(code, i, depth).At([&] {
        return fmt::format("function {}: {}", name, Describe(*function->nodes[i], i));
      }));
    }
    return &code;
  }

 private:
  static constexpr int kMaxDepth = 64;

  Status Fill(plan::Code& code, size_t index, int depth) {
    plan::Unit& unit = code.units[index];
    const Function& function = *code.function;
    const Node& node = *function.nodes[index];
    if (node.is(Op::kStablehloComposite)) return FillBody(unit, node, depth);
    if (IsHostOp(node.op)) {
      FUSEBOX_ASSIGN(const std::vector<std::string> callees, Callees(program_.module_, node));
      for (const std::string& callee : callees) {
        FUSEBOX_ASSIGN(const plan::Code* code, Add(callee, depth + 1));
        unit.callees.push_back(code);
      }
      return CheckInterface(node, unit);
    }
    const NodeView view(function, node, code.texts[index]);
    auto kernel = ChooseKernel(*program_.registry_, function, node, view);
    if (kernel) {
      unit.kernel = *kernel;
      return Init(unit, view);
    }
    if (node.body.empty() || IsStandIn(node)) return std::unexpected(std::move(kernel).error());
    Notice(node, kernel.error().message);
    return FillBody(unit, node, depth);
  }

  bool IsStandIn(const Node& node) const {
    const Function* body = program_.module_.Find(node.body);
    return body != nullptr && (body->placeholder || IsPlaceholder(program_.module_, *body));
  }

  Status FillBody(plan::Unit& unit, const Node& node, int depth) {
    if (node.body.empty())
      return Unsupported(fmt::format("no rule fused the composite {}, and it has no body to run", node.name));
    if (IsStandIn(node)) {
      return Unsupported(fmt::format(
          "no rule fused the composite {}, and its body {} is a placeholder, which computes nothing",
          node.name, node.body));
    }
    FUSEBOX_ASSIGN(const plan::Code* code, Add(node.body, depth + 1));
    unit.runs_body = true;
    unit.callees.push_back(code);
    return CheckInterface(node, unit);
  }

  // Numbers of values that go in and come out; the executor relies on them.
  static Status CheckInterface(const Node& node, const plan::Unit& unit) {
    if (node.is(Op::kCallOnce)) return {};
    const bool is_while = node.is(Op::kWhile) && !unit.runs_body;
    const size_t skipped = node.is(Op::kIf) && !unit.runs_body ? 1 : 0;
    for (size_t i = 0; i < unit.callees.size(); ++i) {
      const Function& callee = *unit.callees[i]->function;
      const bool condition = is_while && i == 0;
      const size_t results = condition ? 1 : node.results.size();
      if (callee.inputs.size() + skipped != node.operands.size() || callee.outputs.size() != results) {
        return Invalid(
            fmt::format("passes {} values to function {}, which takes {}, and expects {} of its {} back",
                        node.operands.size() - skipped, callee.name, callee.inputs.size(), results,
                        callee.outputs.size()));
      }
    }
    if (is_while && node.operands.size() != node.results.size())
      return Invalid("a loop gives back as many values as it takes");
    const auto absent = [](const std::vector<ValueId>& ids) {
      return std::find(ids.begin(), ids.end(), kNoValue) != ids.end();
    };
    if (!unit.callees.empty() && (absent(node.operands) || absent(node.results)))
      return Invalid("a value of a call is absent");
    return {};
  }

  Status Init(plan::Unit& unit, const NodeView& view) {
    if (!FBX_HAS(unit.kernel.kernel, init)) return {};
    HostCall& call = calls_.For(*unit.kernel.plugin);
    void* instance = nullptr;
    const fbx_status status = unit.kernel.kernel->init(call.abi(), view.abi(), &instance);
    unit.instance = instance;
    if (status != FBX_OK) return call.Check(status);
    calls_.DropDiags();
    return {};
  }

  void Notice(const Node& node, const std::string& why) {
    const std::string op = node.is(Op::kCustom) ? node.name : std::string(Name(node.op));
    const std::string start = op + ": ";
    for (const std::string& notice : program_.notices_) {
      if (notice.starts_with(start)) return;
    }
    program_.notices_.push_back(fmt::format("{}its body runs in its place, since there is {}", start, why));
  }

  Program& program_;
  Threads threads_;
  ThreadedServices services_;
  HostCalls calls_;
};

Result<std::unique_ptr<Program>> Program::Create(const Module& module, std::shared_ptr<Registry> registry) {
  std::vector<std::string> entries;
  if (!module.functions.empty()) entries.push_back(module.functions[0]->name);
  for (const Signature& signature : module.signatures) entries.push_back(signature.function);
  return Create(module, std::move(registry), entries);
}

Result<std::unique_ptr<Program>> Program::Create(const Module& module, std::shared_ptr<Registry> registry,
                                                 std::span<const std::string> entries) {
  std::unique_ptr<Program> program(new Program(module, std::move(registry)));
  ProgramBuilder builder(*program);
  for (const std::string& entry : entries) FUSEBOX_TRY(builder.Add(entry, 0));
  return program;
}

Program::~Program() {
  for (const auto& code : codes_) {
    for (const plan::Unit& unit : code->units) {
      if (unit.instance != nullptr && FBX_HAS(unit.kernel.kernel, free))
        unit.kernel.kernel->free(const_cast<void*>(unit.instance));
    }
  }
}

const plan::Code* Program::Find(std::string_view function) const {
  const auto found = by_name_.find(function);
  return found == by_name_.end() ? nullptr : found->second;
}

std::vector<Placement> Program::placements() const {
  std::vector<Placement> rows;
  for (const auto& code : codes_) {
    for (size_t i = 0; i < code->units.size(); ++i) {
      const Node& node = *code->function->nodes[i];
      const plan::Unit& unit = code->units[i];
      Placement row{code->function->name, Describe(*code->function, node),
                    std::string(node.is(Op::kCustom) ? std::string_view(node.name) : Name(node.op)), "host",
                    ""};
      if (unit.kernel) row.who = unit.kernel.plugin->id();
      if (unit.runs_body) {
        row.who = "body";
        row.why = fmt::format("runs function {}", node.body);
      }
      if (node.fused != nullptr) {
        row.why += fmt::format("{}fused by rule {} of {} {}", row.why.empty() ? "" : "; ", node.fused->rule,
                               node.fused->plugin, node.fused->plugin_version);
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace fusebox::run
