// SPDX-License-Identifier: Apache-2.0
// Builds a Program: visits functions from the entries down, lets delegates claim nodes, and chooses kernels
// for the rest.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "host/base/cancel.h"
#include "host/eval/settle.h"
#include "host/fusion/fusion.h"
#include "host/run/interface.h"
#include "host/run/profile.h"
#include "host/run/run.h"

namespace fusebox::run {

class ProgramBuilder {
 public:
  explicit ProgramBuilder(Program& program, Missing missing = Missing::kWarn)
      : program_(program),
        missing_(missing),
        threads_(0),
        profile_(Trace::Current() != nullptr ? std::make_unique<Profile>(Trace::Current()) : nullptr),
        services_(threads_, program.options_, {.profile = profile_.get()}),
        calls_(services_) {}

  void Apply(std::span<const DelegateRef> delegates) {
    for (const DelegateRef& ref : delegates) {
      auto made = delegate::Instance::Create(ref, calls_);
      if (made) {
        program_.delegates_.push_back(*std::move(made));
      } else {
        program_.notices_.push_back(
            fmt::format("delegate {} is not used: {}", FromAbi(ref.delegate->name), made.error().message));
      }
    }
  }

  // Adds everything that the entry reaches, or nothing. `ready`: initializes kernels.
  Status AddEntry(const std::string& name, bool ready) {
    if (const auto known = program_.refused_.find(name); known != program_.refused_.end())
      return known->second;
    const Mark before{program_.codes_.size(), program_.parts_.size(), program_.notices_.size()};
    Status status;
    if (auto made = Add(name, 0); !made) status = std::unexpected(std::move(made).error());
    else if (ready) status = InitFrom(before.codes);
    if (status) return {};
    TakeBack(before);
    program_.refused_.emplace(name, status);
    return status;
  }

  // Creates the kernel instances of a late function.
  static Status Init(const Program& program, plan::Code& code) {
    Threads threads(0);
    CallerServices services(threads, program.options_);
    const CallerServices::Phase phase(services);
    HostCalls calls(services);
    FileViews files;
    NodeView view;
    return InitAll(*program.registry_, code, view, calls, files);
  }

 private:
  static constexpr int kMaxDepth = 64;

  // Sizes of the program at one point, to roll back to.
  struct Mark {
    size_t codes, parts, notices;
  };
  // Freed after what kernels keep during init, which may refer to their instances.
  struct Abandoned {
    std::vector<std::unique_ptr<plan::Code>> codes;
    ~Abandoned() { Program::FreeInstances(codes); }
  };

  // `late`: only nodes of a partition call it, so its kernels are initialized on demand.
  Result<plan::Code*> Add(const std::string& name, int depth, bool late = false) {
    if (const auto found = program_.by_name_.find(name); found != program_.by_name_.end())
      return found->second;
    if (depth > kMaxDepth) return Invalid(fmt::format("function {}: calls nest too deeply", name));
    const Function* function = program_.module_.Find(name);
    if (function == nullptr) return Invalid(fmt::format("function {} does not exist", name));
    const size_t first_part = program_.parts_.size();
    std::unique_ptr<Program::Offered> offered = late ? nullptr : Offer(*function);
    const bool taken = offered != nullptr && offered->outlined.function != nullptr;
    plan::Code& code = NewCode(taken ? *offered->outlined.function : *function,
                               taken ? &offered->outlined.origin : nullptr, late);
    program_.by_name_.emplace(name, &code);
    if (taken) FUSEBOX_TRY(AddParts(code, offered->outlined.part, first_part, depth));
    if (offered != nullptr) program_.offered_.emplace(&code, std::move(offered));
    FUSEBOX_TRY(FillAll(code, depth));
    return &code;
  }

