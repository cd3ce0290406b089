// SPDX-License-Identifier: Apache-2.0
// Group "kernel": memory, threads and state of kernels, on the models of the plugin.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <thread>

#include "check/mutate.h"
#include "check/workload.h"
#include "host/session.h"
#include "host/tflite/tflite.h"

namespace fusebox::check {
namespace {

using Memory = Conditions::Memory;
using Chunks = Conditions::Chunks;

constexpr const char* kNoInvoke = "no node of this model runs on a kernel of the plugin";
constexpr double kUnordered = 1e-4;  // relative, for kernels that do not promise the same bits

// Runs the model as it is, then `check`.
template <class Check>
Finding AfterPlainRun(const Subject& subject, const Check& check) {
  size_t invokes = 0;
  const auto plain = RunUnder(subject, {}, {.seed = subject.options.seed}, &invokes);
  if (!plain) return DoesNotRun(plain.error());
  if (invokes == 0) return NotTested(kNoInvoke);
  return check(*plain);
}

// Before any run in memory of the host: a kept pointer would lead there, and not fault.
Finding Bounds(const Subject& subject) {
  for (const Memory memory : {Memory::kGuardedStart, Memory::kGuardedEnd}) {
    for (const uint8_t fill : {0xFF, 0x41}) {
      for (const int64_t unknown_dim : {3, 67}) {
        size_t invokes = 0;
        const RunOptions run{.seed = subject.options.seed, .unknown_dim = unknown_dim};
        const auto outputs = RunUnder(subject, {.memory = memory, .fill = fill}, run, &invokes);
        if (!outputs && unknown_dim > 3) continue;  // other dims of the model may have another size
        if (!outputs) return DoesNotRun(outputs.error());
        if (invokes == 0) return NotTested(kNoInvoke);
      }
    }
  }
  return Passed();
}

// A crash or an endless loop ends the child; an error is an answer.
Finding Special(const Subject& subject) {
  return AfterPlainRun(subject, [&](const auto&) {
    for (const double special : {std::nan(""), HUGE_VAL, -HUGE_VAL})
      (void)RunUnder(subject, {.memory = Memory::kGuardedEnd},
                     {.seed = subject.options.seed, .special = special});
    return Passed();
  });
}

Finding Uninitialized(const Subject& subject) {
  return AfterPlainRun(subject, [&](const auto&) {
    for (const Memory memory : {Memory::kGuardedStart, Memory::kGuardedEnd}) {
      const RunOptions run{.seed = subject.options.seed};
      const auto a = RunUnder(subject, {.memory = memory, .fill = 0xFF}, run);
      const auto b = RunUnder(subject, {.memory = memory, .fill = 0x41}, run);
      if (!a || !b) return Failed((a ? b : a).error().message);
      if (const std::string where = DifferenceOf(*a, *b); !where.empty())
        return Failed(
            "the results depend on memory that was not written: scratch memory, results, or bytes "
            "behind a buffer: " +
            where);
    }
    return Passed();
  });
}

Finding ThreadCounts(const Subject& subject) {
  return AfterPlainRun(subject, [&](const auto& serial) {
    const int many = 2 * static_cast<int>(std::thread::hardware_concurrency()) + 1;
    for (const int threads : {2, 3, 4, 8, std::clamp(many, 33, 129)}) {
      const auto rig = Rig::Create(subject.manifest, subject.options.config, {});
      if (!rig) return Failed(rig.error().message);
      const auto model = OpenModel(**rig, subject.model, false);
      if (!model) return Failed(model.error().message);
      const auto outputs = RunModel(*model, {.threads = threads, .seed = subject.options.seed});
      if (!outputs) return Failed("with " + std::to_string(threads) + " threads: " + outputs.error().message);
      const bool exact = (*rig)->deterministic();
      if (const std::string where = DifferenceOf(serial, *outputs, exact ? 0 : kUnordered, 1); !where.empty())
        return Failed("1 thread and " + std::to_string(threads) + " threads compute different results" +
                      (exact ? ", but the kernel has FBX_KERNEL_DETERMINISTIC: " : ": ") + where);
    }
    return Passed();
  });
}

// One run under other chunks of parallel_for; the difference, or the fault.
std::string ChunkFault(const Subject& subject, const Conditions& conditions, const RunOptions& run,
                       const std::vector<Tensor>& serial, size_t& chunks) {
  const auto rig = Rig::Create(subject.manifest, subject.options.config, conditions);
  if (!rig) return rig.error().message;
  const auto model = OpenModel(**rig, subject.model, false);
  if (!model) return model.error().message;
  const auto outputs = RunModel(*model, run);
  if (!outputs) return outputs.error().message;
  if (!(*rig)->fault().empty()) return (*rig)->fault();
  chunks += (*rig)->parallel_chunks();
  if (conditions.chunks == Chunks::kAlone) return {};  // sums in a worker's scratch memory are incomplete
  const std::string where = DifferenceOf(serial, *outputs, (*rig)->deterministic() ? 0 : kUnordered, 1);
  return where.empty() ? "" : "the results depend on the order of the chunks of parallel_for: " + where;
}

Finding ChunksOfLoops(const Subject& subject) {
  return AfterPlainRun(subject, [&](const auto& serial) {
    size_t chunks = 0;
    std::vector<Conditions> all;
    for (const uint8_t fill : {0xFF, 0x41})
      all.push_back({.memory = Memory::kGuardedEnd, .fill = fill, .chunks = Chunks::kAlone});
    for (uint64_t i = 0; i < 3; ++i)
      all.push_back(
          {.memory = Memory::kGuardedEnd, .chunks = Chunks::kShuffled, .seed = subject.options.seed + i});
    const RunOptions run{.seed = subject.options.seed};
    const RunOptions large{.seed = subject.options.seed, .unknown_dim = 131};
    for (const Conditions& conditions : all)
      if (std::string fault = ChunkFault(subject, conditions, run, serial, chunks); !fault.empty())
        return Failed(std::move(fault));
    // As on a machine of many cores. Other dims of the model may have another size.
    const Conditions many{.memory = Memory::kGuardedEnd, .chunks = Chunks::kShuffled, .workers = 67};
    if (const auto of_large = RunUnder(subject, {}, large))
      if (std::string fault = ChunkFault(subject, many, large, *of_large, chunks); !fault.empty())
        return Failed("with 67 threads: " + fault);
    return Passed(chunks == 0 ? "parallel_for is not used" : "");
  });
}

using TwoRuns = std::pair<std::vector<Tensor>, std::vector<Tensor>>;

// One session per entry; inputs differ from run to run.
Result<std::vector<Tensor>> RunFresh(const std::shared_ptr<const Model>& model, const Subject& subject) {
  return RunModel(model, {.runs = 3, .seed = subject.options.seed});
}

// One session after the other.
Result<TwoRuns> RunTwice(const std::shared_ptr<const Model>& model, const Subject& subject) {
  FUSEBOX_ASSIGN(std::vector<Tensor> first, RunFresh(model, subject));
  FUSEBOX_ASSIGN(std::vector<Tensor> second, RunFresh(model, subject));
  return TwoRuns{std::move(first), std::move(second)};
}

// Two sessions by turns. Returns the outputs of both in the order of `RunFresh`.
Result<TwoRuns> RunInterleaved(const std::shared_ptr<const Model>& model, const Subject& subject) {
  TwoRuns outputs;
  for (const Model::Entry& entry : model->entries()) {
    FUSEBOX_ASSIGN(const auto first, Session::Create(model, {.signature = entry.signature}));
    FUSEBOX_ASSIGN(const auto second, Session::Create(model, {.signature = entry.signature}));
    for (uint64_t run = 0; run < 3; ++run) {
      FUSEBOX_TRY(RunSession(*first, *model, entry, {.seed = subject.options.seed + run}, outputs.first));
      FUSEBOX_TRY(RunSession(*second, *model, entry, {.seed = subject.options.seed + run}, outputs.second));
    }
  }
  return outputs;
}

std::string RunConcurrently(const std::shared_ptr<const Model>& model, const Subject& subject,
                            const std::vector<Tensor>& expected) {
  constexpr int kSessions = 10;
  std::array<std::string, 2> why;
  const auto work = [&](std::string& out) {
    for (int i = 0; i < kSessions && out.empty(); ++i) {
      const auto outputs = RunFresh(model, subject);
      out = outputs ? DifferenceOf(expected, *outputs) : outputs.error().message;
    }
  };
  std::thread other([&] { work(why[1]); });
  work(why[0]);
  other.join();
  return why[0].empty() ? why[1] : why[0];
}

Finding Sessions(const Subject& subject) {
  return AfterPlainRun(subject, [&](const auto&) {
    const auto rig = Rig::Create(subject.manifest, subject.options.config, {});
    if (!rig) return Failed(rig.error().message);
    const auto model = OpenModel(**rig, subject.model, false);
    if (!model) return Failed(model.error().message);
    const auto runs = RunTwice(*model, subject);
    if (!runs) return Failed(runs.error().message);
    const std::vector<Tensor>& expected = runs->first;
    if (const std::string where = DifferenceOf(expected, runs->second); !where.empty())
      return Failed("a second session computes something else than the first: " + where);
    const auto turns = RunInterleaved(*model, subject);
    if (!turns) return Failed(turns.error().message);
    for (const auto* outputs : {&turns->first, &turns->second})
      if (const std::string where = DifferenceOf(expected, *outputs); !where.empty())
        return Failed("two sessions by turns change each other's results: " + where);
    if (const std::string where = RunConcurrently(*model, subject, expected); !where.empty())
      return Failed("two sessions at once change each other's results: " + where);
    return Passed();
  });
}

Finding Reset(const Subject& subject) {
  return AfterPlainRun(subject, [&](const auto&) {
    const auto rig = Rig::Create(subject.manifest, subject.options.config, {});
    if (!rig) return Failed(rig.error().message);
    const auto model = OpenModel(**rig, subject.model, false);
    if (!model) return Failed(model.error().message);
    for (const Model::Entry& entry : (*model)->entries()) {
      const auto session = Session::Create(*model, {.signature = entry.signature});
      if (!session) return Failed(session.error().message);
      std::array<std::vector<Tensor>, 2> outputs;
      for (auto& of_round : outputs) {
        for (uint64_t run = 0; run < 2; ++run)
          if (const Status ran =
                  RunSession(**session, **model, entry, {.seed = subject.options.seed + run}, of_round);
              !ran)
            return Failed(ran.error().message);
        (*session)->ResetState();
      }
      if (const std::string where = DifferenceOf(outputs[0], outputs[1]); !where.empty())
        return Failed("after ResetState, the same inputs have other results: " + where);
    }
    return Passed();
  });
}

// Outputs of a changed model; nothing: it does not run on kernels of the plugin.
std::optional<std::vector<Tensor>> RunChanged(const Subject& subject, std::unique_ptr<Module> module) {
  const auto rig = Rig::Create(subject.manifest, subject.options.config, {});
  if (!rig) return std::nullopt;
  ModelOptions options;
  options.registry = (*rig)->registry();
  options.delegates.emplace();
  const auto model = Model::FromModule(std::move(module), options);
  if (!model) return std::nullopt;
  auto outputs = RunModel(*model, {.seed = subject.options.seed});
  if (!outputs || (*rig)->invokes() == 0) return std::nullopt;
  return *std::move(outputs);
}

// Bodies do not read attributes, so only the plugin's ops and composites have them.
Finding Attributes(const Subject& subject) {
  return AfterPlainRun(subject, [&](const auto& plain) {
    const auto module = tflite::ReadFile(subject.model);
    if (!module) return Failed(module.error().message);
    size_t tried = 0;
    const auto is_ignored = [&](Node& node, const std::string& name, double is) {
      size_t ran = 0;
      size_t changed = 0;
      for (const double other : {is * 1000 + 10, is / 2 + 0.25, 0.0}) {
        node.attrs.Set(name, other);
        const auto outputs = RunChanged(subject, Clone(**module));
        ran += outputs.has_value();
        changed += outputs && !DifferenceOf(plain, *outputs).empty();
      }
      node.attrs.Set(name, is);
      ++tried;
      return ran > 1 && changed == 0;
    };
    for (const auto& f : (*module)->functions)
      for (const auto& node : f->nodes)
        if (node->is(Op::kCustom) || node->is(Op::kStablehloComposite))
          for (const auto& [name, value] : Attrs(node->attrs))
            if (const double* real = std::get_if<double>(&value); real && is_ignored(*node, name, *real))
              return Failed("no value of the attribute " + name + " of " + node->name +
                            " changes the results");
    return tried > 0 ? Passed(std::to_string(tried) + " attributes")
                     : NotTested("no op has a real attribute");
  });
}

Finding Signatures(const Subject& subject) {
  size_t tried = 0;
  const auto rig = Rig::Create(subject.manifest, subject.options.config, {});
  if (!rig) return Failed(rig.error().message);
  for (const auto& module : NodesLikeThoseOf(subject)) {
    Function& main = *module->functions[0];
    for (const auto& node : main.nodes) {
      (void)ChooseKernel(*(*rig)->registry(), main, *node);
      (void)InferNode(*(*rig)->registry(), *module, main, *node);
      ++tried;
    }
  }
  return Passed(std::to_string(tried) + " nodes");
}

constexpr std::array kKernelTests = {
    Test{"kernel.signatures", "supports and infer survive wrong operands, types, ranks and attributes",
         Test::Of::kPlugin, Signatures},
    Test{"kernel.bounds", "reads and writes only its buffers, and keeps no pointer to a view",
         Test::Of::kModel, Bounds},
    Test{"kernel.uninitialized", "writes all results, and reads nothing that it has not written",
         Test::Of::kModel, Uninitialized},
    Test{"kernel.special", "survives NaN and infinities", Test::Of::kModel, Special},
    Test{"kernel.attributes", "real attributes have an effect", Test::Of::kModel, Attributes},
    Test{"kernel.threads", "computes the same with 1, 2, 3, 4, 8 threads, and with more than there are cores",
         Test::Of::kModel, ThreadCounts},
    Test{"kernel.chunks", "chunks of parallel_for are independent of each other", Test::Of::kModel,
         ChunksOfLoops},
    Test{"kernel.sessions", "sessions share no state, by turns and at once", Test::Of::kModel, Sessions},
    Test{"kernel.reset", "ResetState restores the first state", Test::Of::kModel, Reset},
};

}  // namespace

std::span<const Test> KernelTests() { return kKernelTests; }

}  // namespace fusebox::check