  plan::Code& NewCode(const Function& function, const delegate::Origin* origin, bool late) {
    program_.codes_.push_back(
        std::make_unique<plan::Code>(plan::Analyze(program_.module_, function, origin)));
    plan::Code& code = *program_.codes_.back();
    if (late) {
      auto& entry = program_.late_[&code];
      entry = std::make_unique<Program::Late>();
      entry->code = &code;
    }
    return code;
  }

  // Offers the function to the delegates and outlines the claimed nodes.
  std::unique_ptr<Program::Offered> Offer(const Function& declared) {
    if (program_.delegates_.empty()) return nullptr;
    const TraceSpan span("claim");
    auto offered = std::make_unique<Program::Offered>();
    offered->function = &declared;
    const Settled settled = Settle(*program_.registry_, calls_, declared);
    const Function& function = settled.function != nullptr ? *settled.function : declared;
    offered->answers = delegate::Claim(program_.module_, function, settled.refused, program_.delegates_,
                                       calls_, program_.notices_);
    calls_.DropDiags();
    for (size_t i = 0; i < function.nodes.size(); ++i) {
      delegate::Answer& answer = offered->answers[i];
      if (answer.delegate < 0) continue;
      if (Status ok = program_.registry_->CheckOptions(*function.nodes[i]); !ok)
        answer = {.why = std::move(ok).error().message};
      // Without a kernel, even a single node accepted with kJoin is worth a partition.
      else if (answer.joins && !ChooseKernel(*program_.registry_, function, *function.nodes[i]))
        answer.joins = false;
    }
    const auto claimed = [](const delegate::Answer& answer) { return answer.delegate >= 0; };
    if (std::none_of(offered->answers.begin(), offered->answers.end(), claimed)) return offered;
    delegate::Place(*program_.registry_, program_.module_, function, program_.delegates_, calls_,
                    offered->answers);
    const delegate::Schedule schedule = delegate::Partition(function, offered->answers);
    if (std::any_of(offered->answers.begin(), offered->answers.end(), claimed))
      offered->outlined = delegate::Outline(function, schedule, program_.delegates_, program_.parts_);
    return offered;
  }

  Status AddParts(plan::Code& code, const std::vector<int>& part, size_t first_part, int depth) {
    for (size_t i = first_part; i < program_.parts_.size(); ++i) {
      const delegate::Part& made = *program_.parts_[i];
      program_.part_codes_.push_back(&NewCode(*made.function, &made.origin, true));
      FUSEBOX_TRY(FillAll(*program_.part_codes_.back(), depth));
    }
    for (size_t i = 0; i < code.units.size(); ++i) {
      if (part[i] < 0) continue;
      plan::Unit& unit = code.units[i];
      unit.part = part[i];
      unit.runs_body = true;
      unit.callees = {program_.part_codes_[static_cast<size_t>(part[i])]};
    }
    return {};
  }

  Status FillAll(plan::Code& code, int depth) {
    for (size_t i = 0; i < code.units.size(); ++i) {
      if (code.units[i].part >= 0) continue;
      FUSEBOX_TRY(CheckCancelled());
      FUSEBOX_TRY(Fill(code, i, depth).At([&] {
        return fmt::format("function {}: {}", code.name(), code.Describe(i));
      }));
    }
    return {};
  }

  Status Fill(plan::Code& code, size_t index, int depth) {
    plan::Unit& unit = code.units[index];
    const Function& function = *code.function;
    const Node& node = *function.nodes[index];
    const bool late = program_.late_.contains(&code);
    if (node.is(Op::kStablehloComposite)) return FillBody(unit, node, depth, late);
    if (Has(node.op, kHost)) {
      FUSEBOX_ASSIGN(const std::vector<std::string> callees, Callees(program_.module_, node));
      for (const std::string& callee : callees) {
        FUSEBOX_ASSIGN(const plan::Code* code, Add(callee, depth + 1, late));
        unit.callees.push_back(code);
      }
      return CheckInterface(node, unit);
    }
    view_.Show(function, node);
    auto kernel = ChooseKernel(*program_.registry_, function, node, view_);
    if (kernel) {
      unit.kernel = *kernel;
      return {};
    }
    if (node.body.empty() || IsStandIn(node)) {
      if (!late) return std::unexpected(std::move(kernel).error());
      // The delegate runs it; only infer is needed.
      const bool custom = node.is(Op::kCustom);
      const auto known = program_.registry_->KernelsFor(
          custom ? FBX_OP_CUSTOM : FBX_OP_BUILTIN, custom ? std::string_view(node.name) : Name(node.op), 0);
      if (!known.empty()) unit.kernel = known.front();
      unit.only_infers = !known.empty();
      return {};
    }
    if (missing_ == Missing::kError && !late) return std::unexpected(std::move(kernel).error());
    if (!late) Notice(node, kernel.error().message);
    return FillBody(unit, node, depth, late);
  }

  bool IsStandIn(const Node& node) const {
    const Function* body = program_.module_.Find(node.body);
    return body != nullptr && (body->placeholder || IsPlaceholder(program_.module_, *body));
  }

  Status FillBody(plan::Unit& unit, const Node& node, int depth, bool late) {
    if (node.body.empty())
      return Unsupported(fmt::format("no rule fused the composite {}, and it has no body to run", node.name));
    if (IsStandIn(node)) {
      return Unsupported(fmt::format(
          "no rule fused the composite {}, and its body {} is a placeholder, which computes nothing",
          node.name, node.body));
    }
    FUSEBOX_ASSIGN(const plan::Code* code, Add(node.body, depth + 1, late));
    unit.runs_body = true;
    unit.callees.push_back(code);
    return CheckInterface(node, unit);
  }

  static Status Init(plan::Unit& unit, const Function& function, const Node& node, NodeView& view,
                     HostCalls& calls, FileViews& files) {
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (node.operands[i] != kNoValue)
        view.operand(i).edit().file = files.Of(function.value(node.operands[i]));
    }
    TraceSpan span("init kernel");
    if (span) {
      span.Arg("op", std::string(Name(node.op)));
      span.Arg("name", node.location.name);
    }
    FUSEBOX_ASSIGN(
        const Accepted accepted,
        Accepted::Declared(*unit.kernel.kernel, calls.For(*unit.kernel.plugin), view, ProperResults(node)));
    void* instance = nullptr;
    Status status = accepted.Init(&instance);
    unit.instance = instance;
    if (status) calls.DropDiags();
    return status;
  }

  // Initializes the kernels of all functions from `first` on, except late ones.
  Status InitFrom(size_t first) {
    if (first == program_.codes_.size()) return {};
    const std::set<const plan::Code*> called = Program::CalledBy(*program_.codes_[first]);
    for (size_t c = first; c < program_.codes_.size(); ++c) {
      plan::Code& code = *program_.codes_[c];
      if (program_.late_.contains(&code)) continue;
      Status ready = InitAll(*program_.registry_, code, view_, calls_, files_);
      if (ready) continue;
      if (called.contains(&code)) return ready;  // else it may never run
      program_.late_.emplace(&code, std::make_unique<Program::Late>()).first->second->status = ready;
    }
    return {};
  }

  static Status InitAll(Registry& registry, plan::Code& code, NodeView& view, HostCalls& calls,
                        FileViews& files) {
    for (size_t i = 0; i < code.units.size(); ++i) {
      plan::Unit& unit = code.units[i];
      const Node& node = *code.function->nodes[i];
      const auto place = [&] { return fmt::format("function {}: {}", code.name(), code.Describe(i)); };
      const bool idle = unit.only_infers || (!unit.kernel && unit.callees.empty() && !Has(node.op, kHost));
      const bool has_init = unit.kernel && FBX_HAS(unit.kernel.kernel, init);
      if (has_init) FUSEBOX_TRY(CheckCancelled());
      if (idle || has_init) view.Show(*code.function, node);
      if (idle) FUSEBOX_TRY(ChooseKernel(registry, *code.function, node, view).At(place));
      if (has_init) FUSEBOX_TRY(Init(unit, *code.function, node, view, calls, files).At(place));
    }
    return {};
  }

  void TakeBack(const Mark& before) {
    std::set<const plan::Code*> gone;
    for (size_t i = before.codes; i < program_.codes_.size(); ++i) {
      gone.insert(program_.codes_[i].get());
      abandoned_.codes.push_back(std::move(program_.codes_[i]));
    }
    const auto is_gone = [&](const auto& entry) { return gone.contains(entry.first); };
    std::erase_if(program_.by_name_, [&](const auto& entry) { return gone.contains(entry.second); });
    std::erase_if(program_.late_, is_gone);
    std::erase_if(program_.offered_, is_gone);
    program_.codes_.resize(before.codes);
    program_.part_codes_.resize(before.parts);
    program_.parts_.resize(before.parts);
    program_.notices_.resize(before.notices);
  }

  void Notice(const Node& node, const std::string& why) {
    if (missing_ != Missing::kWarn) return;
    const std::string op = node.is(Op::kCustom) ? node.name : std::string(Name(node.op));
    const std::string start = op + ": ";
    for (const std::string& notice : program_.notices_) {
      if (notice.starts_with(start)) return;
    }
    program_.notices_.push_back(fmt::format("{}falls back to its body: {}", start, why));
  }

  Program& program_;
  const Missing missing_;
  Abandoned abandoned_;
  Threads threads_;
  const std::unique_ptr<Profile> profile_;  // for the spans of kernels in a trace; null: none
  CallerServices services_;
  const CallerServices::Phase phase_{services_};
  HostCalls calls_;
  FileViews files_;
  NodeView view_;  // of the current node
};

namespace {

std::vector<std::string> EntriesOf(const Module& module) {
  std::vector<std::string> entries;
  if (!module.functions.empty()) entries.push_back(module.functions[0]->name);
  for (const Signature& signature : module.signatures) entries.push_back(signature.function);
  return entries;
}

}  // namespace

Result<std::unique_ptr<Program>> Program::Create(const Module& module, std::shared_ptr<Registry> registry,
                                                 const Delegation& delegates, Missing missing) {
  std::unique_ptr<Program> program(new Program(module, std::move(registry), delegates));
  ProgramBuilder builder(*program, missing);
  builder.Apply(delegates.used);
  Status first;
  bool any = false;
  for (const std::string& entry : EntriesOf(module)) {
    Status status = builder.AddEntry(entry, true);
    FUSEBOX_TRY(CheckCancelled());
    any = any || status;
    if (first && !status) first = std::move(status);
  }
  if (!any) FUSEBOX_TRY(first);
  return program;
}

Result<std::unique_ptr<Program>> Program::Create(const Module& module, std::shared_ptr<Registry> registry,
                                                 std::span<const std::string> entries,
                                                 const Delegation& delegates) {
  std::unique_ptr<Program> program(new Program(module, std::move(registry), delegates));
  ProgramBuilder builder(*program);
  builder.Apply(delegates.used);
  for (const std::string& entry : entries) FUSEBOX_TRY(builder.AddEntry(entry, true));
  return program;
}

std::unique_ptr<Program> Program::Survey(const Module& module, std::shared_ptr<Registry> registry,
                                         const Delegation& delegates) {
  std::unique_ptr<Program> program(new Program(module, std::move(registry), delegates));
  ProgramBuilder builder(*program);
  builder.Apply(delegates.used);
  for (const std::string& entry : EntriesOf(module)) static_cast<void>(builder.AddEntry(entry, false));
  return program;
}

Status Program::EnsureInitialized(const plan::Code& code) const {
  const auto found = late_.find(&code);
  if (found == late_.end()) return {};
  Late& late = *found->second;
  if (late.code != nullptr)
    std::call_once(late.once, [&] { late.status = ProgramBuilder::Init(*this, *late.code); });
  return late.status;
}

}  // namespace fusebox::run
